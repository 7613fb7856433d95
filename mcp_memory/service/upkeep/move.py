"""`move`: copies the memory of a store to another engine (`store.sql.moving`), and verifies the copy before it counts.

The verification: both sides have the same rows, raw results and vectors by count and SHA-256, and a hundred questions
have the same results in both. A question has the longest words of a stored turn or statement. The source is only read,
and no other program has it open meanwhile. An interrupted move continues when it is called again.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound, Refused
from mcp_memory.core.paths import expand_path
from mcp_memory.core.process_registry import exclusive
from mcp_memory.core.progress import ReportProgress, ignore_progress, step_counter
from mcp_memory.longterm.search.search import Search
from mcp_memory.service.upkeep.rebuild import outdated_personas
from mcp_memory.shortterm.chunks import index_next
from mcp_memory.store.files import database_is_gone
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, home_rows, moving, turn_rows
from mcp_memory.store.sql.moving import Movable
from mcp_memory.store.sqlite.upkeep.moving import MovableSqlite
from mcp_memory.store.values import Filters, Layer, Vectors

if TYPE_CHECKING:
    from mcp_memory.store.postgres.moving import MovablePostgres


_FORM = "sqlite:FOLDER or postgresql://USER@HOST/DATABASE"
_QUESTIONS = 100
_HITS = 10
_TRIES = 1_000
_EXACT = 10_000  # rows of a space; with many more vectors, engines search an index that passes over some
_WORDS = 4
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """The rows of a kind in a space ("" for the whole home), verified to be equal on both sides."""

    space: str
    what: str
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A verified move.

    `questions` is the number of searches that were compared; `resumed` is whether an earlier call had copied a part.
    """

    source: str
    target: str
    proven: Sequence[Proven]
    questions: int
    resumed: bool
    seconds: float


def move(
    source: str, target: str, *, objects: str | None = None, check: bool = False, tell: ReportProgress = ignore_progress
) -> Moved:
    """Copy the memory at an address to another and verify the copy; with `check`, only verify a finished move.

    An address is `sqlite:FOLDER` or a URL of PostgreSQL; `objects` is the bucket of the database, if it has one. Raises
    InvalidInput (malformed address, or both of the same engine), NotFound (no memory at the source), Refused (the
    target is not empty), StoreUnavailable (in use, cannot be reached), Damaged (the verification failed).
    """
    if source.startswith("sqlite:") == target.startswith("sqlite:"):
        raise InvalidInput(
            "A move goes from one engine to the other. `mcp-memory backup` and `restore` copy a home, pg_dump and "
            "pg_restore a database."
        )
    start = time.monotonic()
    with ExitStack() as stack:
        origin = stack.enter_context(_open_store(source, objects, to_read=True))
        goal = stack.enter_context(_open_store(target, objects, to_read=check))

        def run(tx: moving.HomeTransaction) -> Moved:
            transfer = moving.Move(origin, tx, goal)
            if origin.is_unfinished(tx):
                raise moving.unfinished_error(origin.name)
            if check and goal.read_home(goal.is_unfinished):
                raise Refused(f"The move to {goal.name} was not finished. Move again: it continues where it stopped.")
            resumed = False if check else _copy(transfer, goal, tell)
            proven = _prove(origin, tx, goal, of=transfer.count(), tell=tell)
            with closing(origin.reopen()) as questioned:
                asked = _compare_searches(questioned, goal, tell)
            if not check:
                transfer.accept()
            return Moved(
                source=origin.name,
                target=goal.name,
                proven=proven,
                questions=asked,
                resumed=resumed,
                seconds=round(time.monotonic() - start, 1),
            )

        return origin.read_still(run)


@contextmanager
def _open_store(address: str, objects: str | None, *, to_read: bool) -> Generator[MovableSqlite | MovablePostgres]:
    """Open the store at an address. No other program may have it open."""
    kind, _, rest = address.partition(":")
    match kind:
        case "sqlite":
            home = expand_path(rest, "The address").absolute()
            if to_read and not (home / "memory.db").exists():
                raise NotFound(database_is_gone(home) or f"There is no memory in {home}. Nothing was changed.")
            with exclusive(home, "move"), closing(MovableSqlite(home)) as store:
                yield store
        case "postgresql" | "postgres":
            from mcp_memory.store.postgres.moving import MovablePostgres

            with closing(MovablePostgres(address, objects)) as store:
                yield store
        case _:
            raise InvalidInput(f"A move goes from and to {_FORM}.")


