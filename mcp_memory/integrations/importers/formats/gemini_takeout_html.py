"""Gemini's activities in Google Takeout as HTML, `My Activity/Gemini Apps/MyActivity.html`, the newest first.

    <div class="outer-cell …"> … <p class="mdl-typography--title">Gemini Apps<br></p> …
    <div class="content-cell … mdl-typography--body-1">Prompted␠words<br>date<br>the answer</div> …

The date is in the language and the time zone of the account: "Jan 12, 2026, 7:40:00 PM GMT+01:00". A link to
gemini.google.com names the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp_memory.integrations.importers.format import AnyRecord, Format
from mcp_memory.integrations.importers.formats.gemini_takeout import gemini_records, html_text
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue

_ACTIVITY = '<div class="outer-cell'
_HEADER = re.compile(r'<p class="mdl-typography--title">(.*?)</p>', re.DOTALL)
_BODY = re.compile(
    r'<div class="content-cell[^"]*mdl-typography--body-1">(.*?)</div>\s*<div class="content-cell', re.DOTALL
)
_BREAK = re.compile(r"<br\s*/?>")
_LINK = re.compile(r'<a href="(https://gemini\.google\.com/app/\w+)"[^>]*>.*?</a>', re.DOTALL)
_DATED = re.compile(r"^(?=.*\b\d{4}\b).*\d{1,2}:\d{2}:\d{2}.{0,20}$")
_DATE = re.compile(
    r"(?:(?P<m>[A-Za-z]{3})\w*\.? (?P<d>\d{1,2})|(?P<d2>\d{1,2}) (?P<m2>[A-Za-z]{3})\w*\.?),? (?P<y>\d{4}),? "
    r"(?P<h>\d{1,2}):(?P<min>\d{2}):(?P<s>\d{2})(?: (?P<half>[AP]M))? (?P<zone>[A-Z]{2,5})?"
    r"(?P<offset>[+-]\d{1,2}(?::\d{2})?)?$"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONES = {
    **dict.fromkeys(("GMT", "UTC", "WET"), 0),
    **dict.fromkeys(("CET", "MEZ", "BST", "WEST"), 1),
    **dict.fromkeys(("CEST", "MESZ", "EET"), 2),
    **{"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7},
    **{"EEST": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11},
}
"""Hours of time zones by their names. Times in other zones cannot be read."""


def gemini_html_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the prompts and answers of the activities, as `gemini_takeout` reads them."""
    activities = [_activity(html) for html in str(source.value).split(_ACTIVITY)[1:]]
    yield from gemini_records(SourceValue(activities, source.where, source.number, source.path), skipped)


def _activity(html: str) -> dict[str, Any]:
    """Return an activity as in the JSON of Takeout."""
    header, body = _HEADER.search(html), _BODY.search(html)
    lines = _BREAK.split(_LINK.sub("", body[1])) if body else []
    dated = next((nth for nth, line in enumerate(lines) if _DATED.match(_plain(line))), len(lines))
    link = _LINK.search(body[1]) if body else None
    return {
        "header": html_text(header[1]) if header else "",
        "title": "\n".join(_plain(line) for line in lines[:dated]),
        "time": _time(_plain(lines[dated])) if dated < len(lines) else None,
        "titleUrl": link[1] if link else None,
        "safeHtmlItem": [{"html": "<br>".join(lines[dated + 1 :])}],
    }


def _plain(line: str) -> str:
    return html_text(line).replace("\u202f", " ").replace("\u00a0", " ")


def _time(text: str) -> str:
    """Return a date as ISO 8601, or as it is if it cannot be read."""
    date = _DATE.match(text)
    month = (date["m"] or date["m2"] or "").lower() if date else ""
    hours = _ZONES.get(date["zone"] or "GMT") if date else None
    if date is None or month not in _MONTHS or hours is None:
        return text
    offset, _, minutes = (date["offset"] or "+0").partition(":")
    ahead = timedelta(hours=hours + int(offset), minutes=int(minutes or 0) * (-1 if offset[0] == "-" else 1))
    hour = int(date["h"]) % 12 + 12 * (date["half"] == "PM") if date["half"] else int(date["h"])
    numbers = int(date["y"]), _MONTHS.index(month) + 1, int(date["d"] or date["d2"]), hour, int(date["min"])
    try:
        return (datetime(*numbers, int(date["s"]), tzinfo=UTC) - ahead).isoformat()
    except (ValueError, OverflowError):
        return text


FORMAT = Format(
    title="activities of Gemini in Google Takeout, as HTML",
    location="My Activity of Takeout",
    unit="text",
    path=r"\.html?$",
    matches=lambda text: (
        _ACTIVITY in text and re.search(r"mdl-typography--title\">[^<]*(?:Gemini|Bard)", text) is not None
    ),
    records=gemini_html_records,
)
