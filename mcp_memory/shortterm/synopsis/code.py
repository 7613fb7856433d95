"""Source code: its language, what it imports, and its definitions with their line numbers.

The language is told by a path in the call, else by what the lines look like (see `languages`).
"""

from __future__ import annotations

import re
from itertools import pairwise

from mcp_memory.shortterm.synopsis.draft import Draft, listed
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.languages import BY_ENDING, LANGUAGES, Language
from mcp_memory.shortterm.synopsis.page import Line, Page, clip

__all__ = ["describe_code"]


IMPORTS = 160
ENDING = re.compile(r"\.(\w{1,5})\b(?![\w/])")
TYPED = re.compile(r"\s*(?:export )?(?:interface|type) \w+|import type|.*\)\s*: [\w<>\[\]]+ (?:=>|\{)|\s*private ")
MARKDOWN = re.compile(r"#{2,6} \S|```|\s*[-*] \[|\[[^\]]+\]\(")


def describe_code(page: Page, focus: Focus) -> Draft | None:
    """Half of the lines look like one language; a third when the call names such a file."""
    language = _guess(page, focus)
    if language is None:
        return None
    defined = [(line, name) for line in page.lines if (name := _named(language.defines, line))]
    imported = list(dict.fromkeys(name for line in page.lines if (name := _named(language.imports, line))))
    names = focus.best(dict.fromkeys(name for _, name in defined if not name.startswith("__")), 5)
    title = f"{language.name} {_path(focus, language)}".strip() + _extent(page)
    if defined:
        summary = f"{title}: defines {listed(names, 5)}" + (f" of {len(defined)}" if len(defined) > len(names) else "")
    else:
        best = max(page.sample, key=lambda line: (focus.of(line.text), -line.number))
        summary = f"{title}, no definition: {clip(best.text.strip(), 100)}"
    facts = [clip(f"imports: {listed(imported, 14)}", IMPORTS)] if imported else []
    return Draft(
        kind="code",
        content_type=language.content_type,
        summary=summary,
        use="names",
        edges=False,
        score=3 if len(page.lines) > 60 else 4,
        facts=tuple(facts),
        picks=_picks(page, [line for line, _ in defined], focus),
    )


def _guess(page: Page, focus: Focus) -> Language | None:
    if len(page.sample) < 3:
        return None
    named = [BY_ENDING[e] for e in reversed(ENDING.findall(focus.call)) if e in BY_ENDING]
    for language in named:
        if page.share(language.typical) >= 0.3 or (
            page.share(language.typical) > 0.15 and page.share(language.defines)
        ):
            return language
    if sum(1 for line in page.sample if MARKDOWN.match(line.text)) > 1:
        return None
    scored = [
        (page.share(language.typical) + page.share(language.defines), -at, language)
        for at, language in enumerate(LANGUAGES)
        if page.share(language.typical) >= 0.5
        and (page.share(language.defines) > 0 or page.share(language.imports) > 0)
    ]
    best = max(scored, key=lambda item: item[:2])[2] if scored else None
    typed = best is BY_ENDING["js"] and any(TYPED.match(line.text) for line in page.sample)
    return BY_ENDING["ts"] if typed else best


def _named(pattern: re.Pattern[str], line: Line) -> str:
    """What a line defines or imports."""
    found = pattern.match(line.text)
    groups = found.groupdict() if found else {}
    return groups.get("name") or groups.get("other") or ""


def _extent(page: Page) -> str:
    if page.first_file_line is None:
        return f", {len(page.lines):,} lines"
    return f", lines {page.first_file_line}–{page.first_file_line + len(page.lines) - 1}"


def _path(focus: Focus, language: Language) -> str:
    """The last file of that language that the call names."""
    paths = [
        p for p in re.findall(r"[\w./~@+-]{2,200}\.\w{1,5}\b", focus.call) if p.rsplit(".", 1)[1] in language.endings
    ]
    return clip(paths[-1], 80) if paths else ""


def _picks(page: Page, defined: list[Line], focus: Focus) -> dict[int, float]:
    """Definitions, the outer ones first, and the lines that follow what was asked for."""
    picks: dict[int, float] = {}
    for line in defined:
        indent = len(line.text) - len(line.text.lstrip())
        picks[line.number] = 2.0 / (1 + indent / 8)
    for before, line in pairwise(page.lines):
        near = focus.of(before.text)
        if near > 1.0 and line.text.strip():
            picks[line.number] = max(picks.get(line.number, 0.0), min(1.0, near / 3))
    return picks
