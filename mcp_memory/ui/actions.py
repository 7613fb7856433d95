"""Actions that forms run, by name. `run` checks the right, runs the action, and returns the next address or page.

An action calls verbs of `Memory`. It returns the address of the next page, which confirms the action, or a page that is
shown only once. Tokens, backups and purging are for the owner, whatever the right.

A confirmation is in the address as the name of a message with ids and numbers: `/a43?done=stored.a43.a33` shows "Stored
as a43. a33 no longer holds." So no link can put any other text onto a page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.rights import RIGHTS, Right
from mcp_memory.core.text import one_line, plural
from mcp_memory.core.types import Atom, Fact, StatementKind
from mcp_memory.ui.components import Page, View, link, memory_text, note, part, section, undo_correction
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.sessions import Reader

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
    from mcp_memory.ui.exports import Exports


CONFIRMATION = "done"
_CONFIRMATION_VALUES = re.compile(r"(?:\.(?:[at][1-9][0-9]{0,17}|[0-9]{1,9})){0,12}")
_MAX_VALUES = 12
_TEXTS = {
    "unpatched": "The patch was undone.",
    "fold": "Folded.",
    "unfold": "Unfolded.",
    "complete": "The task is marked as done.",
    "switch": "This is the active task now.",
    "paused": "Models are paused.",
    "resumed": "Models are asked again.",
    "copied": "A backup was made.",
    "revoked": "The token was revoked. It opens nothing any more.",
}
"""Messages without ids and numbers."""


def confirmation_address(path: str, name: str, *values: str | int) -> str:
    """Return the address of a page that confirms an action; the values are ids of rows, and numbers."""
    confirmation = ".".join(map(str, (name, *values[:_MAX_VALUES])))
    return f"{path}{'&' if '?' in path else '?'}{CONFIRMATION}={confirmation}"


def confirmation(parameter: str | None, view: View) -> list[Element]:
    """Return the message that an address names, and the button that undoes a correction.

    Empty without a parameter, or for an unknown message.
    """
    name, dot, rest = (parameter or "").partition(".")
    if not _CONFIRMATION_VALUES.fullmatch(f"{dot}{rest}"):
        return []
    values = rest.split(".") if rest else []
    text = _confirmation_text(name, values)
    undo = None
    if name == "stored" and len(values) > 1:
        undo = undo_correction(view, values[0])
    return [note(text, kind="ok"), *([undo] if undo else [])] if text else []


def _confirmation_text(name: str, values: Sequence[str]) -> str:
    """Return the text of a message; empty for an unknown message or unsuitable values."""
    match name, values:
        case "stored", [id, *ended] if all(value[0] == "a" for value in values):
            verb = "holds" if len(ended) == 1 else "hold"
            return f"Stored as {id}." + (f" {', '.join(ended)} no longer {verb}." if ended else "")
        case "known", [id, *_]:
            return f"The memory had this already, as {id}. Nothing new was stored."
        case "uncorrected", [id, *again] if again:
            verb = "holds" if len(again) == 1 else "hold"
            return f"The correction {id} is undone. {', '.join(again)} {verb} again."
        case "back", _:
            return f"Brought back: {_count_kinds(values)}."
        case "erased", _:
            return f"Erased for good: {_count_kinds(values)}."
        case (("forgotten" | "released" | "kept" | "restored"), [number, *_]) if number.isdecimal():
            return _count_text(name, int(number))
        case _:
            return _TEXTS.get(name, "")


def _count_text(name: Literal["forgotten", "released", "kept", "restored"], number: int) -> str:
    them = "it" if number == 1 else "them"
    match name:
        case "forgotten":
            return f"{plural(number, 'item was', 'items were')} forgotten. You can bring {them} back."
        case "released":
            return f"{plural(number, 'item was', 'items were')} released. Recall may bring {them} now."
        case "kept":
            return f"{plural(number, 'item stays', 'items stay')} in quarantine."
        case "restored":
            return f"Version {number:,} is the current one again."


def _count_kinds(values: Sequence[str]) -> str:
    """Format three numbers, of statements, turns and tool results, as words; numbers that are 0 are left out."""
    numbers = [int(value) for value in values if value.isdecimal()]
    nouns = ("statement", "turn", "tool result")
    return ", ".join(plural(many, noun) for many, noun in zip(numbers, nouns, strict=False) if many) or "nothing"


PURGE_WORD = "PURGE"
_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")
_MAX_DAYS = 36_500
_CANVAS_ACTIONS = ("fold", "unfold", "complete", "switch")
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
    ids, fact = call.ids("supersedes"), dict[str, str]()
    older = await call.memory.statements_by_id(ids)
    fact_before = next((atom.fact for atom in older if atom.fact), None)
    if fact_before is not None and "value" in call.form:
        value = call.text("value")
        if value and value != fact_before.value:
            fact = {"entity": fact_before.entity, "relation": fact_before.relation, "value": value}
        elif text and "asked" not in call.form and not await call.memory.still_stated(text, supersedes=ids):
            return _ask_value(call, older[0], fact_before)
    is_owner = call.reader.allows("admin")  # a reader with the right write may be an agent
    stored = await call.memory.remember(
        text, kind=kind, supersedes=ids, valid_from=_since(call, older), source="user", typed=is_owner, **fact
    )
    id, ended = stored.atom.id, [atom.id for atom in stored.replaced]
    return (
        confirmation_address(f"/{id}", "known", id)
        if stored.duplicate
        else confirmation_address(f"/{id}", "stored", id, *ended)
    )


def _ask_value(call: Call, atom: Atom, fact: Fact) -> Page:
    from mcp_memory.ui.pages.item import ask_value

    kind = cast("StatementKind", call.text("kind") or atom.kind)
    when, day = call.text("when"), call.text("valid_from")
    return ask_value(call.view, atom, fact, text=call.text("text"), kind=kind, when=when, day=day)


def _since(call: Call, older: Sequence[Atom]) -> str | None:
    """Return the time from which a correction is valid, None for the default of `remember`.

    It is the given day or, if the corrected statements were never true, their earliest start.
    """
    if day := call.text("valid_from"):
        return day
    if older and call.text("when") == "never":
        return min(atom.valid_from for atom in older).isoformat()
    return None


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
    return confirmation_address(
        f"/{forgotten.tombstone}" if forgotten.tombstone else call.back("/"), "forgotten", forgotten.total
    )


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
        case _:
            raise _not_one_of("verdict", ("released", "kept"))
    return confirmation_address(call.back("/review"), verdict, len(done))


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
    "undo_correction": _Action(_undo_correction),
    "forget": _Action(_forget),
    "undo": _Action(_undo),
    "review": _Action(_review),
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
