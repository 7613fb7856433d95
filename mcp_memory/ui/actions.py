"""Actions that forms run, by name. `run` checks the right, runs the action, and returns the next address or page.

An action calls verbs of `Memory`. It returns the address of the next page, which confirms the action (`confirmations`),
or a page that is shown only once. Tokens, backups and purging are for the owner, whatever the right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast, get_args

from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.rights import RIGHTS, Right
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import Atom, Remembered, StatementKind
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.ui import times
from mcp_memory.ui.components import TYPED_HERE, Page, View, link, memory_text, no_item, note, part, section
from mcp_memory.ui.confirmations import confirmation_address
from mcp_memory.ui.elements import el
from mcp_memory.ui.sessions import Reader

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
    from mcp_memory.ui.exports import Exports
    from mcp_memory.ui.pages.item import Correction


_BLANK = "Nothing was stored: the text was empty. If nothing is true instead, say that it ended."
_SAME = "Nothing was changed: this is what is known already. Write what is true instead."
_NO_VALUE = "Your text no longer has the value that is known. Write the new one; leave it empty if there is none."
_STALE = "This changed after you had opened it. Your text is not stored yet: save it if it is still right."
_SENTENCES = re.compile(r"[\n.!?;]\s")  # within what replaces a value: it is more than a value
PURGE_WORD = "PURGE"
_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")
_MAX_DAYS = 36_500
_CANVAS_ACTIONS = ("fold", "unfold", "complete", "switch")
_CONTRADICTED = 3
_NOTHING_CHOSEN = "Nothing is chosen. Choose at least one and repeat."


class Forbidden(Refused):
    """The reader lacks the right to an action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of an action: the memory it works on, the reader who calls it, and the fields of the form."""

    memory: Memory
    reader: Reader
    exports: Exports | None = None
    form: Mapping[str, str] = field(default_factory=dict[str, str])

    def text(self, name: str, default: str = "") -> str:
        return self.form.get(name, default).replace("\r\n", "\n").strip()

    def ids(self, name: str) -> list[str]:
        return self.form.get(name, "").split()

    def number(self, name: str) -> int:
        text = self.text(name)
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise InvalidInput(f"{name} must be a whole number, not {one_line(text, 40)!r}.")
        return int(text)

    @property
    def view(self) -> View:
        """A view for the same reader, for an action that answers with a form."""
        token = self.form.get("form_token", "")
        return View(memory=self.memory, right=self.reader.right, form_token=token, is_owner=self.reader.is_owner)

    def back(self, default: str) -> str:
        return own_path(self.form.get("back", "")) or default


def names() -> Collection[str]:
    """Return the names of all actions."""
    return _ACTIONS.keys()


def own_path(path: str) -> str | None:
    """Return the path if it is an address of this interface, else None."""
    steps = path.partition("?")[0].split("/")
    return path if _PATH.fullmatch(path) and not {"..", "."} & set(steps) else None


async def run(name: str, call: Call) -> str | Page:
    """Run an action; return the address of the next page, or a page that is shown only once.

    Raises NotFound for an unknown action, Forbidden without the right, and the errors of its verbs.
    """
    action = _ACTIONS.get(name)
    if action is None:
        raise NotFound(f"There is no action {one_line(name, 40)}.")
    if not call.reader.allows(action.needs):
        rights = f"This needs the right {action.needs}, and this session has {call.reader.right}."
        raise Forbidden(f"{rights} Open the memory with another token.")
    if action.is_of_owner and not call.reader.is_owner:
        raise Forbidden("Only the owner can do this, on the machine of the memory: mcp-memory ui.")
    return await action.run(call)


def _not_one_of(name: str, choices: Iterable[str]) -> InvalidInput:
    return InvalidInput(f"{name} must be one of: {', '.join(choices)}.")


# --- statements, turns and results ------------------------------------------------------------------
async def _remember(call: Call) -> str | Page:
    text, kind = call.text("text"), cast("StatementKind | None", call.text("kind") or None)
    if kind is not None and kind not in get_args(StatementKind):
        raise _not_one_of("kind", get_args(StatementKind))
    if ids := call.ids("supersedes"):
        return await _correct(call, ids[0], text)
    stored = await call.memory.remember(text, kind=kind, source="user", typed=_is_typed(call), session=_session(call))
    return _stored(stored)


def _is_typed(call: Call) -> bool:
    """Return whether the reader is a person: one with the right write may be an agent."""
    return call.reader.allows("admin")


def _session(call: Call) -> str | None:
    return TYPED_HERE if _is_typed(call) else None


def _stored(stored: Remembered) -> str:
    """Return the address of a new statement, with the statements that it may contradict unless it replaced some."""
    id = stored.atom.id
    if stored.duplicate:
        return confirmation_address(f"/{id}", "known", id)
    if not stored.replaced and (others := [*stored.contradicting, *stored.unsure]):
        return confirmation_address(f"/{id}", "contradicts", id, *others[:_CONTRADICTED])
    return confirmation_address(f"/{id}", "stored", id)


async def _replace(call: Call) -> str:
    """Let a statement replace another: it is stored again, as a correction of that other and of itself."""
    id, old = call.text("id"), call.text("old")
    new = await call.memory.atom(id)
    stored = await call.memory.remember(
        new.text,
        kind="promise" if new.label == "promise" else new.kind,
        supersedes=[old, id],
        source="user",
        typed=_is_typed(call),
        session=_session(call),
    )
    return _stored(stored)


async def _correct(call: Call, id: str, text: str) -> str | Page:
    """Replace a statement; return the form again, with what was written, if that cannot be stored as it is."""
    from mcp_memory.ui.pages.item import Correction, show_statement

    draft = Correction(text=text, note="", is_never=call.text("when") == "never", day=call.text("valid_from"))
    old = next(iter(await call.memory.statements_by_id([id])), None)
    if old is None or old.valid_to is not None:
        return await _show_newest(call, id, draft)
    if not text:
        return await show_statement(call.view, id, replace(draft, text=ADDITION.sub("", old.text), note=_BLANK))
    if ADDITION.sub("", text).split() == ADDITION.sub("", remove_hidden(old.text)).split():
        return await show_statement(call.view, id, replace(draft, note=_SAME))
    value = await _new_value(call, old, text)
    if value is None:
        return await show_statement(call.view, id, replace(draft, note=_NO_VALUE, asks_value=True))
    fact = {"entity": old.fact.entity, "relation": old.fact.relation, "value": value} if old.fact and value else {}
    try:
        stored = await call.memory.remember(
            text,
            kind="promise" if old.label == "promise" else None,
            supersedes=[id],
            valid_from=_since(call, old),
            source="user",
            typed=_is_typed(call),
            session=_session(call),
            **fact,
        )
    except (InvalidInput, NotFound) as error:
        now = await call.memory.statements_by_id([id])
        if now and now[0].valid_to is None:
            return await show_statement(call.view, id, replace(draft, note=remove_hidden(str(error))))
        return await _show_newest(call, id, draft)
    return _stored(stored)


async def _show_newest(call: Call, id: str, draft: Correction) -> Page:
    """Return the page of the statement that has replaced another, with a correction of the other in its form."""
    from mcp_memory.ui.pages.forgetting import forgotten_item
    from mcp_memory.ui.pages.item import show_statement

    if gone := await call.memory.tombstone_over(id):
        page = await forgotten_item(call.view, id, gone)
        kept = memory_text(draft.text, tag="blockquote")
        return replace(page, body=(*page.body, section("Your text, which is not stored", kept)))
    old = next(iter(await call.memory.statements_by_id([id])), None)
    if old is None:
        raise no_item(id)
    newest = [old, *(await call.memory.why(id)).replaced_by][-1]
    return await show_statement(call.view, newest.id, replace(draft, note=_STALE, was=old))


async def _new_value(call: Call, old: Atom, text: str) -> str | None:
    """Return the value that the statement's fact has after a correction; empty if the correction decides by its words.

    None if it has to be asked: the text no longer states the old value, and what replaces it is not clear.
    """
    if old.fact is None:
        return ""
    if "value" in call.form:
        return call.text("value")
    if await call.memory.still_stated(text, supersedes=[old.id]):
        return ""
    return replacement(remove_hidden(old.text), old.fact.value, text)


def replacement(old: str, value: str, new: str) -> str | None:
    """Return what stands in the place of `value` in a text that is otherwise the same; None if it differs elsewhere."""
    for match in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", old, re.IGNORECASE):
        before, after = old[: match.start()], old[match.end() :]
        middle = new[len(before) : len(new) - len(after)].strip()
        if new == f"{before}{middle}{after}" and middle and not _SENTENCES.search(middle):
            return middle.rstrip(".")
    return None


def _since(call: Call, old: Atom) -> str | None:
    """Return the time from which a correction is valid: the start of what was never true, the given day, or now."""
    if call.text("when") == "never":
        return old.valid_from.isoformat()
    today = times.local(call.memory.now()).date().isoformat()
    return None if (day := call.text("valid_from")) == today else day or None


async def _end(call: Call) -> str:
    id, on = call.text("id"), call.text("on")
    is_today = on == times.local(call.memory.now()).date().isoformat()
    event = await call.memory.end_statement(id, on=None if is_today or not on else on)
    return confirmation_address(f"/{id}", "ended", event.atom.id)


async def _undo_correction(call: Call) -> str:
    id = call.text("id")
    replaced = [atom.id for atom in await call.memory.superseded_by([id])]
    undone = await call.memory.undo_correction(id)
    return confirmation_address(f"/{replaced[0] if replaced else undone.tombstone}", "uncorrected", id, *replaced)


async def _forget(call: Call) -> str:
    ids = call.ids("ids")
    if not ids:
        raise InvalidInput(_NOTHING_CHOSEN)
    forgotten = await call.memory.forget(ids, reason=call.text("reason"), dry_run=False)
    return f"/{forgotten.tombstone}" if forgotten.tombstone else call.back("/")


async def _undo(call: Call) -> str:
    tombstone = call.text("tombstone")
    restored = await call.memory.forget(undo=tombstone)
    return confirmation_address(call.back(f"/{part(tombstone)}"), "back", *_kinds(restored.ids))


def _kinds(ids: Iterable[str]) -> list[int]:
    """Return the numbers of statements, turns and tool results among these ids, in this order."""
    many = Counter(id[0] for id in ids)
    return [many[kind] for kind in "atr"]


async def _review(call: Call) -> str:
    match call.text("verdict"):
        case "released" | "kept" as verdict:
            done = await call.memory.review(call.ids("ids"), verdict)
        case "waiting" as verdict:
            done = await call.memory.review(call.ids("ids"), None)
        case _:
            raise _not_one_of("verdict", ("released", "kept", "waiting"))
    return confirmation_address(call.back("/review"), verdict, len(done), *(row.id for row in done))


async def _feedback(call: Call) -> str:
    match call.text("verdict"):
        case "helpful" | "wrong" as verdict:
            await call.memory.give_feedback(call.number("recall"), call.text("target"), verdict)
        case _:
            raise _not_one_of("verdict", ("helpful", "wrong"))
    return call.back("/live")


async def _undo_feedback(call: Call) -> str:
    await call.memory.undo_feedback(call.number("id"))
    return call.back("/live")


async def _purge(call: Call) -> str:
    if call.text("word") != PURGE_WORD:
        raise InvalidInput(f"Nothing was erased. Type {PURGE_WORD} to erase for good.")
    tombstones = call.ids("tombstones")
    if not tombstones:
        raise InvalidInput(_NOTHING_CHOSEN)
    purged_ids = [
        id for tombstone in await call.memory.purgeable() if tombstone.id in tombstones for id in tombstone.ids
    ]
    await call.memory.purge(tombstones)
    if call.exports is not None:
        await call.exports.discard(call.memory)
    return confirmation_address(call.back("/home"), "erased", *_kinds(purged_ids))


# --- scenes and tasks -------------------------------------------------------------------------------
async def _restore_scene(call: Call) -> str:
    scene = await call.memory.restore_scene(call.text("slug"), call.number("version"))
    return confirmation_address(f"/scene/{part(scene.slug)}", "restored", call.number("version"))


async def _undo_patch(call: Call) -> str:
    canvas = await call.memory.undo_patch(call.number("number"))
    return confirmation_address(f"/{canvas.number:03}", "unpatched")


async def _fold(call: Call) -> str:
    action = call.text("action")
    if action not in _CANVAS_ACTIONS:
        raise _not_one_of("action", _CANVAS_ACTIONS)
    number = call.number("number")
    await call.memory.fold_canvas(task=f"{number:03}", nodes=call.ids("nodes"), action=action)
    return confirmation_address(f"/{number:03}", action)


# --- the memory as a whole --------------------------------------------------------------------------
async def _pause(call: Call) -> str:
    await call.memory.pause()
    return confirmation_address(call.back("/savings"), "paused")


async def _resume(call: Call) -> str:
    await call.memory.resume()
    return confirmation_address(call.back("/savings"), "resumed")


async def _backup(call: Call) -> str:
    await call.memory.back_up()
    return confirmation_address(call.back("/home"), "copied")


async def _export(call: Call) -> str:
    if call.exports is None:
        raise Refused("This server makes no exports for pages. Run on it: mcp-memory export")
    call.exports.start(call.memory)
    return call.back("/home")


async def _revoke_token(call: Call) -> str:
    await call.memory.revoke_token(call.text("which"))
    return confirmation_address(call.back("/home"), "revoked")


async def _create_token(call: Call) -> Page:
    right = call.text("right") or "write"
    if right not in RIGHTS:
        raise _not_one_of("right", RIGHTS)
    days = call.number("days") if call.text("days") else None
    if days is not None and not 0 < days <= _MAX_DAYS:
        raise InvalidInput(f"A token can last for 1 to {_MAX_DAYS:,} days.")
    token, text = await call.memory.create_token(
        call.text("name"), right=right, expires=None if days is None else timedelta(days=days)
    )
    body = section(
        None,
        note("Copy it now: it is stored as a hash only, and not shown again.", kind="warn"),
        el("p", el("code", text, class_="secret")),
        el("p", f"It has the right {token.right} in: ", memory_text(", ".join(token.spaces))),
        el("p", link("/home", "Back")),
    )
    return Page(title=f"Token {token.name}", body=(body,), here="home")


@dataclass(frozen=True, slots=True)
class _Action:
    run: Callable[[Call], Awaitable[Any]]
    needs: Right = "admin"
    is_of_owner: bool = False


_ACTIONS = {
    "remember": _Action(_remember, "write"),
    "replace": _Action(_replace, "write"),
    "end": _Action(_end),
    "undo_correction": _Action(_undo_correction),
    "forget": _Action(_forget),
    "undo": _Action(_undo),
    "review": _Action(_review),
    "feedback": _Action(_feedback),
    "undo_feedback": _Action(_undo_feedback),
    "restore_scene": _Action(_restore_scene),
    "undo_patch": _Action(_undo_patch),
    "fold": _Action(_fold, "write"),
    "pause": _Action(_pause),
    "resume": _Action(_resume),
    "purge": _Action(_purge, is_of_owner=True),
    "backup": _Action(_backup, is_of_owner=True),
    "export": _Action(_export, is_of_owner=True),
    "revoke_token": _Action(_revoke_token, is_of_owner=True),
    "create_token": _Action(_create_token, is_of_owner=True),
}
