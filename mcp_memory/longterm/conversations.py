"""Lists sessions as conversations with titles, by the date of the talk.

A title is the one that a session was given or imported with; else it is made from the user's first message that says
something. Titles are computed when they are asked for and never stored, so a title vanishes with the turn that it is
from. Quarantined turns name no session, and neither does text with hidden characters or with instructions to a model,
which is looked for here, because turns may wait for their judgement.

A message says something unless it is small talk, a command to the client, an attachment, or pasted: most of its lines
are code, output or data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private_passages import PRIVATE, without_private
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line, remove_hidden, without_bullet
from mcp_memory.core.types import Conversation, Conversations
from mcp_memory.language.sentences import sentences
from mcp_memory.language.words import base_terms, function_words_of
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.turns import own_words, small_talk_kind, without_lead_in
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import session_rows, turn_rows
from mcp_memory.store.sql.session_rows import NamingTurns, Place, SessionFilters
from mcp_memory.suspicion.flags import flags_of

MAX_TITLE = 60
"""Characters of a title that is made from a message."""
MAX_LINE = 200
"""Characters of the first line of a conversation."""

_FEWEST = 20  # characters of a first sentence that is a title without the sentences after it
_LETTERS = 0.6  # share of letters and spaces in a line of prose
_MATERIAL = 3  # lines; with fewer, a message is not judged to be pasted
_CURSOR = re.compile(r"(\d{1,15})-(\d{1,15})", re.ASCII)
_COMMAND = re.compile(r"/[a-z][\w:-]*(?![\w:/.-])", re.ASCII)
_HEADING = re.compile(r"#{1,6}\s+")
_FENCED = re.compile(r"(?ms)^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)")
_CODE = re.compile(r"\s{4}|\t|>|[$>%] |(?:import|package|using|from \S+ import)\s+[\w.,* {}]+;?$|.*[;{}]$")


@dataclass(frozen=True, slots=True)
class Name:
    """The title of a conversation, and the line of the user's message that it begins with; None if there is none."""

    title: str | None = None
    first_line: str | None = None


def list_conversations(
    store: Store, space: str, filters: SessionFilters, *, text: str = "", cursor: str | None = None, limit: int
) -> Conversations:
    """Return a page of conversations, the one with the latest turn first.

    With `text`, only those in which each of its words occurs, in a turn, the title or the name of the session. Raises
    InvalidInput for a cursor that is not one of ours.
    """
    after = None if cursor is None else _place(cursor)
    words = _words(text)
    among = store.read(space, session_rows.with_words, words) if words else None
    rows = store.read(space, session_rows.list_sessions, filters, among=among, after=after, limit=limit + 1)
    page = rows[:limit]
    names = names_of(store.read(space, session_rows.naming_turns, [row.place.number for row in page]))
    return Conversations(
        conversations=[
            Conversation(
                session=row.name,
                title=names[row.place.number].title,
                first_line=names[row.place.number].first_line,
                client=row.client,
                project=row.project,
                turns=row.turns,
                first=row.first,
                last=row.last,
            )
            for row in page
        ],
        cursor=f"{page[-1].place.last}-{page[-1].place.number}" if len(rows) > limit else None,
    )


def titles_of(store: Store, space: str, sessions: Sequence[str]) -> dict[str, str]:
    """Return the titles of the sessions that have turns, by name; the name itself for one without a title."""
    numbers = store.read(space, session_rows.numbers_of, sessions)
    names = names_of(store.read(space, session_rows.naming_turns, list(numbers.values())))
    titles = {session: title for session, number in numbers.items() if (title := names[number].title)}
    untitled = (session for session in numbers if session not in titles)
    return titles | {
        session: session for session in untitled if store.read(space, turn_rows.session_turns, session, limit=1)
    }


def _place(cursor: str) -> Place:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("That cursor is not one of ours. Leave it out to start from the latest conversation.")
    return Place(int(match[1]), int(match[2]))


def _words(text: str) -> list[tuple[str, Sequence[str]]]:
    """Return the words that a search for this text looks for, each with its index terms."""
    words = list(dict.fromkeys(without_private(text).split()))
    idle = function_words_of([word.lower() for word in words])
    content = [word for word in words if word.lower() not in idle] or words
    return [(word, base_terms(word)) for word in content]


