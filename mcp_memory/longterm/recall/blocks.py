"""The two blocks of a recall within a budget, and automatic recall.

The stable block (user, standing rules, persona, scenes) changes only when the memory does: two calls with the same
budget and no write between them return the same bytes. The dynamic block answers the question and the current
conversation with atoms, verbatim turns, standing rules, scenes, facts and tool results. Rows that are surely about
them come first (`search.answerability`); the closest other rows follow under "unsure" and fill the budget, because a
client would take an empty block for a denial. Atoms are ranked by similarity and confidence, 0.6 to 0.4 by default (the
formula of DeerFlow's memory), times the trust in their source; without a question and a conversation similarity does
not count.

A question about many things ("in what order ...?", "how many different ...?") gets an `overview` first: a short line
for each event, oldest first, and how many more there are.

Both blocks together fit the budget, counted exactly. `left_out` lists relevant rows that did not fit. Closed or
forgotten knowledge is never shown as current: only current atoms and facts are read, pages leave out lines without
other evidence, and a turn whose statement was replaced is marked. `layout` decides what fits and in which order.

A program that adds text to every prompt must not disturb prompts that need no memory: if the memory is unlikely to know
(`search.answerability`), `automatic` returns nothing, while an explicit recall shows the closest rows. A prompt that
asks to continue an earlier session ("go on", "where were we?") gets the end of that session (`continuity`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from mcp_memory.core.personal_ids import MARK, mark_id, marked_ids, unmarked
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.token_counts import TokenCounter
from mcp_memory.core.types import Atom, Bundle, Kind, Known, Turn
from mcp_memory.longterm import persona as l3_page
from mcp_memory.longterm.promises import LISTED
from mcp_memory.longterm.recall.continuity import Continuity, asks_to_continue, ending, start_line
from mcp_memory.longterm.recall.dynamic_block import (
    RecallLimits,
    dynamic_lines,
    top_by_confidence,
)
from mcp_memory.longterm.recall.layout import FORMER, HEADINGS, fit
from mcp_memory.longterm.recall.line import BEFORE_THAT, RecallLine
from mcp_memory.longterm.recall.lines import is_shown_in, mark_suspects, statement_line
from mcp_memory.longterm.recall.opening import START_TOKENS, opening
from mcp_memory.longterm.recall.personal import both, mark_line, shown_of_personal, stable_block
from mcp_memory.longterm.recall.promises import PromiseLines, due_promises, promises_for, promises_in
from mcp_memory.longterm.search.answerability import find_rows, judge_question
from mcp_memory.longterm.search.feedback import WRONG
from mcp_memory.longterm.search.question_words import is_echo
from mcp_memory.longterm.search.scenes import current_scenes
from mcp_memory.longterm.search.search import SearchContext, row_texts
from mcp_memory.longterm.turns import SUMMARY, recall_block, small_talk_kind
from mcp_memory.longterm.validity import current_atoms, read_statements_first, validity
from mcp_memory.longterm.verification.trust import quarantined_ids
from mcp_memory.store.citations import cited_atoms, tidy, without_atoms
from mcp_memory.store.sql import atom_rows, page_rows, turn_rows
from mcp_memory.store.values import Filters, Layer
from mcp_memory.suspicion.flags import flags

IDENTITY_TOKENS = 50
ALWAYS, CRITICAL = "Always:\n", "Keep in mind:\n"
ALWAYS_TOKENS = 120  # for both blocks together
_CRITICAL = 90  # priority: facts for every question, such as an allergy
_STABLE_SHARE = 0.25  # share of the budget; with 0.4, recall of 600 tokens finds 2 points less of the evidence
_LISTED = 50  # statements of a kind
_EXCHANGES = 3
_LAST_TURNS = 60  # turns searched for exchanges: an agent may write many between two turns of the user
_IN_CONTEXT = 1_000  # newest turns of a session, which the agent's context may still contain


def bundle(
    context: SearchContext, question: str, *, session: str | None, counter: TokenCounter, budget: int,
    has_stable: Callable[[str], bool] = lambda block: False, shown_promises: Collection[str] = (),
    continuity: Continuity = Continuity(), personal: SearchContext | None = None,  # noqa: B008  frozen
) -> Bundle:  # fmt: skip
    """Return both blocks, at most `budget` tokens together. With a session, its last turns are part of the query.

    If the reader already has the stable block (`has_stable`), it is left out, and the dynamic block gets its tokens
    and repeats its rows that are about the question. `shown_promises` are repeated only if the question calls for them.
    The rows of a `personal` memory are marked (`recall.personal`); the end of a session is only that of `context`.
    """
    stable, missing = _stable_of_both(context, personal, _stable, counter, int(budget * _STABLE_SHARE))
    shown = "" if has_stable(stable) else stable
    of_shown = counter.count(shown) if shown else 0
    left = budget - of_shown
    context, personal = _cached(context, personal)
    recent_turns = context_of(context, session)
    is_asked = bool(question.strip() or recent_turns)
    judgement = judge_question(context, question)
    promises = promises_for(context, question, session=session, shown_due=shown_promises)
    end = ending(context, continuity, counter) if asks_to_continue(question, context.now) else []
    if is_asked:
        lines = dynamic_lines(context, question, recent_turns, shown_text=shown, judgement=judgement, ending=end)
    else:
        lines = top_by_confidence(context, shown=stable)
    known = "likely" if end else judgement.known if judgement else None
    if personal is not None:
        shown_personal = shown_of_personal(shown if is_asked else stable)
        judgement = judge_question(personal, question)
        more = promises_for(personal, question, session=session, shown_due=unmarked(shown_promises))
        promises = _promises_of_both(promises, more)
        if is_asked:
            talk = [replace(turn, id="") for turn in recent_turns]  # the id may be that of another turn there
            beside = dynamic_lines(personal, question, talk, shown_text=shown_personal, judgement=judgement)
        else:
            beside = top_by_confidence(personal, shown=shown_personal)
        lines = both(lines, beside, shown=shown if is_asked else stable)
        known = _surest(known, judgement.known if judgement else None)
    dynamic, left_out = fit(_promises_first(promises.lines, lines), counter, left)
    left_out = left_out if is_asked else []  # without a question nothing is missing
    left_out += promises.left_out
    tokens = of_shown + (counter.count(dynamic) if dynamic else 0)
    left_out += missing if shown else []
    return Bundle(stable=shown, dynamic=dynamic, tokens=tokens, left_out=left_out, known=known)


_CERTAINTY: Sequence[Known | None] = (None, "unlikely", "unsure", "likely")


def _surest(*known: Known | None) -> Known | None:
    return max(known, key=_CERTAINTY.index)


def _cached(context: SearchContext, personal: SearchContext | None) -> tuple[SearchContext, SearchContext | None]:
    """Return both contexts for one question; each text is embedded once for both."""
    context = context.cached()
    return context, personal and replace(personal.cached(), of_query=context.of_query)


def _promises_of_both(own: PromiseLines, personal: PromiseLines) -> PromiseLines:
    lines = [*own.lines, *map(mark_line, personal.lines)]
    return PromiseLines(lines, [*own.left_out, *map(mark_id, personal.left_out)])


_MakeStable = Callable[[SearchContext, TokenCounter, int], tuple[str, list[str]]]


def _stable_of_both(
    context: SearchContext, personal: SearchContext | None, make: _MakeStable, counter: TokenCounter, budget: int
) -> tuple[str, list[str]]:
    """Return the stable block of a memory, followed by that of the personal one, and what did not fit.

    The first gets half of the budget, or all if the second is empty; the second gets what is left.
    """
    if personal is None:
        return make(context, counter, budget)
    own, missing = make(context, counter, budget // 2)
    of_personal: list[str] = []

    def make_personal(room: int) -> str:
        block, of_personal[:] = make(personal, counter, room)
        return block

    left = budget - (counter.count(f"{own}\n") if own else 0)
    marked = stable_block(make_personal, counter, left, beside=own)
    if not marked:
        return make(context, counter, budget)
    return "\n".join(filter(None, [own, marked])), [*missing, *map(mark_id, of_personal)]


def stable(
    context: SearchContext,
    *,
    counter: TokenCounter,
    budget: int,
    continuity: Continuity = Continuity(),  # noqa: B008  frozen
    personal: SearchContext | None = None,
) -> Bundle:
    """Return the stable block for the start of a session, and in the dynamic block due promises and the last session.

    If `opening` returns a block, that is the stable block, and both blocks together have at most `START_TOKENS`.
    The dynamic block takes at most half of `START_TOKENS`, or half of a smaller budget. Each of two memories has
    a stable block.
    """
    promises = due_promises(context, session=continuity.session)
    if personal is not None:
        promises = _promises_of_both(promises, due_promises(personal, session=continuity.session))
    last = start_line(context, continuity, counter)
    due, late = fit([*filter(None, [last]), *promises.lines], counter, min(budget, START_TOKENS) // 2)
    of_due = counter.count(due) if due else 0

    def make(context: SearchContext, counter: TokenCounter, room: int) -> tuple[str, list[str]]:
        text = opening(context, counter=counter, budget=min(room, START_TOKENS - of_due))
        return (text, []) if text else _stable(context, counter, room)

    text, missing = _stable_of_both(context, personal, make, counter, budget - of_due)
    return Bundle(
        stable=text,
        dynamic=due,
        tokens=of_due + (counter.count(text) if text else 0),
        left_out=[*late, *promises.left_out, *missing],
    )


def automatic(
    context: SearchContext,
    question: str,
    *,
    session: str,
    counter: TokenCounter,
    budget: int,
    shown: str,
    continuity: Continuity = Continuity(),  # noqa: B008  frozen
    personal: SearchContext | None = None,
) -> Bundle:
    """Return a dynamic block for a prompt, without what its session already shows.

    The session shows the blocks recalled earlier (`shown`) and the turns since the last summary. A prompt that asks to
    continue gets the end of the last session, unless the session shows an answer already.
    """
    context, personal = _cached(context, personal)
    promises = PromiseLines([], [])
    if small_talk_kind(question) is None:
        told = promises_in(shown)
        promises = promises_for(context, question, session=session, shown=told)
        if personal is not None:
            more = promises_for(personal, question, session=session, shown=unmarked(told))
            promises = _promises_of_both(promises, more)
    turns = _turns_in_context(context, session)
    in_context = {turn.id for turn in turns}
    if not asks_to_continue(question, context.now):
        found = automatic_lines(context, question, shown=shown, in_context=in_context)
        if personal is not None:
            in_context = {turn.id for turn in _turns_in_context(personal, session)}
            beside = automatic_lines(personal, question, shown=shown_of_personal(shown), in_context=in_context)
            found = both(found, beside, shown=shown)
    elif any(turn.role == "assistant" for turn in turns):
        found = iter(())
    else:
        is_compacted = any((turn.role, turn.name) == SUMMARY for turn in turns)
        end = ending(context, continuity, counter, shown=shown, in_context=in_context, is_compacted=is_compacted)
        found = mark_suspects(context, end)
    lines = _promises_first(promises.lines, found)
    told_before = set(shown.splitlines())
    dynamic, left_out = fit((line for line in lines if line.text not in told_before), counter, budget)
    return Bundle(
        stable="",
        dynamic=dynamic,
        tokens=counter.count(dynamic) if dynamic else 0,
        left_out=[*left_out, *promises.left_out],
    )


def _promises_first(promises: Sequence[RecallLine], lines: Iterable[RecallLine]) -> Iterator[RecallLine]:
    """Yield the promises, then the lines of all other rows."""
    shown = {line.id for line in promises}
    yield from promises
    yield from (line for line in lines if line.id not in shown)


def _turns_in_context(context: SearchContext, session: str) -> list[Turn]:
    """Return the last summary of a session and the turns after it, else its latest turns.

    A client that compacts its context replaces the earlier turns by the summary.
    """
    turns = context.store.read(
        context.space, turn_rows.last_turns, session, limit=_IN_CONTEXT, roles=("user", "assistant", "system")
    )
    begin = max((place for place, turn in enumerate(turns) if (turn.role, turn.name) == SUMMARY), default=0)
    return turns[begin:]


def context_of(context: SearchContext, session: str | None) -> list[Turn]:
    """Return the last three turns of the user in a session, and the assistant's last word after each of them.

    Empty without a session.
    """
    if session is None:
        return []
    talk = context.store.read(
        context.space, turn_rows.last_turns, session, limit=_LAST_TURNS, roles=("user", "assistant")
    )
    final = [
        turn
        for turn, after in zip_longest(talk, talk[1:])
        if turn.role == "user" or after is None or after.role == "user"
    ]
    asked_at = [place for place, turn in enumerate(final) if turn.role == "user"]
    return final[asked_at[-_EXCHANGES:][0] :] if asked_at else final


# --- the stable block -------------------------------------------------------------------------------


def _stable(context: SearchContext, counter: TokenCounter, budget: int) -> tuple[str, list[str]]:
    """Return the stable block, and the ids of rules and traits and the slugs of scenes that did not fit.

    The coldest scenes are cut first.
    """
    store, space = context.store, context.space
    own = [(_important(kind), _LISTED) for kind in ("instruction", "persona")]
    read_statements_first(store, space, [*own, *l3_page.explicit_lists(), LISTED], context.now)
    who = _fit_items("User: ", l3_page.identity(store, space, context.now), "; ", counter, IDENTITY_TOKENS)
    standing = [atom for atom in _users_statements(context, "instruction") if atom.priority < 0]
    rules = sorted(standing, key=lambda atom: atom.valid_from, reverse=True)
    traits = [
        atom
        for atom in _users_statements(context, "persona")
        if atom.priority >= _CRITICAL and not _only_names(atom, who)
    ]
    always = _fit_items(ALWAYS, [f"- {statement_line(atom)}" for atom in rules], "\n", counter, ALWAYS_TOKENS)
    left = ALWAYS_TOKENS - (counter.count(always) if always else 0)
    critical = _fit_items(CRITICAL, [f"- {statement_line(atom)}" for atom in traits], "\n", counter, left)
    rules += traits
    shown = {atom.id for atom in rules if is_shown_in(atom, f"{always}\n{critical}\n")}
    lines = [*who.splitlines(), *always.splitlines(), *critical.splitlines(), *_persona_lines(context, shown)]
    scenes = [
        scene for scene in current_scenes(store, space) if not flags(f"{scene.title}\n{scene.summary}", "assistant")
    ]
    scenes = [scene for scene in scenes if not scene.atoms or _stated_by_the_user(context, scene.atoms)]

    def block(many: int, of_scenes: int) -> str:
        navigation = l3_page.navigation(scenes[:of_scenes]).splitlines()
        text = "\n".join(line for line in [*lines[:many], *navigation] if line)
        return recall_block(text, part="stable") if text else ""

    many = _largest_fit(len(lines), lambda count: counter.fits(block(count, 0), budget))
    while many < len(lines) and many and _is_heading(lines[many - 1]):
        many -= 1  # nothing is left under it
    whole = many == len(lines)
    of_scenes = _largest_fit(len(scenes), lambda count: counter.fits(block(many, count), budget)) if whole else 0
    text = block(many, of_scenes)
    rest = [atom.id for atom in rules if not is_shown_in(atom, text)]
    return text, [*rest, *(scene.slug for scene in scenes[of_scenes:])]


def _is_heading(line: str) -> bool:
    return line.startswith("#") or f"{line}\n" in (ALWAYS, CRITICAL)


def _important(kind: Kind) -> Filters:
    """Return the filters for the important statements of a kind; the priority of sentences is always lower."""
    return Filters(kind=kind, unheld=True, sentences=False, least_priority=_CRITICAL)


def _users_statements(context: SearchContext, kind: Kind) -> list[Atom]:
    """Return the current important statements of a kind that the user made, except promises.

    Statements that begin later are left out, since the page has them, and doubted statements, since only the dynamic
    block marks doubts.
    """
    listed = current_atoms(context.store, context.space, _important(kind), context.now, limit=_LISTED)
    current = [atom for atom in listed if validity(atom, context.now) == "current" and atom.label != "promise"]
    return [atom for atom in current if atom.source == "user" and not atom.doubts]


def _only_names(atom: Atom, who: str) -> bool:
    """Return whether an atom only states the user's name, and `who` contains it."""
    return atom.fact is not None and atom.fact.relation == "name" and atom.fact.value in who


