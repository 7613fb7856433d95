"""Verbs of short-term memory: offloaded tool results, canvases, compressed message lists, and savings."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.secrets.masking import mask_id
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import CanvasRow, CanvasView, Expansion, Offloaded, Record, Ref, StepStatus
from mcp_memory.service.verbs.base import Verbs, in_thread
from mcp_memory.store.values import Saving, SavingKind

if TYPE_CHECKING:
    from mcp_memory.service.compression.compress import Compressed
    from mcp_memory.service.compression.plan import Level
    from mcp_memory.store.values import CanvasVersion, Saved

logger = logging.getLogger(__name__)
_NODE = re.compile(r"\d{3,9}(?:-N\d{1,9})?")


class TaskVerbs(Verbs):
    """Tool results, canvases, compression, and the ledger of savings."""

    @in_thread
    def offload_tool_result(
        self,
        tool_name: str,
        result: str | bytes,
        *,
        arguments: Any = None,
        tool_call_id: str | None = None,
        session: str | None = None,
        task: str | None = None,
        step: str | None = None,
        after: Sequence[str] = (),
        status: StepStatus | None = None,
        summary: str | None = None,
        shown: str | None = None,
        replaced: bool = False,
    ) -> Offloaded:
        """Keep a whole tool result in a file and return the stand-in that can replace it in the context.

        A saving is entered only if the program states with `replaced` that it replaces the result, or when
        `note_replaced` reports that a client did. `shown` is the part that the client would have shown, if not all.
        """
        from mcp_memory.shortterm.chunks import AT_ONCE
        from mcp_memory.shortterm.offload import OffloadRequest, offload

        name = self._session(session)
        said = self._parts.store.last_turns(self.space, name, limit=4, roles=("user", "assistant"))
        if all(turn.role != "user" for turn in said):  # the last request counts, however old
            said = [*self._parts.store.last_turns(self.space, name, limit=1, roles=("user",)), *said]
        asked = next((turn.content for turn in reversed(said) if turn.role == "user"), "")
        done = offload(
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
                shown=shown,
                replaced=replaced,
                keep_secrets=self.settings.keep_secrets,
            ),
            counter=self._parts.counter,
            now=self._parts.now().astimezone(),
            goal_hint=one_line(asked, 120),
            talk="\n".join(turn.content[:2_000] for turn in said),
            said=said,
            books=True,
        )
        if len(result) > AT_ONCE // 4:  # it may be one that waits for its index
            self._parts.stored()
        return done

    @in_thread
    def note_replaced(self, session: str, tool_call_id: str, text: str, *, at: datetime | None = None) -> None:
        """Enter the savings of a call's stored results, after their client has shown `text` for them at the time `at`.

        Only results whose stand-ins are in the text count, each once. A stand-in reaches up to the next one.
        """
        store, call = self._parts.store, mask_id(tool_call_id)
        refs = {record.ref for record in store.records(self.space, session=session, tool_call_id=call)}
        found = {ref: text.find(f" {ref};") for ref in refs}
        places = sorted((text.rfind("[", 0, place), ref) for ref, place in found.items() if place >= 0)
        stops = [*(start for start, _ in places[1:]), len(text)]
        for (start, ref), stop in zip(places, stops, strict=False):
            store.note_replaced(
                self.space,
                session=session,
                tool_call_id=call,
                ref=ref,
                tokens_kept=self._parts.counter.count(text[start:stop]),
                at=at or self._parts.now(),
            )

    @in_thread
    def note_compacted(self, session: str, *, at: datetime | None = None) -> None:
        """Enter that a client replaced a context by a summary: earlier savings are not counted for later calls."""
        self._enter(Saving(session=session, at=at or self._parts.now(), kind="compacted"))

    @in_thread
    def keep_tool_result(
        self,
        tool_name: str,
        result: str | bytes,
        *,
        arguments: Any = None,
        tool_call_id: str | None = None,
        session: str | None = None,
        at: datetime | None = None,
    ) -> Ref:
        """Keep a tool result of the past, produced `at`, in a file that search finds; no canvas shows it."""
        from mcp_memory.shortterm.offload import OffloadRequest, keep

        request = OffloadRequest(
            tool_name=tool_name,
            result=result,
            arguments=arguments,
            tool_call_id=tool_call_id,
            session=self._session(session),
            keep_secrets=self.settings.keep_secrets,
        )
        kept = keep(self._parts.store, self.space, request=request, now=(at or self._parts.now()).astimezone())
        self._index(kept)
        return kept

    def _index(self, ref: Ref) -> None:
        """Have a result found by its lines: at once where it is short, else in the background."""
        from mcp_memory.shortterm import chunks

        if ref.bytes > chunks.AT_ONCE:
            self._parts.stored()
            return
        try:
            chunks.index(self._parts.store, self.space, ref.id, self._parts.store.read_ref(self.space, ref.id))
        except NotFound:
            return  # it was forgotten, and stays so
        except StoreUnavailable:  # it is kept all the same, and waits for its index
            logger.exception("%s is not indexed yet", ref.id)
            self._parts.stored()

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
        """Return the layer below a canvas, node, folded group or ref, or a whole turn or statement, in `max_tokens`."""
        from mcp_memory.longterm.row_text import ROW, text_of_row
        from mcp_memory.shortterm.expand_node import expand

        id = target.strip()
        text = text_of_row(self._parts.store, self.space, id) if ROW.fullmatch(id) else None
        opened = expand(
            self._parts.store,
            self.space,
            target=target,
            text=text,
            view=view,
            lines=lines,
            grep=grep,
            json_path=json_path,
            max_tokens=max_tokens,
            cursor=cursor,
            counter=self._parts.counter,
        )
        if text is None:
            self._note_saving("expand", self._session_of(opened.ref, target), spent=opened.tokens)
        return opened

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
        from mcp_memory.shortterm.canvas.view import fold_canvas

        shown = fold_canvas(
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
        self._note_saving("canvas", self._session(session or None), spent=shown.tokens)
        return shown

    def _note_saving(self, kind: SavingKind, session: str, *, saved: int = 0, spent: int = 0) -> None:
        if self._parts.store.read_only is None:
            self._enter(Saving(session=session, at=self._parts.now(), kind=kind, saved=saved, spent=spent))

    def _enter(self, saving: Saving) -> None:
        """Add a saving to the ledger; a failure to write it does not fail the call."""
        try:
            self._parts.store.add_saving(self.space, saving)
        except StoreUnavailable:
            logger.exception("a saving was not entered in the ledger")

    def _session_of(self, ref: str | None, target: str) -> str:
        """Whose result was opened: the session whose context has it."""
        store = self._parts.store
        if ref is not None:
            return store.ref(self.space, ref).session
        node = target.strip() if _NODE.fullmatch(target.strip()) else None
        held = store.records(self.space, node=node, limit=1) if node else []
        return held[0].session if held else self.session

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
    def task_history(self, *, session: str | None = None, but: Sequence[int] = (), budget_tokens: int = 300) -> str:
        """Return other tasks by their metadata, one per line, most recent first, within the budget."""
        from mcp_memory.shortterm.canvas.view import history

        return history(
            self._parts.store,
            self.space,
            session=session,
            but=but,
            budget_tokens=budget_tokens,
            counter=self._parts.counter,
        )

    @in_thread
    def rebuild_canvas(self, number: int) -> CanvasRow:
        """Redraw a canvas from its versions, row and file, and return it."""
        return self._parts.store.redraw_canvas(self.space, number)[0]

    @in_thread
    def undo_patch(self, number: int) -> CanvasRow:
        """Undo the last patch of a canvas, keeping later changes. Raises NotFound."""
        from mcp_memory.shortterm.canvas.state import undo_patch

        return undo_patch(self._parts.store, self.space, number)

    @in_thread
    def canvas_versions(self, number: int) -> list[CanvasVersion]:
        """Return the versions of a canvas, the oldest first, each with the change that made it. Raises NotFound."""
        self._parts.store.canvas(self.space, number)
        return self._parts.store.canvas_versions(self.space, number)

    @in_thread
    def records(
        self, *, node: str | None = None, session: str | None = None, ref: str | None = None, limit: int = 100
    ) -> list[Record]:
        """Return records in the order they were made. `node` takes `003-N4`, or `003` for a whole canvas."""
        return self._parts.store.records(self.space, node=node, session=session, ref=ref, limit=limit)

    @in_thread
    def compress(
        self,
        messages: Sequence[Any],
        *,
        window: int,
        session: str | None = None,
        overhead: int = 0,
        level: Level | None = None,
        **rules: Any,
    ) -> Compressed:
        """Return a list of messages, of OpenAI or Anthropic, that fits a window of tokens.

        Call it before each call of the model, with the whole list or with its last result, grown. Removed parts are
        stored first: `expand_node` opens results, `conversation_search` finds words. `overhead`: tokens sent beside
        the list. `level` forces a level whatever the size, as after a provider refused a prompt. `rules` are fields
        of `CompressionRules`. `session` is that of the canvas and turns; by default the conversation has one of its
        own. Raises InvalidInput for anything but a list of messages, and for an impossible rule.
        """
        from mcp_memory.service.compression.compress import compress_list
        from mcp_memory.service.compression.plan import LEVELS, make_rules

        if not isinstance(overhead, int) or overhead < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"overhead is {overhead!r}; it can be 0 or more tokens.")
        if level not in (None, *LEVELS):
            raise InvalidInput(f"level {level!r} is unknown. Allowed: {', '.join(LEVELS)}, or none given.")
        done = compress_list(
            self._parts.store,
            self.space,
            messages,
            rules=make_rules(window, rules),
            counter=self._parts.counter,
            now=self._parts.now,
            session=None if session is None else safe_name(session, what="session"),
            overhead=overhead,
            level=level,
            keep_secrets=self.settings.keep_secrets,
        )
        if done.edits:
            self._parts.stored()
        return done

    @in_thread
    def savings(self, since: datetime | None = None) -> list[Saved]:
        """Return what offloading, expanding, showing canvases and compressing came to, by kind."""
        return self._parts.store.savings(self.space, since=since)
