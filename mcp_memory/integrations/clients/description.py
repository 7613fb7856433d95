"""The descriptions of clients, a TOML file each in `descriptions/`: a client is added by its file and a fixture.

A description says where a client keeps its configuration, how our server and hooks are written there, which events it
has, what their payloads contain, and which answers it honours. Its first lines name the version and the source that it
was taken from.

Values of answers and entries are templates: a text that is only `{name}` becomes the value of that name, of any type;
other texts stay. Paths are templates too: `~` is the user's home folder, `${VARIABLE:-default}` the absolute folder
that a variable names, `{settings}` the system's folder for settings (`programs.Machine` expands them). A path whose
variable is not set and has no default does not exist.

Every hook loads its client's description, so this imports only the standard library.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

Kind = Literal["start", "prompt", "tool", "compacting", "compacted", "stop", "end"]
"""What happens at an event of a conversation: it starts, gets a prompt, and so on in the order of a session."""
Format = Literal["json", "json+comments", "jsonc", "toml"]
"""The syntax of a configuration file."""
Template = Mapping[str, Any]

_FOLDER = Path(__file__).with_name("descriptions")
_SECONDS: Mapping[Kind, int] = {"start": 10, "tool": 10}
_DEFAULT_SECONDS = 5
"""Seconds that a client waits for a hook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadFields:
    """The fields of an event's payload, by default those of Claude Code, which most clients have taken over."""

    session: str = "session_id"
    """The client's id of the conversation."""
    log: str = "transcript_path"
    """The path of the client's log of the conversation."""
    folder: str = "cwd"
    """The folder in which the client runs."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHooks:
    """The hooks of a client."""

    files: Sequence[str]
    """Where the client keeps hooks, as templates of paths."""
    project: str = ""
    """The file for the hooks in the folder of a project: private settings, because hooks start a program of this
    machine."""
    events: Mapping[str, Kind]
    """The events at which the client runs our hooks, by its own names, in the order of a session."""
    entry: Template
    """What the configuration lists for an event: `{program}` and `{arguments}` or, for a shell, `{line}`; `{seconds}`
    or `{milliseconds}`."""
    matcher: str = ""
    """The tools at which the hook for results runs, in the client's syntax. Other results are one line, or must stay
    unchanged."""
    max_seconds: Mapping[Kind, int] = field(default_factory=dict[Kind, int])
    """The most seconds that the client allows."""
    fields: PayloadFields = PayloadFields()
    context: Mapping[Kind, Template] = field(default_factory=dict[Kind, Template])
    """The answers that add `{text}` to the model's context, by kind of event; `{event}` is the client's name."""
    replaced: Template | None = None
    """The answer that gives the model `{response}` in place of a tool's response."""
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
        return (
            id if isinstance(id, str) and id.strip() else "",
            Path(log) if isinstance(log, str) and log else None,
        )

    def replaceable(self, tool: str) -> str | Sequence[str]:
        """Return what may be replaced in a response of the tool, as `outputs` says; empty if nothing."""
        return next((parts for pattern, parts in self.outputs.items() if fnmatchcase(tool, pattern)), ())


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
    """The member of the file that contains the servers."""
    entry: Template = field(default_factory=lambda: {"command": "{program}", "args": "{arguments}"})
    """What the configuration has for a server."""
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
    hooks: dict[str, Any] | None = table.pop("hooks", None)
    if hooks is None:
        return ClientProgram(name=name, **table)
    fields = PayloadFields(**hooks.pop("fields", {}))
    return ClientProgram(name=name, **table, hooks=ClientHooks(**hooks, fields=fields))


def hooks_described(name: str) -> ClientHooks | None:
    """Return the description of a client's hooks; None for an unknown client, and for one without hooks."""
    client = describe(name)
    return client and client.hooks


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
