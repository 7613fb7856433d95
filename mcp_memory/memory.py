"""Memory: the verbs, for agents (through `server/`), people (through `cli`) and programs.

`open_memory()` is the one place where the parts are joined. The verbs are async and never block the event
loop: each runs in a worker thread, which finishes even when its caller is cancelled, so a write lands whole.
What they return are the answers of `types`; what they raise is in `errors`.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import anyio
import anyio.to_thread

from mcp_memory import __version__
from mcp_memory.config import Settings, load_settings
from mcp_memory.errors import EmbeddingFailed, InvalidInput, NotFound, Refused
from mcp_memory.text import one_line, safe_name, spoken
from mcp_memory.types import (
    Atom,
    Bundle,
    CanvasRow,
    CanvasView,
    Expansion,
    Forgotten,
    Kind,
    MemoryResults,
    NewTurn,
    Offloaded,
    Persona,
    Record,
    Recorded,
    Ref,
    Remembered,
    Role,
    SessionInfo,
    StepStatus,
    Turn,
    TurnResults,
)

if TYPE_CHECKING:
    from mcp_memory.embed import Embedder
    from mcp_memory.indexing import Indexing
    from mcp_memory.llm import LLM
    from mcp_memory.longterm.rerank import Rerank
    from mcp_memory.longterm.search import Search
    from mcp_memory.metered import Metered
    from mcp_memory.store.protocol import Change, Store, Vectors
    from mcp_memory.tokens import TokenCounter

__all__ = ["Memory", "open_memory"]

MAX_LIMIT = 50
MAX_NEIGHBOURS = 10

P = ParamSpec("P")
T = TypeVar("T")


def in_thread(verb: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Make a blocking verb awaitable."""

    @wraps(verb)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await anyio.to_thread.run_sync(partial(verb, *args, **kwargs))

    return run