def _persona_lines(context: SearchContext, shown: set[str]) -> list[str]:
    """Return the lines of the page, without suspicious lines, agents' statements and lines whose evidence is `shown`.

    If no model wrote the page, only its explicit statements are returned: a question finds the user's sentences, and
    listing them here would take room from evidence (`bench.week_one`: 73 % found instead of 77 %).
    """
    stored = context.store.read(context.space, page_rows.persona)
    by_model = stored is not None and stored.by_model
    read = l3_page.body if by_model else l3_page.explicit_page
    page = read(context.store, context.space, at=context.now)
    if page == l3_page.EMPTY:
        return []
    page = without_atoms(page, set(cited_atoms(page)) - _stated_by_the_user(context, cited_atoms(page)))
    lines = [line for line in page.splitlines() if line and not line.startswith("# ")]
    lines = [line for line in lines if not cited_atoms(line) or not shown.issuperset(cited_atoms(line))]
    sound = [line for line in lines if not flags(line, "assistant" if by_model else "user")]
    return [line for line in tidy(sound).splitlines() if line]


def _stated_by_the_user(context: SearchContext, ids: Iterable[str]) -> set[str]:
    """Return the ids of atoms that the user stated or imported; what agents state belongs in the dynamic block."""
    return {
        atom.id
        for atom in context.store.read(context.space, atom_rows.by_ids, list(ids))
        if atom.source in ("user", "import")
    }


