"""Draws requests to a server: calls from each tool's input schema, corrupted calls, addresses, prompts, raw lines.

A strategy draws without knowing the server's answers. Where it needs a value from an answer (an id, a cursor, a
question to reply to), it draws a `Slot`, which is filled from `Seen` when the call is made. So a seed draws the same
calls whatever the answers are.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from hypothesis import strategies as st

from bench.fuzz.material import json_values, texts


@dataclass(frozen=True, slots=True)
class Slot:
    """A value from an earlier answer: the `number`th of its kind, modulo their count; `reply` answers a question."""

    kind: Literal["id", "cursor", "session", "reply"]
    number: int


@dataclass(frozen=True, slots=True)
class Act:
    """An action of a client. `what` determines which of the fields are used."""

    what: Literal["tool", "resource", "prompt", "complete", "list", "watch", "line"]
    name: str = ""
    arguments: Any = None
    connection: int = 0


_NAMED = re.compile(r"\b(?:[tad]\d{1,6}|r-[0-9a-f]{12}|\d{3}-[NF]\d{1,4}|x\d{1,6}|w-?\w{4,20}|\d{3}-[\w-]{3,40})\b")
_MOST = 400


@dataclass
class Seen:
    """Values from the answers so far."""

    ids: list[str] = field(default_factory=lambda: ["t1", "a1", "001-N1", "001"])
    cursors: list[str] = field(default_factory=lambda: ["nonsense"])
    sessions: list[str] = field(default_factory=lambda: ["trip"])
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Schema of the reply to the last question."""

    def note(self, answer: Mapping[str, Any]) -> None:
        _remembered(self.ids, _NAMED.findall(json.dumps(answer)[:20_000]))
        match answer:
            case {"cursor": str(cursor)}:
                _remembered(self.cursors, [cursor])
            case {"session": str(session)}:
                _remembered(self.sessions, [session])
            case {"next": {"work_id": str(id), "reply_schema": {**schema}}}:
                _remembered(self.ids, [id] * 20)  # else it would hardly ever be drawn
                self.schema = schema
            case _:
                pass

    def fill(self, slot: Slot) -> Any:
        match slot.kind:
            case "id":
                return self.ids[-1 - slot.number % len(self.ids)]
            case "cursor":
                return self.cursors[-1 - slot.number % len(self.cursors)]
            case "session":
                return self.sessions[-1 - slot.number % len(self.sessions)]
            case "reply":
                chance = random.Random(slot.number)
                return json.dumps(_of_schema(self.schema, self.schema.get("$defs", {}), chance, self.ids))


def _remembered(held: list[str], new: Sequence[str]) -> None:
    held += new
    del held[:-_MOST]


def filled(value: Any, seen: Seen) -> Any:
    """Return the arguments with every slot filled."""
    match value:
        case Slot():
            return seen.fill(value)
        case list():
            return [filled(one, seen) for one in cast("list[Any]", value)]
        case dict():
            return {key: filled(one, seen) for key, one in cast("dict[str, Any]", value).items()}
        case _:
            return value


def _of_schema(schema: Mapping[str, Any], defs: Mapping[str, Any], chance: random.Random, ids: Sequence[str]) -> Any:
    """Return a value that is valid under a schema, with existing ids."""
    if "$ref" in schema:
        return _of_schema(defs.get(schema["$ref"].rpartition("/")[2], {}), defs, chance, ids)
    if choices := schema.get("anyOf") or schema.get("allOf"):
        return _of_schema(chance.choice(choices), defs, chance, ids)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {}).items()
            return {name: _of_schema(held, defs, chance, ids) for name, held in fields if chance.random() < 0.95}
        case "array":
            return [_of_schema(schema.get("items", {}), defs, chance, ids) for _ in range(chance.randrange(4))]
        case "integer" | "number":
            return chance.choice([0, 1, 5, 70, 100, -1])
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
        case _:
            return chance.choice([chance.choice(ids), *_SAID])


# --- strategies -------------------------------------------------------------------------------------

_SAID = (
    "I moved to Porto in May and I am allergic to hazelnuts.",
    "Anna works on the billing service with Ben; she prefers tabs.",
    "我每天早上喝乌龙茶。",
    "Always answer in French, please.",
    "The deploy failed with ValueError in billing/invoice.py:120",
    "last week",
    "2026-05-07",
    "3 days ago",
    "page",
    "grep",
    "1-40",
    "$..name",
    "error|warn",
    "Find the leak",
    "default",
)
_number = st.integers(0, 2**16)
_slots = st.builds(Slot, st.sampled_from(["id", "id", "cursor", "session", "reply"]), _number)
_OWN: Mapping[str, st.SearchStrategy[Any]] = {
    "cursor": st.builds(Slot, st.just("cursor"), _number),
    "session": st.builds(Slot, st.just("session"), _number),
    "reply": st.builds(Slot, st.just("reply"), _number),
    "result": st.one_of(
        st.sampled_from(_SAID).map(lambda text: (text + "\n") * 200),
        json_values(("items", "name", "id"), leaves=40).map(json.dumps),
        texts,
    ),
}
_text = st.one_of(st.sampled_from(_SAID), _slots, _slots, texts)


