"""Recall from two memories at once: that of a project, and the user's personal memory beside it.

Each memory is a space with its own ids. Rows of the personal memory are marked in every block: their ids begin with
`personal:`, as in `[personal:a57] …`, and its stable block names the memory in its tag. Tools take the marked ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import merge

from mcp_memory.core.personal_ids import MARK, mark_block, mark_id, mark_ids
from mcp_memory.core.text import one_line, without_bullet
from mcp_memory.core.token_counts import TokenCounter
from mcp_memory.language.words import fold
from mcp_memory.longterm.recall.line import UNSURE, RecallLine
from mcp_memory.store.citations import cited_atoms, rename_atoms, without_citations

_HEAD = re.compile(r"\[[^\]\n]*\]")


# --- lines ------------------------------------------------------------------------------------------


def both(own: Iterable[RecallLine], personal: Iterable[RecallLine], *, shown: str) -> Iterator[RecallLine]:
    """Yield the lines of both memories in turn, unsure lines last; the personal lines are marked.

    Of two lines with the same words, one from each memory, the first is yielded. A personal line with the words of a
    line in `shown` is left out.
    """
    lines = merge(
        ((place, False, line) for place, line in enumerate(own)),
        ((place, True, line) for place, line in enumerate(personal)),
        key=lambda entry: (entry[2].group in UNSURE, entry[0]),
    )
    origins = {_words(line): False for line in shown.splitlines()}
    for _, is_personal, line in lines:
        if origins.setdefault(_words(line.text), is_personal) == is_personal:
            yield mark_line(line) if is_personal else line


def mark_line(line: RecallLine) -> RecallLine:
    """Return a line with its ids marked."""
    if line.group in ("promise", "scene"):
        text = line.text.replace(line.id, mark_id(line.id), 1)
    else:
        text = _mark_head(line.text)
    return replace(
        line,
        id=mark_id(line.id),
        text=text,
        former=_mark_head(line.former),
        session=mark_id(line.session),
        newer=line.newer and mark_id(line.newer),
        beside=line.beside and mark_id(line.beside),
    )


def _mark_head(text: str) -> str:
    return _HEAD.sub(lambda head: mark_ids(head[0]), text, count=1)


def _words(line: str) -> str:
    """Return the words of a line, without its ids, dates and list marker."""
    return fold(one_line(without_citations(without_bullet(_HEAD.sub("", line.replace(MARK, ""), count=1))), 1_000))


# --- blocks -----------------------------------------------------------------------------------------


def stable_block(make: Callable[[int], str], counter: TokenCounter, budget: int, *, beside: str) -> str:
    """Return a marked block of at most `budget` tokens, without the lines that the block `beside` it has.

    `make` returns a block of the personal memory within a number of tokens, which the marks add to.
    """
    room = budget
    while room > 0 and (block := make(room)):
        block = rename_atoms(block, {id: mark_id(id) for id in cited_atoms(block)})  # in all forms of a model's page
        marked = _without_repeated(mark_block(block), beside)
        over = counter.count(marked) - budget if marked else 0
        if over <= 0:
            return marked
        room -= over
    return ""


def _without_repeated(block: str, beside: str) -> str:
    """Return a block without the lines whose words another has; empty if only headings are left."""
    opening, *lines, closing = block.splitlines()
    repeated = {_words(line) for line in beside.splitlines()}
    kept: list[str] = []
    for line in reversed(lines):
        if _is_heading(line):
            kept += [line] if kept and not _is_heading(kept[-1]) else []
        elif _words(line) not in repeated:
            kept.append(line)
    return "\n".join([opening, *reversed(kept), closing]) if kept else ""


def _is_heading(line: str) -> bool:
    return line.startswith("#") or (line.endswith(":") and not line.startswith("-"))


def shown_of_personal(shown: str) -> str:
    """Return what a text shows of the personal memory, with its own ids: marked lines, and lines without ids."""
    lines = (line for line in shown.splitlines() if MARK in line or not (cited_atoms(line) or _HEAD.match(line)))
    return "\n".join(line.replace(MARK, "") for line in lines)
