"""Home: the contents of the space, forgotten items, retention, backups, export, access, and health.

The owner also sees the other spaces, tokens, files and processes. Numbers are those of `Memory.status()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.hook_outcomes import outcomes
from mcp_memory.core.rights import RIGHTS
from mcp_memory.core.text import format_bytes
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.forgetting import forgotten_words
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.service.upkeep.backup import Backup
    from mcp_memory.service.verbs.forgetting import OverdueRows
    from mcp_memory.store.values import Tombstone
_TOMBSTONES = 50
_WORDED = 20
_IDS = 8
_PURGE = "purge"
"""Id of the form for the ticked items."""


async def forgotten(view: View, tombstones: Sequence[Tombstone]) -> Element:
    """Return the forgotten items, newest first, with buttons to restore them and, for the owner, a form to erase some.

    A reader with the right to restore items can open the words of the newest items.
    """
    newest_first = sorted(tombstones, key=lambda tombstone: int(tombstone.id[1:]), reverse=True)
    shown = newest_first[:_TOMBSTONES]
    words = {
        tombstone.id: await forgotten_words(view, tombstone.id)
        for tombstone in [tombstone for tombstone in shown if _is_open(tombstone)][:_WORDED]
    }
    can_erase = view.is_owner and any(_is_open(tombstone) for tombstone in shown)
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
        ui.rows((_tombstone(view, tombstone), words.get(tombstone.id)) for tombstone in shown)
        if shown
        else ui.empty(t("forgotten.none")),
        el("p", t("forgotten.more", count=len(newest_first) - len(shown))) if len(newest_first) > len(shown) else None,
        el("details", el("summary", t("forgotten.erase")), purge) if purge else None,
        id="forgotten",
    )


def _is_open(tombstone: Tombstone) -> bool:
    return not (tombstone.undone or tombstone.purged)


def _tombstone(view: View, tombstone: Tombstone) -> Element:
    tick = undo = None
    if _is_open(tombstone) and view.may("admin"):
        label = t("forgotten.tick", id=tombstone.id)
        if view.is_owner:
            tick = el("input", type="checkbox", name="tombstones", value=tombstone.id, form=_PURGE, aria_label=label)
        undo = ui.action(view, "undo", t("shared.undo"), key="u", tombstone=tombstone.id, back="/home")
    state = t("forgotten.purged") if tombstone.purged else t("forgotten.undone") if tombstone.undone else None
    more = f" … {ui.count(len(tombstone.ids) - _IDS)}" if len(tombstone.ids) > _IDS else ""
    return ui.line(
        tick,
        ui.link(f"/{tombstone.id}", tombstone.id, class_="id"),
        ui.moment(tombstone.at),
        ui.badge(t(f"item.how_{tombstone.how}"), "kind"),
        el("span", t("forgotten.ids", count=len(tombstone.ids)), ": ", ", ".join(tombstone.ids[:_IDS]), more)
        if tombstone.ids
        else None,
        ui.memory_text(tombstone.reason) if tombstone.reason else None,
        ui.badge(state) if state else None,
        undo,
    )


def retention(policies: Sequence[OverdueRows]) -> Element:
    """Return the retention policies of the space, with the numbers of overdue and of forgotten rows."""
    head = tuple(t(f"retention.{name}") for name in ("what", "after", "going", "took", "ran", "next"))
    lines: list[Sequence[Any]] = [
        (
            t(f"retention.{overdue.policy.what}"),
            t("retention.days", count=overdue.policy.days),
            [
                ui.count(overdue.going),
                *([f" ({t('retention.staying', count=overdue.staying)})"] if overdue.staying else []),
            ],
            ui.count(overdue.policy.took),
            ui.moment(overdue.policy.ran_at) if overdue.policy.ran_at else t("retention.never_ran"),
            ui.moment(overdue.next_run),
        )
        for overdue in policies
    ]
    return ui.section(
        t("retention.title"),
        ui.table(t("retention.caption"), head, lines, numbers=(1, 2, 3)) if lines else ui.empty(t("retention.none")),
        el("p", t("retention.how"), " ", el("code", "mcp-memory retention --turns 365d --results 90d")),
    )


def backups(view: View, stored: Sequence[Backup]) -> Element:
    """Return the backups in the home, and the button that creates a backup."""
    head = (t("backups.made"), t("backups.size"), t("backups.holds"), t("backups.file"))
    lines = [
        (
            _backup_time(backup),
            format_bytes(backup.bytes),
            _backup_content(backup),
            ui.memory_text(backup.path.name, tag="code"),
        )
        for backup in stored
    ]
    return ui.section(
        t("backups.title"),
        ui.table(t("backups.caption"), head, lines, numbers=(1,)) if lines else ui.empty(t("backups.none")),
        ui.action(view, "backup", t("backups.make")),
        el("p", t("backups.restore"), " ", el("code", "mcp-memory restore backups/FILE.zip")),
    )


def _backup_time(backup: Backup) -> Element:
    return ui.moment(backup.manifest.made_at) if backup.manifest else ui.badge(t("backups.broken"), "bad")


def _backup_content(backup: Backup) -> Any:
    if backup.manifest is None:
        return ui.memory_text(backup.problem or "")
    counts, spaces = backup.manifest.counts, t("backups.spaces", count=len(backup.manifest.spaces))
    turns, statements = t("home.turns", count=counts["turns"]), t("home.atoms", count=counts["statements"])
    return " · ".join((turns, statements, t("backups.results", count=counts["results"]), spaces))


def export(view: View, space: str) -> Element:
    """Return the commands that move a memory to another home; no form does that, since they write and read files."""
    here = "" if space == "default" else f" --space '{space}'"
    return ui.section(
        t("export.title"),
        el("p", t("export.how")),
        el("pre", ui.memory_text(f"mcp-memory export{here}", tag="code")),
        el("p", t("export.import")),
        el("pre", el("code", "mcp-memory import FILE.zip")),
        el("p", t("export.others"), " ", ui.link("/conversations", t("export.imports"))) if view.is_owner else None,
    )


if TYPE_CHECKING:
    from mcp_memory.store.values import Token
_PROBLEMS = 50
_FAILED = 5


async def home(view: View) -> Page:
    """Show everything about the space; with `check` in the query, run the checks, which read the whole memory."""
    memory = view.memory
    status = await memory.status(brief=True)
    checks = await _run_checks(view) if view.query.get("check") else None
    missed = await anyio.to_thread.run_sync(_missed_by_hooks, view)
    return Page(
        title=t("home.title"),
        here="home",
        body=ui.body(
            ui.columns(_contents(view, status), _health([*_known_problems(view, status), *missed], checks)),
            await forgotten(view, await memory.tombstones()),
            ui.columns(retention(await memory.retention()), export(view, memory.space)),
            backups(view, await memory.backups()) if view.is_owner and memory.has_files else None,
            *([_tokens(view, await memory.tokens()), _disk(status), _connected(status)] if view.is_owner else []),
            _versions(view, status),
        ),
    )


# --- the space --------------------------------------------------------------------------------------
def _contents(view: View, status: dict[str, Any]) -> Element:
    counts, waiting, offload = status["counts"], status["pyramid"]["waiting"], status["offload"]
    turns = t("home.turns_in", count=counts["turns"], sessions=t("home.sessions", count=counts["sessions"]))
    past = counts["atoms"] - counts["current"]
    results = t("home.results_on", count=counts["records"], tasks=t("home.tasks", count=counts["canvases"]))
    return ui.section(
        t("home.contents"),
        _spaces(view, status),
        ui.labelled_values(
            (
                (t("home.space"), ui.memory_text(status["space"])),
                (t("home.conversation"), ui.link("/conversations", turns)),
                (t("home.statements"), t("home.current", count=counts["current"], past=ui.count(past))),
                (t("home.facts"), ui.count(counts["facts"])),
                (t("home.entities"), ui.count(counts["entities"])),
                (t("home.scenes"), ui.count(counts["scenes"])),
                (t("home.results"), [ui.link("/tasks", results), f" · {format_bytes(offload['raw_bytes'])}"]),
                (t("home.masked"), ui.count(counts["masked"]) if counts["masked"] else None),
                (t("home.unread"), t("home.turns", count=waiting["turns"])),
                (t("home.held"), ui.link("/review", ui.count(status["held"]))),
                (t("home.forgotten"), _times(counts["forgotten"])),
            )
        ),
    )


def _times(many: int) -> str:
    return t("home.times", count=many) if many else t("home.never")


def _spaces(view: View, status: dict[str, Any]) -> Element | None:
    """Return the owner's form that opens another space; None for other readers, or if there is no other space."""
    others = [name for name in status["spaces"] if name != status["space"]]
    if not (view.is_owner and view.form_token and others):
        return None
    options = (el("option", ui.memory_text(name, tag="span").children, value=name) for name in others)
    return el(
        "form",
        el("label", t("home.other_space"), " ", el("select", options, name="space")),
        el("button", t("home.open")),
        method="get",
        action="/go",
    )


