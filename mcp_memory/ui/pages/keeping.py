"""Parts of the page `home`: forgotten items, retention, backups, export and import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp_memory.core.text import format_bytes
from mcp_memory.ui import components as ui
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.forgetting import words_box
from mcp_memory.ui.views import View
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.service.upkeep.backup import Backup
    from mcp_memory.service.verbs.retention import OverdueRows
    from mcp_memory.store.values import Tombstone


_TOMBSTONES = 50
_WORDED = 20
_IDS = 8
_PURGE = "purge"
"""The id of the form for what is ticked."""


async def forgotten(view: View, tombstones: Sequence[Tombstone]) -> Element:
    """Return the forgotten items, the last first, with buttons that bring them back, and the form that erases some.

    Whoever may bring them back can open the words of the last ones.
    """
    found = sorted(tombstones, key=lambda one: int(one.id[1:]), reverse=True)
    shown = found[:_TOMBSTONES]
    words = {one.id: await words_box(view, one.id) for one in [one for one in shown if _is_open(one)][:_WORDED]}
    can_erase = view.is_owner and any(_is_open(one) for one in shown)
    purge = can_erase and ui.form(
        view,
        "purge",
        el("p", t("forgotten.purge_about")),
        el("label", t("forgotten.type"), " ", el("input", type="text", name="word", required=True, autocomplete="off")),
        el("button", t("forgotten.purge"), class_="danger"),
        id_=_PURGE,
    )
    return ui.section(
        t("forgotten.title"),
        ui.rows((_tombstone(view, one), words.get(one.id)) for one in shown)
        if shown
        else ui.empty(t("forgotten.none")),
        el("p", t("forgotten.more", count=len(found) - len(shown))) if len(found) > len(shown) else None,
        el("details", el("summary", t("forgotten.erase")), purge) if purge else None,
        id="forgotten",
    )


def _is_open(one: Tombstone) -> bool:
    return not (one.undone or one.purged)


def _tombstone(view: View, one: Tombstone) -> Element:
    tick = undo = None
    if _is_open(one) and view.may("admin"):
        label = t("forgotten.tick", id=one.id)
        if view.is_owner:
            tick = el("input", type="checkbox", name="tombstones", value=one.id, form=_PURGE, aria_label=label)
        undo = ui.action(view, "undo", t("shared.undo"), key="u", tombstone=one.id, back="/home")
    state = t("forgotten.purged") if one.purged else t("forgotten.undone") if one.undone else None
    more = f" … {ui.count(len(one.ids) - _IDS)}" if len(one.ids) > _IDS else ""
    return ui.gap(
        tick,
        ui.link(f"/{one.id}", one.id, class_="id"),
        ui.moment(one.at),
        ui.badge(t(f"item.how_{one.how}"), "kind"),
        el("span", t("forgotten.ids", count=len(one.ids)), ": ", ", ".join(one.ids[:_IDS]), more) if one.ids else None,
        ui.words_of(one.reason) if one.reason else None,
        ui.badge(state) if state else None,
        undo,
    )


def retention(policies: Sequence[OverdueRows]) -> Element:
    """Return how long the space keeps what."""
    head = (t("retention.what"), t("retention.after"), t("retention.going"), t("retention.took"), t("retention.ran"))
    lines: list[Sequence[Any]] = [
        (
            t(f"retention.{one.policy.what}"),
            t("retention.days", count=one.policy.days),
            [ui.count(one.going), *([f" ({t('retention.staying', count=one.staying)})"] if one.staying else [])],
            ui.count(one.policy.took),
            ui.moment(one.policy.ran_at) if one.policy.ran_at else t("retention.never_ran"),
        )
        for one in policies
    ]
    return ui.section(
        t("retention.title"),
        ui.table(t("retention.caption"), head, lines, numbers=(1, 2, 3)) if lines else ui.empty(t("retention.none")),
        el("p", t("retention.how"), " ", el("code", "mcp-memory retention --turns 365d --results 90d")),
    )


def backups(view: View, found: Sequence[Backup]) -> Element:
    """Return the backups in the home, and the button that makes one."""
    head = (t("backups.made"), t("backups.size"), t("backups.holds"), t("backups.file"))
    lines = [
        (_made(one), format_bytes(one.bytes), _holds(one), ui.words_of(one.path.name, tag="code")) for one in found
    ]
    return ui.section(
        t("backups.title"),
        ui.table(t("backups.caption"), head, lines, numbers=(1,)) if lines else ui.empty(t("backups.none")),
        ui.action(view, "backup", t("backups.make")),
        el("p", t("backups.restore"), " ", el("code", "mcp-memory restore backups/FILE.zip")),
    )


def _made(one: Backup) -> Element:
    return ui.moment(one.manifest.made) if one.manifest else ui.badge(t("backups.broken"), "bad")


def _holds(one: Backup) -> Any:
    if one.manifest is None:
        return ui.words_of(one.problem or "")
    counts, spaces = one.manifest.counts, t("backups.spaces", count=len(one.manifest.spaces))
    turns, statements = t("home.turns", count=counts["turns"]), t("home.atoms", count=counts["statements"])
    return " · ".join((turns, statements, t("backups.results", count=counts["results"]), spaces))


def export(view: View, space: str) -> Element:
    """Return how a memory is brought into another: by command, for it writes and reads files."""
    here = "" if space == "default" else f" --space '{space}'"
    return ui.section(
        t("export.title"),
        el("p", t("export.how")),
        el("pre", ui.words_of(f"mcp-memory export{here}", tag="code")),
        el("p", t("export.import")),
        el("pre", el("code", "mcp-memory import FILE.zip")),
        el("p", t("export.others"), " ", ui.link("/conversations", t("export.imports"))) if view.is_owner else None,
    )
