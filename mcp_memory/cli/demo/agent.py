"""The clients that the demo plays, an agent and the hooks of Claude Code, and their prepared input.

The texts are in `fixtures/demo` of the repository, and inside the package once it is installed. People, places,
programs and addresses are invented.

The replies in `replies/`, one file a stage, were written by hand after reading the questions. They name statements by
keys, because ids depend on earlier rows; the id of a statement is read from the questions, which show its text after
it. A sentence may have several wordings, from the earliest to the final knowledge. A question is answered from the rows
that it shows, so that any order of questions works:

    extract   the notes on its turns, without repetitions of shown statements; of two contradicting notes, the later
    merge     the decisions on its drafts; a draft without a decision is added
    scenes    the pages that change, each sentence in the last wording whose statements are shown; new sentences are
              appended to a page that is not shown in full
    persona   the page, in the same way
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, cast

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import Implementation, RequestParamsMeta, TextResourceContents

from mcp_memory.core.text import day_in_words
from mcp_memory.integrations.hooks.daemon_client import end_daemons, start_and_wait
from mcp_memory.server.tools import REPLACED
from mcp_memory.store.citations import cited_atoms


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStep:
    """A tool call of the task. `after` has the keys of the preceding steps."""

    key: str
    tool: str
    arguments: dict[str, Any]
    result: str
    step: str
    status: str
    after: Sequence[str] = ()
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTask:
    session: str
    goal: str
    steps: tuple[DemoStep, ...]


def load_conversation() -> list[tuple[str, list[dict[str, str]]]]:
    """Return the sessions in order, each with its turns as arguments of `record_turns`."""
    sessions: dict[str, list[dict[str, str]]] = {}
    for line in _read("conversation.jsonl").splitlines():
        turn: dict[str, str] = json.loads(line)
        sessions.setdefault(turn.pop("session"), []).append(turn)
    return list(sessions.items())


def load_monday(day: date) -> list[tuple[str, list[dict[str, str]]]]:
    """Return the sessions of a Monday, dated to that day; they plan a move for the week after."""
    moving_day = f"Saturday {day_in_words(day + timedelta(days=12))}"
    sessions: dict[str, list[dict[str, str]]] = {}
    for turn in map(json.loads, _read("week.jsonl").splitlines()):
        said_at = datetime.combine(day, time.fromisoformat(turn["at"])).astimezone().isoformat()
        content = turn["content"].replace("{moving_day}", moving_day)
        sessions.setdefault(turn["session"], []).append({"role": turn["role"], "content": content, "said_at": said_at})
    return list(sessions.items())


def load_memories() -> list[dict[str, str]]:
    """Return the arguments of the `remember` calls, in order; `replaces` is the key of an earlier memory."""
    return json.loads(_read("memories.json"))


def load_replies(stage: str) -> Any:
    return json.loads(_read(f"replies/{stage}.json"))


def load_task() -> DemoTask:
    """Return the task with all results."""
    fields: dict[str, Any] = json.loads(_read("task.json"))
    for step in fields["steps"]:
        step["result"] = _read(f"results/{step['result']}")
    steps = tuple(DemoStep(**step) for step in fields["steps"])
    return DemoTask(session=fields["session"], goal=fields["task"], steps=steps)


def _read(name: str) -> str:
    installed = Path(__file__).with_name("fixtures")
    folder = installed if installed.is_dir() else Path(__file__).parents[3] / "fixtures" / "demo"
    return (folder / name).read_text(encoding="utf-8")


Wordings = str | list[str]
"""A sentence, or its wordings in order; the last wording whose statements are known is the best."""
_ADD: Mapping[str, Any] = {"action": "add", "targets": [], "reason": "nothing that is held says it"}
_KEY = re.compile(r"\{(\w+)\}")
_CITATION = re.compile(r" \([^()]*\{\w+\}[^()]*\)")


class Replies:
    """Prepared replies to the questions of a run."""

    def __init__(self) -> None:
        self._notes: list[dict[str, Any]] = load_replies("extract")
        self._decisions: dict[str, dict[str, Any]] = load_replies("merge")
        self._scenes: dict[str, Any] = load_replies("scenes")
        self._persona: dict[str, Any] = load_replies("persona")
        statements = [*load_memories(), *self._notes]
        self._words = {statement["text"]: statement["key"] for statement in statements}
        self._ids: dict[str, str] = {}
        self._bodies: dict[str, str] = {}
        """The last version of each page."""

    def to(self, stage: str, question: str) -> str | None:
        """Remember the ids that a question shows and the pages that its reply writes, and return the reply.

        Return None if no reply was prepared.
        """
        self._ids |= _statement_ids(self._words, question)
        shown = {key: id for key, id in self._ids.items() if _shows(question, id)}
        match stage:
            case "extract":
                reply = self._extract(question, shown)
            case "merge":
                reply = self._merge(shown)
            case "scenes":
                reply = self._edits(shown)
            case _:
                reply = self._page(shown)
        return None if reply is None else json.dumps(reply, ensure_ascii=False)

    def _extract(self, question: str, shown: Mapping[str, str]) -> Any:
        new = {note["key"]: note for note in self._notes if _shows(question, note["turn"])}
        notes = [
            {**_without_key(note), "ends": [shown[target] for target in decided["targets"] if target in shown]}
            for key, note in new.items()
            if not self._is_said(key, decided := self._decisions.get(key, _ADD), shown, new)
        ]
        return {"notes": notes} if new else None

    def _is_said(self, key: str, decided: Mapping[str, Any], shown: Mapping[str, str], new: Mapping[str, Any]) -> bool:
        """Return whether a shown statement, or a later note on the same question, makes a note redundant."""
        if decided["action"] == "skip":
            return shown.keys() >= set(decided["targets"])
        return any(list(new).index(other) > list(new).index(key) for other in decided["targets"] if other in new)

    def _merge(self, shown: Mapping[str, str]) -> Any:
        drafts = {key: id for key, id in shown.items() if id.startswith("d")}
        return {"decisions": [self._decision(key, id, shown) for key, id in drafts.items()]} if drafts else None

    def _decision(self, key: str, draft: str, shown: Mapping[str, str]) -> dict[str, Any]:
        written = self._decisions.get(key)
        if written is None or not shown.keys() >= set(written["targets"]):
            return {**_ADD, "draft": draft}
        return {**written, "draft": draft, "targets": [shown[target] for target in written["targets"]]}

    def _edits(self, shown: Mapping[str, str]) -> Any:
        edits = [edit for slug, page in self._scenes["pages"].items() if (edit := self._edit(slug, page, shown))]
        dropped = [
            {"atom": shown[key], "reason": reason} for key, reason in self._scenes["dropped"].items() if key in shown
        ]
        changed = (self._scenes["pages"][edit["slug"]]["persona_update"] for edit in edits)
        why = "; ".join(reason for reason in changed if reason)
        return {"edits": edits, "dropped": dropped, "persona_update": why} if edits or dropped else None

    def _edit(self, slug: str, page: Mapping[str, Any], shown: Mapping[str, str]) -> dict[str, str] | None:
        before = self._bodies.get(slug, "")
        cited_ids = set(cited_atoms(before))
        whole = cited_ids <= set(shown.values())
        sayable = shown if whole else {key: id for key, id in shown.items() if id not in cited_ids}
        body = _text(page["body"], sayable, joint=" ")
        if not body or body == before:
            return None
        self._bodies[slug] = body if whole else f"{before}\n\n{body}"
        action = "append" if not whole else "update" if before else "create"
        edit = {"action": action, "slug": slug, "body": body, "reason": self._scenes["reasons"][action]}
        return {**edit, "title": page["title"], "summary": _best(page["summary"], shown, cite=False)} if whole else edit

    def _page(self, shown: Mapping[str, str]) -> Any:
        page = _text(self._persona["page"], shown, joint="\n- ")
        changed = _best(self._persona["changed"], shown, cite=False)
        return {"page": f"# Persona\n\n{page}", "changed": changed} if page else None


# --- rows that a question shows --------------------------------------------------------------------------
def _statement_ids(words: Mapping[str, str], question: str) -> Iterator[tuple[str, str]]:
    """Yield (key, id) of the statements that a question shows; the id precedes the text."""
    for line in question.splitlines():
        for text, key in words.items():
            before, match, _ = line.partition(text)
            if match and (ids := re.findall(r"\b[ad]\d+\b", before)):
                yield key, ids[-1]


def _shows(question: str, id: str) -> bool:
    return re.search(rf"\b{id}\b", question) is not None


# --- prepared text -------------------------------------------------------------------------------
def _without_key(note: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in note.items() if name != "key"}


def _text(sections: Mapping[str, Sequence[Wordings]], shown: Mapping[str, str], *, joint: str) -> str:
    """Return the page with the sentences whose statements are shown, without empty sections."""
    parts: list[str] = []
    for heading, sentences in sections.items():
        wordings = [best for sentence in sentences if (best := _best(sentence, shown))]
        lines = joint.join(["", *wordings] if heading and "\n" in joint else wordings).strip("\n")
        parts += [f"## {heading}\n\n{lines}" if heading else lines] if wordings else []
    return "\n\n".join(parts)


def _best(wordings: Wordings, shown: Mapping[str, str], *, cite: bool = True) -> str:
    """Return the last wording whose statements are all shown, with or without their ids; else an empty text."""
    for wording in reversed([wordings] if isinstance(wordings, str) else wordings):
        if shown.keys() >= set(_KEY.findall(wording)):
            return _KEY.sub(lambda key: shown[key[1]], wording if cite else _CITATION.sub("", wording))
    return ""


_PAGE = "memory://persona"
_PAGE_S = 60.0
_DAEMON_STARTS_S = 20.0
_SAYS = {"offload_tool_result": cast("RequestParamsMeta", {REPLACED: True})}
"""Metadata of calls, by tool: the agent replaces the result by the answer, so the result counts as saved."""
_NEXT = re.compile(r"More: (\S+)")
"""Link to the next page, after the contents."""


@asynccontextmanager
async def connect(home: Path, name: str) -> AsyncGenerator[DemoAgent]:
    """Start a server on the home, as a client of this name does, and yield an agent that uses it."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "mcp_memory", "--home", str(home), "serve"])
    async with Client(server, client_info=Implementation(name=name, version="1")) as client:
        yield DemoAgent(client)