# --- health -----------------------------------------------------------------------------------------
async def _run_checks(view: View) -> list[Element]:
    """Run the checks: every claim down to its quotes and, for the owner, rows against files."""
    verified = await view.memory.verify()
    counts = (
        t("home.personas", count=verified.personas),
        t("home.scenes_read", count=verified.scenes),
        t("home.atoms", count=verified.atoms),
        t("home.quotes", count=verified.quotes),
        t("home.turns", count=verified.turns),
    )
    lines = [el("p", t("health.verified"), " ", " · ".join(counts))]
    lines += _problem_list(verified.problems, t("health.problems"), kind="bad")
    lines += _problem_list(verified.uncovered, t("health.uncovered"), kind="warn")
    lines += _problem_list(verified.doubted, t("health.doubted"), kind="warn")
    problems: list[str] = []
    if view.is_owner:
        problems = await view.memory.problems()
        if await view.memory.unproven():
            lines.append(ui.note(t("health.unproven"), " ", el("code", "mcp-memory doctor --repair"), kind="warn"))
    lines += _problem_list(list(dict.fromkeys(problems)), t("health.files"), kind="bad")
    is_well = not (verified.problems or verified.doubted or problems)
    return [*lines, *([ui.note(t("health.well"), kind="ok")] if is_well else [])]


