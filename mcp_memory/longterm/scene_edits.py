"""Checks the scene edits of a reply against the stored scenes, and returns the edits to commit.

Minor faults are corrected with a note, such as lines without evidence, lines that read like orders, dead links, or a
few statements that an edit left out. For other faults the whole reply is refused, and all reasons are given at once;
such faults are an unknown page, a page that is too long, or statements that no page would contain any more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, well_formed
from mcp_memory.core.types import Atom, Scene, SceneAction
from mcp_memory.language.words import fold, languages_of
from mcp_memory.longterm.page_lines import RequestedEdit, SceneReply, change_lines
from mcp_memory.longterm.scenes import MERGED_INTO, USER, edit_from, find_scene, free_slug, slug_of
from mcp_memory.longterm.verification.trust import attribute_page
from mcp_memory.models.llm import without_fence
from mcp_memory.models.metered import Applied
from mcp_memory.store.citations import (
    cited_atoms,
    gist,
    links,
    uncited_lines,
    uncited_tails,
    unwrap,
    without_atoms,
    without_citations,
    without_links,
    without_uncited,
)
from mcp_memory.store.values import SceneEdit
from mcp_memory.suspicion.flags import flags

MAX_CHARS = 1_500
"""The longest body in characters, without citations."""
_TITLE, _SUMMARY, _REASON, _STATEMENT = 80, 220, 300, 80
_ENTITIES = 12
_MAX_NAMED = 12  # ids and names in one sentence
_MAX_RESTORED = 3  # forgotten statements of a page


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneRound:
    """The data that a reply is checked against."""

    scenes: Mapping[str, Scene]
    """All current scenes by slug, without forgotten words."""
    shown: Collection[str]
    """Slugs of the scenes that the question showed in full."""
    stale: Collection[str]
    """Slugs of the shown scenes that are due for rewriting."""
    atoms: Mapping[str, Atom]
    """Atoms that any page may cite: the question showed them, and they are not forgotten."""
    speakers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of people who spoke as `assistant` in conversations between people, by the ids of their atoms."""
    cited_elsewhere: Mapping[str, Atom] = field(default_factory=dict[str, Atom])
    """Atoms cited by pages but not shown, which only the citing pages may keep."""
    stored: Mapping[str, str] = field(default_factory=dict[str, str])
    """Stored bodies of scenes with forgotten words. Line numbers in a reply refer to these."""
    new: Sequence[str]
    """Ids of the atoms to put on pages."""
    unseen: Collection[str] = ()
    """Slugs of scenes that are due for rewriting but were not shown, so no edit may change them."""
    most: int
    """The largest number of scenes; a model leaves one free for a page that a person restores."""
    is_entity: Callable[[str], bool]

    @property
    def to_cover(self) -> list[Atom]:
        """The new atoms that a page should cite; rules for the agent belong to the persona."""
        new = (self.atoms[id] for id in self.new if id in self.atoms)
        return [atom for atom in new if atom.valid_to is None and atom.kind != "instruction"]


def check_edits(reply: SceneReply, scene_round: SceneRound) -> tuple[list[SceneEdit], Applied]:
    """Return the edits to commit and a report of accepted and refused parts.

    A stale scene that the reply leaves as it is gets an edit without changes. Raises InvalidInput if the reply has
    errors; the message names all of them and how to correct them.
    """
    drafts = _PageDrafts(scene_round, reply.explained_ids, refused=[*reply.dropped_items])
    for edit in reply.edits:
        drafts.apply(edit)
    drafts.restore_forgotten()
    drafts.errors += [*drafts.losses(), *drafts.missing(), *drafts.excess()]
    if drafts.errors:
        raise InvalidInput(" ".join(dict.fromkeys(drafts.errors)))
    drafts.remove_orders()
    drafts.finish()
    covered_ids = drafts.covered_ids()
    silent = [atom.id for atom in scene_round.to_cover if atom.id not in covered_ids | reply.explained_ids]
    if silent:
        drafts.refused.append(f"Told by no page: {', '.join(silent)}.")
    pages, deleted = drafts.pages.values(), drafts.deleted.values()
    reread = [
        edit_from(scene_round.scenes[slug], action="update", reason="read again, and left as it was")
        for slug in scene_round.stale
        if slug not in drafts.changed
    ]
    actions = Counter(page.action for page in pages)
    outcome = {
        "created": actions["create"],
        "updated": actions["update"],
        "merged": actions["merge"],
        "deleted": len(deleted),
        "atoms": len(covered_ids.intersection(scene_round.new)),
    }
    kept = [f"{page.slug} ({page.action}): {page.title}, told from {', '.join(page.atoms)}." for page in pages]
    kept += [f"{page.slug}: {page.reason}." for page in deleted]
    counts = {name: count for name, count in outcome.items() if count}
    return [*pages, *deleted, *reread], Applied(outcome=counts, kept=kept, refused=drafts.refused)


