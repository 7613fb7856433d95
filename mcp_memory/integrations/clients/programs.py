"""Where each described client keeps its configuration on a machine, and our entry and hooks in it.

A machine is its system, its environment and the home folder of its user. A path may contain one `*`, for a folder whose
name a package manager generates; `existing_path` looks on disk which candidate exists.

`this_command` returns how a client can start this installation from anywhere: with absolute paths, without PATH. A name
of this program on the user's PATH is preferred to the file in its environment, because it outlives an upgrade. An
environment that a runner (uvx, pipx) made for one run is temporary; then the runner is the command.

Functions on documents are pure: they return new plain values. An entry is ours if its command starts this program's
server, whoever wrote it; the user's additions to our entry are kept.

Two ways into a client edit no file: install links (Cursor, VS Code) and the plugin of Claude Code. `app_link` is opened
by the client, so it may contain paths and keys of this machine. `web_link` and `badge` pass through a web site, which
sees their contents: they always name the published program, without variables.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode

from mcp_memory.core.distribution import DISTRIBUTION, RELEASED, REPOSITORY, SOURCE, uvx_arguments
from mcp_memory.core.errors import InvalidInput, Refused
from mcp_memory.integrations.clients.description import (
    ClientProgram,
    client_names,
    describe,
    described_clients,
    expand_path,
    fill,
)
from mcp_memory.integrations.clients.settings import (
    WrongShape,
    add_settings,
    kind_of,
    member,
    remove_settings,
    tree_at,
    value_at,
    with_value,
)

CLIENTS = client_names()
System = Literal["linux", "macos", "windows"]
_SYSTEMS: Mapping[str, System] = {"win32": "windows", "darwin": "macos"}
_SETTINGS: Mapping[System, str] = {
    "linux": "${XDG_CONFIG_HOME:-~/.config}",
    "macos": "~/Library/Application Support",
    "windows": "${APPDATA:-~/AppData/Roaming}",
}
"""The folder in which desktop programs of a system keep their settings."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The system, environment and (absolute) home folder that decide where files are."""

    system: System
    environ: Mapping[str, str]
    home: PurePath

    def path(self, *parts: str) -> PurePath:
        """Return a path of this system, which may differ from the system that this code runs on."""
        return (PureWindowsPath if self.system == "windows" else PurePosixPath)(*parts)

    def expand(self, template: str) -> PurePath | None:
        """Expand the template of a path (see `description`); None if its variable names no absolute folder."""
        if template.startswith("{settings}"):
            template = template.replace("{settings}", _SETTINGS[self.system], 1)
        return expand_path(template, self.environ, self.path(str(self.home)))


def this_machine() -> Machine:
    """Return the machine that this runs on. Raises Refused if the user has no home folder."""
    try:
        home = Path.home()
    except RuntimeError:
        raise Refused("This user has no home folder, where clients keep their configuration. Set HOME.") from None
    return Machine(_SYSTEMS.get(sys.platform, "linux"), dict(os.environ), home)


def clients_for(project: PurePath | None) -> list[str]:
    """Return the clients that can be configured for a project or, if `project` is None, for the user."""
    return [client.name for client in described_clients() if project is None or client.project]


def server_files(client: str, machine: Machine, project: PurePath | None = None) -> list[PurePath]:
    """Return where the client may keep its servers, the most likely file first; with a project, the file in its folder.

    Raises InvalidInput if the client is unknown or has no projects.
    """
    details = client_named(client)
    if project is not None:
        if not details.project:
            raise InvalidInput(f"{details.title} has no settings for a project: leave out --project and --per-project.")
        return [project / details.project]
    on_windows = machine.system == "windows" and details.windows_files
    return _expand_all(details.windows_files if on_windows else details.files, machine)


def hooks_files(client: str, machine: Machine, project: PurePath | None = None) -> list[PurePath]:
    """Return where the client keeps its hooks; empty for a client without hooks.

    Hooks of a project go to the user's private settings there, because they start a program of this machine.
    """
    hooks = client_named(client).hooks
    if hooks is None:
        return []
    if project is not None:
        return [project / hooks.project] if hooks.project else []
    return _expand_all(hooks.files, machine)


def plugin_folder(client: ClientProgram, machine: Machine) -> Path | None:
    """Return the folder for the plugin by which a client runs our hooks; None for a client without one."""
    folder = client.plugin and machine.expand(client.plugin.folder)
    return None if folder is None else Path(folder)


