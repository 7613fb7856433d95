"""The lines of recall's dynamic block, for a question and the current conversation, before they are cut to the budget.

In order of priority: atoms and verbatim turns by relevance, and after the first few the standing rules that govern
it; then scenes, facts of the entities that the question names, and a line or two of tool results. Scenes and
facts say again what atoms say: in front of them they cost a recall of 600 tokens 3 points of the evidence
(`bench.pyramid`). `relevance` judges the rows; the others follow as `unsure`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import chain, zip_longest

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, ResultHit, Source, Turn
from mcp_memory.language.words import fold, index_terms, query_terms, terms_of_each
from mcp_memory.longterm.recall.distinct import distinct_turns, unheld
from mcp_memory.longterm.recall.lines import (
    Group,
    RecallLine,
    is_shown_in,
    of_atom,
    of_fact,
    of_output,
    of_scene,
    of_turns,
    sound,
)
from mcp_memory.longterm.recall.overview import asks_for_overview, overview_lines
from mcp_memory.longterm.recall.relevance import (
    ABOUT,
    NEAR,
    RecallQuery,
    WeighedRow,
    recall_query,
    weigh_rows,
    weights_of,
)
from mcp_memory.longterm.recall.rules import RulesForPrompt, rules_for
from mcp_memory.longterm.search.changed import newer_first, pairs_of_one_topic, possibly_changed, replaced_by
from mcp_memory.longterm.search.coverage import terms_of
from mcp_memory.longterm.search.known import Judgement
from mcp_memory.longterm.search.pages import current, text_of
from mcp_memory.longterm.search.query import question_pattern, speaker_intent
from mcp_memory.longterm.search.results import results
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.longterm.verification.trust import speakers_of
from mcp_memory.store.citations import address, cited
from mcp_memory.store.values import Filters
from mcp_memory.suspicion.flags import flags, without_orders

__all__ = [
    "RecallLimits", "asks_to_continue", "dynamic_lines", "last_conversation", "top_by_confidence",
]  # fmt: skip

_ATOMS, _SCENES, _FACTS, _OUTPUTS = 15, 3, 5, 2
_SUCCESSORS = 5  # one after the other
_FIRST = 6  # turns of a search that are about a question too, where anything is: the ranking knows more than the words
_MOST_THERE = 100  # turns that are there already and may be found before others
_SUREST = 500  # atoms, those of the highest priorities, that are ordered where nothing is asked
_CONTEXT_CHARS = 300
_ENTITIES = 1_000
_SESSIONS, _ENDING, _ENDING_CHARS = 20, 6, 600  # the latest sessions; turns of one
_CLOSE = 0.1  # cosine: where nothing shares a word, and nothing is as near as this, nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallLimits:
    """How many rows to read and how much of each to show; the defaults are those of an explicit recall.

    Widths are characters of the first, second, ... turn; the last holds for all further ones.
    """

    turns: int = 45
    rules: int = 6
    rules_for_question: int = 3
    """Of each kind, about the work of the prompt or about every answer; `rules` are those of both."""
    before_rules: int = 4
    """Lines above the rules."""
    rule_width: int = 400
    widths: Sequence[int] = (900, 600, 600, *[400] * 5, 320)
    assistant_widths: Sequence[int] = (2_400, 1_200, 600, *[400] * 5, 320)
    """Used instead of `widths` for questions about the assistant's words: its turns are long."""
    unsure_widths: Sequence[int] = (320,)
    certain: Group = "turn"
    unsure: Group = "unsure"
    outputs: bool = True
    """Whether to show lines of tool results: numbers match by chance."""
    overview: bool = True
    """Whether to answer questions about many things with an overview."""


TRUST: dict[Source, float] = {
    "user": 1.0,
    "assistant": 0.95,
    "import": 0.95,
    "quoted": 0.85,
    "tool": 0.85,
    "web": 0.7,
}
"""Factor of an atom's rank by its source: of two equal answers the user's comes first."""


def top_by_confidence(desk: SearchContext, *, known: str) -> Iterator[RecallLine]:
    """Yield the atoms by confidence alone, without those in `known`."""
    atoms = desk.store.list_atoms(desk.space, filters=Filters(unheld=True), limit=_SUREST)
    ordered = sorted(atoms, key=lambda one: -one.confidence * TRUST[one.source])
    return sound(desk, (of_atom(atom) for atom in ordered if not is_shown_in(atom, known)))