# --- names ------------------------------------------------------------------------------------------


def names_of(turns: Mapping[int, NamingTurns]) -> dict[int, Name]:
    """Return the name of each session from the turns that may name it."""
    titles = _first_harmless({number: filter(None, map(_shown, each.titles)) for number, each in turns.items()})
    lines = _first_harmless({number: filter(None, map(first_line, each.said)) for number, each in turns.items()})
    return {number: _name(titles.get(number), lines.get(number)) for number in turns}


def _name(title: str | None, line: str | None) -> Name:
    made = None if line is None else title_of(line)
    return Name(title=_one_line(title) if title else made, first_line=line and _one_line(line))


def _first_harmless(candidates: Mapping[int, Iterator[str]]) -> dict[int, str]:
    """Return the first text of each that shows no sign of an attack; none of those without such a text."""
    chosen: dict[int, str] = {}
    waiting = candidates
    while waiting:
        texts = {number: text for number, left in waiting.items() if (text := next(left, None)) is not None}
        harmless = _harmless(texts.values())
        chosen |= {number: text for number, text in texts.items() if text in harmless}
        waiting = {number: waiting[number] for number in texts if number not in chosen}
    return chosen


_judged: dict[bytes, bool] = {}
"""Whether texts show no sign of an attack, by their hashes, since judging a page of titles takes 150 ms."""
_MOST_JUDGED = 10_000


def _harmless(texts: Iterable[str]) -> set[str]:
    """Return those of the texts that show no sign of an attack."""
    keys = {text: sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts}
    known = {key: _judged[key] for key in keys.values() if key in _judged}
    new = [text for text, key in keys.items() if key not in known]
    flagged = flags_of([(text, "assistant") for text in new])
    judged = {keys[text]: not flags for text, flags in zip(new, flagged, strict=True)}
    if len(_judged) > _MOST_JUDGED:
        _judged.clear()
    _judged.update(judged)
    known |= judged
    return {text for text, key in keys.items() if known[key]}


def _shown(text: str) -> str:
    """Return a text of a turn without what no list may show."""
    return mask(without_private(text).replace(PRIVATE, " ")).strip()


def first_line(message: str) -> str | None:
    """Return the first line of a user's message that says something, or None. It is cut after `MAX_LINE` characters."""
    text = own_words(typed_text(_shown(message)))
    if command := _COMMAND.match(text):
        text = text[command.end() :].strip()
    if not text or small_talk_kind(text):
        return None
    lines = [line for line in _FENCED.sub("", text).splitlines() if line.strip()]
    prose = [line for line in lines if _is_prose(line)]
    if not prose or (len(lines) >= _MATERIAL and len(prose) <= len(lines) // 2):
        return None
    return _without_greeting(_HEADING.sub("", without_bullet(prose[0].strip()), count=1))


def _is_prose(line: str) -> bool:
    letters = sum(character.isalpha() or character.isspace() for character in line)
    return letters >= _LETTERS * len(line) and _CODE.match(line) is None


def _without_greeting(line: str) -> str | None:
    """Return a line from its first sentence on that is no small talk, without a lead-in such as "ok so"."""
    for start, end in sentences(line):
        if not small_talk_kind(line[start:end]):
            begin, _ = without_lead_in(line, start, len(line))
            return line[begin : begin + MAX_LINE + 1].strip()
    return None


def title_of(line: str, most: int = MAX_TITLE) -> str:
    """Return the first sentence of a line, or its beginning up to a word: at most `most` characters."""
    text = _one_line(line)
    end = next((end for _, end in sentences(text)), 0)
    if _FEWEST <= end <= most + 1:
        text = text[:end]
    text = text.strip().rstrip(".:,;。：，、")
    if len(text) <= most:
        return text
    cut = text[:most]  # one character more than is left beside the ellipsis
    return f"{(cut[: cut.rfind(' ')] if ' ' in cut[most // 2 :] else cut[:-1]).rstrip(' .:,;-–—')}…"


def _one_line(text: str) -> str:
    return one_line(remove_hidden(text), MAX_LINE)
