"""Secrets whose name stands elsewhere: in the line above, in the head of a column, in another attribute.

Kubernetes and compose lists (`- name: DB_PASSWORD` over `value: …`), secrets of Kubernetes, YAML blocks, `.netrc` and
`.pgpass`, tables, and input fields of pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_memory.secrets.names import HINTS, name_at
from mcp_memory.secrets.values import is_drawn, is_given, is_phrase, stands_for_another
from mcp_memory.secrets.vocabulary import reads_as_words

__all__ = ["structured"]

_VALUE_OF = re.compile(
    r"""(?ix)\bname[\\"']{0,8}\s{0,3}[:=]\s{0,3}[\\"']{0,8}(?P<name>[\w.-]{2,80})[\\"']{0,8}
    (?:\s{0,3},)?(?:\s|\\n){0,20}[\\"']{0,8}value[\\"']{0,8}\s{0,3}[:=]\s{0,3}
    (?P<quote>\\{0,7}["'])?(?P<value>(?(quote)[^"'\n\\]{1,4096}|[^\s"',{}]{1,4096}))"""
)
_BLOCK = re.compile(
    r"(?m)^(?P<indent>[ \t]*)(?:-[ ]+)?(?P<name>[\w.-]{2,80})[ \t]*:[ \t]*[|>][-+\d]{0,2}[ \t]*\n"
    r"(?P<value>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z)){1,60})"
)
_KUBERNETES = re.compile(r"(?m)^(?P<indent>[ \t]*)kind:[ \t]*[\"']?Secret[\"']?[ \t]*$")
_DATA = re.compile(
    r"(?m)^(?P<indent>[ \t]*)(?:data|stringData):[ \t]*\n(?P<rows>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z)){1,80})"
)
_NEXT_OBJECT = re.compile(r"(?m)^[ \t]*(?:---[ \t]*$|(?:- )?apiVersion:)")
_ROW = re.compile(r"(?m)^[ \t]+[\w.-]{1,80}:[ \t]+[\"']?(?P<value>[^\s\"']{4,4096})[\"']?[ \t]*$")
_NETRC = re.compile(
    r"(?:\bmachine\s{1,20}\S{1,200}|\bdefault)\s{1,20}(?:login|user)\s{1,20}\S{1,200}\s{1,20}"
    r"password\s{1,20}(?P<value>\S{1,500})"
)
_PGPASS = re.compile(
    r"(?m)^[ \t]*(?:[\w*-]+(?:\.[\w-]+){0,6}|\[[\da-f:]+\]):(?:54\d\d|6432|\*):[^:\s/]{1,63}:[^:\s/]{1,63}:"
    r"(?P<value>[^\s:/]{4,200})[ \t]*$"
)
_INPUT = re.compile(r"(?i)<input\b(?P<inside>[^<>]{1,600})>")
_IS_PASSWORD = re.compile(r"(?i)\b(?:type|name|id|autocomplete)\s*=\s*[\"']?[\w-]*password")
_ITS_VALUE = re.compile(r"(?i)\bvalue\s*=\s*(?P<quote>\\?[\"'])?(?P<value>(?(quote)[^\"'\\]{1,500}|[^\s\"'>]{1,500}))")
_ADDED = re.compile(
    r"(?i)<(?:add|entry|property|setting|param)\b[^<>]{0,80}?\b(?:key|name)\s*=\s*[\"'](?P<name>[\w.:-]{2,80})[\"'][^<>]{0,80}?"
    r"\bvalue\s*=\s*[\"'](?P<value>[^\"'<>\n]{1,500})[\"']"
)
_SENSITIVE = re.compile(
    r"\"(?P<name>[\w.-]{1,80})\":\s*\{\s*(?:\"sensitive\":\s*true,\s*)?(?:\"type\":\s*\"string\",\s*)?"
    r"\"value\":\s*\"(?P<value>[^\"\n]{1,4096})\"(?P<after>[^{}]{0,120})"
)
_NAMES = r"(?P<name>[\w.:-]{2,80})"
_QUOTED_NAME = rf"\b(?:key|name)=\\?[\"']{_NAMES}\\?[\"']"
_MORE = (
    # XML: text of its own, an element inside, or the attributes the other way round
    re.compile(rf"(?i)<{_NAMES}>\s*<!\[CDATA\[(?P<value>[^\]<>\n]{{4,500}})\]"),
    re.compile(
        rf"(?i)<\w+\s[^<>]{{0,80}}?{_QUOTED_NAME}[^<>]{{0,80}}>\s*(?:<value>\s*)?(?P<value>[^<>\n]{{4,500}}?)\s*</"
    ),
    re.compile(rf"(?i)\bvalue=\\?[\"'](?P<value>[^\"'<>\n]{{4,500}}?)\\?[\"']\s+{_QUOTED_NAME}"),
    re.compile(rf"(?i)<key>{_NAMES}</key>\s*<string>(?P<value>[^<>\n]{{4,500}})</string>"),
    # JSON and HCL: the value first, or in a block that has the name
    re.compile(rf"(?i)\"value\"\s?:\s?\"(?P<value>[^\"\n]{{4,4096}})\",\s{{0,20}}\"name\"\s?:\s?\"{_NAMES}\""),
    re.compile(rf"variable\s+\"{_NAMES}\"\s*\{{[^{{}}]{{0,400}}?default\s*=\s*\"(?P<value>[^\"\n]{{4,4096}})\""),
    re.compile(
        rf"(?m)^[ \t]*(?:-[ ]+)?{_NAMES}:[ \t]*\n[ \t]*-[ ]+"
        r"[\"']?(?P<value>[^\s\"':,{}\[\]]{4,500})[\"']?[ \t]*$"
    ),
    re.compile(rf"(?m)^{_NAMES}[ ]*\|[ ]+(?P<value>\S{{6,500}})[ \t]*$"),  # a row of psql's expanded form
)
_ALWAYS = (  # places of secrets, whatever their names
    re.compile(r"\"(?i:Type)\"\s?:\s?\"SecureString\",\s{0,20}\"Value\"\s?:\s?\"(?P<value>[^\"\n]{4,4096})\""),
    re.compile(r"\"github\.com\"\s?:\s?\"(?P<value>[A-Za-z0-9_-]{16,100})\""),
    re.compile(
        r"\"random_password\"[^{}]{0,200}\{[^{}]{0,80}\{?[^{}]{0,400}?\"result\"\s?:\s?\"(?P<value>[^\"\n]{4,500})\""
    ),
    re.compile(r"(?<=:)(?P<value>[^\s\"'@:/<>{}$]{6,100})(?=@tcp\()"),
    re.compile(r"(?i)\.set_?(?:Password|Secret|ApiKey|Token|ClientSecret)\(\s?[\"'](?P<value>[^\"'\n]{4,500})[\"']\)"),
    re.compile(
        r"(?m)^[ \t]*(?:enable secret|username \S{1,60} (?:privilege \d+ )?(?:password|secret)) [05789] "
        r"(?P<value>\S{4,200})"
    ),
    re.compile(r"(?m)^\$ pass (?:show )?\S+\n(?P<value>\S{6,200})$"),
)
_BELOW = re.compile(
    r"(?im)^[^\n]{0,160}pass(?:word|phrase|code)[^\n]{0,160}:[ \t]*\n[ \t\n]{0,40}(?P<value>\S{8,64})[ \t]*$"
)
_INSERT = re.compile(
    r"(?i)insert into [\w.`\"]{1,80}\s?\((?P<names>[^()]{3,600})\)\s*values\s*"
    r"(?P<rows>(?:\([^()\n]{0,2000}\)\s*,?\s*){1,50})"
)
_FIELD = re.compile(r"'((?:[^']|'')*)'|[^,()']+")
_HEAD = re.compile(r"[\"'`*]{0,2}[^\W\d][\w .#/-]{0,30}[\"'`*]{0,2}")
_WORDS_OF_NAMES = ("pass", "secret", "token", "key", "pwd", "credential")
_MOST_ROWS = 2_000


def structured(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield where secrets stand that a structure around them names. `small` is the text in small letters."""
    if "value" in small:
        for found in (*_VALUE_OF.finditer(text), *_ADDED.finditer(text)):
            if _is_secret(found["value"], found["name"]):
                yield found.span("value")
        if '"sensitive"' in small:
            for found in _SENSITIVE.finditer(text):
                if '"sensitive": true' in found[0] and not stands_for_another(found["value"], found["name"]):
                    yield found.span("value")
    if any(word in small for word in _WORDS_OF_NAMES):
        yield from _around(text, small)
    for pattern in _ALWAYS:
        for found in pattern.finditer(text):
            if is_given(found["value"]) and not stands_for_another(found["value"]):
                yield found.span("value")
    if "<input" in small:
        yield from _fields(text)
    if "password" in small and ("machine " in small or "default" in small):
        for found in _NETRC.finditer(text):
            if not stands_for_another(found["value"]):
                yield found.span("value")
    if "|" in text or ">" in text:
        yield from _blocks(text)
    if "secret" in small and "kind:" in small:
        yield from _of_kubernetes(text)
    if ":54" in text or ":6432:" in text or ":*:" in text:
        for found in _PGPASS.finditer(text):
            if not stands_for_another(found["value"]):
                yield found.span("value")
    if "pass" in small or "secret" in small or "token" in small or "api" in small or "pwd" in small:
        yield from _columns(text)


