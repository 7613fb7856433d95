"""Export and settings: export and backups, forgotten items, the spaces, retention, checks, and access.

The owner also sees the other spaces, tokens, files and processes. Numbers are those of `Memory.status()`. What is empty
is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.hook_outcomes import outcomes
from mcp_memory.core.rights import RIGHTS
from mcp_memory.core.text import format_bytes, one_line, plural, remove_hidden
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.forgetting import count_kinds, forgotten_words

if TYPE_CHECKING:
    from mcp_memory.core.types import Stage
    from mcp_memory.service.upkeep.backup import Backup
    from mcp_memory.service.verbs.forgetting import OverdueRows
    from mcp_memory.store.values import Tombstone
    from mcp_memory.ui.exports import ExportState
_TOMBSTONES = 50
_WORDED = 20
_WORDS = 160  # characters of what was forgotten
_KEPT = {"turns": "Turns", "results": "Tool results", "purge": "Forgotten by this, until erased for good"}
_ON_DISK = {
    "database": "Database",
    "results": "Tool results",
    "journal": "Conversations",
    "records": "Records of calls",
    "canvases": "Tasks",
    "scenes": "Topics",
    "backups": "Backups",
    "hooks": "Logs of hooks",
    "other": "Other files",
}
_WORK_OF_MODELS: Mapping[Stage, str] = {
    "read": "reading conversations",
    "extract": "reading conversations",
    "merge": "comparing new statements with known ones",
    "scenes": "writing topics",
    "persona": "writing the page about you",
    "summaries": "summarising tool results",
    "canvas": "ordering the steps of a task",
}
_NO_MODEL = "none: statements come from your own words, and from connected agents"
_PURGE = "purge"
"""Id of the form for the ticked items."""


async def forgotten(view: View, tombstones: Sequence[Tombstone]) -> Element | None:
    """Return the forgotten items, newest first, with buttons to restore them and, for the owner, a form to erase some.

    Corrections that were undone are left out. None if nothing was forgotten. The words of the newest items are shown
    to readers with the right to restore items.
    """
    items = [tombstone for tombstone in tombstones if tombstone.how != "correction"]
    if not items:
        return None
    newest_first = sorted(items, key=lambda tombstone: int(tombstone.id[1:]), reverse=True)
    shown = newest_first[:_TOMBSTONES]
    words = {
        tombstone.id: await forgotten_words(view, tombstone.id)
        for tombstone in [tombstone for tombstone in shown if _is_open(tombstone)][:_WORDED]
    }
    can_erase = view.is_owner and any(_is_open(tombstone) for tombstone in shown)
    purge = can_erase and ui.form(
        view,
        "purge",
        el(
            "p",
            "What is chosen above is erased from rows and files, and nobody can bring it back. "
            "Backups and exports keep it until you delete them.",
        ),
        el(
            "label",
            "Type PURGE to go on ",
            el("input", type="text", name="word", required=True, autocomplete="off"),
        ),
        el("button", "Erase for good", class_="danger"),
        id_=_PURGE,
    )
    return ui.section(
        "Forgotten",
        ui.rows(_tombstone(view, tombstone, words.get(tombstone.id, {})) for tombstone in shown),
        el("p", f"and {len(newest_first) - len(shown):,} older") if len(newest_first) > len(shown) else None,
        el("details", el("summary", "Erase for good …"), purge) if purge else None,
        id="forgotten",
    )


def _is_open(tombstone: Tombstone) -> bool:
    return not (tombstone.undone or tombstone.purged)


def _tombstone(view: View, tombstone: Tombstone, words: Mapping[str, str]) -> Element:
    tick = undo = None
    what = next(iter(words.values()), "") or ", ".join(count_kinds(tombstone.ids)) or "Forgotten"
    if _is_open(tombstone) and view.may("admin"):
        if view.is_owner:
            tick = el(
                "input",
                type="checkbox",
                name="tombstones",
                value=tombstone.id,
                form=_PURGE,
                aria_label=f"Choose {what}",
            )
        undo = ui.action(view, "undo", "Bring it back", key="u", tombstone=tombstone.id, back="/home")
    state = "erased for good" if tombstone.purged else "brought back" if tombstone.undone else None
    return ui.dated_row(
        el("p", tick, ui.link(f"/{tombstone.id}", ui.memory_text(one_line(what, _WORDS))), class_="said"),
        f"and {plural(len(tombstone.ids) - 1, 'more item')}" if words and len(tombstone.ids) > 1 else None,
        ui.memory_text(tombstone.reason) if tombstone.reason else None,
        ui.badge(state) if state else None,
        undo,
        when=ui.moment(tombstone.at, day=True),
    )  # fmt: skip


def retention(policies: Sequence[OverdueRows]) -> Element:
    """Return the retention policies of the space, with the numbers of overdue and of forgotten rows."""
    head = ("What", "Kept for", "Due now", "Taken so far", "Last run", "Next run, if a server is open")
    lines: list[Sequence[Any]] = [
        (
            _KEPT[overdue.policy.what],
            plural(overdue.policy.days, "day"),
            [
                ui.count(overdue.going),
                f" ({plural(overdue.staying, 'more is', 'more are')} evidence of statements)"
                if overdue.staying
                else None,
            ],
            ui.count(overdue.policy.took),
            ui.moment(overdue.policy.ran_at) if overdue.policy.ran_at else "not yet",
            ui.moment(overdue.next_run),
        )
        for overdue in policies
    ]
    return ui.section(
        "How long it is kept",
        ui.table("Once a day what is past its time is forgotten; you can bring it back", head, lines, numbers=(1, 2, 3))
        if lines
        else el("p", "Everything is kept until you forget it."),
        el("p", "This is changed in a terminal: ", el("code", "mcp-memory retention --turns 365d --results 90d")),
    )


def backups(view: View, stored: Sequence[Backup]) -> Element:
    """Return the backups in the home, and the button that creates a backup."""
    head = ("Made", "Size", "Holds", "File")
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
        "Backups",
        ui.table("Backups in the folder backups of the home, the newest first", head, lines, numbers=(1,))
        if lines
        else el("p", "A backup is a copy of the whole memory, all spaces, to go back to. It stays in the home."),
        ui.action(view, "backup", "Make a backup"),
        el(
            "p",
            "To go back to one, end the programs that use the memory, and write in a terminal: ",
            el("code", "mcp-memory restore backups/FILE.zip"),
        )
        if lines
        else None,
    )


def _backup_time(backup: Backup) -> Element:
    return ui.moment(backup.manifest.made_at) if backup.manifest else ui.badge("cannot be read", "bad")


def _backup_content(backup: Backup) -> Any:
    if backup.manifest is None:
        return ui.memory_text(backup.problem or "")
    counts, spaces = backup.manifest.counts, plural(len(backup.manifest.spaces), "space")
    turns, statements = plural(counts["turns"], "message"), plural(counts["statements"], "statement")
    return " · ".join((turns, statements, plural(counts["results"], "result"), spaces))


def export(view: View, state: ExportState | None) -> Element:
    """Return the export of the space: a button, the progress or the file to download; a command if `state` is None."""
    space = view.memory.space
    here = "" if space == "default" else f" --space '{space}'"
    about = "An export is one zip with all of this space: Markdown for people, JSON lines for programs."
    command = el("p", "It is made in a terminal: ", ui.memory_text(f"mcp-memory export{here}", tag="code"))
    return ui.section(
        "Export",
        el("p", about),
        command if state is None else _export_state(view, state),
        el("p", "Another memory takes it in from a terminal there: ", el("code", "mcp-memory import FILE.zip")),
        el("p", ui.link("/conversations#imports", "Histories of other programs can be imported too"))
        if view.is_owner
        else None,
        id="export",
    )


def _export_state(view: View, state: ExportState) -> list[Element | None]:
    if state.doing is not None:
        share = f", {state.done * 100 // state.total} %" if state.total else ""
        return [
            el("p", f"Making the export: {state.doing}{share} …", role="status"),
            el("progress", max=state.total or None, value=state.done if state.total else None, aria_label="Export"),
            el("p", ui.link("/home#export", "Show how far it is")),
        ]
    failed = ui.note("The export failed: ", ui.memory_text(state.error), kind="bad") if state.error else None
    if state.file is None:
        return [failed, ui.action(view, "export", "Make an export", kind="main")]
    size = format_bytes(state.file.bytes)
    return [
        failed,
        ui.line(
            ui.link("/download/export", f"Download the export ({size})", class_="main"),
            el("span", "made ", ui.moment(state.file.made_at), ", kept for a day"),
        ),
        ui.action(view, "export", "Make a new one"),
    ]


if TYPE_CHECKING:
    from mcp_memory.store.values import Token
_PROBLEMS = 50
_FAILED = 5


async def home(view: View) -> Page:
    """Show everything about the space; with `check` in the query, run the checks, which read the whole memory."""
    memory = view.memory
    status = await memory.status(brief=True)
    checks = await _run_checks(view) if view.query.get("check") else None
    problems = [*_known_problems(view, status), *await anyio.to_thread.run_sync(_missed_by_hooks, view)]
    exported = await view.exports.state(memory) if view.exports else None
    ended = (await memory.statements(only_ended=True, limit=1)).total or 0
    return Page(
        title="Export and settings",
        here="home",
        body=ui.body(
            ui.section("What needs you", problems) if problems else None,
            ui.columns(
                export(view, exported),
                backups(view, await memory.backups()) if view.is_owner and memory.has_files else None,
            ),
            await forgotten(view, await memory.tombstones()),
            ui.columns(_contents(status, ended=ended), _spaces(view, status)),
            ui.columns(_checks(checks), retention(await memory.retention())),
            *([_signed_in(view), _tokens(view, await memory.tokens())] if view.is_owner else []),
            _connected(status) if view.is_owner and status["connected"] else None,
            ui.columns(_versions(view, status), _disk(status) if view.is_owner else None),
        ),
    )


# --- the space --------------------------------------------------------------------------------------
def _contents(status: dict[str, Any], *, ended: int) -> Element:
    counts, offload = status["counts"], status["offload"]
    unread = status["pyramid"]["waiting"]["turns"] if status["model"]["name"] else 0
    talks = f"{plural(counts['turns'], 'message')} in {plural(counts['sessions'], 'conversation')}"
    statements: list[Any] = [ui.link("/memory#statements", f"{plural(counts['current'], 'is', 'are')} true now")]
    if ended:
        statements += [", ", ui.link("/memory#statements", f"{ended:,} no longer true", ended="only")]
    results = f"{counts['records']:,} on {plural(counts['canvases'], 'task')}"
    lines: tuple[tuple[str, int, Any], ...] = (
        ("Conversations", counts["turns"], ui.link("/conversations", talks)),
        ("Statements", counts["atoms"], statements),
        ("People, places, things", counts["entities"], ui.link("/people", ui.count(counts["entities"]))),
        ("Topics", counts["scenes"], ui.count(counts["scenes"])),
        ("Tool results", counts["records"], [ui.link("/tasks", results), f" · {format_bytes(offload['raw_bytes'])}"]),
        ("Results with masked secrets", counts["masked"], ui.count(counts["masked"])),
        ("Not read by the model yet", unread, plural(unread, "message")),
        ("Waiting for review", status["held"], ui.link("/review", ui.count(status["held"]))),
    )
    values = [(name, value) for name, many, value in lines if many]
    return ui.section(
        f"In the space {remove_hidden(status['space'])}",
        ui.labelled_values(values) if values else el("p", "Nothing is stored here yet."),
    )


def _spaces(view: View, status: dict[str, Any]) -> Element | None:
    """Return links to the owner's other spaces; None for other readers, or if there is no other space."""
    others = [name for name in status["spaces"] if name != status["space"]]
    if not (view.is_owner and view.form_token and others):
        return None
    return ui.section(
        "Other spaces",
        el("ul", (el("li", ui.link("/go", ui.memory_text(name), space=name)) for name in others), class_="names"),
    )


