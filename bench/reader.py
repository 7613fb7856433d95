"""A scripted model: it extracts sentences that begin with "I " verbatim, and writes pages from them.

It answers every prompt of the pyramid and of tasks from the prompt alone, so that complete pipelines run without a
script.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import accumulate, takewhile
from typing import Any

from pydantic import BaseModel

from mcp_memory.longterm.extraction import EXTRACT
from mcp_memory.longterm.merging import MERGE
from mcp_memory.longterm.persona_stage import PERSONA
from mcp_memory.longterm.scene_stage import SCENES
from mcp_memory.models.llm import Completion, ModelPrompt
from mcp_memory.shortterm.canvas_stage import CANVAS
from mcp_memory.shortterm.summary_stage import SUMMARIES

_TURN = re.compile(r"^<(t\d+) [^>\n]*> (.*?)(?=\n<(?:t\d+ |day>|session>|/turns>))", re.DOTALL | re.MULTILINE)
_TOLD = re.compile(r"I \w+[^.!?\n]*[.!?]")
_PAGE = re.compile(r'<page slug="([^"]+)"[^>]*>\n(.*?)\n</page>', re.DOTALL)
_PAGE_CHARS = 1_500
_SCENE_CHARS = 1_100
_STATEMENT = re.compile(r"^\((a\d+)\) (?:\[[^\]\n]*\] )?(.+)$", re.MULTILINE)
_LINE = re.compile(r"^(\d+)\| (- .+)$", re.MULTILINE)


class Reader:
    """An `LLM`. `asked` contains the prompts."""

    name = "reader/1"

    def __init__(self) -> None:
        self.asked: list[ModelPrompt] = []

    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        self.asked.append(prompt)
        text = next(message.text for message in prompt.messages if message.role == "user")  # sent back: it stands first
        answers: dict[type[BaseModel], Callable[[str], Any]] = {
            EXTRACT.reply: extract, MERGE.reply: merge, SCENES.reply: scenes, PERSONA.reply: persona,
            CANVAS.reply: canvas, SUMMARIES.reply: summaries,
        }  # fmt: skip
        reply = json.dumps(answers[prompt.shape](text))
        return Completion(text=reply, prompt_tokens=len(text) // 4, completion_tokens=len(reply) // 4, cost=None)


def extract(question: str) -> Any:
    new: list[tuple[str, str]] = _TURN.findall(question[question.rindex("<turns>") :])
    told: list[tuple[str, str]] = [(id, said) for id, content in new for said in _TOLD.findall(content)]
    notes = [{"turn": id, "quote": said, "text": said, "kind": "persona"} for id, said in told]
    return {"notes": notes}


def merge(question: str) -> Any:
    drafts = re.findall(r"^(d\d+) \[", question, re.MULTILINE)
    return {"decisions": [{"draft": draft, "action": "add", "targets": list[str]()} for draft in drafts]}


def scenes(question: str) -> Any:
    held: list[tuple[str, str]] = _STATEMENT.findall(_within("statements", question))
    told = [(id, text) for id, text in held if " [until " not in text]
    ended = set(re.findall(r"^\((a\d+)\)", _within("ended", question), re.MULTILINE))
    edits: list[dict[str, Any]] = [
        edit for page in _PAGE.findall(_within("pages", question)) if (edit := _without(ended, *page))
    ]
    if told and "only where two are merged" not in question and "Too many stand" not in question:
        sizes = accumulate(len(text) for _, text in told)
        fits = [one for one, size in zip(told, sizes, strict=True) if size < _SCENE_CHARS]
        edits.append(_page(f"from-{told[0][0]}", f"From {told[0][0]}", [f"- {t} ({id})" for id, t in fits]))
        told = told[len(fits) :]
    return {
        "edits": edits,
        "dropped": [f"{id}: there is no room" for id, _ in told],
    }


def _within(tag: str, question: str) -> str:
    return question[question.rindex(f"<{tag}>\n") : question.rindex(f"</{tag}>")]


def _without(ended: set[str], slug: str, text: str) -> dict[str, Any] | None:
    """Return the edit that removes ended statements from a page, or None if it has none."""
    lines: list[tuple[str, str]] = _LINE.findall(text)
    over = [number for number, line in lines if ended & set(re.findall(r"\((a\d+)\)", line))]
    if len(over) == len(lines):
        return {"action": "delete", "slug": slug, "reason": "it ended"}
    return {"slug": slug, "lines": [f"{number}|" for number in over]} if over else None


def _page(slug: str, title: str, lines: list[str]) -> dict[str, str]:
    return {"slug": slug, "title": title, "summary": "What was told.", "body": "\n".join(lines)}


def persona(question: str) -> Any:
    slugs = re.findall(r'<scene slug="([^"]+)"', question)
    kept = [line for _, line in _LINE.findall(question[question.index("<page>") : question.index("</page>")])]
    lines = [*kept, *(f"- There is a page of it ([[{slug}]])" for slug in slugs)]
    told, room = list[str](), _PAGE_CHARS
    for line in dict.fromkeys(lines):
        room -= len(line) + 1
        told += [line] if room > 0 else []
    return {"page": "# Persona\n\n" + "\n".join(told), "changed": "more of it"}


def summaries(question: str) -> Any:
    ids = re.findall(r'<result id="(\d+)"', question)
    return {"summaries": [{"id": int(id), "summary": "It was read.", "score": 6} for id in ids]}


def canvas(question: str) -> Any:
    steps: list[tuple[str, str]] = re.findall(r"^(\d+-[NF]\d+) \[(\w+)\]", question, re.MULTILINE)
    done = [id for id, _ in takewhile(lambda step: step[1] == "done", steps[:-3])]
    return {"groups": [{"title": "The way so far", "nodes": done, "summary": ""}] if len(done) > 1 else []}