def _value(name: str, schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for values that are valid under the schema."""
    if "enum" in schema:
        return st.sampled_from(list(schema["enum"]))
    match schema.get("type"):
        case "string":
            return st.one_of(_OWN[name], _text) if name in _OWN else _text
        case "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 10_000)
            return st.one_of(st.integers(low, high), st.sampled_from([low, high]))
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(_value("", schema.get("items", {})), max_size=4)
        case "object" if "properties" in schema:
            return _object(schema)
        case _:
            return json_values()


@st.composite
def _object(draw: st.DrawFn, schema: Mapping[str, Any]) -> dict[str, Any]:
    needed = schema.get("required", ())
    return {
        name: draw(_value(name, held))
        for name, held in schema["properties"].items()
        if draw(st.integers(0, 99)) < (98 if name in needed else 30)
    }


@st.composite
def _arguments(draw: st.DrawFn, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments; one call in five has a wrong value or an unknown argument."""
    given = draw(_object(schema))
    if draw(st.integers(0, 4)) == 0:
        name = draw(st.one_of(st.sampled_from([*schema["properties"]]), st.text(max_size=8)))
        given[name] = draw(json_values([*schema["properties"]]))
    return given


_ADDRESSES = (
    "persona",
    "canvas/active",
    "status",
    "scene/{}",
    "canvas/{}",
    "session/{}",
    "session/{}?start=1",
    "atom/{}",
)


@st.composite
def _address(draw: st.DrawFn) -> list[Any]:
    """Return the parts of an address, which the client joins."""
    before, hole, after = draw(st.sampled_from([*_ADDRESSES, "ref/{}", "{}"])).partition("{}")
    return ["memory://" + before, draw(_text) if hole else "", after]


@st.composite
def acts(draw: st.DrawFn, tools: Mapping[str, Mapping[str, Any]], prompts: Sequence[str], connections: int) -> Act:
    """Return an action over one of the connections. `tools`: input schemas by name."""
    over = draw(st.integers(0, connections - 1))
    match draw(st.integers(0, 19)):
        case 0 | 1:
            return Act("resource", arguments=draw(_address()), connection=over)
        case 2:
            given = draw(st.dictionaries(st.sampled_from(["topic", "task", "session", "x"]), _text, max_size=2))
            return Act("prompt", draw(st.sampled_from([*prompts, "none"])), given, over)
        case 3:
            places = st.sampled_from([*prompts, *(f"memory://{address}" for address in _ADDRESSES)])
            return Act(
                "complete", draw(places), [draw(st.sampled_from(["topic", "task", "id", "slug"])), draw(_text)], over
            )
        case 4:
            return Act("list", draw(st.sampled_from(["tools", "resources", "prompts", "templates"])), None, over)
        case 5:
            return Act("watch", arguments=draw(_address()), connection=over)
        case 6:
            return Act("line", arguments=draw(_lines(sorted(tools))), connection=over)
        case _:
            name = draw(st.sampled_from(sorted(tools)))
            return Act("tool", name, draw(_arguments(tools[name])), over)


_METHODS = ("tools/call", "tools/list", "resources/read", "prompts/get", "completion/complete", "ping", "initialize")


@st.composite
def _lines(draw: st.DrawFn, tools: Sequence[str]) -> str:
    """Return a message that no SDK would write: truncated, of another shape, or without required members."""
    params = {"name": draw(st.sampled_from(tools)), "arguments": draw(json_values(("query", "text", "ids")))}
    message: Any = {
        "jsonrpc": draw(st.sampled_from(["2.0", "2.0", "1.0"])),
        "id": draw(st.one_of(st.integers(1_000, 9_999), json_values(leaves=1))),
        "method": draw(
            st.one_of(st.sampled_from([*_METHODS, "notifications/cancelled", "subscriptions/listen"]), texts)
        ),
        "params": draw(st.one_of(st.just(params), json_values(("uri", "name", "arguments", "ref", "_meta")))),
    }
    if draw(st.booleans()):
        del message[draw(st.sampled_from([*message]))]
    line = json.dumps(draw(st.one_of(st.just(message), st.just([message]), json_values())))
    return line[: draw(st.integers(0, len(line)))] if draw(st.integers(0, 3)) == 0 else line
