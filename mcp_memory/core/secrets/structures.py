"""Secrets named by their structure: in the line above, in the header of a column, in another attribute.

`structures.toml` is a table: the words that a text must contain, a pattern, and a check of its value. The code covers
structures that need more than a pattern: secrets of Kubernetes, YAML blocks, input fields of pages, inserted rows, and
tables.
"""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import islice, pairwise

from mcp_memory.core.secrets.assignments import DICEWARE, HINTS, PASSWORD_HINTS, name_at
from mcp_memory.core.secrets.places import Places, places_of
from mcp_memory.core.secrets.values import (
    is_chosen,
    is_chosen_or_phrase,
    is_phrase,
    is_placeholder,
    is_random_token,
    is_word,
    may_describe,
    reads_as_words,
)


@dataclass(frozen=True)
class _Structure:
    """A structure in which programs keep secrets. A text that lacks any of `needs`, in lower case, cannot contain it.

    If it `begins` with the "word", each match starts with the first of `needs`, or with its "line" or the "line above",
    so the pattern is tried only there. `takes` decides whether the value of a match is a secret.
    """

    needs: tuple[str, ...]
    source: str
    takes: Callable[[re.Match[str]], bool]
    begins: str | None

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)

    def found_in(self, text: str, places: Places) -> Iterator[tuple[int, int]]:
        """Yield the spans of the secret values."""
        starts: Iterable[int] = places[self.needs[0]]
        if self.begins in ("line", "line above"):
            starts = _line_starts(text, starts)
        if self.begins == "line above":
            starts = _line_starts(text, (max(0, start - 1) for start in starts))
        for match in _matches_at(self.pattern, text, starts) if self.begins else self.pattern.finditer(text):
            if self.takes(match):
                yield match.span("value")


def _matches_at(pattern: re.Pattern[str], text: str, starts: Iterable[int]) -> Iterator[re.Match[str]]:
    """Yield the matches that `finditer` yields, if each match begins at one of the positions, which are in order."""
    end = 0
    for start in starts:
        if start >= end and (match := pattern.match(text, start)):
            yield match
            end = match.end()


def _line_starts(text: str, places: Iterable[int]) -> Iterator[int]:
    """Yield the start of each line that has one of the positions, which are in order."""
    start, at = -1, 0
    for place in places:
        line = text.rfind("\n", at, place) + 1 or max(start, 0)
        at = place
        if line != start:
            start = line
            yield line


def _is_named(match: re.Match[str]) -> bool:
    """Return whether the structure names a secret, and the value does not read as words."""
    return _is_secret(match["value"], match["name"]) and not reads_as_words(match["value"])


def _is_assigned(match: re.Match[str]) -> bool:
    """Return whether the structure names a secret. It is an assignment, so the name is enough."""
    return _is_secret(match["value"], match["name"])


def _is_given_secret(match: re.Match[str]) -> bool:
    """Return whether the structure names a secret. It may be a labelled field, so a password must not be a word."""
    return _is_assigned(match) and (_kind_of(match["name"]) == "key" or is_chosen_or_phrase(match["value"]))


def _is_secret_value(match: re.Match[str]) -> bool:
    """Return whether the value, in a position for secrets only, is a secret and not a placeholder."""
    return is_chosen_or_phrase(match["value"]) and not is_placeholder(match["value"])


def _is_no_placeholder(match: re.Match[str]) -> bool:
    return not is_placeholder(match["value"])


def _are_codes(match: re.Match[str]) -> bool:
    """Return whether most lines have digits and the text does not read as words."""
    lines = match["value"].split()
    return 2 * sum(any(map(str.isdigit, line)) for line in lines) > len(lines) and not reads_as_words(match["value"])


_SIGNED = re.compile(r"[?&](?:sv|se|sp)=")