def _is_secret(value: str, name: str) -> bool:
    kind = _kind_of(name)
    if kind is None or stands_for_another(value, name):
        return False
    if kind == "key":
        return is_drawn(value)
    return len(value) >= 4 and (not value.isdigit() or len(value) >= 6) and (" " not in value or is_phrase(value))


def _kind_of(name: str) -> str | None:
    """Return what a name alone asks: a password, a key, or nothing secret."""
    small = name.lower()
    for hint in HINTS:
        at = small.find(hint)
        found = name_at(name, at, hint) if at >= 0 else None
        if found is not None and not found.is_short and found.start == 0 and found.end == len(name):
            return "password" if found.of_password else "key"
    return None


def _around(text: str, small: str) -> Iterator[tuple[int, int]]:
    for pattern in _MORE:
        for found in pattern.finditer(text):
            if _is_secret(found["value"], found["name"]) and not reads_as_words(found["value"]):
                yield found.span("value")
    for found in _BELOW.finditer(text):
        if is_drawn(found["value"], 8):
            yield found.span("value")
    if "insert into" in small:
        yield from _inserted(text)


def _inserted(text: str) -> Iterator[tuple[int, int]]:
    """Yield the values of columns that are named as secrets, where SQL inserts rows."""
    for found in _INSERT.finditer(text):
        kinds = [_kind_of(name.strip(' `"\n\t')) for name in found["names"].split(",")]
        for row in re.finditer(r"\(([^()\n]*)\)", found["rows"]):
            fields = [one for one in _FIELD.finditer(row[1]) if one[0].strip()]
            for kind, field in zip(kinds, fields, strict=False):
                value = field[1] or ""
                if kind and is_given(value) and not stands_for_another(value):
                    start = found.start("rows") + row.start(1) + field.start(1)
                    yield start, start + len(value)


