"""Confirmations: what a page says after an action, with the button that undoes it.

A confirmation is in the address as the name of a message with ids and numbers: `/a43?done=stored.a43.a33` shows
"Stored. It replaces “…”" with the words of a33. So no link can put any other text onto a page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from mcp_memory.core.text import one_line, plural
from mcp_memory.ui.components import View, action, line, link, memory_text, note, undo_correction
from mcp_memory.ui.elements import Element

PARAMETER = "done"
_VALUES = re.compile(r"(?:\.(?:[at][1-9][0-9]{0,17}|[0-9]{1,9})){0,12}")
_MAX_VALUES = 12
_WORDS = 120  # characters of a statement
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
    path, mark, place = path.partition("#")
    return f"{path}{'&' if '?' in path else '?'}{PARAMETER}={confirmation}{mark}{place}"


async def confirmation(parameter: str | None, view: View) -> list[Element]:
    """Return the message that an address names, with the button that undoes the action.

    Empty without a parameter, or for an unknown message.
    """
    name, dot, rest = (parameter or "").partition(".")
    if not _VALUES.fullmatch(f"{dot}{rest}"):
        return []
    values = rest.split(".") if rest else []
    match name, values:
        case "stored", [id, *_] if id[0] == "a":
            said = await _stored(view, id)
        case "contradicts", [id, *others] if all(value[0] == "a" for value in values):
            said = await _contradicts(view, id, others)
        case _:
            text = _text(name, values)
            said = [text, await _undo(view, name, values)] if text else []
    return [note(*said, kind="ok", tag="div")] if said else []


async def _stored(view: View, id: str) -> list[Any]:
    """Return that a statement was stored, what it replaced, and the button that undoes this."""
    new = await view.memory.statements_by_id([id])
    older = [old for old in await view.memory.superseded_by([id]) if new and old.text != new[0].text]
    if not older:
        return ["Stored."]
    words = (f"“{one_line(old.text, _WORDS)}”" for old in older)
    return ["Stored. It replaces ", memory_text(", ".join(words)), " ", undo_correction(view, id)]


async def _contradicts(view: View, id: str, others: Sequence[str]) -> list[Any]:
    """Return that a statement was stored, and what it may replace, each with the button that lets it."""
    said: list[Any] = ["Stored."]
    for old in await view.memory.statements_by_id(others):
        if old.valid_to is None:
            replace = action(view, "replace", "Replace", needs="write", id=id, old=old.id)
            said.append(line("This may replace:", link(f"/{old.id}", memory_text(one_line(old.text, _WORDS))), replace))
    return said


async def _undo(view: View, name: str, values: Sequence[str]) -> Element | None:
    """Return the button that undoes an action, None if it cannot be undone or its page has the button."""
    match name, values:
        case "ended", [event] if await view.memory.superseded_by([event]):
            return undo_correction(view, event)
        case (("released" | "kept"), [number, *ids]) if int(number) == len(ids):
            return action(view, "review", "Undo", key="u", ids=" ".join(ids), verdict="waiting", back="/review")
        case _:
            return None


def _text(name: str, values: Sequence[str]) -> str:
    """Return the text of a message; empty for an unknown message or unsuitable values."""
    match name, values:
        case "known", [_, *_]:
            return "The memory has this already. Nothing was changed."
        case "ended", [event] if event[0] == "a":
            return "It ended. It stays in the history."
        case "uncorrected", [_, *again] if again:
            return "Undone: this is true again."
        case "back", _:
            return f"Brought back: {_count_kinds(values)}."
        case "erased", _:
            return f"Erased for good: {_count_kinds(values)}."
        case (("released" | "kept" | "waiting" | "restored"), [number, *_]) if number.isdecimal():
            return _count_text(name, int(number))
        case _:
            return _TEXTS.get(name, "")


def _count_text(name: Literal["released", "kept", "waiting", "restored"], number: int) -> str:
    them = "it" if number == 1 else "them"
    match name:
        case "released":
            return f"{plural(number, 'item was', 'items were')} released. Agents may be told of {them} now."
        case "kept":
            return f"{plural(number, 'item is', 'items are')} kept out. No agent is told of {them}."
        case "waiting":
            return f"{plural(number, 'item waits', 'items wait')} for your decision again."
        case "restored":
            return f"Version {number:,} is the current one again."


def _count_kinds(values: Sequence[str]) -> str:
    """Format three numbers, of statements, turns and tool results, as words; numbers that are 0 are left out."""
    numbers = [int(value) for value in values if value.isdecimal()]
    nouns = ("statement", "message", "result")
    return ", ".join(plural(many, noun) for many, noun in zip(numbers, nouns, strict=False) if many) or "nothing"
