"""Source code, diffs, and histories of commits.

Code: its language, its imports, and its definitions with their line numbers. The language is known from a path in the
call, else from the lines (`programming_languages.txt`). Patterns instead of parsers, because a result may be a piece
from the middle of a file.

Diffs are from git, svn or `diff -u`: files with their added and removed lines, and the functions that changed.

Commits are listed with their subjects, as printed by `git log`, `git show` (long form: the message is indented by four)
and `git log --oneline` (short form: hash and subject on one line, with or without a graph).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from mcp_memory.language import patterns_of
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip, count_of, first_items
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft
from mcp_memory.shortterm.synopsis.statements import statements_of_facts, statements_of_picks

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
    commits: list[Commit] = []
    for at, line in enumerate(lines):
        if "commit " in line.text and (head := COMMIT.match(line.text)):
            after = (SUBJECT.match(follower.text) for follower in lines[at + 1 : at + HEADERS])
            subject = next((follower["subject"] for follower in after if follower), "")
            commits.append(Commit(head["id"], subject, line.number))
    return commits


def subjects(commits: Sequence[Commit]) -> list[str]:
    """Return a line for each of the first commits, and a line with the number of further commits."""
    more = len(commits) - SHOWN
    return [f"{commit} (line {commit.at})" for commit in commits[:SHOWN]] + ([f"and {more:,} more"] if more > 0 else [])


def describe_commits(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe a history without diffs: in the long form, or nearly all lines in the short form."""
    if not page.sample:
        return None
    if COMMIT.match(page.sample[0].text):
        commits = commits_in(page.lines)
    elif page.share(SHORT) >= 0.9 or page.share(SHORT) + page.share(GRAPH) >= 0.98:
        matches = [(line, SHORT.match(line.text)) for line in page.lines]
        commits = [Commit(commit["id"], commit["subject"], line.number) for line, commit in matches if commit]
    else:
        return None
    if len(commits) < 2:
        return None
    [named] = focus.best(commits, 1, lambda commit: commit.subject)
    return SynopsisDraft(
        kind="commits",
        summary=f"{count_of(len(commits), 'commit')}, {commits[-1].id[:ID]} to {commits[0].id[:ID]}; {named}",
        score=5,
        statements=statements_of_facts(subjects(commits)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgrammingLanguage:
    """A language, with patterns of its definitions, its imports, and its typical lines."""

    name: str
    content_type: str
    endings: tuple[str, ...]
    defines: re.Pattern[str]
    imports: re.Pattern[str]
    typical: re.Pattern[str]


@cache
def _languages() -> tuple[ProgrammingLanguage, ...]:
    """Read `programming_languages.txt`."""
    heads: list[str] = []
    patterns: list[dict[str, re.Pattern[str]]] = []
    for head, source in patterns_of("mcp_memory.shortterm.synopsis", "programming_languages.txt"):
        kind, _, named = head.partition(" ")
        if kind == "language":
            heads.append(named)
            patterns.append({})
        else:
            patterns[-1][kind] = re.compile(rf"\s*(?:{source})" if kind == "typical" else source)
    return tuple(
        ProgrammingLanguage(name=name, content_type=content_type, endings=tuple(endings.split()), **sources)
        for (name, content_type, endings), sources in zip((head.split(", ") for head in heads), patterns, strict=True)
    )


IMPORTS = 120
SHORT_NAME = 3
ENDING = re.compile(r"\.(\w{1,5})\b(?![\w/])")
FILE = re.compile(r"[\w./~@+-]{2,200}\.\w{1,5}\b")
TYPED = re.compile(r"\s*(?:export )?(?:interface|type) \w+|import type|.*\)\s*: [\w<>\[\]]+ (?:=>|\{)|\s*private ")
MARKDOWN = re.compile(r"#{2,6} \S|```|\s*[-*] \[|\[[^\]]+\]\(")


def describe_code(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe code if half of the lines are typical of a language, or fewer if the call names a file in it."""
    language = _guess(page, focus)
    if language is None:
        return None
    defined = [(line, name) for line in page.lines if (name := _definition_name(language.defines, line))]
    imported = list(dict.fromkeys(name for line in page.lines if (name := _definition_name(language.imports, line))))
    names = focus.best(dict.fromkeys(name for _, name in defined if not name.startswith("__")), 5)
    title = f"{language.name} {_path(focus, language)}".strip() + _extent(page)
    if defined:
        summary = f"{title}: defines {first_items(names, 5)}" + (
            f" of {len(defined)}" if len(defined) > len(names) else ""
        )
    else:
        [best] = focus.best(page.sample, 1, lambda line: line.text)
        summary = f"{title}, no definition: {clip(best.text.strip(), 100)}"
    facts = [clip(f"imports: {first_items(imported, 14)}", IMPORTS)] if imported else []
    return SynopsisDraft(
        kind="code",
        content_type=language.content_type,
        summary=summary,
        use="names",
        score=3 if len(page.lines) > 60 else 4,
        statements=[*statements_of_facts(facts), *statements_of_picks(page.lines, _picks(page, focus), focus)],
        names={line.number: name for line, name in defined if len(name) > SHORT_NAME},
    )


def _guess(page: ResultPage, focus: Focus) -> ProgrammingLanguage | None:
    if len(page.sample) < 3:
        return None
    by_ending = {ending: language for language in _languages() for ending in language.endings}
    for language in (by_ending[ending] for ending in reversed(ENDING.findall(focus.call)) if ending in by_ending):
        typical = page.share(language.typical)
        if typical >= 0.3 or (typical > 0.15 and page.share(language.defines)):
            return language
    if sum(1 for line in page.sample if MARKDOWN.match(line.text)) > 1:
        return None
    best, most = None, 0.0
    for language in _languages():
        typical = page.share(language.typical)
        score = typical + page.share(language.defines)
        if typical >= 0.5 and score > most and (score > typical or page.share(language.imports) > 0):
            best, most = language, score
    typed = best is by_ending["js"] and any(TYPED.match(line.text) for line in page.sample)
    return by_ending["ts"] if typed else best


def _definition_name(pattern: re.Pattern[str], line: PageLine) -> str:
    match = pattern.match(line.text)
    groups = match.groupdict() if match else {}
    return groups.get("name") or groups.get("other") or ""


def _extent(page: ResultPage) -> str:
    if page.first_file_line is None:
        return f", {len(page.lines):,} lines"
    return f", lines {page.first_file_line}–{page.first_file_line + len(page.lines) - 1}"


def _path(focus: Focus, language: ProgrammingLanguage) -> str:
    """Return the path of the last file in the call that has an extension of the language, "" if there is none."""
    paths = [path for path in FILE.findall(focus.call) if path.rsplit(".", 1)[1] in language.endings]
    return clip(paths[-1], 80) if paths else ""


def _picks(page: ResultPage, focus: Focus) -> dict[int, float]:
    """Return weights, by line number, of lines directly after a line that matches the call."""
    picks: dict[int, float] = {}
    for before, line in pairwise(page.lines):
        near = focus.of(before.text)
        if near > 1.0 and line.text.strip():
            picks[line.number] = min(1.0, near / 3)
    return picks


GIT = re.compile(r"diff --git a/(?P<old>.+?) b/(?P<new>.+)$")
NEW = re.compile(r"\+\+\+ (?:b/)?(?P<path>[^\t\n]+)")
HUNK = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+(?P<start>\d+)(?:,(?P<new>\d+))? @@ ?(?P<inside>.*)")
NAMED = re.compile(r"(?:def|class|func|fn|function|interface|struct|impl)\s+([\w.]+)|([\w.]+)\s*\(")


@dataclass(slots=True)
class Changed:
    """A changed file: `what` is a note such as `, new file`, `inside` names the changed functions."""

    path: str
    at: int
    added: int = 0
    removed: int = 0
    what: str = ""
    inside: list[str] = field(default_factory=list[str])


def describe_diff(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe a diff that names at least one file; None for anything else."""
    if not any(HUNK.match(line.text) or GIT.match(line.text) for line in page.sample):
        return None
    files, picks = _read(page)
    if not files:
        return None
    added, removed = sum(f.added for f in files), sum(f.removed for f in files)
    nearest = focus.ranked(sorted(files, key=lambda f: -(f.added + f.removed)), lambda f: f.path)
    named = [f.path.rsplit("/", 1)[-1] if len(files) > 3 else f.path for f in nearest]
    summary = f"diff of {len(files)} file{'s' * (len(files) != 1)}, +{added} −{removed}: {first_items(named, 4)}"
    commits = commits_in(page.lines)
    if len(commits) > 1:
        summary = f"{len(commits)} commits, {summary}"
    elif commits:
        summary = f"commit {commits[0]}: {summary}"
    elif inside := dict.fromkeys(name for f in files for name in f.inside):
        summary += f"; in {first_items(list(inside), 3)}"
    facts = subjects(commits) if len(commits) > 1 else []
    for f in nearest[:25]:
        change = f"{f.path} +{f.added} −{f.removed}{f.what} (line {f.at})"
        facts.append(change + (f": {first_items(f.inside, 6)}" if f.inside else ""))
    if len(files) > 25:
        facts.append("and " + first_items([f.path for f in files[25:]], 40))
    return SynopsisDraft(
        kind="diff",
        content_type="text/x-diff",
        summary=summary,
        score=4,
        statements=[*statements_of_facts(facts), *statements_of_picks(page.lines, picks, focus)],
    )


def _read(page: ResultPage) -> tuple[list[Changed], dict[int, float]]:
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
        if header := GIT.match(text):
            files.append(Changed(header["new"], line.number))
        elif (header := NEW.match(text)) and header["path"] != "/dev/null":
            if not files or files[-1].path != header["path"]:
                files.append(Changed(header["path"], line.number))
        elif text.startswith(("new file", "deleted file", "rename to", "Binary files")) and files:
            files[-1].what = f", {text.split(' mode')[0]}"
        elif (hunk := HUNK.match(text)) and files:
            left_old, left_new = int((hunk["old"] or "1")[:9]), int((hunk["new"] or "1")[:9])
            picks[line.number] = 0.9
            name = NAMED.search(hunk["inside"])
            if name and (definition := name[1] or name[2]) not in files[-1].inside:
                files[-1].inside.append(definition)
    return files, picks
