"""Store a tool result: the raw bytes become a ref, a line becomes its record, a step goes on the canvas.

Guarantees: the ref, its record and the canvas land together; two writers of one canvas
both get their step; the same call with the same bytes is stored once per session.
The summary and preview come from `synopsis`, the task and the node from `canvas`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from mcp_memory.core.errors import InvalidInput, StoreUnavailable
from mcp_memory.core.secrets.masking import mask, mask_id, mask_result, mask_typed, mask_values
from mcp_memory.core.text import decode_text, is_blank, one_line, well_formed
from mcp_memory.core.types import CanvasRow, MaskedPlace, Offloaded, Record, Ref, StepStatus, Turn
from mcp_memory.shortterm.addresses import ref_address
from mcp_memory.shortterm.calls import call_line, stand_in, summary_line, title_of
from mcp_memory.shortterm.canvas.flowchart import SUMMARY_LIMIT, TITLE_LIMIT, clean, number_of, padded
from mcp_memory.shortterm.canvas.placement import call_intent
from mcp_memory.shortterm.canvas.tasks import IncomingCall, route_call
from mcp_memory.shortterm.chunks import AT_ONCE, chunks_of
from mcp_memory.shortterm.synopsis.instructions import quiet_synopsis
from mcp_memory.shortterm.synopsis.synopsis import Synopsis, synopsise
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Conflict, NewRef, OffloadedResult, Saving

if TYPE_CHECKING:
    from mcp_memory.core.token_counts import TokenCounter


MAX_BYTES = 128 * 2**20
OVER_CHARS = 1_000
"""Results from this length on are worth offloading: of a shorter one the preview and its frame are most."""
COUNTED_CHARS = 200_000
"""Longer texts are counted in even samples: a MiB would take longer than all else, and the estimate is within some 2 %
of its count."""
SAMPLES, SAMPLE_CHARS = 100, 400
TOOL_LIMIT = 100
AGAIN = "This call was offloaded before; nothing was written. Its node and ref are the same."
ATTEMPTS = 50
"""Each conflict means that another writer got its step in, so only that many writers at once can use them up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRequest:
    """A tool call with its result, and what the agent says of it; see the tool `offload_tool_result`."""

    tool_name: str
    result: str | bytes
    session: str
    arguments: object = None
    tool_call_id: str | None = None
    task: str | None = None
    step: str | None = None
    after: tuple[str, ...] = ()
    status: StepStatus | None = None
    summary: str | None = None
    preview_chars: int | None = None
    """The most characters of the preview; None: chosen by the kind and size of the result."""
    shown: str | None = None
    """What the client would have shown of the result, where it would have cut it: no more can be saved."""
    replaced: bool = False
    """Whether the stand-in replaces the result in a context. Where it does not, or that is unknown yet, the record
    counts the whole result as kept: it saves nothing."""
    keep_secrets: bool = False
    """Whether the file holds the result with its keys and passwords as they came. Previews, index and arguments are
    masked all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """The bytes of a ref's file, and what may be shown and indexed of them."""

    data: bytes
    masked: tuple[MaskedPlace, ...]
    """Where in `data` a mask replaces a secret; none where secrets are kept."""
    shown: bytes


def raw(data: bytes, *, keep_secrets: bool) -> Raw:
    """Return the result to keep, its secrets masked; with `keep_secrets` its bytes as they came."""
    shown, secrets = mask_result(data)
    if keep_secrets:
        return Raw(data=data, masked=(), shown=shown)
    places = tuple(MaskedPlace(start=one.start, end=one.end, kind=one.kind) for one in secrets)
    return Raw(data=shown, masked=places, shown=shown)


