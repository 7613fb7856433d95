"""Running text: its headings, its sentences with numbers, names and dates, and how it begins and ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_memory.shortterm.synopsis.line_patterns import patterns_in
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, clip, one_line
from mcp_memory.shortterm.synopsis.statements import QUOTED, TERMS, Statement

WORD = re.compile(r"[^\W\d_]+")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")
QUOTE = re.compile(r"[>\s]*")
MARKED = re.compile(r"(?P<level>#{1,6})\s+(?P<title>\S.*?)[\s#]*$")
TITLE = re.compile(r"\[?[^\W\d_a-z][\w ,&'-]{2,60}\]?$")
LINK = re.compile(r"!?\[(?P<text>[^\]\n]{0,200})\]\([^)\s]{1,500}[^)]{0,200}\)|<(?:img|a|p|br|div)\b[^>]*>")
UNDERLINE = re.compile(r"([=~^*-])\1{2,}\s*$")
SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z\u00c0-\u00de\d])|(?<=[。！？])")
NUMBERS = re.compile(r"\d[\d.,:/-]*")
MARK = re.compile(r"\s*(?:[-*+•] |\d+[.)] |> |#{1,6} |\||```)|.*(?:\*\*\S|\]\()")
NEW = re.compile(r"[*•#|<`-]|\d+[.)] |[A-Z][\w-]+: ")
"""How a line begins that does not continue the one above."""
# The first letter precedes what must not be before it: `re` is quick to find one of a set.
LOWER = re.compile(r"[a-z](?<![^\W_].)[a-z]{2,}")
NAME = re.compile(r"[A-Z](?<![.!?:\n] .)(?<!^.)(?<!\w.)[a-z]{2,}(?: [A-Z][a-z]+)*\b")
SENTENCE_CHARS = 170


def prose_kind(lines: Sequence[PageLine]) -> Literal["markdown", "text", ""]:
    """Return whether most characters are in lines of running text, perhaps with the marks of Markdown; "" if not."""
    filled = [line.text for line in lines if line.text.strip()][:2_000]
    if any(line.name for line in lines):
        return ""  # parts of one long line
    if _is_markdown(filled):
        return "markdown"
    patterns = patterns_in(filled[:800])
    if sum(len(p.lines) for p in patterns if len(p.lines) >= 3) > 0.25 * min(800, len(filled)):
        return ""  # the lines of a program
    chars = sum(map(len, filled))
    spoken = sum(len(text) for text in filled if _is_spoken(text.lstrip("> ")))
    return "text" if len(filled) >= 3 and spoken > 0.5 * chars else ""


def _is_markdown(filled: Sequence[str]) -> bool:
    """Return whether lines have headings, and enough other marks of Markdown that the headings are not comments.

    Lines of code between fences are not counted.
    """
    outside: list[str] = []
    fenced = False
    for text in filled:
        fence = text.lstrip().startswith("```")
        if fence or not fenced:
            outside.append(text)
        fenced ^= fence
    levels = {match["level"] for text in outside if (match := MARKED.match(text))}
    marks = sum(1 for text in outside if MARK.match(text))
    linked = sum(1 for text in outside if LINK.search(text))
    return (
        bool(levels)
        and marks >= 0.2 * len(outside)
        and (linked > 0 or len(levels) > 1 or any("```" in text for text in outside))
    )


def _is_spoken(text: str) -> bool:
    words = WORD.findall(text)
    letters = sum(map(len, words)) + 8 * len(CJK.findall(text))
    return (min(len(words), len(text.split())) >= 6 or len(CJK.findall(text)) >= 10) and letters >= 0.68 * len(
        text.strip()
    )


def statements_of_prose(lines: Sequence[PageLine], focus: Focus) -> Iterator[Statement]:
    """Yield headings together, names, and single sentences, each with the number of its first line."""
    headings = _headings(lines)
    levels: dict[str, list[str]] = {}
    for heading in headings.values():
        levels.setdefault(heading.mark, []).append(clip(heading.title, 40))
    for titles in levels.values():
        if len(titles) > 2:
            shown = ", ".join(titles if len(titles) <= 9 else [*titles[:7], "…", titles[-1]])
            yield Statement(f"{len(titles)} headings: {shown}", 7.0, 1)
    text = LINK.sub(" ", " ".join(line.text for line in lines))
    names = Counter(NAME.findall(text))
    spoken = set(LOWER.findall(text))
    frequent = [(name, n) for name, n in names.most_common(30) if n >= 4 and name.split()[0].lower() not in spoken][:8]
    if len(frequent) > 2:
        yield Statement("names: " + ", ".join(f"{name} ×{n:,}" for name, n in frequent), 4.0, 2)
    sentences = [(number, sentence) for number, sentence in _sentences(lines, headings)]
    last = len(sentences) - 1
    for at, (number, sentence) in enumerate(sentences):
        worth = 1.0 + 1.0 / (1 + at / 8)
        worth += 1.5 * (at == 0) + 0.5 * (at == 1) + 0.8 * (at == last)
        worth += 0.35 * min(4, len(NUMBERS.findall(sentence))) + 0.15 * min(3, len(NAME.findall(sentence)))
        worth += min(1.5, focus.of(sentence) / 2)
        yield Statement(f"{number}: {clip(sentence, SENTENCE_CHARS)}", worth, QUOTED + number)
    for at, (number, heading) in enumerate(headings.items()):
        worth = 0.7 + 0.8 / (1 + at / 2) + min(1.0, focus.of(heading.title) / 3)
        yield Statement(f"{number}: {clip(heading.title, 80)}", worth, QUOTED + number, "heading")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `mark` is what makes it one, and tells its level."""

    mark: str
    title: str


