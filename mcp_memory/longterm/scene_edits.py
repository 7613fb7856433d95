"""Checks the scene edits of a reply against the stored scenes, and returns the edits to commit.

Left out with a note: lines without evidence, statements that were not shown, dead links. Put back with a note: a few
statements that an edit forgot. Refused as a whole, with all reasons at once: an unknown page, too many pages, a page
that is too long or mostly without evidence, and statements that no page would contain any more without a reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, well_formed
from mcp_memory.core.types import Atom, Scene, SceneAction
from mcp_memory.language.words import fold, languages_of
from mcp_memory.longterm.page_lines import LineChanges, patched
from mcp_memory.longterm.scenes import MERGED_INTO, USER, find_scene, free_slug, slug_of
from mcp_memory.longterm.verification.trust import attribute_page
from mcp_memory.models.llm import without_fence
from mcp_memory.models.metered import Applied
from mcp_memory.store.citations import (
    cited,
    covered,
    gist,
    links,
    plain,
    tails,
    uncovered,
    unlinked,
    unwrapped,
    without,
)
from mcp_memory.store.values import SceneEdit
from mcp_memory.suspicion.flags import flags

_ACTIONS = {
    "add": "create", "new": "create", "insert": "create", "edit": "update", "rewrite": "update", "modify": "update",
    "combine": "merge", "remove": "delete",
}  # fmt: skip


def _action(value: Any) -> Any:
    if value is None:
        return ""
    return _ACTIONS.get(value.strip().lower(), value.strip().lower()) if isinstance(value, str) else value


def _text(value: Any) -> Any:
    """Lines may come as a list, nothing as null."""
    if isinstance(value, list):
        return "\n".join(map(str, cast("list[Any]", value)))
    return "" if value is None else value


def _why(value: Any) -> Any:
    """A plain yes or no is taken for a reason, too."""
    if isinstance(value, bool):
        return "the scenes changed" if value else ""
    return _text(value)


def _names(value: Any) -> Any:
    return [] if value is None else [value] if isinstance(value, str) else value


def _dropped(value: Any) -> Any:
    """Return `{"atom": "a12", "reason": "small"}` or `{"a12": "small"}` as `a12: small`."""
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    if "atom" in given:
        return f"{given['atom']}: {given.get('reason') or ''}"
    return "; ".join(f"{id}: {reason or ''}" for id, reason in given.items())


Text = Annotated[str, BeforeValidator(_text)]


_DROPPED = re.compile(r"[\W_]*(a\d{1,18}\b(?:[^\w:：]+(?:and[^\w:：]+)?a\d{1,18}\b)*)\W*(.*)", re.DOTALL)
_NEXT_DROPPED = re.compile(r"[;；\n]\s*(?=\W?a\d)")


class RequestedEdit(BaseModel):
    """Lines of a page that change; a page whole; what to add to one; or one that should go."""

    model_config = ConfigDict(populate_by_name=True)

    slug: Text = ""
    lines: LineChanges = Field(default_factory=list[str])
    title: Text = ""
    summary: Text = ""
    body: Text = ""
    from_: Annotated[list[str], BeforeValidator(_names)] = Field(default_factory=list[str], alias="from")
    action: Annotated[Literal["", "create", "update", "append", "merge", "delete"], BeforeValidator(_action)] = ""
    """Empty where the other fields tell."""
    reason: SkipJsonSchema[Text] = ""


class SceneReply(BaseModel):
    """The resolution of the pages."""

    edits: list[RequestedEdit] = Field(default_factory=list[RequestedEdit])
    dropped: list[Annotated[str, BeforeValidator(_dropped)]] = Field(default_factory=list[str])
    """Statements that no page tells, each with the reason: `a12, a57: small`."""
    persona: Annotated[str, BeforeValidator(_why)] = ""
    """Why the page about the person has to change now; empty if it need not."""

    @property
    def explained(self) -> set[str]:
        """The statements that were dropped with a reason."""
        found = (_DROPPED.fullmatch(part) for one in self.dropped for part in _NEXT_DROPPED.split(one))
        return {id for one in found if one and one[2].strip() for id in re.findall(r"a\d+", one[1])}

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        if not isinstance(value, dict | list):
            return value
        given: dict[str, Any] = _as_reply(value)
        edits: Any = given.get("edits") or []
        within = [cast("dict[str, Any]", edit).get("dropped") for edit in _as_list(edits) if isinstance(edit, dict)]
        dropped = [one for part in (given.get("dropped"), *within) for one in _as_list(part)]
        why = given.get("persona", given.get("persona_update"))
        return {**given, "edits": edits, "dropped": dropped, "persona": why}


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value] if value else []


def _as_reply(value: Any) -> Any:
    if isinstance(value, list):
        return {"edits": cast("list[Any]", value)}
    return {"edits": [value]} if "action" in value or "slug" in value else value


MAX_CHARS = 1_500
"""Of a body, without its citations."""
_TITLE, _SUMMARY, _REASON, _STATEMENT = 80, 220, 300, 80
_ENTITIES = 12
_NAMED = 12  # problems named in one sentence
_PUT_BACK = 3  # statements of a page


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneRound:
    """The data that a reply is checked against."""

    scenes: Mapping[str, Scene]
    """All current scenes by slug, without forgotten words."""
    shown: Collection[str]
    """Slugs of those that the question showed in full."""
    stale: Collection[str]
    """Slugs of those that are due for rewriting."""
    atoms: Mapping[str, Atom]
    """What any page may cite: the question showed it, and it is not forgotten."""
    speakers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names of people who said some of them where a model would answer, by the ids of the atoms."""
    cited_elsewhere: Mapping[str, Atom] = field(default_factory=dict[str, Atom])
    """What pages cite that were not shown: each may cite it still."""
    stored: Mapping[str, str] = field(default_factory=dict[str, str])
    """Bodies of scenes as they are stored, where words of them were forgotten: their lines are counted in these."""
    new: Sequence[str]
    """Ids of the atoms to tell."""
    unseen: Collection[str] = ()
    """Slugs of those that are due for rewriting and were not shown: nothing is added to them before."""
    most: int
    """The largest number of scenes; a model leaves one free for a page that a person restores."""
    is_entity: Callable[[str], bool]


