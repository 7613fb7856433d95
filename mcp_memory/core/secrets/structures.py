"""Secrets whose name stands elsewhere: in the line above, in the head of a column, in another attribute.

`structures.toml` is a table: the words that a text must have, a pattern, and a check of its value. The code finds the
places for which a pattern is not enough: secrets of Kubernetes, YAML blocks, input fields of pages, inserted rows, and
tables.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import accumulate, islice, pairwise

from mcp_memory.core.secrets.assignments import DICEWARE, HINTS, PASSWORD_HINTS, name_at
from mcp_memory.core.secrets.values import (
    is_chosen,
    is_drawn,
    is_given,
    is_phrase,
    is_word,
    may_describe,
    reads_as_words,
    stands_for_another,
)

Has = Callable[[str], bool]
"""Tells whether a string is in a text."""


@dataclass(frozen=True)
class _Structure:
    """Where programs keep secrets. A text that lacks one of `needs`, in small letters, has none of these."""

    needs: tuple[str, ...]
    source: str
    takes: Callable[[re.Match[str]], bool]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)


def _is_named(found: re.Match[str]) -> bool:
    """Tell whether the name that a structure gives is a secret's, and the value one."""
    return _is_secret(found["value"], found["name"]) and not reads_as_words(found["value"])


def _is_assigned(found: re.Match[str]) -> bool:
    """Tell the same where the structure assigns, so that the name is enough."""
    return _is_secret(found["value"], found["name"])


def _is_given_for(found: re.Match[str]) -> bool:
    """Tell the same where a pair may also be a field with its label, so that a password must be no word."""
    return _is_assigned(found) and (_kind_of(found["name"]) == "key" or is_given(found["value"]))


def _is_any(found: re.Match[str]) -> bool:
    """Tell whether a value that can only be a secret is one, and stands for no other."""
    return is_given(found["value"]) and not stands_for_another(found["value"])


def _is_no_placeholder(found: re.Match[str]) -> bool:
    return not stands_for_another(found["value"])


_SIGNED = re.compile(r"[?&](?:sv|se|sp)=")

_CHECKS: dict[str, Callable[[re.Match[str]], bool]] = {
    "any": _is_any,
    "assigned": _is_assigned,
    "cookie": lambda found: is_drawn(found["value"], 16) and "-" not in found["value"],
    "encoded lines": lambda found: is_drawn(found["value"].split("\n")[0]),
    "given": _is_given_for,
    "named": _is_named,
    "no placeholder": _is_no_placeholder,
    "random": lambda found: is_drawn(found["value"], 8),
    "sensitive": lambda found: (
        '"sensitive": true' in found.string[found.start() : found.end() + 120] and _is_no_placeholder(found)
    ),
    "signed": lambda found: (
        bool(_SIGNED.search(found.string, max(0, found.start() - 400), found.end() + 400)) and _is_any(found)
    ),
    "signing key": lambda found: (
        (_is_any(found) or any(map(str.isdigit, found["value"]))) and _is_no_placeholder(found)
    ),
}

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
_INPUT = re.compile(r"(?i)<input\b(?P<inside>[^<>]{1,600})>")
_IS_PASSWORD = re.compile(r"(?i)\b(?:type|name|id|autocomplete)\s*=\s*[\"']?[\w-]*password")
_ITS_VALUE = re.compile(r"(?i)\bvalue\s*=\s*(?P<quote>\\?[\"'])?(?P<value>(?(quote)[^\"'\\]{1,500}|[^\s\"'>]{1,500}))")
_INSERT = re.compile(
    r"(?i)insert into [\w.`\"]{1,80}\s?\((?P<names>[^()]{3,600})\)\s*values\s*"
    r"(?P<rows>(?:\([^()\n]{0,2000}\)\s*,?\s*){1,50})"
)
_FIELD = re.compile(r"'((?:[^']|'')*)'|[^,()']+")
_HEAD = re.compile(r"[\"'`*]{0,2}[^\W\d][\w .#/-]{0,30}[\"'`*]{0,2}")
_PARTS_OF_NAMES = ("pass", "secret", "token", "key", "pwd", "credential")
_WORDS_OF_NAMES = (
    *_PARTS_OF_NAMES,
    *(
        hint
        for hint in PASSWORD_HINTS
        if not any(part in hint for part in _PARTS_OF_NAMES) and (len(hint) > 4 or not hint.isascii())
    ),
)
_OF_NAMES = re.compile("|".join(_WORDS_OF_NAMES))
_LONGEST_LINE, _MOST_ROWS = 400, 2_000
_RESOURCE = re.compile(r"[a-z]{3,14}(?:-[a-z0-9]{1,12}){1,8}")
_LOGIN = re.compile(
    r"(?i)[\"'`]?(?:user(?:[_ ]?(?:name|id))?|login|e-?mail|account|benutzer(?:name)?|usuario|utilisateur|utente"
    r"|usuário|gebruiker|логин|用户名?|ユーザー名?)[\"'`]?"
)
_TABLE_ROW = re.compile(r"(?i)<tr\b")
_CELL = re.compile(r"(?i)<t[hd]\b[^<>]{0,300}>([^<]*(?:<(?!/?t[hdr]\b)[^<]*)*)</t[hd]>")
_TAG = re.compile(r"<[^<>]{0,300}>")
_KEYED_BY = re.compile(r"(?i:(?:api|access|auth|bearer|refresh|session)_?-?(?:keys|tokens)|secrets|passwords|passwds)")
_KEYED = re.compile(rf"[\"'](?P<name>{_KEYED_BY.pattern})[\"']\s{{0,3}}:\s{{0,3}}\{{")
_PART_OF_JSON = re.compile(r"\"(?P<name>[^\"\\\n]{6,300})\"(?=\s{0,3}:)|\"(?:[^\"\\\n]|\\.){0,4000}\"|[{}\[\]]")
_LONGEST_OBJECT, _MOST_OBJECTS = 20_000, 200