def _headings(lines: Sequence[PageLine]) -> dict[int, Heading]:
    """Return the headings by the number of their line: marked by `#`, underlined, or short between blank lines."""
    found: dict[int, Heading] = {}
    texts = [line.text.strip() for line in lines]
    fenced = False
    for at, (line, text) in enumerate(zip(lines, texts, strict=True)):
        fenced ^= text.startswith("```")
        after = texts[at + 1] if at + 1 < len(texts) else ""
        if fenced or not text or len(text) > 90 or UNDERLINE.match(text):
            continue
        if marked := MARKED.match(text):
            found[line.number] = Heading(marked["level"], LINK.sub(r"\g<text>", marked["title"]))
        elif (under := UNDERLINE.match(after)) and len(after) >= 0.6 * len(text):
            found[line.number] = Heading(under[1], text)
        elif (at == 0 or not texts[at - 1]) and TITLE.match(text) and line.text[:1] not in "> \t":
            beyond = texts[at + 2] if at + 2 < len(texts) else ""
            if not after:
                found[line.number] = Heading("", text)
            elif not beyond and TITLE.match(after):
                found[line.number] = Heading("two lines", f"{text}: {after}")
    return found


def _sentences(lines: Sequence[PageLine], headings: Mapping[int, Heading]) -> Iterator[tuple[int, str]]:
    """Yield sentences with the number of the line where they begin; wrapped lines are joined."""
    start, held, prefix, fenced = 0, "", "", False
    for line in [*lines, PageLine(0, "")]:
        opening = QUOTE.match(line.text)
        quote = opening[0].replace(" ", "") if opening else ""
        text = line.text[opening.end() if opening else 0 :].strip()
        fence = text.startswith("```")
        fenced ^= fence
        text = LINK.sub(r"\g<text>", text).strip()
        if line.number in headings or UNDERLINE.match(text) or fence or fenced:
            text = ""
        if held and text and quote == prefix and not NEW.match(text):
            held += f" {text}"
            continue
        short = ""
        for sentence in SENTENCE.split(held):
            short = f"{short} {sentence}".strip()
            if len(TERMS.findall(short)) >= 5:
                yield start, one_line(short)
                short = ""
        if short and len(TERMS.findall(short)) >= 2:
            yield start, one_line(short)
        start, held, prefix = line.number, text, quote
