"""Histories of commits, as `git log`, `git show` and `git log --oneline` print them: each with its subject.

A commit in the long form is a line `commit` with its hash, then headers, then its message indented by four; the first
line of the message is the subject. In the short form a hash and the subject are one line, with or without a graph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip, counted
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft

COMMIT = re.compile(r"[*|\\/ ]*commit (?P<id>[0-9a-f]{7,64})\b")
SUBJECT = re.compile(r"[*|\\/ ]* {4}(?P<subject>\S.*)")
SHORT = re.compile(r"[*|\\/ ]*(?P<id>(?=[a-f]*\d)[0-9a-f]{7,12}) (?:\([^)]*\) )?(?P<subject>\S.*)")
GRAPH = re.compile(r"[*|\\/ _]+$")
HEADERS = 12
ID = 8
SHOWN = 40
SUBJECT_CHARS = 80


@dataclass(frozen=True, slots=True)
class Commit:
    id: str
    subject: str
    at: int

    def __str__(self) -> str:
        return f"{self.id[:ID]} {clip(self.subject, SUBJECT_CHARS)}".rstrip()


def commits_in(lines: Sequence[PageLine]) -> list[Commit]:
    """Return the commits of the long form, in the order of the text."""
    found: list[Commit] = []
    for at, line in enumerate(lines):
        if "commit " in line.text and (head := COMMIT.match(line.text)):
            after = (SUBJECT.match(one.text) for one in lines[at + 1 : at + HEADERS])
            subject = next((one["subject"] for one in after if one), "")
            found.append(Commit(head["id"], subject, line.number))
    return found


def subjects(commits: Sequence[Commit]) -> list[str]:
    """Return a line for each commit, and how many more there are."""
    more = len(commits) - SHOWN
    return [f"{one} (line {one.at})" for one in commits[:SHOWN]] + ([f"and {more:,} more"] if more > 0 else [])


def describe_commits(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """A history without its changes: in the long form, or nearly all lines in the short one."""
    if not page.sample:
        return None
    if COMMIT.match(page.sample[0].text):
        commits = commits_in(page.lines)
    elif page.share(SHORT) >= 0.9 or page.share(SHORT) + page.share(GRAPH) >= 0.98:
        matches = [(line, SHORT.match(line.text)) for line in page.lines]
        commits = [Commit(one["id"], one["subject"], line.number) for line, one in matches if one]
    else:
        return None
    if len(commits) < 2:
        return None
    [named] = focus.best(commits, 1, lambda one: one.subject)
    return SynopsisDraft(
        kind="commits",
        summary=f"{counted(len(commits), 'commit')}, {commits[-1].id[:ID]} to {commits[0].id[:ID]}; {named}",
        use="names",
        score=5,
        facts=subjects(commits),
        pieces=[PageLine(one.at, one.subject) for one in commits],
    )