def check_edits(reply: SceneReply, given: SceneRound) -> tuple[list[SceneEdit], Applied]:
    """Return the edits to commit and a report of accepted and refused parts.

    Raises InvalidInput, which names all errors of a reply and how to correct them.
    """
    draft = _PageDrafts(given)
    for edit in reply.edits:
        draft.take(edit)
    explained = reply.explained
    _put_back(draft, explained)
    draft.complaints += [*_losses(draft, explained), *_untold(draft, explained), *_too_many(draft)]
    if draft.complaints:
        raise InvalidInput(" ".join(dict.fromkeys(draft.complaints)))
    _leave_out_orders(draft)
    for slug, page in draft.pages.items():
        linked = _with_links_that_lead_somewhere(draft, page)
        draft.pages[slug] = replace(linked, body=attribute_page(linked.body, given.atoms.values(), given.speakers))
    seen_again = [_as_it_was(given.scenes[slug]) for slug in given.stale if slug not in draft.touched]
    told = _told(draft) & set(given.new)
    silent = [id for id in _to_tell(given) if id not in told | explained]
    if silent:
        draft.refused.append(f"Told by no page: {', '.join(silent)}.")
    actions = Counter(page.action for page in draft.pages.values())
    outcome = {
        "created": actions["create"],
        "updated": actions["update"],
        "merged": actions["merge"],
        "deleted": len(draft.gone),
        "atoms": len(told),
    }
    kept = [
        f"{page.slug} ({page.action}): {page.title}, told from {', '.join(page.atoms)}."
        for page in draft.pages.values()
    ]
    kept += [f"{one.slug}: {one.reason}." for one in draft.gone.values()]
    counts = {what: count for what, count in outcome.items() if count}
    edits = [*draft.pages.values(), *draft.gone.values(), *seen_again]
    return edits, Applied(outcome=counts, kept=kept, refused=draft.refused)