def structured(text: str, small: str, has: Has) -> Iterator[tuple[int, int]]:
    """Yield the spans of secrets that the structure around them names.

    `small` is the text in lower case, and `has` tests for substrings of it.
    """
    named = any(map(has, _WORDS_OF_NAMES))
    places = _structures_by_need()
    for place in (place for need in filter(has, places) for place in places[need]):
        if (named or place.takes not in (_is_named, _is_assigned)) and all(map(has, place.needs[1:])):
            for found in place.pattern.finditer(text):
                if place.takes(found):
                    yield found.span("value")
    if has("<input"):
        yield from _fields(text)
    if ": |" in text or ": >" in text:
        yield from _blocks(text)
    if has("secret") and has("kind:"):
        yield from _of_kubernetes(text)
    if has("insert into"):
        yield from _inserted(text)
    if named:
        yield from _columns(text, small)
        if has("</tr"):
            yield from _of_html(text, small)
        yield from _members(text)


@cache
def _structures_by_need() -> dict[str, list[_Structure]]:
    """Return the structures by the first word that each needs."""
    text = (resources.files("mcp_memory.core.secrets") / "structures.toml").read_text(encoding="utf-8")
    grouped: dict[str, list[_Structure]] = {}
    for row in tomllib.loads(text)["structure"]:
        pattern = row["pattern"] if isinstance(row["pattern"], str) else "".join(row["pattern"])
        for needs in row["needs_any"] if "needs_any" in row else [row["needs"]]:
            grouped.setdefault(needs[0], []).append(_Structure(tuple(needs), pattern, _CHECKS[row["check"]]))
    return grouped


def _is_secret(value: str, name: str) -> bool:
    kind = _kind_of(name)
    if kind is None or stands_for_another(value, name):
        return False
    if kind == "key":
        return is_drawn(value) or is_phrase(value, DICEWARE)
    return len(value) >= 4 and (not value.isdigit() or len(value) >= 6) and (" " not in value or is_phrase(value))


def _kind_of(name: str) -> str | None:
    """Return whether a name denotes a password or a key; None for neither."""
    small = name.lower()
    for hint in HINTS if _OF_NAMES.search(small) or not small.isascii() else ():
        at = small.find(hint)
        found = name_at(name, at, hint) if at >= 0 else None
        if found is not None and not found.is_short and found.start == 0 and found.end == len(name):
            return "password" if found.of_password else "key"
    return None


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


