"""Verbs of short-term memory: offloaded tool results, canvases, compressed message lists, and savings."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from mcp_memory.core.errors import InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.secrets.masking import mask_id, mask_lines
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import CanvasRow, CanvasView, Expansion, Offloaded, Ref, StepStatus
from mcp_memory.service.verbs.base import FRAME_TOKENS, Verbs, in_thread, of_either_memory, reading, store_verb
from mcp_memory.store.sql import canvas_rows, project_file_rows, record_rows, ref_rows, saving_rows, turn_rows
from mcp_memory.store.values import PROJECT_FILE, ProjectFile, Saved, Saving, SavingKind

if TYPE_CHECKING:
    from mcp_memory.service.compression.compress import Compressed
    from mcp_memory.service.compression.plan import Level
    from mcp_memory.store.values import CanvasVersion


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
        """Store a whole tool result in a file and return the short text that can replace it in the context.

        A saving is counted only if `replaced` (the program replaces the result), or when `note_replaced` reports that
        a client did. `shown` is the part of the result that the client would have shown, if not all.
        """
        from mcp_memory.shortterm.chunks import AT_ONCE
        from mcp_memory.shortterm.offload import OffloadRequest, offload

        name = self._session_name(session)
        turns = self._store.read(self.space, turn_rows.last_turns, name, limit=4, roles=("user", "assistant"))
        if all(turn.role != "user" for turn in turns):  # the last request counts, however old
            turns = [*self._store.read(self.space, turn_rows.last_turns, name, limit=1, roles=("user",)), *turns]
        request = next((turn.content for turn in reversed(turns) if turn.role == "user"), "")
        offloaded = offload(
            self._store,
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
            goal_hint=one_line(request, 120),
            talk="\n".join(turn.content[:2_000] for turn in turns),
            turns=turns,
            books=True,
        )
        if len(result) > AT_ONCE // 4:  # it may have to be indexed in the background
            self._parts.notify_background()
        return offloaded

    @in_thread
    def note_replaced(self, session: str, tool_call_id: str, text: str, *, at: datetime | None = None) -> None:
        """Record the tokens saved by showing `text` to the model instead of the stored results of a tool call.

        `text` has a note for each replaced result; a note ends where the next begins. Results without a note in it,
        or recorded before, are skipped. `at` is when the text was shown, by default now.
        """
        call = mask_id(tool_call_id)
        refs = {
            record.ref
            for record in self._store.read(self.space, record_rows.list_records, session=session, tool_call_id=call)
        }
        positions = {ref: text.find(f" {ref};") for ref in refs}
        starts = sorted((text.rfind("[", 0, position), ref) for ref, position in positions.items() if position >= 0)
        stops = [*(start for start, _ in starts[1:]), len(text)]
        for (start, ref), stop in zip(starts, stops, strict=False):
            self._store.write(
                self.space,
                record_rows.note_replaced,
                session=session,
                tool_call_id=call,
                ref=ref,
                tokens_kept=self._parts.counter.count(text[start:stop]),
                at=at or self._parts.now(),
            )

    @in_thread
    def note_compacted(self, session: str, *, at: datetime | None = None) -> None:
        """Note that a client replaced a context by a summary, so later calls no longer profit from earlier savings.

        `at` is the time of the replacement, by default now.
        """
        self._add_saving(Saving(session=session, at=at or self._parts.now(), kind="compacted"))

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
        """Store a tool result, produced `at` a moment (default: now), for search; no canvas shows it."""
        from mcp_memory.shortterm.offload import OffloadRequest, keep

        request = OffloadRequest(
            tool_name=tool_name,
            result=result,
            arguments=arguments,
            tool_call_id=tool_call_id,
            session=self._session_name(session),
            keep_secrets=self.settings.keep_secrets,
        )
        ref = keep(self._store, self.space, request=request, now=(at or self._parts.now()).astimezone())
        self._index(ref)
        return ref

    project_files = store_verb(project_file_rows.project_files)
    drop_project_file = store_verb(project_file_rows.drop_project_file, writes=True)

    @in_thread
    def store_project_file(self, path: str, text: str, *, project: str, size: int, modified: int) -> None:
        """Store the content of a file for search, in place of its former content; see `ProjectFile` for the arguments.

        Secrets are always masked. Content that was forgotten stays forgotten.
        """
        from mcp_memory.shortterm.offload import OffloadRequest, keep

        now = self._parts.now().astimezone()
        request = OffloadRequest(tool_name=PROJECT_FILE, result=mask_lines(text), session=PROJECT_FILE)
        at = datetime.fromtimestamp(min(max(0.0, modified / 10**9), now.timestamp())).astimezone()
        ref = keep(self._store, self.space, request=request, now=at)
        file = ProjectFile(path=path, project=project, ref=ref.id, bytes=size, modified=modified, at=now)
        self._store.write(self.space, project_file_rows.note_project_file, file)
        self._index(ref)

    def _index(self, ref: Ref) -> None:
        """Index the lines of a short result now, of a long result in the background."""
        from mcp_memory.shortterm import chunks

        if ref.bytes > chunks.AT_ONCE:
            self._parts.notify_background()
            return
        try:
            chunks.index(self._store, self.space, ref.id, self._store.read(self.space, ref_rows.read_bytes, ref.id))
        except NotFound:
            return  # it was forgotten
        except StoreUnavailable:  # it is stored, and indexed later
            logger.exception("%s is not indexed yet", ref.id)
            self._parts.notify_background()

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
        """Open a canvas, node, folded group, ref, turn or statement, in `max_tokens` without headings and fences.

        The tokens count as spent in the ledger, except for a turn or statement.
        """
        from mcp_memory.longterm.row_text import ROW, text_of_row
        from mcp_memory.shortterm.expand_node import expand

        id = target.strip()

        def read() -> tuple[Expansion, str | None]:
            """Return the expansion, and the session that spends its tokens; None for a turn or statement."""
            text = text_of_row(self._store, self.space, id) if ROW.fullmatch(id) else None
            expansion = expand(
                self._store,
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
            return expansion, self._session_of(expansion.ref, id) if text is None else None

        expansion, session = self._store.in_snapshot(read)
        if session is not None:
            self._note_spent("expand", session, expansion.tokens)
        return expansion

    @of_either_memory("node", "ref")
    async def expand_answer(
        self, *, node: str | None = None, ref: str | None = None, max_tokens: int = 2000, **view: Any
    ) -> Expansion:
        """Return the expansion of a node or a ref, within the budget. `view` is passed on to `expand_node`.

        Raises InvalidInput unless exactly one of `node` and `ref` is given.
        """
        if (node is None) == (ref is None):
            raise InvalidInput("expand_node takes either node (such as 003-N4) or ref (such as r-9f2c1a7b3d4e).")

        async def expansion_in(budget: int) -> Expansion:
            return await self.expand_node(node or ref or "", max_tokens=budget, **view)

        return await self._fit_budget(expansion_in, max_tokens, first=max_tokens - FRAME_TOKENS)

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
        """Show, fold, unfold, complete or switch a task's canvas, and return it."""
        from mcp_memory.shortterm.canvas.view import fold_canvas

        view = fold_canvas(
            self._store,
            self.space,
            task=task,
            nodes=nodes,
            action=action,
            budget_tokens=budget_tokens,
            session=session,
            counter=self._parts.counter,
            now=self._parts.now().astimezone(),
        )
        self._note_spent("canvas", self._session_name(session or None), view.tokens)
        return view

    async def canvas_answer(
        self,
        *,
        task: str | None = None,
        nodes: Sequence[str] = (),
        action: Literal["show", "fold", "unfold", "complete", "switch"] = "show",
        budget_tokens: int | None = None,
        session: str | None = None,
    ) -> CanvasView:
        """Do what `fold_canvas` does, and return the canvas within the budget."""
        view = await self.fold_canvas(
            task=task, nodes=nodes, action=action, budget_tokens=budget_tokens, session=session
        )
        if budget_tokens is None:
            return view

        async def view_in(budget: int) -> CanvasView:
            return view if budget == budget_tokens else await self.fold_canvas(task=view.canvas, budget_tokens=budget)

        return await self._fit_budget(view_in, budget_tokens, first=budget_tokens)

    def _note_spent(self, kind: SavingKind, session: str, tokens: int) -> None:
        if self._store.read_only is None:
            self._add_saving(Saving(session=session, at=self._parts.now(), kind=kind, spent=tokens))

    def _add_saving(self, saving: Saving) -> None:
        """Add a saving to the ledger; a failure to write it does not fail the call."""
        try:
            self._store.write(self.space, saving_rows.add_saving, saving)
        except StoreUnavailable:
            logger.exception("a saving was not entered in the ledger")

    def _session_of(self, ref: str | None, target: str) -> str:
        """Return the session whose context has the opened result, else the default session."""
        if ref is not None:
            return self._store.read(self.space, ref_rows.by_id, ref).session
        records = (
            self._store.read(self.space, record_rows.list_records, node=target, limit=1)
            if _NODE.fullmatch(target)
            else []
        )
        return records[0].session if records else self.session

    @reading
    def ref(self, id: str) -> tuple[Ref, bytes]:
        """Return a ref and its raw bytes. Raises NotFound for an unknown ref, Damaged for a wrong hash."""
        ref = self._store.read(self.space, ref_rows.by_id, id)
        return ref, self._store.read(self.space, ref_rows.read_bytes, ref.id)

    canvases = store_verb(canvas_rows.list_canvases)
    active_canvas = store_verb(canvas_rows.active_canvas)
    canvas = store_verb(canvas_rows.canvas)

    @reading
    def task_history(self, *, session: str | None = None, but: Sequence[int] = (), budget_tokens: int = 300) -> str:
        """Return a line of metadata for each task except `but`, most recent first, within the budget."""
        from mcp_memory.shortterm.canvas.view import history

        return history(
            self._store,
            self.space,
            session=session,
            but=but,
            budget_tokens=budget_tokens,
            counter=self._parts.counter,
        )

    @in_thread
    def rebuild_canvas(self, number: int) -> CanvasRow:
        """Redraw a canvas from its versions, row and file, and return it."""
        return self._store.write(self.space, canvas_rows.redraw, number)[0]

    @in_thread
    def undo_patch(self, number: int) -> CanvasRow:
        """Undo the last patch of a canvas, keeping later changes. Raises NotFound if there is none."""
        from mcp_memory.shortterm.canvas.state import undo_patch

        return undo_patch(self._store, self.space, number)

    @in_thread
    def canvas_versions(self, number: int) -> list[CanvasVersion]:
        """Return the versions of a canvas with their changes, oldest first. Raises NotFound for an unknown canvas."""
        self._store.read(self.space, canvas_rows.canvas, number)
        return self._store.read(self.space, canvas_rows.versions, number)

    records = store_verb(record_rows.list_records)

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
        """Compress a list of messages of OpenAI or Anthropic so that it fits a window of tokens.

        Call it before each call of the model, with the whole list or with the last result and the new messages. Removed
        parts are stored first: `expand_node` opens results, `conversation_search` finds words. `overhead`: tokens that
        are sent in addition to the list. `level` forces a level at any size, such as after a provider refused a prompt.
        `rules` are fields of `CompressionRules`. `session` is that of the canvas and turns; by default each
        conversation gets its own. Raises InvalidInput for anything but a list of messages, and for an impossible rule.
        """
        from mcp_memory.service.compression.compress import compress_list
        from mcp_memory.service.compression.plan import LEVELS, make_rules

        if not isinstance(overhead, int) or overhead < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"overhead is {overhead!r}; it can be 0 or more tokens.")
        if level not in (None, *LEVELS):
            raise InvalidInput(f"level {level!r} is unknown. Allowed: {', '.join(LEVELS)}, or none given.")
        compressed = compress_list(
            self._store,
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
        if compressed.edits:
            self._parts.notify_background()
        return compressed

    @in_thread
    def savings(self, since: datetime | None = None) -> list[Saved]:
        """Return the tokens saved and spent by offloading, expanding, showing canvases and compressing."""
        return self._store.read(self.space, saving_rows.savings, since=since)

    kept_calls = store_verb(turn_rows.stored_calls)
