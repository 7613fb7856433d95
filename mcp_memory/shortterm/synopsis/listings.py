"""Results with an item per line: search hits, directory listings and tables.

Hits of `grep -n`, `grep -r` and ripgrep with and without headings: counts by file, the most relevant files first.
Compilers' `file:line:col: message`: counts of errors and warnings. Listings of `ls -la`, `ls -R`, `find`, `tree`, globs
and trees as JSON: counts by kind, and the notable files.

Tables are CSV, TSV, pipe tables (Markdown, psql) and columns aligned by spaces: columns with their range or their
most common values, the number of rows, the first and last rows, and rows that match the call or are unusual.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, cast

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip, first_items
from mcp_memory.shortterm.synopsis.preview import SUMMARY, SynopsisDraft
from mcp_memory.shortterm.synopsis.rare import NUMBER, number_in, rare_rows

IN_FILE = re.compile(
    r"(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]{0,250}?[\w)\]])(?P<mark>[:])(?:(?P<line>\d+):(?:\d+:)?)?(?P<text>.*)"
)
CONTEXT = re.compile(r"(?P<path>\S{1,250}?\.\w{1,8})-(?:(?P<line>\d+)-)?(?P<text>.*)")
NUMBERED = re.compile(r"(?P<line>\d+)(?P<mark>[:-])(?P<text>.*)")
LOOKS_LIKE_PATH = re.compile(r"[\w.~@+/\\ -]*(?:/[\w.@+ -]+|\.\w{1,8})$")
SEVERITY = re.compile(r"\s*(?P<what>fatal error|error|warning|note|info)\b(?:\[[\w-]+\])?:? ?(?P<text>.*)", re.I)
DEFINES = re.compile(r"\s*(?:async |export |pub )*(?:def|class|func|fn|function|interface|struct|enum)\b")
SEPARATOR = "--"


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
    picks = {hit.at: (0.2 if hit.context else 1.0) + (1.5 if DEFINES.match(hit.text) else 0) for hit in hits}
    summary = _diagnosed(real, severities) if compiled else _hits_summary(real, by_file, focus)
    return SynopsisDraft(
        kind="diagnostics" if compiled else "matches",
        summary=summary,
        use="names",
        score=5 if compiled or len(real) <= 8 else 4,
        picks=picks,
        pieces=tuple(_pieces(hits, clip(summary, SUMMARY))),
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


def _diagnosed(real: list[SearchHit], severities: list[str]) -> str:
    errors = sum(1 for s in severities if "error" in s)
    warnings = sum(1 for s in severities if s == "warning")
    first = next((hit for hit in real if "error" in hit.text.lower()[:20]), real[0])
    return f"{errors} errors, {warnings} warnings; first: {first.path}:{first.line}: {first.text.strip()}"


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
"""The most entries of a tree that are read."""


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


def describe_tree(value: Any, focus: Focus) -> SynopsisDraft | None:
    """Describe a JSON tree of folders and files: objects with a `name`, folders with `children`.

    None for any other value.
    """
    roots = cast("list[Any]", value if isinstance(value, list) else [value])
    if not any(isinstance(_field(root, "children"), list) for root in roots):
        return None
    entries: list[ListingEntry] = []
    waiting = [("", root) for root in reversed(roots)]
    while waiting and len(entries) < MOST:
        folder, branch = waiting.pop()
        name, children = _field(branch, "name"), _field(branch, "children")
        if not isinstance(name, str):
            return None
        path = f"{folder}/{name}" if folder else name
        entries.append(ListingEntry(path, len(entries), folder=isinstance(children, list)))
        if isinstance(children, list):
            waiting += [(path, child) for child in reversed(cast("list[Any]", children))]
    return _draft(entries, focus) if len(entries) >= 3 else None


def _field(value: Any, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


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
    by_kind = ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common(3))
    ends = zip(min(folders).split("/"), max(folders).split("/"), strict=False)
    base = "/".join(part for part, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    where = f" under {base}" if base not in ("", ".") else ""
    facts: list[str] = []
    if sized := [entry for entry in files if entry.size]:
        largest = sorted(sized, key=lambda e: -_bytes(e.size))[:3]
        facts.append("largest: " + ", ".join(f"{entry.path} {entry.size}" for entry in largest))
    return SynopsisDraft(
        kind="listing",
        summary=f"{count}{where} ({by_kind}): {first_items(shown, 5)}",
        score=6 if len(entries) <= 8 else 4,
        facts=facts,
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
    if len(text) > 300 or not PLAIN.match(text) or text.count(" ") > 2 or text[0].isspace():
        return False
    name = text.rsplit("/", 1)[-1]
    return ("/" in text and " " not in text) or (re.search(r"\w\.\w{1,8}$|^\.\w", name) is not None and "(" not in text)


def _extension(path: str) -> str:
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f"{dot}{ending}".lower() if stem and len(ending) <= 8 else "without extension"


def _bytes(text: str) -> float:
    number = 0.0 if text.count(".") > 1 else float(re.sub(r"[^\d.]", "", text).strip(".") or 0)
    return number * 1024 ** (" KMGT".find(text[-1]) if text[-1] in "KMGT" else 0)


GAP = re.compile(r" {2,}|\t+")
RULE = re.compile(r"[\s|+:=─━┼│-]*[-=─━]{3,}[\s|+:=─━┼│-]*$")
COLUMN = re.compile(r"[A-Za-z#%@][\w %()/.#@-]{0,40}$")
CODE_END = re.compile(r"[;{}]\s*$")
RARE = 200.0
"""The weight of a rare row relative to the first and the last row."""
TYPES = {",": "text/csv", "\t": "text/tab-separated-values"}


@dataclass(frozen=True, slots=True)
class TextTable:
    content_type: str
    columns: list[str]
    rows: list[list[str]]
    at: list[int]
    """The line number of each row in the raw text."""


def describe_table(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe a table if nearly all sampled lines split into the same number of cells."""
    if len(page.sample) < 3 or sum(1 for line in page.sample if CODE_END.search(line.text)) > 0.2 * len(page.sample):
        return None
    table = _piped(page) or _delimited(page, "\t") or _delimited(page, ",") or _delimited(page, ";") or _aligned(page)
    if table is None or len(table.rows) < 2:
        return None
    more = "" if page.whole else " read"
    named = [clip(name, 30) for name in table.columns if name]
    asked = focus.nearest(range(len(table.rows)), lambda at: " ".join(table.rows[at]))
    rare = rare_rows(table.columns, table.rows)
    why, at = ("such as", asked[0]) if asked else ("unlike the rest", rare[0].at) if rare else ("first", 0)
    row = ", ".join(cell for cell in table.rows[at] if cell)
    facts = [f"{len(table.rows):,} rows{more}, {len(table.columns)} columns"]
    facts += describe_columns(table.columns, table.rows, focus)
    return SynopsisDraft(
        kind="table",
        edges=True,
        content_type=table.content_type,
        summary=f"table of {len(table.rows):,} rows{more}: {first_items(named, 8)}; {why}: {clip(row, 90)}",
        score=4,
        facts=("\n".join(facts),),
        picks=dict.fromkeys(table.at[1:200], 0.1) | {table.at[row.at]: RARE for row in rare[:20]},
    )