def _columns(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield the cells of columns whose head is the name of a secret, in tables that cut their lines alike."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    numbers = {bisect_right(starts, found.start()) - 1 for found in _OF_NAMES.finditer(small)}
    for number in sorted(numbers):
        if len(lines[number]) <= _LONGEST_LINE:
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
    of_logins = cut in ",;\t" and any(map(_LOGIN.fullmatch, head))
    for below in range(number + 1, min(len(lines), number + _MOST_ROWS)):
        cells = _cells(lines[below], cut)
        if set(lines[below].strip()) <= set("|+-=: ") and lines[below].strip():
            continue
        if len(cells) != len(head):
            return
        for place, kind in kinds.items():
            cell, start = cells[place]
            value = cell.strip("\"'`")
            if _is_cell(value, kind) or (of_logins and kind == "password" and _is_word_of_login(value)):
                begin = starts[below] + start + cell.index(value)
                yield begin, begin + len(value)


def _is_word_of_login(value: str) -> bool:
    """Tell whether a word beside a login is its password: programs write such lists, and nothing else there."""
    return (
        len(value) >= 6
        and value.isalpha()
        and value.islower()
        and not (stands_for_another(value) or may_describe(value))
    )


def _of_html(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield the cells of a table of HTML whose head, its first row, is the name of a secret."""
    for begin, end in _tables(small):
        starts = [one.start() for one in _TABLE_ROW.finditer(text, begin, end)]
        rows = [[*_CELL.finditer(text, *row)] for row in pairwise([*starts, end])]
        kinds = [_kind_of(_TAG.sub("", cell[1]).strip().replace(" ", "_")) for cell in rows[0]] if rows else []
        for row in rows[1:] if any(kinds) else ():
            for kind, cell in zip(kinds, row, strict=False):
                value = max(_TAG.split(cell[1]), key=len).strip()
                if kind and _is_cell(value, kind):
                    start = cell.start(1) + cell[1].index(value)
                    yield start, start + len(value)


def _tables(small: str) -> Iterator[tuple[int, int]]:
    end = 0
    while (close := small.find("</table", end)) >= 0:
        begin = small.rfind("<table", end, close)
        if begin >= 0:
            yield begin, close
        end = close + 1


def _is_cell(value: str, kind: str) -> bool:
    """Tell whether a cell of a column of passwords or keys holds one."""
    return not stands_for_another(value) and (
        is_phrase(value, DICEWARE)
        or (is_drawn(value) and not _is_resource(value) if kind == "key" else " " not in value and is_given(value))
    )


def _is_resource(value: str) -> bool:
    """Tell whether a value is the name of a secret in a listing: small words and parts joined by hyphens."""
    return _RESOURCE.fullmatch(value) is not None and is_word(value.partition("-")[0])


def _members(text: str) -> Iterator[tuple[int, int]]:
    """Yield the names of the members of an object that is keyed by secrets: `"api_keys": {"…": "Otto"}`."""
    for found in islice(_KEYED.finditer(text), _MOST_OBJECTS):
        depth, at = 1, found.end()
        for part in _PART_OF_JSON.finditer(text, at, at + _LONGEST_OBJECT):
            depth += (part[0] in "{[") - (part[0] in "}]")
            if depth == 0:
                break
            if depth == 1 and part["name"] and is_secret_member(found["name"], part["name"]):
                yield part.span("name")


def is_secret_member(container: str, name: str) -> bool:
    """Tell whether a member's name is itself a secret, given the name of its container."""
    if not _KEYED_BY.fullmatch(container) or stands_for_another(name):
        return False
    return is_drawn(name) or (container.lower().startswith("passw") and is_chosen(name))


def _cells(line: str, cut: str) -> list[tuple[str, int]]:
    """Return the cells of a line, each with where it begins in it."""
    pattern = r"[ ]{2,}" if cut == "  " else rf"[ ]*{re.escape(cut)}[ ]*"
    if cut in ",;" and '"' in line and len(line) <= _LONGEST_LINE:
        pattern += r'(?=(?:[^"]*"[^"]*")*[^"]*$)'  # not within quotes
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
