"""Diffs, from git, svn or `diff -u`: files with their added and removed lines, and the functions that changed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mcp_memory.shortterm.synopsis.draft import Draft, listed
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece
from mcp_memory.shortterm.synopsis.page import Page

__all__ = ["describe_diff"]

GIT = re.compile(r"diff --git a/(?P<old>.+?) b/(?P<new>.+)$")
NEW = re.compile(r"\+\+\+ (?:b/)?(?P<path>[^\t\n]+)")
OLD = re.compile(r"--- (?:a/)?(?P<path>[^\t\n]+)")
HUNK = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+(?P<start>\d+)(?:,(?P<new>\d+))? @@ ?(?P<inside>.*)")
NAMED = re.compile(r"(?:def|class|func|fn|function|interface|struct|impl)\s+([\w.]+)|([\w.]+)\s*\(")
COMMIT = re.compile(r"commit ([0-9a-f]{7,40})\b")


@dataclass(slots=True)
class Changed:
    path: str
    at: int
    added: int = 0
    removed: int = 0
    what: str = ""
    inside: list[str] = field(default_factory=list[str])


def describe_diff(page: Page, focus: Focus) -> Draft | None:
    """Two hunks are proof enough, or one below a header."""
    if not any(HUNK.match(line.text) or GIT.match(line.text) for line in page.sample):
        return None
    files, picks = _read(page)
    if not files:
        return None
    added, removed = sum(f.added for f in files), sum(f.removed for f in files)
    named = [f.path.rsplit("/", 1)[-1] if len(files) > 3 else f.path for f in focus_first(files, focus)]
    inside = [name for f in files for name in f.inside]
    summary = f"diff of {len(files)} file{'s' * (len(files) != 1)}, +{added} −{removed}: {listed(named, 4)}"
    if inside:
        summary += f"; in {listed(list(dict.fromkeys(inside)), 3)}"
    commits = [m[1][:10] for line in page.sample if (m := COMMIT.match(line.text))]
    facts = [f"commit {listed(commits, 3)}"] if commits else []
    for f in focus_first(files, focus)[:25]:
        told = f"{f.path} +{f.added} −{f.removed}{f.what} (line {f.at})"
        facts.append(told + (f": {listed(f.inside, 6)}" if f.inside else ""))
    if len(files) > 25:
        facts.append("and " + listed([f.path for f in files[25:]], 40))
    return Draft(
        kind="diff",
        content_type="text/x-diff",
        summary=summary,
        score=4,
        facts=tuple(facts),
        picks=picks,
        pieces=tuple(
            Piece(line.number, line.text, str(line.number))
            for line in page.lines
            if line.number in picks and not HUNK.match(line.text)
        ),
    )


def focus_first(files: list[Changed], focus: Focus) -> list[Changed]:
    """Those that the call asked for, then the largest changes."""
    return sorted(files, key=lambda f: (-focus.of(f.path), -(f.added + f.removed)))


def _read(page: Page) -> tuple[list[Changed], dict[int, float]]:
    files: list[Changed] = []
    picks: dict[int, float] = {}
    left_old = left_new = 0
    for line in page.lines:
        text = line.text
        if (left_old > 0 or left_new > 0) and not text.startswith(("diff --git ", "@@ ")):
            mark = text[:1]
            left_old -= mark in ("-", " ", "")
            left_new -= mark in ("+", " ", "")
            if mark in "+-" and mark and files:
                files[-1].added += mark == "+"
                files[-1].removed += mark == "-"
                if text[1:].strip():
                    picks[line.number] = 1.0 if mark == "+" else 0.8
            continue
        if found := GIT.match(text):
            files.append(Changed(found["new"], line.number))
        elif (found := NEW.match(text)) and found["path"] != "/dev/null":
            if not files or files[-1].path != found["path"]:
                files.append(Changed(found["path"], line.number))
        elif text.startswith(("new file", "deleted file", "rename to", "Binary files")) and files:
            files[-1].what = f", {text.split(' mode')[0]}"
        elif (hunk := HUNK.match(text)) and files:
            left_old, left_new = int((hunk["old"] or "1")[:9]), int((hunk["new"] or "1")[:9])
            picks[line.number] = 0.9
            name = NAMED.search(hunk["inside"])
            if name and (given := name[1] or name[2]) not in files[-1].inside:
                files[-1].inside.append(given)
    return files, picks
