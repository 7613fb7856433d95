"""Every description of a client: complete, and what is installed is understood."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, cast

import pytest

from mcp_memory.integrations.clients import description
from mcp_memory.integrations.clients.description import client_names, describe, fill
from mcp_memory.integrations.clients.effects import effects_of_install, effects_of_removal
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.clients.plan import apply_changes, config_parts, find_installed, plan_install, plan_removal
from mcp_memory.integrations.clients.programs import (
    Machine,
    client_named,
    command_words,
    hooks_files,
    plugin_contents,
    server_entry,
    server_files,
)
from mcp_memory.integrations.hooks import events

MACHINES = [
    Machine("linux", {}, PurePosixPath("/home/ada")),
    Machine("macos", {}, PurePosixPath("/Users/ada")),
    Machine("windows", {"APPDATA": r"D:\Roaming"}, PureWindowsPath(r"C:\Users\Ada")),
]
WITH_PLUGIN = [name for name in client_names() if client_named(name).plugin]
WITH_HOOKS = [name for name in client_names() if client_named(name).hooks and name not in WITH_PLUGIN]
ODD = {".toml": b"\t# mine\n", ".yaml": b"# mine\na:   [1, 2]\r\nb: {c: 1}"}
ROOT = Path(__file__).resolve().parents[3]
COMMAND = ["/opt/my memory/mcp-memory", "--home", "/m"]


def words_of(entry: object) -> Iterator[list[str]]:
    """Yield the commands in an entry of a configuration."""
    match entry:
        case dict():
            fields = cast("dict[str, Any]", entry)
            if "args" in fields or isinstance(fields.get("command"), list):
                yield command_words(fields)
            else:
                yield from words_of([*fields.values()])
        case list():
            for item in cast("list[object]", entry):
                yield from words_of(item)
        case str() if " hook " in entry:
            yield shlex.split(entry)
        case _:
            pass


@pytest.mark.parametrize("name", client_names())
def test_a_description_says_where_its_version_and_formats_are_from(name: str) -> None:
    text = (description._FOLDER / f"{name}.toml").read_text()  # pyright: ignore[reportPrivateUsage]
    assert re.match(r"# [^\n]*\d[^\n]*https://", text)


@pytest.mark.parametrize("name", client_names())
def test_the_server_is_started_as_the_entry_says(name: str) -> None:
    client = client_named(name)
    entry = server_entry(client, [*COMMAND, "serve"], {"A": "b"})
    assert list(words_of(entry)) == [[*COMMAND, "serve"]]
    assert entry[client.variables] == {"A": "b"}


@pytest.mark.parametrize("name", client_names())
def test_what_an_installation_changes_is_said_of_every_client(name: str) -> None:
    client = client_named(name)
    for wanted in (True, False):
        parts = config_parts(name, COMMAND, name="memory", project=None, env={}, hooks=wanted)
        hooks = any(part.runs_hooks for part in parts)
        assert hooks == (wanted and client.hooks is not None)
        said = " ".join(effects_of_install(client, hooks=hooks, place="on this machine", offload_over=1_500))
        assert client.title in said
        assert "is stored on this machine." in said
        assert ("Before each prompt" in said) == (hooks and client.hooks is not None)
        assert ("over 1,500 tokens" in said) == (hooks and bool(client.hooks and client.hooks.replaced))
        assert client.title in next(effects_of_removal(client, hooks=hooks))


@pytest.mark.parametrize("name", client_names())
def test_files_are_absolute_on_every_system(name: str) -> None:
    for machine in MACHINES:
        files = [*server_files(name, machine), *hooks_files(name, machine)]
        assert server_files(name, machine)
        assert all(path.is_absolute() and "~" not in path.parts for path in files)


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_each_hook_that_is_installed_is_understood(name: str) -> None:
    hooks = client_named(name).hooks
    assert hooks is not None
    for event, entries in hooks_of(name, COMMAND).items():
        for words in words_of(entries):
            assert words[:5] == [*COMMAND, "hook", event]
            assert words[5:] == ([] if name == "claude-code" else ["--client", name])
        log = next((pattern.replace("*", "/") for pattern in hooks.own.get(hooks.fields.log, ())), "/p/log.jsonl")
        payload = {hooks.fields.session: "3f2a9c1e", hooks.fields.log: log}
        parsed = events.parse_event(name, event, payload)
        assert parsed is not None
        assert parsed.kind == hooks.events[event]
    assert hooks_of(name, COMMAND)


@pytest.mark.parametrize("name", WITH_PLUGIN)
def test_a_plugin_starts_the_described_hooks_with_the_command(name: str) -> None:
    client = client_named(name)
    assert client.hooks is not None
    text = "\n".join(content.decode() for content in plugin_contents(client, COMMAND).values())
    assert json.dumps(COMMAND) in text
    assert f'"--client", "{name}"' in text
    assert set(re.findall(r"""(?:ask|record)\(\s*"([^"]+)",""", text)) == client.hooks.events.keys()
    assert hooks_of(name, COMMAND) == {}


def test_a_client_without_hooks_has_none() -> None:
    assert hooks_of("claude-desktop", ["mcp-memory"]) == {}
    assert hooks_of("../claude-code", ["mcp-memory"]) == {}
    assert describe("emacs") is None


def test_a_template_is_filled_with_values_of_any_type() -> None:
    template = {"a": ["{list}", "{text} stays"], "b": {"c": "{number}", "d": True}}
    values = {"list": [1], "text": "t", "number": 5}
    assert fill(template, values) == {"a": [[1], "{text} stays"], "b": {"c": 5, "d": True}}


@pytest.mark.parametrize("name", client_names())
def test_uninstalling_restores_every_byte_of_every_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    machine = Machine("linux", {}, tmp_path)
    files = [Path(server_files(name, machine)[0]), *map(Path, hooks_files(name, machine))]
    odd = {path: ODD.get(path.suffix, b'{"a":   [1, 2],\r\n\t"b": {}}') for path in files}
    for there in (False, True):
        for path, text in odd.items() if there else ():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        parts = config_parts(name, COMMAND, name="memory", project=None, env={}, hooks=True)
        apply_changes([plan_install(part) for part in parts])
        assert {part.path for part in parts if part.content is None} == set(files)
        assert not any(plan_install(part).changes for part in parts)
        assert any(find_installed(part)[1] for part in parts) == (client_named(name).hooks is not None)
        apply_changes([plan_removal(part) for part in parts])
        assert not any(any(find_installed(part)) for part in parts)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == (odd if there else {})


def test_the_documentation_says_of_each_client_what_its_hooks_do() -> None:
    page = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    table = page.partition("| client | captures |")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    known = {"tested with the real client", "tested with replayed events", "no"}
    assert {cell for row in cells for cell in row[1:]} <= known
    done = {title: [cell != "no" for cell in row] for title, *row in cells}
    described = {client.title: client.hooks for client in map(client_named, client_names())}
    assert done == {
        title: [hooks is not None, hooks is not None, bool(hooks and hooks.replaced), hooks is not None]
        for title, hooks in described.items()
    }