def _problem_list(lines: Sequence[str], title: str, *, kind: str) -> list[Element]:
    if not lines:
        return []
    more = [ui.memory_text(f"… {ui.count(len(lines) - _PROBLEMS)}", tag="li")] if len(lines) > _PROBLEMS else []
    shown = (ui.memory_text(line, tag="li") for line in lines[:_PROBLEMS])
    return [ui.note(title, kind=kind), el("ul", shown, more, class_="rows")]


def _health(problems: Sequence[Element], checks: list[Element] | None) -> Element:
    if checks is None:
        checks = [el("p", ui.link("/home", t("health.check"), check=1), " ", el("small", t("health.takes")))]
    return ui.section(t("health.title"), list(problems), checks, id="health")


def _known_problems(view: View, status: dict[str, Any]) -> Iterator[Element]:
    """Yield the problems that the status reports."""
    pyramid, embedding = status["pyramid"], status["embedding"]
    if paused := pyramid["paused"]:
        yield ui.note(t("health.paused"), " ", ui.memory_text(paused["reason"]), kind="warn")
    failed = [work for work in pyramid["works"] if work["state"] == "parked"]
    for work in failed[:_FAILED]:
        error = ui.memory_text(work["error"] or "")
        yield ui.note(t("health.failed", stage=work["stage"], count=work["attempts"]), " ", error, kind="warn")
    if embedding["error"]:
        yield ui.note(t("health.embedding"), " ", ui.memory_text(embedding["error"]), kind="warn")
    if status["write_problem"]:
        yield ui.note(ui.memory_text(status["write_problem"]), kind="bad")
    if status["damaged"]:
        yield ui.note(t("health.damaged"), " ", ui.memory_text(status["damaged"][0]), kind="bad")
    if status["set_aside"] and view.is_owner:
        paths = ui.memory_text(", ".join(status["set_aside"]))
        yield ui.note(t("health.set_aside"), " ", paths, " ", el("code", "mcp-memory doctor --repair"), kind="warn")