def _fit_items(label: str, items: Sequence[str], joint: str, counter: TokenCounter, budget: int) -> str:
    """Return the label with as many of the first items as fit; empty if none fits."""
    many = _largest_fit(len(items), lambda many: counter.fits(label + joint.join(items[:many]), budget))
    return label + joint.join(items[:many]) if many else ""


def _largest_fit(count: int, fits: Callable[[int], bool]) -> int:
    """Return the largest count up to `count` that fits; 0 always does."""
    if fits(count):
        return count
    few, many = 0, count
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(middle) else (few, middle)
    return few


# --- explained ----------------------------------------------------------------------------------------

_LOOKED_AT = 15
_TEXT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class RowVerdict:
    """Whether recall `brought` a row, and `why`. `probability` is how likely the row is part of the answer."""

    id: str
    probability: float
    cosine: float
    brought: bool
    why: str
    text: str
    """At most 160 characters of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The dynamic block for a question (`brought`), the verdict on each row found, and the tokens of both blocks."""

    tokens: int
    brought: str
    left_out: tuple[str, ...]
    """The ids of relevant rows that did not fit."""
    known: Known
    probability: float
    """How likely the memory answers the question, from 0 to 1."""
    verdicts: tuple[RowVerdict, ...]


def explain_recall(context: SearchContext, query: str, *, counter: TokenCounter, budget: int) -> Recalled:
    """Recall for a question without a session, and explain the decision on each row."""
    context = context.cached()
    made = bundle(context, query, session=None, counter=counter, budget=budget)
    judgement = judge_question(context, query)
    rows = [hit for layer in _LAYERS for hit in find_rows(context, layer, query, _LOOKED_AT)] if judgement else []
    brought = set(ids_in(made.dynamic))
    rules = set(ids_in(made.dynamic.partition(HEADINGS["rule"])[2].partition(HEADINGS["unsure"])[0]))
    stable = set(ids_in(made.stable))
    ids = [row.id for row in rows]
    quarantined = quarantined_ids(context.store, context.space, ids)
    texts = row_texts(context.store, context.space, ids)
    echoes = {id for id in ids if id[0] == "t" and is_echo(texts.get(id, ""), query)}
    chances = judgement.rows if judgement else dict[str, float]()
    wrong = {row.id for row in rows if row.opinion == WRONG}
    sure = judgement.close if judgement else frozenset[str]()

    def why(id: str) -> str:
        if id in brought:
            if id in rules:
                return "is brought as a rule of the user"
            return "is brought" if id in sure else "is brought as the closest there is; it may be about something else"
        if id in stable:
            return "is in the part that every recall has"
        if id in quarantined:
            return "waits for review"
        if id in wrong:
            return "was marked as wrong for this question"
        if id in made.left_out:
            return "did not fit into the tokens that this recall may have"
        if id in echoes:
            return "repeats the question"
        if id not in sure:
            return "is not surely about it, and closer rows took the room"
        return "another line says the same, or it is no longer true"

    return Recalled(
        tokens=made.tokens,
        brought=made.dynamic,
        left_out=tuple(made.left_out),
        known=judgement.known if judgement else "unlikely",
        probability=judgement.probability if judgement else 0.0,
        verdicts=tuple(
            RowVerdict(
                id=row.id,
                probability=round(chances.get(row.id, 0.0), 3),
                cosine=round(max(0.0, row.cosine or 0.0), 3),
                brought=row.id in brought,
                why=why(row.id),
                text=mask(one_line(texts.get(row.id, ""), _TEXT)),
            )
            for row in sorted(rows, key=lambda row: -chances.get(row.id, 0.0))
        ),
    )