# --- health -----------------------------------------------------------------------------------------
async def _run_checks(view: View) -> list[Element]:
    """Run the checks: every claim down to its quotes and, for the owner, rows against files."""
    verified = await view.memory.verify()
    counts = (
        (verified.personas, "page about you", "pages about you"),
        (verified.scenes, "topic", None),
        (verified.atoms, "statement", None),
        (verified.quotes, "quote", None),
        (verified.turns, "message", None),
    )
    compared = " · ".join(plural(many, one, several) for many, one, several in counts if many)
    lines = [el("p", "Compared with the words that were said: ", compared or "nothing yet")]
    lines += _problem_list(verified.problems, "These do not follow from the words they name:", kind="bad")
    lines += _problem_list(verified.uncovered, "These lines name no words they rest on:", kind="warn")
    lines += _problem_list(verified.doubted, "The words of these statements may say otherwise:", kind="warn")
    problems: list[str] = []
    if view.is_owner:
        problems = await view.memory.problems()
        if await view.memory.unproven():
            lines.append(
                ui.note(
                    "Erasing for good is not finished. Where none is running, this finishes it: ",
                    el("code", "mcp-memory doctor --repair"),
                    kind="warn",
                )
            )
    lines += _problem_list(
        list(dict.fromkeys(problems)), "These rows or files are damaged, missing, or differ:", kind="bad"
    )
    is_well = not (verified.problems or verified.doubted or problems)
    return [*lines, *([ui.note("Everything is in order.", kind="ok")] if is_well else [])]