def dynamic_lines(
    desk: SearchContext,
    question: str,
    context: Sequence[Turn],
    *,
    known: str,
    there: Collection[str] = (),
    reach: RecallLimits = RecallLimits(),
    judgement: Judgement | None,
) -> Iterator[RecallLine]:
    """Yield lines for the question and the turns of the context, without anything in `known` or these turns.

    The turns `there`, and atoms extracted from them, are left out too. `judgement` is that of the question, None where
    nothing is asked. Lines are made lazily: those beyond the budget cost nothing.
    """
    talk = [one_line(turn.content, _CONTEXT_CHARS) for turn in context if small_talk_kind(turn.content) is None]
    apart = {*there, *(turn.id for turn in context)}
    wanted = recall_query(desk, ["" if small_talk_kind(question) else question])
    found = _found(desk, wanted, recall_query(desk, talk), apart, reach, judgement)
    words = frozenset(query_terms("\n".join([question, *talk])))
    rules = rules_for(wanted, apart, reach, known) if wanted else RulesForPrompt()
    outputs = _outputs(wanted, words) if wanted and reach.outputs else []
    ending = last_conversation(desk, apart) if asks_to_continue(question) else []
    shown = {line.id for line in ending}
    made = _lines(desk, question, wanted, found, words, rules, outputs, known=known, there=there, reach=reach)
    if wanted and (found.turns or found.unsure) and reach.overview and asks_for_overview(question):
        lines = overview_lines(wanted, apart, words, known, rules.replaced)
        first, further = lines[: reach.before_rules], lines[reach.before_rules :]
        pages = list(found.scenes.values())[:_SCENES]
        made = _each_once(chain(first, rules.lines, pages, further, outputs, made), apart=rules.in_part)
        ended = rules.covered.difference(line.id for line in rules.lines)
        made = (line for line in made if line.id not in ended)
    return sound(desk, chain(ending, (line for line in made if line.id not in shown)))


# --- search -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RecallRows:
    """Search results by id, each in the order of its search. `unsure` turns may be irrelevant, `sure` ones are not."""

    turns: dict[str, WeighedRow] = field(default_factory=dict[str, WeighedRow])
    atoms: dict[str, WeighedRow] = field(default_factory=dict[str, WeighedRow])
    scenes: dict[str, RecallLine] = field(default_factory=dict[str, RecallLine])
    unsure: dict[str, WeighedRow] = field(default_factory=dict[str, WeighedRow])
    sure: set[str] = field(default_factory=set[str])


def _found(
    desk: SearchContext, question: RecallQuery | None, talk: RecallQuery | None, there: set[str], reach: RecallLimits,
    judgement: Judgement | None,
) -> _RecallRows:  # fmt: skip
    """Return rows for the question, then for the conversation, without the turns already `there`."""
    found = _RecallRows()
    aside = [one.id for one in desk.store.quarantined(desk.space, limit=_MOST_THERE) if one.id.startswith("t")]
    many = reach.turns + min(len(there) + len(aside), _MOST_THERE)
    for wanted in filter(None, (question, talk)):
        said = unheld(desk, [row for row in weigh_rows(wanted, "turn", limit=many) if row.id not in there])
        held: list[WeighedRow] = []
        if desk.store.totals(desk.space, "atom").rows:
            held = weigh_rows(wanted, "atom", limit=_ATOMS, ended=True)
            # An atom weighs at least as much as the turn that it was extracted from.
            weights = {row.id: row.weight for row in said}
            evidence = {atom.id: atom.evidence for atom in desk.store.atoms(desk.space, [row.id for row in held])}
            held = [replace(row, weight=max(row.weight, weights.get(evidence.get(row.id, ""), 0.0))) for row in held]
            held = _with_successors(desk, held)
        said = [row for row in said if not row.is_echo]
        pages = _scenes(wanted, held)
        if wanted is question and judgement is not None:
            about = bool(pages) or judgement.known != "unlikely"
            likely = said[:_FIRST] if judgement.known == "likely" else ()
            sure = {*judgement.close, *(row.id for row in likely)}
        else:
            about = any(row.weight >= ABOUT for row in (*said, *held))
            sure = {row.id for row in said if row.weight >= ABOUT}
        if about:
            found.sure.update(sure)
            _join(found.turns, (row for place, row in enumerate(said) if row.weight >= NEAR or place < _FIRST))
            _join(found.atoms, (row for row in held if row.weight >= NEAR))
            for page in pages:
                found.scenes.setdefault(page.id, page)
        # A row that shares a telling word or is near in meaning could be an answer.
        maybe = about or any(row.weight >= NEAR / 2 or row.cosine >= _CLOSE for row in (*said, *held))
        if wanted is question and maybe:
            _join(found.atoms, (row for row in held if row.weight >= NEAR or row.cosine >= _CLOSE))
            _join(found.unsure, (row for row in said if row.id not in found.turns))
    return found


