"""Markdown: the outline with line numbers, what it begins with, links and code that the call was after."""

from __future__ import annotations

import re

from mcp_memory.shortterm.synopsis.draft import Draft, counted, listed
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece
from mcp_memory.shortterm.synopsis.page import Page, clip, one_line

__all__ = ["describe_markdown"]

HEADING = re.compile(r"(?P<level>#{1,6})\s+(?P<title>\S.*?)\s*#*$")
LINKS, LONGEST_LINK = 2, 70
FENCE = re.compile(r"\s*(?:```|~~~)\s*(?P<language>[\w+-]*)")
LINK = re.compile(r"!?\[(?P<text>[^\]\n]{0,200})\]\((?P<to>[^)\s]{1,500})[^)]{0,200}\)")
MARK = re.compile(r"\s*(?:[-*+] |\d+[.)] |> |#{1,6} |\||```)|.*(?:\*\*\S|\]\()")
FIELD = re.compile(r"(?P<key>name|title|description): *(?P<value>\S.*)")
PLAIN = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]{1,3}")


def describe_markdown(page: Page, focus: Focus) -> Draft | None:
    """Headings and other marks of Markdown, and no sign that `#` begins a comment."""
    headings: list[tuple[int, int, str]] = []
    fences: list[str] = []
    links: list[tuple[str, str]] = []
    fenced = False
    opening = ""
    for line in page.lines:
        if fence := FENCE.match(line.text):
            fenced = not fenced
            fences += [fence["language"]] if fenced else []
        elif fenced:
            continue
        elif heading := HEADING.match(line.text):
            headings.append((len(heading["level"]), line.number, PLAIN.sub(r"\1", heading["title"])))
        else:
            opening = opening or _sentence(line.text)
        links += [(m["text"], m["to"]) for m in LINK.finditer(line.text) if m[0][0] != "!"]
    marks = sum(1 for line in page.sample if MARK.match(line.text))
    named = ".md" in focus.call or ".rst" in focus.call
    if not headings or (marks < 0.2 * len(page.sample) and not named and len(headings) < 3 and not links):
        return None
    deeper = any(level > 1 for level, _, _ in headings)
    if not named and (marks < 0.05 * len(page.sample) or not (deeper or links or fences)):
        return None  # a comment of code, not a heading
    fields = _front_matter(page)
    title = one_line(fields.get("name") or fields.get("title") or min(headings[:20], key=lambda h: h[0])[2])
    about = fields.get("description", "")
    sections = [text for _, _, text in headings if text != title]
    picked = focus.best(dict.fromkeys(sections), 6)
    summary = f"“{clip(title, 80)}”, {counted(len(headings), 'section')}" + (f": {listed(picked, 6)}" if picked else "")
    if about:
        summary = f"“{clip(title, 60)}”: {clip(about, 120)}"
    ranked = sorted(dict.fromkeys(links), key=lambda link: -focus.of(" ".join(link)))[:LINKS]
    near = [(text, to) for text, to in ranked if focus.of(f"{text} {to}") > 0 and len(to) <= LONGEST_LINK]
    languages = sorted({language for language in fences if language})
    facts = [f"{counted(len(fences), 'code block')} ({listed(languages, 4)})"] if languages else []
    facts += [f"{clip(text, 40)} <{to}>" for text, to in near]
    return Draft(
        kind="markdown",
        content_type="text/markdown",
        summary=summary if sections or about else f"“{clip(title, 80)}”: {clip(opening, 100)}",
        use="text",
        edges=False,
        score=3,
        facts=tuple(facts),
        picks={at: 3.0 / level for level, at, text in headings if text != title},
        pieces=tuple(Piece(line.number, LINK.sub(r"\g<text>", line.text), str(line.number)) for line in page.lines),
    )


def _front_matter(page: Page) -> dict[str, str]:
    """Its first fields, where the text begins with one."""
    if not page.sample or page.sample[0].text.strip() != "---":
        return {}
    found = (FIELD.match(line.text) for line in page.sample[1:12])
    return {m["key"]: one_line(m["value"]) for m in found if m}


def _sentence(text: str) -> str:
    """A line of running text, without its marks."""
    text = PLAIN.sub(r"\1", text).strip()
    return text if len(text) > 40 and " " in text and text[:1] not in "|<-#=" else ""