def _problem_list(lines: Sequence[str], title: str, *, kind: str) -> list[Element]:
    if not lines:
        return []
    more = [ui.memory_text(f"… {ui.count(len(lines) - _PROBLEMS)}", tag="li")] if len(lines) > _PROBLEMS else []
    shown = (ui.memory_text(line, tag="li") for line in lines[:_PROBLEMS])
    return [ui.note(title, kind=kind), el("ul", shown, more, class_="rows")]


def _checks(results: list[Element] | None) -> Element:
    if results is None:
        about = "This compares every statement with the words it rests on, and the files with the database. "
        results = [
            el("p", about, "It reads the whole memory, which takes a while when there is much."),
            el("p", ui.link("/home#checks", "Check everything now", check=1)),
        ]
    return ui.section("Checks", results, id="checks")


def _known_problems(view: View, status: dict[str, Any]) -> Iterator[Element]:
    """Yield the problems that the status reports."""
    pyramid, embedding = status["pyramid"], status["embedding"]
    if paused := pyramid["paused"]:
        yield ui.note("No model is asked now: ", ui.memory_text(paused["reason"]), kind="warn")
    failed = [work for work in pyramid["works"] if work["state"] == "parked"]
    for work in failed[:_FAILED]:
        error = ui.memory_text(work["error"] or "")
        times = plural(work["attempts"], "time")
        yield ui.note(f"A model failed {times} at {_WORK_OF_MODELS[work['stage']]}: ", error, kind="warn")
    if embedding["error"]:
        yield ui.note("Search by meaning fails: ", ui.memory_text(embedding["error"]), kind="warn")
    if status["write_problem"]:
        yield ui.note(ui.memory_text(status["write_problem"]), kind="bad")
    if status["damaged"]:
        yield ui.note("A row is damaged: ", ui.memory_text(status["damaged"][0]), kind="bad")
    if status["set_aside"] and view.is_owner:
        paths = ui.memory_text(", ".join(status["set_aside"]))
        yield ui.note(
            "Files were set aside, and this brings them in: ",
            paths,
            " ",
            el("code", "mcp-memory doctor --repair"),
            kind="warn",
        )