def plugin_contents(client: ClientProgram, command: Sequence[str]) -> dict[str, bytes]:
    """Return the files of a client's plugin by name; they start the hooks with `command`."""
    folder = Path(__file__).with_name("plugins") / client.name
    files = sorted(file for file in folder.iterdir() if file.is_file())
    return {file.name: file.read_bytes().replace(_COMMAND, json.dumps(list(command)).encode()) for file in files}


_COMMAND = b'["mcp-memory"]'
"""The command in the files of a plugin, as JavaScript and Python write it."""


def plugin_settings(client: ClientProgram, document: Document) -> dict[str, Any]:
    """Return the settings that enable a client's plugin in its configuration, for a client with one."""
    plugin = client.plugin
    if plugin is None:
        return {}
    allows_some = plugin.allowed and isinstance(value_at(document, plugin.allowed), list)
    return add_settings(plugin.enabled, tree_at(plugin.allowed, [NAME]) if allows_some else {})


def settings_files(client: ClientProgram, machine: Machine, project: PurePath | None = None) -> list[PurePath]:
    """Return all files in which the client's settings may be, those of a project too."""
    files = [*server_files(client.name, machine), *hooks_files(client.name, machine)]
    if client.hooks:
        files += _expand_all([file for file in client.hooks.off_in if file.startswith(_USERS)], machine)
        own = [client.project, client.hooks.project, *client.hooks.off_in]
        files += [project / file for file in own if project and file and not file.startswith(_USERS)]
    return list(dict.fromkeys(files))


_USERS = ("~", "$", "{")
"""How templates of paths begin that do not name a file of a project."""


def _expand_all(templates: Iterable[str], machine: Machine) -> list[PurePath]:
    return [path for template in templates if (path := machine.expand(template)) is not None]


def plugin_files(machine: Machine, project: PurePath | None = None) -> list[PurePath]:
    """Return the settings files of Claude Code that enable plugins, in ascending precedence."""
    everywhere = hooks_files("claude-code", machine)
    if project is None:
        return everywhere
    return [*everywhere, project / ".claude" / "settings.json", *hooks_files("claude-code", machine, project)]


def existing_path(candidates: Sequence[PurePath]) -> Path:
    """Return the first candidate whose folder exists, otherwise the first without `*`."""
    for candidate in candidates:
        folder = candidate.parent
        if "*" not in str(folder):
            if Path(folder).is_dir():
                return Path(candidate)
            continue
        star = folder.parts.index(next(part for part in folder.parts if "*" in part))
        for match in sorted(Path(*folder.parts[:star]).glob(str(PurePath(*folder.parts[star:])))):
            if match.is_dir():
                return match / candidate.name
    return Path(next(candidate for candidate in candidates if "*" not in str(candidate)))


NAME = "mcp-memory"
_TEMPORARY = (
    ("uvx", "/archive-v"),
    ("uvx", "/.cache/uv/"),
    ("uvx", "/uv/cache/"),
    ("pipx", "/pipx/.cache/"),
    ("pipx", "/.cache/pipx/"),
)
"""Pairs of a runner and a part of the path of an environment that it made for one run."""


def _runner_arguments(runner: str) -> tuple[str, ...]:
    if runner == "uvx":
        return uvx_arguments()
    return ("run", DISTRIBUTION) if RELEASED else ("run", "--spec", SOURCE, NAME)


def this_command() -> list[str]:
    """Return the command that starts this installation."""
    return command_for(Path(sys.executable), Path(sys.prefix), shutil.which)


def command_for(python: Path, environment: Path, which: Callable[[str], str | None]) -> list[str]:
    """Return the program and its first arguments: the installed script, a runner, or `python -m mcp_memory`."""
    for runner, mark in _TEMPORARY:
        if mark in f"{environment.as_posix()}/" and (path := which(runner)):
            return [os.path.abspath(path), *_runner_arguments(runner)]  # noqa: PTH100 links stay
    script = python.with_name(f"{NAME}.exe" if os.name == "nt" else NAME)
    if not script.is_file():
        return [str(python), "-m", "mcp_memory"]
    named = which(NAME)
    if named and Path(named).resolve() == script.resolve():
        return [os.path.abspath(named)]  # noqa: PTH100
    return [str(script)]


Document = Mapping[str, Any]
_PLUGIN = re.compile(r"mcp-memory@.+").fullmatch


def client_named(name: str) -> ClientProgram:
    """Return the client of that name. Raises InvalidInput if there is none."""
    if client := describe(name):
        return client
    typed = name.lower()
    near = [known for known in CLIENTS if typed and known.startswith(typed)] or get_close_matches(typed, CLIENTS, n=1)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    names = ", ".join(CLIENTS)
    raise InvalidInput(
        f"There is no client {name!r}.{meant} Known: {names}; for any other, see `mcp-memory install --print`."
    )


