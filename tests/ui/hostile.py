"""A memory whose every text is an attack on whoever shows it: twenty payloads in all places that hold words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar, get_args

from anyio import to_thread

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import (
    atom_rows,
    job_rows,
    quarantine_rows,
    recall_rows,
    stage_outputs,
    tombstone_rows,
    turn_rows,
)
from mcp_memory.store.values import (
    FollowedLog,
    Imported,
    NewAtom,
    PersonaPage,
    RecallEntry,
    RecallHow,
    SceneChanges,
    SceneEdit,
)

PAYLOADS = {
    "script": "<script>alert(1)</script>",
    "onerror": "<img src=x onerror=alert(1)>",
    "breakout": '"><svg/onload=alert(1)>',
    "svg-script": "<svg><script>alert(1)</script></svg>",
    "mutation": "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "link-javascript": "[x](javascript:alert(1))",
    "link-data": "[x](data:text/html,<b>alert</b>)",
    "image": "![x](https://evil.example/pixel.png)",
    "entity": '<a href="jav&#x09;ascript:alert(1)">x</a>',
    "srcdoc": '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "form": "<form action=https://evil.example/><button>Sign in</button></form>",
    "refresh": '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    "base": "<base href=https://evil.example/>",
    "style": "<style>@import url(https://evil.example/x.css);*{background:url(https://evil.example/y)}</style>",
    "close": "</script><script>alert(1)</script>",
    "template": "{{7*7}} ${7*7} {% debug %} #{7*7} <%= 7*7 %>",
    "bidi": "abc\u202egnp.exe\u202c zero\u200bwidth\u2060 <!-- \ufeff open",
    "terminal": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\ \x1b[31mred",
    "polyglot": "javascript:/*--></title></style></textarea></script></xmp><svg/onload='+/\"/+/onmouseover=1/+/[*/[]/+alert(1)//'>",
    "clobbering": "<form id=main name=location><input name=attributes><img id=cookie name=getElementById></form>",
}
"""By the kind of attack, those that `docs` of browsers, sanitizers and terminals name."""

_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_LEASE = timedelta(hours=1)
T = TypeVar("T")


def _sessions() -> Iterator[str]:
    for payload in (*PAYLOADS.values(), "main", "location", "__proto__", "constructor", "a&b=c#d%2e%2e"):
        name = _FORBIDDEN.sub("", payload).strip(" .").encode()[:120].decode(errors="ignore").strip(" .")
        try:
            yield safe_name(name, what="session")
        except InvalidInput:
            continue


SESSIONS = list(dict.fromkeys(_sessions()))
"""What of the payloads can be the name of a session."""


async def fill(memory: Memory, *, tokens: bool = True) -> dict[str, dict[str, str]]:
    """Put every payload into every place; return where each is shown, by place and by name of the payload.

    `tokens`: also into names of access tokens, without which a server would answer this machine no more.
    """
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    now = memory._parts.now().astimezone()  # pyright: ignore[reportPrivateUsage]
    shown: dict[str, dict[str, str]] = {
        "turn": await _run(lambda: _turns(store, memory.space, now)),
        "held": await _run(lambda: _held(store, memory.space, now)),
        "statement": await _run(lambda: _statements(store, memory.space, now)),
    }
    await _run(lambda: _pages(store, memory.space, now))
    await memory.remember(f"{PAYLOADS['polyglot']} meets me on 24 December 2099", kind="persona", typed=True)
    shown["result"] = await _results(memory)
    await _around(memory, now, tokens=tokens)
    return shown


async def _run(work: Callable[[], T]) -> T:
    return await to_thread.run_sync(work)


def _turns(store: Store, space: str, now: datetime) -> dict[str, str]:
    new = [NewTurn(role="user", content=payload, name=payload) for payload in PAYLOADS.values()]
    stored = store.write(space, turn_rows.append, SESSIONS[0], turn_rows.prepare(new), now=now).stored
    for number, name in enumerate(SESSIONS):
        store.write(
            space,
            turn_rows.append,
            name,
            turn_rows.prepare([NewTurn(role="assistant", content=f"{number}: {name}", name=name)]),
            now=now,
        )
    return {name: f"/{turn.id}" for name, turn in zip(PAYLOADS, stored, strict=True)}


def _held(store: Store, space: str, now: datetime) -> dict[str, str]:
    """Store turns of tools that wait for review; some are released, some kept."""
    new = [NewTurn(role="tool", content=one, name=one, held=("drop", one)) for one in PAYLOADS.values()]
    held = [
        turn.id for turn in store.write(space, turn_rows.append, SESSIONS[1], turn_rows.prepare(new), now=now).stored
    ]
    store.write(space, quarantine_rows.review, held[:3], "released", now=now)
    store.write(space, quarantine_rows.review, held[3:6], "kept", now=now)
    return {name: f"/{id}" for name, id in zip(PAYLOADS, held, strict=True)}


def _statements(store: Store, space: str, now: datetime) -> dict[str, str]:
    """Store each as an explicit statement with a fact, and as one that quotes a turn and replaces the one before."""
    ids: dict[str, str] = {}
    for number, (name, payload) in enumerate(PAYLOADS.items()):
        kind = ("persona", "episodic", "instruction")[number % 3]
        told = NewAtom(
            kind=kind,
            text=payload,
            priority=50,
            confidence=1.0,
            session=SESSIONS[2],
            valid_from=now,
            entity=payload,
            relation=payload,
            value=payload,
            entities=[payload, f"{name} too"],
        )
        ids[name] = f"/{store.write(space, atom_rows.add, told, now=now).atom.id}"
    turns = [NewTurn(role="user", content=f"Well: {payload} And so on.") for payload in PAYLOADS.values()]
    before = None
    for turn in store.write(space, turn_rows.append, SESSIONS[3], turn_rows.prepare(turns), now=now).stored:
        payload = turn.content[6:-11]
        drawn = NewAtom(
            kind="persona",
            text=f"Said: {payload}",
            priority=50,
            confidence=0.9,
            session=SESSIONS[3],
            valid_from=now,
            evidence=[Evidence(turn=turn.id, span=(6, 6 + len(payload)), quote=payload)],
            supersedes=[before] if before else [],
            because=payload,
        )
        before = store.write(space, atom_rows.add, drawn, now=now).atom.id
    return ids


def _pages(store: Store, space: str, now: datetime) -> None:
    """Write a scene for each, twice, and two versions of the persona, with all of them in every part of a page."""
    for step, action in enumerate(("create", "update")):
        edits = [
            SceneEdit(
                action=action,
                slug=f"scene-{number}",
                reason=payload,
                title=payload,
                summary=payload,
                body=f"{_prose(payload)}\n\nAs told (a{number + 1}).{' Again.' * step}",
                atoms=[f"a{number + 1}"],
                entities=[payload],
            )
            for number, payload in enumerate(PAYLOADS.values())
        ]
        store.write(space, stage_outputs.commit, None, SceneChanges(edits=edits, upto=0), outcome={}, now=now)
        work = store.write(space, job_rows.lease, "persona", None, "{}", holder="one", lease=_LEASE, now=now)
        assert work is not None
        text = "\n\n".join(["# Persona", *map(_prose, PAYLOADS.values()), f"Version {step} (a1)."])
        store.write(
            space, stage_outputs.commit, work.id, PersonaPage(text=text, reason=text[:100], upto=1), outcome={}, now=now
        )


def _prose(payload: str) -> str:
    fence = f"```{payload}\n{payload}\n```"
    cells = payload.replace("|", "\\|")
    table = f"| {cells} | x |\n|---|---|\n| x | {cells} |"
    inside = f"**{payload}** *{payload}* `{payload}` [[{payload}]] [[x|{payload}]] ({payload}, a1)"
    return f"## {payload}\n\n{payload}\n\n- {payload}\n  1. {payload}\n\n> {payload}\n\n{fence}\n\n{table}\n\n{inside}"


async def _results(memory: Memory) -> dict[str, str]:
    """Keep results of tools: one task for each payload, and one task with a step for each."""
    shown: dict[str, str] = {}
    lines = "\n".join(PAYLOADS.values())
    for number, (name, payload) in enumerate(PAYLOADS.items()):
        mine: dict[str, object] = {
            "task": payload.replace("\x1b", ""),
            "step": payload,
            "session": SESSIONS[4 + number % 8],
        }  # no goal has controls
        for each in (mine, {"task": "All of them", "step": payload, "session": SESSIONS[4]}):
            done = await memory.offload_tool_result(
                payload,
                f"{each['task']} {number}\n{payload}\n{lines}\n",
                arguments={"command": payload, payload: [payload]},
                summary=payload,
                status=("done", "blocked", "doing")[number % 3],
                **each,  # type: ignore[arg-type]
            )
        shown[name] = f"/{done.ref}"
    return shown


async def _around(memory: Memory, now: datetime, *, tokens: bool) -> None:
    """Put them into reasons, paths, names of clients and tokens, and queries."""
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    await _run(lambda: _events(store, memory.space, now))
    for number, (name, payload) in enumerate(PAYLOADS.items()):
        if tokens:
            await memory.create_token(one_line(f"{number} {payload}", 80))
        file = Imported(path=f"/{payload}", sha256=f"{number:064}", modified=0, turns=number, at=now)
        await memory.note_import(file)
        log = FollowedLog(
            path=f"/{name}/{payload}", client=payload, session=SESSIONS[number % len(SESSIONS)], offset=1, head="",
            tail="", state="{}", at=now,
        )  # fmt: skip
        await memory.note_followed(log)
    await memory.forget(undo="x1")
    await memory.pause(" ".join(PAYLOADS.values())[:200])


def _events(store: Store, space: str, now: datetime) -> None:
    passing = [NewTurn(role="user", content=f"To go: {name}") for name in PAYLOADS]
    gone = store.write(space, turn_rows.append, SESSIONS[5], turn_rows.prepare(passing), now=now).stored
    for payload, turn in zip(PAYLOADS.values(), gone, strict=True):
        store.write(space, tombstone_rows.forget, [turn.id], reason=payload, now=now)
        entry = RecallEntry(
            at=now, how=get_args(RecallHow)[0], session=SESSIONS[6], ids=("t1", "a1"), tokens=9, query=payload
        )
        store.write_home(recall_rows.note_recalls, [(space, entry)])
