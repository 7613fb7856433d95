"""The demo's input: a Monday's conversation, one of two weeks, a task with its tool results, and replies of a model.

The texts are in `fixtures/demo` of the repository, and inside the package once it is installed. People, places,
programs and addresses are invented.

The replies in `replies/`, one file a stage, were written by hand after reading the questions. They name statements by
keys, because ids depend on earlier rows; the id of a statement is read from the questions, which show its words behind
it. A sentence may have several wordings, from the earliest knowledge to the final one. A question is answered by the
rows that it shows, so that questions may come in any order:

    extract   the notes on its turns, without those that only repeat what is shown; of two that differ, the later
    merge     the decisions on its drafts; a draft without a decision is added
    scenes    the pages that change, each sentence in the last wording whose statements are shown; a page that is not
              shown in full gets the new sentences at its end
    persona   the page, in the same way
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from mcp_memory.core.text import day_in_words
from mcp_memory.store.citations import cited


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStep:
    """One tool call of the task. `after` names the keys of the steps it follows."""

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


def conversation() -> list[tuple[str, list[dict[str, str]]]]:
    """Return the sessions in order, each with its turns as `record_turns` takes them."""
    sessions: dict[str, list[dict[str, str]]] = {}
    for line in _read("conversation.jsonl").splitlines():
        turn: dict[str, str] = json.loads(line)
        sessions.setdefault(turn.pop("session"), []).append(turn)
    return list(sessions.items())


def monday(day: date) -> list[tuple[str, list[dict[str, str]]]]:
    """Return the sessions of a Monday as `conversation` does, said on that day; they plan a move for the week after."""
    moving_day = f"Saturday {day_in_words(day + timedelta(days=12))}"
    sessions: dict[str, list[dict[str, str]]] = {}
    for turn in map(json.loads, _read("week.jsonl").splitlines()):
        said_at = datetime.combine(day, time.fromisoformat(turn["at"])).astimezone().isoformat()
        content = turn["content"].replace("{moving_day}", moving_day)
        sessions.setdefault(turn["session"], []).append({"role": turn["role"], "content": content, "said_at": said_at})
    return list(sessions.items())


def memories() -> list[dict[str, str]]:
    """Return the memories for `remember`, in order; `replaces` names the key of an earlier one."""
    return json.loads(_read("memories.json"))


def replies(stage: str) -> Any:
    """Return the replies to the questions of a stage."""
    return json.loads(_read(f"replies/{stage}.json"))


def task() -> DemoTask:
    """Return the task, with every result in full."""
    told: dict[str, Any] = json.loads(_read("task.json"))
    for step in told["steps"]:
        step["result"] = _read(f"results/{step['result']}")
    steps = tuple(DemoStep(**step) for step in told["steps"])
    return DemoTask(session=told["session"], goal=told["task"], steps=steps)


def _read(name: str) -> str:
    installed = Path(__file__).with_name("fixtures")
    folder = installed if installed.is_dir() else Path(__file__).parents[3] / "fixtures" / "demo"
    return (folder / name).read_text(encoding="utf-8")


Wordings = str | list[str]
"""A sentence, or the ways to say it, the last that can be said being the best."""

_ADD: Mapping[str, Any] = {"action": "add", "targets": [], "reason": "nothing that is held says it"}
_KEY = re.compile(r"\{(\w+)\}")
_CITATION = re.compile(r" \([^()]*\{\w+\}[^()]*\)")


class Replies:
    """The replies to one run of the demo's conversation."""

    def __init__(self) -> None:
        self._notes: list[dict[str, Any]] = replies("extract")
        self._decisions: dict[str, dict[str, Any]] = replies("merge")
        self._scenes: dict[str, Any] = replies("scenes")
        self._persona: dict[str, Any] = replies("persona")
        told = [*memories(), *self._notes]
        self._words = {one["text"]: one["key"] for one in told}
        self._ids: dict[str, str] = {}
        self._bodies: dict[str, str] = {}
        """What was last given of each page."""

    def to(self, stage: str, question: str) -> str | None:
        """Return the reply to a question; None where none was written."""
        self._ids |= _ids_of(self._words, question)
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
        """Return whether something shown says what a note says, or a later note of the same question says it anew."""
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
        told = set(cited(before))
        whole = told <= set(shown.values())
        sayable = shown if whole else {key: id for key, id in shown.items() if id not in told}
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


# --- what a question shows --------------------------------------------------------------------------


def _ids_of(words: Mapping[str, str], question: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of the statements that a question shows, each with the id that stands before its words."""
    for line in question.splitlines():
        for text, key in words.items():
            before, found, _ = line.partition(text)
            if found and (ids := re.findall(r"\b[ad]\d+\b", before)):
                yield key, ids[-1]


def _shows(question: str, id: str) -> bool:
    return re.search(rf"\b{id}\b", question) is not None


# --- what was written -------------------------------------------------------------------------------


def _without_key(note: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in note.items() if name != "key"}


def _text(sections: Mapping[str, Sequence[Wordings]], shown: Mapping[str, str], *, joint: str) -> str:
    """Return what can be said of a page, sections with nothing to say left out."""
    parts: list[str] = []
    for heading, sentences in sections.items():
        said = [best for sentence in sentences if (best := _best(sentence, shown))]
        lines = joint.join(["", *said] if heading and "\n" in joint else said).strip("\n")
        parts += [f"## {heading}\n\n{lines}" if heading else lines] if said else []
    return "\n\n".join(parts)


def _best(wordings: Wordings, shown: Mapping[str, str], *, cite: bool = True) -> str:
    """Return the last wording of which every statement is shown, with their ids or without; else nothing."""
    for wording in reversed([wordings] if isinstance(wordings, str) else wordings):
        if shown.keys() >= set(_KEY.findall(wording)):
            return _KEY.sub(lambda key: shown[key[1]], wording if cite else _CITATION.sub("", wording))
    return ""
