"""Texts of structured formats as values of objects, lists and strings: JSON, JSON lines, XML, YAML."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

import yaml

from mcp_memory.shortterm.synopsis.fields import Json

XML = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*(?:<!DOCTYPE[^>\[]*>\s*)?<[A-Za-z_][\w:.-]*[\s/>]", re.DOTALL)
HTML = re.compile(r"\s*(?:<!doctype html|<html\b)", re.I)
YAML_LINE = re.compile(r"\s*(?:- )?[\w.\"'/-]+:(?: |$)|\s*- |\s*#|---|\s*$")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value, the name of its format, and what is wrong with the text, if anything."""

    value: Json
    kind: str
    content_type: str
    problem: str = ""


def parse(text: str) -> Parsed | None:
    """Return the value of a text in a structured format; None for any other text."""
    match text.lstrip("\ufeff \t\r\n")[:1]:
        case "{" | "[" | '"':
            return _parse_json(text)
        case "<":
            value = parse_xml(text)
            return None if value is None else Parsed(value, "xml", "application/xml")
        case _:
            value = parse_yaml(text)
            return None if value is None else Parsed(value, "yaml", "application/yaml")


def _parse_json(text: str) -> Parsed | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        return Parsed(value, "json", "application/json") if isinstance(value, (dict, list)) else None
    rows = parse_json_lines(text)
    return None if rows is None else Parsed(rows, "jsonl", "application/jsonl")


def parse_xml(text: str) -> Json | None:
    """Return the root element as `{tag: {attribute or tag: …}}`; None if the text is not well-formed XML.

    Elements that repeat in any parent of their kind are lists everywhere.
    """
    if not XML.match(text[:20_000]) or HTML.match(text[:400]) or "<!ENTITY" in text:
        return None
    parser = expat.ParserCreate()
    parser.buffer_text = True
    root: list[Any] = ["", {}, [], []]
    stack = [root]
    repeats: set[tuple[str, str]] = set()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element: list[Any] = [tag, attributes, [], []]
        stack[-1][2].append(element)
        stack.append(element)

    def end(_: str) -> None:
        element = stack.pop()
        times = Counter(child[0] for child in element[2])
        repeats.update((element[0], tag) for tag, n in times.items() if n > 1)

    def data(text: str) -> None:
        if not text.isspace():
            stack[-1][3].append(text)

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, data
    try:
        parser.Parse(text.strip(), True)
    except (expat.ExpatError, ValueError):
        return None
    return _element(root[2][0], repeats)


def _element(element: list[Any], repeats: set[tuple[str, str]]) -> Any:
    tag, attributes, children, texts = element
    text = " ".join("".join(texts).split())
    if not attributes and not children:
        return text
    made: dict[str, Any] = {name: value for name, value in attributes.items() if not name.startswith(("xmlns", "xsi:"))}
    for child in children:
        value = _element(child, repeats)
        if (tag, child[0]) in repeats:
            made.setdefault(child[0], [])
            if isinstance(made[child[0]], list):
                made[child[0]].append(value)
        else:
            made[child[0]] = value
    if text:
        made["text"] = text
    return made


def parse_yaml(text: str) -> Json | None:
    """Return the document, or the list of several documents; None if the text is not YAML of objects."""
    lines = [line for line in text[:20_000].split("\n") if line.strip()]
    if len(lines) < 3 or sum(1 for line in lines if YAML_LINE.match(line)) < 0.7 * len(lines) or len(text) > 1_000_000:
        return None
    try:
        documents = [document for document in yaml.load_all(text, Loader=yaml.CBaseLoader) if document is not None]
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if not documents or not all(isinstance(document, (dict, list)) for document in documents):
        return None
    return documents[0] if len(documents) == 1 else documents


def parse_json_lines(text: str) -> Json | None:
    values: list[Any] = []
    for line in text.split("\n"):
        if line.strip():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError):
                return None
            if not isinstance(values[-1], (dict, list)):
                return None
    return values if len(values) > 1 else None
