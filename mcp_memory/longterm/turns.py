"""L0: admits turns to the memory, and recognizes small talk.

`admit` masks secrets, removes private passages (not from results of tools), and leaves out replies that are only a
signal to the host. It also removes recalled blocks, which would otherwise be stored and recalled again; they carry a
tag that nothing inside can close. A user's message with attached material becomes two turns: the typed words, and the
material as a tool's (`attachments`).

`small_talk_kind` finds turns that no model needs to read: greetings, acknowledgements, commands and texts of the host,
symbols, copies of recalled lines. The whole turn has to consist of these. A short answer counts as signal if it may
answer the turn before. The phrases of some twenty languages are in `words/small_talk.txt`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal, cast

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import mask, mask_id
from mcp_memory.core.text import is_blank, well_formed, with_zone, without_blocks
from mcp_memory.core.types import NewTurn, Role, Turn
from mcp_memory.language import blocks_of, pattern_of, words_of
from mcp_memory.language.words import fold, function_words_of
from mcp_memory.longterm.attachments import ATTACHED, parts_of_message, without_client_blocks
from mcp_memory.store.values import UNJUDGED
from mcp_memory.suspicion.flags import TAG, defuse

MAX_TURN_BYTES = 4 * 2**20
MAX_TURNS = 5_000

SUMMARY: tuple[Role, str] = ("system", "summary")
"""Role and name of the turn with a client's summary of the conversation before it."""

_OPENING = re.compile(rf"(<|&lt;|\\u003[cC]){TAG}\b[^<>\n]{{0,200}}?(>|&gt;|\\u003[eE])")
"""The opening tag, literal or escaped as in HTML and JSON."""


