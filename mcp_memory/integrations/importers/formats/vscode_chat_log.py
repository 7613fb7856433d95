"""Chat sessions of VS Code since 2026, `…/chatSessions/<session>.jsonl`: changes to the sessions of `vscode_chat`.

    {kind: 0, v: state}     {kind: 1, k: path, v: value}     {kind: 3, k: path}     sets all, sets and deletes a value
    {kind: 2, k: path, i?: length, v?: [item, …]}           cuts a list to a length, then appends

Requests that a change removes, and no later change adds, were undone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.format import Format, first_line, has
from mcp_memory.integrations.importers.formats.vscode_chat import CHAT, with_messages
from mcp_memory.integrations.importers.records import find, items_of, list_of, object_of, objects_in
from mcp_memory.integrations.importers.session_files import chat_records, load_lines


def _session(path: Path, lines: list[Any]) -> dict[str, Any]:
    """Return the session after all changes, with the requests that were undone."""
    state: Any = {}
    gone: dict[str, Any] = {}
    for line in objects_in(lines):
        before = list(items_of(state, "requests")) if line.get("k") == ["requests"] else []
        state = line.get("v") if line.get("kind") == 0 else _changed(state, line)
        gone |= {str(find(request, "requestId")): request for request in before}
    kept = {str(find(request, "requestId")) for request in items_of(state, "requests")}
    undone = [{**request, "undone": True} for id, request in gone.items() if id not in kept and object_of(request)]
    return with_messages(path, {**(object_of(state) or {}), "requests": [*items_of(state, "requests"), *undone]})


def _changed(state: Any, line: dict[str, Any]) -> Any:
    """Return the state after a change of a part of it; changes of missing parts are ignored."""
    path = list_of(line.get("k")) or []
    try:
        inner = state
        for key in path[:-1]:
            inner = inner[key]
        match line.get("kind"):
            case 1:
                inner[path[-1]] = line.get("v")
            case 2:
                items = inner[path[-1]] = list_of(inner[path[-1]]) or []
                if isinstance(cut := line.get("i"), int):
                    del items[cut:]
                items += list_of(line.get("v")) or []
            case _:
                del inner[path[-1]]
    except (KeyError, IndexError, TypeError):
        pass
    return state


FORMAT = Format(
    title="a chat session of VS Code",
    location="`chatSessions` in the `User/workspaceStorage` of VS Code",
    unit="lines",
    matches=first_line(lambda line: find(line, "kind") == 0 and has(v__requests=list)(line)),
    load=load_lines(_session),
    records=chat_records(CHAT),
)
