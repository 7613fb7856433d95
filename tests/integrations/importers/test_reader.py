"""Files in every layout and packing, and what cannot be read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers.reader import ImportSource, SourceValue, layout_of, values
from tests.integrations.importers.conftest import jsonl, read_records, survey_path, turn

File = Callable[..., Path]
TALK = [turn("one"), turn("two", role="assistant"), turn("drei ü 三")]
AT = [(t["role"], t["content"], t["session"]) for t in TALK]


def turns_of(path: Path, **options: Any) -> list[tuple[str, str, str | None]]:
    return [(record.role, record.content, record.session) for record in read_records(path, **options)]


SEED = [{"sessionKey": "trip", "conversations": [[{"role": t["role"], "content": t["content"]}] for t in TALK]}]
CONVERSATION = {"session": "trip", "turns": [{"role": t["role"], "content": t["content"]} for t in TALK]}


@pytest.mark.parametrize(
    "data",
    [
        jsonl(TALK),
        jsonl(TALK, end="\r\n"),
        jsonl(TALK).rstrip(b"\n"),
        b"\n\n" + jsonl(TALK, end="\n\n"),
        b"\xef\xbb\xbf" + jsonl(TALK),
        jsonl([CONVERSATION]),
        jsonl([{"session_id": "trip", "messages": CONVERSATION["turns"]}]),
        json.dumps(TALK).encode(),
        json.dumps(TALK, indent=2).encode(),
        b"\xef\xbb\xbf" + json.dumps(TALK, indent="\t").replace("\n", "\r\n").encode(),
        json.dumps([CONVERSATION]).encode(),
        json.dumps(CONVERSATION, indent=1).encode(),
        "\n".join(json.dumps(value, indent=1) for value in TALK).encode(),
        json.dumps(SEED).encode(),
        json.dumps(SEED, indent=2).encode(),
        json.dumps({"sessions": SEED}).encode(),
        json.dumps({"version": 3, "sessions": SEED, "by": "x"}, indent=2).encode(),
        jsonl([{"version": 3, "sessions": SEED}]),
        jsonl(SEED),
    ],
)
def test_a_talk_reads_the_same_in_every_layout_plain_and_packed(data: bytes, file: File) -> None:
    assert turns_of(file(data)) == AT
    assert turns_of(file(gzip.compress(data), "history.jsonl.gz")) == AT


objects = st.dictionaries(st.text(max_size=8), st.text(max_size=30) | st.integers() | st.none(), min_size=1, max_size=4)


@given(st.lists(objects, min_size=1, max_size=8), st.sampled_from([None, 0, 2]), st.booleans())
def test_the_same_turns_are_read_from_lines_and_from_a_document(
    tmp_path_factory: pytest.TempPathFactory, given_values: list[Any], indent: int | None, ascii_only: bool
) -> None:
    folder = tmp_path_factory.mktemp("read")
    lines = "".join(json.dumps(value, ensure_ascii=ascii_only) + "\n" for value in given_values)
    document = json.dumps(given_values, indent=indent, ensure_ascii=ascii_only)
    for text, kind in ((lines, "lines"), (document, "document")):
        path = folder / kind
        path.write_bytes(text.encode())
        source = ImportSource(path=path, name=kind, size=path.stat().st_size, modified=0)
        assert layout_of(source) == kind
        read = list(values(source.readable(), "lines" if kind == "lines" else "document"))
        assert [record.value for record in read if isinstance(record, SourceValue)] == given_values


def test_values_longer_than_a_chunk_are_read_whole(file: File) -> None:
    talk = [turn("a" * 3_000_000), turn('\\"ü' * 400_000), turn("c")]
    for data in (json.dumps(talk).encode(), json.dumps({"sessions": SEED, "talk": talk}).encode()):
        assert [len(text) for _, text, _ in turns_of(file(data))] in ([3_000_000, 1_200_000, 1], [3, 3, 8])


def test_each_turn_has_its_line_and_path(file: File) -> None:
    path = file(json.dumps({"sessions": SEED}, indent=1).encode())
    assert [record.where for record in read_records(path)] == [
        f"line 3, sessions[0].conversations[{nth}][0]" for nth in range(3)
    ]
    assert [record.where for record in read_records(file(b"\n" + jsonl([TALK[0], CONVERSATION])))] == [
        "line 2",
        *(f"line 3, turns[{nth}]" for nth in range(3)),
    ]


def test_a_line_that_is_not_json_is_reported_and_the_others_are_read(file: File) -> None:
    records = read_records(file(b'{"role": "user", "content": "one"\n' + jsonl(TALK[1:])))
    assert str(records[0]) == ("line 1: is not JSON (Expecting ',' delimiter at character 34). Repair or remove it.")
    assert [record.content for record in records[1:]] == ["two", "drei ü 三"]


@pytest.mark.parametrize(
    ("line", "why"), [(b'{"a": "\xff"}', "not UTF-8 (byte 8)"), (b"[" * 100_000, "cannot be read"), (b"x", "not JSON")]
)
def test_every_unreadable_line_is_reported(line: bytes, why: str, file: File) -> None:
    records = read_records(file(jsonl(TALK) + line + b"\n" + jsonl(TALK)))
    assert [why in str(record) for record in records[3:4]] == [True]
    assert len(records) == 7


def test_a_last_line_that_is_cut_off_waits_until_the_file_has_grown(file: File) -> None:
    survey = survey_path(file(jsonl(TALK) + b'{"role": "user", "cont'))
    assert (survey.turns, survey.bad, str(survey.torn)) == (
        3,
        0,
        "line 4: is incomplete, and will be read when the file has grown.",
    )
    assert survey_path(file(jsonl(TALK) + b'{"role": "user", "content": "\xc3')).turns == 3


def test_a_file_of_one_cut_line_and_a_cut_line_that_ends_are_wrong(file: File) -> None:
    assert survey_path(file(b'{"role": "user", "cont')).bad == 1
    assert survey_path(file(jsonl(TALK) + b'{"role": "user", "cont\n')).bad == 1
    assert survey_path(file(jsonl(TALK) + b"garbage")).bad == 1


@pytest.mark.parametrize("data", [b"[]", b'{"sessions": []}'])
def test_an_empty_file_holds_nothing_and_nothing_wrong(data: bytes, file: File) -> None:
    survey = survey_path(file(data))
    assert (survey.turns, survey.sessions, survey.bad) == (0, 0, 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (jsonl(TALK).decode().encode("utf-16"), "UTF-16"),
        (jsonl(TALK).decode().encode("utf-16-be"), "UTF-16"),
        (b"", "is empty"),
        (b"\xef\xbb\xbf\n \r\n", "is empty"),
        (b"SQLite format 3\0rest", "looks like an SQLite database, which is of no known format"),
        (b"PK\x03\x04rest", "damaged or truncated"),
        (gzip.compress(jsonl(TALK), mtime=0)[:-12], "truncated"),
        (b"\x1f\x8bgarbage that is no gzip", "truncated"),
        (json.dumps(TALK)[:-1].encode(), "line 1: expected ']', found the end of the file"),
        (json.dumps(TALK, indent=1)[:60].encode(), "found the end of the file"),
        (b'[{"role": "user"}\n{"role": "user"}]', "line 2: expected ']', found something else"),
        (b'[{"role": "user", }]', "line 1: expected a JSON value"),
        (b"[1] x", "an array or an object"),
        (b'[{"a": "\xff"}]', "not UTF-8 after line 1"),
    ],
)
def test_a_file_that_cannot_be_read_on_is_refused_with_what_to_do(data: bytes, message: str, file: File) -> None:
    with pytest.raises(InvalidInput, match=r"history.jsonl") as refused:
        survey_path(file(data))
    assert message in str(refused.value)


def test_the_format_option_overrides_the_recognised_format(file: File) -> None:
    path = file(json.dumps(TALK, indent=1).encode())
    assert survey_path(path, format="jsonl").bad == 17
    assert survey_path(path, format="seed").bad == 3
    assert survey_path(path, format="seed").wrong[0].where == "line 2, [0]"


def test_a_file_is_read_up_to_the_size_that_it_had(file: File) -> None:
    path = file(jsonl(TALK[:2]))
    source = ImportSource(path=path, name="x", size=path.stat().st_size, modified=0)
    with path.open("ab") as stream:
        stream.write(jsonl(TALK[2:]))
    assert len(list(values(source.readable(), "lines"))) == 2
    read: list[int] = []
    list(values(source.readable(read.append), "lines"))
    assert read[-1] == source.size
