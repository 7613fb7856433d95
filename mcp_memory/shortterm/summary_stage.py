"""Summary stage: a model writes better summaries for large results that the synopsis could not summarise well.

Candidates are records of large results whose synopsis has a low score; summaries by an agent are never replaced. One
question covers several records. A summary with names or numbers that are neither in the result nor in its call is
refused. The model is asked once about each record.

Summary and score change in the record's row, in a further line of its session's file, and on the canvas if the node
still shows the old summary.

The model sees a sample of each result: all its lines, shortened if necessary; or, if they do not fit, the preview of
the synopsis and the beginning, middle and end. A sample has little over `chars` characters whatever the size of the
result. Secrets are masked before anything is cut, because half a secret would not be recognised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
from mcp_memory.shortterm.canvas.flowchart import goal_of, number_of, read, render
from mcp_memory.shortterm.replies import Text, commit, invented, numbers
from mcp_memory.shortterm.synopsis.page import clean, clip
from mcp_memory.shortterm.synopsis.synopsis import synopsise
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, job_rows, record_rows, ref_rows, stage_outputs
from mcp_memory.store.values import Amended, Summaries, ThinRecord, Work
from mcp_memory.suspicion.flags import flags

_HEAD, _MIDDLE, _TAIL = 0.3, 0.1, 0.2  # shares of a sample; the rest is for the preview
_MARGIN = 6_000
"""Characters masked around a sample: the longest secret, a private key, has some 3,000."""
_WIDTHS = (900, 450, 220, 110, 80)
"""Characters to which lines may be cut so that all are shown: pages and lists of hits have a few long lines."""
_CUT_UP_TO = 100_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Text from a result; `whole` if it is the complete result."""

    text: str
    whole: bool


def sample(data: bytes, *, chars: int, tool: str, arguments: object = None, task: str = "") -> Sample:
    """Return a sample of about `chars` characters from a result. Bytes that cannot be decoded become U+FFFD.

    The preview in a sample prefers words of the call and the task.
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
    before = max(0, start - _MARGIN)
    skipped = len(_readable(text[before:start]))
    line_number = text.count("\n", 0, start) + 1
    room = chars - head - middle - tail
    found = synopsise(mask(text), tool=tool, arguments=arguments, talk=task, budget_chars=room)
    parts = [
        ("found in it", clip(f"{found.summary}\n{found.preview}", room)),
        ("beginning", _readable(text[: head + _MARGIN])[:head]),
        (
            f"middle, line {line_number:,} on",
            _readable(text[before : start + middle + _MARGIN])[skipped : skipped + middle],
        ),
        ("end", _readable(text[max(0, last - _MARGIN) :])[-tail:]),
    ]
    return Sample("\n".join(f"[{name}]\n{shown.strip(chr(10))}" for name, shown in parts if shown.strip()), whole=False)


def _readable(text: str) -> str:
    return clean(mask(text))


AT_ONCE = 8
FRESH = timedelta(days=3)
"""Age up to which records are candidates: older records are seldom read again."""
LOW, LARGE = 5, 800
"""The highest score, and the fewest tokens, of a candidate."""

_SAMPLE_CHARS = 2_400
"""Characters of a sample in the question: eight samples have some 6,000 tokens."""
_READ = 1_000_000
"""Bytes at the beginning and at the end of a result in which names and numbers of its summary are looked up."""
_BEST_OF_SAMPLE = 8
"""The highest score of a summary if the model saw only a part of the result."""
_ANSWER_TOKENS = 2_000


class SummaryBasis(BaseModel):
    """The numbers of the records in a question, which were chosen from those after `after` up to `upto`."""

    after: int
    upto: int
    records: list[int]


def _whole(value: Any) -> Any:
    """Return the integer in a text (`14` of `"result 14"`) or a rounded float; any other value unchanged."""
    digits = re.search(r"\d+", value) if isinstance(value, str) else None
    return int(digits[0]) if digits else round(value) if isinstance(value, float) and isfinite(value) else value


class SummaryLine(BaseModel):
    id: Annotated[int, BeforeValidator(_whole), Field(description="Of the result")]
    summary: Text = Field(description="Its line, at most 180 characters")
    score: Annotated[
        int, BeforeValidator(_whole), Field(description="0 to 10: how well the line can stand in for the result")
    ]


class SummaryReply(BaseModel):
    """A line for each result."""

    summaries: list[SummaryLine]


def due_records(store: Store, space: str, now: datetime, *, limit: int = AT_ONCE) -> list[ThinRecord]:
    """Return the next candidates that no model was asked about, oldest first."""
    return store.read(
        space,
        record_rows.thin_records,
        after=_position(store, space),
        since=now - FRESH,
        most_score=LOW,
        least_tokens=LARGE,
        limit=limit,
    )


def _position(store: Store, space: str) -> int:
    state = store.read(space, job_rows.stage_states).get("summaries")
    return state.position if state else 0


def plan(context: StageContext[Store], *, session: str | None, smaller: int) -> SummaryBasis | None:
    """Choose the next candidates, None if there are none. Each failed attempt (`smaller`) halves their number."""
    after = _position(context.store, context.space)
    due = due_records(context.store, context.space, context.now, limit=max(1, AT_ONCE >> smaller))
    numbers = [record.number for record in due]
    return SummaryBasis(after=after, upto=numbers[-1], records=numbers) if numbers else None


# --- the question ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A record with the texts about it in the question."""

    thin: ThinRecord
    task: str
    sample: Sample
    raw: str
    """The arguments and the result; of a large result, its beginning and end."""
    canvas_text: str

    def source(self) -> str:
        """Return the texts from which a summary may take numbers and names; names may also be from other results."""
        record = self.thin.record
        return "\n".join([record.tool_call, record.summary, self.task, self.thin.then, self.sample.text, self.raw])


