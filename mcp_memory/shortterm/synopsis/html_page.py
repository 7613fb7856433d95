"""HTML: title, headings, the text between them and the links that the call was after, without the tags.

Bounds: the first `READ` characters, scanned once from left to right. Not through the parser of the standard
library: it takes minutes for 200,000 comments that are never closed, and raises on some marked sections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

from mcp_memory.shortterm.synopsis.draft import Draft, counted, listed
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece
from mcp_memory.shortterm.synopsis.page import Page, clip, one_line

__all__ = ["describe_html"]

LINKS = 4
READ = 200_000
LONGEST_TAG = 1_500
START = re.compile(
    r"\s*(?:\ufeff)?(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--[^>]{0,2000}-->\s*)?"
    r"<(?:!doctype\s+html|html|head|body)\b",
    re.I,
)
BLOCK = re.compile(
    r"</?(?:div|p|span|a|table|tr|td|ul|ol|li|h[1-6]|section|article|nav|form|script|style|img|br)\b", re.I
)
TAG = re.compile(r"</?(?P<name>[A-Za-z][\w:-]{0,40})")
ATTRIBUTE = re.compile(r"(?<![\w:-])(?P<name>[\w:-]+)\s*=\s*(?:\"(?P<a>[^\"]*)|'(?P<b>[^']*)|(?P<c>[^\s\"'>]+))")
LONG_NUMBER = re.compile(r"&#\d{8,}")
SILENT = {
    name: re.compile(rf"</{name}\b", re.I) for name in ("script", "style", "noscript", "svg", "template", "iframe")
}
BLOCKS = frozenset(
    [
        "p",
        "div",
        "li",
        "td",
        "th",
        "dd",
        "dt",
        "tr",
        "br",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "section",
        "article",
        "pre",
        "blockquote",
        "title",
    ]
)


@dataclass(slots=True)
class Reading:
    """What one scan found. A block is (tag, line, text)."""

    blocks: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    links: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    description: str = ""
    tables: int = 0
    forms: int = 0
    tag: str = ""
    line: int = 0
    words: list[str] = field(default_factory=list[str])
    link: tuple[str, int] | None = None

    def say(self, text: str, line: int) -> None:
        if text.strip():
            if not self.words:
                self.line = line + text[: len(text) - len(text.lstrip())].count("\n")
            self.words.append(unescape(LONG_NUMBER.sub("", text)))

    def open(self, tag: str, given: dict[str, str]) -> None:
        self.tables += tag == "table"
        self.forms += tag == "form"
        if tag == "meta" and given.get("name", given.get("property", "")).lower() in ("description", "og:description"):
            self.description = self.description or one_line(given.get("content", ""))
        if tag == "a" and given.get("href"):
            self.link = (one_line(given["href"]), len(self.words))
        if tag in BLOCKS:
            self.flush(tag)

    def close(self, tag: str) -> None:
        if tag == "a" and self.link:
            self.links.append((one_line(" ".join(self.words[self.link[1] :])), self.link[0]))
            self.link = None
        if tag in BLOCKS:
            self.flush("")

    def flush(self, tag: str) -> None:
        if text := one_line("".join(self.words)):
            self.blocks.append((self.tag, self.line, text))
        self.tag, self.words = tag, []
        self.link = (self.link[0], 0) if self.link else None


def _read(text: str) -> Reading:
    """Scan tags and text. What is not closed ends with the text."""
    reading = Reading()
    at, line, closing = 0, 1, -1
    while at < len(text):
        begin = text.find("<", at)
        begin = len(text) if begin < 0 else begin
        reading.say(text[at:begin], line)
        line += text.count("\n", at, begin)
        if closing < begin:  # looked for once, not for every tag that is never closed
            closing = text.find(">", begin)
            closing = len(text) if closing < 0 else closing
        found = TAG.match(text, begin)
        after = closing + 1
        if text.startswith("<!--", begin):
            end = text.find("-->", begin)
            after = end + 3 if end >= 0 else len(text)
        elif found:
            name = found["name"].lower()
            if text.startswith("</", begin):
                reading.close(name)
            else:
                reading.open(name, _attributes(text[found.end() : min(closing, begin + LONGEST_TAG)]))
                if name in SILENT:
                    end = SILENT[name].search(text, after)
                    after = end.start() if end else len(text)
        elif not text.startswith(("<!", "<?"), begin):
            reading.say("<", line)
            after = begin + 1
        line += text.count("\n", begin, after)
        at = after
    reading.flush("")
    return reading


def _attributes(text: str) -> dict[str, str]:
    found = ATTRIBUTE.finditer(text)
    return {m["name"].lower(): unescape(LONG_NUMBER.sub("", m["a"] or m["b"] or m["c"] or "")) for m in found}


def describe_html(page: Page, focus: Focus) -> Draft | None:
    """A document, or a piece of one that is mostly tags."""
    head = page.text[:20_000]
    if not head.lstrip().startswith("<") or (
        not START.match(head) and len(BLOCK.findall(head)) < max(8, len(head) // 400)
    ):
        return None
    reader = _read(page.text[:READ])
    shift = page.lines[0].number - 1 if page.lines else 0
    blocks = [(tag, at + shift, text) for tag, at, text in reader.blocks]
    title = next((text for tag, _, text in blocks if tag == "title"), "")
    headings = [(tag, at, text) for tag, at, text in blocks if tag in ("h1", "h2", "h3", "h4")]
    running = [(at, text) for tag, at, text in blocks if tag in ("p", "li", "div", "td", "pre", "") and len(text) > 60]
    title = title or next((text for _, _, text in headings), "") or "no title"
    names = focus.best(dict.fromkeys(text for _, _, text in headings if text != title), 4)
    about = listed([clip(name, 50) for name in names], 4) if names else clip(reader.description, 100)
    about = about or next((clip(text, 100) for _, text in running), "no text")
    told = {at: text for _, at, text in [*headings, *(("", *one) for one in running)] if text}
    return Draft(
        kind="html",
        content_type="text/html",
        summary=f"page “{clip(title, 80)}”: {about}",
        score=3,
        use="text",
        facts=tuple(_facts(reader, focus)),
        picks={at: 3.0 / int(tag[1]) for tag, at, _ in headings},
        pieces=tuple(Piece(at, text, str(at)) for at, text in sorted(told.items())),
    )


def _facts(reader: Reading, focus: Focus) -> list[str]:
    links = [(text, to) for text, to in dict.fromkeys(reader.links) if text and not to.startswith(("#", "javascript:"))]
    counts = ((len(links), "link"), (reader.tables, "table"), (reader.forms, "form"))
    facts = [clip(one_line(reader.description), 160)] if reader.description else []
    facts += [told] if (told := ", ".join(counted(n, what) for n, what in counts if n)) else []
    near = sorted(links, key=lambda link: -focus.of(f"{link[0]} {link[1]}"))[:LINKS]
    return facts + [f"{clip(text, 40)} <{clip(to, 120)}>" for text, to in near if focus.of(f"{text} {to}") > 0]