def _fields(text: str) -> Iterator[tuple[int, int]]:
    for field in _INPUT.finditer(text):
        inside = field["inside"]
        value = _ITS_VALUE.search(inside) if _IS_PASSWORD.search(inside) else None
        if value and len(value["value"]) >= 4 and not stands_for_another(value["value"], "password"):
            start = field.start("inside") + value.start("value")
            yield start, start + len(value["value"])


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    for block in _BLOCK.finditer(text):
        if _kind_of(block["name"]) is None:
            continue
        for line in re.finditer(r"[^\s].*", block["value"]):
            if _is_secret(line[0].rstrip(), block["name"]) or is_drawn(line[0].rstrip()):
                start = block.start("value") + line.start()
                yield start, start + len(line[0].rstrip())


def _of_kubernetes(text: str) -> Iterator[tuple[int, int]]:
    for secret in _KUBERNETES.finditer(text):
        begin = max((one.end() for one in _NEXT_OBJECT.finditer(text, 0, secret.start())), default=0)
        end = next((one.start() for one in _NEXT_OBJECT.finditer(text, secret.end())), len(text))
        for data in _DATA.finditer(text, max(begin, secret.start() - 4_000), min(end, secret.end() + 8_000)):
            for row in _ROW.finditer(data["rows"]) if data["indent"] == secret["indent"] else ():
                if not stands_for_another(row["value"]):
                    start = data.start("rows") + row.start("value")
                    yield start, start + len(row["value"])


def _columns(text: str) -> Iterator[tuple[int, int]]:
    """Yield the cells of columns whose head is the name of a secret, in tables that cut their lines alike."""
    at = 0
    lines = text.split("\n")
    starts: list[int] = []
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    for number, line in enumerate(lines):
        if len(line) > 400 or not any(
            hint in line.lower() for hint in ("pass", "secret", "token", "api", "pwd", "key")
        ):
            continue
        for cut in ("|", "\t", ",", ";", "  "):
            yield from _of_table(lines, starts, number, cut)


def _of_table(lines: list[str], starts: list[int], number: int, cut: str) -> Iterator[tuple[int, int]]:
    if cut not in lines[number]:
        return
    head = [cell for cell, _ in _cells(lines[number], cut)]
    if not 2 <= len(head) <= 40 or not all(map(_HEAD.fullmatch, head)):
        return
    if number and len(_cells(lines[number - 1], cut)) == len(head):
        return  # a row
    kinds = {
        place: kind for place, cell in enumerate(head) if (kind := _kind_of(cell.strip("\"'`*").replace(" ", "_")))
    }
    if not kinds:
        return
    for below in range(number + 1, min(len(lines), number + _MOST_ROWS)):
        cells = _cells(lines[below], cut)
        if set(lines[below].strip()) <= set("|+-=: ") and lines[below].strip():
            continue
        if len(cells) != len(head):
            return
        for place, kind in kinds.items():
            cell, start = cells[place]
            value = cell.strip("\"'`")
            chosen = " " not in value and is_given(value)
            if not stands_for_another(value) and (is_drawn(value) if kind == "key" else chosen):
                begin = starts[below] + start + cell.index(value)
                yield begin, begin + len(value)


def _cells(line: str, cut: str) -> list[tuple[str, int]]:
    """Return the cells of a line, each with where it begins in it."""
    pattern = r"[ ]{2,}" if cut == "  " else rf"[ ]*{re.escape(cut)}[ ]*"
    cells: list[tuple[str, int]] = []
    at = len(line) - len(line.lstrip())
    for one in [*re.compile(pattern).finditer(line, at), None]:
        end = one.start() if one else len(line)
        cell = line[at:end]
        bare = cell.strip()
        cells.append((bare, at + len(cell) - len(cell.lstrip())))
        at = one.end() if one else end
    if cut == "|":
        cells = cells[not cells[0][0] : len(cells) - (not cells[-1][0])]
    return cells
