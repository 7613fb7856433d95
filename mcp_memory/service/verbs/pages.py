"""Verbs of the pages: scenes (L2), the persona (L3), the jobs that write them, and their evidence."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.progress import ReportProgress, ignore_progress
from mcp_memory.core.secrets.masking import mask_typed
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Distilled, Mention, Persona, PersonaVersion, Scene, Verified, WorkQuestion
from mcp_memory.models.llm import reply_schema
from mcp_memory.service.verbs.base import MAX_PAGE, Verbs, check_range, in_thread, reading
from mcp_memory.store.sql import atom_rows, home_rows, job_rows, page_rows, stage_outputs
from mcp_memory.store.values import Conflict, SceneChanges

if TYPE_CHECKING:
    from mcp_memory.longterm.lately import ChangePage, Lately
    from mcp_memory.service.due_stages import WaitingJobs
    from mcp_memory.service.scheduler import LeasedJob


_BUSY_S = 0.2  # between attempts while another process has the space


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenLine:
    """A line of the persona with the statements and scenes that it cites."""

    text: str
    atoms: tuple[Atom, ...]
    scenes: tuple[str, ...]
    """Slugs or titles, as in the line."""
    is_claim: bool
    """False for headings, rules and blank lines, which need no evidence."""


class PageVerbs(Verbs):
    """Scenes, the persona, their evidence, what is new, and the jobs that write them."""

    @reading
    def lately(self, *, days: int = 7) -> Lately:
        """Return what the memory learned in the last `days` (1 to 366) and what is planned next. Needs no model."""
        from mcp_memory.longterm.lately import lately

        check_range(days, "days", 1, 366)
        self._parts.indexing.catch_up()
        return lately(self._parts.scheduler.context(), days=days)

    @reading
    def replacements(self, *, days: int = 7, limit: int = 50, cursor: str | None = None) -> ChangePage:
        """Return a page of the statements that others replaced in the last `days` (1 to 366), newest first.

        Raises InvalidInput for a cursor that is none of this verb.
        """
        from mcp_memory.longterm.lately import ChangePage, changes_since, first_day, midnight

        check_range(days, "days", 1, 366)
        check_range(limit, "limit", 1, MAX_PAGE)
        if cursor is not None and not re.fullmatch(r"a[1-9][0-9]{0,17}", cursor):
            raise InvalidInput("That cursor is not one of ours. Leave it out to start from the newest change.")
        self._parts.indexing.catch_up()
        context = self._parts.scheduler.context()
        following = changes_since(context, midnight(first_day(context.now, days)), after=cursor)
        changes = list(islice(following, limit + 1))
        return ChangePage(changes=changes[:limit], cursor=changes[limit - 1].old.id if len(changes) > limit else None)

    @in_thread
    def distill(self, work_id: str | None = None, reply: str | None = None) -> Distilled:
        """Apply a reply, if given, then lease the next question to the caller and return it.

        The caller answers in place of the configured model, and the usage ledger is not touched. An unusable
        reply is returned once with the reason and the same question; after the second the job is parked, and no
        question follows. A reply that comes too late is not stored, as the note says. Raises NotFound for an
        unknown job, InvalidInput for `work_id` without `reply` or the reverse.
        """
        if (work_id is None) != (reply is None):
            raise InvalidInput("distill takes work_id and reply together, or neither of them to get a question.")
        if work_id is None or reply is None:
            return self._next_question()
        scheduler = self._parts.scheduler
        try:
            applied = scheduler.answer(work_id, reply)
        except Conflict as late:
            return self._next_question(note=f"Nothing of this reply was stored: {late}")
        except InvalidInput as error:
            if scheduler.reject_reply(work_id, str(error)):
                return self._next_question(refused=[str(error)])
            note = "That was the second reply that could not be used. The question is put aside; go on with your work."
            return Distilled(kept=[], refused=[str(error)], next=None, waiting=self._count_undistilled(), note=note)
        return self._next_question(kept=applied.kept, refused=applied.refused)

    def _next_question(
        self, *, kept: Sequence[str] = (), refused: Sequence[str] = (), note: str | None = None
    ) -> Distilled:
        """Lease the next question to the caller, and return it with the outcome of the last reply."""
        self._parts.indexing.catch_up()
        leased = self._parts.scheduler.lease_for_agent()
        return Distilled(
            kept=list(kept),
            refused=list(refused),
            next=None if leased is None else _question(leased),
            waiting=self._count_undistilled(),
            note=note,
        )

    @in_thread
    def consolidate(self, *, told: Callable[[str], None] | None = None) -> int:
        """Run all jobs with the configured model now, due or not, and return the number of questions.

        `told` is called with a line about each job. Raises Refused if no model is set or it may not be asked,
        ModelFailed if it fails. After an error, finished jobs are kept and the remaining jobs wait.
        """
        from mcp_memory.longterm.verification.trust import judge_waiting

        parts = self._parts
        if parts.model is None:
            raise Refused(
                "No model is configured. Set MCP_MEMORY_LLM, or let the connected agent answer with its tool `distill`."
            )
        while judge_waiting(self._store, self.space, lambda: True, now=parts.now()):
            pass
        steps = 0
        while (has_run := parts.scheduler.step(parts.model)) is not False:
            if has_run is None:
                time.sleep(_BUSY_S)
                continue
            steps += 1
            if told:
                told(f"{steps}: {self._count_undistilled()} turns wait")
        return steps

    @reading
    def waiting_jobs(self) -> WaitingJobs:
        """Return what `consolidate` would ask a model about."""
        from mcp_memory.service.due_stages import waiting_jobs

        return waiting_jobs(self._store, self.space, self.settings, self._parts.now())

    @in_thread
    def flush(self, session: str | None = None) -> int:
        """Request the extraction of all turns of a session, by default the current; return how many turns wait."""
        name = self._session_name(session)
        self._store.write(self.space, job_rows.flush, name)
        self._parts.notify_background()
        return self._count_undistilled(name)

    @in_thread
    def pause(self, reason: str = "paused by hand") -> None:
        """Stop all processes of this home from asking a language model, until `resume`."""
        self._store.write_home(home_rows.pause, one_line(mask_typed(reason), 200), now=self._parts.now())

    @in_thread
    def resume(self) -> None:
        self._store.write_home(home_rows.resume)
        self._parts.notify_background()

    # --- scenes -------------------------------------------------------------------------------------

    @reading
    def scenes(self) -> list[Scene]:
        """Return the current scenes, hottest first."""
        from mcp_memory.longterm import scenes

        return scenes.readable_scenes(self._store, self.space)

    @reading
    def scene(self, slug: str) -> Scene:
        """Return a scene by its slug. Raises NotFound, with the known slugs, if there is no such scene."""
        from mcp_memory.longterm import scenes

        return self._find_scene(slug, scenes.readable_scenes(self._store, self.space))

    @reading
    def scene_page(self, slug: str) -> str:
        """Return a scene as people and agents read it, with its links. Raises NotFound for an unknown scene."""
        from mcp_memory.longterm import scenes

        scene = self._find_scene(slug, scenes.listed_scenes(self._store, self.space))
        return scenes.rendered_page(self._store, self.space, scene)

    @reading
    def scene_history(self, slug: str) -> list[Scene]:
        """Return all versions of a scene, even if it was deleted, the newest first.

        A computed scene has a single version. Raises NotFound for an unknown scene.
        """
        from mcp_memory.longterm import scenes

        versions = scenes.versions(self._store, self.space, slug)
        return versions or [self._find_scene(slug, scenes.listed_scenes(self._store, self.space))]

    @in_thread
    def restore_scene(self, slug: str, version: int) -> Scene:
        """Store an old version of a scene as its newest version, and return it; the versions between stay.

        Raises NotFound if there is no such version, InvalidInput if it has no content.
        """
        from mcp_memory.longterm import scenes

        edit = scenes.restored(self._store, self.space, slug, version)
        changes = SceneChanges(edits=[edit], upto=0)
        self._store.write(self.space, stage_outputs.commit, None, changes, outcome={}, now=self._parts.now())
        self._write_persona()
        return self._store.read(self.space, page_rows.scene_versions, slug)[0]

    def _find_scene(self, slug: str, candidates: Sequence[Scene]) -> Scene:
        from mcp_memory.longterm import scenes

        for scene in candidates:
            if scene.slug == slug:
                return scene
        slugs = ", ".join(scene.slug for scene in scenes.listed_scenes(self._store, self.space))
        raise NotFound(
            f"There is no scene {one_line(slug, 40)!r}. "
            + (
                f"Scenes: {slugs}."
                if slugs
                else "None has been written yet: a model or the tool `distill` writes them."
            )
        )

    # --- the persona --------------------------------------------------------------------------------

    @reading
    def read_persona(self, section: str | None = None) -> Persona:
        """Return the page about the user, or a section of it. Raises NotFound for an unknown section."""
        from mcp_memory.longterm import persona

        version = self._store.read(self.space, page_rows.persona)
        text = persona.whole(self._store, self.space, at=self._parts.now())
        return Persona(
            text=persona.section_of(text, section) if section else text,
            sections=persona.sections(text),
            version=version.version if version else 0,
            updated=version.at if version else None,
        )

    @reading
    def persona_history(self) -> list[PersonaVersion]:
        """Return all versions of the page, newest first, without forgotten parts."""
        from mcp_memory.longterm import persona

        return persona.versions(self._store, self.space)

    @reading
    def persona_diff(self, old: int | None = None, new: int | None = None) -> str:
        """Return the changes between two versions of the page, by default the last two, as a unified diff.

        Raises NotFound for a missing version, and if there is no page.
        """
        from mcp_memory.longterm import persona

        versions = {version.version: version for version in persona.versions(self._store, self.space)}
        if not versions:
            raise NotFound("There is no persona yet.")
        last = max(versions)
        new = last if new is None else new
        old = new - 1 if old is None else old
        missing = [number for number in (old, new) if number not in versions and number != 0]
        if missing:
            raise NotFound(f"There is no version {missing[0]} of the persona. Versions: 1 to {last}.")
        return persona.diff(versions.get(old), versions.get(new))

    @in_thread
    def rebuild_persona(self, *, scratch: bool = True) -> None:
        """Request a new version of the page, from scratch by default, else from the changes."""
        from mcp_memory.longterm.persona_stage import FROM_SCRATCH

        reason = FROM_SCRATCH if scratch else "asked for"
        self._store.write(self.space, job_rows.request_stage, "persona", reason)
        self._parts.notify_background()

    @reading
    def persona_lines(self) -> list[ProvenLine]:
        """Return the lines of the persona with the statements they cite, without the list of scenes."""
        from mcp_memory.longterm import persona
        from mcp_memory.store.citations import cited_atoms, links

        store = self._store
        text = persona.body(store, self.space, at=self._parts.now())
        atoms = {atom.id: atom for atom in store.read(self.space, atom_rows.by_ids, cited_atoms(text))}
        claims = set(persona.lines_of(text)) if text != persona.EMPTY else set[str]()
        return [
            ProvenLine(
                text=line,
                atoms=tuple(atoms[id] for id in cited_atoms(line) if id in atoms),
                scenes=tuple(links(line)),
                is_claim=line in claims,
            )
            for line in text.splitlines()
        ]

    @reading
    def lines_citing(self, id: str) -> list[Mention]:
        """Return the lines of the persona, then of the scenes, that cite a statement."""
        from mcp_memory.longterm.verification.evidence import lines_citing

        return lines_citing(self._store, self.space, id)

    @in_thread
    def verify(self, *, tell: ReportProgress = ignore_progress) -> Verified:
        """Check the chain from the persona over scenes, atoms and quotes to the turns, and list broken links."""
        from mcp_memory.longterm.verification.evidence import verify

        return verify(self._store, self.space, tell)


def _question(leased: LeasedJob) -> WorkQuestion:
    instructions, question = leased.question.messages
    return WorkQuestion(
        work_id=leased.job.id,
        stage=leased.job.stage,
        instructions=instructions.text,
        question=question.text,
        reply_schema=reply_schema(leased.question.reply),
    )