@dataclass
class _PageDrafts:
    """The pages after the edits applied so far, with the errors and notes."""

    round: SceneRound
    explained_ids: set[str]
    pages: dict[str, SceneEdit] = field(default_factory=dict[str, SceneEdit])
    deleted: dict[str, SceneEdit] = field(default_factory=dict[str, SceneEdit])
    errors: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])

    @property
    def changed(self) -> set[str]:
        return {*self.pages, *self.deleted}

    # one edit

    def apply(self, edit: RequestedEdit) -> None:
        match self._action(edit):
            case "create":
                self._create(edit)
            case "append":
                self._append(edit)
            case "merge":
                self._merge(edit)
            case action:
                scene = self._changeable(edit.name)
                if scene is not None and action == "update":
                    self._write("update", scene.slug, edit, [scene])
                elif scene is not None:
                    self._delete(scene, one_line(edit.reason, _REASON) or "no longer wanted")

    def _action(self, edit: RequestedEdit) -> str:
        """Return the action of an edit, inferred from its other fields if it names none or contradicts them."""
        if edit.action in ("merge", "delete"):
            return edit.action
        if edit.lines and not edit.from_:
            return "update"
        scene = find_scene(self.round.scenes, edit.name)
        if edit.action or edit.from_ or scene is None:
            return edit.action or ("merge" if edit.from_ else "create")
        is_whole = scene.slug in self.round.shown and not set(scene.atoms).isdisjoint(cited_atoms(edit.body))
        return "update" if is_whole or not edit.body.strip() else "append"

    def _create(self, edit: RequestedEdit) -> None:
        scene = find_scene(self.round.scenes, edit.name) if edit.name else None
        if scene is not None and scene.slug in self.round.shown and scene.slug not in self.changed:
            self._write("update", scene.slug, edit, [scene])  # "new" by name, but the model saw the page
        else:
            self._write("create", self._free_slug(edit), edit, [])

    def _merge(self, edit: RequestedEdit) -> None:
        into = find_scene(self.round.scenes, edit.slug)
        names = [into.slug, *edit.from_] if into else edit.from_
        pages = list({page.slug: page for name in names if (page := self._changeable(name)) is not None}.values())
        if not pages:
            self.errors.append("A merge names under `from` the pages that become one.")
            return
        target = into or (pages[0] if len(pages) == 1 else None)
        slug = target.slug if target else self._free_slug(edit)
        self._write("merge" if len(pages) > 1 else "update", slug, edit, pages)
        for page in pages:
            if page.slug != slug:
                self._delete(page, f"{MERGED_INTO}[[{slug}]]")

    def _append(self, edit: RequestedEdit) -> None:
        scene = self._changeable(edit.name, in_full=False)
        if scene is None:
            return
        own = {id: atom for id, atom in self.round.cited_elsewhere.items() if id in scene.atoms}
        citable = {**self.round.atoms, **own}
        added = self._supported(scene.slug, edit.body, citable)
        body = _with_sentences(scene.body, added)
        self._check_length(scene.slug, body)
        self.pages[scene.slug] = replace(
            edit_from(scene, action="update", reason=self._reason(edit, added)),
            body=body,
            heat=scene.heat + self._added_heat(added),
            atoms=cited_atoms(body),
            entities=list(dict.fromkeys([*scene.entities, *_entities(citable, cited_atoms(added))]))[:_ENTITIES],
        )

    def _changeable(self, name: str, *, in_full: bool = True) -> Scene | None:
        """Return the page with this name if an edit may change it; otherwise add an error and return None.

        With `in_full`, the question must have shown the page in full.
        """
        scene = find_scene(self.round.scenes, name)
        if scene is None:
            slugs = ", ".join(self.round.scenes) or "none yet"
            self.errors.append(f"There is no page {one_line(name, 60)!r}. Pages: {slugs}.")
        elif scene.slug in self.round.unseen:
            self.errors.append(f"The page {scene.slug} is to be rewritten, in another round: leave it as it is.")
        elif in_full and scene.slug not in self.round.shown:
            self.errors.append(
                f"The page {scene.slug} was not shown in full, so it cannot be rewritten now: "
                "`append` to it what is new, or leave it as it is."
            )
        elif scene.slug in self.changed:
            self.errors.append(f"The page {scene.slug} is in two edits: make one of them.")
        else:
            return scene
        return None

    def _free_slug(self, edit: RequestedEdit) -> str:
        return free_slug(edit.name or _heading(edit.body), {*self.round.scenes, *self.pages})

    def _delete(self, scene: Scene, reason: str) -> None:
        self.deleted[scene.slug] = SceneEdit(action="delete", slug=scene.slug, reason=reason, version=scene.version)

    def _write(self, action: SceneAction, slug: str, edit: RequestedEdit, bases: Sequence[Scene]) -> None:
        scene = self.round.scenes.get(slug)
        model = scene or next(iter(bases), None)
        body = self._supported(slug, self._requested_body(edit, bases), self.round.atoms)
        self._check_length(slug, body)
        title = one_line(without_citations(edit.title or _heading(edit.body)), _TITLE) or (
            model.title if model else slug
        )
        old_summary = model.summary if model and not edit.body else ""
        summary = self._summary(slug, edit.summary or old_summary, body)
        if not well_formed(title + summary + body):
            self.errors.append(f"The page {slug} has a lone surrogate, which is not text.")
        self.pages[slug] = SceneEdit(
            action=action,
            slug=slug,
            reason=self._reason(edit, body),
            title=title,
            summary=summary,
            body=body,
            heat=sum(page.heat for page in bases) + self._added_heat(body) if bases else 1,
            atoms=cited_atoms(body),
            entities=_entities(self.round.atoms, cited_atoms(body)),
            version=scene.version if scene else None,
        )

    def _requested_body(self, edit: RequestedEdit, bases: Sequence[Scene]) -> str:
        """Return the body that an edit gives, or the current page with its lines changed.

        If the lines cannot be changed, an error is added and the page is returned as it is.
        """
        if edit.body or len(bases) != 1:
            return edit.body
        (scene,) = bases
        try:
            return change_lines(self.round.stored.get(scene.slug, scene.body), scene.body, edit.lines)
        except InvalidInput as error:
            self.errors.append(f"The page {scene.slug}: {error}")
            return scene.body

    def _new_ids(self, text: str) -> list[str]:
        return [id for id in cited_atoms(text) if id in self.round.new]

    def _reason(self, edit: RequestedEdit, text: str) -> str:
        """Return why a page changes: the reason of the edit, otherwise its new atoms."""
        new = self._new_ids(text)
        return one_line(edit.reason, _REASON) or (f"tells {_first_few(new)}" if new else "told anew")

    def _added_heat(self, text: str) -> int:
        """Return 0 if a page has new statements and all are about others than the user, otherwise 1."""
        new = [self.round.atoms[id] for id in self._new_ids(text)]
        return int(not new or any(not atom.entities or USER in map(fold, atom.entities) for atom in new))

    def _summary(self, slug: str, text: str, body: str) -> str:
        """Return the summary, or the page's gist if the summary is empty or names something that the page does not.

        Notes what the page does not name.
        """
        summary = one_line(without_citations(text), _SUMMARY)
        atoms = [self.round.atoms[id] for id in cited_atoms(body) if id in self.round.atoms]
        words = [word for atom in atoms for word in (atom.text, *atom.entities)]
        unsupported = unsupported_names(summary, " ".join([without_citations(body), *words]))
        if unsupported:
            self.refused.append(
                f"{slug}: the summary names {_first_few(unsupported)}, and the page does not: replaced."
            )
        return summary if summary and not unsupported else gist(body)

    def _supported(self, slug: str, text: str, citable: Collection[str]) -> str:
        """Remove the words that cite no citable atom, with notes, and return the rest of the body.

        Adds an error if no line with evidence is left, or if more parts lack evidence than lines have evidence.
        """
        body = unwrap(_without_wrapping(text))
        unknown = [id for id in cited_atoms(body) if id not in citable]
        if unknown:
            body = without_atoms(body, unknown)
            self.refused.append(f"{slug} cited {_first_few(unknown)}, not shown or forgotten: left out with its words.")
        bare = [*uncited_lines(body), *uncited_tails(body)]
        body = without_uncited(body)
        lines = sum(1 for line in body.splitlines() if cited_atoms(line))
        if not lines or len(bare) > lines:
            self.errors.append(
                f"The page {slug} has too little to rest on: lines with a statement that was shown {lines}, without "
                f"{len(bare)}. End each sentence with its ids, such as (a12), and write nothing that rests on nothing."
            )
        self.refused += [f"{slug}: this rests on nothing, and was left out: {one_line(line, 100)}" for line in bare]
        return body

    def _check_length(self, slug: str, body: str) -> None:
        length = len(without_citations(body))
        if length > MAX_CHARS:
            self.errors.append(
                f"The page {slug} has {length:,} characters without its ids, and {MAX_CHARS:,} are kept: "
                f"tell it shorter by {length - MAX_CHARS}, or give a part of the story a page of its own."
            )

    # all edits together

    def covered_ids(self) -> set[str]:
        """Return the ids of the atoms that some page cites after the edits."""
        unchanged = (scene.atoms for slug, scene in self.round.scenes.items() if slug not in self.changed)
        return set(chain(*unchanged, *(page.atoms for page in self.pages.values())))

    def _lost(self, slugs: Iterable[str]) -> list[Atom]:
        """Return the valid atoms that these pages cited, but that no page cites now and no reason explains."""
        before = chain(*(self.round.scenes[slug].atoms for slug in slugs if slug in self.round.scenes))
        atoms = (self.round.atoms[id] for id in dict.fromkeys(before) if id in self.round.atoms)
        accounted_for = self.covered_ids() | self.explained_ids
        return [atom for atom in atoms if atom.valid_to is None and atom.id not in accounted_for]

    def restore_forgotten(self) -> None:
        """Add the few statements that an edit left out back to its page, in their own words.

        This saves a second question, which would double the cost. If an edit left out more than three statements, or
        more than a third of the page's, nothing is restored, and the reply is refused (`losses`).
        """
        for slug, page in self.pages.items():
            lost = self._lost([slug])
            before = len(self.round.scenes[slug].atoms) if lost else 0
            body = _with_sentences(page.body, "\n".join(f"{atom.text.rstrip('.。')} ({atom.id})." for atom in lost))
            if 0 < len(lost) <= min(_MAX_RESTORED, before // 3) and len(without_citations(body)) <= MAX_CHARS:
                self.pages[slug] = replace(page, body=body, atoms=cited_atoms(body))
                ids = _first_few([atom.id for atom in lost])
                self.refused.append(f"{slug}: told again, for it still holds: {ids}.")

    def losses(self) -> Iterator[str]:
        if lost := self._lost(self.changed):
            yield (
                f"These still hold and would be told by no page any more: {_statements(lost)}. "
                "Tell each where it belongs, with its id, or put it under `dropped` with the reason."
            )

    def missing(self) -> Iterator[str]:
        to_cover = self.round.to_cover
        accounted_for = self.covered_ids() | self.explained_ids
        silent = [atom for atom in to_cover if atom.id not in accounted_for]
        if 2 * len(silent) > len(to_cover):
            yield (
                f"{len(silent)} of {len(to_cover)} new statements are in no page: {_statements(silent)}. "
                "Tell each where it belongs, with its id, or put it under `dropped` with the reason."
            )

    def excess(self) -> Iterator[str]:
        scenes, room = self.round.scenes, self.round.most - 1
        total = len({*scenes, *self.pages} - {*self.deleted})
        if total > room and (self.pages.keys() - scenes.keys() or len(scenes) >= self.round.most):
            yield (
                f"That would leave {total} pages, and there is room for {room}. Merge pages that belong together, "
                f"{total - room} more than you did, or tell what is new in a page that is there."
            )

    def remove_orders(self) -> None:
        """Remove lines that read like an order to a model, and pages without other lines or with such a title.

        Notes what it removes.
        """
        for slug, page in list(self.pages.items()):
            lines = page.body.splitlines()
            orders = [line for line in lines if flags(line, "assistant")]
            body = "\n".join(line for line in lines if line not in orders)
            is_titled_so = bool(flags(f"{page.title}\n{page.summary}", "assistant"))
            if is_titled_so or (orders and not cited_atoms(body)):
                del self.pages[slug]
                self.refused.append(f"The page {slug} was left out, for it reads like an order to a model.")
            elif orders:
                self.pages[slug] = replace(page, body=body, atoms=cited_atoms(body))
                self.refused += [
                    f"Left out of {slug}, for it reads like an order: {one_line(line, 80)!r}." for line in orders
                ]

    def finish(self) -> None:
        """Turn dead links into words, and mark statements that are not the user's."""
        titles = {slug: scene.title for slug, scene in self.round.scenes.items() if slug not in self.deleted}
        titles |= {slug: page.title for slug, page in self.pages.items()}
        slugs = {name: slug for slug, title in titles.items() for name in (slug, slug_of(title))}
        for slug, page in self.pages.items():
            dead: list[str] = []
            for name in links(page.body):
                target = slugs.get(slug_of(name))
                if target == slug or not (target or self.round.is_entity(name)):
                    dead.append(name)
            body = attribute_page(without_links(page.body, dead), self.round.atoms.values(), self.round.speakers)
            self.pages[slug] = replace(page, body=body)


def _entities(atoms: Mapping[str, Atom], ids: Iterable[str]) -> list[str]:
    """Return the entities of the atoms except the user, the most frequent first."""
    names = Counter(name for id in ids for name in atoms[id].entities if fold(name) != USER)
    return [name for name, _ in names.most_common(_ENTITIES)]


def _with_sentences(body: str, added: str) -> str:
    """Return a page with sentences added to its part about the present, which comes before its first heading."""
    present, heading, story = body.partition("\n## ")
    return f"{present.rstrip()}\n\n{added}\n{heading}{story}".strip()


def _statements(atoms: Sequence[Atom]) -> str:
    named = "; ".join(f"({atom.id}) {one_line(atom.text, _STATEMENT).rstrip('.')}" for atom in atoms[:_MAX_NAMED])
    return named + (f"; and {', '.join(atom.id for atom in atoms[_MAX_NAMED:])}" if len(atoms) > _MAX_NAMED else "")


def _first_few(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_NAMED]) + (" …" if len(names) > _MAX_NAMED else "")