def recall_block(text: str, *, part: str) -> str:
    """Return the text fenced as recalled data; nothing inside can close the fence or open another."""
    return f'<{TAG} part="{part}">\n{defuse(text)}\n</{TAG}>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The turns to store. `emptied` counts turns with nothing to store; `masked` counts stored turns with a secret.

    Nothing is left of a turn of blank, private or recalled text, nor of an assistant's reply to its host program.
    """

    turns: list[NewTurn]
    emptied: int
    masked: int


def admit(turns: Sequence[NewTurn]) -> Admitted:
    """Return the turns to store, unjudged, without private passages and recalled blocks, and with secrets masked.

    Raises InvalidInput if there are none or too many, or if any of them cannot be stored.
    """
    if not turns:
        raise InvalidInput("There are no turns to record. Pass at least one {role, content}.")
    if len(turns) > MAX_TURNS:
        raise InvalidInput(f"{len(turns)} turns at once are too many. Send at most {MAX_TURNS} in a call.")
    kept: list[NewTurn] = []
    emptied = masked = 0
    for place, turn in enumerate(turns):
        _check(turn, place + 1)
        parts = [] if is_sentinel(turn, turns[place - 1] if place else None) else list(_parts(turn))
        emptied += not parts
        for part in parts:
            content = mask(part.content, prose=part.role != "tool")
            masked += content != part.content
            name = None if part.name is None else mask(part.name)
            id = None if part.client_id is None else mask_id(part.client_id)
            kept.append(replace(part, content=content, name=name, client_id=id, held=(*part.held, UNJUDGED)))
    return Admitted(turns=kept, emptied=emptied, masked=masked)


def _parts(turn: NewTurn) -> Iterator[NewTurn]:
    """Yield the turns to store for a turn: a user's typed words, and the attached material as a tool's turn."""
    if turn.role != "tool":
        turn = replace(turn, content=without_private(turn.content), name=turn.name and without_private(turn.name))
    turn = replace(turn, content=_without_recalled(turn.content))
    if turn.role != "user":
        if not is_blank(turn.content):
            yield turn
        return
    message = parts_of_message(turn.content)
    if not is_blank(message.typed):
        yield replace(turn, content=message.typed)
    yield from attached_turns(turn, [*message.attached, *message.notices])


def attached_turns(turn: NewTurn, passages: Sequence[str]) -> Iterator[NewTurn]:
    """Yield a tool's turn with the material attached to a user's message, to follow the typed words; none if blank."""
    content = "\n\n".join(passages)
    if not is_blank(content):
        yield replace(
            turn, role="tool", name=ATTACHED, content=content, client_id=turn.client_id and attached_id(turn.client_id)
        )


def attached_id(client_id: str) -> str:
    """Return the client id of the attachments of the message with this id."""
    return f"{client_id}#{ATTACHED}"


_TOKEN = re.compile(r"\W*[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\W*")


def is_sentinel(turn: NewTurn, before: NewTurn | None) -> bool:
    """Return whether an assistant's reply is only a token for its host program, such as NO_REPLY.

    A token such as MAX_RETRIES may answer the question of a person in the turn before.
    """
    if turn.role != "assistant" or len(turn.content) > _LONGEST:
        return False
    if _pattern("SENTINEL").fullmatch(turn.content):
        return True
    is_answer = before is not None and before.role == "user" and _QUESTION.search(before.content[-_ENDING:])
    return _TOKEN.fullmatch(turn.content) is not None and not is_answer


def _without_recalled(text: str) -> str:
    if TAG not in text:
        return text
    return without_blocks(text, _OPENING, lambda opening: f"{opening[1]}/{TAG}{opening[2]}", after=r"[ \t]*\n?")


def _check(turn: NewTurn, place: int) -> None:
    if turn.said_at is not None:
        try:
            with_zone(turn.said_at)
        except ValueError:
            raise InvalidInput(
                f"Turn {place} was said at {turn.said_at.isoformat()}, which is out of range. Send a time such as "
                "2026-05-07T10:00:00Z; nothing of this call was stored."
            ) from None
    for field in (turn.content, turn.name or "", turn.client_id or ""):
        if not well_formed(field):
            raise InvalidInput(
                f"Turn {place} has a lone surrogate, which is not text. Send U+FFFD in its place, or keep the raw "
                "bytes with offload_tool_result; nothing of this call was stored."
            )
    if len(turn.content) > MAX_TURN_BYTES or len(turn.content.encode()) > MAX_TURN_BYTES:
        raise InvalidInput(
            f"Turn {place} is larger than {MAX_TURN_BYTES // 2**20} MiB. Keep it with offload_tool_result and record "
            "what was said about it; nothing of this call was stored."
        )


SmallTalk = Literal["greeting", "acknowledgement", "command", "host", "symbols", "recalled"]

_LONGEST = 120  # characters; a longer turn is not small talk
_PROPOSAL = 280  # a turn this short may propose something without asking
_ENDING = 600  # where a long turn asks, if it does


def small_talk_kind(text: str, before: Turn | None = None) -> SmallTalk | None:
    """Return the kind of small talk of a turn's text, None for signal. `before` is the turn that it may answer."""
    text = text.strip()
    if _pattern("MESSAGE").match(text) or not without_client_blocks(text).strip():
        return "host"
    if not own_words(text):
        return "recalled"
    if _is_command(text, before):
        return "command"
    if not any(character.isalnum() for character in text):
        return None if _has_emoji(text) and _may_answer(before) else "symbols"
    return _phatic(text, before) if len(text) <= _LONGEST else None


# --- texts of the host and of this memory -----------------------------------------------------------

_pattern = partial(pattern_of, "mcp_memory.longterm", "words/host.txt")


def own_words(text: str) -> str:
    """Return a speaker's own words: without blocks of the host and copies of lines that this memory showed."""
    text = without_client_blocks(text)
    may_be_recalled = any(mark in text for mark in (" · ", "[t", "[a", "<"))
    return (_pattern("RECALLED").sub("", text) if may_be_recalled else text).strip()


