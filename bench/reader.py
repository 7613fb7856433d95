"""A model that reads: it notes word for word what turns say in sentences that begin with "I ", and tells what it noted.

It answers every question of the pyramid, and of tasks, from the question alone, so that whole pipelines run without a
script.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mcp_memory.llm import Prompt, Said
from mcp_memory.longterm.l1_atoms.extract import EXTRACT
from mcp_memory.longterm.l1_atoms.merge import MERGE
from mcp_memory.longterm.l2_scenes.write import SCENES
from mcp_memory.longterm.l3_persona.write import PERSONA
from mcp_memory.shortterm.stages.canvas import CANVAS
from mcp_memory.shortterm.stages.summaries import SUMMARIES

__all__ = ["Reader"]

_TURN = re.compile(r'<turn id="(t\d+)"[^>]*>\n?(.*?)\n?</turn>', re.DOTALL)
_TOLD = re.compile(r"I \w+[^.!?\n]*[.!?]")
_STATEMENT = re.compile(r"^\(?(a\d+)\)?[^:\n]*: (.+)$", re.MULTILINE)


class Reader:
    """An `LLM`. `asked` keeps the prompts."""

    name = "reader/1"

    def __init__(self) -> None:
        self.asked: list[Prompt] = []

    def ask(self, prompt: Prompt, *, timeout: float) -> Said:
        self.asked.append(prompt)
        text = prompt.messages[-1].text
        answers = {
            EXTRACT.reply: extract, MERGE.reply: merge, SCENES.reply: scenes, PERSONA.reply: persona,
            CANVAS.reply: canvas, SUMMARIES.reply: summaries,
        }  # fmt: skip
        reply = json.dumps(answers[prompt.shape](text))
        return Said(text=reply, prompt_tokens=len(text) // 4, completion_tokens=len(reply) // 4, cost=None)


def extract(question: str) -> Any:
    new = question[question.rindex("<turns>") :]
    return {
        "scenes": [
            {
                "name": "somebody tells of themselves",
                "atoms": [
                    {"turn": id, "quote": told, "text": told, "kind": "persona", "priority": 75, "entities": []}
                    for id, content in _TURN.findall(new)
                    for told in _TOLD.findall(content)
                ],
            }
        ]
    }


def merge(question: str) -> Any:
    drafts = re.findall(r"^(d\d+) \[", question, re.MULTILINE)
    return {"decisions": [{"draft": draft, "action": "add", "targets": []} for draft in drafts]}


def scenes(question: str) -> Any:
    told = _STATEMENT.findall(question[question.index("<statements>") :])
    body = "\n".join(f"- {text} ({id})" for id, text in told)
    edit = {
        "action": "create", "slug": f"from-{told[0][0]}", "title": f"From {told[0][0]}", "summary": "What was told.",
        "body": body, "reason": "new",
    }  # fmt: skip
    return {"edits": [edit], "dropped": [], "persona_update": ""}


def persona(question: str) -> Any:
    slugs = re.findall(r'<scene slug="([^"]+)"', question)
    kept = re.findall(r"^- .+$", question[question.index("<page>") : question.index("</page>")], re.MULTILINE)
    lines = [*kept, *(f"- There is a page of it ([[{slug}]])" for slug in slugs)]
    return {"page": "# Persona\n\n" + "\n".join(dict.fromkeys(lines)), "changed": "more of it"}


def summaries(question: str) -> Any:
    ids = re.findall(r'<result id="(\d+)"', question)
    return {"summaries": [{"id": int(id), "summary": "It was read.", "score": 6} for id in ids]}


def canvas(question: str) -> Any:
    steps = re.findall(r"^(\d+-[NF]\d+) \[done\]", question, re.MULTILINE)
    done = steps[:-3]
    return {"groups": [{"title": "The way so far", "nodes": done, "summary": ""}] if len(done) > 1 else []}