def _leave_out_orders(draft: _PageDrafts) -> None:
    for slug, page in list(draft.pages.items()):
        ordered = [line for line in page.body.splitlines() if flags(line, "assistant")]
        body = "\n".join(line for line in page.body.splitlines() if line not in ordered)
        is_headed_so = bool(flags(f"{page.title}\n{page.summary}", "assistant"))
        if not cited(body) or is_headed_so:
            if ordered or is_headed_so:
                del draft.pages[slug]
                draft.refused.append(f"The page {slug} was left out, for it reads like an order to a model.")
        elif ordered:
            draft.pages[slug] = replace(page, body=body, atoms=cited(body))
            draft.refused += [
                f"Left out of {slug}, for it reads like an order: {one_line(line, 80)!r}." for line in ordered
            ]


def _as_it_was(scene: Scene) -> SceneEdit:
    """Return the edit that notes that a page was looked at again, so that it is not due for the same reason twice."""
    return SceneEdit(
        action="update",
        slug=scene.slug,
        reason="read again, and left as it was",
        title=scene.title,
        summary=scene.summary,
        body=scene.body,
        heat=scene.heat,
        atoms=scene.atoms,
        entities=scene.entities,
        version=scene.version,
    )


# --- the edits, one by one --------------------------------------------------------------------------


