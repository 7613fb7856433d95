"""The server's entry and our hooks in a client's configuration.

Pure functions from document to document, both plain values; the given one is never changed. An entry is ours if its
command starts this program's server, whoever wrote it. Additions of the user to our entry stay in it.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from mcp_memory.core.errors import InvalidInput, Refused
from mcp_memory.integrations.clients.config_text import Dialect
from mcp_memory.integrations.clients.locations import ClientName

Document = Mapping[str, Any]
Format = Dialect | Literal["toml"]
"""How a file is written."""
_PLUGIN = re.compile(r"mcp-memory@.+").fullmatch


class WrongShape(ValueError):
    """A member of a configuration is not what the client knows by that name; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProgram:
    """A client: its title, its command, and how it writes its servers.

    `key` is the member that holds the servers, `typed` whether each names its transport. `after`: the user's next step;
    `after_hooks`: the next step if hooks were installed too.
    """

    name: ClientName
    title: str
    program: str | None = None
    format: Format
    key: str
    typed: bool = False
    after: str
    after_hooks: str = ""


def client_named(name: str) -> ClientProgram:
    """Return the client of that name. Raises InvalidInput for any other."""
    known = tomllib.loads(Path(__file__).with_name("clients.toml").read_text(encoding="utf-8"))
    if name in known:
        return ClientProgram(name=cast("ClientName", name), **known[name])
    names = ", ".join(known)
    raise InvalidInput(f"There is no client {name!r}. Known: {names}; for any other, see `mcp-memory install --print`.")


def server_entry(of: ClientProgram | None, command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry that has a client start `command`; None is a client like most."""
    return {
        **({"type": "stdio"} if of and of.typed else {}),
        "command": command[0],
        "args": list(command[1:]),
        **({"env": dict(env)} if env else {}),
    }


# --- the server -------------------------------------------------------------------------------------


def server_in(document: Document, of: ClientProgram, name: str) -> dict[str, Any] | None:
    """Return the entry of that name, if there is one. Raises WrongShape where the document has another shape."""
    servers = _member(document, of.key)
    if name not in servers:
        return None
    return _member(servers, name, f"{of.key}.{name}")


def with_server(document: Document, of: ClientProgram, name: str, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with our entry; other members of an entry of ours stay.

    Raises Refused if the name belongs to another server.
    """
    old = server_in(document, of, name) or {}
    if old and not is_ours(old):
        what = " ".join([str(old.get("command", "")), *_words(old)]).strip() or str(old.get("url", "another server"))
        raise Refused(
            f"{of.title} has another server called {name!r} already: {what[:200]}. Remove it, or say --name for ours."
        )
    env = {**_member(old, "env", "env"), **new.get("env", {})}
    merged = {**old, **new, **({"env": env} if env else {})}
    return {**document, of.key: {**_member(document, of.key), name: merged}}


def without_server(document: Document, of: ClientProgram, name: str, *, emptied: bool) -> dict[str, Any]:
    """Return the document without that entry; without the member that held it too, if `emptied` and nothing is left."""
    servers = {key: value for key, value in _member(document, of.key).items() if key != name}
    if servers or not emptied:
        return {**document, of.key: servers}
    return {key: value for key, value in document.items() if key != of.key}


def is_ours(one: Mapping[str, Any]) -> bool:
    """Tell whether an entry starts the server of this program, in whatever way."""
    words = _words(one)
    return _starts_us(str(one.get("command", "")), words) and "serve" in words and "wrap" not in words


def _starts_us(program: str, words: Sequence[str]) -> bool:
    stems = [re.split(r"[/\\]", word)[-1].lower().removesuffix(".exe") for word in (program, *words)]
    if stems[0] in ("npx", "bunx", "node", "docker"):  # other registries have programs of this name
        return False
    return any(re.fullmatch(r"mcp[-_]memory(?:(?:@|==)[\w.]+)?", stem) for stem in stems)


def _words(one: Mapping[str, Any]) -> list[str]:
    words = one.get("args")
    return [str(word) for word in cast("list[Any]", words)] if isinstance(words, list) else []


# --- the hooks --------------------------------------------------------------------------------------


def hooks_in(document: Document) -> dict[str, list[Any]]:
    """Return our groups of hooks by event."""
    found = {event: [group for group in groups if _is_our_group(group)] for event, groups in _events(document)}
    return {event: groups for event, groups in found.items() if groups}


def with_hooks(document: Document, hooks: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the document with these hooks of ours and no other of ours; those of others stay where they are.

    Raises Refused where our plugin is at work in Claude Code, which has them too: each would run twice.
    """
    if not hooks or hooks_in(document) == hooks:
        return dict(document)
    plugin = next((name for name, on in _member(document, "enabledPlugins").items() if on and _PLUGIN(name)), None)
    if plugin:
        raise Refused(
            f"The plugin {plugin} is installed, and brings the server and its hooks. Keep it, or remove it first: "
            f"claude plugin uninstall {plugin}"
        )
    events: dict[str, Any] = copy.deepcopy(_member(document, "hooks"))
    for event, groups in _events(document):
        new = list(hooks.get(event, ()))
        at = next((at for at, group in enumerate(groups) if _is_our_group(group)), len(groups))
        others = [group for group in groups if not _is_our_group(group)]
        events[event] = [*others[:at], *new, *others[at:]]
        if not events[event]:
            del events[event]
    events |= {event: list(groups) for event, groups in hooks.items() if event not in events}
    return {**document, "hooks": events}


def without_hooks(document: Document, *, empty: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without our hooks. `empty`: the document before us, whose empty lists are kept."""
    ours = hooks_in(document)
    if not ours:
        return dict(document)
    events = dict(_member(document, "hooks"))
    before = _member(empty, "hooks")
    for event in ours:
        events[event] = [group for group in events[event] if not _is_our_group(group)]
        if not events[event] and event not in before:
            del events[event]
    if events or "hooks" in empty:
        return {**document, "hooks": events}
    return {key: value for key, value in document.items() if key != "hooks"}


def _events(document: Document) -> list[tuple[str, list[Any]]]:
    events = _member(document, "hooks")
    for event, groups in events.items():
        if not isinstance(groups, list):
            raise WrongShape(f"hooks.{event} is {_kind(groups)} where a list belongs")
    return list(events.items())


def _is_our_group(group: object) -> bool:
    """Tell whether every hook of a group starts this program; a group that a person put more into is theirs."""
    hooks = cast("dict[str, object]", group).get("hooks") if isinstance(group, dict) else None
    return isinstance(hooks, list) and bool(hooks) and all(map(_is_our_hook, cast("list[object]", hooks)))  # pyright: ignore[reportUnknownArgumentType]


def _is_our_hook(hook: object) -> bool:
    if not isinstance(hook, dict):
        return False
    told = cast("dict[str, Any]", hook)
    line, words = str(told.get("command", "")), _words(told)
    if words:
        return _starts_us(line, words) and "hook" in words
    parts = [part.strip("\"'") for part in line.split()]
    return bool(parts) and _starts_us(parts[0], parts[1:]) and "hook" in parts


# --- shapes -----------------------------------------------------------------------------------------


def _member(document: Mapping[str, Any], key: str, called: str | None = None) -> dict[str, Any]:
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WrongShape(f"{called or key} is {_kind(value)} where an object belongs")
    return cast("dict[str, Any]", value)


def _kind(value: object) -> str:
    match value:
        case list():
            return "a list"
        case dict():
            return "an object"
        case str():
            return "a text"
        case None:
            return "null"
        case bool():
            return "true or false"
        case _:
            return "a number"