def _missed_by_hooks(view: View) -> list[Element]:
    """Return what hooks of clients missed within a week, for the owner."""
    if not view.is_owner:
        return []
    misses = outcomes(view.memory.settings.home, now=datetime.now()).sentences()
    return [ui.note("Agents worked without the memory: ", ui.memory_text(miss), kind="warn") for miss in misses]


# --- the machine ------------------------------------------------------------------------------------
def _signed_in(view: View) -> Element | None:
    """Return the number of browsers that are signed in on this machine, and the button that ends their sign-ins."""
    if not view.sign_ins:
        return None
    return ui.section(
        "Signed in",
        el("p", f"{plural(view.sign_ins, 'browser is', 'browsers are')} signed in here. A sign-in lasts a month."),
        ui.action(view, "leave_everywhere", "Log out everywhere"),
    )


def _tokens(view: View, tokens: Sequence[Token]) -> Element:
    head = ("Name", "Spaces", "Right", "Last used", "Ends", "")
    table = ui.table("Tokens, the oldest first", head, (_token(view, token) for token in tokens))
    rights = (el("option", right, value=right, selected=right == "write") for right in RIGHTS)
    return ui.section(
        "Access tokens",
        el(
            "p",
            "A program that connects over HTTP sends a token, as a password. The token says which "
            "spaces it opens, and whether the program may read, write or administer them.",
        ),
        table if tokens else el("p", "There is none yet."),
        ui.form(
            view,
            "create_token",
            el("label", "Name ", el("input", type="text", name="name", required=True, maxlength=80)),
            el("label", "Right ", el("select", rights, name="right")),
            el("label", "Days that it lasts ", el("input", type="number", name="days", min=1, max=36_500)),
            el("button", "Make a token for this space"),
        ),
    )


