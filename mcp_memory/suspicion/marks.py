"""Marks of text that poses as something else: as another speaker, as a tool's call or answer, as the wire between them.

Also a picture whose address is filled with what a model knows, and a call of this memory's own tools. Marks are the
same in all languages; what is said in words is for `orders`.

Patterns that are tried only where words stand that each of them needs: most texts have none.

A row is a name, the words, and a pattern. The words are groups, with `&` between them, of which each must have one in
the text: whole words where a script has words, else anywhere.

The tag behind which recalled text stands, and why nothing inside can close it: its name does not occur there.

Whatever reads like the name, in other letters, widths or quotations, loses its dashes. Marks by which a model tells
speakers and tools apart lose their bracket, so that they are words about marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from mcp_memory.language.hidden_characters import plain, revealed

__all__ = ["POSES", "TAG", "breaks_out", "defused", "found"]


_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Row:
    """A pattern, what it is a sign of, and the groups of words that it needs."""

    name: str
    words: Sequence[frozenset[str]]
    parts: Sequence[Sequence[str]]
    """The same for scripts without words, and for signs."""
    source: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source, re.IGNORECASE | re.MULTILINE)


def rows(*given: tuple[str, str, str]) -> tuple[Row, ...]:
    """Return rows of (name, words, pattern)."""
    made: list[Row] = []
    for name, needs, source in given:
        groups = [group.split() for group in needs.split("&")]
        words = [frozenset(one for one in group if _is_word(one)) for group in groups]
        parts = [tuple(one for one in group if not _is_word(one)) for group in groups]
        made.append(Row(name, tuple(words), tuple(parts), source))
    return tuple(made)


def found(table: Iterable[Row], text: str) -> set[str]:
    """Return what a text has signs of."""
    folded = text.casefold()
    words = set(_WORD.findall(folded))
    names: set[str] = set()
    for row in table:
        if row.name in names:
            continue
        if all(
            not whole.isdisjoint(words) or any(part in folded for part in parts)
            for whole, parts in zip(row.words, row.parts, strict=True)
        ) and row.pattern.search(text):
            names.add(row.name)
    return names


def _is_word(text: str) -> bool:
    return text.isalnum() and text[0] < "\u2e80"


POSES = rows(
    (
        "role",
        "<|",
        r"<\|\s*/?\s*(?:im_start|im_end|im_sep|system|user|assistant|start_header_id|end_header_id|eot_id|endoftext|"
        r"begin_of_text|end_of_turn)\s*\|>",
    ),
    (
        "role",
        "start_of_turn end_of_turn _of_turn [inst] [/inst] <<sys <</sys <｜",
        r"</?\s*(?:start_of_turn|end_of_turn)\s*>|\[/?INST\]|<</?SYS>>|<｜(?:User|Assistant|begin▁of▁sentence)｜>",
    ),
    (
        "role",
        "<system </system",
        r"</?\s*system(?:[-_ ](?:prompt|message|reminder|instructions?|override|note|notice|alert))\b[^<>\n]{0,80}>",
    ),
    (
        "role",
        "</",
        r"</\s*(?:user|human|user_query|user_message|assistant|conversation|context|document|untrusted|data|memory|memories)"
        r"\s*>\s*\n?[^\n]{0,40}(?:<\s*/?\s*(?:system|user|human|assistant)|\b(?:system|assistant|human|user)\s*:)",
    ),
    (
        "call",
        "function_calls function_results tool_call tool_calls tool_use tool_result tool_results tool_response"
        " tool_output tool_outputs",
        r"</?\s*(?:antml:)?(?:function_calls|function_results|tool_calls?|tool_use|tool_results?|tool_response"
        r"|tool_outputs?)\b[^<>\n]{0,120}>|[\"']type[\"']\s*:\s*[\"']tool_(?:use|result)[\"']",
    ),
    ("call", "function_call function_call_output", r"[\"']type[\"']\s*:\s*[\"']function_call(?:_output)?[\"']"),
    ("call", "invoke parameter <｜", r"<\s*(?:antml:)?(?:invoke|parameter)\s+name\s*=|<｜tool▁"),
    ("call", "tools & method", r"[\"']method[\"']\s*:\s*[\"']tools/call[\"']"),
    (
        "call",
        "tool function & approved authorized authorised confirmed allowed must should wants asked requested",
        r"^[\W_]{0,4}(?:tool|function)[\s_-](?:result|output|response|call)s?\b[^\n:]{0,40}:[^\n]{0,160}"
        r"\b(?:user|assistant|you)\b[^\n]{0,60}"
        r"\b(?:approved|authori[sz]ed|confirmed|allowed|must|should|wants|asked|requested)\b",
    ),
    (
        "leak",
        "![",
        r"!\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]{0,300}[?&/=](?:\{|\[|<|\$|%7B|YOUR_|SECRET|BASE64)[^)\n]{0,200}\)",
    ),
    (
        "keep",
        "tool function & remember record_turns memory",
        r"\b(?:call|use|invoke)\s+(?:the\s+)?[`'\"]?(?:remember|record_turns|memory)[`'\"]?\s+(?:tool|function)\b",
    ),
)


TAG = "mcp-memory-recall"

_DASH = r"(?:[-_\u2010-\u2015\u2212\ufe58\ufe63\uff0d\s]|&#0*45;|&#x0*2d;|&(?:hyphen|dash|shy);|\\u002d|\\x2d|%2d|\\-)"
_NAME = re.compile(rf"mcp{_DASH}{{0,4}}memory{_DASH}{{0,4}}recall", re.IGNORECASE)
_WORDS = "mcp memory recall"
_CLOSING = re.compile(
    rf"(?:<|&lt;|&#0*60;|&#x0*3c;|\\u003c|\\x3c|%3c|[＜﹤‹〈⟨])\s*[/\\／⁄∕]\s*{_NAME.pattern}", re.IGNORECASE
)
_MARK = re.compile(
    r"<(?=\s*\|)|<(?=\s*+/?\s*+(?:antml:|system\b|user\b|assistant\b|human\b|developer\b|tool|function|invoke\b|parameter\b|"
    r"im_|start_of|end_of|instructions?\b|context\b|memor|recall|data\b|untrusted|<\s*/?SYS))|<(?=｜)|\[(?=/?INST\])",
    re.IGNORECASE,
)


def breaks_out(text: str) -> bool:
    """Tell whether a text has something that reads like the end of recalled text."""
    if "recall" not in text and text.isascii() and "RECALL" not in text.upper():
        return False
    return _CLOSING.search(plain(text)) is not None


def defused(text: str) -> str:
    """Return a text that cannot end the block it stands in, nor pose as another speaker in it; else as it reads."""
    return _MARK.sub(lambda mark: "‹" if mark[0] == "<" else "(", _nameless(revealed(text)))


def _nameless(text: str) -> str:
    text = _NAME.sub(_WORDS, text)
    if text.isascii() or _NAME.search(plain(text)) is None:
        return text
    folded, places = _by_place(text)
    kept, reached = list[str](), 0
    for name in _NAME.finditer(folded):
        start, end = places[name.start()], places[name.end() - 1] + 1
        kept += [text[reached:start], _WORDS]
        reached = end
    return "".join([*kept, text[reached:]])


def _by_place(text: str) -> tuple[str, list[int]]:
    """Return a text character for character as it looks, and where in it each comes from."""
    folded, places = list[str](), list[int]()
    for at, character in enumerate(text):
        shown = character if character.isascii() else _latin_like(unicodedata.normalize("NFKC", character))
        folded += shown
        places += [at] * len(shown)
    return "".join(folded), places


def _latin_like(character: str) -> str:
    return plain(f"a{character}")[1:]  # in a word with a Latin letter look-alikes are read as such