def server_entry(client: ClientProgram | None, command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry with which a client (None: most clients) starts `command`."""
    template = client.entry if client else {"command": "{program}", "args": "{arguments}"}
    entry = fill(template, {"program": command[0], "arguments": list(command[1:]), "words": list(command)})
    return {**entry, **({client.variables if client else "env": dict(env)} if env else {})}


# --- the server -------------------------------------------------------------------------------------
def find_server(document: Document, client: ClientProgram, name: str) -> dict[str, Any] | None:
    """Return the entry of that name, if any. Raises WrongShape for a document that the client would not accept."""
    servers: Document = document
    for key in client.key.split("."):
        servers = member(servers, key)
    if name not in servers:
        return None
    return member(servers, name, f"{client.key}.{name}")


def add_server(document: Document, client: ClientProgram, name: str, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with our entry; other members of an existing entry of ours are kept.

    Raises Refused if the name belongs to another server, WrongShape for a document that the client would not accept.
    """
    old = find_server(document, client, name) or {}
    if old and not is_ours(old):
        command = " ".join(command_words(old)).strip()
        what = (command or str(old.get("url", "another server")))[:200]
        raise Refused(
            f"{client.title} already has another server called {name!r}: {what}. Remove it, or use --name for ours."
        )
    env = {**member(old, client.variables), **new.get(client.variables, {})}
    merged = {**old, **new, **({client.variables: env} if env else {})}
    return with_value(document, f"{client.key}.{name}", merged)


def remove_server(document: Document, client: ClientProgram, name: str, *, before: Document) -> dict[str, Any]:
    """Return the document without that entry, and without objects that become empty and were not there `before`."""
    return remove_settings(document, tree_at(f"{client.key}.{name}", None), before)


def is_ours(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry starts the server of this program, by any of its names."""
    program, *words = command_words(entry)
    return _starts_this_program(program, words) and "serve" in words and "wrap" not in words


def command_words(entry: Mapping[str, Any]) -> list[str]:
    """Return the program and the arguments of an entry; some clients list both under `command`."""
    command = entry.get("command", "")
    words: list[Any] = cast("list[Any]", command) if isinstance(command, list) and command else [command]
    return [*map(str, words), *_arguments(entry)]


def _starts_this_program(program: str, words: Sequence[str]) -> bool:
    stems = [re.split(r"[/\\]", word)[-1].lower().removesuffix(".exe") for word in (program, *words)]
    if stems[0] in ("npx", "bunx", "node", "docker"):  # other registries have programs of this name
        return False
    return any(re.fullmatch(r"(?:mcp[-_]memory|memory[-_]pyramid)(?:(?:@|==)[\w.]+)?", stem) for stem in stems)


def _arguments(entry: Mapping[str, Any]) -> list[str]:
    words = entry.get("args")
    return [str(word) for word in cast("list[Any]", words)] if isinstance(words, list) else []


# --- the hooks --------------------------------------------------------------------------------------
def find_hooks(document: Document) -> dict[str, list[Any]]:
    """Return our groups of hooks by event, without events that have none. Raises WrongShape as `find_server` does."""
    ours = {event: [group for group in groups if _is_our_group(group)] for event, groups in _events(document)}
    return {event: groups for event, groups in ours.items() if groups}


def set_hooks(document: Document, hooks: Mapping[str, Sequence[Any]], beside: Document | None = None) -> dict[str, Any]:
    """Return the document with `hooks` in place of our present hooks; all other hooks stay in place.

    It gets the members `beside` unless it has others of that name. Without `hooks`, it stays as it is. Raises Refused
    if our plugin is enabled in Claude Code: it brings the same hooks, and each would run twice.
    """
    if not hooks or find_hooks(document) == hooks:
        return dict(document)
    plugin = next((name for name, on in find_plugins(document).items() if on), None)
    if plugin:
        raise Refused(
            f"The plugin {plugin} is installed, and brings the server and its hooks. Keep it, or remove it first: "
            f"claude plugin uninstall {plugin}"
        )
    events: dict[str, Any] = copy.deepcopy(member(document, "hooks"))
    for event, groups in _events(document):
        new = list(hooks.get(event, ()))
        at = next((at for at, group in enumerate(groups) if _is_our_group(group)), len(groups))
        others = [group for group in groups if not _is_our_group(group)]
        events[event] = [*others[:at], *new, *others[at:]]
        if not events[event]:
            del events[event]
    events |= {event: list(groups) for event, groups in hooks.items() if event not in events}
    return {**(beside or {}), **document, "hooks": events}


def find_plugins(document: Document) -> dict[str, bool]:
    """Return our plugins in settings of Claude Code, and whether each is enabled."""
    return {name: bool(on) for name, on in member(document, "enabledPlugins").items() if _PLUGIN(name)}


def remove_hooks(document: Document, *, empty: Document, beside: Document | None = None) -> dict[str, Any]:
    """Return the document without our hooks. Lists that become empty are removed, unless they are in `empty`.

    `empty` is the document before the installation. If no hooks are left, the members `beside` go as well.
    """
    ours = find_hooks(document)
    if not ours:
        return dict(document)
    events = dict(member(document, "hooks"))
    before = member(empty, "hooks")
    for event in ours:
        events[event] = [group for group in events[event] if not _is_our_group(group)]
        if not events[event] and event not in before:
            del events[event]
    if events or "hooks" in empty:
        return {**document, "hooks": events}
    added = {"hooks", *(beside or {}).keys() - empty.keys()}
    return {key: value for key, value in document.items() if key not in added}


def _events(document: Document) -> list[tuple[str, list[Any]]]:
    events = member(document, "hooks")
    for event, groups in events.items():
        if not isinstance(groups, list):
            raise WrongShape(f"hooks.{event} is {kind_of(groups)} where a list belongs")
    return list(events.items())


def _is_our_group(group: object) -> bool:
    """Return whether every hook of a group starts this program; a group to which a person added hooks is not ours.

    Some clients list single hooks instead of groups.
    """
    if not isinstance(group, dict) or "hooks" not in group:
        return _is_our_hook(cast("object", group))
    hooks = cast("dict[str, object]", group)["hooks"]
    return isinstance(hooks, list) and bool(hooks) and all(map(_is_our_hook, cast("list[object]", hooks)))  # pyright: ignore[reportUnknownArgumentType]


def _is_our_hook(hook: object) -> bool:
    if not isinstance(hook, dict):
        return False
    fields = cast("dict[str, Any]", hook)
    line, words = str(fields.get("command", "")), _arguments(fields)
    if words:
        return _starts_this_program(line, words) and "hook" in words
    parts = [part.strip("\"'") for part in line.split()]
    return bool(parts) and _starts_this_program(parts[0], parts[1:]) and "hook" in parts


PLUGIN = f"{NAME}@{NAME}"
PLUGIN_COMMANDS = (
    f"claude plugin marketplace add {REPOSITORY.removeprefix('https://github.com/')}",
    f"claude plugin install {PLUGIN}",
)
COMMAND = ("uvx", *uvx_arguments(), "serve")
"""The command that starts the published program with uv: from the repository until the package is released."""
_CURSOR_APP = "cursor://anysphere.cursor-deeplink/mcp/install?"
_CURSOR_WEB = "https://cursor.com/install-mcp?"
_VSCODE_APP = "vscode:mcp/install?"
_VSCODE_WEB = (
    "https://insiders.vscode.dev/redirect?url="  # /redirect/mcp/install answers with 400: microsoft/work-iq#150
)
_PICTURES = {
    "cursor": "https://cursor.com/deeplink/mcp-install-dark.svg",
    "vscode": "https://img.shields.io/badge/VS_Code-Install_Server-0098FF?style=flat-square",
}


def app_link(client: ClientProgram, name: str, entry: Mapping[str, Any]) -> str:
    """Return the link by which a client offers to install an entry.

    Raises InvalidInput for a client without such links.
    """
    match client.name:
        case "cursor":
            config = base64.b64encode(_json(entry).encode()).decode()
            return _CURSOR_APP + urlencode({"name": name, "config": config})
        case "vscode":
            return _VSCODE_APP + quote(_json({"name": name, **entry}), safe="")
        case _:
            raise InvalidInput(
                f"{client.title} opens no install links; Cursor and VS Code do. Use: mcp-memory install {client.name}"
            )


def web_link(client: ClientProgram, name: str) -> str:
    """Return an install link for the published program that web pages may contain. Raises as `app_link` does."""
    link = app_link(client, name, server_entry(client, COMMAND, {}))
    return link.replace(_CURSOR_APP, _CURSOR_WEB) if client.name == "cursor" else _VSCODE_WEB + quote(link, safe="")


def badge(client_name: str, name: str = "memory") -> str:
    """Return a button in Markdown that installs the published program. Raises as `app_link` does."""
    client = client_named(client_name)
    link = web_link(client, name)
    return f"[![Install in {client.title}]({_PICTURES[client.name]})]({link})"


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
