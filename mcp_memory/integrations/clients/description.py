"""The descriptions of clients, a TOML file each in `descriptions/`: a client is added by its file and a fixture.

A description says where a client keeps its configuration, how our server and hooks are written there, which events it
has, what their payloads contain, and which answers it honours. Its first lines name the version and the source that it
was taken from.

Values of answers and entries are templates: a text that is only `{name}` becomes the value of that name, of any type;
other texts stay. Paths are templates too: `~` is the user's home folder, `${VARIABLE:-default}` the absolute folder
that a variable names, `{settings}` the system's folder for settings. A path whose variable is not set and has no
default does not exist.

Every hook loads its client's description, so this imports only the standard library.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Literal, cast

Kind = Literal["start", "prompt", "tool", "compacting", "compacted", "stop", "end"]
"""What happens at an event of a conversation: it starts, gets a prompt, and so on in the order of a session."""
Format = Literal["json", "json+comments", "jsonc", "json5", "toml", "yaml"]
"""The syntax of a configuration file."""
Template = Mapping[str, Any]
Patterns = Mapping[str, Sequence[str]]
"""Shell patterns by field of a payload; a payload matches if the value of any field matches one of its patterns."""

_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")
_FOLDER = Path(__file__).with_name("descriptions")
_SECONDS: Mapping[Kind, int] = {"start": 10, "prompt": 10, "tool": 15}
_DEFAULT_SECONDS = 5
"""Seconds that a client waits for a hook: more than the hook takes, even on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadFields:
    """The fields of an event's payload, by default those of Claude Code, which most clients have taken over."""

    session: str = "session_id"
    """The client's id of the conversation."""
    log: str = "transcript_path"
    """The path of the client's log of the conversation."""
    folder: str = "cwd"
    """The folder in which the client runs, or a list of folders."""
    source: str = "source"
    """How the conversation starts: `startup`, `resume`, `clear`, `compact`, `fork`."""
    prompt: str = "prompt"
    summary: str = "compact_summary"
    subagent: str = "agent_id"
    """Present if the event is of a sub-agent."""
    tool: str = "tool_name"
    arguments: str = "tool_input"
    call: str = "tool_use_id"
    response: str = "tool_response"
    conversation: str = "conversation"
    """The conversation, in the form of the client's store, which `importers.conversations` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHooks:
    """The hooks of a client."""

    files: Sequence[str] = ()
    """Where the client keeps hooks, as templates of paths."""
    project: str = ""
    """The file for the hooks in the folder of a project: private settings, because hooks start a program of this
    machine."""
    format: Format = "json"
    beside: Template = field(default_factory=dict[str, Any])
    """The members that a file with hooks must have beside them."""
    off: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The settings with which a user switches all hooks off: dotted members of the client's files, and their values."""
    off_in: Sequence[str] = ()
    """Other files that may have these settings: templates of paths or, if relative, files of a project."""
    events: Mapping[str, Kind]
    """The events at which the client runs our hooks, by its own names, in the order of a session."""
    entry: Template | None = None
    """What the configuration lists for an event: `{program}` and `{arguments}` or, for a shell, `{line}`; `{seconds}`
    or `{milliseconds}`. None if a plugin runs the hooks."""
    matcher: str = ""
    """The tools at which the hook for results runs, in the client's syntax. Other results are one line, or must stay
    unchanged."""
    max_seconds: Mapping[Kind, int] = field(default_factory=dict[Kind, int])
    """The most seconds that the client allows."""
    fields: PayloadFields = PayloadFields()
    hands_over: bool = False
    """Whether a plugin hands over the conversation, because no log can be followed."""
    keeps_context: bool = True
    """Whether an added text stays in the context. If not, what was added to a prompt is gone with the next one, and the
    plugin adds the text of the start to every request."""
    log_file: str = ""
    """The log of a conversation, for payloads that do not name it: the template of a path with `{session}`."""
    log_format: str = ""
    """The format of imports that reads the log; without it, the log is one that is followed line by line."""
    foreign: Patterns = field(default_factory=dict[str, Sequence[str]])
    """Payloads of other clients that run the hooks of this one too; their events are ignored."""
    own: Patterns = field(default_factory=dict[str, Sequence[str]])
    """The only payloads that are accepted, if another client runs the hooks of this one with the same fields."""
    context: Mapping[Kind, Template] = field(default_factory=dict[Kind, Template])
    """The answers that add `{text}` to the model's context, by kind of event; `{event}` is the client's name. A text
    for another event waits for the next of these."""
    context_if: Mapping[Kind, Patterns] = field(default_factory=dict[Kind, Patterns])
    """Payloads of the versions that add the text at an event; others drop it there."""
    replaced: Template | None = None
    """The answer that gives the model `{response}` in place of a tool's response."""
    json_response: bool = False
    """Whether a tool's response is JSON in a text."""
    outputs: Mapping[str, str | Sequence[str]] = field(default_factory=dict[str, str | Sequence[str]])
    """The texts of a response that may be replaced, by pattern of the tool's name, the first that matches: dotted paths
    of fields, or the name of a reader in `hooks.tool_outputs`."""
    shells: Sequence[str] = ()
    """The tools that run a `command`."""
    readers: Sequence[str] = ()
    """The tools that read a file; without them the model reads files by a shell."""
    cut_mark: str = ""
    """How a response begins that the client has cut, and that its log has in full."""

    def seconds(self, kind: Kind) -> int:
        """Return the seconds that the client is told to wait for the hook of this kind."""
        return min(_SECONDS.get(kind, _DEFAULT_SECONDS), self.max_seconds.get(kind, 600))

    def conversation(self, payload: Mapping[str, Any]) -> tuple[str, Path | None]:
        """Return the client's id of the conversation, empty if there is none, and its log, which may not exist yet."""
        id, log = payload.get(self.fields.session), payload.get(self.fields.log)
        if not isinstance(id, str) or not id.strip():
            return "", None
        if isinstance(log, str) and log:
            return id, Path(log)
        if self.log_file and os.path.basename(id) == id:  # noqa: PTH119 it is a name
            path = expand_path(self.log_file, os.environ, Path.home())
            return id, path and Path(str(path).replace("{session}", id))
        return id, None

    def folder(self, payload: Mapping[str, Any]) -> str:
        """Return the first folder in which the client runs, empty if unknown."""
        value = payload.get(self.fields.folder)
        folders = cast("list[object]", value) if isinstance(value, list) else [value]
        return next((folder for folder in folders if isinstance(folder, str)), "")

    def is_own(self, payload: Mapping[str, Any]) -> bool:
        """Return whether this client sent the payload, and not another that runs its hooks too."""
        return not matches(self.foreign, payload) and (not self.own or matches(self.own, payload))

    def adds_context(self, kind: Kind, payload: Mapping[str, Any]) -> bool:
        """Return whether the client adds a text to the model's context at this event."""
        patterns = self.context_if.get(kind)
        return kind in self.context and (patterns is None or matches(patterns, payload))

    def replaceable(self, tool: str) -> str | Sequence[str]:
        """Return what may be replaced in a response of the tool, as `outputs` says; empty if nothing."""
        return next((parts for pattern, parts in self.outputs.items() if fnmatchcase(tool, pattern)), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlugin:
    """The plugin by which a client runs our hooks. Its files are in `plugins/`, in a folder with the client's name."""

    folder: str
    """Where the client finds the files, as the template of a path."""
    enabled: Template = field(default_factory=dict[str, Any])
    """The settings that enable it, in the file of the servers; items are added to lists."""
    allowed: str = ""
    """The dotted path of a list of allowed plugins; if there is none, the client allows all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProgram:
    """A client as its file describes it."""

    name: str
    title: str
    program: str | None = None
    """Its command."""
    files: Sequence[str]
    """Where it keeps its servers, as templates of paths, the most likely first."""
    windows_files: Sequence[str] = ()
    """The same on Windows, if it differs."""
    project: str = ""
    """The file for the servers in the folder of a project."""
    format: Format
    key: str
    """The member of the file that contains the servers, as a dotted path."""
    entry: Template = field(default_factory=lambda: {"command": "{program}", "args": "{arguments}"})
    """What the configuration has for a server: `{program}` and `{arguments}`, or `{words}` for both."""
    variables: str = "env"
    """The member of an entry for environment variables."""
    after: str
    """The user's next step after an installation."""
    after_hooks: str = ""
    instructions: Sequence[str] = ()
    """The files that the client puts into its own context, as patterns of paths in a folder of a project."""
    imports: int = 0
    """How many levels of `@path` the client follows in these files; 0 if none."""
    notes: str = ""
    """The notes that the client writes about a project, as a pattern of paths beside the folder of its log; `{project}`
    is the path of the project with a `-` for each character that is neither a letter nor a digit."""
    hooks: ClientHooks | None = None
    plugin: ClientPlugin | None = None


@cache
def client_names() -> Sequence[str]:
    """Return the names of all clients that are described."""
    return sorted(file.stem for file in _FOLDER.glob("*.toml"))


@cache
def describe(name: str) -> ClientProgram | None:
    """Return the description of a client, None if there is none. Raises TypeError or ValueError if it is invalid."""
    if name not in client_names():
        return None
    table = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    if "plugin" in table:
        table["plugin"] = ClientPlugin(**table["plugin"])
    if "hooks" in table:
        fields = PayloadFields(**table["hooks"].pop("fields", {}))
        table["hooks"] = ClientHooks(**table["hooks"], fields=fields)
    return ClientProgram(name=name, **table)


def hooks_described(name: str) -> ClientHooks | None:
    """Return the description of a client's hooks; None for an unknown client, and for one without hooks."""
    client = describe(name)
    return client and client.hooks


def kind_of(client: str, event: str) -> Kind | None:
    """Return what happens at an event of a client; None for an unknown client or event."""
    hooks = hooks_described(client)
    return hooks and hooks.events.get(event)


def matches(patterns: Patterns, payload: Mapping[str, Any]) -> bool:
    """Return whether the value of any field matches one of its patterns."""
    return any(
        fnmatchcase(value, pattern)
        for name, choices in patterns.items()
        if isinstance(value := payload.get(name), str)
        for pattern in choices
    )


def expand_path(template: str, environ: Mapping[str, str], home: PurePath) -> PurePath | None:
    """Expand the template of a path on the system of `home`; None if its variable names no absolute folder."""
    if match := _VARIABLE.match(template):
        value: str | None = environ.get(match["name"], "").strip()
        if not type(home)(value).is_absolute():
            value = match["default"]
        if value is None:
            return None
        template = value + template[match.end() :]
    first, *rest = template.split("/")
    return home.joinpath(*rest) if first == "~" else type(home)(template)


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with the values in it. Raises KeyError for a name without a value."""
    match template:
        case str() if template[:1] == "{" and template[-1:] == "}":
            return values[template[1:-1]]
        case dict():
            return {key: fill(value, values) for key, value in cast("dict[str, Any]", template).items()}
        case list():
            return [fill(item, values) for item in cast("list[Any]", template)]
        case _:
            return template


def described_clients() -> Iterator[ClientProgram]:
    """Yield all descriptions, by name."""
    return filter(None, map(describe, client_names()))
