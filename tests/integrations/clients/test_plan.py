"""Installing and uninstalling on real files: idempotent, undone to the byte, refused whole where it cannot be."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput, McpMemoryError, Refused, StoreUnavailable
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.clients.plan import (
    MAX_BYTES,
    ConfigPart,
    apply_changes,
    backup_path,
    config_parts,
    diff,
    find_installed,
    plan_install,
    plan_removal,
)
from mcp_memory.integrations.clients.programs import client_named, server_entry


def part(path: Path, name: str = "cursor", *, hooks: bool = False, env: dict[str, str] | None = None) -> ConfigPart:
    of = client_named(name)
    server = server_entry(of, ["/opt/mcp-memory", "serve"], env or {})
    ours = hooks_of(name, ["/opt/mcp-memory"]) if hooks else {}
    enabled = of.plugin.enabled if of.plugin else dict[str, Any]()
    return ConfigPart(path, of.format, of, "memory", server, ours, enabled)


def install(one: ConfigPart) -> None:
    apply_changes([plan_install(one)])


def uninstall(one: ConfigPart) -> None:
    apply_changes([plan_removal(one)])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


ODD = '\ufeff{\r\n\t// mine\r\n\t"mcpServers": {"other": {"command":"x"}},\r\n\r\n\t"z": [1,2,],\r\n}\r\n\r\n'
JSON5 = """// mine
{
  gateway: { mode: 'local', port: 18789, },
  agents: {
    list: [{ id: 'it\\'s "me"', $x: "a's" }],  // odd
  },
  mcp: {
    servers: {
      'other-one': { command: 'npx', args: ['-y'] },
    },
  },
}
"""
TOML = '# mine\nmodel = "x"   # odd\n\n[mcp_servers.other]\ncommand = "echo"\n\n# the end'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", ODD),
        ("cursor", "{}"),
        ("cursor", ""),
        ("cursor", "\n"),
        ("cursor", "// nothing yet"),
        ("vscode", '{"servers": {}, "inputs": []}'),
        ("claude-code", '{"a": 1, "mcpServers": {"x": {"command": "y"}}, "n": null}'),
        ("gemini", '{ // c\n  "ui": {"theme": "x"} }'),
        ("openclaw", JSON5),
        ("openclaw", JSON5.replace("\n", "\r\n")),
        ("openclaw", "{mcp: {servers: {}}, plugins: {entries: {'x': {enabled: false}}}}"),
        ("codex", TOML),
        ("codex", TOML.replace("\n", "\r\n")),
        ("codex", "[mcp_servers]\n"),
        ("codex", ""),
    ],
)
def test_twice_is_once_and_uninstalling_gives_back_every_byte(config: Path, name: str, text: str) -> None:
    config.write_bytes(text.encode())
    config.chmod(0o640)
    install(part(config, name, hooks=name == "gemini"))
    once = config.read_bytes()
    assert once != text.encode()
    assert backup_path(config).read_bytes() == text.encode()
    assert not plan_install(part(config, name, hooks=name == "gemini")).changes
    assert config.stat().st_mode & 0o777 == backup_path(config).stat().st_mode & 0o777 == 0o640
    uninstall(part(config, name, hooks=True))
    assert config.read_bytes() == text.encode()
    assert [path.name for path in config.parent.iterdir()] == [config.name]


@pytest.mark.parametrize("name", ["cursor", "vscode", "claude-code", "gemini", "codex"])
def test_a_file_that_was_made_goes_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / "new" / "folder" / "config"
    install(part(path, name))
    assert path.stat().st_mode & 0o777 == 0o600
    assert not plan_install(part(path, name)).changes
    uninstall(part(path, name))
    assert not path.exists()
    assert list(path.parent.iterdir()) == []
    assert not plan_removal(part(path, name)).changes


def test_where_others_wrote_in_between_only_ours_goes_and_the_original_is_kept(config: Path) -> None:
    config.write_text('{\n  "mcpServers": {"a": {"command": "a"}}\n}\n')
    install(part(config, "claude-code", hooks=True))
    document = json.loads(config.read_text())
    document["mcpServers"]["later"] = {"command": "b"}
    document["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "beep"}]})
    config.write_text(json.dumps(document, indent=4))
    uninstall(part(config, "claude-code", hooks=True))
    assert json.loads(config.read_text()) == {
        "mcpServers": {"a": {"command": "a"}, "later": {"command": "b"}},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]},
    }
    assert backup_path(config).exists()


def test_what_hooks_need_beside_them_stays_as_long_as_there_are_hooks(config: Path) -> None:
    install(part(config, hooks=True))
    document = json.loads(config.read_text())
    document["hooks"]["stop"].append({"command": "beep"})
    config.write_text(json.dumps(document))
    uninstall(part(config, hooks=True))
    assert json.loads(config.read_text()) == {"version": 1, "hooks": {"stop": [{"command": "beep"}]}}


def test_a_client_that_wrote_the_same_anew_gets_its_original_back(config: Path) -> None:
    original = '{"mcpServers": {"a": {"command": "a"}}}'
    config.write_text(original)
    install(part(config))
    text = config.read_text().replace('"args": ["serve"]', '"args": [\n"serve"\n]')
    config.write_text(text)
    uninstall(part(config))
    assert config.read_text() == original


def test_an_update_keeps_the_first_original_and_what_was_added_by_hand(config: Path) -> None:
    config.write_text('{"first": 1}')
    install(part(config))
    document = json.loads(config.read_text())
    document["mcpServers"]["memory"] |= {"timeout": 9, "env": {"MINE": "1", "A": "old"}}
    config.write_text(json.dumps(document))
    install(part(config, env={"A": "b"}))
    assert backup_path(config).read_text() == '{"first": 1}'
    assert json.loads(config.read_text())["mcpServers"]["memory"] == {
        "command": "/opt/mcp-memory",
        "args": ["serve"],
        "env": {"MINE": "1", "A": "b"},
        "timeout": 9,
    }
    uninstall(part(config))
    assert config.read_text() == '{"first": 1}'


@pytest.mark.parametrize("rest", [{}, {"theme": "dark"}])
def test_an_entry_that_a_person_wrote_is_taken_over_and_goes_with_uninstalling(
    config: Path, rest: dict[str, str]
) -> None:
    config.write_text(json.dumps({"mcpServers": {"memory": {"command": "mcp-memory", "args": ["serve"]}}, **rest}))
    install(part(config))
    assert not backup_path(config).exists()  # the original is what is left without our part
    uninstall(part(config))
    assert (json.loads(config.read_text()) if config.exists() else {}) == rest


@pytest.mark.parametrize("name", ["gemini", "claude-code", "codex"])
def test_a_file_that_one_installation_made_and_another_changed_goes_again(config: Path, name: str) -> None:
    install(part(config, name))
    install(part(config, name, hooks=name != "codex", env={"A": "b"}))
    assert [path.name for path in config.parent.iterdir()] == [config.name]
    uninstall(part(config, name, hooks=True))
    assert list(config.parent.iterdir()) == []


def test_uninstalling_leaves_another_server_of_that_name(config: Path) -> None:
    text = '{"mcpServers": {"memory": {"command": "npx", "args": ["server-memory"]}}}'
    config.write_text(text)
    with pytest.raises(Refused, match=r"another server called 'memory': npx server-memory\. .*--name"):
        plan_install(part(config))
    assert not plan_removal(part(config)).changes
    assert config.read_text() == text
    assert find_installed(part(config)) == ({"command": "npx", "args": ["server-memory"]}, False)


NAMES = st.sampled_from(["mcpServers", "hooks", "memory", "a", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(VALUES, st.sampled_from([None, 2, "\t"]), st.booleans(), st.sampled_from(["cursor", "claude-code"]))
def test_any_document_is_refused_whole_or_comes_back_whole(
    config: Path, value: Any, indent: int | str | None, hooks: bool, name: str
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    config.write_text(text, encoding="utf-8")
    backup_path(config).unlink(missing_ok=True)
    one = part(config, name, hooks=hooks)
    try:
        install(one)
    except McpMemoryError:
        assert config.read_text(encoding="utf-8") == text
        return
    document = json.loads(config.read_text(encoding="utf-8"))
    beside = dict(one.client.hooks.beside) if one.client.hooks and hooks else dict[str, Any]()
    assert {key: member for key, member in document.items() if key not in ("mcpServers", "hooks")} == {
        key: member for key, member in {**beside, **value}.items() if key not in ("mcpServers", "hooks")
    }
    assert not plan_install(one).changes
    uninstall(one)
    assert config.read_text(encoding="utf-8") == text


# --- what cannot be -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("cursor", b'{"a": 1,\n "b" 2}', "not valid JSON: line 2, column 6: a colon is expected here"),
        ("claude-code", b'{"a": 1,}', "not valid JSON: line 1, column 8: a comma before }, and this client reads none"),
        ("claude-code", b"{} // x", "not valid JSON: line 1, column 4: a comment, and this client reads none here"),
        ("codex", b"a = \n", r"not valid TOML: Invalid value \(at line 1, column 5\)"),
        ("codex", b"mcp_servers = { x = { command = 'y' } }\n", "braces.* with Codex"),
        ("codex", b"mcp_servers = 3\n", "mcp_servers is a number where an object belongs"),
        ("hermes", b"a: [1\nb: 2\n", r"not valid YAML: line 2, column 2: .* from line 1, expected .* mend it"),
        ("hermes", b'b: 2\na: "unclosed\n', "not valid YAML: line 3, column 1: "),
        ("hermes", b"a: 1\nb: \x00\n", "not valid YAML: line 2: a character that YAML does not allow"),
        ("hermes", b"a: *gone\n", "not valid YAML: line 1, column 4: "),
        ("hermes", b"mcp_servers: nope\n", "mcp_servers is a text where an object belongs"),
        ("hermes", b"plugins: nope\n", "plugins is a text where an object belongs"),
        ("hermes", b"plugins:\n  enabled: 3\n", "plugins.enabled is a number where a list belongs"),
        ("hermes", b"plugins: {enabled: [a]}\n", "plugins is in a form that cannot be edited here"),
        ("openclaw", b'{"plugins": {"entries": []}}', "plugins.entries is a list where an object belongs"),
        ("cursor", b"[]", "does not hold an object"),
        ("cursor", b'{"mcpServers": []}', "mcpServers is a list where an object belongs"),
        ("cursor", '{"a": "é"}'.encode("utf-16"), "not UTF-8"),
        ("cursor", b"\x00\x01", "not valid JSON: line 1, column 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_and_stays(config: Path, name: str, data: bytes, said: str) -> None:
    config.write_bytes(data)
    with pytest.raises((InvalidInput, Refused), match=said) as caught:
        plan_install(part(config, name))
    assert str(config) in str(caught.value)
    assert config.read_bytes() == data
    assert [path.name for path in config.parent.iterdir()] == [config.name]


def test_a_file_that_is_read_only_stays(config: Path) -> None:
    config.write_text("{}")
    config.chmod(0o444)
    with pytest.raises(Refused, match=r"read-only.*install --print"):
        plan_install(part(config))
    assert config.read_text() == "{}"


def test_a_file_as_large_as_no_configuration_is_not_read(config: Path) -> None:
    config.touch()
    os.truncate(config, MAX_BYTES + 1)
    with pytest.raises(Refused, match=r"16,777,217 bytes.*install --print"):
        plan_install(part(config))


def test_what_is_no_file_is_told(config: Path) -> None:
    config.mkdir()
    with pytest.raises(Refused, match="is not a file"):
        plan_install(part(config))
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        plan_install(part(config / ("x" * 300)))


def test_a_folder_that_is_a_file_is_told_and_nothing_is_written(config: Path) -> None:
    config.write_text("mine")
    with pytest.raises(StoreUnavailable):
        install(part(config / "mcp.json"))
    assert config.read_text() == "mine"


# --- links --------------------------------------------------------------------------------------------


def test_a_link_stays_one_and_what_it_points_to_is_changed(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target, link = tmp_path / "dotfiles" / "mcp.json", tmp_path / "mcp.json"
    target.write_text("{}")
    link.symlink_to(target)
    install(part(link))
    assert link.is_symlink()
    assert "mcp-memory" in target.read_text()
    assert backup_path(target).read_text() == "{}"
    uninstall(part(link))
    assert (link.is_symlink(), target.read_text()) == (True, "{}")
    assert not backup_path(target).exists()


def test_a_link_to_nothing_gets_its_file_where_the_folder_is_and_is_told_where_not(tmp_path: Path) -> None:
    link = tmp_path / "mcp.json"
    link.symlink_to(tmp_path / "later.json")
    install(part(link))
    assert (tmp_path / "later.json").is_file()
    assert link.is_symlink()
    link.unlink()
    link.symlink_to(tmp_path / "gone" / "mcp.json")
    with pytest.raises(Refused, match=r"is a link to .*gone.*no such folder"):
        plan_install(part(link))
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(StoreUnavailable, match="leads to itself"):
        plan_install(part(link))


# --- while others write -------------------------------------------------------------------------------


def test_what_a_client_wrote_in_the_meantime_is_never_overwritten(config: Path) -> None:
    config.write_text("{}")
    change = plan_install(part(config))
    config.write_text('{"by": "the client"}')
    with pytest.raises(Refused, match="in the meantime"):
        apply_changes([change])
    assert config.read_text() == '{"by": "the client"}'
    new = plan_install(part(config.with_name("new.json")))
    config.with_name("new.json").write_text("[]")
    with pytest.raises(Refused, match="in the meantime"):
        apply_changes([new])
    assert sorted(path.name for path in config.parent.iterdir()) == ["mcp.json", "new.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits")
def test_where_there_is_room_for_the_backup_alone_none_is_left(config: Path) -> None:
    import resource

    config.write_text(json.dumps({"pad": "x" * 5_000}))
    change = plan_install(part(config))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (config.stat().st_size, hard))
    try:
        with pytest.raises(StoreUnavailable, match="cannot be written"):
            apply_changes([change])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(config.parent.iterdir()) == [config]


def test_of_two_files_both_are_written_or_none(tmp_path: Path) -> None:
    first, made, second = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"
    first.write_text('{ "mine": 1 }')
    second.write_text("{}")
    backup_path(made).write_text("of a file that its owner deleted")
    changes = [plan_install(part(path)) for path in (first, made, second)]
    second.write_text("{ }")
    with pytest.raises(Refused):
        apply_changes(changes)
    assert (first.read_text(), second.read_text()) == ('{ "mine": 1 }', "{ }")
    assert sorted(tmp_path.iterdir()) == [first, backup_path(made), second]


# --- the diff -----------------------------------------------------------------------------------------


def test_the_diff_shows_what_changes_and_no_secret(config: Path) -> None:
    config.write_text('{\n  "mcpServers": {\n    "a": {"env": {"API_KEY": "hunter2hunter2"}}\n  }\n}\n')
    shown = diff(plan_install(part(config, env={"OPENAI_API_KEY": "sk-" + "a1" * 15})))
    assert '+    "memory": {' in shown.splitlines()
    assert "hunter2" not in shown
    assert "a1a1" not in shown


def test_the_diff_of_a_document_on_one_line_shows_the_change_over_several(config: Path) -> None:
    config.write_text(json.dumps({"a": "x" * 5000, "mcpServers": {}, "z": {"API_KEY": "hunter2hunter2"}}))
    one = part(config, "claude-code", hooks=True)
    change = plan_install(one)
    assert change.after
    assert b"\n" not in change.after
    shown = diff(change).splitlines()
    assert shown[1] == f"+++ {config} (one line, formatted here)"
    assert '+    "memory": {' in shown
    assert sum('"command": "/opt/mcp-memory"' in line for line in shown) == 1 + len(one.hooks)
    assert "hunter2" not in diff(change)


def test_what_is_written_has_the_indentation_of_the_file_and_hooks_on_lines_of_their_own(config: Path) -> None:
    beep = '{"hooks": [{"type": "command", "command": "beep"}]}'
    original = f'{{\r\n\t"model": "opus",\r\n\t"hooks": {{"Stop": [{beep}]}}\r\n}}\r\n'
    config.write_bytes(original.encode())
    install(part(config, "claude-code", hooks=True))
    text = config.read_bytes().decode()
    assert f'\t"hooks": {{\r\n\t\t"Stop": [\r\n\t\t\t{beep},\r\n\t\t\t{{\r\n\t\t\t\t"hooks": [\r\n' in text
    assert text.count("\n") == text.count("\r\n")
    assert max(map(len, text.splitlines())) <= 80
    uninstall(part(config, "claude-code", hooks=True))
    assert config.read_bytes().decode() == original


def test_a_broken_configuration_of_a_client_with_a_plugin_is_told_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / ".hermes" / "config.yaml"
    config.parent.mkdir()
    config.write_text("plain words\n")
    part, *files = config_parts("hermes", ["mcp-memory"], name="memory", project=None, env={}, hooks=True)
    with pytest.raises(InvalidInput, match=r"config.yaml is not valid YAML: line 1"):
        plan_install(part)
    assert {file.path.name for file in files} == {"__init__.py", "plugin.yaml"}