def offload(
    store: Store,
    space: str,
    *,
    request: OffloadRequest,
    counter: TokenCounter,
    now: datetime,
    goal_hint: str = "",
    talk: str = "",
    said: Sequence[Turn] = (),
    books: bool = False,
) -> Offloaded:
    """Store a tool result with its record, step, index and saving, in one transaction; return its stand-in.

    `goal_hint` (the user's request) names a new task where the agent names none; the synopsis looks for words of
    `talk`, the recent conversation; `said` are its turns, which may end the task or begin another. All may be empty.
    With `books`, the saving of a replaced result is entered in the ledger. A result over `chunks.AT_ONCE` waits for its
    index.
    Raises InvalidInput for a result that is empty or over 128 MB, a path-like task, or an unknown node id.
    """
    request, result = _received(request)
    synopsis, text = _understood(request, result, talk)
    agents_summary = summary_line(request.summary or "")
    call = IncomingCall(
        session=request.session,
        tool=request.tool_name,
        title=title_of(request.tool_name, request.arguments),
        summary=agents_summary or summary_line(synopsis.summary),
        intent=call_intent(request.tool_name, request.arguments, failed=_failed(synopsis)),
        now=now,
        task=request.task,
        step=request.step,
        after=request.after,
        status=request.status,
        goal_hint=mask(goal_hint),
        said=tuple(said),
    )
    new = _new_ref(request, result, synopsis.content_type, now)
    tokens_raw = tokens_of(text if request.shown is None else request.shown, counter)
    length = len(text)
    del text  # of a large result there are few copies in memory
    indexed = list(chunks_of(new.data)) if len(new.data) <= AT_ONCE else None

    def tokens_kept(node: str) -> int:
        return counter.count(stand_in(node=node, ref=new.id, summary=call.summary, preview=synopsis.preview))

    for _ in range(ATTEMPTS):
        routed = route_call(store, space, call)  # refuses before anything is written
        kept = tokens_kept(routed.node)
        record = Record(
            timestamp=now,
            node_id=routed.node,
            tool_call=call_line(request.tool_name, request.arguments),
            summary=call.summary,
            result_ref="",
            tool_call_id=request.tool_call_id,
            offloaded=True,
            session=request.session,
            score=max(0, min(10, synopsis.score)),
            tokens_raw=tokens_raw,
            tokens_kept=kept if request.replaced else tokens_raw,
            ref=new.id,
            summary_by="agent" if agents_summary else "synopsis",
        )
        saving = Saving(session=request.session, at=now, kind="offload", saved=tokens_raw, spent=kept)
        try:
            stored, is_new = store.commit_step(
                space,
                record=record,
                canvas=routed.row,
                expected=routed.row.version,
                step=routed.step,
                result=OffloadedResult(
                    new=new, chunks=indexed, left=routed.left, saving=saving if books and request.replaced else None
                ),
            )
        except Conflict:
            continue
        if not is_new:
            row = store.canvas(space, number_of(stored.node_id))
            return _answer(store, row, replace(stored, tokens_kept=tokens_kept(stored.node_id)), synopsis, [AGAIN])
        notes: list[str] = []
        if kept >= tokens_raw and not agents_summary:  # a conclusion is worth a step, whatever it saves
            notes.append(f"The result is small ({tokens_raw} tokens): offloading it saved nothing.")
        elif length > COUNTED_CHARS and request.shown is None:
            notes.append(f"tokens_raw is an estimate: the result has more than {COUNTED_CHARS:,} characters.")
        return _answer(store, routed.row, replace(stored, tokens_kept=kept), synopsis, [*notes, *_shortened(request)])
    ref = store.put_ref(space, new)
    raise StoreUnavailable(
        f"The canvas is being written to by many others at once. The result is safe as {ref.id}; "
        "call again with the same tool_call_id and result to give it its place."
    )


def keep(store: Store, space: str, *, request: OffloadRequest, now: datetime) -> Ref:
    """Store a past tool result, produced at `now`, as a ref without a canvas; a forgotten one stays forgotten.

    Raises InvalidInput as `offload` does.
    """
    request, result = _received(request)
    synopsis, _ = _understood(request, result, "")
    return store.put_ref(space, _new_ref(request, result, synopsis.content_type, now), refuse=False)


def _answer(store: Store, row: CanvasRow, record: Record, synopsis: Synopsis, notes: Sequence[str]) -> Offloaded:
    return Offloaded(
        node=record.node_id,
        ref=record.ref,
        session=record.session,
        task=row.label,
        summary=record.summary,
        preview=synopsis.preview,
        kind=synopsis.kind,
        tokens_raw=record.tokens_raw,
        tokens_kept=record.tokens_kept,
        path=ref_address(store, record.ref, record.result_ref),
        canvas=padded(row.number),
        note=" ".join(notes) or None,
    )


# --- the result -------------------------------------------------------------------------------------