@dataclass
class _PageDrafts:
    """The pages after the edits, and the errors so far."""

    given: SceneRound
    pages: dict[str, SceneEdit] = field(default_factory=dict[str, SceneEdit])
    gone: dict[str, SceneEdit] = field(default_factory=dict[str, SceneEdit])
    complaints: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])

    @property
    def touched(self) -> set[str]:
        return {*self.pages, *self.gone}

    def take(self, edit: RequestedEdit) -> None:
        match self._meant(edit):
            case "create":
                self._create(edit)
            case "update":
                if (scene := self._own(edit.slug or edit.title)) is not None:
                    self._write("update", scene.slug, edit, [scene])
            case "append":
                self._append(edit)
            case "merge":
                self._merge(edit)
            case _:
                if (scene := self._own(edit.slug or edit.title)) is not None:
                    self._remove(scene, one_line(edit.reason, _REASON) or "no longer wanted")

    def _meant(self, edit: RequestedEdit) -> str:
        """Return what an edit does, where it does not say so, or changes lines under another name."""
        if edit.action in ("merge", "delete"):
            return edit.action
        if edit.lines and not edit.from_:
            return "update"
        scene = find_scene(self.given.scenes, edit.slug or edit.title)
        if edit.action or edit.from_ or scene is None:
            return edit.action or ("merge" if edit.from_ else "create")
        is_whole = scene.slug in self.given.shown and not set(scene.atoms).isdisjoint(cited(edit.body))
        return "update" if is_whole or not edit.body.strip() else "append"

    def _create(self, edit: RequestedEdit) -> None:
        name = edit.slug or edit.title
        scene = find_scene(self.given.scenes, name) if name.strip() else None
        if scene is not None and scene.slug in self.given.shown and scene.slug not in self.touched:
            self._write("update", scene.slug, edit, [scene])  # it says "new", but the page is there and it saw it
        else:
            self._write("create", self._free(edit), edit, [])

    def _merge(self, edit: RequestedEdit) -> None:
        into = find_scene(self.given.scenes, edit.slug)
        names = [into.slug, *edit.from_] if into else edit.from_
        pages = list({page.slug: page for name in names if (page := self._own(name)) is not None}.values())
        if not pages:
            self.complaints.append("A merge names under `from` the pages that become one.")
            return
        target = into or (pages[0] if len(pages) == 1 else None)
        slug = target.slug if target else self._free(edit)
        self._write("merge" if len(pages) > 1 else "update", slug, edit, pages)
        for page in pages:
            if page.slug != slug:
                self._remove(page, f"{MERGED_INTO}[[{slug}]]")

    def _append(self, edit: RequestedEdit) -> None:
        scene = self._own(edit.slug or edit.title, seen=False)
        if scene is None:
            return
        known = {**self.given.atoms, **{id: one for id, one in self.given.cited_elsewhere.items() if id in scene.atoms}}
        added = self._sound(scene.slug, edit.body, known)
        page = _as_it_was(scene)
        body = _with_more(scene.body, added)
        self._check_length(scene.slug, body)
        self.pages[scene.slug] = replace(
            page,
            reason=self._reason(edit, added),
            body=body,
            heat=scene.heat + self._warmth(added),
            atoms=cited(body),
            entities=list(dict.fromkeys([*scene.entities, *_entities(known, cited(added))]))[:_ENTITIES],
        )

    def _own(self, name: str, *, seen: bool = True) -> Scene | None:
        """Return a page that this edit may change, `seen` if it has to be known whole, and note why it may not."""
        scene = find_scene(self.given.scenes, name)
        if scene is None:
            known = ", ".join(self.given.scenes) or "none yet"
            self.complaints.append(f"There is no page {one_line(name, 60)!r}. Pages: {known}.")
        elif scene.slug in self.given.unseen:
            self.complaints.append(f"The page {scene.slug} is to be rewritten, in another round: leave it as it is.")
        elif seen and scene.slug not in self.given.shown:
            self.complaints.append(
                f"The page {scene.slug} was not shown in full, so it cannot be rewritten now: "
                "`append` to it what is new, or leave it as it is."
            )
        elif scene.slug in self.touched:
            self.complaints.append(f"The page {scene.slug} is in two edits: make one of them.")
        else:
            return scene
        return None

    def _free(self, edit: RequestedEdit) -> str:
        return free_slug(edit.slug or edit.title or heading_of(edit.body), {*self.given.scenes, *self.pages})

    def _remove(self, scene: Scene, reason: str) -> None:
        self.gone[scene.slug] = SceneEdit(action="delete", slug=scene.slug, reason=reason, version=scene.version)

    def _write(self, action: SceneAction, slug: str, edit: RequestedEdit, bases: Sequence[Scene]) -> None:
        held = self.given.scenes.get(slug) or next(iter(bases), None)
        body = self._sound(slug, self._whole(edit, bases), self.given.atoms)
        self._check_length(slug, body)
        title = one_line(plain(edit.title or heading_of(edit.body)), _TITLE) or (held.title if held else slug)
        told_before = held.summary if held and not edit.body.strip() else ""
        summary = self._summary(slug, edit.summary or told_before, body)
        if not well_formed(title + summary + body):
            self.complaints.append(f"The page {slug} has a lone surrogate, which is not text.")
        self.pages[slug] = SceneEdit(
            action=action,
            slug=slug,
            reason=self._reason(edit, body),
            title=title,
            summary=summary,
            body=body,
            heat=sum(page.heat for page in bases) + self._warmth(body) if bases else 1,
            atoms=cited(body),
            entities=_entities(self.given.atoms, cited(body)),
            version=self.given.scenes[slug].version if slug in self.given.scenes else None,
        )

    def _whole(self, edit: RequestedEdit, bases: Sequence[Scene]) -> str:
        """Return the body that an edit asks for, whole, or made from the page that stands."""
        if edit.body.strip() or len(bases) != 1:
            return edit.body
        (scene,) = bases
        stored = self.given.stored.get(scene.slug, scene.body)
        try:
            return patched(stored, scene.body, edit.lines)
        except InvalidInput as trouble:
            self.complaints.append(f"The page {scene.slug}: {trouble}")
            return scene.body

    def _reason(self, edit: RequestedEdit, text: str) -> str:
        """Return why a page changes: the reason given, or else what is new on it."""
        new = [id for id in cited(text) if id in self.given.new]
        return one_line(edit.reason, _REASON) or (f"tells {_some(new)}" if new else "told anew")

    def _warmth(self, text: str) -> int:
        """Return how much hotter a page gets: not at all by news that are only about others than the person."""
        new = [self.given.atoms[id] for id in cited(text) if id in self.given.new]
        return int(not new or any(_concerns_the_user(atom) for atom in new))

    def _summary(self, slug: str, text: str, body: str) -> str:
        """Return the summary, or the page's first statement where it names what nothing on the page does."""
        summary = one_line(plain(text), _SUMMARY)
        told = [self.given.atoms[id] for id in cited(body) if id in self.given.atoms]
        words = [word for atom in told for word in (atom.text, *atom.entities)]
        strange = unnamed(summary, " ".join([plain(body), *words]))
        if strange:
            self.refused.append(f"{slug}: the summary names {_some(strange)}, and the page does not: replaced.")
        return summary if summary and not strange else gist(body)

    def _sound(self, slug: str, text: str, known: Collection[str]) -> str:
        body = unwrapped(undressed(text))
        unknown = [id for id in cited(body) if id not in known]
        if unknown:
            body = without(body, unknown)
            self.refused.append(f"{slug} cited {_some(unknown)}, not shown or forgotten: left out with its words.")
        bare = [*uncovered(body), *tails(body)]
        body = covered(body)
        lines = sum(1 for line in body.splitlines() if cited(line))
        if not lines or len(bare) > lines:
            self.complaints.append(
                f"The page {slug} has too little to rest on: lines with a statement that was shown {lines}, without "
                f"{len(bare)}. End each sentence with its ids, such as (a12), and write nothing that rests on nothing."
            )
        self.refused += [f"{slug}: this rests on nothing, and was left out: {one_line(line, 100)}" for line in bare]
        return body

    def _check_length(self, slug: str, body: str) -> None:
        over = len(plain(body)) - MAX_CHARS
        if over > 0:
            self.complaints.append(
                f"The page {slug} has {len(plain(body)):,} characters without its ids, and {MAX_CHARS:,} are kept: "
                f"tell it shorter by {over}, or give a part of the story a page of its own."
            )


