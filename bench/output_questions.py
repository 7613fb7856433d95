"""Questions about tool results, mined from agent runs: they are generated, and the place of each answer is known.

    error   the line with the name of an exception, unchanged
    name    the name of a function or class; its definition is the right place
    words   half the words of the sentence under a definition, in any order
    said    a sentence of the agent just after it read a result, with something of it in back-ticks
    value   "what is the <key> of <id>", for a record in JSON

Text that occurs in more than four results yields no question: the right place would be ambiguous.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bench.trajectories import Trajectory
from bench.words import FUNCTION_WORDS

KINDS = ("error", "name", "words", "said", "value")
_MAX_RESULTS = 4

_ERROR = re.compile(r"^(?:E\s+)?((?:[\w.]*(?:Error|Exception|Warning|Failure)\w*): .{12,160})$", re.MULTILINE)
_DEFINITION = re.compile(r"^(?:\s*\d+[\t:|-])?\s*((?:async def|def|class|function)\s+(\w{6,60}))", re.MULTILINE)
_SENTENCE_UNDER = re.compile(
    r"^(?:\s*\d+[\t:|-])?\s*(?:def|class)\s+\w+[^\n]*:\n(?:\s*\d+[\t:|-])?\s*r?(?:\"\"\"|''')\s*([A-Z][^\n\"']{30,160})",
    re.MULTILINE,
)
_NAMED = re.compile(r"`([\w./:-]{6,80})`")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[A-Za-z][\w-]+")
_ID_KEYS = ("number", "_id", "id", "title", "url")


@dataclass(frozen=True, slots=True)
class Output:
    """A tool result of a run as it is offloaded; `said` is the agent's next message."""

    run: str
    tool: str
    arguments: Any
    text: str
    said: str


Place = tuple[str, int]
"""A result's text, and the place of a character in it."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question; an excerpt is right if it contains any of the places."""

    kind: str
    text: str
    places: tuple[Place, ...]


def outputs(runs: Sequence[Trajectory], *, at_least: int) -> list[Output]:
    """Return the results of at least so many characters, in order."""
    found: list[Output] = []
    for run in runs:
        calls = {call.id: call for message in run.messages for call in message.calls}
        for place, message in enumerate(run.messages):
            if message.role != "tool" or len(message.content) < at_least:
                continue
            call = calls.get(message.call_id or "")
            next_words = (one.content for one in run.messages[place + 1 :] if one.role == "assistant")
            found.append(
                Output(
                    run=run.id,
                    tool=call.name if call else "tool",
                    arguments=_arguments(call.arguments if call else ""),
                    text=message.content,
                    said=next(next_words, ""),
                )
            )
    return found


def mine(found: Sequence[Output], *, each: int, seed: int = 7) -> list[Question]:
    """Return up to `each` questions of each kind, the same for the same runs."""
    chance = random.Random(seed)
    texts = {one.text: one.said for one in found}
    by_kind: dict[str, dict[str, list[Place]]] = {kind: defaultdict(list) for kind in KINDS}
    for text, said in texts.items():
        for kind, question, places in _asked(text, said):
            by_kind[kind][question] += places
    picked: list[Question] = []
    for kind, questions in by_kind.items():
        asked = sorted(question for question, places in questions.items() if _is_known(places))
        chance.shuffle(asked)
        picked += [Question(kind, one, tuple(questions[one])) for one in asked[:each]]
    return picked


def _is_known(places: Sequence[Place]) -> bool:
    return 1 <= len({text for text, _ in places}) <= _MAX_RESULTS


def _asked(text: str, said: str) -> Iterator[tuple[str, str, list[Place]]]:
    for found in _ERROR.finditer(text):
        yield "error", found[1], [(text, found.start(1))]
    for found in _DEFINITION.finditer(text):
        yield "name", found[2], [(text, found.start(1))]
    for found in _SENTENCE_UNDER.finditer(text):
        telling = [word for word in _WORD.findall(found[1]) if word.lower() not in FUNCTION_WORDS]
        if len(telling) >= 5:
            words = sorted(random.Random(found[1]).sample(telling, (len(telling) + 1) // 2))
            yield "words", " ".join(words), [(text, found.start(1))]
    for sentence in _SENTENCE.split(said):
        names = [name for name in _NAMED.findall(sentence) if name in text]
        if names and 40 < len(sentence) < 300:
            yield "said", sentence, [(text, at.start()) for name in names for at in re.finditer(re.escape(name), text)]
    yield from _values(text)


def _values(text: str) -> Iterator[tuple[str, str, list[Place]]]:
    if text.lstrip()[:1] not in ("[", "{"):
        return
    try:
        value: Any = json.loads(text)
    except ValueError:
        return
    for row in cast("list[Any]", value) if isinstance(value, list) else [value]:
        if not isinstance(row, dict):
            continue
        fields = cast("dict[str, Any]", row)
        known = next((key for key in fields if key.endswith(_ID_KEYS)), None)
        start = text.find(json.dumps(fields[known])) if known else -1
        for key, of in fields.items() if start >= 0 else ():
            at = text.find(f'"{key}": {json.dumps(of)}', start)
            if key != known and isinstance(of, str | int | float) and len(str(of)) < 60 and at >= 0 and known:
                yield "value", f"what is the {key.replace('_', ' ')} of {fields[known]}", [(text, at)]


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
