"""Errors about files from which nothing can be imported; nothing of such files is stored."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers.format_table import files_of_formats, table
from tests.integrations.importers.conftest import import_into, jsonl, survey_path, turn

File = Callable[..., Path]


def refusal(path: Path, tmp_path: Path, **options: Any) -> str:
    with pytest.raises(InvalidInput) as error:
        import_into(tmp_path / "home", path, **options)
    return str(error.value).removeprefix(f"{path} ")


def export(*messages: dict[str, Any]) -> bytes:
    nodes = {f"n{nth}": {"message": entry, "parent": None} for nth, entry in enumerate(messages)}
    return json.dumps([{"conversation_id": "c", "title": "Kilns", "mapping": nodes}]).encode()


def test_the_error_about_a_file_without_turns_names_the_recognised_format(file: File, tmp_path: Path) -> None:
    path = file(export({"author": {"role": "narrator"}, "content": {"parts": ["Hello"]}}), "conversations.json")
    message = refusal(path, tmp_path)
    assert message.startswith(
        "contains no message that can be imported. It was taken for an export of ChatGPT. Left out: "
    )
    assert "hidden messages and instructions (1)" in message


@pytest.mark.parametrize("data", [b"[]", b'{"results": []}', b'{"sessions": []}'])
def test_json_without_anything_in_it_is_an_error(data: bytes, file: File, tmp_path: Path) -> None:
    assert "of no known format" in refusal(file(data), tmp_path) or "no message" in refusal(file(data), tmp_path)


def test_markdown_of_no_known_format_is_an_error(file: File, tmp_path: Path) -> None:
    message = refusal(file(b"# Notes\n\nThe hives need a roof.\n", "notes.md"), tmp_path)
    assert message.startswith("looks like Markdown, which is of no known format. `mcp-memory import --help`")


@pytest.mark.parametrize(("prompt", "response"), [("## Prompt", "## Response"), ("**Prompt:**", "**Response:**")])
def test_a_prompt_library_is_not_a_chat(prompt: str, response: str, file: File, tmp_path: Path) -> None:
    text = f"# Prompts\n\n{prompt}\nSummarise this in ten words.\n\n{response}\nTen words.\n"
    assert "Markdown, which is of no known format" in refusal(file(text.encode(), "prompts.md"), tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("result.json", {"type": "personal_chat", "messages": [{"from": "Ines", "text": "Hi"}]}, "Telegram"),
        ("general.json", [{"type": "message", "user": "U02ABCDEF", "ts": "1742464000.1", "text": "Hi"}], "Slack"),
        ("c1.json", {"guild": {"id": "1"}, "channel": {"id": "2"}, "messages": [{"content": "Hi"}]}, "Discord"),
        ("message_1.json", {"messages": [{"sender_name": "Ines", "timestamp_ms": 1, "content": "Hi"}]}, "Facebook"),
    ],
)
def test_the_export_of_a_messenger_is_named(name: str, data: Any, what: str, file: File, tmp_path: Path) -> None:
    message = refusal(file(json.dumps(data).encode(), name), tmp_path)
    assert f"looks like an export of {what}" in message
    assert "Messages between people are not imported; to import them, convert it to lines of JSON" in message


@pytest.mark.parametrize(
    "line", ["[20.03.26, 09:46:40] Ines: Hi", "3/20/26, 9:46 - Ines: Hi", "\u200e[20/03/2026, 09:46:40] Ines: Hi"]
)
def test_a_chat_of_whatsapp_is_named(line: str, file: File, tmp_path: Path) -> None:
    message = refusal(file(f"{line}\n{line}\n".encode(), "_chat.txt"), tmp_path)
    assert message.startswith("looks like an export of WhatsApp")


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("all.mbox", "From ines@hive.example Fri Mar 20 09:46:40 2026\nFrom: Ines\nTo: Bo\n\nHi\n", "e-mail"),
        ("one.eml", "From: Ines\nTo: Bo\nSubject: Hives\nDate: Fri, 20 Mar 2026 09:46:40 +0000\n\nHi\n", "e-mail"),
        ("hives.ics", "BEGIN:VCALENDAR\nVERSION:2.0\nEND:VCALENDAR\n", "a calendar"),
        ("talk.vtt", "WEBVTT\n\n00:00.000 --> 00:02.000\n<v Ines>Hi\n", "subtitles"),
        ("talk.srt", "1\n00:00:00,000 --> 00:00:02,000\nHi\n", "subtitles"),
        ("talk.csv", "id,prompt,response\n1,Hi,Hello\n", "a table"),
        ("page.md", "<img src='hive.png'/>\n\n# Hives\n", "Markdown"),
    ],
)
def test_the_error_about_a_text_that_is_not_a_conversation_describes_it(
    name: str, text: str, what: str, file: File, tmp_path: Path
) -> None:
    assert refusal(file(text.encode(), name), tmp_path).startswith(f"looks like {what}, which is of no known format.")


def test_of_a_long_object_only_its_own_fields_are_named(file: File, tmp_path: Path) -> None:
    long = {"hives": [{"frames": "x" * 70_000}], "owner": "Ines"}
    message = refusal(file(json.dumps({"kind": {"bee": 1}, **long}).encode(), "hives.json"), tmp_path)
    assert message.startswith("looks like JSON with the fields kind, hives, which is of no known format.")


def test_json_of_no_known_format_is_described_in_one_sentence_and_not_line_by_line(file: File, tmp_path: Path) -> None:
    message = refusal(
        file(jsonl([{"url": f"https://hive.example/{n}", "title": "Bees"} for n in range(2_000)])), tmp_path
    )
    assert message.startswith("looks like JSON with the fields url, title, which is of no known format.")
    assert len(message) < 400


def test_problems_of_the_same_kind_are_one_line_with_their_number_and_the_first_place(
    file: File, tmp_path: Path
) -> None:
    wrong = [{"role": f"narrator {n}", "content": "x"} for n in range(30)]
    done = import_into(tmp_path / "home", file(jsonl([turn("a"), *wrong, {"role": "user"}])))
    assert (done.state, done.bad, len(done.wrong)) == ("refused", 31, 2)
    assert done.wrong[0].startswith("line 2: role is 'narrator 0', and has to be")
    assert done.wrong[0].endswith("(29 more like this)")


def test_an_archive_without_a_known_format_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("users.json", '[{"name": "Ines"}]')
    assert refusal(path, tmp_path).startswith(
        "looks like a zip archive, which is of no known format. It contains users.json (JSON with the fields name)."
    )


def test_an_archive_of_a_known_format_is_read_whatever_its_files_are_called(tmp_path: Path) -> None:
    path = tmp_path / "chats.zip"
    chat = {
        "conversationId": "c",
        "messages": [{"messageId": "m", "isCreatedByUser": True, "text": "Hi", "createdAt": "2026-03-20T09:46:40Z"}],
    }
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("Tuning.json", json.dumps(chat))
        packed.writestr("settings.json", '{"theme": "dark"}')
    survey = survey_path(path)
    assert (survey.turns, survey.bad) == (1, 0)
    assert survey.skipped.unread == {"JSON with the fields theme": ("settings.json", 1)}


def test_of_formats_that_recognise_the_same_values_the_stricter_is_tried_first() -> None:
    order = list(table())
    for name, form in table().items():
        assert set(form.before) <= table().keys()
        assert all(order.index(name) < order.index(later) for later in form.before)


def test_in_a_folder_only_files_of_known_formats_are_found(tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    history = "# aider chat started at 2026-01-14 20:03:11\n\n#### hello  \n\nHello.\n"
    for name, text in (
        ("README.md", "# Hives\n"),
        (".aider.chat.history.md", history),
        ("node_modules/.aider.chat.history.md", history),
        ("package.json", '{"name": "hives"}'),
        ("odd.json", "{"),
        ("lines.jsonl", '{"a": 1}\n'),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [path.name for path in files_of_formats(tmp_path)] == [".aider.chat.history.md"]
    assert list(files_of_formats(tmp_path, "deepseek")) == []
