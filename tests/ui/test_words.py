"""The interface's own words stand in one catalogue, and all of it is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_memory.ui import words
from mcp_memory.ui.words import WORDS, t

UI = Path(words.__file__).parent
SOURCES = {path.relative_to(UI).as_posix(): path for path in sorted(UI.rglob("*.py")) if path.name != "words.py"}
TREES = {file: ast.parse(path.read_text(encoding="utf-8")) for file, path in SOURCES.items()}
_SENTENCE = re.compile(r"[^\W\d_]{2,}\s+[^\W\d_]{2,}")
_TECHNICAL = {"class_", "d", "viewBox", "points", "transform", "rel", "autocomplete"}
"""Attributes of elements whose values are lists of names or numbers."""
_COMMANDS = re.compile(r"mcp-memory [a-z]")
"""What is typed in a terminal is the same in every language."""


def docstrings(tree: ast.Module) -> set[int]:
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def passed_over(tree: ast.Module) -> set[int]:
    """Return strings that nobody reads: docstrings, keys, technical attributes, patterns, and texts of bugs."""
    found = docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="t"), args=[key, *_]):
                found |= {id(one) for one in ast.walk(key)}
            case ast.keyword(arg=str(name), value=value) if name in _TECHNICAL:
                found |= {id(one) for one in ast.walk(value)}
            case ast.Raise(exc=ast.Call(func=ast.Name(id="ValueError"))):
                found |= {id(one) for one in ast.walk(node)}
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re" | "logger"))):
                found |= {id(one) for one in ast.walk(node)}
            case _:
                pass
    return found


def texts(tree: ast.Module) -> Iterator[str]:
    silent = passed_over(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


@pytest.mark.parametrize("file", [file for file in SOURCES if file.startswith("pages/")])
def test_pages_say_nothing_but_words_of_the_catalogue(file: str) -> None:
    said = [one for one in texts(TREES[file]) if _SENTENCE.search(one) and not _COMMANDS.match(one)]
    assert said == []


@pytest.mark.parametrize("file", [file for file in SOURCES if not file.startswith("pages/")])
def test_so_do_frame_actions_components_and_pictures(file: str) -> None:
    said = [one for one in texts(TREES[file]) if re.search(rf"\b{_SENTENCE.pattern}\s+\w{{2,}}", one)]
    tables = {"elements.py", "frame.py", "responses.py"}  # of tags and attributes; the document; a policy
    assert said == [] or file in tables


def used() -> Iterator[tuple[str, str]]:
    """Yield each key that `t` is called with, or a pattern of keys where a part of it is computed, with its file."""
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "t" and node.args:
                for key in keys(node.args[0]):
                    yield file, key


def keys(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(key)):
            yield re.escape(key)
        case ast.IfExp(body=one, orelse=other):
            yield from keys(one)
            yield from keys(other)
        case ast.JoinedStr(values=parts):
            yield "".join(re.escape(part.value) if isinstance(part, ast.Constant) else r"\w+" for part in parts)  # type: ignore[arg-type]
        case _:
            pass


def strings() -> set[str]:
    """Return every string of the sources: a key may be passed on before `t` is called with it."""
    return {
        node.value
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def computed() -> set[str]:
    """Return patterns of the keys that any f-string of the sources can make."""
    joined = {
        pattern
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for pattern in keys(node)
    }
    return {pattern for pattern in joined if re.match(r"[a-z]+\\\.[a-z_]+\\w\+", pattern)}


def of_scripts() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((UI / "static").glob("*.js")))


def test_every_key_that_is_used_is_in_the_catalogue() -> None:
    missing = [(file, key) for file, key in used() if not any(re.fullmatch(key, known) for known in WORDS)]
    assert missing == []
    groups = {key.partition(".")[0] for key in WORDS}
    looks_like_one = {
        one
        for one in strings()
        if re.fullmatch(r"[a-z]+\.[a-z_]+", one)
        and one.partition(".")[0] in groups
        and not one.endswith("_")
        and not is_file(one)
    }
    assert looks_like_one - set(WORDS) == set()


def is_file(text: str) -> bool:
    return text.endswith((".css", ".js", ".html", ".svg", ".py", ".db", ".zip", ".txt", ".md"))


def test_every_word_of_the_catalogue_is_used() -> None:
    patterns = [re.compile(key) for key in {*(key for _, key in used()), *computed()}]
    passed, scripts = strings(), of_scripts()
    idle = [
        key
        for key in WORDS
        if key not in passed and not any(pattern.fullmatch(key) for pattern in patterns) and key not in scripts
    ]
    assert idle == []


def test_texts_with_a_count_have_two_forms_that_name_the_same_values() -> None:
    for key, text in WORDS.items():
        one, divided, many = text.partition("|")
        if divided:
            assert set(re.findall(r"\{(\w+)\}", one)) | {"count"} == set(re.findall(r"\{(\w+)\}", many)) | {"count"}, (
                key
            )


def test_a_text_is_filled_in() -> None:
    assert t("conversations.turns", count=1) == "1 turn"
    assert t("conversations.turns", count=2000) == "2,000 turns"
    assert t("session.title", name="{count} <b>") == "Session {count} <b>"
