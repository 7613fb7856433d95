"""The verbs of `Memory` that programs on other machines may call on a server, and the right that each needs.

Each function declares a verb: it has no body, and the parameters, types and answer of the verb of the same name. A
server accepts no other parameter. Verbs on files of the server are not here. Those on all spaces are for operators.

A token with the right `write` may record turns of the user, as it may by the tool `record_turns`: so it gains nothing
from `remember` with `typed`. What is imported is stored as imported, whatever the sender says.
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

from pydantic import BeforeValidator, PlainSerializer

from mcp_memory.core.errors import InvalidInput, Refused
from mcp_memory.core.rights import Right
from mcp_memory.core.types import (
    Bundle,
    CanvasRow,
    CanvasView,
    Conversations,
    Expansion,
    Forgotten,
    FoundLayer,
    FoundPage,
    Kind,
    MemoryMap,
    MemoryResults,
    NewTurn,
    Offloaded,
    Persona,
    Record,
    Recorded,
    Ref,
    Remembered,
    Reviewed,
    Role,
    Scene,
    SessionInfo,
    Source,
    StatementKind,
    Turn,
    TurnResults,
    Why,
)
from mcp_memory.service.verbs.administration import ImportedStatementsReport, StatementToImport
from mcp_memory.service.verbs.spaces import DeletedSpace
from mcp_memory.store.forgetting import Keeping, Policy
from mcp_memory.store.sql.quota_rows import Quota, QuotaKind
from mcp_memory.store.sql.space_rows import SpaceSummary
from mcp_memory.store.values import ClientTurn, Token

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

_BASE64 = "base64"


def encode_result(value: str | bytes) -> Any:
    """Return a tool result as a JSON value."""
    return value if isinstance(value, str) else {_BASE64: base64.b64encode(value).decode()}


def _decode_result(value: object) -> object:
    match value:
        case {"base64": str() as text}:
            return base64.b64decode(text)
        case _:
            return value


Result = Annotated[str | bytes, BeforeValidator(_decode_result)]
Content = Annotated[bytes, PlainSerializer(encode_result), BeforeValidator(_decode_result)]


# --- recall and search ------------------------------------------------------------------------------


def recall_stable(*, session: str | None = None, project: str | None = None, budget_tokens: int = 700) -> Bundle: ...


def recall_beyond(
    query: str,
    *,
    known: str,
    session: str,
    project: str | None = None,
    budget_tokens: int = 600,
    is_rehearsal: bool = False,
) -> Bundle: ...


def recall_answer(query: str = "", *, session: str | None = None, budget_tokens: int = 1200) -> Bundle: ...


def memory_search(
    query: str = "",
    *,
    kind: Kind | None = None,
    scene: str | None = None,
    entity: str | None = None,
    since: str | None = None,
    until: str | None = None,
    as_of: str | None = None,
    limit: int = 10,
    cursor: str | None = None,
) -> MemoryResults: ...


def conversation_search(
    query: str = "",
    *,
    session: str | None = None,
    role: Role | None = None,
    since: str | None = None,
    until: str | None = None,
    neighbours: int = 0,
    limit: int = 10,
    cursor: str | None = None,
) -> TurnResults: ...


def find(
    query: str = "",
    *,
    layers: Sequence[FoundLayer] = (),
    session: str | None = None,
    project: str | None = None,
    role: Role | None = None,
    kind: Kind | None = None,
    scene: str | None = None,
    entity: str | None = None,
    since: str | None = None,
    until: str | None = None,
    as_of: str | None = None,
    neighbours: int = 0,
    limit: int = 10,
    cursor: str | None = None,
) -> FoundPage: ...


def why(id: str) -> Why: ...


def entity_map(*, about: str | None = None, as_of: datetime | None = None, limit: int = 2_000) -> MemoryMap: ...


def read_persona(section: str | None = None) -> Persona: ...


def scenes() -> list[Scene]: ...


def scene(slug: str) -> Scene: ...


def scene_page(slug: str) -> str: ...


def sessions(
    *, prefix: str = "", project: str | None = None, limit: int = 100, start: int = 0
) -> list[SessionInfo]: ...


def conversations(
    text: str = "",
    *,
    client: str | None = None,
    project: str | None = None,
    month: str | None = None,
    entity: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Conversations: ...


def session_turns(session: str, *, start: int = 0, limit: int = 100) -> list[Turn]: ...


def canvases(*, limit: int = 100) -> list[CanvasRow]: ...


def active_canvas(session: str | None = None) -> CanvasRow | None: ...


def canvas(number: int, *, version: int | None = None) -> CanvasRow: ...


def records(
    *,
    node: str | None = None,
    session: str | None = None,
    ref: str | None = None,
    tool_call_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    start: int = 0,
    limit: int = 100,
) -> list[Record]: ...


def ref(id: str) -> tuple[Ref, Content]: ...


def waiting(*, limit: int = 100) -> list[Reviewed]: ...


def status(*, brief: bool = False) -> dict[str, Any]: ...


def undistilled() -> str | None: ...


# --- what is stored already -------------------------------------------------------------------------


def known_client_ids(ids: Sequence[str]) -> dict[str, bool]: ...


def client_turns(ids: Sequence[str]) -> dict[str, list[ClientTurn]]: ...


def kept_calls(session: str, ids: Sequence[str]) -> set[str]: ...


def forgotten_among(turns: Sequence[NewTurn], *, session: str, statements: Sequence[Sequence[str]] = ()) -> int: ...


# --- storing ----------------------------------------------------------------------------------------


def record_turns(turns: Sequence[NewTurn], *, session: str | None = None) -> Recorded: ...


def offload_tool_result(
    tool_name: str,
    result: Result,
    *,
    arguments: Any = None,
    tool_call_id: str | None = None,
    session: str | None = None,
    shown: str | None = None,
    replaced: bool = False,
) -> Offloaded: ...


def keep_tool_result(
    tool_name: str,
    result: Result,
    *,
    arguments: Any = None,
    tool_call_id: str | None = None,
    session: str | None = None,
    at: datetime | None = None,
) -> Ref: ...


def expand_node(
    target: str,
    *,
    view: str | None = None,
    lines: str | None = None,
    grep: str | None = None,
    json_path: str | None = None,
    max_tokens: int = 2000,
    cursor: str | None = None,
) -> Expansion: ...


def fold_canvas(*, budget_tokens: int | None = None, session: str | None = None) -> CanvasView: ...


def note_replaced(session: str, tool_call_id: str, text: str, *, at: datetime | None = None) -> None: ...


def note_compacted(session: str, *, at: datetime | None = None) -> None: ...


def note_project(session: str, project: str) -> None: ...


def flush(session: str | None = None) -> int: ...


def remember(
    text: str,
    *,
    kind: StatementKind | None = None,
    entity: str | None = None,
    relation: str | None = None,
    value: str | None = None,
    supersedes: Sequence[str] = (),
    valid_from: str | None = None,
    valid_until: str | None = None,
    cites: Sequence[str] = (),
    source: Source = "user",
    session: str | None = None,
    typed: bool = False,
) -> Remembered: ...


def tell(statements: Sequence[StatementToImport]) -> ImportedStatementsReport: ...


def forget(
    ids: Sequence[str] = (),
    *,
    query: str | None = None,
    session: str | None = None,
    since: str | None = None,
    until: str | None = None,
    reason: str = "",
    dry_run: bool | None = None,
    undo: str | None = None,
    also: bool = False,
) -> Forgotten: ...


# --- operating the store -----------------------------------------------------------------------------


def space_summaries() -> list[SpaceSummary]: ...


def space_summary(space: str) -> SpaceSummary: ...


def create_space(space: str) -> bool: ...


def delete_space(space: str) -> DeletedSpace: ...


def set_quotas(space: str, most: Mapping[QuotaKind, int | None]) -> list[Quota]: ...


def set_space_retention(space: str, days: Mapping[Keeping, int | None]) -> list[Policy]: ...


def tokens() -> list[Token]: ...


def create_token(
    name: str, *, spaces: Sequence[str] = (), right: Right = "write", expires: timedelta | None = None
) -> tuple[Token, str]: ...


def revoke_token(which: str) -> Token: ...


# --- the table --------------------------------------------------------------------------------------

Declaration = Callable[..., Any]

_READING: Sequence[Declaration] = (
    recall_stable,
    recall_beyond,
    recall_answer,
    memory_search,
    conversation_search,
    find,
    why,
    entity_map,
    read_persona,
    scenes,
    scene,
    scene_page,
    sessions,
    conversations,
    session_turns,
    canvases,
    active_canvas,
    canvas,
    records,
    ref,
    waiting,
    status,
    undistilled,
    known_client_ids,
    client_turns,
    kept_calls,
    forgotten_among,
    expand_node,
)
_WRITING: Sequence[Declaration] = (
    record_turns,
    offload_tool_result,
    keep_tool_result,
    fold_canvas,
    note_replaced,
    note_compacted,
    note_project,
    flush,
    remember,
    tell,
)
_DELETING: Sequence[Declaration] = (forget,)
_OPERATING: Sequence[Declaration] = (
    space_summaries,
    space_summary,
    create_space,
    delete_space,
    set_quotas,
    set_space_retention,
    tokens,
    create_token,
    revoke_token,
)

VERBS: Mapping[str, tuple[Declaration, Right]] = {
    **{declaration.__name__: (declaration, "read") for declaration in _READING},
    **{declaration.__name__: (declaration, "write") for declaration in _WRITING},
    **{declaration.__name__: (declaration, "admin") for declaration in _DELETING},
    **{declaration.__name__: (declaration, "operator") for declaration in _OPERATING},
}
"""Each verb by name: its declaration, and the right that it needs."""


def answer_type(declaration: Declaration) -> Any:
    return get_type_hints(declaration)["return"]


async def run(memory: Memory, name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a verb of a server's memory with validated arguments.

    Raises Refused for an imported statement that claims to be something else, and for a turn that no speaker said.
    """
    if any(turn.role == "note" for turn in arguments.get("turns", ())):
        raise Refused("Notes are what `remember` writes; a turn is of the user, the assistant, the system or a tool.")
    if name == "tell" and not all(_is_plain_import(statement) for statement in arguments["statements"]):
        raise Refused("A statement that another machine imports is an event from elsewhere, and has no evidence here.")
    declaration, _ = VERBS[name]
    kinds = {parameter.name: parameter.kind for parameter in inspect.signature(declaration).parameters.values()}
    given = [arguments[key] for key, kind in kinds.items() if kind is not inspect.Parameter.KEYWORD_ONLY]
    named = {key: arguments[key] for key, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY}
    return _without_hashes(await getattr(memory, name)(*given, **named))


def _without_hashes(answer: Any) -> Any:
    """Return an answer without the hashes of tokens."""
    match answer:
        case Token():
            return replace(answer, hash=b"")
        case list() | tuple():
            values = [_without_hashes(value) for value in cast("Sequence[Any]", answer)]
            return tuple(values) if isinstance(answer, tuple) else values
        case _:
            return answer


def _is_plain_import(statement: StatementToImport) -> bool:
    atom = statement.atom
    return (atom.kind, atom.source, atom.label, atom.reader) == ("episodic", "import", None, None) and not (
        atom.evidence or atom.supersedes or atom.held
    )


def bound(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, without those that have their defaults. Raises InvalidInput if wrong."""
    try:
        return dict(inspect.signature(VERBS[name][0]).bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise InvalidInput(f"{name} on a server: {error}.") from None
