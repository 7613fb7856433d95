"""Confirmations: the result of an action, shown once at the top of the page that it leads to.

The address carries the name of a message with ids and numbers: `/a43?done=stored.a43.a33` says "Stored as a43. a33 no
longer holds." So no link can put any other text onto a page. `told` writes such an address, `said` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from mcp_memory.ui.components import action, note
from mcp_memory.ui.elements import Element
from mcp_memory.ui.views import View
from mcp_memory.ui.words import t

PARAMETER = "done"
_VALUES = re.compile(r"(?:\.(?:[at][1-9][0-9]{0,17}|[0-9]{1,9})){0,12}")
_MOST = 12


def told(path: str, name: str, *values: str | int) -> str:
    """Return the address of a page that confirms an action; the values are ids of rows, and numbers."""
    given = ".".join(map(str, (name, *values[:_MOST])))
    return f"{path}{'&' if '?' in path else '?'}{PARAMETER}={given}"


def said(given: str | None, view: View) -> list[Element]:
    """Return the message that an address asks for, and the button that undoes a correction.

    Empty where it asks for none, or for one that there is not.
    """
    name, dot, rest = (given or "").partition(".")
    if name not in _MESSAGES or not _VALUES.fullmatch(f"{dot}{rest}"):
        return []
    values = rest.split(".") if rest else []
    text = _MESSAGES[name](values)
    undo = None
    if name == "stored" and len(values) > 1:
        undo = action(view, "undo_correction", t("item.undo_correction"), id=values[0], back=f"/{values[0]}")
    return [note(text, kind="ok"), *([undo] if undo else [])] if text else []


def _stored(values: Sequence[str]) -> str:
    id, *ended = [one for one in values if one[0] == "a"] or [""]
    if not id:
        return ""
    over = t("done.over", count=len(ended), ids=", ".join(ended)) if ended else ""
    return f"{t('done.stored', id=id)} {over}".strip()


def _uncorrected(values: Sequence[str]) -> str:
    id, *again = values or [""]
    return t("done.uncorrected", count=len(again), id=id, ids=", ".join(again)) if again else ""


def _known(values: Sequence[str]) -> str:
    return t("done.known", id=values[0]) if values else ""


def _back(values: Sequence[str]) -> str:
    return t("done.back", things=_things(values))


def _erased(values: Sequence[str]) -> str:
    return t("done.erased", things=_things(values))


def _things(values: Sequence[str]) -> str:
    """Return how many statements, turns and tool results these are."""
    keys = ("item.gone_statements", "item.gone_turns", "item.gone_results")
    many = [int(value) for value in values if value.isdecimal()]
    told = [t(key, count=number) for key, number in zip(keys, many, strict=False) if number]
    return ", ".join(told) or t("done.nothing")


def _counted(key: str) -> Callable[[Sequence[str]], str]:
    def of(values: Sequence[str]) -> str:
        return t(key, count=int(values[0])) if values and values[0].isdecimal() else ""

    return of


def _plain(key: str) -> Callable[[Sequence[str]], str]:
    return lambda _: t(key)


_MESSAGES: Mapping[str, Callable[[Sequence[str]], str]] = {
    "stored": _stored,
    "known": _known,
    "uncorrected": _uncorrected,
    "back": _back,
    "erased": _erased,
    "forgotten": _counted("done.forgotten"),
    "released": _counted("done.released"),
    "kept": _counted("done.kept"),
    "restored": _counted("done.restored"),
    "unpatched": _plain("done.unpatched"),
    "fold": _plain("done.fold"),
    "unfold": _plain("done.unfold"),
    "complete": _plain("done.complete"),
    "switch": _plain("done.switch"),
    "paused": _plain("done.paused"),
    "resumed": _plain("done.resumed"),
    "copied": _plain("done.copied"),
    "revoked": _plain("done.revoked"),
}