@asynccontextmanager
async def start_hooked_client(home: Path) -> AsyncGenerator[HookedClient]:
    """Yield a client that runs hooks on the home, whose daemon runs meanwhile. On exit it ends its conversations."""
    client = HookedClient(home)
    await anyio.to_thread.run_sync(start_and_wait, home, _DAEMON_STARTS_S)
    try:
        yield client
    finally:
        with anyio.CancelScope(shield=True):
            await client.end()
            await anyio.to_thread.run_sync(end_daemons, home)


class HookedClient:
    """Runs hooks as Claude Code does."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._conversations: list[str] = []

    async def start(self, conversation: str) -> str:
        """Start a conversation, and return the context that the hook injects, or an empty text."""
        self._conversations.append(conversation)
        return await self._answer("SessionStart", conversation, source="startup")

    async def prompt(self, conversation: str, text: str) -> str:
        """Send a prompt to the hook, and return the context that the hook adds, or an empty text."""
        return await self._answer("UserPromptSubmit", conversation, prompt=text)

    async def end(self) -> None:
        """End all conversations."""
        for conversation in self._conversations:
            await self._run("SessionEnd", conversation, reason="other")

    async def _answer(self, event: str, conversation: str, **fields: str) -> str:
        """Run a hook, and return the context in its answer, or an empty text."""
        printed = await self._run(event, conversation, **fields)
        return json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed else ""

    async def _run(self, event: str, conversation: str, **fields: str) -> bytes:
        command = [sys.executable, "-m", "mcp_memory", "--home", str(self._home), "hook", event]
        event_json = json.dumps({"session_id": conversation, "hook_event_name": event, **fields})
        return (await anyio.run_process(command, input=event_json.encode())).stdout


@dataclass(frozen=True, slots=True)
class DemoResult:
    """A step and the server's answer to its offloaded result."""

    step: DemoStep
    answer: dict[str, Any]


