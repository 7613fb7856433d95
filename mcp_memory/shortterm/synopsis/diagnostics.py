"""Messages of compilers and linters in any text, `file:line: message`, counted by severity, rule, file and message.

Formats: gcc, clang, tsc, mypy, ruff, flake8, eslint's unix format, `file(line,column): error CODE: …` of msbuild and
javac, `[file:line:column] …` of protolint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from mcp_memory.shortterm.synopsis.page import clip, clip_start, counted
from mcp_memory.shortterm.synopsis.statements import Statement

PART = re.compile(
    r'"[^"\n]{0,400}"(?!\s*:)|\'[^\'\n]{1,200}\'|(?:[\w.@~+-]*/)+[\w.@~+=-]*|\w*[0-9][\w.,:%+-]*|\b[IVXLC]+\b'
)
"""A part of a line that changes from line to line: a quoted text, a path, or a word with a digit."""
MESSAGE = re.compile(
    r"[\[(\s]{0,3}(?P<file>(?:[A-Za-z]:)?[^\s:()\[\]\"']{1,200}?\.\w{1,8}|[A-Za-z]:[^:()]{1,200}?\.\w{1,8})"
    r"[:(](?P<line>\d+)(?:[:,.-]\d+){0,3}[)\]]?:?\s+(?P<text>\S.*)"
)
SEVERITY = re.compile(r"\W{0,3}(fatal error|error|warning|note|info|hint|convention|refactor|style)\b", re.I)
RULE = re.compile(
    r"\b(?P<code>[A-Z]{1,8}-?\d{2,6})\b|\[(?:-W)?(?P<flag>[a-z][\w/-]+)(?:=[\w-]+)?\]\s*$"
    r"|\b(?P<name>[a-z]+(?:-[a-z]+){1,5})\s*$"
)
FEWEST = 5
SHOWN = {"severity": 6, "rule": 6, "file": 3, "message": 3}


def diagnostics_in(texts: Sequence[str]) -> Iterator[Statement]:
    """Yield counts over all messages, if there are at least `FEWEST`."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in SHOWN}
    for text in texts:
        match = MESSAGE.match(text)
        if not match:
            continue
        severity = SEVERITY.match(match["text"])
        rule = RULE.search(match["text"][:80]) or RULE.search(match["text"][-80:])
        if severity or rule or text.startswith("["):
            counts["file"][match["file"]] += 1
            counts["message"][PART.sub("…", match["text"][:160])] += 1
            if severity:
                counts["severity"][severity[1].lower()] += 1
            if rule:
                counts["rule"][rule["code"] or rule["flag"] or rule["name"]] += 1
    total, files = counts["file"].total(), len(counts["file"])
    if total < FEWEST:
        return
    if files > 1:
        yield Statement(f"{total:,} diagnostics in {files:,} files", 5.0, 1.4)
    for name, values in counts.items():
        top = values.most_common(SHOWN[name])
        if top and (len(values) <= SHOWN[name] or top[0][1] >= 3):
            cut = clip_start if name == "file" else clip
            shown = counted(values, SHOWN[name], partial(cut, limit=60))
            yield Statement(f"{name}: {shown}", 3.5 if name == "message" else 5.0, 1.5)
