"""The text of HTML by blocks: title, description, headings, paragraphs.

The first `READ` characters of HTML are scanned once from left to right. The parser of the standard library is not used,
since it takes minutes for 200,000 comments that are never closed, and raises on some marked sections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

from mcp_memory.shortterm.synopsis.page import PageLine, one_line

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
_BLOCK_NAMES = "p div li td th dd dt tr br h1 h2 h3 h4 h5 h6 section article pre blockquote title"
BLOCKS = frozenset(_BLOCK_NAMES.split())


@dataclass(slots=True)
class Reading:
    """The result of a scan of HTML, and the block being read (`tag` to `words`). A block is (tag, line, text)."""

    blocks: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    description: str = ""
    tag: str = ""
    line: int = 0
    words: list[str] = field(default_factory=list[str])

    def say(self, text: str, line: int) -> None:
        if text.strip():
            if not self.words:
                self.line = line + text[: len(text) - len(text.lstrip())].count("\n")
            self.words.append(unescape(LONG_NUMBER.sub("", text)))

    def open(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "meta" and attributes.get("name", attributes.get("property", "")).lower() in (
            "description",
            "og:description",
        ):
            self.description = self.description or one_line(attributes.get("content", ""))
        if tag in BLOCKS:
            self.flush(tag)

    def close(self, tag: str) -> None:
        if tag in BLOCKS:
            self.flush("")

    def flush(self, tag: str) -> None:
        if text := one_line("".join(self.words)):
            self.blocks.append((self.tag, self.line, text))
        self.tag, self.words = tag, []


def _read(text: str) -> Reading:
    """Scan tags and text. Unclosed elements end with the text."""
    reading = Reading()
    at, line, closing = 0, 1, -1
    while at < len(text):
        begin = text.find("<", at)
        begin = len(text) if begin < 0 else begin
        reading.say(text[at:begin], line)
        line += text.count("\n", at, begin)
        if closing < begin:  # searched once instead of for every unclosed tag
            closing = text.find(">", begin)
            closing = len(text) if closing < 0 else closing
        match = TAG.match(text, begin)
        after = closing + 1
        if text.startswith("<!--", begin):
            end = text.find("-->", begin)
            after = end + 3 if end >= 0 else len(text)
        elif match:
            name = match["name"].lower()
            if text.startswith("</", begin):
                reading.close(name)
            else:
                reading.open(name, _attributes(text[match.end() : min(closing, begin + LONGEST_TAG)]))
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
    attributes = ATTRIBUTE.finditer(text)
    return {m["name"].lower(): unescape(LONG_NUMBER.sub("", m["a"] or m["b"] or m["c"] or "")) for m in attributes}


HTTP = re.compile(r"HTTP/[\d.]+ \d{3}")
HEADERS = 8_000


def html_lines(text: str) -> list[PageLine]:
    """Return the text of an HTML document by blocks, with the numbers of their lines; headings begin with `#`.

    HTTP headers before it are lines too. Empty for a text that is not HTML.
    """
    start = 0
    if HTTP.match(text):
        blank = re.search(r"\r?\n\r?\n", text[:HEADERS])
        start = blank.end() if blank else 0
    if not START.match(text, start):
        head = text[start : start + 20_000]
        if not head.lstrip().startswith("<") or len(BLOCK.findall(head)) < max(8, len(head) // 400):
            return []
    lines = [PageLine(number, line.strip()) for number, line in enumerate(text[:start].split("\n"), 1) if line.strip()]
    shift = text.count("\n", 0, start)
    reading = _read(text[start : start + READ])
    if reading.description:
        lines.append(PageLine(1 + shift, reading.description))
    for tag, number, block in reading.blocks:
        heading = re.fullmatch("h([1-6])", tag)
        lines.append(PageLine(number + shift, f"{'#' * int(heading[1])} {block}" if heading else block))
    return lines