def question(context: StageContext[Store], basis: SummaryBasis) -> ModelQuestion[SummaryReply] | None:
    """Describe the records for the model; None if all were forgotten or summarised since."""
    candidates = _candidates(context, basis)
    if not candidates:
        return None
    return ModelQuestion(
        purpose="summaries",
        messages=prompt("summaries", results="\n\n".join(map(_result, candidates))),
        reply=SummaryReply,
        max_tokens=_ANSWER_TOKENS,
    )


def _candidates(context: StageContext[Store], basis: SummaryBasis) -> list[_Candidate]:
    store, space = context.store, context.space
    candidates = list[_Candidate]()
    for thin in store.read(space, record_rows.summarised_by_program, basis.records):
        try:
            ref, data = (
                store.read(space, ref_rows.by_id, thin.record.ref),
                store.read(space, ref_rows.read_bytes, thin.record.ref),
            )
        except (NotFound, Damaged):
            continue  # `doctor` reports it
        row = store.read(space, canvas_rows.canvas, number_of(thin.record.node_id))
        task = goal_of(row.text) or row.label
        part = data if len(data) <= 2 * _READ else data[:_READ] + data[-_READ:]
        shown = sample(data, chars=_SAMPLE_CHARS, tool=ref.tool, arguments=ref.arguments, task=task)
        raw = f"{ref.arguments}\n{part.decode('utf-8', 'replace')}"
        candidates.append(_Candidate(thin, task, shown, raw, row.text))
    return candidates


def _result(candidate: _Candidate) -> str:
    thin, record = candidate.thin, candidate.thin.record
    then = f" then={_attribute(thin.then)}" if thin.then else ""
    shown = "all of it" if candidate.sample.whole else "a part"
    return (
        f'<result id="{thin.number}" call={_attribute(record.tool_call)} task={_attribute(candidate.task)}{then}'
        f' tokens="{record.tokens_raw:,}" shown="{shown}">\n'
        f"<line>{_fence(record.summary)}</line>\n{_fence(candidate.sample.text)}\n</result>"
    )


