"""Damaged, odd and misnamed files: their records, and the errors about them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_memory.core.errors import InvalidInput
from tests.integrations.importers.conftest import contents, import_into
from tests.integrations.importers.test_archive import zipped

File = Callable[..., Path]
TURN = b'{"role": "user", "content": "hi"}'
MESSAGES = b'{"id": "trip", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}'
BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("trip.json", BOM + b"[" + TURN + b"]"),
        ("trip.json", BOM + MESSAGES),
        ("trip.jsonl", TURN + b"\r\n"),
        ("trip.json", MESSAGES.replace(b" ", b"\r\n")),
        ("trip", TURN),
        ("trip.md", b"[" + TURN + b"]"),
        ("trip.html", TURN),
        ("trip.txt", MESSAGES),
        ("trip.zip", zipped(("trip.json", MESSAGES), ("deep.json", b'{"a":' * 10**5))),
        ("trip.json", zipped(("conversations.json", b"[" + TURN + b"]"))),
    ],
)
def test_gzipped_and_renamed_files_are_read(name: str, data: bytes, file: File, tmp_path: Path) -> None:
    import_into(tmp_path / "home", file(data, name))
    [(session, texts)] = contents(tmp_path / "home").items()
    assert (session.startswith("trip"), texts) == (True, ["hi"])


@pytest.mark.parametrize(
    "value",
    [
        {"session": "trip", "conversation": [{"role": "user", "content": "hi"}]},
        {"conversation_hash": "trip", "history": [{"role": "user", "content": "hi"}]},
        {"id": "trip", "messages": [{"role": "Prompt", "say": "hi", "time": "2026-03-01 09:00:00"}]},
        {"role": "userMessage", "content": "hi", "sessionId": "trip", "createdDate": "2026-03-01T09:00:00Z"},
        {"role": "user", "text": "hi", "thread_id": "trip", "created": 1772355600},
    ],
)
def test_turns_are_read_by_the_names_that_other_programs_use(value: object, file: File, tmp_path: Path) -> None:
    import_into(tmp_path / "home", file(json.dumps(value).encode()))
    assert contents(tmp_path / "home") == {"trip": ["hi"]}


def test_a_text_with_a_few_lines_of_json_is_a_text(file: File, tmp_path: Path) -> None:
    text = b'> how many goats\n\n\xe2\x8f\xba Nine:\n\n  {"goats": 9}\n'
    assert import_into(tmp_path / "home", file(text, "talk.txt")).stored == 2


def test_a_link_to_a_file_is_read_and_a_broken_one_refused(file: File, tmp_path: Path) -> None:
    file(TURN)
    (tmp_path / "link.jsonl").symlink_to("history.jsonl")
    assert import_into(tmp_path / "home", tmp_path / "link.jsonl").stored == 1
    (tmp_path / "broken.jsonl").symlink_to("nowhere")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    for name in ("broken", "loop"):
        with pytest.raises(InvalidInput, match="cannot be read"):
            import_into(tmp_path / "home", tmp_path / f"{name}.jsonl")


def test_lone_surrogates_are_replaced_in_texts_and_kinds(file: File, tmp_path: Path) -> None:
    data = MESSAGES.replace(b"hi", rb"a \ud83d b").replace(b'"text",', rb'"text\ud800",')
    done = import_into(tmp_path / "home", file(data, "trip.json"))
    assert (done.stored, contents(tmp_path / "home")) == (1, {"trip": ["a \ufffd b"]})


LONG = json.dumps({"role": "user", "content": "x" * 5_000_000}).encode()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.json", b"[" + TURN + b', {"role": "assis', "expected a JSON value, found the end of the file"),
        ("a.json", MESSAGES[:-9], "Line 1: is not JSON ("),
        ("a.json", ("[" + TURN.decode() + "]").encode("utf-16"), "looks like UTF-16"),
        ("a.jsonl", TURN.decode().encode("utf-16-be"), "looks like UTF-16"),
        ("a.jsonl", TURN.replace(b"hi", b"h\xfc"), "Line 1: is not UTF-8 (byte"),
        ("a.jsonl", b"\0" * 1000, "begins with zero bytes"),
        ("a.json", b"[" * 10**5, "a value is nested too deep"),
        ("a.json", b'{"a":' * 10**5, "Line 1: is JSON that cannot be read"),
        ("a.json", b"[" + TURN.replace(b'"hi"', b"9" * 5000) + b"]", "has too many digits"),
        ("a.json", b"[[" + TURN + b"]]", "is a list, and has to be an object"),
        ("a.json", b"# Notes\n\nText.\n", "looks like text without JSON"),
        ("a.json", b"", "is empty"),
        ("a.zip", zipped(), "contains no file that can be read. It is empty."),
        ("a.zip", zipped(("b.zip", zipped())), "contains other archives (b.zip): extract and import those"),
        ("a.zip", zipped(("conversations.json", b"[]")), "It contains conversations.json (without conversations)."),
    ],
)
def test_unreadable_files_are_refused_with_the_reason(
    name: str, data: bytes, message: str, file: File, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as refused:
        import_into(tmp_path / "home", file(data, name))
    assert message in str(refused.value)


def test_a_text_that_is_too_long_is_a_problem_with_its_place(file: File, tmp_path: Path) -> None:
    done = import_into(tmp_path / "home", file(LONG))
    assert (done.state, done.wrong) == (
        "refused",
        ["line 1: content is larger than 4 MiB. Shorten it, or take it out."],
    )
