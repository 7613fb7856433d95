"""Stores a tool result: its bytes as a ref, one line as its record, a step on the canvas.

Ref, record and canvas are committed together; two concurrent writers of one canvas both get their step; the same call
with the same bytes is stored once per session. Summary and preview come from `synopsis`, task and node from `canvas`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, get_args

from mcp_memory.core.errors import InvalidInput, StoreUnavailable
from mcp_memory.core.secrets.masking import mask, mask_id, mask_result, mask_typed, mask_values
from mcp_memory.core.text import decode_text, is_blank, one_line, well_formed
from mcp_memory.core.types import CanvasRow, MaskedPlace, Offloaded, Record, Ref, StepStatus, Turn
from mcp_memory.shortterm.calls import call_line, stand_in, summary_line, title_of
from mcp_memory.shortterm.canvas.flowchart import SUMMARY_LIMIT, TITLE_LIMIT, clean, number_of, padded
from mcp_memory.shortterm.canvas.placement import call_intent
from mcp_memory.shortterm.canvas.tasks import IncomingCall, route_call
from mcp_memory.shortterm.chunks import AT_ONCE, chunks_of
from mcp_memory.shortterm.synopsis.instructions import quiet_synopsis
from mcp_memory.shortterm.synopsis.synopsis import Synopsis, synopsise
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, record_rows, ref_rows, word_index
from mcp_memory.store.values import Conflict, NewRef, OffloadedResult, Saving

if TYPE_CHECKING:
    from mcp_memory.core.token_counts import TokenCounter


MAX_BYTES = 128 * 2**20
OVER_CHARS = 1_000
"""Length of the shortest results worth offloading; the stand-in of a shorter result is as long as the result."""
COUNTED_CHARS = 200_000
"""Tokens of longer texts are estimated from samples, within some 2 %: counting a MiB would take longer than all other
steps."""
SAMPLES, SAMPLE_CHARS = 100, 400
TOOL_LIMIT = 100
AGAIN = "This call was offloaded before; nothing was written. Its node and ref are the same."
ATTEMPTS = 50
"""Attempts to commit a step. Each conflict means that another writer has committed a step."""


_FAILED = re.compile(r"[1-9]\d* (?:failed|errors?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRequest:
    """A tool call with its result and the agent's arguments; see the tool `offload_tool_result`."""

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
    """The most characters of the preview; None: depends on the kind and size of the result."""
    shown: str | None = None
    """The part that the client would have shown of a result that it cuts; only the tokens of this part can be saved."""
    replaced: bool = False
    """Whether the stand-in is known to replace the result in a context. Otherwise no saving is recorded."""
    keep_secrets: bool = False
    """Whether to store the result with its secrets. Previews, index and arguments are masked in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """The bytes of a ref's file, and their masked form, which may be shown and indexed."""

    data: bytes
    masked: tuple[MaskedPlace, ...]
    """The masked places in `data`; empty if secrets are kept."""
    shown: bytes


def raw(data: bytes, *, keep_secrets: bool) -> Raw:
    """Return the bytes to store: masked, or unchanged with `keep_secrets`."""
    shown, secrets = mask_result(data)
    if keep_secrets:
        return Raw(data=data, masked=(), shown=shown)
    places = tuple(MaskedPlace(start=secret.start, end=secret.end, kind=secret.kind) for secret in secrets)
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
    turns: Sequence[Turn] = (),
    books: bool = False,
) -> Offloaded:
    """Store a tool result with its record, step, index and saving, in one transaction; return its stand-in.

    `goal_hint` (the user's request) names a new task if the agent does not; the synopsis prefers words of `talk`, the
    recent conversation; `turns` are its last turns, which may end the task or begin a new task. All three may be empty.
    With `books`, the saving of a replaced result is recorded in the ledger. A result over `chunks.AT_ONCE` is indexed
    later.
    A result that was stored before is not stored again; `note` then says so. Raises InvalidInput for an invalid
    request, such as an empty result, a path-like task or an unknown node id; StoreUnavailable after too many conflicts.
    """
    request, result = _mask_request(request)
    synopsis, text = _describe(request, result, talk)
    agents_summary = summary_line(request.summary or "")
    is_failure = synopsis.kind == "traceback" or (synopsis.kind == "tests" and _FAILED.search(synopsis.summary))
    call = IncomingCall(
        session=request.session,
        tool=request.tool_name,
        title=title_of(request.tool_name, request.arguments),
        summary=agents_summary or summary_line(synopsis.summary),
        intent=call_intent(request.tool_name, request.arguments, failed=bool(is_failure)),
        now=now,
        task=request.task,
        step=request.step,
        after=request.after,
        status=request.status,
        goal_hint=mask(goal_hint),
        turns=tuple(turns),
    )
    new = _new_ref(request, result, synopsis.content_type, now)
    tokens_raw = tokens_of(text if request.shown is None else request.shown, counter)
    length = len(text)
    del text  # few copies of a large result in memory
    indexed = list(chunks_of(new.data)) if len(new.data) <= AT_ONCE else None
    terms = word_index.terms_of_chunks(indexed or ())

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
            stored, is_new = store.write(
                space,
                record_rows.commit_step,
                record=record,
                canvas=routed.row,
                expected=routed.row.version,
                step=routed.step,
                result=OffloadedResult(
                    new=new, chunks=indexed, left=routed.left, saving=saving if books and request.replaced else None
                ),
                terms=terms,
            )
        except Conflict:
            continue
        if not is_new:
            row = store.read(space, canvas_rows.canvas, number_of(stored.node_id))
            return _answer(store, row, replace(stored, tokens_kept=tokens_kept(stored.node_id)), synopsis, [AGAIN])
        notes: list[str] = []
        if kept >= tokens_raw and not agents_summary:  # an agent's summary is worth a step, whatever it saves
            notes.append(f"The result is small ({tokens_raw} tokens): offloading it saved nothing.")
        elif length > COUNTED_CHARS and request.shown is None:
            notes.append(f"tokens_raw is an estimate: the result has more than {COUNTED_CHARS:,} characters.")
        if cut := _cut_arguments(request):
            notes.append(f"Cut to the limits of a node: {cut} characters.")
        return _answer(store, routed.row, replace(stored, tokens_kept=kept), synopsis, notes)
    ref = store.write(space, ref_rows.put, new)
    raise StoreUnavailable(
        f"The canvas is being written to by many others at once. The result is safe as {ref.id}; "
        "call again with the same tool_call_id and result to give it its place."
    )