def _checked(request: OffloadRequest) -> bytes:
    """Return the bytes of the result. Lone surrogates of a str survive, as three bytes each."""
    if not clean(request.tool_name, 60):
        raise InvalidInput("tool_name is empty. Name the tool whose result this is.")
    if request.status not in (None, *get_args(StepStatus)):
        known = ", ".join(get_args(StepStatus))
        raise InvalidInput(f"status {one_line(str(request.status), 40)!r} is unknown. Allowed: {known}.")
    if not well_formed(request.tool_call_id or ""):
        raise InvalidInput("tool_call_id has a lone surrogate. Pass the id as the client gave it.")
    if not isinstance(request.result, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"result is {type(request.result).__name__}. Pass the tool's output as text, or its bytes.")
    try:
        json.dumps(request.arguments)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(
            "arguments are not JSON, or nested too deep. Pass them as the tool was given them."
        ) from None
    if not request.result:
        raise InvalidInput("result is empty: there is nothing to offload. Pass the tool's output, whole.")
    data = request.result
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass") if len(data) <= MAX_BYTES else bytes(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidInput(
            f"result is over {MAX_BYTES // 2**20} MB. Write it to a file and offload the part that is needed, "
            "or split it into several calls with the same step."
        )
    return data


def _shortened(request: OffloadRequest) -> Iterator[str]:
    """Yield which arguments were cut, and to what length."""
    given = (
        ("summary", request.summary, SUMMARY_LIMIT),
        ("step", request.step, TITLE_LIMIT),
        ("tool_name", request.tool_name, TOOL_LIMIT),
    )
    cut = [f"{name} to {limit}" for name, text, limit in given if text and len(clean(text, len(text))) > limit]
    if cut:
        yield f"Cut to what a node holds: {', '.join(cut)} characters."


def _received(request: OffloadRequest) -> tuple[OffloadRequest, Raw]:
    """Return a request without secrets in its texts, arguments and result, and the result as it may be kept."""
    result = raw(_checked(request), keep_secrets=request.keep_secrets)
    id = request.tool_call_id
    masked = replace(
        request,
        tool_name=mask(request.tool_name),
        task=_typed(request.task),
        step=_typed(request.step),
        after=tuple(map(mask_typed, request.after)),
        summary=_typed(request.summary),
        tool_call_id=None if id is None else mask_id(id),
        arguments=mask_values(request.arguments),
        result=result.shown,
    )
    return masked, result


def _typed(text: str | None) -> str | None:
    """Return what may be stored of a text; None for one that is nothing but a private passage."""
    return text if text is None or is_blank(text) else mask_typed(text) or None


def _understood(request: OffloadRequest, result: Raw, talk: str) -> tuple[Synopsis, str]:
    """Return the synopsis, and the text whose tokens the agent saves."""
    text = decode_text(result.shown)
    if text is None:
        return _binary(result.shown), result.shown.decode("latin-1")

    def describe(read: str) -> Synopsis:
        return synopsise(
            read, tool=request.tool_name, arguments=request.arguments, talk=talk, budget_chars=request.preview_chars
        )

    made = quiet_synopsis(text, describe, budget_chars=request.preview_chars)
    preview = mask(made.preview, prose=False).encode("utf-8", "replace").decode()
    return replace(made, preview=preview), text


def tokens_of(text: str, counter: TokenCounter) -> int:
    """Count the tokens of a text; those of a very long one are estimated from samples."""
    if len(text) <= COUNTED_CHARS:
        return counter.count(text)
    step = len(text) // SAMPLES
    counted = sum(counter.count(text[start : start + SAMPLE_CHARS]) for start in range(0, SAMPLES * step, step))
    return round(counted * len(text) / (SAMPLES * SAMPLE_CHARS))


def _binary(data: bytes) -> Synopsis:
    kind = next((name for magic, name in _MAGIC.items() if data.startswith(magic)), "binary data")
    summary = f"{kind}, {len(data):,} bytes, not text"
    preview = f"{summary}\nfirst bytes: {data[:32].hex(' ')}"
    return Synopsis(kind="binary", content_type="application/octet-stream", summary=summary, preview=preview, score=2)


_MAGIC = {
    b"\x89PNG": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"%PDF": "PDF document",
    b"PK\x03\x04": "ZIP archive",
    b"\x1f\x8b": "gzip archive",
    b"SQLite format 3": "SQLite database",
    b"\x7fELF": "ELF program",
}


def _new_ref(request: OffloadRequest, result: Raw, content_type: str, now: datetime) -> NewRef:
    return NewRef(
        data=result.data,
        tool=clean(request.tool_name, TOOL_LIMIT),
        arguments=request.arguments,
        tool_call_id=request.tool_call_id,
        session=request.session,
        timestamp=now,
        content_type=content_type,
        masked=result.masked,
    )


_FAILED = re.compile(r"[1-9]\d* (?:failed|errors?)\b", re.IGNORECASE)


def _failed(synopsis: Synopsis) -> bool:
    """Return whether the result says that the call did not work."""
    return synopsis.kind == "traceback" or (synopsis.kind == "tests" and bool(_FAILED.search(synopsis.summary)))