def _copy(transfer: moving.Move, goal: MovableSqlite | MovablePostgres, tell: ReportProgress) -> bool:
    """Copy everything and create the indexes and files of the target. Return whether a part had been copied before."""
    resumed = transfer.begin()
    transfer.copy(resumed=resumed, tell=step_counter("copying rows", transfer.count(), tell))
    tell("making indexes", 0, 1)
    transfer.finish()
    passing = dict[str, set[str]]()
    for space in goal.read_home(home_rows.spaces):
        while index_next(goal, passing, space, lambda: True):
            pass
    tell("making indexes", 1, 1)
    goal.write_home(lambda tx: tx.run("ANALYZE"))  # without statistics the first searches would be slow
    if isinstance(goal, MovableSqlite):
        goal.repair(Path.unlink)  # all existing files are of this move
        for space, _, page in list(outdated_personas(goal, goal.home)):
            goal.write_persona_file(space, page)
    return resumed


# --- proof ------------------------------------------------------------------------------------------


def _prove(
    origin: Movable, tx: moving.HomeTransaction, goal: Movable, *, of: int, tell: ReportProgress
) -> list[Proven]:
    """Compare all rows of both sides and return the equal kinds. Raises Damaged with the differences."""
    step = step_counter("comparing rows", 2 * of, tell)
    in_origin = dict(moving.proof(origin, tx, step))
    in_goal = goal.read_home(lambda tx: dict(moving.proof(goal, tx, step)))
    proven, wrong = list[Proven](), list[str]()
    for what in in_origin | in_goal:
        ours, theirs = in_origin.get(what, {}), in_goal.get(what, {})
        for space in sorted(ours | theirs):
            our_digest, their_digest = ours.get(space, moving.Digest()), theirs.get(space, moving.Digest())
            if our_digest == their_digest:
                proven.append(Proven(space=space, what=what, rows=our_digest.rows, sha256=our_digest.sha256))
            else:
                where = f" of the space {space}" if space else ""
                differ = "with other values" if our_digest.rows == their_digest.rows else f"and {their_digest.rows:,}"
                wrong.append(f"{what}{where}: {our_digest.rows:,} {differ}")
    if wrong:
        more = f", and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise Damaged(
            f"{goal.name} is not the same as {origin.name} ({'; '.join(wrong[:_SHOWN])}{more}). The source is as it "
            "was. An unfinished move copies the differences when it is called again; otherwise empty the target first."
        )
    return proven


def _compare_searches(origin: Movable, goal: Movable, tell: ReportProgress) -> int:
    """Search both sides for the same questions and return their number. Raises Damaged if a result differs."""
    now = datetime.now(UTC)
    asked = 0
    origin_search, goal_search = (Search(store, lambda: now) for store in (origin, goal))
    for space, layer, text, vectors in _questions(origin):
        ask = partial(_search_ids, space=space, layer=layer, text=text, vectors=vectors)
        if (ours := ask(origin_search)) != (theirs := ask(goal_search)):
            raise Damaged(
                f"The question {text!r} finds {', '.join(ours)} of the space {space} in {origin.name}, and "
                f"{', '.join(theirs)} in {goal.name}. The source is as it was; empty the target and move again."
            )
        asked += 1
        tell("asking questions", asked, _QUESTIONS)
    return asked


def _search_ids(search: Search, *, space: str, layer: Layer, text: str, vectors: Sequence[Vectors]) -> list[str]:
    hits = search(space, layer, text, embed=lambda _: vectors, filters=Filters(), limit=_HITS)
    return [hit.id for hit in hits]


def _questions(store: Store) -> Iterator[tuple[str, Layer, str, list[Vectors]]]:
    """Yield questions: the longest words of a turn or atom, with its vectors if both engines score all rows exactly."""
    drawn = random.Random(0)
    spaces, models = store.read_home(home_rows.spaces), [index.identity for index in store.index_progress().vectors]
    layers: tuple[Layer, ...] = ("turn", "turn", "turn", "atom")
    asked = 0
    for _ in range(_TRIES if spaces else 0):
        space, layer = drawn.choice(spaces), drawn.choice(layers)
        totals = store.totals(space, layer)
        id = f"{layer[0]}{drawn.randint(1, max(1, totals.newest))}"
        texts = (
            [row.content for row in store.read(space, turn_rows.by_ids, [id])]
            if layer == "turn"
            else [row.text for row in store.read(space, atom_rows.by_ids, [id])]
        )
        words = sorted(set(re.findall(r"\w+", " ".join(texts))), key=lambda word: (len(word), word))[-_WORDS:]
        if not words:
            continue
        rows = (store.vectors_of(space, layer, [id], model).get(id) for model in models if totals.rows <= _EXACT)
        vectors = [Vectors(identity=model, data=row[None, :]) for model, row in zip(models, rows, strict=False)
                   if row is not None]  # fmt: skip
        yield space, layer, " ".join(words), vectors
        asked += 1
        if asked == _QUESTIONS:
            return
