"""Texts of structured formats as values: JSON, JSON lines, XML, YAML, TOML.

A format owns a text only if it accounts for all of it, or for all but the end of a text that was cut off. Text that is
longer than `SLOW` is not read by the slower parsers (YAML, TOML).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from xml.parsers import expat

import yaml

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
SLOW = 1_000_000
YAML_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""The loader of libyaml, if PyYAML was built with it, which is many times faster."""
DEEPEST = 200
TORN = 2_000
"""The most characters that an incomplete last value may have."""
STRINGS_AND_SIGNS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)
XML = re.compile(r"\s*<(?:\?xml|!--|!DOCTYPE|[A-Za-z_][\w:.-]{0,80}[\s/>])")
YAML_LINE = re.compile(r"\s*(?:- )?[\w.\"'/-]+:(?: |$)|\s*- |\s*#|---|\s*$")
TOML_LINE = re.compile(r"\[\[?[\w.\"' -]+\]?\]$|[\w.\"-]+ *= *\S|\s*[\"'\]{}]|\s*#|\s*$")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value, the name of its format, and what is wrong with the text, if anything."""

    value: Json
    kind: str
    content_type: str
    problem: str = ""


def parse(text: str) -> Parsed | None:
    """Return the value of a text in a structured format; None for any other text."""
    text = text.lstrip("\ufeff")
    begin = text.lstrip()[:1]
    if begin in ("{", "[", '"') and (parsed := _parse_json(text)):
        return parsed
    if begin == "<":
        value = _parse_xml(text)
        return None if value is None else Parsed(value, "xml", "application/xml")
    if len(text) > SLOW:
        return None
    lines = [line for line in text[:20_000].split("\n") if line.strip()]
    for pattern, read, kind in ((TOML_LINE, tomllib.loads, "toml"), (YAML_LINE, _parse_yaml, "yaml")):
        if len(lines) >= 3 and sum(1 for line in lines if pattern.match(line)) > 0.8 * len(lines):
            try:
                value = read(text)
            except (yaml.YAMLError, tomllib.TOMLDecodeError, RecursionError, ValueError):
                continue
            if value and isinstance(value, (dict, list)):
                return Parsed(cast("Json", value), kind, f"application/{kind}")
    return None


def _parse_json(text: str) -> Parsed | None:
    """Read one value, several values one after the other, or a value that is cut off; not a single string."""
    values: list[Any] = []
    problem = ""
    decoder, at = json.JSONDecoder(), 0
    try:
        while rest := re.compile(r"\s*(?=\S)").match(text, at):
            value, at = decoder.raw_decode(text, rest.end())
            values.append(value)
    except RecursionError:
        return None
    except ValueError:
        begun = _close_brackets(text[at:]) if len(values) < 2 else None
        if begun is not None and not values:
            values, problem = [begun], f"cut off after line {text.count(chr(10)) + 1:,}"
        elif len(text) - at > TORN or not values:
            return None
        elif text[at:].strip():
            problem = "the last line is cut off"
    if not all(isinstance(value, (dict, list)) for value in values):
        return None
    if len(values) == 1:
        return Parsed(values[0], "json", "application/json", problem)
    return Parsed(values, "jsonl", "application/jsonl", problem)


def _close_brackets(text: str) -> Any | None:
    """Return the value of a JSON text whose end is missing, without its last part; None for any other.

    The last part is the last item of the outermost list that is cut off, if it is short, so that no row lacks fields.
    """
    commas: list[int] = []  # the place of the last comma in each open bracket
    opened: list[str] = []
    for match in STRINGS_AND_SIGNS.finditer(text):
        sign = match[0][0]
        if sign in "{[":
            opened.append(sign)
            commas.append(0)
            if len(opened) > DEEPEST:
                return None
        elif sign in "}]":
            if not opened or opened.pop() + sign not in ("{}", "[]"):
                return None
            commas.pop()
        elif sign == ",":
            if not opened:
                return None
            commas[-1] = match.start()
    least = len(text) - TORN - len(text) // 20
    whole = [depth for depth, comma in enumerate(commas) if comma >= max(1, least)]
    depth = next((depth for depth in whole if opened[depth] == "["), whole[-1] if whole else -1)
    ends = [(text[: commas[depth]], opened[: depth + 1])] if whole else []
    for begin, brackets in (*ends, (text, opened)):
        try:
            value = json.loads(begin + "".join("}" if sign == "{" else "]" for sign in reversed(brackets)))
        except (ValueError, RecursionError):
            continue
        if value:
            return value
    return None


@dataclass(slots=True)
class _Element:
    tag: str
    attributes: dict[str, str]
    children: list[_Element]
    texts: list[str]


def _parse_xml(text: str) -> Json | None:
    """Return the root element; elements that repeat in any parent of their kind are lists everywhere.

    None for HTML, for text that is not well-formed, and for text that defines entities, which can grow without bound.
    """
    if not XML.match(text) or "<!ENTITY" in text:
        return None
    root = _Element("", {}, [], [])
    stack = [root]
    repeats: set[tuple[str, str]] = set()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag, attributes, [], [])
        stack[-1].children.append(element)
        stack.append(element)
        if len(stack) > DEEPEST:
            raise ValueError("nested too deep")

    def end(_: str) -> None:
        element = stack.pop()
        times = Counter(child.tag for child in element.children)
        repeats.update((element.tag, tag) for tag, count in times.items() if count > 1)

    def data(text: str) -> None:
        if not text.isspace():
            stack[-1].texts.append(text)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, data
    try:
        parser.Parse(text.strip().encode("utf-8", "replace"), True)
    except (expat.ExpatError, ValueError):
        return None
    return _value_of(root.children[0], repeats)


def _value_of(element: _Element, repeats: set[tuple[str, str]]) -> Any:
    text = " ".join("".join(element.texts).split())
    if not element.attributes and not element.children:
        return text
    fields: dict[str, Any] = {k: v for k, v in element.attributes.items() if not k.startswith(("xmlns", "xsi:"))}
    for child in element.children:
        value = _value_of(child, repeats)
        if (element.tag, child.tag) in repeats:
            if not isinstance(fields.get(child.tag), list):
                fields[child.tag] = []
            fields[child.tag].append(value)
        else:
            fields[child.tag] = value
    if text:
        fields["text"] = text
    return fields


def _parse_yaml(text: str) -> Any:
    """Return the document, or the list of several documents; all plain values are texts.

    The values are built from the parser's events, which takes a third of the time of PyYAML's nodes and constructor.
    """
    documents: list[Any] = []
    anchors: dict[str, Any] = {}
    open_values: list[tuple[Any, list[str]]] = [(documents, [])]  # each with the key that waits for its value
    has_alias = False
    for event in cast("Iterator[Any]", cast("Any", yaml).parse(text, Loader=YAML_LOADER)):
        begins = False
        match event:
            case yaml.ScalarEvent():
                value = event.value
            case yaml.MappingStartEvent():
                value, begins = dict[str, Any](), True
            case yaml.SequenceStartEvent():
                value, begins = list[Any](), True
            case yaml.AliasEvent():
                if event.anchor not in anchors:
                    raise ValueError("an alias without its anchor")
                value, has_alias = anchors[event.anchor], True
                if any(value is outer for outer, _ in open_values):
                    raise ValueError("an alias inside its own value")
            case yaml.CollectionEndEvent():
                open_values.pop()
                continue
            case _:
                if isinstance(event, yaml.DocumentStartEvent):
                    anchors.clear()
                continue
        if event.anchor is not None and not isinstance(event, yaml.AliasEvent):
            if event.anchor in anchors:
                raise ValueError("an anchor that is there already")
            anchors[event.anchor] = value
        outer, keys = open_values[-1]
        if isinstance(outer, list):
            cast("list[Any]", outer).append(value)
        elif keys:
            outer[keys.pop()] = value
        elif isinstance(value, str):
            keys.append(value)
        else:
            raise ValueError("a key that is no text")
        if begins:
            open_values.append((value, []))
            if len(open_values) > DEEPEST:
                raise ValueError("nested too deep")
    if not all(isinstance(document, (dict, list)) for document in documents):
        return None
    if has_alias:
        _require_bounded(documents, len(text))
    return documents[0] if len(documents) == 1 else documents


def _require_bounded(documents: list[Any], most: int) -> None:
    """Raise ValueError if documents have more than `most` values, because their aliases grow without bound."""
    waiting: list[Any] = list(documents)
    nodes = 0
    while waiting:
        node: Any = waiting.pop()
        if isinstance(node, dict):
            waiting.extend(cast("dict[Any, Any]", node).values())
        elif isinstance(node, list):
            waiting.extend(cast("list[Any]", node))
        nodes += 1
        if nodes > most:
            raise ValueError("aliases that grow without bound")
