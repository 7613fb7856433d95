"""Reduces each line of a text to its message, so that a line is judged without its introduction.

`messages_of` removes timestamps, log levels, loggers, `file:line:`, list and comment marks, keys and quotation marks
from the front of a line, and puts each cell of prose (CSV, tables, JSON and `key=value`) on a separate line. The
result is only for judging: it may lose words, so callers judge the original as well.
"""

from __future__ import annotations

import re

_CELL = re.compile(
    r"""[\t|] | \\n
    | (?<=[A-Za-z0-9"'}\])]),(?=["']?[^\s,"']{1,40}\ [^\s,])   # a cell of CSV that has several words
    | [:=,({\[]\ ?(?=["“«„「]\S{1,40}\ \S)              # a quoted value
    | (?<=\w)=(?=\S{1,40}\ \S)                            # key=value
    """,
    re.VERBOSE,
)
_LEVELS = "trace|debug|info|notice|warn|warning|error|err|fatal|critical|crit|severe|panic"
_FRONT = re.compile(
    rf"""^(?:
      [^\w\n]++                                                     # marks, quotation marks, spaces
    | [^\s:]{{1,200}}?-\d{{1,7}}-(?=\S)                             # file-line- as grep writes context lines
    | [^\s\d:,;|"=]{{0,80}}+\d[^\s:,;|"=]*+(?!\w)                   # numbers, timestamps, identifiers
    | [^\s:,;|"=./\\]{{0,80}}+[./\\]\w[^\s:,;|"=]*+(?=\s*:|\s+-\s)  # a path or a logger
    | (?:{_LEVELS.upper()})\b | (?i:{_LEVELS})(?=\s*[:\]])          # a level
    | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b(?=,?\ )
    | [\w.-]{{1,80}}+(?=\ [\w./-]{{1,80}}\[\d{{1,9}}\]:)            # the host of a line of syslog
    | [a-z][\w.-]{{0,40}}+["']?:(?=\ ["']?[^\s:"][^\n:]{{1,40}}:)   # a key in front of a label
    )++""",
    re.VERBOSE | re.MULTILINE,
)
_BACK = re.compile(r"(?<=\w)[.!?]?[\"'”»\]})]++[,;]?$", re.MULTILINE)


def messages_of(text: str) -> str:
    """Return the text with every line cut to its message; a cell, an item and a line of a log are paragraphs."""
    return _BACK.sub("", _FRONT.sub(_start, _CELL.sub("\n\n", text)))


def _start(front: re.Match[str]) -> str:
    """Return a new paragraph as far from the line before as the message was, or nothing for mere marks."""
    begins = any(character.isalnum() or character in "-*•+" for character in front[0])
    return "\n".rjust(len(front[0])) if begins else ""
