"""What stands in a configuration: ours is known from others', and what people added stays."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_memory.core.errors import Refused
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.clients.programs import (
    WrongShape,
    add_server,
    client_named,
    find_hooks,
    is_ours,
    remove_hooks,
    server_entry,
    set_hooks,
)

COMMAND = ["/opt/mcp-memory", "serve"]
HOOKS = hooks_of("claude-code", ["/opt/mcp-memory"])
FOREIGN = {"hooks": [{"type": "command", "command": "notify-send done"}]}


@pytest.mark.parametrize(
    ("one", "ours"),
    [
        ({"command": "mcp-memory", "args": ["serve"]}, True),
        ({"command": r"C:\Scripts\mcp-memory.EXE", "args": ["--space", "x", "serve"]}, True),
        ({"command": "/usr/bin/uvx", "args": ["mcp-memory@0.1.0", "serve"]}, True),
        ({"command": "uvx", "args": ["memory-pyramid", "serve"]}, True),
        ({"command": "uvx", "args": ["--from", "memory-pyramid==1.0", "mcp-memory", "serve"]}, True),
        ({"command": "python3", "args": ["-m", "mcp_memory", "serve"]}, True),
        ({"command": "mcp-memory", "args": ["wrap", "--", "npx", "serve"]}, False),
        ({"command": "npx", "args": ["-y", "mcp-memory", "serve"]}, False),
        ({"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}, False),
        ({"type": "http", "url": "http://127.0.0.1:1/mcp"}, False),
        ({"command": 3, "args": "serve"}, False),
    ],
)
def test_an_entry_is_ours_when_it_starts_our_server(one: dict[str, Any], ours: bool) -> None:
    assert is_ours(one) is ours


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"mcpServers": []}, "mcpServers is a list where an object belongs"),
        ({"mcpServers": "x"}, "mcpServers is a text where an object belongs"),
        ({"mcpServers": {"memory": 3}}, "mcpServers.memory is a number where an object belongs"),
        ({"mcpServers": {"memory": {"command": "mcp-memory", "args": ["serve"], "env": [1]}}}, "env is a list where"),
    ],
)
def test_another_shape_is_told(document: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongShape, match=said):
        add_server(document, client_named("cursor"), "memory", server_entry(None, COMMAND, {}))
    with pytest.raises(WrongShape, match=r"hooks.Stop is an object where a list belongs"):
        set_hooks({"hooks": {"Stop": {}}}, HOOKS)


def test_a_member_that_is_null_is_an_empty_one() -> None:
    assert add_server({"mcpServers": None}, client_named("cursor"), "m", {"command": "c"}) == {
        "mcpServers": {"m": {"command": "c"}}
    }


def test_hooks_of_others_stay_in_place_and_ours_are_there_once() -> None:
    document: dict[str, Any] = {"hooks": {"Stop": [FOREIGN], "Notification": [FOREIGN]}, "model": "x"}
    once = set_hooks(document, HOOKS)
    assert once["hooks"]["Stop"] == [FOREIGN, *HOOKS["Stop"]]
    assert once["hooks"]["Notification"] == [FOREIGN]
    assert set_hooks(once, HOOKS) == once
    assert find_hooks(once) == HOOKS
    assert remove_hooks(once, empty=document) == document
    assert document["hooks"]["Stop"] == [FOREIGN]


def test_hooks_of_an_earlier_installation_are_replaced_where_they_stand() -> None:
    old = hooks_of("claude-code", ["/old/bin/mcp-memory", "--space", "work"])
    document = {"hooks": {**old, "Stop": [*old["Stop"], FOREIGN], "Gone": old["Stop"]}}
    new = set_hooks(document, HOOKS)
    assert new["hooks"]["Stop"] == [*HOOKS["Stop"], FOREIGN]
    assert "Gone" not in new["hooks"]
    assert find_hooks(new) == HOOKS


def test_hooks_written_as_one_line_are_known_and_those_of_other_programs_are_not() -> None:
    line = {"hooks": [{"type": "command", "command": '"/opt/mcp-memory" --space x hook Stop'}]}
    other = {"hooks": [{"type": "command", "command": "echo mcp-memory is great"}]}
    assert find_hooks({"hooks": {"Stop": [line, other, "nonsense", {"hooks": [3]}, {"hooks": []}]}}) == {"Stop": [line]}


def test_beside_the_plugin_which_has_the_hooks_too_they_are_refused() -> None:
    with pytest.raises(Refused, match="claude plugin uninstall mcp-memory@mcp-memory"):
        set_hooks({"enabledPlugins": {"mcp-memory@mcp-memory": True}}, HOOKS)
    assert find_hooks(set_hooks({"enabledPlugins": {"mcp-memory@mcp-memory": False, "x@y": True}}, HOOKS)) == HOOKS
