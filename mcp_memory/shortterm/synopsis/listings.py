"""Directory listings: `ls -la`, `ls -R`, `find`, `tree`, globs, trees as JSON: how much of what, and what matters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_memory.shortterm.synopsis.draft import Draft, listed
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece
from mcp_memory.shortterm.synopsis.page import Line, Page

__all__ = ["describe_listing", "describe_tree"]

LONG = re.compile(
    r"(?P<mode>[dlcbps-][rwxsStT-]{9})[.+@]?\s+\d+\s+\S+\s+\S+\s+(?P<size>[\d.,]+[KMGT]?)\s+"
    r"(?P<when>\w{3}\s+\d+\s+[\d:]+|\d{4}-\d\d-\d\d \d\d:\d\d\S*(?: [+-]\d{4})?|[A-Z]\w{2} +\d+ +\S+)\s(?P<name>.+)"
)
TREE = re.compile(r"(?P<pad>(?:[│|`├└ \u00a0─-]{2,}))(?P<name>[^\s│├└].*)")
PLAIN = re.compile(r"(?:\./|/|~/|[A-Za-z]:\\)?[\w.@+~=,\[\]() -]*\w[\w.@+~=,\[\]()/\\-]*$")
FOLDER = re.compile(r"(?P<path>\S.*):$")
TOTAL = re.compile(r"total \d+|\d+ director(?:y|ies), \d+ files?")
COMPLAINT = re.compile(r"(?:find|ls|tree|fd|du): .+")
NOTABLE = re.compile(
    r"(?:^|/)(?:README|LICENSE|CHANGELOG|CONTRIBUTING|Makefile|Dockerfile|pyproject\.toml|setup\.(?:py|cfg)|package\.json"
    r"|tsconfig\.json|Cargo\.toml|go\.mod|pom\.xml|build\.gradle|requirements[\w-]*\.txt|docker-compose\.ya?ml|\.env"
    r"|tox\.ini|conftest\.py|manage\.py|CLAUDE\.md|AGENTS\.md)",
    re.I,
)


MOST = 20_000
"""Entries of a tree that are read."""


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    at: int
    folder: bool = False
    size: str = ""


def describe_listing(page: Page, focus: Focus) -> Draft | None:
    """At least 85 % of the lines name one entry each."""
    _, missed = _read(page.sample)
    if missed > 0.25 * len(page.sample):
        return None
    entries, missed = _read(page.lines)
    if len(entries) < 3 or missed > 0.15 * (len(entries) + missed):
        return None
    return _draft(entries, focus)


def describe_tree(value: Any, focus: Focus) -> Draft | None:
    """A tree of folders and files as JSON: objects with a `name`, folders with `children`."""
    roots = cast("list[Any]", value if isinstance(value, list) else [value])
    if not any(isinstance(_field(root, "children"), list) for root in roots):
        return None
    entries: list[Entry] = []
    waiting = [("", root) for root in reversed(roots)]
    while waiting and len(entries) < MOST:
        folder, one = waiting.pop()
        name, children = _field(one, "name"), _field(one, "children")
        if not isinstance(name, str):
            return None
        path = f"{folder}/{name}" if folder else name
        entries.append(Entry(path, len(entries), folder=isinstance(children, list)))
        if isinstance(children, list):
            waiting += [(path, child) for child in reversed(cast("list[Any]", children))]
    return _draft(entries, focus) if len(entries) >= 3 else None


def _field(value: Any, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def _draft(entries: Sequence[Entry], focus: Focus) -> Draft:
    parents = {entry.path.rpartition("/")[0] for entry in entries}
    files = [entry for entry in entries if not entry.folder and entry.path not in parents]
    kinds = Counter(_extension(entry.path) for entry in files)
    folders = Counter(entry.path.rpartition("/")[0] or "." for entry in entries)
    notable = [entry.path for entry in entries if NOTABLE.search(entry.path)]
    asked = [entry for entry in entries if focus.of(entry.path) > 0]
    best = [entry.path for entry in sorted(asked, key=lambda e: (-focus.of(e.path), len(e.path), e.at))[:8]]
    shown = list(dict.fromkeys([*best[:4], *notable[:4], *(entry.path for entry in entries[:4])]))
    count = f"{len(entries):,} entries" if len(files) < len(entries) else f"{len(files):,} files"
    by_kind = ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common(3))
    base = _common(list(folders)) if len(folders) > 1 else next(iter(folders))
    where = f" under {base}" if base not in ("", ".") else ""
    facts: list[str] = []
    if sized := [entry for entry in files if entry.size]:
        largest = sorted(sized, key=lambda e: -_bytes(e.size))[:3]
        facts.append("largest: " + ", ".join(f"{entry.path} {entry.size}" for entry in largest))
    return Draft(
        kind="listing",
        summary=f"{count}{where} ({by_kind}): {listed(shown, 5)}",
        score=6 if len(entries) <= 8 else 4,
        facts=tuple(facts),
        use="data",
        pieces=tuple(_by_folder(entries)),
        parts=True,
    )


def _by_folder(entries: Sequence[Entry]) -> Iterator[Piece]:
    """Each folder with the names in it."""
    names: dict[str, list[str]] = {}
    first: dict[str, int] = {}
    for entry in entries:
        folder, _, name = entry.path.rpartition("/")
        names.setdefault(folder, []).append(name)
        first.setdefault(folder, entry.at)
    for folder, held in names.items():
        yield Piece(first[folder], " ".join(held), f"{folder or '.'}/")


def _read(lines: Sequence[Line]) -> tuple[list[Entry], int]:
    entries: list[Entry] = []
    missed = 0
    folder = ""
    drawn: list[str] = []
    is_tree = any(mark in line.text for line in lines[:50] for mark in ("├──", "└──", "|-- ", "`-- "))
    for line in lines:
        text = line.text.rstrip()
        if not text.strip() or TOTAL.match(text.strip()) or COMPLAINT.match(text):
            continue
        if found := LONG.match(text):
            if found["name"] not in (".", ".."):
                path = f"{folder}/{found['name']}" if folder else found["name"]
                entries.append(Entry(path.split(" -> ")[0], line.number, found["mode"][0] == "d", found["size"]))
        elif is_tree and (found := TREE.match(text)):
            depth = len(found["pad"].replace("\u00a0", " ")) // 4
            drawn[depth - 1 :] = [found["name"].rstrip("/")]
            entries.append(Entry("/".join(drawn), line.number, found["name"].endswith("/")))
        elif (heading := FOLDER.match(text)) and " " not in heading["path"]:
            folder = heading["path"]
        elif not is_tree and _is_path(text):
            path = f"{folder}/{text}" if folder and "/" not in text else text
            entries.append(Entry(path.rstrip("/"), line.number, text.endswith("/")))
        elif not (is_tree and not entries):  # the root that `tree` prints first
            missed += 1
    return entries, missed


def _is_path(text: str) -> bool:
    """One name: with a slash or an extension, and no sentence."""
    if len(text) > 300 or not PLAIN.match(text) or text.count(" ") > 2 or text[0].isspace():
        return False
    name = text.rsplit("/", 1)[-1]
    return ("/" in text and " " not in text) or (re.search(r"\w\.\w{1,8}$|^\.\w", name) is not None and "(" not in text)


def _extension(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    dot = name.rfind(".")
    return name[dot:].lower() if dot > 0 and len(name) - dot <= 9 else "without extension"


def _common(folders: list[str]) -> str:
    """The longest folder that all lie in."""
    split = [path.split("/") for path in (min(folders), max(folders))]
    same = 0
    while same < min(map(len, split)) and split[0][same] == split[1][same]:
        same += 1
    return "/".join(split[0][:same])


def _bytes(text: str) -> float:
    number = (
        float(re.sub(r"[^\d.]", "", text.replace(",", "")).strip(".").replace("..", ".") or 0)
        if text.count(".") < 2
        else 0.0
    )
    return number * 1024 ** (" KMGT".find(text[-1]) if text[-1] in "KMGT" else 0)
