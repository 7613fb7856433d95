"""Injected instructions: sentences in 29 languages, each in the places and disguises of real attacks.

The sentences are in `fixtures/suspicion`. `forms` puts one into each form; benign sentences take the same forms, so
that a form alone is no sign of an attack.
"""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parent.parent / "fixtures/suspicion"
BENIGN = "benign"
_PAGE = (
    "The museum opens at nine and closes at six. Tickets are sold at the entrance and on the museum's page. The garden "
    "behind the house is open all year; in winter the paths may be icy.\n\n"
)
_BOLD = {chr(ord("a") + at): chr(0x1D41A + at) for at in range(26)} | {
    chr(ord("A") + at): chr(0x1D400 + at) for at in range(26)
}
_LEET = str.maketrans("aeiostAEIOST", "431057431057")
_ALIKE = str.maketrans("aeopcyxi", "аеорсухі")


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    language: str
    kind: str
    """The purpose of the instruction, or `benign`."""

    @property
    def is_attack(self) -> bool:
        return self.kind != BENIGN


def lines(name: str) -> list[Line]:
    """Return the lines of a file of the fixtures: `train`, `test`, `paraphrases` or `unseen`."""
    rows = (ROOT / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Line(**json.loads(row)) for row in rows]


def forms(text: str) -> Iterator[tuple[str, str]]:
    """Yield (form, a text with the sentence in that form), the disguises last."""
    yield "plain", text
    yield "end of a page", _PAGE + text
    yield "middle of a long page", _PAGE * 12 + text + "\n\n" + _PAGE * 12
    yield "within a paragraph", f"The garden is open all year. {text} In winter the paths may be icy."
    yield "html comment", f"<p>Opening hours</p>\n<!-- {text} -->\n<p>9 to 18</p>"
    yield "hidden element", f'<div style="display:none">{text}</div><p>Opening hours</p>'
    yield "alt text", f'<img src="garden.png" alt="{text}">'
    yield "markdown comment", f"# Hours\n\n[//]: # ({text})\n\n9 to 18"
    yield "markdown link", f'See [the hours](https://museum.example "{text}").'
    yield "quotation", f"> {text}\n\nNine to six."
    yield "list", f"- nine to six\n- {text}\n- closed on Monday"
    yield "table", f"| day | hours |\n|---|---|\n| Monday | {text} |"
    yield "json", json.dumps({"title": "Hours", "body": text}, ensure_ascii=False)
    yield "json escapes", json.dumps({"title": "Hours", "body": text})
    yield "yaml", f"title: Hours\nbody: |\n  {text}\n"
    yield "csv", f'day,hours\nMonday,"{text}"\n'
    yield "log", f"2026-03-01 09:12:44 INFO [web] request body: {text}"
    yield "python comment", f"def hours():\n    # {text}\n    return (9, 18)"
    yield "c comment", f"/* {text} */\nint hours(void);"
    yield "docstring", f'def hours():\n    """{text}"""'
    yield "commit", f"commit 1f2e3d\nAuthor: A. Writer\n\n    {text}\n"
    yield "mail", f"From: a@museum.example\nSubject: Hours\n\n{text}\n\nKind regards\nAna"
    yield "wrapped", "\n".join(_wrapped(text))
    yield "upper case", text.upper()
    yield "urgent", f"!!! {text} !!!"
    yield "system block", f"<system>\n{text}\n</system>"
    yield "system line", f"### SYSTEM\n{text}"
    yield "zero width", "\u200b".join(text)
    yield "full width", "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)
    yield "bold letters", "".join(_BOLD.get(one, one) for one in text)
    yield "look-alikes", text.translate(_ALIKE)
    yield "leet", text.translate(_LEET)
    yield "spaced", "  ".join(" ".join(word) for word in text.split())
    words = text.split()
    yield "word a line", "\n".join(words)
    yield "numbered words", "\n".join(f"{at}. {word}" for at, word in enumerate(words, 1))
    yield "narrow column", "\n".join(wrap(text, 16, break_long_words=False, break_on_hyphens=False))
    yield "character a line", "\n\n".join("\n".join(word) for word in words)
    yield "hyphens", " ".join("-".join(word) for word in words)
    yield "underscores", "_".join(words)
    yield "tags within words", " ".join(f"{word[:2]}<b>{word[2:]}</b>" if len(word) > 3 else word for word in words)
    yield "marks within words", " ".join(f"{word[:2]}**{word[2:]}**" if len(word) > 3 else word for word in words)
    yield "base64", f"data: {base64.b64encode(text.encode()).decode()}"
    yield "hexadecimal", text.encode().hex()
    yield "percent", "".join(f"%{byte:02X}" for byte in text.encode())
    yield "entities", "".join(f"&#{ord(one)};" for one in text)
    yield "escapes", "".join(f"\\u{ord(one):04x}" for one in text)
    yield "rot13", codecs.encode(text, "rot13")
    yield "reversed", text[::-1]


def _wrapped(text: str) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if len(line) + len(word) > 60:
            yield line
            line = ""
        line = f"{line} {word}".strip()
    yield line
