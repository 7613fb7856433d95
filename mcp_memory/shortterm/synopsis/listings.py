"""Results with an item per line: search hits and directory listings.

Hits of `grep -n`, `grep -r` and ripgrep with and without headings: counts by file, the most relevant files first.
Listings of `ls -la`, `ls -R`, `find`, `tree` and globs: counts by kind, and the notable files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip, first_items
from mcp_memory.shortterm.synopsis.preview import SUMMARY, SynopsisDraft
from mcp_memory.shortterm.synopsis.statements import statements_of_facts, statements_of_picks

IN_FILE = re.compile(
    r"(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]{0,250}?[\w)\]])(?P<mark>[:])(?:(?P<line>\d+):(?:\d+:)?)?(?P<text>.*)"
)
CONTEXT = re.compile(r"(?P<path>\S{1,250}?\.\w{1,8})-(?:(?P<line>\d+)-)?(?P<text>.*)")
NUMBERED = re.compile(r"(?P<line>\d+)(?P<mark>[:-])(?!\d\d[:.-])(?P<text>.*)")
LOOKS_LIKE_PATH = re.compile(r"[\w.~@+/\\ -]*(?:/[\w.@+ -]+|\.\w{1,8})$")
SEVERITY = re.compile(r"\s*(?P<what>fatal error|error|warning|note|info)\b(?:\[[\w-]+\])?:? ?(?P<text>.*)", re.I)
DEFINES = re.compile(r"\s*(?:async |export |pub )*(?:def|class|func|fn|function|interface|struct|enum)\b")
SEPARATOR = "--"
RULE = re.compile(r"\s*[A-Z]{1,8}-?\d{2,6}\b")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A search hit or context line: `line` is its number in the file, `at` its line number in the result."""

    path: str
    line: str
    text: str
    at: int
    context: bool = False


