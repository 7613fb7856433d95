"""Summary stage: a model writes better summaries for large results that the synopsis could not summarise well.

Candidates are records of large results whose summary has a low score of the synopsis; summaries by an agent are never
replaced. Several go into one question. A summary with names or numbers that are neither in the result nor in its call
is refused. Each record is asked about once; refused ones stay as they are.

The record keeps its node, its ref and its call; summary and score change, in its row, in a further line of its
session's file, and on the canvas where the node still shows the old one.

The model sees a sample of each result: all its lines, shortened, where they fit; else the preview of the synopsis, and
the beginning, middle and end. A sample has little over `chars` characters whatever the size of the result. Secrets are
masked before anything is cut, because half a secret would not be recognised.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import isfinite
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import decode_text, one_line, well_formed
from mcp_memory.core.types import CanvasRow
from mcp_memory.models.metered import Applied, ModelQuestion, StageContext, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.shortterm.calls import summary_line
from mcp_memory.shortterm.canvas.flowchart import number_of, read, render
from mcp_memory.shortterm.replies import commit, invented, numbers
from mcp_memory.shortterm.synopsis.page import clean, clip
from mcp_memory.shortterm.synopsis.synopsis import synopsise
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Amended, Summaries, ThinRecord, Work
from mcp_memory.suspicion.flags import flags

_HEAD, _MIDDLE, _TAIL = 0.3, 0.1, 0.2  # the rest is for what a program found
_MARGIN = 6_000
"""Characters masked around a sample: the longest secret, a private key, has some 3,000."""
_WIDTHS = (900, 450, 220, 110, 80)
"""To how many characters lines may be cut for all of them to be shown: pages and lists of hits have a few long ones."""
_CUT_UP_TO = 100_000


@dataclass(frozen=True, slots=True)
class Sample:
    """`whole`: there is nothing else in the result."""

    text: str
    whole: bool


def sample(data: bytes, *, chars: int, tool: str, arguments: object = None, task: str = "") -> Sample:
    """Return a sample of a result, in some `chars` characters. Bytes that are not UTF-8 become U+FFFD.

    The preview in it prefers words of the call and the task.
    """
    text = decode_text(data)
    text = data.decode("utf-8", "replace") if text is None or not well_formed(text) else text
    if len(text) <= chars:
        return Sample(_readable(text).strip("\n"), whole=True)
    if len(text) <= _CUT_UP_TO:
        lines = [line for line in _readable(text).split("\n") if line.strip()]
        for width in _WIDTHS:
            cut = "\n".join(clip(line, width) for line in lines)
            if len(cut) <= chars:
                return Sample(f"[all lines, cut after {width} characters]\n{cut.strip(chr(10))}", whole=False)
    head, middle, tail = (round(chars * share) for share in (_HEAD, _MIDDLE, _TAIL))
    start, last = (len(text) - middle) // 2, len(text) - tail
    room = chars - head - middle - tail
    parts = [
        ("found in it", synopsise(mask(text), tool=tool, arguments=arguments, talk=task, budget_chars=room).preview),
        ("beginning", _readable(text[: head + _MARGIN])[:head]),
        (f"middle, line {_line_at(text, start):,} on", _within(text, start, middle)),
        ("end", _readable(text[max(0, last - _MARGIN) :])[-tail:]),
    ]
    return Sample("\n".join(f"[{name}]\n{shown.strip(chr(10))}" for name, shown in parts if shown.strip()), whole=False)


def _readable(text: str) -> str:
    return clean(mask(text))


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _within(text: str, start: int, size: int) -> str:
    before = max(0, start - _MARGIN)
    skipped = len(_readable(text[before:start]))
    return _readable(text[before : start + size + _MARGIN])[skipped : skipped + size]


AT_ONCE = 8
FRESH = timedelta(days=3)
"""Records of tasks untouched for longer are seldom read again."""
LOW, LARGE = 5, 800
"""The highest score, and the fewest tokens, of a result whose line is worth a question."""

_SHOWN = 2_400
"""Characters of a result in the question: eight of them come to some 6,000 tokens."""
_READ = 1_000_000
"""Bytes at the beginning and at the end of a result in which the names of its line are looked for."""
_UNSEEN = 8
"""The best score of a line by somebody who has not seen all of the result."""
_ANSWER_TOKENS = 2_000


class SummaryBasis(BaseModel):
    """The records of one question, by number; all up to `upto` were considered."""

    after: int
    upto: int
    records: list[int]


def _whole(value: Any) -> Any:
    """`6.5` and `"result 14"` are numbers too."""
    found = re.search(r"\d+", value) if isinstance(value, str) else None
    return int(found[0]) if found else round(value) if isinstance(value, float) and isfinite(value) else value


def _text(value: Any) -> Any:
    return "" if value is None else value


class SummaryLine(BaseModel):
    id: Annotated[int, BeforeValidator(_whole), Field(description="Of the result")]
    summary: Annotated[str, BeforeValidator(_text), Field(description="Its line, at most 180 characters")]
    score: Annotated[
        int, BeforeValidator(_whole), Field(description="0 to 10: how well the line can stand in for the result")
    ]


class SummaryReply(BaseModel):
    """A line for each result."""

    summaries: list[SummaryLine]


def thin(store: Store, space: str, now: datetime, *, limit: int = AT_ONCE) -> list[ThinRecord]:
    """Return the next records that no model was asked about, oldest first."""
    return store.thin_records(
        space,
        after=_position(store, space),
        since=now - FRESH,
        most_score=LOW,
        least_tokens=LARGE,
        limit=limit,
    )


def _position(store: Store, space: str) -> int:
    state = store.stage_states(space).get("summaries")
    return state.position if state else 0


def plan(context: StageContext[Store], *, session: str | None, smaller: int) -> SummaryBasis | None:
    """Return the next few records with a poor line."""
    after = _position(context.store, context.space)
    numbers = [
        each.number for each in thin(context.store, context.space, context.now, limit=max(1, AT_ONCE >> smaller))
    ]
    return SummaryBasis(after=after, upto=numbers[-1], records=numbers) if numbers else None


# --- the question ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ShownRecord:
    """A record as the question has it."""

    number: int
    of: ThinRecord
    task: str
    sample: Sample
    own: str
    """Its arguments and the result."""
    way: str
    """The canvas that it is on."""

    def known(self) -> str:
        """Return all that a line may take its numbers from, and most of its names."""
        record = self.of.record
        return "\n".join([record.tool_call, record.summary, self.task, self.of.then, self.sample.text, self.own])


def question(context: StageContext[Store], basis: SummaryBasis) -> ModelQuestion[SummaryReply] | None:
    """Put the records into words; None where all of them were forgotten or summarised since."""
    shown = _shown(context, basis)
    if not shown:
        return None
    return ModelQuestion(
        purpose="summaries",
        messages=prompt("summaries", results="\n\n".join(map(_result, shown))),
        reply=SummaryReply,
        max_tokens=_ANSWER_TOKENS,
    )


def _shown(context: StageContext[Store], basis: SummaryBasis) -> list[_ShownRecord]:
    store, space = context.store, context.space
    shown = list[_ShownRecord]()
    for each in store.summarised_by_program(space, basis.records):
        try:
            ref, data = store.ref(space, each.record.ref), store.read_ref(space, each.record.ref)
        except (NotFound, Damaged):
            continue  # `doctor` tells of it
        row = store.canvas(space, number_of(each.record.node_id))
        task = _goal(row)
        raw = data if len(data) <= 2 * _READ else data[:_READ] + data[-_READ:]
        seen = sample(data, chars=_SHOWN, tool=ref.tool, arguments=ref.arguments, task=task)
        own = f"{ref.arguments}\n{raw.decode('utf-8', 'replace')}"
        shown.append(_ShownRecord(each.number, each, task, seen, own, row.text))
    return shown


def _goal(row: CanvasRow) -> str:
    try:
        return read(row).task_goal
    except Damaged:
        return row.label


def _result(shown: _ShownRecord) -> str:
    record = shown.of.record
    then = f" then={_quoted(shown.of.then)}" if shown.of.then else ""
    seen = "all of it" if shown.sample.whole else "a part"
    return (
        f'<result id="{shown.number}" call={_quoted(record.tool_call)} task={_quoted(shown.task)}{then}'
        f' tokens="{record.tokens_raw:,}" shown="{seen}">\n'
        f"<line>{_fenced(record.summary)}</line>\n{_fenced(shown.sample.text)}\n</result>"
    )


def _quoted(text: str) -> str:
    return '"' + _fenced(one_line(text, 200)).replace('"', "'") + '"'


def _fenced(text: str) -> str:
    return fenced(text, "results?", "line")


# --- the answer -----------------------------------------------------------------------------------


def apply(context: StageContext[Store], work: Work, basis: SummaryBasis, reply: SummaryReply | None) -> Applied:
    """Keep the lines that hold. InvalidInput where none of them does."""
    shown = {each.number: each for each in _shown(context, basis)} if reply else {}
    lines = {each.id: each for each in reversed(reply.summaries)} if reply else {}
    others = "\n".join(f"{each.sample.text}\n{each.way}" for each in shown.values())
    amended, kept, refused = list[Amended](), list[str](), list[str]()
    for number, one in shown.items():
        fault = _fault(lines.get(number), one, others)
        if fault:
            refused.append(f"result {number}: {fault}; its line stays.")
            continue
        amended.append(_amended(lines[number], one))
        kept.append(f"{one.of.record.node_id} {one.of.record.ref}: {amended[-1].summary}")
    if shown and not amended:
        raise InvalidInput(f"No line can be kept. {' '.join(refused)}")
    refused += [f"result {id}: it was not asked about." for id in lines if id not in basis.records]
    outcome = {"results": len(basis.records), "summarised": len(amended), "refused": len(refused)}

    def store() -> None:
        context.store.commit(
            context.space,
            work.id,
            Summaries(amended=amended, canvases=_following(context, shown, amended), upto=basis.upto),
            outcome=outcome,
            now=context.now,
        )

    commit(context, work, store)
    return Applied(outcome=outcome, kept=kept, refused=refused)


def _amended(line: SummaryLine, shown: _ShownRecord) -> Amended:
    best = 10 if shown.sample.whole else _UNSEEN
    return Amended(number=shown.number, summary=summary_line(line.summary), score=max(0, min(best, line.score)))


def _fault(line: SummaryLine | None, shown: _ShownRecord, others: str) -> str | None:
    """Return why a line cannot be kept. Names may be known from the task's other results, numbers may not."""
    if line is None:
        return "nothing was said of it"
    text = summary_line(line.summary)
    if not text:
        return "its line is empty"
    if flags(text, "tool"):
        return "it reads like an instruction"
    strange = invented(line.summary, shown.known())
    strange = [*numbers(strange), *invented(" ".join(strange), f"{shown.known()}\n{others}")] if strange else []
    if strange:
        return f"{', '.join(dict.fromkeys(strange))} stands neither in the result nor in its call"
    return None


def _following(
    context: StageContext[Store], shown: dict[int, _ShownRecord], amended: Sequence[Amended]
) -> list[CanvasRow]:
    """Return the canvases whose nodes show an old line, with the new one in its place."""
    told = [(shown[each.number].of, each) for each in amended]
    lines = {(one.record.node_id, one.record.summary): each for one, each in told if one.newest}
    changed = list[CanvasRow]()
    for number in sorted({number_of(node) for node, _ in lines}):
        row = context.store.canvas(context.space, number)
        try:
            canvas = read(row)
        except Damaged:
            continue
        nodes = tuple(
            replace(node, summary=lines[node.id, node.summary].summary) if (node.id, node.summary) in lines else node
            for node in canvas.nodes
        )
        if nodes != canvas.nodes:
            changed.append(replace(row, text=render(replace(canvas, nodes=nodes))))
    return changed


SUMMARIES = StageDefinition(
    name="summaries", basis=SummaryBasis, reply=SummaryReply, plan=plan, question=question, apply=apply
)
