"""The lines of recall's dynamic block for a question and the current conversation, before they are cut to the budget.

In order of priority: atoms and verbatim turns by relevance, and after the first few the standing rules that apply
to the question; then scenes, facts of the entities that the question names, and lines of tool results. Scenes and
facts repeat atoms: placed before atoms, they cost a recall of 600 tokens 3 points of the evidence (`bench.pyramid`).
`search.answerability` judges the rows; rows that are not surely about the question follow as `unsure`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import merge
from itertools import chain, zip_longest

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Source, Turn
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.recall.line import Group, RecallLine
from mcp_memory.longterm.recall.lines import (
    RecallLimits,
    distinct_turns,
    is_shown_in,
    mark_suspects,
    of_atom,
    of_fact,
    of_outdated,
    of_output,
    of_scene,
    of_turns,
    without_quarantined,
)
from mcp_memory.longterm.recall.overview import asks_for_overview, overview_lines
from mcp_memory.longterm.recall.rules import RulesForPrompt, rules_for
from mcp_memory.longterm.search.answerability import JUDGED, Judgement, find_rows, judge_question, without_echoes
from mcp_memory.longterm.search.changed import (
    changed_statements,
    newer_first,
    pairs_of_one_topic,
    possibly_changed,
    replaced_by,
)
from mcp_memory.longterm.search.feedback import WRONG, opinions
from mcp_memory.longterm.search.query import speaker_intent
from mcp_memory.longterm.search.results import results
from mcp_memory.longterm.search.scenes import current_scenes
from mcp_memory.longterm.search.search import Ranked, SearchContext
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.longterm.validity import current_atoms, current_facts, is_past, without_past
from mcp_memory.longterm.verification.trust import speakers_of
from mcp_memory.store.citations import cited_atoms
from mcp_memory.store.sql import atom_rows, entity_rows, quarantine_rows
from mcp_memory.store.values import Filters
from mcp_memory.suspicion.flags import flags, without_orders

_SCENES, _FACTS, _OUTPUTS = 3, 5, 2
_SUCCESSORS = 5  # one after the other
_FIRST = 6  # turns of a search that are about a question where the memory likely knows: most answers are among them
_MAX_EXCLUDED = 100  # turns of the context or in quarantine, which may be found before others
_SUREST = 500  # atoms, those of the highest priorities, that are ordered where nothing is asked
_CONTEXT_CHARS = 300
_ENTITIES = 1_000
_OUTPUT_SHARE = 0.6  # least share of a question's words in a tool result: numbers match by chance


TRUST: dict[Source, float] = {
    "user": 1.0,
    "assistant": 0.95,
    "import": 0.95,
    "quoted": 0.85,
    "tool": 0.85,
    "web": 0.7,
}
"""Factor of an atom's rank by its source: of two equal answers the user's comes first."""


def top_by_confidence(context: SearchContext, *, shown: str) -> Iterator[RecallLine]:
    """Yield lines of current atoms by confidence, weighted by the trust in their source, without atoms in `shown`."""
    atoms = current_atoms(context.store, context.space, Filters(unheld=True), context.now, limit=_SUREST)
    ordered = sorted(atoms, key=lambda atom: -atom.confidence * TRUST[atom.source])
    return mark_suspects(context, (of_atom(atom, context.now) for atom in ordered if not is_shown_in(atom, shown)))


def dynamic_lines(
    context: SearchContext,
    question: str,
    recent_turns: Sequence[Turn],
    *,
    shown_text: str,
    in_context: Collection[str] = (),
    reach: RecallLimits = RecallLimits(),  # noqa: B008  frozen
    judgement: Judgement | None,
    ending: Sequence[RecallLine] = (),
) -> Iterator[RecallLine]:
    """Yield the lines of the `ending`, then those for the question and the recent turns, each row once.

    Anything in `shown_text`, in the recent turns or `in_context` is left out, and atoms extracted from these turns.
    `judgement` is about the question; None for an empty question. Lines are made lazily. Rows that somebody found wrong
    for this very question are left out.
    """
    talk = [one_line(turn.content, _CONTEXT_CHARS) for turn in recent_turns if small_talk_kind(turn.content) is None]
    excluded = {*in_context, *(turn.id for turn in recent_turns)}
    asked = "" if small_talk_kind(question) else question.strip()
    rows = _find_recall_rows(context, asked, judgement, "\n".join(talk), excluded, reach)
    words = frozenset(query_terms("\n".join([question, *talk])))
    rules = rules_for(context, asked, excluded, reach, shown_text) if asked else RulesForPrompt()
    outputs = _output_lines(context, asked, words) if asked and reach.outputs else []
    pages = _scene_lines(context, rows, words)
    shown = {line.id for line in ending}
    shown |= {id for id, opinion in opinions(context.store, context.space, asked).items() if opinion == WRONG}
    made = _lines(
        context, question, rows, words, rules, pages, outputs, shown_text=shown_text, in_context=in_context, reach=reach
    )
    if asked and (rows.turns or rows.unsure) and reach.overview and asks_for_overview(question):
        lines = overview_lines(context, asked, excluded, words, shown_text, rules.replaced)
        first, further = lines[: reach.before_rules], lines[reach.before_rules :]
        made = _each_once(chain(first, rules.lines, pages, further, outputs, made), in_part=rules.in_part)
        ended = rules.covered.difference(line.id for line in rules.lines)
        made = (line for line in made if line.id not in ended)
    return mark_suspects(context, chain(ending, (line for line in made if line.id not in shown)))


# --- search -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RecallRows:
    """Rows found for the question and the conversation, each in the order of its search."""

    turns: dict[str, None] = field(default_factory=dict[str, None])
    unsure: dict[str, None] = field(default_factory=dict[str, None])
    """Further turns found for the question."""
    atoms: dict[str, Ranked] = field(default_factory=dict[str, Ranked])
    """Current statements by id. The successor of an ended statement has the hit of that statement."""
    chances: dict[str, float] = field(default_factory=dict[str, float])
    """The probability of each turn and statement that it is part of the answer."""
    sure: set[str] = field(default_factory=set[str])
    """Turns and statements that are surely about the question or the conversation."""

    def chance(self, id: str) -> float:
        return self.chances.get(id, 0.0)


def _find_recall_rows(
    context: SearchContext,
    question: str,
    judgement: Judgement | None,
    talk: str,
    excluded: set[str],
    reach: RecallLimits,
) -> _RecallRows:
    """Return rows for the question, then for the conversation, without the turns `excluded`."""
    recall_rows = _RecallRows()
    aside = [
        row.id
        for row in context.store.read(context.space, quarantine_rows.list_quarantined, limit=_MAX_EXCLUDED)
        if row.id.startswith("t")
    ]
    many = reach.turns + min(len(excluded) + len(aside), _MAX_EXCLUDED)
    for text, judged in ((question, judgement), (talk, judge_question(context, talk))):
        if not text or judged is None:
            continue
        hits, _ = without_echoes(
            context.store, context.space, text, find_rows(context, "turn", text, 2 * many), limit=many
        )
        turn_ids = [hit.id for hit in without_quarantined(context, [hit for hit in hits if hit.id not in excluded])]
        if judged.known != "unlikely":
            recall_rows.turns.update(dict.fromkeys(id for id in turn_ids if id in judged.rows))
            recall_rows.sure.update(judged.close)
        stated = list(_current_hits(context, find_rows(context, "atom", text, JUDGED)))
        recall_rows.sure.update(id for id, hit in stated if hit.id in judged.close)
        if text is question:
            recall_rows.unsure.update(dict.fromkeys(id for id in turn_ids if id not in recall_rows.turns))
            if judged.known == "likely":
                recall_rows.sure.update(turn_ids[:_FIRST], (id for id, _ in stated[:_FIRST]))
        rows = {id: judged.rows.get(id, 0.0) for id in turn_ids}
        for id, hit in stated:
            if text is question or hit.id in judged.close:
                recall_rows.atoms.setdefault(id, hit)
                rows[id] = max(rows.get(id, 0.0), judged.rows.get(hit.id, 0.0))
        recall_rows.chances.update((id, max(recall_rows.chance(id), chance)) for id, chance in rows.items())
    return recall_rows


def _current_hits(context: SearchContext, hits: Sequence[Ranked]) -> Iterator[tuple[str, Ranked]]:
    """Yield the ids of current statements with their hits; an ended statement is replaced by its successor."""
    atoms = {atom.id: atom for atom in context.store.read(context.space, atom_rows.by_ids, [hit.id for hit in hits])}
    for hit in hits:
        atom = atoms.get(hit.id)
        for _ in range(_SUCCESSORS):
            if atom is None or not is_past(atom, context.now):
                break
            atom = next(
                iter(context.store.read(context.space, atom_rows.by_ids, filter(None, [atom.superseded_by]))), None
            )
        if atom is not None and not is_past(atom, context.now):
            yield atom.id, hit


# --- in the order in which they find room -----------------------------------------------------------


def _lines(
    context: SearchContext, question: str, rows: _RecallRows, words: AbstractSet[str], rules: RulesForPrompt,
    pages: Sequence[RecallLine], outputs: Sequence[RecallLine], *, shown_text: str, in_context: Collection[str],
    reach: RecallLimits,
) -> Iterator[RecallLine]:  # fmt: skip
    current_atoms_found = without_past(context.store.read(context.space, atom_rows.by_ids, rows.atoms), context.now)
    holding = [atom for atom in current_atoms_found if atom.evidence not in in_context and not atom.held]
    ranked = sorted(holding, key=lambda atom: -_rank(context, atom, rows))
    ranked = [atom for atom in ranked if not is_shown_in(atom, shown_text)]
    speakers = speakers_of(context.store, context.space, ranked)
    (about, unsure), repeated = distinct_turns(context, list(rows.turns), list(rows.unsure))
    pairs = pairs_of_one_topic(context.store, context.space, [*about, *unsure])
    replaced = replaced_by(context.store, context.space, pairs)
    possibly = possibly_changed(pairs, about)
    about = newer_first(about, {**possibly, **replaced})
    moved = {turn.id for turn in about}
    unsure = [turn for turn in unsure if turn.id not in moved]
    replaced = {**replaced, **rules.replaced}
    ended = context.store.read(context.space, atom_rows.superseded_by, [atom.id for atom in holding]) if holding else []
    notes = {atom.evidence: f"since replaced by {atom.superseded_by}" for atom in ended}
    widths = reach.assistant_widths if speaker_intent(question) == "assistant" else reach.widths
    verbatim = [
        replace(
            line,
            group=line.group if line.id in rows.sure else reach.unsure,
            beside=possibly[line.id].id if line.id in possibly else None,
        )
        for line in of_turns(
            about, words=words, widths=widths, group=reach.certain, notes=notes, newer=replaced, repeated=repeated
        )
    ]
    verbatim.sort(key=lambda line: line.source in ("tool", "web"))  # stable: people first, each in the search's order
    bearing_out = {atom.evidence for atom in ranked}
    fresh = [line for line in verbatim if line.id not in bearing_out]
    outdated = changed_statements(context.store, context.space, ranked, [*about, *unsure])
    groups: dict[str, Group] = {line.id: line.group for line in verbatim}
    stated = {
        atom: of_outdated(atom, outdated[atom.id], groups.get(outdated[atom.id].id, reach.unsure))
        if atom.id in outdated
        else of_atom(atom, context.now, speakers.get(atom.id))
        for atom in ranked
    }
    sure = [line for line in stated.values() if line.id in rows.sure]
    # The likelier of the next lines of the two comes first. Within each the order of its search stays: it knows more.
    by_chance = list(merge(sure, fresh, key=lambda line: -rows.chance(line.id)))
    first, further = by_chance[: reach.before_rules], by_chance[reach.before_rules :]
    shown_rules = {rules.repeats.get(line.id, line.id) for line in first if line.id not in rules.in_part}
    ruled = rules.covered
    yield from first
    yield from (rule for rule in rules.lines if rule.id not in shown_rules)
    further = [line for line in further if line.id not in ruled]
    yield from (line for line in further if line.id in rows.sure)
    yield from pages
    yield from _fact_lines(context, question, {*cited_atoms(shown_text), *(atom.id for atom in current_atoms_found)})
    yield from (line for line in verbatim if line.id in bearing_out and line.id not in ruled)
    yield from (line for line in further if line.id not in rows.sure)
    yield from outputs
    shown_ids = {*ruled, *(line.id for line in by_chance)}
    rest = of_turns(
        [turn for turn in unsure if turn.id not in shown_ids], words=words, widths=reach.unsure_widths,
        group=reach.unsure, notes=notes, newer=replaced, repeated=repeated,
    )  # fmt: skip
    unlikely = (replace(line, group=reach.unsure) for line in stated.values() if line.id not in shown_ids)
    for pair in zip_longest(unlikely, rest):
        yield from filter(None, pair)


def _each_once(lines: Iterable[RecallLine], *, in_part: Collection[str]) -> Iterator[RecallLine]:
    """Yield the first line of each row; a turn `in_part` may have a line as a rule and another line."""
    shown: set[tuple[str, bool]] = set()
    for line in lines:
        key = line.id, line.group == "rule" and line.id in in_part
        if key not in shown:
            shown.add(key)
            yield line


def _rank(context: SearchContext, atom: Atom, rows: _RecallRows) -> float:
    best = max(hit.score for hit in rows.atoms.values())
    similarity = rows.atoms[atom.id].score / best if best else 0.0
    rank = context.settings.recall_similarity * similarity + context.settings.recall_confidence * atom.confidence
    return rank * TRUST[atom.source]


# --- facts, scenes, tool results -------------------------------------------------------------


def _fact_lines(context: SearchContext, question: str, shown: set[str]) -> list[RecallLine]:
    """Return lines for facts of the entities that the question names in full, except the user.

    Facts of `shown` atoms are left out.
    """
    words = set(index_terms(question))
    named = [
        names[0]
        for names in context.store.read(context.space, entity_rows.with_facts, limit=_ENTITIES)
        if fold(names[0]) != "user" and any(terms and terms <= words for terms in map(_terms_of_name, names))
    ]
    facts = {
        fact.atom: fact
        for name in named[:_FACTS]
        for fact in context.store.read(
            context.space, atom_rows.facts, filters=Filters(entity=name, unheld=True), limit=_FACTS
        )
        if fact.atom not in shown
    }
    return [of_fact(fact) for fact in current_facts(context.store, context.space, facts.values(), context.now)[:_FACTS]]


@lru_cache(maxsize=20_000)  # the names of many entities, in each recall
def _terms_of_name(name: str) -> frozenset[str]:
    return frozenset(index_terms(name))


def _scene_lines(context: SearchContext, rows: _RecallRows, words: AbstractSet[str]) -> list[RecallLine]:
    """Return lines for the best scenes, at most three.

    The likeliest sure statement of a scene must be more than half as likely as that of the best scene.
    """
    chances = {
        scene: max((rows.chance(id) for id in scene.atoms if id in rows.sure), default=0.0)
        for scene in current_scenes(context.store, context.space)
    }
    least = max(chances.values(), default=0.0) / 2
    about = sorted((scene for scene in chances if chances[scene] > least), key=lambda scene: -chances[scene])
    return [of_scene(scene, words) for scene in about[:_SCENES]]


def _output_lines(context: SearchContext, question: str, words: AbstractSet[str]) -> list[RecallLine]:
    """Return lines of tool results that have most of the question's words, but none of the files of projects.

    Lines that read like instructions are counted, not shown. A result still suspicious without these lines is left out.
    """
    lines: list[RecallLine] = []
    store, space = context.store, context.space
    for hit in results(store, space, question, filters=Filters(), limit=_OUTPUTS, least=_OUTPUT_SHARE, files=False):
        text, left_out = without_orders(hit.text)
        if not flags(f"{hit.call}\n{text}", "tool"):
            line = of_output(replace(hit, text=text), words)
            note = f" ({left_out} suspicious left out)" if left_out else ""
            lines.append(replace(line, text=f"{line.text}{note}"))
    return lines
