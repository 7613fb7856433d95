"""Checks after the kills: every acknowledged item exists once, and rows, files and pages agree.

The home is read without the package: with SQL, a JSON parser and the real Mermaid. First, a process that is not killed
opens it and processes all turns that wait for the model.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import apsw

from bench.reader import Reader
from bench.torture import ledger
from bench.torture.by_api import settings_of
from bench.torture.ledger import Entry
from bench.torture.seats import Plan
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.shortterm.canvas.flowchart import parse, render
from mcp_memory.store.files import read_ref_file
from mcp_memory.store.sqlite.store import open_store
from tests.leases import pass_time

SPACE = "default"
_DRAWN = 8  # canvases that the real Mermaid is shown; 0.2 s each
_LATER = timedelta(hours=8)  # past every lease and every pause after a failure
_STATED = "I "  # what the model notes begins so


@dataclass(slots=True)
class Proof:
    """The problems found, as sentences; those of `lost` and `doubled` begin with the kind."""

    acknowledged: Counter[str] = field(default_factory=Counter[str])
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    checked: dict[str, int] = field(default_factory=dict[str, int])

    def once(self, kind: str, what: str, times: int, *, acknowledged: bool) -> None:
        self.acknowledged[kind] += acknowledged
        if acknowledged and not times:
            self.lost.append(f"{kind} {what}")
        if times > 1:
            self.doubled.append(f"{kind} {what} is there {times} times")


def prove(plan: Plan) -> Proof:
    """Check all files and rows of a run."""
    proof = Proof()
    with closing(open_store(plan.home)) as store:
        pass_time(store, _LATER)
    proof.problems += anyio.run(_read_to_the_end, plan)
    deeds = [entry for path in sorted(plan.folder.glob("*.ledger")) for entry in ledger.read(path).values()]
    con = apsw.Connection(str(plan.home / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        folder = plan.home / "spaces" / SPACE
        _turns(proof, con, deeds)
        _statements(proof, con, deeds)
        _results(proof, con, deeds, folder)
        _tasks(proof, con, deeds, folder)
        _lines(proof, con, folder)
        _left_over(proof, plan.home)
    finally:
        con.close()
    return proof


async def _read_to_the_end(plan: Plan) -> list[str]:
    problems: list[str] = []
    later = plan.clock() + _LATER
    settings = settings_of(plan.home).model_copy(update={"distil": False})
    async with open_memory(settings, now=lambda: later, llm=Reader()) as memory:
        problems += [f"doctor, before anything else was written: {line}" for line in await memory.problems()]
        try:
            await memory.consolidate()
        except McpMemoryError as error:
            problems.append(f"a model cannot read to the end: {error}")
        with anyio.move_on_after(120) as waiting:
            while not await _indexed(memory):  # noqa: ASYNC110  another thread makes it so
                await anyio.sleep(0.05)
        if waiting.cancelled_caught:
            problems.append("the index does not get ready")
        problems += [f"doctor: {line}" for line in await memory.problems()]
        problems += [f"verify: {line}" for line in (await memory.verify()).problems]
        pyramid = (await memory.status())["pyramid"]
        if any(pyramid["waiting"][what] for what in ("turns", "drafts")):
            problems.append(f"a model still has to read {pyramid['waiting']}")
        problems += [f"put aside: {work}" for work in pyramid["works"]]
    return problems


async def _indexed(memory: Memory) -> bool:
    index = (await memory.status())["embedding"]
    return index["embedded"] == index["total"] and not index["refs_waiting"]


_QUOTED = """
    SELECT substr(t.content, e.span_start + 1, e.span_end - e.span_start) FROM evidence e
    JOIN turn t ON t.space = e.space AND t.id = e.turn
    JOIN atom a ON a.space = e.space AND a.id = e.atom WHERE a.reader IS NULL
