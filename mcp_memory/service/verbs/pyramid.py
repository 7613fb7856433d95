"""Verbs of the scenes, the persona and the scheduler: answer questions, read, compare and restore versions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.progress import ReportProgress, ignore_progress
from mcp_memory.core.secrets.masking import mask_typed
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Distilled, Persona, PersonaVersion, Scene, Verified, WorkQuestion
from mcp_memory.models.llm import reply_schema
from mcp_memory.service.verbs.base import in_thread, of_store
from mcp_memory.service.verbs.evidence import EvidenceVerbs
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Conflict, SceneChanges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_memory.service.scheduler import LeasedJob, WaitingJobs


_ANOTHERS_TURN_S = 0.2


class PyramidVerbs(EvidenceVerbs):
    """Scenes, the persona, and what makes them."""

    # --- answering questions ------------------------------------------------------------------------

    @in_thread
    def distill(self, work_id: str | None = None, reply: str | None = None) -> Distilled:
        """Take the reply to a question and return the next one; without a reply, the question that is due.

        The caller is the model: no other is asked and the usage ledger is not touched. An unusable reply comes back
        once with the reason and the same question; after the second the job is parked, and no question follows.
        Raises NotFound for an unknown job.
        """
        if (work_id is None) != (reply is None):
            raise InvalidInput("distill takes work_id and reply together, or neither of them to get a question.")
        scheduler = self._parts.scheduler
        if work_id is None or reply is None:
            return self._asking()
        try:
            applied = scheduler.answer(work_id, reply)
        except Conflict as late:
            return self._asking(note=f"Nothing of this reply was stored: {late}")
        except InvalidInput as unfit:
            if scheduler.returned(work_id, str(unfit)):
                return self._asking(refused=[str(unfit)])
            note = "That was the second reply that could not be used. The question is put aside; go on with your work."
            return Distilled(kept=[], refused=[str(unfit)], next=None, waiting=self._waiting(), note=note)
        return self._asking(kept=applied.kept, refused=applied.refused)

    def _asking(self, *, kept: Sequence[str] = (), refused: Sequence[str] = (), note: str | None = None) -> Distilled:
        """Return the next question, with the outcome of the last reply."""
        scheduler = self._parts.scheduler
        asked = scheduler.for_agent(f"agent {scheduler.holder}")
        return Distilled(
            kept=list(kept),
            refused=list(refused),
            next=None if asked is None else _question(asked),
            waiting=self._waiting(),
            note=note,
        )

    @in_thread
    def consolidate(self, *, told: Callable[[str], None] | None = None) -> int:
        """Run all possible jobs with the configured model now, and return the number of questions.

        The callback gets a line about each. Raises Refused when no model is set or it may not be asked, ModelFailed
        when it fails; finished jobs are kept, and the rest waits.
        """
        parts = self._parts
        if parts.model is None:
            raise Refused(
                "No model is set, so nobody can be asked. Set MCP_MEMORY_LLM, or let the connected agent answer with "
                "its tool `distill`."
            )
        steps = 0
        while (done := parts.scheduler.step(parts.model)) is not False:
            if done is None:
                time.sleep(_ANOTHERS_TURN_S)  # another process is at it; and this runs in a thread
                continue
            steps += 1
            if told:
                told(f"{steps}: {self._waiting()} turns wait")
        return steps

    @in_thread
    def waiting_jobs(self) -> WaitingJobs:
        """Return what `consolidate` would ask a model about."""
        from mcp_memory.service.scheduler import waiting_jobs

        return waiting_jobs(self._parts.store, self.space, self.settings, self._parts.now())

    @in_thread
    def flush(self, session: str | None = None) -> int:
        """Ask for the extraction of all that a session holds, without waiting for more; return the turns waiting."""
        parts, name = self._parts, self._session(session)
        parts.store.flush(self.space, name)
        parts.stored()
        return self._waiting(name)

    @in_thread
    def pause(self, reason: str = "paused by hand") -> None:
        """Have no process on this home ask a language model, until `resume`."""
        self._parts.store.pause(one_line(mask_typed(reason), 200), now=self._parts.now())

    @in_thread
    def resume(self) -> None:
        self._parts.store.resume()
        self._parts.stored()

    # --- scenes -------------------------------------------------------------------------------------

    @in_thread
    def scenes(self) -> list[Scene]:
        """Return the scenes as they stand, hottest first."""
        from mcp_memory.longterm import scenes

        return scenes.readable_scenes(self._parts.store, self.space)

    @in_thread
    def scene(self, slug: str) -> Scene:
        """Return a scene by its slug. NotFound names those there are."""
        from mcp_memory.longterm import scenes

        found = next((one for one in scenes.readable_scenes(self._parts.store, self.space) if one.slug == slug), None)
        if found is None:
            raise NotFound(self._no_scene(slug))
        return found

    @in_thread
    def scene_page(self, slug: str) -> str:
        """Return a scene as people and agents read it, with its links."""
        from mcp_memory.longterm import scenes

        store = self._parts.store
        found = next((scene for scene in scenes.listed_scenes(store, self.space) if scene.slug == slug), None)
        if found is None:
            raise NotFound(self._no_scene(slug))
        return scenes.rendered_page(store, self.space, found)

    @in_thread
    def scene_history(self, slug: str) -> list[Scene]:
        """Return all versions of a scene, the newest first, deleted ones too; of a computed scene the only one."""
        from mcp_memory.longterm import scenes

        store = self._parts.store
        versions = scenes.versions(store, self.space, slug)
        if not versions:
            versions = [scene for scene in scenes.listed_scenes(store, self.space) if scene.slug == slug]
        if not versions:
            raise NotFound(self._no_scene(slug))
        return versions

    @in_thread
    def restore_scene(self, slug: str, version: int) -> Scene:
        """Make an old version of a scene the newest one; the ones between stay in its history."""
        from mcp_memory.longterm import scenes

        parts = self._parts
        edit = scenes.restored(parts.store, self.space, slug, version)
        parts.store.commit(self.space, None, SceneChanges(edits=[edit], upto=0), outcome={}, now=parts.now())
        parts.scheduler.write_persona()
        return parts.store.scene_versions(self.space, slug)[0]

    def _no_scene(self, slug: str) -> str:
        from mcp_memory.longterm import scenes

        known = ", ".join(scene.slug for scene in scenes.listed_scenes(self._parts.store, self.space))
        return f"There is no scene {one_line(slug, 40)!r}. " + (
            f"Scenes: {known}." if known else "None has been written yet: a model or the tool `distill` writes them."
        )

    # --- the persona --------------------------------------------------------------------------------

    @in_thread
    def read_persona(self, section: str | None = None) -> Persona:
        """Return the page about the user, or one section of it. NotFound names the sections there are."""
        from mcp_memory.longterm import persona as l3_page

        held = self._parts.store.persona(self.space)
        text = l3_page.whole(self._parts.store, self.space, at=self._parts.now())
        return Persona(
            text=l3_page.section_of(text, section) if section else text,
            sections=l3_page.sections(text),
            version=held.version if held else 0,
            updated=held.at if held else None,
        )

    @in_thread
    def persona_history(self) -> list[PersonaVersion]:
        """Return all versions of the page, newest first, without forgotten parts."""
        from mcp_memory.longterm import persona as l3_page

        return l3_page.versions(self._parts.store, self.space)

    @in_thread
    def persona_diff(self, old: int | None = None, new: int | None = None) -> str:
        """Return what changed between two versions of the page, by default the last two, as a unified diff."""
        from mcp_memory.longterm import persona as l3_page

        versions = {one.version: one for one in l3_page.versions(self._parts.store, self.space)}
        if not versions:
            raise NotFound("There is no persona yet.")
        last = max(versions)
        new = last if new is None else new
        old = new - 1 if old is None else old
        missing = [number for number in (old, new) if number not in versions and number != 0]
        if missing:
            raise NotFound(f"There is no version {missing[0]} of the persona. Versions: 1 to {last}.")
        return l3_page.diff(versions.get(old), versions.get(new))

    @in_thread
    def rebuild_persona(self, *, scratch: bool = True) -> None:
        """Request a new version of the page, from scratch or from the changes."""
        from mcp_memory.longterm import persona

        parts = self._parts
        reason = persona.FROM_SCRATCH if scratch else "asked for"
        parts.store.request_stage(self.space, "persona", reason)
        parts.stored()

    @in_thread
    def verify(self, *, tell: ReportProgress = ignore_progress) -> Verified:
        """Check the chain from the persona over scenes, atoms and quotes to the turns, and list broken links."""
        from mcp_memory.longterm.verification.evidence import verify

        return verify(self._parts.store, self.space, tell)

    imported = of_store(Store.imported_files)
    note_import = of_store(Store.note_imported_file)


def _question(asked: LeasedJob) -> WorkQuestion:
    instructions, question = asked.question.messages
    return WorkQuestion(
        work_id=asked.job.id,
        stage=asked.job.stage,
        instructions=instructions.text,
        question=question.text,
        reply_schema=reply_schema(asked.question.reply),
    )