class Memory:
    """The verbs over one space of one store. Made by `open_memory`; safe to call from many tasks at once.

    `session` is the handle used where a caller names none: one for the life of this object.
    """

    def __init__(self, parts: _Parts) -> None:
        self._parts = parts
        self.settings = parts.settings
        self.space = parts.settings.space
        self.session = f"{parts.now():%Y-%m-%d}-{secrets.token_hex(2)}"

    # --- L0: conversation ---------------------------------------------------------------------------

    @in_thread
    def record_turns(self, turns: Sequence[NewTurn], *, session: str | None = None) -> Recorded:
        """Store messages verbatim, in order, and index them. What was stored before is not stored again.

        Raises InvalidInput, storing nothing, for an empty or oversized turn or a session name that cannot
        be part of a file name.
        """
        from mcp_memory.longterm.l0_turns import admit

        name = self._session(session)
        kept, emptied = admit(turns)
        embedded = self._parts.indexing.of_rows([spoken(turn.content, turn.name) for turn in kept])
        done = self._parts.store.append_turns(self.space, name, kept, now=self._parts.now(), vectors=embedded)
        self._parts.indexing.stored()
        return Recorded(
            session=name,
            stored=[turn.id for turn in done.stored],
            duplicates=done.duplicates,
            emptied=emptied,
        )

    @in_thread
    def conversation_search(
        self,
        query: str,
        *,
        session: str | None = None,
        role: Role | None = None,
        since: str | None = None,
        until: str | None = None,
        neighbours: int = 0,
        limit: int = 10,
        cursor: str | None = None,
    ) -> TurnResults:
        """Find turns by words and by meaning, best first.

        `since` and `until` take dates, times and phrases such as "last week", and include all they name.
        `neighbours` adds that many turns before and after each hit (at most 10). `limit` is at most 50.
        """
        from mcp_memory.longterm import find
        from mcp_memory.longterm.pages import asked_at
        from mcp_memory.store.protocol import Filters

        _in_range(limit, "limit", 1, MAX_LIMIT)
        _in_range(neighbours, "neighbours", 0, MAX_NEIGHBOURS)
        asking = self._parts.asking(query)
        at = asked_at(cursor, self._parts.now())
        results = find.turns(
            self._parts.store,
            self._parts.search,
            self.space,
            query,
            embedded=asking.vectors,
            filters=Filters(
                session=session,
                role=role,
                since=self._parts.moment(since, "since", now=at),
                until=self._parts.moment(until, "until", now=at, end=True),
            ),
            neighbours=neighbours,
            limit=limit,
            cursor=cursor,
            at=at,
            rerank=self._parts.rerank,
        )
        return replace(results, note=_notes(asking.note, results.note))

    @in_thread
    def ranked_by(self, signals: Collection[str], query: str, *, limit: int = 10) -> list[Turn]:
        """Return the turns that some signals of the search alone rank first: what it is measured against.

        `longterm.ranking` names them: `{"words"}` is BM25, `{"meaning"}` the cosine by the configured model.
        Raises EmbeddingFailed rather than finding less.
        """
        asking = self._parts.asking(query)
        found = self._parts.search.by(signals, self.space, query, embedded=asking.vectors, limit=limit)
        if "meaning" in signals and asking.note:
            raise EmbeddingFailed(asking.note)
        return self._parts.store.turns(self.space, found)

    # --- L1: atoms ----------------------------------------------------------------------------------

    @in_thread
    def remember(
        self,
        text: str,
        *,
        kind: Kind = "persona",
        entity: str | None = None,
        relation: str | None = None,
        value: str | None = None,
        supersedes: Sequence[str] = (),
        valid_from: str | None = None,
        session: str | None = None,
    ) -> Remembered:
        """Store one durable statement, told explicitly, and say what it replaced or may repeat.

        `entity`, `relation` and `value` together make it a fact (the user is the entity `user`). What it
        replaces is closed, never deleted.
        """
        from mcp_memory.longterm import l1_atoms

        parts = self._parts
        now = parts.now()
        atom = l1_atoms.told(
            text,
            kind=kind,
            session=self._session(session),
            entity=entity,
            relation=relation,
            value=value,
            supersedes=supersedes,
            valid_from=parts.moment(valid_from, "valid_from") or now,
        )
        embedded = parts.indexing.of_rows([atom.text])
        written = parts.store.add_atom(self.space, atom, now=now, vectors=embedded)
        parts.indexing.stored()
        self._renew_persona()
        similar = l1_atoms.similar(
            parts.store, parts.search, self.space, written, embedded=parts.asking(atom.text).vectors
        )
        return Remembered(atom=written.atom, duplicate=written.duplicate, replaced=written.replaced, similar=similar)

    @in_thread
    def memory_search(
        self,
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
    ) -> MemoryResults:
        """Find atoms and facts held true (at `as_of`), filled up with verbatim turns where those are few."""
        from mcp_memory.longterm import find
        from mcp_memory.longterm.pages import asked_at
        from mcp_memory.store.protocol import Filters

        _in_range(limit, "limit", 1, MAX_LIMIT)
        if scene is not None:
            raise NotFound(f"There is no scene {one_line(scene, 40)!r}: no scenes have been made. Leave scene out.")
        asking = self._parts.asking(query)
        at = asked_at(cursor, self._parts.now())
        results = find.memories(
            self._parts.store,
            self._parts.search,
            self.space,
            query,
            embedded=asking.vectors,
            filters=Filters(
                kind=kind,
                entity=entity,
                as_of=self._parts.moment(as_of, "as_of", now=at, end=True),
                since=self._parts.moment(since, "since", now=at),
                until=self._parts.moment(until, "until", now=at, end=True),
            ),
            limit=limit,
            cursor=cursor,
            at=at,
            rerank=self._parts.rerank,
        )
        return replace(results, note=_notes(asking.note, results.note))

    # --- L3 and recall ------------------------------------------------------------------------------

    @in_thread
    def read_persona(self, section: str | None = None) -> Persona:
        """Return the page about the user, or one section of it. NotFound names the sections there are."""
        from mcp_memory.longterm import l3_persona

        held = self._parts.store.persona(self.space)
        text = held.text if held else l3_persona.EMPTY
        return Persona(
            text=l3_persona.section_of(text, section) if section else text,
            sections=l3_persona.sections(text),
            version=held.version if held else 0,
            updated=held.at if held else None,
        )

    @in_thread
    def recall(self, query: str = "", *, session: str | None = None, budget_tokens: int = 1200) -> Bundle:
        """Return what a context needs for this question, within the budget: a stable and a dynamic block."""
        from mcp_memory.longterm import recall

        _in_range(budget_tokens, "budget_tokens", 100, 100_000)
        parts = self._parts
        context = recall.context_of(parts.store, self.space, session)
        question = "\n".join(part for part in (query, context) if part)
        return recall.bundle(
            parts.store,
            parts.search,
            self.space,
            question,
            embedded=parts.asking(question).vectors,
            counter=parts.counter,
            budget=budget_tokens,
        )

    # --- short-term ---------------------------------------------------------------------------------

    @in_thread
    def offload_tool_result(
        self,
        tool_name: str,
        result: str,
        *,
        arguments: Any = None,
        tool_call_id: str | None = None,
        session: str | None = None,
        task: str | None = None,
        step: str | None = None,
        after: Sequence[str] = (),
        status: StepStatus | None = None,
        summary: str | None = None,
    ) -> Offloaded:
        """Keep a tool result whole in a file and return what may stand in the context in its place."""
        from mcp_memory.shortterm.offload import OffloadRequest, offload

        name = self._session(session)
        said = self._parts.store.last_turns(self.space, name, limit=4, roles=("user", "assistant"))
        asked = next((turn.content for turn in reversed(said) if turn.role == "user"), "")
        return offload(
            self._parts.store,
            self.space,
            request=OffloadRequest(
                tool_name=tool_name,
                result=result,
                arguments=arguments,
                tool_call_id=tool_call_id,
                session=name,
                task=task,
                step=step,
                after=tuple(after),
                status=status,
                summary=summary,
            ),
            counter=self._parts.counter,
            now=self._parts.now().astimezone(),
            goal_hint=one_line(asked, 120),
            talk="\n".join(turn.content[:2_000] for turn in said),
        )

    @in_thread
    def expand_node(
        self,
        target: str,
        *,
        view: str | None = None,
        lines: str | None = None,
        grep: str | None = None,
        json_path: str | None = None,
        max_tokens: int = 2000,
        cursor: str | None = None,
    ) -> Expansion:
        """Return the layer below a canvas, node, folded group or ref, within `max_tokens`."""
        from mcp_memory.shortterm.drill import expand

        return expand(
            self._parts.store,
            self.space,
            target=target,
            view=view,
            lines=lines,
            grep=grep,
            json_path=json_path,
            max_tokens=max_tokens,
            cursor=cursor,
            counter=self._parts.counter,
        )

    @in_thread
    def fold_canvas(
        self,
        *,
        task: str | None = None,
        nodes: Sequence[str] = (),
        action: str = "show",
        budget_tokens: int | None = None,
        session: str | None = None,
    ) -> CanvasView:
        """Show, fold, unfold, complete or switch a task's canvas, and return it as it now stands."""
        from mcp_memory.shortterm.fold import fold_canvas

        return fold_canvas(
            self._parts.store,
            self.space,
            task=task,
            nodes=nodes,
            action=action,
            budget_tokens=budget_tokens,
            session=session,
            counter=self._parts.counter,
            now=self._parts.now().astimezone(),
        )

    # --- forgetting ---------------------------------------------------------------------------------

    @in_thread
    def forget(
        self,
        ids: Sequence[str] = (),
        *,
        query: str | None = None,
        reason: str = "",
        dry_run: bool | None = None,
        undo: str | None = None,
    ) -> Forgotten:
        """Take turns, atoms and refs out of every search; with `undo`, bring back what a tombstone took.

        By ids it acts at once. By a query it shows what it would forget, unless `dry_run` is False.
        """
        from mcp_memory.longterm import forgetting

        parts = self._parts
        done = forgetting.forget(
            parts.store,
            parts.search,
            self.space,
            ids=ids,
            query=query,
            reason=one_line(reason, 200),
            dry_run=dry_run,
            undo=undo,
            embedded=parts.asking(query or "").vectors,
            now=parts.now(),
        )
        if not done.dry_run:
            self._renew_persona()
            parts.indexing.stored()
        return done

    # --- reading, for resources and people ----------------------------------------------------------

    @in_thread
    def sessions(self, *, prefix: str = "", limit: int = 100) -> list[SessionInfo]:
        return self._parts.store.sessions(self.space, prefix=prefix, limit=limit)

    @in_thread
    def session_turns(self, session: str, *, start: int = 0, limit: int = 100) -> list[Turn]:
        """Return turns of a session in order. NotFound for an unknown one."""
        turns = self._parts.store.session_turns(self.space, session, start=start, limit=limit)
        if not turns and not self._parts.store.session_turns(self.space, session, limit=1):
            known = ", ".join(info.session for info in self._parts.store.sessions(self.space, limit=5))
            raise NotFound(
                f"There is no session {one_line(session, 60)!r} in this space. "
                + (f"The latest are {known}." if known else "None has been recorded yet.")
            )
        return turns

    @in_thread
    def atom(self, id: str) -> Atom:
        found = self._parts.store.atoms(self.space, [id])
        if not found:
            raise NotFound(f"There is no atom {one_line(id, 20)} in this space. Find one with memory_search.")
        return found[0]

    @in_thread
    def atoms(self, *, limit: int = 100) -> list[Atom]:
        from mcp_memory.store.protocol import Filters

        return self._parts.store.list_atoms(self.space, filters=Filters(), limit=limit)

    @in_thread
    def entities(self, *, prefix: str = "", limit: int = 100) -> list[str]:
        """Return the names that facts are about, those that begin with `prefix`, in order."""
        from mcp_memory.store.protocol import Filters

        facts = self._parts.store.facts(self.space, filters=Filters(), limit=1_000)
        names = {fact.entity for fact in facts if fact.entity.casefold().startswith(prefix.casefold())}
        return sorted(names)[:limit]

    @in_thread
    def ref(self, id: str) -> tuple[Ref, bytes]:
        """Return a ref and its raw bytes. NotFound, or Damaged when they do not match their hash."""
        found = self._parts.store.ref(self.space, id)
        return found, self._parts.store.read_ref(self.space, found.id)

    @in_thread
    def canvases(self, *, limit: int = 100) -> list[CanvasRow]:
        return self._parts.store.canvases(self.space, limit=limit)

    @in_thread
    def active_canvas(self, session: str | None = None) -> CanvasRow | None:
        return self._parts.store.active_canvas(self.space, session)

    @in_thread
    def canvas(self, number: int) -> CanvasRow:
        return self._parts.store.canvas(self.space, number)

    @in_thread
    def records(self, *, node: str | None = None, session: str | None = None, limit: int = 100) -> list[Record]:
        return self._parts.store.records(self.space, node=node, session=session, limit=limit)

    @in_thread
    def last_change(self) -> int:
        return self._parts.store.last_change()

    @in_thread
    def changes(self, after: int) -> list[Change]:
        return self._parts.store.changes(after, space=self.space)

    @in_thread
    def problems(self) -> list[str]:
        return self._parts.store.problems()

    @in_thread
    def drop_old_vectors(self) -> list[str]:
        """Delete the vectors of every embedding model but the one that is set; return their identities.

        Refused until that one has embedded everything, for until then the fullest other is searched too.
        """
        state, store = self._parts.indexing.state(), self._parts.store
        if state.model is None or state.embedded < state.total:
            raise Refused(
                f"Nothing was deleted: the model that is set has embedded {state.embedded:,} of {state.total:,} rows. "
                "A running server embeds the rest; `mcp-memory status` shows how far it is."
            )
        old = [index.identity for index in store.vector_indexes() if index.identity != state.model]
        for identity in old:
            store.drop_vector_index(identity)
        return old

    @in_thread
    def status(self) -> dict[str, Any]:
        """Return what is held, where, how far it is indexed and what offloading saved, as plain JSON values."""
        parts, store = self._parts, self._parts.store
        counts = asdict(store.counts(self.space))
        index = parts.indexing.state()
        saved = {name: counts.pop(name) for name in ("raw_bytes", "tokens_raw", "tokens_kept")}
        return {
            "version": __version__,
            "home": str(self.settings.home),
            "space": self.space,
            "spaces": store.spaces(),
            "schema": store.schema(),
            "counts": counts,
            "disk": {
                "database": sum(_size(path) for path in self.settings.home.glob("memory.db*")),
                "files": sum(_size(path) for path in store.folder(self.space).rglob("*")),
            },
            "embedding": asdict(index),
            "model": self._model_status(),
            "tokenizer": {"name": parts.counter.name, "exact": parts.counter.exact},
            "offload": {**saved, "tokens_saved": saved["tokens_raw"] - saved["tokens_kept"]},
        }

    # --- inside -------------------------------------------------------------------------------------

    def _session(self, name: str | None) -> str:
        return self.session if name is None else safe_name(name, what="session")

    def _model_status(self) -> dict[str, Any]:
        from mcp_memory.metered import today

        parts, settings = self._parts, self.settings
        calls = parts.store.spent(since=today(parts.now()))
        ever = parts.store.spent(since=datetime.fromtimestamp(0, UTC))
        return {
            "name": parts.model.name if parts.model else None,
            "rerank": settings.rerank,
            "tokens_today": sum(one.prompt_tokens + one.completion_tokens for one in calls),
            "daily_tokens": settings.llm_daily_tokens,
            "today": [asdict(one) for one in calls],
            "ever": [asdict(one) for one in ever],
        }

    def _renew_persona(self) -> None:
        from mcp_memory.longterm import l3_persona

        text = l3_persona.page(self._parts.store, self.space)
        if text != l3_persona.EMPTY or self._parts.store.persona(self.space):
            self._parts.store.put_persona(self.space, text, now=self._parts.now())


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What `open_memory` joined."""

    settings: Settings
    store: Store
    search: Search
    indexing: Indexing
    model: Metered | None
    rerank: Rerank
    counter: TokenCounter
    now: Callable[[], datetime]

    def moment(self, text: str | None, what: str, *, now: datetime | None = None, end: bool = False) -> datetime | None:
        """Return the moment that a time filter names, or None where there is none."""
        from mcp_memory.when import parse_time

        return parse_time(text, what=what, now=now or self.now(), end=end) if text else None

    def asking(self, query: str) -> _Asking:
        return _Asking(self.indexing, query)


class _Asking:
    """A question whose vectors are made when a search first wants them; `note` says if that went wrong."""

    def __init__(self, indexing: Indexing, query: str) -> None:
        self._indexing = indexing
        self._query = query
        self._found: list[Vectors] | None = None
        self.note: str | None = None

    def vectors(self) -> list[Vectors]:
        if self._found is None:
            self._found, self.note = self._indexing.of_query(self._query)
        return self._found


@asynccontextmanager
async def open_memory(
    settings: Settings | None = None,
    *,
    now: Callable[[], datetime] | None = None,
    embedder: Embedder | str | None = None,
    llm: LLM | str | None = None,
    **overrides: Any,
) -> AsyncGenerator[Memory]:
    """Open a store and yield its verbs; background work has ended when this returns.

    `overrides` are settings by name (`home=…`, `space=…`); `now`, `embedder` and `llm` take the place of the
    clock and of the configured models (a string is the setting). Raises StoreUnavailable and InvalidInput.
    """
    parts = await anyio.to_thread.run_sync(partial(_join, settings, now, embedder, llm, overrides))
    try:
        yield Memory(parts)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_part, parts)


def _join(
    settings: Settings | None,
    now: Callable[[], datetime] | None,
    embedder: Embedder | str | None,
    llm: LLM | str | None,
    overrides: dict[str, Any],
) -> _Parts:
    from mcp_memory.embed import make_embedder
    from mcp_memory.indexing import Indexing
    from mcp_memory.longterm.rerank import make_rerank
    from mcp_memory.longterm.search import Search
    from mcp_memory.metered import Metered, make_llm
    from mcp_memory.store.sqlite import open_store
    from mcp_memory.tokens import token_counter

    if isinstance(embedder, str):
        overrides, embedder = {**overrides, "embedder": embedder}, None
    if isinstance(llm, str):
        overrides, llm = {**overrides, "llm": llm}, None
    if settings is None or overrides:
        base = settings.model_dump(exclude_unset=True) if settings else {}
        settings = load_settings(**{**base, **overrides})
    safe_name(settings.space, what="space")
    now = now or (lambda: datetime.now(UTC))
    embedder, llm = embedder or make_embedder(settings), llm or make_llm(settings)
    if settings.rerank and llm is None:
        raise InvalidInput("Setting 'rerank' is on and no model is set. Set MCP_MEMORY_LLM, or switch rerank off.")
    store = open_store(settings.home)
    model = Metered(llm, store, settings, now=now) if llm else None
    indexing = Indexing(store, embedder, settings)
    indexing.start()
    return _Parts(
        settings=settings,
        store=store,
        search=Search(store, now),
        indexing=indexing,
        model=model,
        rerank=make_rerank(store, model, settings),
        counter=token_counter(settings.tokenizer),
        now=now,
    )


def _part(parts: _Parts) -> None:
    parts.indexing.close()
    parts.search.close()
    parts.store.close()


def _notes(*notes: str | None) -> str | None:
    return " ".join(note for note in notes if note) or None


def _in_range(value: int, what: str, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{what} is {value}; it can be {least} to {most}.")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # gone since it was listed
        return 0