"""
"""Quotes of statements by a model; sentences that were extracted without one are replaced by such statements."""


def _turns(proof: Proof, con: apsw.Connection, deeds: Iterable[Entry]) -> None:
    rows: Any = con.execute("SELECT t.id, s.name, t.content FROM turn t JOIN session s ON s.id = t.session").fetchall()
    times = Counter((session, content) for _, session, content in rows)
    by_id = {f"t{number}": content for number, _, content in rows}
    quoted = Counter(str(quote) for (quote,) in con.execute(_QUOTED))
    for deed in deeds:
        if deed.kind != "capture":
            continue
        for content in deed.doing["contents"]:
            there = times[deed.doing["session"], content]
            proof.once("turns", content, there, acknowledged=deed.answer is not None)
            if there and content.startswith(_STATED):
                proof.once("read", content, quoted[content], acknowledged=True)
        for id in deed.answer["stored"] if deed.answer else ():
            if by_id.get(id) not in deed.doing["contents"]:
                proof.problems.append(f"{id} was acknowledged as one of {deed.doing['contents']} and is another")
    positions = (
        "SELECT s.name FROM turn t JOIN session s ON s.id = t.session GROUP BY s.id"
        " HAVING count(*) <> max(position) + 1"
    )
    proof.problems += [f"the positions of {name} have gaps" for (name,) in con.execute(positions)]
    proof.checked["turns"] = len(rows)


def _statements(proof: Proof, con: apsw.Connection, deeds: Iterable[Entry]) -> None:
    times = Counter(str(text) for (text,) in con.execute("SELECT text FROM atom"))
    by_id = {f"a{number}": text for number, text in con.execute("SELECT id, text FROM atom")}
    for deed in deeds:
        if deed.kind == "remember":
            text = deed.doing["text"]
            proof.once("statements", text, times[text], acknowledged=deed.answer is not None)
            if deed.answer and by_id.get(deed.answer["atom"]) != text:
                proof.problems.append(f"{deed.answer['atom']} was acknowledged as {text!r} and is another")
    several = (
        "SELECT entity, value FROM fact WHERE valid_to IS NULL AND tombstone IS NULL"
        " GROUP BY entity, relation HAVING count(*) > 1"
    )
    proof.problems += [f"{entity} has several statuses at once" for entity, _ in con.execute(several)]
    proof.checked["statements"] = len(by_id)


def _results(proof: Proof, con: apsw.Connection, deeds: Iterable[Entry], folder: Path) -> None:
    paths = {str(id): str(path) for id, path in con.execute("SELECT id, path FROM ref")}
    records = Counter(con.execute("SELECT tool_call_id, ref, node FROM record").fetchall())
    calls = Counter(call for call, _, _ in records.elements())
    for deed in deeds:
        if deed.kind != "offload":
            continue
        call = deed.doing["call"]
        proof.once("results", call, calls[call], acknowledged=deed.answer is not None)
        if deed.answer and records[call, deed.answer["ref"], deed.answer["node"]]:
            _, data = read_ref_file((folder / paths[deed.answer["ref"]]).read_bytes())
            if hashlib.sha256(data).hexdigest() != deed.doing["sha256"]:
                proof.problems.append(f"{deed.answer['ref']} gives other bytes than it was given")
        elif deed.answer and calls[call]:
            proof.problems.append(f"{call} was acknowledged as {deed.answer} and is another")
    proof.checked["results"] = len(paths)


def _tasks(proof: Proof, con: apsw.Connection, deeds: Iterable[Entry], folder: Path) -> None:
    rows: Any = con.execute("SELECT number, status, text FROM canvas ORDER BY number").fetchall()
    status = {number: status for number, status, _ in rows}
    for deed in deeds:
        if deed.kind == "complete":
            done = status.get(int(deed.doing["canvas"])) == "done"
            proof.once("tasks done", deed.doing["canvas"], int(done), acknowledged=deed.answer is not None)
        elif deed.kind in ("fold", "distill"):
            proof.acknowledged[{"fold": "foldings", "distill": "distillings"}[deed.kind]] += deed.answer is not None
    for number, _, text in rows:
        try:
            if render(parse(text)) != text:
                proof.problems.append(f"canvas {number} does not read as it is written")
        except McpMemoryError as error:
            proof.problems.append(f"canvas {number} does not parse: {error}")
    drawn = rows[:: max(1, len(rows) // _DRAWN)][:_DRAWN]
    proof.problems += [f"canvas {number}: {said}" for number, _, text in drawn for said in _mermaid(text)]
    files = {path.name for path in folder.glob("mmds/*")}
    if len(files) != len(rows):
        proof.problems.append(f"there are {len(rows)} canvases and {len(files)} files of them")
    proof.checked |= {"canvases": len(rows), "with Mermaid": len(drawn)}


def _mermaid(text: str) -> Iterator[str]:
    import mermaidx  # pyright: ignore[reportMissingTypeStubs]

    try:
        mermaidx.render(text).svg()  # pyright: ignore[reportUnknownMemberType]  not typed
    except Exception as error:  # noqa: BLE001  whatever the real one says is the finding
        yield f"Mermaid cannot read it: {error}"


def _lines(proof: Proof, con: apsw.Connection, folder: Path) -> None:
    """Compare line files with their rows; files may contain no uncommitted lines either."""
    turns = Counter((f"t{number}", bytes(sha).hex()) for number, sha in con.execute("SELECT id, sha256 FROM turn"))
    _same(
        proof, "the journal", turns, folder.glob("conversations/*.jsonl"), lambda line: (line["turn"], line["sha256"])
    )
    sessions: Any = con.execute("SELECT id, name FROM session").fetchall()
    for number, name in sessions:
        rows = con.execute("SELECT timestamp, node, ref FROM record WHERE session = ?", (number,))
        held = Counter((str(ref), str(node)) for _, node, ref in rows)
        path = folder / f"offload-{name}.jsonl"
        # A better summary is another line of the same call.
        told = {(line["timestamp"], line["node_id"], line["ref"]) for line in _json_lines(proof, path)}
        if Counter((ref, node) for _, node, ref in told) != held:
            proof.problems.append(f"{path.name} is not the records of its session")
    proof.checked["lines of the journal"] = turns.total()


def _same(
    proof: Proof, what: str, rows: Counter[Any], paths: Iterable[Path], key: Callable[[dict[str, Any]], Any]
) -> None:
    lines = Counter(key(line) for path in paths for line in _json_lines(proof, path))
    if lines != rows:
        proof.problems.append(
            f"{what} lacks {(rows - lines).total()} of its {rows.total()} rows and has {(lines - rows).total()} others"
        )


def _json_lines(proof: Proof, path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            yield json.loads(line)
        except ValueError:
            proof.problems.append(f"{path.name}:{number} is no JSON")


def _left_over(proof: Proof, home: Path) -> None:
    signs = (".tmp", ".damaged-", ".beyond-")
    # A process that was killed while it stored a result leaves its file: it was never acknowledged, and it is evidence.
    left = [path for path in home.rglob("*") if any(sign in path.name for sign in signs) and path.parent.name != "refs"]
    proof.problems += [f"{path.relative_to(home)} is left from a write that was cut short" for path in left]