def _token(view: View, token: Token) -> tuple[Any, ...]:
    ends: Any = "when revoked"
    if token.revoked_at is not None:
        ends = ["revoked ", ui.moment(token.revoked_at, day=True)]
    elif token.until is not None:
        ends = ui.moment(token.until, day=True)
    used = ui.moment(token.used_at) if token.used_at else "never"
    revoke = None if token.revoked_at else ui.action(view, "revoke_token", "Revoke", kind="danger", which=token.id)
    return ui.memory_text(token.name), ui.memory_text(", ".join(token.spaces)), token.right, used, ends, revoke


def _disk(status: dict[str, Any]) -> Element | None:
    kinds = status["disk"]["kinds"]
    if not kinds:
        return None
    lines = [(_ON_DISK[kind], format_bytes(many), ui.count(many)) for kind, many in kinds.items()]
    total = sum(kinds.values())
    lines.append(("All of it", format_bytes(total), ui.count(total)))
    head = ("Kind", "Size", "Bytes")
    return ui.section("On disk", ui.table("Bytes in the home by kind, over all spaces", head, lines, numbers=(1, 2)))


def _connected(status: dict[str, Any]) -> Element:
    processes = status["connected"]
    head = ("Program (process)", "Clients", "Since", "Version")
    lines = (
        (
            f"{process['what']} ({process['pid']})",
            ui.memory_text(", ".join(map(ui.program_name, process["clients"]))) if process["clients"] else "none",
            ui.moment(datetime.fromisoformat(process["since"])) if process["since"] else "",
            process["version"],
        )
        for process in processes
    )
    return ui.section("Connected", ui.table("Programs that have the memory open", head, lines))


def _versions(view: View, status: dict[str, Any]) -> Element:
    embedding, tokenizer = status["embedding"], status["tokenizer"]
    in_files = view.is_owner and view.memory.has_files
    rows = f"{embedding['embedded']:,} of {embedding['total']:,} rows"
    embedder = embedding["model"] or "none"
    exact = "counted exactly" if tokenizer["exact"] else "estimated, never too low"
    details = (
        ("Schema", status["schema"]),
        ("Store", ui.memory_text(status["store"], tag="code") if view.is_owner else None),
        ("Embedding", f"{embedder} · {rows}" if view.is_owner else embedder),  # rows of all spaces
        ("Tokens", f"{tokenizer['name']} · {exact}"),
    )
    return ui.section(
        "Version and place",
        ui.labelled_values(
            (
                ("Version", status["version"]),
                ("Home", ui.memory_text(status["home"], tag="code") if in_files else None),
                ("Model", ui.memory_text(status["model"]["name"] or _NO_MODEL)),
            )
        ),
        el("details", el("summary", "Details"), ui.labelled_values(details)),
    )