# --- text -------------------------------------------------------------------------------------------

_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_FRONT_MATTER = re.compile(r"\s*---\n.*?\n---\n", re.DOTALL)
_TITLE_LINE = re.compile(r"\s*# (?P<title>[^\n]*)(\n|$)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WITHIN = re.compile(r"(?<=[^\W_])[ ,;]+[\"'“‘„«(]*([^\W\d_][\w'’-]*)")  # words that begin no sentence
_CAPITAL_NOUNS = {"de", "lb"}
_STEM = 4


def _without_wrapping(text: str) -> str:
    """Return a body without the wrapping that models add: a Markdown fence, front matter, a repeated title."""
    text = _UNREADABLE.sub("", text.replace("\r\n", "\n"))
    if text.lstrip()[:3] in ("---", "```"):
        text = _FRONT_MATTER.sub("", without_fence(text), count=1)
    return _TITLE_LINE.sub("", text, count=1).strip() if _TITLE_LINE.match(text) else text.strip()


def _heading(body: str) -> str:
    """Return the title line of a body, empty without any."""
    line = _TITLE_LINE.match(body)
    return line["title"].strip() if line else ""


def unsupported_names(summary: str, page: str) -> list[str]:
    """Return the numbers and names of a summary that its page lacks, each once.

    Names are recognized by their capitals, so only in scripts and languages that capitalize nothing else. They may be
    inflected.
    """
    numbers, words = set(_NUMBER.findall(page)), fold(page)
    unsupported = [number for number in _NUMBER.findall(summary) if number not in numbers]
    if _CAPITAL_NOUNS.isdisjoint(languages_of(summary.lower().split())[:1]):
        names = [word for word in _WITHIN.findall(summary) if word[0].isupper()]
        unsupported += [name for name in names if _stem(name) not in words]
    return list(dict.fromkeys(unsupported))


def _stem(name: str) -> str:
    word = fold(re.split("['’]", name)[0])
    return word[: max(_STEM, len(word) - 2)]