def _attribute(text: str) -> str:
    return '"' + _fence(one_line(text, 200)).replace('"', "'") + '"'


def _fence(text: str) -> str:
    return fenced(text, "results?", "line")


# --- the answer -----------------------------------------------------------------------------------


def apply(context: StageContext[Store], work: Work, basis: SummaryBasis, reply: SummaryReply | None) -> Applied:
    """Store the valid summaries, also on the canvases, and close the job.

    Raises InvalidInput if all summaries are refused, Conflict if the job is no longer open.
    """
    candidates = _candidates(context, basis) if reply else []
    lines = {line.id: line for line in reversed(reply.summaries)} if reply else {}
    others = "\n".join(f"{candidate.sample.text}\n{candidate.canvas_text}" for candidate in candidates)
    amended, kept, refused = list[Amended](), list[str](), list[str]()
    replaced: dict[tuple[str, str], str] = {}
    """New summaries by node and old summary."""
    for candidate in candidates:
        number, record, line = candidate.thin.number, candidate.thin.record, lines.get(candidate.thin.number)
        fault = _fault(line, candidate, others)
        if fault or line is None:
            refused.append(f"result {number}: {fault}; its line stays.")
            continue
        best = 10 if candidate.sample.whole else _BEST_OF_SAMPLE
        summary = summary_line(line.summary)
        amended.append(Amended(number=number, summary=summary, score=max(0, min(best, line.score))))
        kept.append(f"{record.node_id} {record.ref}: {summary}")
        if candidate.thin.newest:
            replaced[record.node_id, record.summary] = summary
    if candidates and not amended:
        raise InvalidInput(f"No line can be kept. {' '.join(refused)}")
    refused += [f"result {id}: it was not asked about." for id in lines if id not in basis.records]
    outcome = {"results": len(basis.records), "summarised": len(amended), "refused": len(refused)}

    def store() -> None:
        context.store.write(
            context.space,
            stage_outputs.commit,
            work.id,
            Summaries(amended=amended, canvases=_changed_canvases(context, replaced), upto=basis.upto),
            outcome=outcome,
            now=context.now,
        )

    commit(context, work, store)
    return Applied(outcome=outcome, kept=kept, refused=refused)


def _fault(line: SummaryLine | None, candidate: _Candidate, others: str) -> str | None:
    """Return why a summary is refused; None if it is valid.

    Its names may be from other results of the question or their canvases, its numbers may not.
    """
    if line is None:
        return "the reply has no line for it"
    text = summary_line(line.summary)
    if not text:
        return "its line is empty"
    if flags(text, "tool"):
        return "it reads like an instruction"
    source = candidate.source()
    strange = invented(line.summary, source)
    strange = [*numbers(strange), *invented(" ".join(strange), f"{source}\n{others}")] if strange else []
    if strange:
        return f"{', '.join(dict.fromkeys(strange))} is neither in the result nor in its call"
    return None


def _changed_canvases(context: StageContext[Store], replaced: Mapping[tuple[str, str], str]) -> list[CanvasRow]:
    """Return the canvases whose nodes show a replaced summary, with the new summary."""
    changed = list[CanvasRow]()
    for number in sorted({number_of(node) for node, _ in replaced}):
        row = context.store.read(context.space, canvas_rows.canvas, number)
        try:
            canvas = read(row)
        except Damaged:
            continue
        nodes = tuple(
            replace(node, summary=replaced.get((node.id, node.summary), node.summary)) for node in canvas.nodes
        )
        if nodes != canvas.nodes:
            changed.append(replace(row, text=render(replace(canvas, nodes=nodes))))
    return changed


SUMMARIES = StageDefinition(
    name="summaries", basis=SummaryBasis, reply=SummaryReply, plan=plan, question=question, apply=apply
)
