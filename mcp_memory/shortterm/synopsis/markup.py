"""HTML and Markdown: title, headings with line numbers, running text, and links that the call asked for.

The first `READ` characters of HTML are scanned once from left to right. The parser of the standard library is not used,
since it takes minutes for 200,000 comments that are never closed, and raises on some marked sections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip, count_of, first_items, one_line
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft

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
_BLOCK_NAMES = "p div li td th dd dt tr br h1 h2 h3 h4 h5 h6 section article pre blockquote title"
BLOCKS = frozenset(_BLOCK_NAMES.split())


@dataclass(slots=True)
class Reading:
    """The result of a scan of HTML, and the block being read (`tag` to `link`). A block is (tag, line, text)."""

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

    def open(self, tag: str, attributes: dict[str, str]) -> None:
        self.tables += tag == "table"
        self.forms += tag == "form"
        if tag == "meta" and attributes.get("name", attributes.get("property", "")).lower() in (
            "description",
            "og:description",
        ):
            self.description = self.description or one_line(attributes.get("content", ""))
        if tag == "a" and attributes.get("href"):
            self.link = (one_line(attributes["href"]), len(self.words))
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


def describe_html(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe an HTML document, or a fragment that is mostly tags; None for anything else."""
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
    about = first_items([clip(name, 50) for name in names], 4) if names else clip(reader.description, 100)
    about = about or next((clip(text, 100) for _, text in running), "no text")
    texts = {at: text for _, at, text in [*headings, *(("", *paragraph) for paragraph in running)] if text}
    return SynopsisDraft(
        kind="html",
        content_type="text/html",
        summary=f"page “{clip(title, 80)}”: {about}",
        score=3,
        use="text",
        facts=_facts(reader, focus),
        picks={at: 3.0 / int(tag[1]) for tag, at, _ in headings},
        pieces=[PageLine(at, text) for at, text in sorted(texts.items())],
    )


def _facts(reader: Reading, focus: Focus) -> list[str]:
    links = [(text, to) for text, to in dict.fromkeys(reader.links) if text and not to.startswith(("#", "javascript:"))]
    counts = ((len(links), "link"), (reader.tables, "table"), (reader.forms, "form"))
    facts = [clip(one_line(reader.description), 160)] if reader.description else []
    facts += [counts_text] if (counts_text := ", ".join(count_of(n, what) for n, what in counts if n)) else []
    near = focus.nearest(links, " ".join)[:LINKS]
    return facts + [f"{clip(text, 40)} <{clip(to, 120)}>" for text, to in near]


HEADING = re.compile(r"(?P<level>#{1,6})\s+(?P<title>\S.*?)\s*#*$")
MARKDOWN_LINKS, LONGEST_LINK = 2, 70
FENCE = re.compile(r"\s*(?:```|~~~)\s*(?P<language>[\w+-]*)")
LINK = re.compile(r"!?\[(?P<text>[^\]\n]{0,200})\]\((?P<to>[^)\s]{1,500})[^)]{0,200}\)")
MARK = re.compile(r"\s*(?:[-*+] |\d+[.)] |> |#{1,6} |\||```)|.*(?:\*\*\S|\]\()")
FIELD = re.compile(r"(?P<key>name|title|description): *(?P<value>\S.*)")
PLAIN = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]{1,3}")


def describe_markdown(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe Markdown. Returns None for a text without headings, or whose `#` lines seem to be comments in code."""
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
    summary = f"“{clip(title, 80)}”, {count_of(len(headings), 'section')}" + (
        f": {first_items(picked, 6)}" if picked else ""
    )
    if about:
        summary = f"“{clip(title, 60)}”: {clip(about, 120)}"
    near = focus.nearest(dict.fromkeys(links), " ".join)[:MARKDOWN_LINKS]
    languages = sorted({language for language in fences if language})
    facts = [f"{count_of(len(fences), 'code block')} ({first_items(languages, 4)})"] if languages else []
    facts += [f"{clip(text, 40)} <{to}>" for text, to in near if len(to) <= LONGEST_LINK]
    return SynopsisDraft(
        kind="markdown",
        content_type="text/markdown",
        summary=summary if sections or about else f"“{clip(title, 80)}”: {clip(opening, 100)}",
        use="text",
        score=3,
        facts=facts,
        picks={at: 3.0 / level for level, at, text in headings if text != title},
        pieces=[PageLine(line.number, LINK.sub(r"\g<text>", line.text)) for line in page.lines],
    )


def _front_matter(page: ResultPage) -> dict[str, str]:
    """Return the first fields of the front matter, if the text begins with one."""
    if not page.sample or page.sample[0].text.strip() != "---":
        return {}
    matches = (FIELD.match(line.text) for line in page.sample[1:12])
    return {m["key"]: one_line(m["value"]) for m in matches if m}


def _sentence(text: str) -> str:
    """Return a line of running text without its Markdown marks; "" for any other line."""
    text = PLAIN.sub(r"\1", text).strip()
    return text if len(text) > 40 and " " in text and text[:1] not in "|<-#=" else ""