def _with_successors(desk: SearchContext, rows: Sequence[WeighedRow]) -> list[WeighedRow]:
    """Return the rows with what took the place of ended ones: the words of an old price mean the new one."""
    atoms = {atom.id: atom for atom in desk.store.atoms(desk.space, [row.id for row in rows])}
    found: dict[str, WeighedRow] = {}
    for row in rows:
        atom = atoms.get(row.id)
        for _ in range(_SUCCESSORS):
            if atom is None or atom.valid_to is None:
                break
            atom = next(iter(desk.store.atoms(desk.space, filter(None, [atom.superseded_by]))), None)
        if atom is not None and atom.valid_to is None:
            _join(found, [replace(row, id=atom.id)])
    return list(found.values())


def _join(found: dict[str, WeighedRow], rows: Iterable[WeighedRow]) -> None:
    """Add the rows; a row found twice keeps its first place and its better scores."""
    for row in rows:
        before = found.get(row.id, row)
        found[row.id] = max(before, row, key=lambda one: (one.weight, one.cosine))


# --- in the order in which they find room -----------------------------------------------------------


def _lines(
    desk: SearchContext, question: str, wanted: RecallQuery | None, found: _RecallRows, words: AbstractSet[str],
    rules: RulesForPrompt, outputs: Sequence[RecallLine], *, known: str, there: Collection[str],
    reach: RecallLimits,
) -> Iterator[RecallLine]:  # fmt: skip
    held = [atom for atom in desk.store.atoms(desk.space, found.atoms) if atom.valid_to is None]
    holding = [atom for atom in held if atom.evidence not in there and not atom.held]
    ranked = sorted(holding, key=lambda atom: -_rank(desk, atom, found.atoms[atom.id]))
    ranked = [atom for atom in ranked if not is_shown_in(atom, known)]
    speakers = speakers_of(desk.store, desk.space, ranked)
    (about, unsure), repeated = distinct_turns(desk, list(found.turns), list(found.unsure))
    pairs = pairs_of_one_topic(desk.store, desk.space, [*about, *unsure]) if wanted else []
    replaced = replaced_by(desk.store, desk.space, pairs)
    possibly = possibly_changed(pairs, about)
    about = newer_first(about, {**possibly, **replaced})
    moved = {turn.id for turn in about}
    unsure = [turn for turn in unsure if turn.id not in moved]
    replaced = {**replaced, **rules.replaced}
    ended = desk.store.superseded_by(desk.space, [atom.id for atom in holding]) if holding else []
    notes = {atom.evidence: f"since replaced by {atom.superseded_by}" for atom in ended}
    widths = reach.assistant_widths if speaker_intent(question) == "assistant" else reach.widths
    verbatim = [
        replace(
            line,
            group=line.group if line.id in found.sure else reach.unsure,
            beside=possibly[line.id].id if line.id in possibly else None,
        )
        for line in of_turns(
            about, words=words, widths=widths, group=reach.certain, notes=notes, newer=replaced, repeated=repeated
        )
    ]
    verbatim.sort(key=lambda line: line.source in ("tool", "web"))  # stable: people first, each in the search's order
    bearing_out = {atom.evidence for atom in ranked}
    fresh = [line for line in verbatim if line.id not in bearing_out]
    weight = {id: row.weight for rows in (found.unsure, found.turns, found.atoms) for id, row in rows.items()}
    stated = [of_atom(atom, speakers.get(atom.id)) for atom in ranked]

    def of_unsure(turns: Iterable[Turn]) -> Iterator[RecallLine]:
        return of_turns(
            list(turns), words=words, widths=reach.unsure_widths, group=reach.unsure, notes=notes, newer=replaced,
            repeated=repeated,
        )  # fmt: skip

    def is_near(row: Turn | RecallLine) -> bool:
        return weight.get(row.id, 0.0) >= NEAR

    likely = of_unsure(turn for turn in unsure if is_near(turn) and turn.id not in bearing_out)
    near = [line for line in stated if is_near(line)]
    # The weightier of the next lines of the two comes first. Within each the order of its search stays: it knows more.
    by_weight = list(merge(near, chain(fresh, likely), key=lambda line: -weight.get(line.id, 0.0)))
    first, further = by_weight[: reach.before_rules], by_weight[reach.before_rules :]
    said = {rules.repeats.get(line.id, line.id) for line in first if line.id not in rules.in_part}
    ruled = rules.covered
    yield from first
    yield from (rule for rule in rules.lines if rule.id not in said)
    yield from (line for line in further if line.id not in ruled)
    yield from list(found.scenes.values())[:_SCENES]
    yield from _facts(desk, question, {*cited(known), *(atom.id for atom in held)})
    yield from (line for line in verbatim if line.id in bearing_out and line.id not in ruled)
    yield from outputs
    told = {*ruled, *(line.id for line in by_weight)}
    rest = of_unsure(turn for turn in unsure if turn.id not in told)
    yield from _alternately((line for line in stated if line.id not in told), rest)