_CHECKS: dict[str, Callable[[re.Match[str]], bool]] = {
    "any": _is_secret_value,
    "assigned": _is_assigned,
    "codes": _are_codes,
    "cookie": lambda match: is_random_token(match["value"], 16) and "-" not in match["value"],
    "encoded lines": lambda match: is_random_token(match["value"].split("\n")[0]),
    "given": _is_given_secret,
    "named": _is_named,
    "no placeholder": _is_no_placeholder,
    "random": lambda match: is_random_token(match["value"], 8),
    "sensitive": lambda match: (
        '"sensitive": true' in match.string[match.start() : match.end() + 120] and _is_no_placeholder(match)
    ),
    "signed": lambda match: (
        bool(_SIGNED.search(match.string, max(0, match.start() - 400), match.end() + 400)) and _is_secret_value(match)
    ),
    "signing key": lambda match: (
        (_is_secret_value(match) or any(map(str.isdigit, match["value"]))) and _is_no_placeholder(match)
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
_NEXT_OBJECT = re.compile(r"(?m)^[ \t]*(?:---[ \t]*$|- apiVersion:|(?P<version>apiVersion:))")
_ROW = re.compile(r"(?m)^[ \t]+[\w.-]{1,80}:[ \t]+[\"']?(?P<value>[^\s\"']{4,4096})[\"']?[ \t]*$")
_END_OF_KEY = re.compile(r"(?i)-----END (?:[A-Z0-9]{1,10} ){0,3}PRIVATE KEY-----")
_LINE_OF_KEY = re.compile(r"[ \t\"']*[A-Za-z0-9+/]{4,100}={0,2}[\"',\r]*")
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
_WORDS_OF_NAMES = frozenset(
    hint
    for hint in PASSWORD_HINTS
    if not any(part in hint for part in _PARTS_OF_NAMES) and (len(hint) > 4 or not hint.isascii())
).union(_PARTS_OF_NAMES)
_OF_NAMES = re.compile("|".join(_WORDS_OF_NAMES))
_LONGEST_LINE, _MAX_ROWS = 400, 2_000
_RESOURCE = re.compile(r"[a-z]{3,14}(?:-[a-z0-9]{1,12}){1,8}")
_LOGIN = re.compile(
    r"(?i)[\"'`]?(?:user(?:[_ ]?(?:name|id))?|login|e-?mail|account|benutzer(?:name)?|usuario|utilisateur|utente"
    r"|usuário|gebruiker|логин|用户名?|ユーザー名?)[\"'`]?"
)
_TABLE_ROW = re.compile(r"(?i)<tr\b")
_CELL = re.compile(r"(?i)<t[hd]\b[^<>]{0,300}>([^<]*(?:<(?!/?t[hdr]\b)[^<]*)*)</t[hd]>")
_TAG = re.compile(r"<[^<>]{0,300}>")
_KEYED_BY = re.compile(r"(?i:(?:api|access|auth|bearer|refresh|session)_?-?(?:keys|tokens)|secrets|passwords|passwds)")
_LONGEST_KEYED = 24
_KEYED_WORDS = frozenset({"keys", "tokens", "secrets", "passwords", "passwds"})
_KEYED = re.compile(rf"[\"'](?P<name>{_KEYED_BY.pattern})[\"']\s{{0,3}}:\s{{0,3}}\{{")
_PART_OF_JSON = re.compile(r"\"(?P<name>[^\"\\\n]{6,300})\"(?=\s{0,3}:)|\"(?:[^\"\\\n]|\\.){0,4000}\"|[{}\[\]]")
_LONGEST_OBJECT, _MAX_OBJECTS = 20_000, 200
_LONGEST_WEB_KEY = 8_000  # characters: an RSA key of 4096 bits has 3,300
_PRIVATE_MEMBER = re.compile(
    r"(?<![\w-])[\"']?(?:d|p|q|dp|dq|qi|k)[\"']?\s{0,3}:\s{0,3}[\"']?(?P<value>[\w-]{16,1600})(?![\w-])"
)
_MARKS_OF_CELL = "\"'`*"
_MARKS_OF_LABEL = "\"'`*_:： "
_REMARK = re.compile(r"\([^()]{0,40}\)|<[^<>]{0,40}>")
_LONGEST_LABEL = 40
_BEHIND_TAGS = re.compile(
    r"(?P<label>[\w -]{1,30}(?:\s?\([^()<>]{0,30}\))?)\s{0,3}[:：]?\s{0,3}"
    r"(?:</?[A-Za-z][^<>]{0,200}>\s{0,40}[:：]?\s{0,3}){1,6}(?P<value>[^<>\n]{4,200}?)\s{0,40}<"
)


def structured_values(text: str, small: str, places: Places) -> Iterator[tuple[int, int]]:
    """Yield the spans of secrets that are named by the structure around them.

    `small` is the text in lower case, and `places` has the positions of `needed_words` in it.
    """
    named = not _WORDS_OF_NAMES.isdisjoint(places)
    structures = _structures_by_need()
    for need in structures.keys() & places.keys():
        for structure in structures[need]:
            if (named or structure.takes not in (_is_named, _is_assigned)) and all(
                word in places for word in structure.needs
            ):
                yield from structure.found_in(text, places)
    if "<input" in places:
        yield from _input_values(text, places["<input"])
    if ": |" in text or ": >" in text:
        yield from _yaml_block_lines(text, places)
    if "secret" in places and "kind:" in places:
        yield from _kubernetes_values(text, places["kind:"])
    if "-----end" in places:
        yield from _ends_of_keys(text, places["-----end"])
    if "insert into" in places:
        yield from _inserted_values(text, places["insert into"])
    if named:
        yield from _table_cells(text, places)
        if "</tr" in places:
            yield from _html_cells(text, small)
        if "</" in text:
            yield from _values_in_tags(text, places)
    if "kty" in places:
        yield from _web_key_members(text, places["kty"])
    if not _KEYED_WORDS.isdisjoint(places):
        yield from _keyed_members(text, places)


@cache
def needed_words() -> frozenset[str]:
    """Return the strings whose positions `structured_values` needs."""
    needs = (
        need for structures in _structures_by_need().values() for structure in structures for need in structure.needs
    )
    return frozenset(
        (*needs, *_WORDS_OF_NAMES, *_KEYED_WORDS, "<input", "secret", "kind:", "insert into", "</tr", "kty", "-----end")
    )


@cache
def _structures_by_need() -> dict[str, list[_Structure]]:
    """Return the structures by their first needed word."""
    text = (resources.files("mcp_memory.core.secrets") / "structures.toml").read_text(encoding="utf-8")
    grouped: dict[str, list[_Structure]] = {}
    for row in tomllib.loads(text)["structure"]:
        pattern = row["pattern"] if isinstance(row["pattern"], str) else "".join(row["pattern"])
        for needs in row["needs_any"] if "needs_any" in row else [row["needs"]]:
            grouped.setdefault(needs[0], []).append(
                _Structure(tuple(needs), pattern, _CHECKS[row["check"]], row.get("begins"))
            )
    return grouped


def _is_secret(value: str, name: str) -> bool:
    kind = _kind_of(name)
    if kind is None or is_placeholder(value, name):
        return False
    if kind == "key":
        return is_random_token(value) or is_phrase(value, DICEWARE, of_key=True)
    return len(value) >= 4 and (not value.isdigit() or len(value) >= 6) and (" " not in value or is_phrase(value))


def _kind_of(name: str) -> str | None:
    """Return `password` or `key` for the name of either; None for any other name."""
    small = name.lower()
    for hint in HINTS if _OF_NAMES.search(small) or not small.isascii() else ():
        at = small.find(hint)
        secret_name = name_at(name, at, hint) if at >= 0 else None
        if (
            secret_name is not None
            and not secret_name.is_short
            and secret_name.start == 0
            and secret_name.end == len(name)
        ):
            return "password" if secret_name.of_password else "key"
    return None


def _inserted_values(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the spans of secret values in SQL inserts, in columns with the name of a secret."""
    for statement in _matches_at(_INSERT, text, places):
        kinds = [_kind_of(name.strip(' `"\n\t')) for name in statement["names"].split(",")]
        for row in re.finditer(r"\(([^()\n]*)\)", statement["rows"]):
            fields = [part for part in _FIELD.finditer(row[1]) if part[0].strip()]
            for kind, field in zip(kinds, fields, strict=False):
                value = field[1] or ""
                if kind and is_chosen_or_phrase(value) and not is_placeholder(value):
                    start = statement.start("rows") + row.start(1) + field.start(1)
                    yield start, start + len(value)


def _input_values(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    for field in _matches_at(_INPUT, text, places):
        inside = field["inside"]
        value = _ITS_VALUE.search(inside) if _IS_PASSWORD.search(inside) else None
        if value and len(value["value"]) >= 4 and not is_placeholder(value["value"], "password"):
            start = field.start("inside") + value.start("value")
            yield start, start + len(value["value"])


def _yaml_block_lines(text: str, places: Places) -> Iterator[tuple[int, int]]:
    """Yield the spans of secret lines in YAML blocks with the name of a secret."""
    starts = {_line_start(text, place) for place in places_of(_WORDS_OF_NAMES.union(HINTS), places)}
    for start in sorted(starts - {-1}):
        block = _BLOCK.match(text, start)
        if block is None or _kind_of(block["name"]) is None:
            continue
        for line in re.finditer(r"[^\s].*", block["value"]):
            if _is_secret(line[0].rstrip(), block["name"]) or is_random_token(line[0].rstrip()):
                start = block.start("value") + line.start()
                yield start, start + len(line[0].rstrip())


def _kubernetes_values(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    for secret in _matches_at(_KUBERNETES, text, _line_starts(text, places)):
        above = [*_NEXT_OBJECT.finditer(text, 0, secret.start())]
        below = list(islice(_NEXT_OBJECT.finditer(text, secret.end()), 2))
        if below and below[0]["version"] and not (above and above[-1]["version"]):
            del below[0]  # the members of an object have no order: its own version
        begin = above[-1].end() if above else 0
        end = below[0].start() if below else len(text)
        for data in _DATA.finditer(text, max(begin, secret.start() - 4_000), min(end, secret.end() + 8_000)):
            for row in _ROW.finditer(data["rows"]) if data["indent"] == secret["indent"] else ():
                if not is_placeholder(row["value"]):
                    start = data.start("rows") + row.start("value")
                    yield start, start + len(row["value"])


def _ends_of_keys(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the last lines of private keys whose beginning was cut off."""
    end = 0
    for place in places:
        if _END_OF_KEY.match(text, place) is None:
            continue
        start = at = text.rfind("\n", end, place) + 1
        if text[start:place].strip():
            continue  # within a line, as in code
        while at > end:
            line = text.rfind("\n", end, at - 1) + 1 or end
            if _LINE_OF_KEY.fullmatch(text, line, at - 1) is None:
                break
            start = at = line
        if any(map(is_random_token, text[start:place].split())):
            yield start, place
        end = place


def _table_cells(text: str, places: Places) -> Iterator[tuple[int, int]]:
    """Yield the spans of secret cells in columns with the name of a secret, in tables with uniform separators."""
    for start in sorted({_line_start(text, place) for place in places_of(_WORDS_OF_NAMES, places)}):
        line = _line_at(text, start)
        if start >= 0 and len(line) <= _LONGEST_LINE:
            if "|" in line:
                yield from _cells_after_labels(start, line)
            for cut in ("|", "\t", ",", ";", "  "):
                if cut in line:
                    yield from _cells_of_table(text, start, line, cut)


def _cells_after_labels(start: int, line: str) -> Iterator[tuple[int, int]]:
    """Yield the span of a secret cell after the name of a secret, as in a table with names: `| Password | … |`."""
    for (label, _), (cell, at) in pairwise(_cells(line, "|")):
        kind = _kind_of_label(label)
        value = cell.strip(_MARKS_OF_CELL)
        if kind and value and _is_cell(value, kind):
            begin = start + at + cell.index(value)
            yield begin, begin + len(value)


def _kind_of_label(label: str) -> str | None:
    """Return the kind of secret that a label names; words may precede the name, and a remark may follow it."""
    bare = _REMARK.sub("", label).strip(_MARKS_OF_LABEL).replace(" ", "_")
    if len(bare) > _LONGEST_LABEL:
        return None
    if kind := _kind_of(bare):
        return kind
    if bare.isascii():
        return None
    small = bare.lower()
    hint = next((hint for hint in HINTS if not hint.isascii() and small.endswith(hint)), None)
    return None if hint is None else "password" if hint in PASSWORD_HINTS else "key"


def _values_in_tags(text: str, places: Places) -> Iterator[tuple[int, int]]:
    """Yield the spans of values after a name and tags: `<dt>Password</dt><dd>…</dd>`, `<b>Password:</b> …`."""
    for place in places_of(_WORDS_OF_NAMES, places):
        match = _BEHIND_TAGS.match(text, place)
        if match is None:
            continue
        label = text[max(text.rfind(">", max(0, place - 40), place) + 1, place - 40) : match.end("label")]
        kind = _kind_of_label(label)
        value = html.unescape(match["value"]).strip(_MARKS_OF_CELL) if kind else ""
        if kind and _is_cell(value, kind):
            yield match.span("value")


def _web_key_members(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the private members of JSON web keys (RFC 7518), which are recognised by their type `kty`."""
    end = 0
    for place in places:
        begin = text.rfind("{", max(end, place - _LONGEST_WEB_KEY), place)
        if place < end or begin < 0:
            continue
        end = text.find("}", place, place + _LONGEST_WEB_KEY)
        end = end if end >= 0 else min(len(text), place + _LONGEST_WEB_KEY)
        for member in _PRIVATE_MEMBER.finditer(text, begin, end):
            yield member.span("value")


def _line_start(text: str, place: int) -> int:
    """Return the start of the line of a character; -1 if the line is too long for a table header."""
    least = max(0, place - _LONGEST_LINE - 1)
    start = text.rfind("\n", least, place) + 1
    return start if start or least == 0 else -1


def _line_at(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)]


def _cells_of_table(text: str, start: int, line: str, cut: str) -> Iterator[tuple[int, int]]:
    head = [cell for cell, _ in _cells(line, cut)]
    if not 2 <= len(head) <= 40 or not all(map(_HEAD.fullmatch, head)):
        return
    above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]
    if not _is_rule(above) and len(_cells(above, cut)) == len(head):
        return  # a row
    kinds = {
        place: kind for place, cell in enumerate(head) if (kind := _kind_of(cell.strip("\"'`*").replace(" ", "_")))
    }
    if not kinds:
        return
    of_logins = cut in ",;\t" and any(map(_LOGIN.fullmatch, head))
    for _ in range(_MAX_ROWS):
        start += len(line) + 1
        if start > len(text):
            return
        line = _line_at(text, start)
        cells = _cells(line, cut)
        if _is_rule(line):
            continue
        if len(cells) != len(head):
            return
        for place, kind in kinds.items():
            cell, at = cells[place]
            value = cell.strip("\"'`")
            if _is_cell(value, kind) or (of_logins and kind == "password" and _is_word_of_login(value)):
                begin = start + at + cell.index(value)
                yield begin, begin + len(value)


def _is_rule(line: str) -> bool:
    """Return whether a table line only separates rows."""
    return bool(line.strip()) and set(line.strip()) <= set("|+-=: ")


def _is_word_of_login(value: str) -> bool:
    """Return whether a word next to a login is its password: any lower-case word of six or more letters.

    Only programs write such lists, so the password may be an ordinary word, except a placeholder or description.
    """
    return (
        len(value) >= 6 and value.isalpha() and value.islower() and not (is_placeholder(value) or may_describe(value))
    )


def _html_cells(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of secret cells in HTML table columns whose header, in the first row, is the name of a secret."""
    for begin, end in _html_tables(small):
        starts = [table_row.start() for table_row in _TABLE_ROW.finditer(text, begin, end)]
        rows = [[*_CELL.finditer(text, *row)] for row in pairwise([*starts, end])]
        kinds = [_kind_of(_TAG.sub("", cell[1]).strip().replace(" ", "_")) for cell in rows[0]] if rows else []
        for row in rows[1:] if any(kinds) else ():
            for kind, cell in zip(kinds, row, strict=False):
                value = max(_TAG.split(cell[1]), key=len).strip()
                if kind and _is_cell(value, kind):
                    start = cell.start(1) + cell[1].index(value)
                    yield start, start + len(value)


def _html_tables(small: str) -> Iterator[tuple[int, int]]:
    end = 0
    while (close := small.find("</table", end)) >= 0:
        begin = small.rfind("<table", end, close)
        if begin >= 0:
            yield begin, close
        end = close + 1


def _is_cell(value: str, kind: str) -> bool:
    """Return whether a cell in a column of passwords or keys contains a secret."""
    return not is_placeholder(value) and (
        is_phrase(value, DICEWARE)
        or (
            is_random_token(value) and not _is_resource(value)
            if kind == "key"
            else " " not in value and is_chosen_or_phrase(value)
        )
    )


def _is_resource(value: str) -> bool:
    """Return whether a value is the name of a secret, as in a listing: lower-case words and parts joined by hyphens."""
    return _RESOURCE.fullmatch(value) is not None and is_word(value.partition("-")[0])


def _keyed_members(text: str, places: Places) -> Iterator[tuple[int, int]]:
    """Yield the spans of the secret names in an object that is keyed by secrets: `"api_keys": {"…": "Otto"}`."""
    starts = places_of(_KEYED_WORDS, places)
    objects = (_KEYED.search(text, max(0, place - _LONGEST_KEYED), place + _LONGEST_KEYED) for place in starts)
    for container in islice(
        {container.start(): container for container in objects if container}.values(), _MAX_OBJECTS
    ):
        depth, at = 1, container.end()
        for part in _PART_OF_JSON.finditer(text, at, at + _LONGEST_OBJECT):
            depth += (part[0] in "{[") - (part[0] in "}]")
            if depth == 0:
                break
            if depth == 1 and part["name"] and is_secret_member(container["name"], part["name"]):
                yield part.span("name")


def is_secret_member(container: str, name: str) -> bool:
    """Return whether a member's name is itself a secret, given the name of its container."""
    if not _KEYED_BY.fullmatch(container) or is_placeholder(name):
        return False
    return is_random_token(name) or (container.lower().startswith("passw") and is_chosen(name))


def _cells(line: str, cut: str) -> list[tuple[str, int]]:
    """Return the cells of a line, each with its position."""
    pattern = r"[ ]{2,}" if cut == "  " else rf"[ ]*{re.escape(cut)}[ ]*"
    if cut in ",;" and '"' in line and len(line) <= _LONGEST_LINE:
        pattern += r'(?=(?:[^"]*"[^"]*")*[^"]*$)'  # not within quotes
    cells: list[tuple[str, int]] = []
    at = len(line) - len(line.lstrip())
    for gap in [*re.compile(pattern).finditer(line, at), None]:
        end = gap.start() if gap else len(line)
        cell = line[at:end]
        bare = cell.strip()
        cells.append((bare, at + len(cell) - len(cell.lstrip())))
        at = gap.end() if gap else end
    if cut == "|":
        cells = cells[not cells[0][0] : len(cells) - (not cells[-1][0])]
    return cells