def _missed_by_hooks(view: View) -> list[Element]:
    """Return what hooks of clients missed within a week, for the owner."""
    if not view.is_owner:
        return []
    misses = outcomes(view.memory.settings.home, now=datetime.now()).sentences()
    return [ui.note(t("health.hooks"), " ", ui.memory_text(miss), kind="warn") for miss in misses]


# --- the machine ------------------------------------------------------------------------------------
def _tokens(view: View, tokens: Sequence[Token]) -> Element:
    head = (t("tokens.name"), t("tokens.spaces"), t("tokens.right"), t("tokens.used"), t("tokens.ends"), "")
    table = ui.table(t("tokens.all"), head, (_token(view, token) for token in tokens))
    rights = (el("option", right, value=right, selected=right == "write") for right in RIGHTS)
    return ui.section(
        t("tokens.title"),
        el("p", t("tokens.about")),
        table if tokens else ui.empty(t("tokens.none")),
        ui.form(
            view,
            "create_token",
            el("label", t("tokens.name"), " ", el("input", type="text", name="name", required=True, maxlength=80)),
            el("label", t("tokens.right"), " ", el("select", rights, name="right")),
            el("label", t("tokens.days"), " ", el("input", type="number", name="days", min=1, max=36_500)),
            el("button", t("tokens.create")),
        ),
    )


def _token(view: View, token: Token) -> tuple[Any, ...]:
    ends: Any = t("tokens.never_ends")
    if token.revoked_at is not None:
        ends = [t("tokens.revoked"), " ", ui.moment(token.revoked_at, day=True)]
    elif token.until is not None:
        ends = ui.moment(token.until, day=True)
    used = ui.moment(token.used_at) if token.used_at else t("tokens.never_used")
    revoke = (
        None if token.revoked_at else ui.action(view, "revoke_token", t("tokens.revoke"), kind="danger", which=token.id)
    )
    return ui.memory_text(token.name), ui.memory_text(", ".join(token.spaces)), token.right, used, ends, revoke


def _disk(status: dict[str, Any]) -> Element | None:
    kinds = status["disk"]["kinds"]
    if not kinds:
        return None
    lines = [(t(f"disk.{kind}"), format_bytes(many), ui.count(many)) for kind, many in kinds.items()]
    total = sum(kinds.values())
    lines.append((t("disk.total"), format_bytes(total), ui.count(total)))
    head = (t("disk.kind"), t("disk.size"), t("disk.bytes"))
    return ui.section(t("disk.title"), ui.table(t("disk.caption"), head, lines, numbers=(1, 2)))


def _connected(status: dict[str, Any]) -> Element:
    processes = status["connected"]
    head = (t("connected.what"), t("connected.clients"), t("connected.since"), t("connected.version"))
    lines = (
        (
            f"{process['what']} ({process['pid']})",
            ui.memory_text(", ".join(process["clients"])) if process["clients"] else t("shared.none"),
            ui.moment(datetime.fromisoformat(process["since"])) if process["since"] else "",
            process["version"],
        )
        for process in processes
    )
    table = ui.table(t("connected.caption"), head, lines)
    return ui.section(t("connected.title"), table if processes else ui.empty(t("connected.none")))


def _versions(view: View, status: dict[str, Any]) -> Element:
    embedding, tokenizer = status["embedding"], status["tokenizer"]
    in_files = view.is_owner and view.memory.has_files
    rows = t("versions.embedded", rows=ui.count(embedding["embedded"]), total=ui.count(embedding["total"]))
    embedder = embedding["model"] or t("shared.none")
    exact = t("versions.exact") if tokenizer["exact"] else t("versions.estimated")
    return ui.section(
        t("versions.title"),
        ui.labelled_values(
            (
                (t("versions.program"), status["version"]),
                (t("versions.schema"), status["schema"]),
                (t("versions.place"), ui.memory_text(status["home"], tag="code") if in_files else None),
                (t("versions.store"), ui.memory_text(status["store"], tag="code") if view.is_owner else None),
                (t("versions.model"), ui.memory_text(status["model"]["name"] or t("versions.no_model"))),
                (t("versions.embedder"), f"{embedder} · {rows}" if view.is_owner else embedder),  # rows of all spaces
                (t("versions.tokenizer"), f"{tokenizer['name']} · {exact}"),
            )
        ),
    )