def without_lead_in(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of a sentence without a lead-in such as "ok so" and without a trailing "lol"."""
    pattern = partial(pattern_of, "mcp_memory.longterm", "words/sentences.txt")
    if (lead_in := pattern("LEAD_IN").match(text, start, end)) and lead_in.end() < end:
        start = lead_in.end()
    trailing = pattern("TRAILING").search(text, start, end)
    return start, trailing.start() if trailing and trailing.start() > start else end


def is_client_command(name: str) -> bool:
    """Return whether clients define this slash command, such as `/clear`."""
    return _pattern("COMMAND").fullmatch(name) is not None


def _is_command(text: str, before: Turn | None) -> bool:
    """Return whether a turn is a command to the host alone: no path, no command with material, no answer."""
    if _pattern("COMMAND").fullmatch(text):
        return True
    may_be_one = _pattern("MAYBE_COMMAND").fullmatch(text) and not _pattern("FOLDER").fullmatch(text)
    return bool(may_be_one) and not _asks(before)


# --- phrases without content ------------------------------------------------------------------------


def _phatic(text: str, before: Turn | None) -> SmallTalk | None:
    """Return the kind of a short text, None if it has content or may answer the turn before."""
    names = frozenset(bare(before.name).split()) if before is not None and before.name else frozenset[str]()
    kinds = kinds_of_phrases(text, names)
    if (
        kinds is None
        or kinds <= {"filler"}
        or ("agreement" in kinds and before is not None)
        or (kinds & {"assent", "continuation"} and _may_answer(before))
        or ("praise" in kinds and _asks(before))
    ):
        return None
    return "greeting" if "greeting" in kinds else "acknowledgement"


_QUESTION = re.compile(r"[?？؟\u037e⁇]|吗|か。|까\.")


def _asks(before: Turn | None) -> bool:
    return before is not None and bool(_QUESTION.search(before.content[-_ENDING:]))


def _may_answer(before: Turn | None) -> bool:
    if before is None or len(before.content) > _PROPOSAL:
        return _asks(before)
    kinds = kinds_of_phrases(before.content) if len(before.content) <= _LONGEST else None
    return _asks(before) or kinds is None or not kinds <= {"greeting", "courtesy", "filler"}


def _has_emoji(text: str) -> bool:
    return any(unicodedata.category(character) == "So" for character in text)


Phrase = Literal["greeting", "courtesy", "praise", "assent", "agreement", "filler", "continuation", "object"]
"""Greeting and courtesy answer nothing; praise may answer a question; assent and continuation ("go on") a question or a
proposal; agreement any turn. A filler says nothing, and counts only beside other phrases; an object ("with that") only
beside a continuation."""

_LAUGH = r"(?:ha){2,}h?|(?:he){2,}h?|(?:hi){2,}|(?:ja){2,}|k{3,}|l(?:o+l)+|哈+|呵+|嘿+|ㅋ+|ㅎ+|w{2,}|(?:ха){2,}"


def kinds_of_phrases(text: str, names: frozenset[str] = frozenset()) -> set[Phrase] | None:
    """Return the kinds of phrases that a text consists of; None if it has any other words.

    A word in `names`, in the form that `bare` returns, only addresses somebody and counts as filler.
    """
    table, pattern = _compiled()
    words = bare(text)
    kinds: set[Phrase] = set()
    at = 0
    while at < len(words):
        if phrase := pattern.match(words, at):
            kinds.add(table.get(phrase[0], "courtesy"))  # a match in no table is laughter
            at = phrase.end()
        elif (word := words[at:].partition(" ")[0]) in names:
            kinds.add("filler")
            at += len(word)
        else:
            return None
        at += words.startswith(" ", at)
    return kinds if "continuation" in kinds or "object" not in kinds else None


def is_continuation(text: str) -> bool:
    """Return whether a text asks to continue and says nothing else, such as "ok, go on with that, please".

    Function words say nothing, except negations.
    """
    if len(text) > _LONGEST:
        return False
    negations = words_of("mcp_memory.language", "data/negation.txt", "negative")
    fillers = map(bare, function_words_of(text.lower().split()) - negations)
    return "continuation" in (kinds_of_phrases(text, frozenset(fillers)) or ())


def bare(text: str) -> str:
    """Return the words of a text, folded, with one space between them."""
    characters = (c if unicodedata.category(c)[0] in "LMN" else " " for c in fold(text.strip()))
    return " ".join("".join(characters).split())


@cache
def _compiled() -> tuple[dict[str, Phrase], re.Pattern[str]]:
    table: dict[str, Phrase] = {}
    for kind, phrases in blocks_of("mcp_memory.longterm", "words", "small_talk.txt"):
        table |= dict.fromkeys(map(bare, " ".join(phrases).split(",")), cast("Phrase", kind))
    longest = sorted(table, key=len, reverse=True)
    alone = "|".join(re.escape(phrase) for phrase in longest if not _is_unspaced(phrase))
    running = "|".join(re.escape(phrase) for phrase in longest if _is_unspaced(phrase))
    return table, re.compile(rf"(?:{alone}|{_LAUGH})(?= |$)|{running}")


def _is_unspaced(phrase: str) -> bool:
    """Return whether a phrase is in a script that rarely writes spaces."""
    return "\u0e00" <= phrase[-1] <= "\u0eff" or phrase[-1] >= "\u2e80"
