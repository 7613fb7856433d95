"""Words on a canvas: cleaned once, coded so that the real Mermaid shows exactly them, and decoded again.

Guarantees: `clean` is idempotent; `decode(encode(text)) == text` for every cleaned text; what Mermaid draws
for `encode(text)` is `text`, but for invisible word joiners (U+2060) that keep it from reading a sequence.

The traps, each met with Mermaid 11. Entities are `#quot;` and `#35;`, so `#` before `word;` must be coded.
`%%{` anywhere is a directive. A line with `direction LR` is a statement, even inside quotes. A line with
`style` or `classDef` loses its last `;` when a `:` and a `#` stand in one word. A quote followed by a
backtick opens Markdown. `\\n`, `$$` and `fa:fa-x` are read after entities are decoded, so only a joiner
breaks them up; and `ﬂ°` and `¶ß` are how it spells entities inside.
"""

from __future__ import annotations

import html
import re

__all__ = ["clean", "decode", "encode"]

_JOINER = "\u2060"
# Explicit bidi embeddings, overrides and isolates: cut in half, one would turn round the rest of the line.
_DROPPED = re.compile(f"[{_JOINER}\ufeff\u202a-\u202e\u2066-\u2069]")
_UNWRITABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_CODED = re.compile(r'["<]|&(?=[#A-Za-z])|#(?=\w+;)|^`|%(?=%)', re.ASCII)
_BROKEN_UP = re.compile(
    r"\\(?=n)|\$(?=\$)|(?<=fa)(?=:fa-)|(?<=fa[bklrs])(?=:fa-)|ﬂ(?=°)|¶(?=ß)|direction(?=\s+(?:TB|BT|RL|LR|TD))"
)
_COLON = re.compile(r":(?=\S*#)")
_NAMES = {'"': "#quot;", "<": "#lt;", "&": "#amp;"}
_ENTITY = re.compile(r"#(\w+);", re.ASCII)


def clean(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters, an ellipsis where it was cut.

    Control characters and runs of white space become one space; lone surrogates, which no file can hold,
    become U+FFFD; word joiners, BOMs and bidi controls go. ZWJ, LRM and RLM stay: scripts and emoji need them.
    """
    text = _CONTROL.sub(" ", _UNWRITABLE.sub("\ufffd", _DROPPED.sub("", text)))
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def encode(text: str) -> str:
    """Return a cleaned text as it stands between the quotes of a Mermaid label."""
    coded = _CODED.sub(lambda found: _NAMES.get(found[0], f"#{ord(found[0])};"), text)
    coded = _BROKEN_UP.sub(lambda found: f"{found[0]}#{ord(_JOINER)};", coded)
    return _COLON.sub("#58;", coded)


def decode(label: str) -> str:
    """Return the text that a label shows; an entity that does not exist stays as it is written."""
    return _ENTITY.sub(_character, label).replace(_JOINER, "")


def _character(found: re.Match[str]) -> str:
    name = found[1]
    if not name.isdecimal():
        return html.unescape(f"&{name};").replace(f"&{name};", found[0])
    code = int(name) if len(name) <= 7 else 0
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else found[0]
