"""What the demo plays: a conversation of two weeks, and a task with its tool results.

The words stand in `fixtures/demo` of the repository, and inside the package once it is installed; the
results that are long by nature are made by `generated`. People, places, programs and addresses are invented.

What the demo answers where a client's own model would: written beforehand, by hand, after reading the questions.

The replies stand in `fixtures/demo/replies`, a file a stage. They name statements by keys, because ids depend on what
was stored before; which id a statement has is read from the questions, which show its words behind it. A sentence
may have several wordings, from what is known first to what is known in the end. So a question is answered by what
it shows, in whichever order questions come:

    extract   with the notes on those turns that it shows
    merge     with what becomes of those drafts that it shows; one without a decision is added
    scenes    with those pages that change; of each sentence the last wording whose statements it shows. A page that it
              does not show in full gets at its end what is new
    persona   with the one page, in the same way

It knows neither the rules of a question nor their wording, and has nothing to say to a conversation but its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_memory.cli.demo.generated import GENERATED
from mcp_memory.store.citations import cited


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStep:
    """One tool call of the task. `after` names the keys of the steps it follows."""

    key: str
    tool: str
    arguments: dict[str, Any]
    result: str
    step: str
    after: tuple[str, ...]
    status: str
    summary: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTask:
    session: str
    goal: str
    steps: tuple[DemoStep, ...]


def conversation() -> list[tuple[str, list[dict[str, str]]]]:
    """The sessions in order, each with its turns as `record_turns` takes them."""
    sessions: dict[str, list[dict[str, str]]] = {}
    for line in _read("conversation.jsonl").splitlines():
        turn: dict[str, str] = json.loads(line)
        sessions.setdefault(turn.pop("session"), []).append(turn)
    return list(sessions.items())


def memories() -> list[dict[str, str]]:
    """What is told with `remember`, in order; `replaces` names the key of one before it."""
    return json.loads(_read("memories.json"))


def replies(stage: str) -> Any:
    """What is answered to the questions of a stage; `mcp_memory.cli.demo.inputs` says how it is written."""
    return json.loads(_read(f"replies/{stage}.json"))


def task() -> DemoTask:
    """The task, with every result in full."""
    told: dict[str, Any] = json.loads(_read("task.json"))
    steps = tuple(
        DemoStep(
            key=step["key"],
            tool=step["tool"],
            arguments=step["arguments"],
            result=_result(step["result"]),
            step=step["step"],
            after=tuple(step.get("after", ())),
            status=step["status"],
            summary=step.get("summary"),
        )
        for step in told["steps"]
    )
    return DemoTask(session=told["session"], goal=told["task"], steps=steps)


def _result(source: str) -> str:
    generated = source.removeprefix("generated:")
    return GENERATED[generated]() if generated != source else _read(f"results/{source}")


def _read(name: str) -> str:
    installed = Path(__file__).with_name("fixtures")
    folder = installed if installed.is_dir() else Path(__file__).parents[3] / "fixtures" / "demo"
    return (folder / name).read_text(encoding="utf-8")


Wordings = str | list[str]
"""A sentence, or the ways to say it, the last that can be said being the best."""

_KEY = re.compile(r"\{(\w+)\}")
_CITATION = re.compile(r" \([^()]*\{\w+\}[^()]*\)")


class Replies:
    """The replies to one run of the demo's conversation."""

    def __init__(self) -> None:
        self._notes: list[dict[str, Any]] = replies("extract")
        self._decisions: dict[str, dict[str, Any]] = replies("merge")
        self._scenes: dict[str, Any] = replies("scenes")
        self._persona: dict[str, Any] = replies("persona")
        told = [*memories(), *(note for scene in self._notes for note in scene["notes"])]
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
                reply = self._extract(question)
            case "merge":
                reply = self._merge(shown)
            case "scenes":
                reply = self._edits(shown)
            case _:
                reply = self._page(shown)
        return None if reply is None else json.dumps(reply, ensure_ascii=False)

    def _extract(self, question: str) -> Any:
        scenes = [
            {"name": scene["name"], "atoms": atoms}
            for scene in self._notes
            if (atoms := [_without_key(note) for note in scene["notes"] if _shows(question, note["turn"])])
        ]
        return {"scenes": scenes} if scenes else None

    def _merge(self, shown: Mapping[str, str]) -> Any:
        drafts = {key: id for key, id in shown.items() if id.startswith("d")}
        return {"decisions": [self._decision(key, id, shown) for key, id in drafts.items()]} if drafts else None

    def _decision(self, key: str, draft: str, shown: Mapping[str, str]) -> dict[str, Any]:
        written = self._decisions.get(key)
        if written is None or not shown.keys() >= set(written["targets"]):
            return {"draft": draft, "action": "add", "targets": [], "reason": "nothing that is held says it"}
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