def _concerns_the_user(atom: Atom) -> bool:
    return not atom.entities or USER in map(fold, atom.entities)


def _entities(atoms: Mapping[str, Atom], ids: Iterable[str]) -> list[str]:
    """Return whom and what the atoms are about, the most named first; the user goes without saying."""
    named = Counter(name for id in ids for name in atoms[id].entities if fold(name) != USER)
    return [name for name, _ in named.most_common(_ENTITIES)]


def _with_links_that_lead_somewhere(draft: _PageDrafts, page: SceneEdit) -> SceneEdit:
    titles = {slug: scene.title for slug, scene in draft.given.scenes.items() if slug not in draft.gone}
    titles |= {slug: one.title for slug, one in draft.pages.items()}
    pages = {name: slug for slug, title in titles.items() for name in (slug, slug_of(title))}

    def leads(name: str) -> bool:
        slug = pages.get(slug_of(name))
        return slug != page.slug if slug else draft.given.is_entity(name)

    return replace(page, body=unlinked(page.body, [name for name in links(page.body) if not leads(name)]))


# --- all of them together ---------------------------------------------------------------------------


def _told(draft: _PageDrafts) -> set[str]:
    """Return the atoms that some page cites once the edits are made."""
    left = (scene.atoms for slug, scene in draft.given.scenes.items() if slug not in draft.touched)
    return set(chain(*left, *(page.atoms for page in draft.pages.values())))


def _to_tell(given: SceneRound) -> list[str]:
    """Return the new atoms that a page should tell. Rules for the agent are the persona's to tell."""
    news = (given.atoms[id] for id in given.new if id in given.atoms)
    return [atom.id for atom in news if atom.valid_to is None and atom.kind != "instruction"]


