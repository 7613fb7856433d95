"""Home: the contents of the space, forgotten items, copies, access, and health.

Whoever has this machine also sees the other spaces, tokens, files and processes. Numbers are those of
`Memory.status()`. `keeping` has the parts about forgotten items, retention and copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mcp_memory.core.rights import RIGHTS
from mcp_memory.core.text import format_bytes
from mcp_memory.ui import components as ui
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages import keeping
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.store.values import Token


_PROBLEMS = 50
_FAILED = 5


async def home(view: View) -> Page:
    """All of it; the checks run where the query has `check`, for they read the whole memory."""
    memory = view.memory
    status = await memory.status(brief=True)
    checked = bool(view.query.get("check"))
    return Page(
        title=t("home.title"),
        here="home",
        body=ui.body(
            ui.columns(_contents(view, status), _health(view, status, await _found(view) if checked else None)),
            await keeping.forgotten(view, await memory.tombstones()),
            ui.columns(keeping.retention(await memory.retention()), keeping.export(view, memory.space)),
            keeping.backups(view, await memory.backups()) if view.is_owner and memory.has_files else None,
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
        ui.facts_of(
            (
                (t("home.space"), ui.words_of(status["space"])),
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
    """Return a form that opens another space, whose pages have other addresses; None if there is none to open."""
    others = [name for name in status["spaces"] if name != status["space"]]
    if not (view.is_owner and view.form_token and others):
        return None
    options = (el("option", ui.words_of(name, tag="span").children, value=name) for name in others)
    return el(
        "form",
        el("label", t("home.other_space"), " ", el("select", options, name="space")),
        el("button", t("home.open")),
        method="get",
        action="/go",
    )


# --- health -----------------------------------------------------------------------------------------


async def _found(view: View) -> list[Element]:
    """Run the checks: every claim down to its words, and for the owner rows and files."""
    verified = await view.memory.verify()
    counts = (
        t("home.personas", count=verified.personas),
        t("home.scenes_read", count=verified.scenes),
        t("home.atoms", count=verified.atoms),
        t("home.quotes", count=verified.quotes),
        t("home.turns", count=verified.turns),
    )
    lines = [el("p", t("health.verified"), " ", " · ".join(counts))]
    lines += _list(verified.problems, t("health.problems"), kind="bad")
    lines += _list(verified.uncovered, t("health.uncovered"), kind="warn")
    lines += _list(verified.doubted, t("health.doubted"), kind="warn")
    problems, behind = [], []
    if view.is_owner:
        agreed = await view.memory.agreement()
        problems = [*await view.memory.problems(), *(agreed.problems if agreed else ())]
        behind = agreed.behind if agreed else []
        if await view.memory.unproven():
            lines.append(ui.note(t("health.unproven"), " ", el("code", "mcp-memory doctor --repair"), kind="warn"))
    lines += _list(list(dict.fromkeys(problems)), t("health.files"), kind="bad")
    lines += _list(behind, t("health.behind"), kind="warn")
    is_well = not (verified.problems or verified.doubted or problems)
    return [*lines, *([ui.note(t("health.well"), kind="ok")] if is_well else [])]


def _list(lines: Sequence[str], title: str, *, kind: str) -> list[Element]:
    if not lines:
        return []
    more = [ui.words_of(f"… {ui.count(len(lines) - _PROBLEMS)}", tag="li")] if len(lines) > _PROBLEMS else []
    shown = (ui.words_of(line, tag="li") for line in lines[:_PROBLEMS])
    return [ui.note(title, kind=kind), el("ul", shown, more, class_="rows")]


def _health(view: View, status: dict[str, Any], found: list[Element] | None) -> Element:
    if found is None:
        found = [el("p", ui.link("/home", t("health.check"), check=1), " ", el("small", t("health.takes")))]
    return ui.section(t("health.title"), list(_standing(view, status)), found, id="health")


def _standing(view: View, status: dict[str, Any]) -> Iterator[Element]:
    """Yield what the status itself knows to be wrong."""
    pyramid, embedding = status["pyramid"], status["embedding"]
    if paused := pyramid["paused"]:
        yield ui.note(t("health.paused"), " ", ui.words_of(paused["reason"]), kind="warn")
    failed = [work for work in pyramid["works"] if work["state"] == "parked"]
    for work in failed[:_FAILED]:
        error = ui.words_of(work["error"] or "")
        yield ui.note(t("health.failed", stage=work["stage"], count=work["attempts"]), " ", error, kind="warn")
    if embedding["error"]:
        yield ui.note(t("health.embedding"), " ", ui.words_of(embedding["error"]), kind="warn")
    if status["damaged"]:
        yield ui.note(t("health.damaged"), " ", ui.words_of(status["damaged"][0]), kind="bad")
    for one in status["recovered"] if view.is_owner else ():
        lines, left = t("health.lines", count=one["lines"]), t("health.left", count=one["left"])
        kind = "warn" if one["left"] else ""
        yield ui.note(t("health.recovered"), " ", ui.words_of(one["path"]), f": {lines}, {left}", kind=kind)
    if status["set_aside"] and view.is_owner:
        paths = ui.words_of(", ".join(status["set_aside"]))
        yield ui.note(t("health.set_aside"), " ", paths, " ", el("code", "mcp-memory doctor --repair"), kind="warn")


# --- the machine ------------------------------------------------------------------------------------


def _tokens(view: View, tokens: Sequence[Token]) -> Element:
    head = (t("tokens.name"), t("tokens.spaces"), t("tokens.right"), t("tokens.used"), t("tokens.ends"), "")
    table = ui.table(t("tokens.all"), head, (_token(view, one) for one in tokens))
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


def _token(view: View, one: Token) -> tuple[Any, ...]:
    ends: Any = t("tokens.never_ends")
    if one.revoked_at is not None:
        ends = [t("tokens.revoked"), " ", ui.moment(one.revoked_at, day=True)]
    elif one.until is not None:
        ends = ui.moment(one.until, day=True)
    used = ui.moment(one.used_at) if one.used_at else t("tokens.never_used")
    revoke = (
        None if one.revoked_at else ui.action(view, "revoke_token", t("tokens.revoke"), kind="danger", which=one.id)
    )
    return ui.words_of(one.name), ui.words_of(", ".join(one.spaces)), one.right, used, ends, revoke


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
    there = status["connected"]
    head = (t("connected.what"), t("connected.clients"), t("connected.since"), t("connected.version"))
    lines = (
        (
            f"{one['what']} ({one['pid']})",
            ui.words_of(", ".join(one["clients"])) if one["clients"] else t("shared.none"),
            ui.moment(datetime.fromisoformat(one["since"])) if one["since"] else "",
            one["version"],
        )
        for one in there
    )
    table = ui.table(t("connected.caption"), head, lines)
    return ui.section(t("connected.title"), table if there else ui.empty(t("connected.none")))


def _versions(view: View, status: dict[str, Any]) -> Element:
    embedding, tokenizer = status["embedding"], status["tokenizer"]
    in_files = view.is_owner and view.memory.has_files
    embedded = t("versions.embedded", rows=ui.count(embedding["embedded"]), total=ui.count(embedding["total"]))
    exact = t("versions.exact") if tokenizer["exact"] else t("versions.estimated")
    return ui.section(
        t("versions.title"),
        ui.facts_of(
            (
                (t("versions.program"), status["version"]),
                (t("versions.schema"), status["schema"]),
                (t("versions.place"), ui.words_of(status["home"], tag="code") if in_files else None),
                (t("versions.store"), ui.words_of(status["store"], tag="code") if view.is_owner else None),
                (t("versions.model"), ui.words_of(status["model"]["name"] or t("versions.no_model"))),
                (t("versions.embedder"), f"{embedding['model'] or t('shared.none')} · {embedded}"),
                (t("versions.tokenizer"), f"{tokenizer['name']} · {exact}"),
            )
        ),
    )
