"""The search that proves a purge finds what is there, and nothing else."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.store.purge_search import LEAST, PIECE, STEP, Traces

words = st.text(min_size=PIECE + STEP, max_size=200).filter(lambda text: len(set(text)) > 8)


@given(text=words, before=st.binary(max_size=99), after=st.binary(max_size=99), data=st.data())
def test_any_run_long_enough_to_hold_a_piece_is_found_wherever_it_stands(
    text: str, before: bytes, after: bytes, data: st.DataObject
) -> None:
    whole = text.encode("utf-8", "surrogatepass")
    start = data.draw(st.integers(0, max(0, len(whole) - PIECE - STEP)))
    traces = Traces([whole])
    run = whole[start : start + PIECE + STEP]
    assert traces.matches(before + run + after) or all(len(set(run[at : at + PIECE])) <= 2 for at in range(STEP + 1))


@given(size=st.integers(60_000, 90_000))
def test_the_end_of_a_long_text_is_found(size: int) -> None:
    text = "".join(f"{number} " for number in range(size // 5)).encode()
    assert Traces([text]).matches(text[-2 * PIECE :])


@given(text=words, ascii_only=st.booleans())
def test_what_json_makes_of_a_text_is_found(text: str, ascii_only: bool) -> None:
    line = json.dumps({"content": text}, ensure_ascii=ascii_only).encode("utf-8", "backslashreplace")
    assert Traces([text.encode("utf-8", "surrogatepass")]).matches(line)


@given(text=words)
def test_what_was_kept_and_says_the_same_proves_nothing(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    traces = Traces([data])
    assert traces.excuse([("t9", b"before " + data + b" after")]) == ["t9"]
    assert not traces.matches(data)


def test_a_file_is_read_in_blocks_and_an_archive_by_its_members(tmp_path: Path) -> None:
    secret = b"the number of the account is 7734-2091"
    traces = Traces([secret, b"tiny"])
    assert len(b"tiny") < LEAST
    for place in (0, 2**22 - 20, 2**22, 5 * 2**20):
        file = tmp_path / "blob"
        file.write_bytes(b"\0" * place + secret + b"tiny" * 9)
        found = traces.in_file(file)
        assert (found.places[0], found.bytes) == (f"at byte {place:,}", place + len(secret) + 36)
    with zipfile.ZipFile(tmp_path / "copy.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes.md", b"x" * 5_000 + secret)
    assert secret not in (tmp_path / "copy.zip").read_bytes()
    assert traces.in_file(tmp_path / "copy.zip").places[0] == "notes.md at byte 5,000"