def describe_hits(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe search hits if at least 70 % of the lines are hits, context, separators or headings."""
    if page.span:
        return None  # a log
    for lines in (page.sample, page.lines):  # the sample alone refutes it
        hits, missed = _read_hits(lines)
        if len(hits) < 2 or missed > 0.3 * (len(hits) + missed):
            return None
    real = [hit for hit in hits if not hit.context]
    if not real:
        return None
    by_file: dict[str, list[SearchHit]] = {}
    for hit in hits:
        by_file.setdefault(hit.path, []).append(hit)
    severities = [m["what"].lower() for hit in real if (m := SEVERITY.match(hit.text))]
    compiled = len(severities) > 0.5 * len(real)
    ruled = sum(1 for hit in real if RULE.match(hit.text))
    if compiled or ruled > 0.5 * len(real):
        return None  # a compiler's or a linter's messages
    picks = {hit.at: (0.2 if hit.context else 1.0) + (1.5 if DEFINES.match(hit.text) else 0) for hit in hits}
    summary = _hits_summary(real, by_file, focus)
    pieces = tuple(_pieces(hits, clip(summary, SUMMARY)))
    return SynopsisDraft(
        kind="matches",
        summary=summary,
        use="names",
        score=5 if len(real) <= 8 else 4,
        statements=statements_of_picks(pieces, picks, focus),
        pieces=pieces,
    )


def _read_hits(lines: Sequence[PageLine]) -> tuple[list[SearchHit], int]:
    """Return the hits, and the number of other lines."""
    hits: list[SearchHit] = []
    missed = 0
    heading = ""
    for line in lines:
        text = line.text
        if (numbered := NUMBERED.match(text)) and not text.startswith("0"):
            hits.append(SearchHit(heading, numbered["line"], numbered["text"], line.number, numbered["mark"] == "-"))
        elif (numbered := IN_FILE.match(text)) and LOOKS_LIKE_PATH.match(numbered["path"]):
            hits.append(SearchHit(numbered["path"], numbered["line"] or "", numbered["text"], line.number))
        elif numbered := CONTEXT.match(text):
            hits.append(
                SearchHit(numbered["path"], numbered["line"] or "", numbered["text"], line.number, context=True)
            )
        elif text and LOOKS_LIKE_PATH.match(text) and "/" in text:
            heading = text
        elif text.strip() and text.strip() != SEPARATOR:
            missed += 1
    return hits, missed


def _pieces(hits: Sequence[SearchHit], summary: str) -> Iterator[PageLine]:
    """Yield the hits with the names that the next call will use: `path:line`, or the line in a single file.

    A path in the summary is shortened to its last part.
    """
    for hit in hits:
        path = hit.path.rsplit("/", 1)[-1] if hit.path in summary else hit.path
        yield PageLine(hit.at, hit.text, ":".join(part for part in (path, hit.line) if part) or str(hit.at))


def _hits_summary(real: list[SearchHit], by_file: dict[str, list[SearchHit]], focus: Focus) -> str:
    if list(by_file) == [""]:
        where = f"at lines {first_items([hit.line for hit in real if hit.line], 8)}"
        best = focus.best((" ".join(hit.text.split()) for hit in real), 2)
        return f"{len(real)} matches {where}: {clip('; '.join(clip(text, 60) for text in best), 120)}"
    counts = {path: sum(1 for hit in hits if not hit.context) for path, hits in by_file.items()}
    ranked = focus.ranked(sorted(filter(None, counts), key=lambda path: -counts[path]))
    many = f"{len(real)} match{'es' * (len(real) != 1)} in {len(ranked)} file{'s' * (len(ranked) != 1)}"
    return f"{many}: {first_items([f'{path} ({counts[path]})' for path in ranked], 3)}"


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


@dataclass(frozen=True, slots=True)
class ListingEntry:
    path: str
    at: int
    folder: bool = False
    size: str = ""


def describe_listing(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe a listing if at least 85 % of the lines are entries."""
    _, missed = _read_entries(page.sample)
    if missed > 0.25 * len(page.sample):
        return None
    entries, missed = _read_entries(page.lines)
    if len(entries) < 3 or missed > 0.15 * (len(entries) + missed):
        return None
    return _draft(entries, focus)


def _draft(entries: Sequence[ListingEntry], focus: Focus) -> SynopsisDraft:
    names: dict[str, list[ListingEntry]] = {}
    for entry in entries:
        names.setdefault(entry.path.rpartition("/")[0], []).append(entry)
    files = [entry for entry in entries if not entry.folder and entry.path not in names]
    kinds = Counter(_extension(entry.path) for entry in files)
    folders = {folder or "." for folder in names}
    paths = [entry.path for entry in entries]
    notable = [path for path in paths if NOTABLE.search(path)]
    shown = list(dict.fromkeys([*focus.nearest(sorted(paths, key=len))[:4], *notable[:4], *paths[:4]]))
    count = f"{len(entries):,} entries" if len(files) < len(entries) else f"{len(files):,} files"
    by_kind = f" ({', '.join(f'{n:,} {kind}' for kind, n in kinds.most_common(3))})" if kinds else ""
    ends = zip(min(folders).split("/"), max(folders).split("/"), strict=False)
    base = "/".join(part for part, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    where = f" under {base}" if base not in ("", ".") else ""
    facts: list[str] = []
    if sized := [entry for entry in files if entry.size]:
        largest = sorted(sized, key=lambda e: -_bytes(e.size))[:3]
        facts.append("largest: " + ", ".join(f"{entry.path} {entry.size}" for entry in largest))
    return SynopsisDraft(
        kind="listing",
        summary=f"{count}{where}{by_kind}: {first_items(shown, 5)}",
        score=6 if len(entries) <= 8 else 4,
        statements=statements_of_facts(facts),
        use="data",
        pieces=[
            PageLine(inside[0].at, " ".join(entry.path.rpartition("/")[2] for entry in inside), f"{folder or '.'}/")
            for folder, inside in names.items()
        ],
        parts=True,
    )


def _read_entries(lines: Sequence[PageLine]) -> tuple[list[ListingEntry], int]:
    entries: list[ListingEntry] = []
    missed = 0
    folder = ""
    drawn: list[str] = []
    is_tree = any(mark in line.text for line in lines[:50] for mark in ("├──", "└──", "|-- ", "`-- "))
    for line in lines:
        text = line.text.rstrip()
        if not text.strip() or TOTAL.match(text.strip()) or COMPLAINT.match(text):
            continue
        if entry := LONG.match(text):
            if entry["name"] not in (".", ".."):
                path = f"{folder}/{entry['name']}" if folder else entry["name"]
                entries.append(ListingEntry(path.split(" -> ")[0], line.number, entry["mode"][0] == "d", entry["size"]))
        elif is_tree and (entry := TREE.match(text)):
            depth = len(entry["pad"].replace("\u00a0", " ")) // 4
            drawn[depth - 1 :] = [entry["name"].rstrip("/")]
            entries.append(ListingEntry("/".join(drawn), line.number, entry["name"].endswith("/")))
        elif (heading := FOLDER.match(text)) and " " not in heading["path"]:
            folder = heading["path"]
        elif not is_tree and _is_path(text):
            path = f"{folder}/{text}" if folder and "/" not in text else text
            entries.append(ListingEntry(path.rstrip("/"), line.number, text.endswith("/")))
        elif not (is_tree and not entries):  # the root that `tree` prints first
            missed += 1
    return entries, missed


def _is_path(text: str) -> bool:
    """Return whether a text is a file name: with a slash or an extension, and not a sentence."""
    if len(text) > 300 or "==" in text or not PLAIN.match(text) or text.count(" ") > 2 or text[0].isspace():
        return False
    name = text.rsplit("/", 1)[-1]
    return ("/" in text and " " not in text) or (re.search(r"\w\.\w{1,8}$|^\.\w", name) is not None and "(" not in text)


def _extension(path: str) -> str:
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f"{dot}{ending}".lower() if stem and len(ending) <= 8 else "without extension"


def _bytes(text: str) -> float:
    number = 0.0 if text.count(".") > 1 else float(re.sub(r"[^\d.]", "", text).strip(".") or 0)
    return number * 1024 ** (" KMGT".find(text[-1]) if text[-1] in "KMGT" else 0)