def _delimited(page: ResultPage, mark: str) -> TextTable | None:
    """Parse a table with `mark` between cells; the first row is the header unless it has numbers or equal cells."""
    need = 3 if mark in ",;" else 2
    counts = Counter(line.text.count(mark) for line in page.sample)
    cells, agree = counts.most_common(1)[0]
    quoted = any('"' in line.text for line in page.sample)
    if cells + 1 < need or agree < (0.5 if quoted else 0.85) * len(page.sample):
        return None
    reader = csv.reader((line.text for line in page.lines), delimiter=mark)
    rows: list[list[str]] = []
    at: list[int] = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([cell.strip() for cell in row])
                at.append(page.lines[reader.line_num - 1].number)
    except csv.Error:
        return None
    width = Counter(map(len, rows)).most_common(1)[0]
    if width[0] < need or width[1] < 0.85 * len(rows):
        return None
    while len(rows[0]) != width[0]:  # a title above the table
        del rows[0], at[0]
    if sum(1 for line in page.sample if line.text[:1] in " \t") > 0.2 * len(page.sample) and mark != "\t":
        return None
    if mark == "," and sum(map(len, rows[len(rows) // 2])) > 60 * width[0]:  # sentences with commas
        return None
    content_type = TYPES.get(mark, "text/csv")
    if len(rows) < 2:
        return None
    if any(NUMBER.match(cell) for cell in rows[0]) or len(set(rows[0])) < len(rows[0]):
        return TextTable(content_type, [f"column {n + 1}" for n in range(len(rows[0]))], rows, at)
    return TextTable(content_type, rows[0], rows[1:], at[1:])


def _piped(page: ResultPage) -> TextTable | None:
    lines = [line for line in page.lines if line.text.count("|") + line.text.count("│") >= 1 or RULE.match(line.text)]
    filled = sum(1 for line in page.lines if line.text.strip())
    if len(lines) < 3 or len(lines) < 0.8 * filled or not any(RULE.match(line.text) for line in page.sample):
        return None
    lines = [line for line in lines if not RULE.match(line.text)]
    texts = [line.text.replace("│", "|").strip() for line in lines]
    rows = [[cell.strip() for cell in text.removeprefix("|").removesuffix("|").split("|")] for text in texts]
    width = Counter(map(len, rows)).most_common(1)
    if not width or width[0][0] < 2 or width[0][1] < 0.8 * len(rows):
        return None
    return TextTable("text/plain", rows[0], rows[1:], [line.number for line in lines[1:]])


def _aligned(page: ResultPage) -> TextTable | None:
    """Parse a table whose columns start where the names in its header start, as in `ps`, `docker ps` or `pip list`."""
    lines = [line for line in page.lines if line.text.strip() and not RULE.match(line.text)]
    if len(lines) < 3 or lines[0].text[:1].isspace():
        return None
    starts = [0, *(m.end() for m in GAP.finditer(lines[0].text.rstrip()))]
    if len(starts) < 2 or len(starts) > 40 or not _upright(lines[:60], starts):
        return None
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    names, *rows = [[line.text[start:end].strip() for start, end in spans] for line in lines]
    if not all(COLUMN.match(name) for name in names):
        return None
    return TextTable("text/plain", names, rows, [line.number for line in lines[1:]])


def _upright(lines: Sequence[PageLine], starts: list[int]) -> bool:
    """Return whether nearly every line has white space just before nearly every column."""
    fits = 0
    for line in lines[1:]:
        text = line.text.ljust(starts[-1] + 1)
        fits += all(text[s - 1].isspace() for s in starts[1:]) and not text[0].isspace()
    return fits >= 0.9 * (len(lines) - 1)


def describe_columns(columns: Sequence[str], rows: Sequence[Sequence[str]], focus: Focus) -> list[str]:
    """Return a line for each of the first thirty columns: its range, its values with counts, or some values."""
    return [_column(columns, rows, at, focus) for at in range(min(30, len(columns)))]


def _column(columns: Sequence[str], rows: Sequence[Sequence[str]], at: int, focus: Focus) -> str:
    cells = [row[at] for row in rows if at < len(row) and row[at]]
    name = clip(columns[at] or f"column {at + 1}", 40)
    empty = len(rows) - len(cells)
    gaps = f", {empty:,} empty" if empty else ""
    if not cells:
        return f"  {name}: empty"
    if sum(1 for cell in cells if NUMBER.match(cell)) > 0.9 * len(cells):
        values = sorted((number_in(cell), cell) for cell in cells if NUMBER.match(cell))
        return f"  {name}: {clip(values[0][1], 24)} to {clip(values[-1][1], 24)}{gaps}"
    counts = Counter(cells)
    if len(counts) <= 8 and len(counts) < len(cells):
        summary = ", ".join(f"{clip(cell, 24)} {n:,}" for cell, n in counts.most_common())
    elif cells == sorted(cells):
        summary = f"{clip(cells[0], 30)} … {clip(cells[-1], 30)}, sorted"
    else:
        some = ", ".join(clip(cell, 24) for cell in focus.best(counts, 2))
        summary = f"{len(counts):,} different, such as {some}"
    return f"  {name}: {summary}{gaps}"