_LAYERS: tuple[Layer, ...] = ("atom", "turn")


_FORMER_ID = re.compile(rf"(?:^{FORMER}|{BEFORE_THAT})\[(t\d+)[ \]]")


def ids_in(block: str) -> Iterator[str]:
    """Yield the ids that a block shows: `[a5 2026-05-07] …`, `[t7] …`, `  before: [t3 …` and, in pages, `(a5, a7)`."""
    yield from cited_atoms(block)
    yield from map(mark_id, marked_ids(block))
    for line in block.splitlines():
        if line.startswith("[") and not line.startswith(f"[{MARK}"):
            yield line[1:].split("]")[0].split(" ")[0]
        elif line.startswith(FORMER):
            yield from (match[1] for match in _FORMER_ID.finditer(line))


_REACH = RecallLimits(
    turns=24,
    rules=4,
    rules_for_question=1,
    before_rules=6,
    rule_width=120,
    widths=(320, 240, 160, 160, 120),
    assistant_widths=(640, 320, 160, 120),
    unsure_widths=(120,),
    certain="maybe",
    unsure="maybe",
    outputs=False,
    overview=False,
)


def automatic_lines(
    context: SearchContext, prompt: str, *, shown: str, in_context: Collection[str]
) -> Iterator[RecallLine]:
    """Return lines for a prompt whose writer did not ask for a recall; none if the memory is unlikely to know.

    Everything in `shown`, the turns `in_context` and atoms extracted from them are left out. The current conversation
    is not part of the query: the reader sees it.
    """
    if small_talk_kind(prompt) is not None:
        return iter(())
    context = context.cached()
    judgement = judge_question(context, prompt)
    if judgement is None or judgement.known == "unlikely":
        return iter(())
    return dynamic_lines(
        context, prompt, [], shown_text=shown, in_context=in_context, reach=_REACH, judgement=judgement
    )