class DemoAgent:
    """Calls tools and reads resources."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._replies = Replies()

    @property
    def protocol(self) -> str:
        """The negotiated version of the protocol."""
        return self._client.protocol_version

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool with the arguments that are not None, and return its answer. Raises RuntimeError if it fails."""
        set_arguments = {name: value for name, value in arguments.items() if value is not None}
        result = await self._client.call_tool(tool, set_arguments, meta=_SAYS.get(tool))
        if result.is_error or result.structured_content is None:
            raise RuntimeError(f"{tool} failed: {result.content}")
        return result.structured_content

    async def record(self, session: str, turns: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Record turns, wait until the server announces the new page about the user, and return the answer.

        Raises TimeoutError if the announcement takes longer than a minute.
        """
        async with self._client.listen(resource_subscriptions=[_PAGE]) as updates:
            answer = await self.call("record_turns", session=session, turns=turns)
            with anyio.fail_after(_PAGE_S):
                await anext(aiter(updates))
        return answer

    async def read(self, uri: str) -> bytes:
        """Return the bytes of a resource, following its pages."""
        whole, address = b"", uri
        while address:
            page, *rest = (await self._client.read_resource(address)).contents
            whole += page.text.encode() if isinstance(page, TextResourceContents) else base64.b64decode(page.blob)
            address = next((link[1] for item in rest if (link := _NEXT.match(getattr(item, "text", "")))), "")
        return whole

    async def distil(self) -> AsyncIterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Answer the questions of `distill`; yield each question with the server's response to the answer.

        Ends at the first question without a prepared answer, or if an answer is rejected.
        """
        asked = await self.call("distill")
        while (question := asked.get("next")) is not None:
            reply = self._replies.to(question["stage"], question["question"])
            if reply is None:
                return
            asked = await self.call("distill", work_id=question["work_id"], reply=reply)
            yield question, asked
            if asked.get("next") is not None and asked["next"]["work_id"] == question["work_id"]:
                return

    async def offload(self, task: DemoTask) -> AsyncIterator[DemoResult]:
        """Offload each result of a task, with its place on the canvas, and yield it with the server's answer."""
        nodes: dict[str, str] = {}
        for step in task.steps:
            answer = await self.call(
                "offload_tool_result",
                tool_name=step.tool,
                result=step.result,
                arguments=step.arguments,
                session=task.session,
                task=task.goal,
                step=step.step,
                after=[nodes[key] for key in step.after] or None,
                status=step.status,
                summary=step.summary,
            )
            nodes[step.key] = answer["node"]
            yield DemoResult(step, answer)