def keep(store: Store, space: str, *, request: OffloadRequest, now: datetime) -> Ref:
    """Store a past tool result, produced at `now`, as a ref without a canvas; a forgotten result stays forgotten.

    Raises InvalidInput as `offload` does.
    """
    request, result = _mask_request(request)
    synopsis, _ = _describe(request, result, "")
    return store.write(space, ref_rows.put, _new_ref(request, result, synopsis.content_type, now), refuse=False)


def ref_address(store: Store, id: str, path: str) -> str:
    """Return the address of a ref: its path in the folder of the space, or a resource URI if the store has no files."""
    return path if store.has_files else f"memory://ref/{id}"


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


def _check(request: OffloadRequest) -> bytes:
    """Check a request and return the bytes of its result; a lone surrogate becomes three bytes. Raises InvalidInput."""
    if not clean(request.tool_name, 60):
        raise InvalidInput("tool_name is empty. Name the tool whose result this is.")
    if request.status not in (None, *get_args(StepStatus)):
        allowed = ", ".join(get_args(StepStatus))
        raise InvalidInput(f"status {one_line(str(request.status), 40)!r} is unknown. Allowed: {allowed}.")
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


def _cut_arguments(request: OffloadRequest) -> str:
    """Return which arguments are too long, and their limits: `summary to 200, step to 80`."""
    limited = (
        ("summary", request.summary, SUMMARY_LIMIT),
        ("step", request.step, TITLE_LIMIT),
        ("tool_name", request.tool_name, TOOL_LIMIT),
    )
    too_long = [(name, limit) for name, text, limit in limited if text and len(clean(text, len(text))) > limit]
    return ", ".join(f"{name} to {limit}" for name, limit in too_long)


def _mask_request(request: OffloadRequest) -> tuple[OffloadRequest, Raw]:
    """Return the request with masked texts, arguments and result, and the bytes to store."""
    result = raw(_check(request), keep_secrets=request.keep_secrets)
    id = request.tool_call_id
    masked = replace(
        request,
        tool_name=mask(request.tool_name),
        task=_mask_text(request.task),
        step=_mask_text(request.step),
        after=tuple(map(mask_typed, request.after)),
        summary=_mask_text(request.summary),
        tool_call_id=None if id is None else mask_id(id),
        arguments=mask_values(request.arguments),
        result=result.shown,
    )
    return masked, result


def _mask_text(text: str | None) -> str | None:
    """Return the text without secrets and private passages; None if nothing remains."""
    return text if text is None or is_blank(text) else mask_typed(text) or None


def _describe(request: OffloadRequest, result: Raw, talk: str) -> tuple[Synopsis, str]:
    """Return the synopsis, and the masked result as text."""
    text = decode_text(result.shown)
    if text is None:
        return _describe_binary(result.shown), result.shown.decode("latin-1")
    describe = partial(
        synopsise,
        tool=request.tool_name,
        arguments=request.arguments,
        talk=talk,
        budget_chars=request.preview_chars,
    )
    synopsis = quiet_synopsis(text, describe, budget_chars=request.preview_chars)
    preview = mask(synopsis.preview, prose=False).encode("utf-8", "replace").decode()
    return replace(synopsis, preview=preview), text


def tokens_of(text: str, counter: TokenCounter) -> int:
    """Return the number of tokens of a text, estimated from samples if it is very long."""
    if len(text) <= COUNTED_CHARS:
        return counter.count(text)
    step = len(text) // SAMPLES
    counted = sum(counter.count(text[start : start + SAMPLE_CHARS]) for start in range(0, SAMPLES * step, step))
    return round(counted * len(text) / (SAMPLES * SAMPLE_CHARS))


def _describe_binary(data: bytes) -> Synopsis:
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
