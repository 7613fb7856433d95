"""What stands in a list where something was put away: short texts that say what it was and where it is.

Guarantees: none is over its limit of tokens; arguments stay the JSON that they were in shape, so that a provider
takes them; what came from outside is masked, and what is ours is fenced so that nobody stores it as said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcp_memory.core.secrets import mask, mask_values
from mcp_memory.core.text import one_line
from mcp_memory.longterm.l0_turns import recall_block
from mcp_memory.shortterm.results.stand_in import stand_in

if TYPE_CHECKING:
    from mcp_memory.core.tokens import TokenCounter

__all__ = ["EARLIER", "earlier_note", "middle", "result_record", "shorter_arguments", "told_before"]

EARLIER = "earlier"
"""The part of the recall block that a note is."""

_STRINGS = (600, 300, 160, 80, 40, 0)
_SAID_HEAD = "What the user said there:"
_SAID_LINE = re.compile(r"- (?:(t\d+) )?(.*)")
_SAID = (400, 200, 100, 50)


def result_record(
    *, node: str, ref: str, summary: str, preview: Callable[[int], str], limit: int, counter: TokenCounter
) -> str:
    """Return what stands for a result: its record, and as much of a preview (made for so many characters) as fits."""
    bare = stand_in(node=node, ref=ref, summary=summary, preview="").rstrip("\n")
    room = limit - counter.count(bare) - 1
    if room < 12:
        return bare if room >= 0 else counter.cut(bare, limit)
    shown = f"{bare}\n{preview(room * 3)}"
    return shown if counter.fits(shown, limit) else counter.cut(shown, limit).rstrip()


def shorter_arguments(text: str, *, ref: str, limit: int, counter: TokenCounter) -> str:
    """Return the arguments with their long texts cut: of the same keys where that is short enough."""
    try:
        given = mask_values(json.loads(text))
    except (ValueError, RecursionError):
        return middle(text, ref=ref, limit=limit, counter=counter)
    for most in _STRINGS:
        shown = json.dumps(_cut(given, most, ref), ensure_ascii=False, separators=(",", ":"))
        if counter.fits(shown, limit):
            return shown
    return json.dumps({"put_away": f"{ref}; expand_node opens it"}, separators=(",", ":"))


def _cut(value: Any, most: int, ref: str) -> Any:
    match value:
        case dict():
            return {key: _cut(each, most, ref) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_cut(each, most, ref) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case str() if len(value) > most + 80:
            return f"{value[:most]}… [{len(value) - most:,} more characters in {ref}]"
        case _:
            return value


def middle(text: str, *, ref: str, limit: int, counter: TokenCounter) -> str:
    """Return the beginning and the end of a text, and between them where the whole of it is.

    It is stored, to stand there again at the next call, so secrets are masked in it.
    """
    text = mask(text)
    mark = f"\n[… {len(text):,} characters in all, whole in {ref}; expand_node opens any part …]\n"
    room = len(text)
    shown = text
    while not counter.fits(shown, limit):
        room = min(room - 1, int(room * 0.8), limit * 8)
        if room <= 0:
            return counter.cut(mark.strip(), limit)
        shown = text[: room * 2 // 3] + mark + text[len(text) - room // 3 :]
    return shown


def earlier_note(
    *,
    calls: int,
    ref: str,
    said: Sequence[tuple[str, str]],
    canvases: Callable[[int], str],
    limit: int,
    counter: TokenCounter,
) -> str:
    """Return the note that stands for messages that went.

    `said`: what the user said among them, each with its id; `canvases` draws the tasks within so many tokens.
    """
    head = (
        f"Earlier messages of this conversation, {calls} calls of the model among them, were put away to make room. "
        f"They are whole in {ref}: expand_node opens it by lines or grep, conversation_search finds what was said. "
        "What follows is a record of them."
    )
    parts = [head]
    for most in _SAID:
        lines = [f"- {id + ' ' if id else ''}{one_line(mask(text), most)}" for id, text in said]
        told = "\n".join([_SAID_HEAD, *lines]) if lines else ""
        if counter.fits("\n".join([head, told]), limit * 2 // 3):
            parts += [told] if told else []
            break
    room = limit - counter.count(_fenced(parts)) - 4
    if room > 40 and (drawn := canvases(room)):
        parts.append(drawn)
    shown = _fenced(parts)
    return shown if counter.fits(shown, limit) else _fenced([counter.cut(head, max(0, limit - 30))])


def _fenced(parts: Sequence[str]) -> str:
    return recall_block("\n".join(parts), part=EARLIER)


def told_before(note: str) -> Iterator[tuple[str, str]]:
    """Yield what a note tells that the user said, each with its id: the next note tells it again."""
    _, _, rest = note.partition(f"{_SAID_HEAD}\n")
    for line in rest.splitlines():
        found = _SAID_LINE.fullmatch(line)
        if found is None:
            return
        yield found[1] or "", found[2]