def _each_once(lines: Iterable[RecallLine], *, apart: Collection[str]) -> Iterator[RecallLine]:
    """Yield the lines without further ones of the same row. Rules of the turns `apart` do not count as their lines."""
    shown: set[tuple[str, bool]] = set()
    for line in lines:
        key = line.id, line.group == "rule" and line.id in apart
        if key not in shown:
            shown.add(key)
            yield line


def _alternately(*several: Iterable[RecallLine]) -> Iterator[RecallLine]:
    return (line for some in zip_longest(*several) for line in some if line is not None)


def _rank(desk: SearchContext, atom: Atom, row: WeighedRow) -> float:
    similarity = min(1.0, max(row.weight, row.cosine))
    rank = desk.settings.recall_similarity * similarity + desk.settings.recall_confidence * atom.confidence
    return rank * TRUST[atom.source]


# --- facts, scenes, tool results -------------------------------------------------------------


def _facts(desk: SearchContext, question: str, shown: set[str]) -> list[RecallLine]:
    """Return facts of the entities that the question names in full, except the user, whose atoms are not shown."""
    words = set(index_terms(question))
    named = [
        one.name
        for one in desk.store.entities(desk.space, limit=_ENTITIES)
        if fold(one.name) != "user"
        and any(terms and terms <= words for terms in map(set, terms_of_each((one.name, *one.aliases))))
    ]
    facts = {
        fact.atom: fact
        for name in named[:_FACTS]
        for fact in desk.store.facts(desk.space, filters=Filters(entity=name, unheld=True), limit=_FACTS)
        if fact.atom not in shown
    }
    return [of_fact(fact) for fact in list(facts.values())[:_FACTS]]


def _scenes(wanted: RecallQuery, held: Sequence[WeighedRow]) -> list[RecallLine]:
    """Return a line for each scene that is relevant, or has an atom that is."""
    desk = wanted.desk
    scenes = current(desk.store, desk.space)
    if not scenes:
        return []
    atoms = {row.id: row.weight for row in held}
    own = weights_of(wanted, "turn", {scene.slug: terms_of(text_of(scene)) for scene in scenes})
    weights = {scene.slug: max([own[scene.slug], *(atoms.get(id, 0.0) for id in scene.atoms)]) for scene in scenes}
    about = sorted((scene for scene in scenes if weights[scene.slug] >= ABOUT), key=lambda one: -weights[one.slug])
    words = frozenset(query_terms(wanted.text))
    return [of_scene(scene, words) for scene in about[:_SCENES]]


def _outputs(wanted: RecallQuery, words: AbstractSet[str]) -> list[RecallLine]:
    """Return relevant lines of tool results; they need the weight that a turn would need.

    Lines that read like instructions are counted, not shown, and do not make a result relevant.
    """
    desk = wanted.desk
    hits: dict[str, ResultHit] = {}
    left_out: dict[str, int] = {}
    for hit in results(desk.store, desk.space, wanted.text, filters=Filters(), limit=_OUTPUTS):
        at = address(hit.ref, hit.lines)
        text, left_out[at] = without_orders(hit.text)
        hits[at] = replace(hit, text=text)
    weights = weights_of(wanted, "chunk", {at: terms_of(hit.text) for at, hit in hits.items()})
    lines: list[RecallLine] = []
    for at, hit in hits.items():
        if weights[at] >= ABOUT and not flags(f"{hit.call}\n{hit.text}", "tool"):
            line = of_output(hit, words)
            note = f" ({left_out[at]} suspicious left out)" if left_out[at] else ""
            lines.append(replace(line, text=f"{line.text}{note}"))
    return lines


# --- the end of the last conversation ---------------------------------------------------------------


def last_conversation(desk: SearchContext, there: Collection[str]) -> list[RecallLine]:
    """Return the last turns of the latest conversation, other than the one that is `there`."""
    sessions = sorted(desk.store.sessions(desk.space, limit=_SESSIONS), key=lambda one: one.last, reverse=True)
    for one in sessions:
        said = desk.store.last_turns(desk.space, one.session, limit=_ENDING, roles=("user", "assistant"))
        said = unheld(desk, said)
        if said and not any(turn.id in there for turn in said):
            head = f"- The last conversation, session {one.session}, ended so on {one.last:%Y-%m-%d}, latest first:"
            turns = of_turns(said[::-1], words=frozenset(), widths=(_ENDING_CHARS,), group="end")
            return [RecallLine(group="end", id=one.session, text=head), *turns]
    return []


_LONGEST = 400  # characters; a longer turn names its own subject


def asks_to_continue(question: str) -> bool:
    return len(question) <= _LONGEST and question_pattern("CONTINUE").search(question) is not None