def _put_back(draft: _PageDrafts, explained: set[str]) -> None:
    """Tell on a page the few statements that it told before, in their own words, where an edit forgot them.

    Another question would cost as much as the first. A page that lost many, or over a third of what it told, is asked
    for again.
    """
    for slug, page in draft.pages.items():
        lost = _lost(draft, [slug], explained)
        told = len(draft.given.scenes[slug].atoms) if lost else 0
        body = _with_more(page.body, "\n".join(f"{atom.text.rstrip('.。')} ({atom.id})." for atom in lost))
        if 0 < len(lost) <= min(_PUT_BACK, told // 3) and len(plain(body)) <= MAX_CHARS:
            draft.pages[slug] = replace(page, body=body, atoms=cited(body))
            draft.refused.append(f"{slug}: told again, for it still holds: {_some([atom.id for atom in lost])}.")


def _lost(draft: _PageDrafts, slugs: Iterable[str], explained: set[str]) -> list[Atom]:
    """Return what these pages told before, holds still, and is told by no page after the edits, without a reason."""
    before = chain(*(draft.given.scenes[slug].atoms for slug in slugs if slug in draft.given.scenes))
    held = (draft.given.atoms[id] for id in dict.fromkeys(before) if id in draft.given.atoms)
    told = _told(draft) | explained
    return [atom for atom in held if atom.valid_to is None and atom.id not in told]


def _with_more(body: str, added: str) -> str:
    """Return a page with more about the present, which stands before its first heading."""
    now, heading, story = body.partition("\n## ")
    return f"{now.rstrip()}\n\n{added}\n{heading}{story}".strip()


def _losses(draft: _PageDrafts, explained: set[str]) -> Iterable[str]:
    if lost := _lost(draft, draft.touched, explained):
        yield (
            f"These still hold and would be told by no page any more: {_statements(lost)}. "
            "Tell each where it belongs, with its id, or put it under `dropped` with the reason."
        )


def _untold(draft: _PageDrafts, explained: set[str]) -> Iterable[str]:
    to_tell = _to_tell(draft.given)
    silent = [draft.given.atoms[id] for id in to_tell if id not in _told(draft) | explained]
    if 2 * len(silent) > len(to_tell):
        yield (
            f"{len(silent)} of {len(to_tell)} new statements are in no page: {_statements(silent)}. "
            "Tell each where it belongs, with its id, or put it under `dropped` with the reason."
        )


def _too_many(draft: _PageDrafts) -> Iterable[str]:
    standing, room = len(draft.given.scenes), draft.given.most - 1
    final = len({*draft.given.scenes, *draft.pages} - {*draft.gone})
    made = [slug for slug in draft.pages if slug not in draft.given.scenes]
    if final > room and (made or standing >= draft.given.most):
        yield (
            f"That would leave {final} pages, and there is room for {room}. Merge pages that belong together, "
            f"{final - room} more than you did, or tell what is new in a page that is there."
        )


def _statements(atoms: Sequence[Atom]) -> str:
    named = "; ".join(f"({atom.id}) {one_line(atom.text, _STATEMENT).rstrip('.')}" for atom in atoms[:_NAMED])
    return named + (f"; and {', '.join(atom.id for atom in atoms[_NAMED:])}" if len(atoms) > _NAMED else "")


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED]) + (" …" if len(ids) > _NAMED else "")


_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_FRONT_MATTER = re.compile(r"\s*---\n.*?\n---\n", re.DOTALL)
_TITLE_LINE = re.compile(r"\s*# (?P<title>[^\n]*)(\n|$)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WITHIN = re.compile(r"(?<=[^\W_])[ ,;]+[\"'“‘„«(]*([^\W\d_][\w'’-]*)")  # words that begin no sentence
_CAPITAL_NOUNS = {"de", "lb"}
_STEM = 4


def undressed(text: str) -> str:
    """Return a body without the wrapping that models add: a Markdown fence, front matter, a repeated title."""
    text = _UNREADABLE.sub("", text.replace("\r\n", "\n"))
    if text.lstrip()[:3] in ("---", "```"):
        text = _FRONT_MATTER.sub("", without_fence(text), count=1)
    return _TITLE_LINE.sub("", text, count=1).strip() if _TITLE_LINE.match(text) else text.strip()


def heading_of(body: str) -> str:
    """Return the title that a body brings along, empty where it brings none."""
    found = _TITLE_LINE.match(body)
    return found["title"].strip() if found else ""


def unnamed(summary: str, page: str) -> list[str]:
    """Return the numbers and names of a summary that its page lacks, each once.

    Names are recognized by their capitals, so only in scripts and languages that capitalize nothing else. They may be
    inflected.
    """
    said = fold(page)
    numbers = set(_NUMBER.findall(page))
    strange = [number for number in _NUMBER.findall(summary) if number not in numbers]
    if _CAPITAL_NOUNS.isdisjoint(languages_of(summary.lower().split())[:1]):
        names = [word for word in _WITHIN.findall(summary) if word[0].isupper()]
        strange += [name for name in names if _stem(name) not in said]
    return list(dict.fromkeys(strange))


def _stem(name: str) -> str:
    word = fold(re.split("['’]", name)[0])
    return word[: max(_STEM, len(word) - 2)]
