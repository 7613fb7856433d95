"""Gemini's activities in Google Takeout, `My Activity/Gemini Apps/MyActivity.json`, the newest first.

    [{header: "Gemini Apps", title: "Prompted " + words, time, products, titleUrl?, attachedFiles?,
      safeHtmlItem: [{html: the answer}]}, …]

The verb is translated, and answers are often missing. Conversations are not named, apart from a link in some: prompts
with less than half an hour between them are one session. `gemini_takeout_html` reads the same as HTML, where times have
no fractions of seconds; they are dropped here too, so that an activity in both files is stored once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import AnyRecord, Format, has
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    items_of,
    list_of,
    object_of,
    parse_time,
    text_of,
)

NO_PROMPTS = "activities that are no prompts"
OTHER_PRODUCTS = "activities of other products"
_SILENCE = timedelta(minutes=30)
_GEMINI = re.compile(r"gemini|\bbard\b", re.IGNORECASE)
_PROMPTED = re.compile(
    r"(?:Prompted(?: with:)?|Live Prompt|Asked(?: Bard:)?|Said|Branched|Prompt ?:|Fez uma pergunta:|Preguntó:)\s+"
)
_OTHER_VERB = re.compile(
    r"(?:Cleared|Created|Deleted|Gave|Searched|Selected|Shared|Turned|Used|Viewed|Visited)\b", re.IGNORECASE
)
_ATTACHED = re.compile(r"\s*Attached \d+ files?\.\s*$")
_LINK = re.compile(r"gemini\.google\.com/app/(\w+)")


def gemini_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the prompts and answers of a list of activities, the oldest first."""
    sessions: dict[str, list[dict[str, Any]]] = {}
    current, last = "", None
    for activity in map(object_of, reversed(list_of(source.value) or [])):
        if activity is None or not is_gemini(activity):
            skipped.left_out[OTHER_PRODUCTS] += 1
        elif not (messages := list(_messages(activity))):
            skipped.left_out[NO_PROMPTS] += 1
        else:
            at = _second_of(activity)
            if not current or (at is not None and last is not None and at - last >= _SILENCE):
                current = str(messages[0]["id"])
            last = at or last
            link = _LINK.search(str(activity.get("titleUrl")))
            sessions.setdefault(link[1] if link else current, []).extend(messages)
    value = [{"id": id, "messages": messages} for id, messages in sessions.items()]
    yield from _CHAT.records(SourceValue(value, source.where, source.number, source.path), skipped)


def _second_of(activity: dict[str, Any]) -> datetime | None:
    at = parse_time(activity, ("time",), SkippedParts())
    return at and at.astimezone(UTC).replace(microsecond=0)


def is_gemini(activity: Any) -> bool:
    """Return whether an activity is of Gemini, by the names of its product."""
    names = [text_of(object_of(activity) or {}, "header"), *items_of(activity, "products")]
    return any(_GEMINI.search(str(name)) for name in names)


def _messages(activity: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the prompt of an activity and its answer; nothing for other activities."""
    title = (text_of(activity, "title") or "").replace("\u00a0", " ")
    html = [text for item in items_of(activity, "safeHtmlItem") if (text := text_of(object_of(item) or {}, "html"))]
    verb = _PROMPTED.match(title)
    if verb is None and (not html or _OTHER_VERB.match(title)):
        return
    at = _second_of(activity)
    time = at.isoformat() if at else activity.get("time")
    words = " ".join(title.split())
    id = f"{time}-{hashlib.sha256(words.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    words = _ATTACHED.sub("", title[verb.end() if verb else 0 :])
    files = items_of(activity, "attachedFiles")
    yield {"id": id, "role": "user", "content": words, "files": files, "time": time}
    if html:
        yield {"id": f"{id}-answer", "role": "assistant", "content": "\n".join(map(html_text, html)), "time": time}


# --- HTML -------------------------------------------------------------------------------------------

_BLOCKS = {"p", "div", "ul", "ol", "li", "pre", "table", "tr", "blockquote", "hr", *(f"h{nth}" for nth in range(1, 7))}


def html_text(html: str) -> str:
    """Return the text of HTML: a line for each block, `- ` before items of lists, ` | ` between cells."""
    parser = _TextParser()
    parser.feed(html)
    parser.close()
    return "".join(parser.texts).strip()


class _TextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._code += tag == "pre"
        if tag in _BLOCKS or tag == "br":
            self._end_line()
        if tag == "li":
            self.texts.append("- ")
        elif tag in ("td", "th") and self.texts and not self.texts[-1].endswith("\n"):
            self.texts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "pre"
        if tag in _BLOCKS:
            self._end_line()

    def handle_data(self, data: str) -> None:
        text = data if self._code else re.sub(r"\s+", " ", data)
        is_new = not self.texts or self.texts[-1].endswith(("\n", "- "))
        if text := text.lstrip(" ") if is_new and not self._code else text:
            self.texts.append(text)

    def _end_line(self) -> None:
        if self.texts and not self.texts[-1].endswith(("\n", "- ")):
            self.texts.append("\n")


_CHAT = Chat(
    client="gemini-app",
    expected="list of activities",
    conversations=lambda value: value,
    time=("time",),
    content=("content",),
    attachments=("files",),
)

FORMAT = Format(
    title="activities of Gemini in Google Takeout",
    location="My Activity of Takeout, as JSON",
    unit="document",
    matches=lambda value: has("header", "title", "time")(value) and is_gemini(value),
    records=gemini_records,
)
