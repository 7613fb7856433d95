"""Checks the statements that an agent makes in the user's name, and limits the changes that they may make.

An agent's statement about the user is kept in the words of the user that it restates (`own_words`), and quarantined if
there are none. It ends another statement only if these words have the same negation and certainty and are about no
other person, and it states a fact only if the user said nothing more (`stated_facts`). Any other statement that no turn
of the user supports is kept as the agent's word and marked so. Text that a person types at a command line or into a
form counts as their own words. Tool outputs that were neither recorded nor offloaded are not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, pairwise

from mcp_memory.core.text import one_line
from mcp_memory.core.types import SAID_BY, Atom, Role, Turn
from mcp_memory.language.sentences import is_negative, people, sentences
from mcp_memory.language.when.annotate import with_dates
from mcp_memory.language.words import base_terms, fold
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.names import name_words, names_in
from mcp_memory.longterm.standing_rules import possible_rules
from mcp_memory.longterm.turns import without_lead_in
from mcp_memory.longterm.validity import states_end
from mcp_memory.longterm.verification.comparison import known_terms, share_of, word_list, words_in
from mcp_memory.longterm.verification.own_words import (
    Said,
    changes_frame,
    is_near,
    is_taken_back,
    own_words,
    probable_words,
    repeats,
)
from mcp_memory.longterm.verification.stated_facts import states_fact
from mcp_memory.longterm.verification.trust import (
    MAX_ROW_CHARS,
    MIN_TERMS,
    REASONS,
    SAME_SHARE,
    TOOL_OUTPUTS,
    USER_TURNS,
    content_terms,
    is_less_trusted,
    largest_share,
    quarantine,
    row_ids_with,
    rows_with,
    suspicious_ids,
    turns_of_others,
    with_allowed_kind,
    without_effects,
)
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, turn_rows
from mcp_memory.store.values import Filters, NewAtom, Vectors
from mcp_memory.suspicion.flags import flags

Embed = Callable[[str], Sequence[Vectors]]


_OWN = 0.5  # share in the user's words: it may paraphrase the user


_NEAREST, _SESSIONS, _LATEST = 8, 2, 6  # turns of the user that may state a rule: by meaning; and in how many sessions


_FOLLOWING = 4  # following turns that are searched for a withdrawal


_ENDED = 500  # rules that no longer hold


_OUTPUTS_READ, _OUTPUT_CHARS = 8, 6_000  # tool results that are embedded, and characters of each


USER_NOUN = "the user"


_WORDS_SHOWN = 200  # characters in a note


@dataclass(frozen=True, slots=True)
class _Basis:
    """The basis of a statement that an agent makes in the user's name.

    `words` are the user's words that are kept in its place; empty if the agent's are kept. `held` are the reasons to
    quarantine it. If `is_exact`, the words have the same meaning, so that it may state a fact and end statements; if
    `is_probable`, they may have another meaning, so that it states no rule and no trait.
    """

    held: tuple[str, ...]
    words: Sequence[Said] = ()
    is_exact: bool = False
    is_probable: bool = False


def _find_basis(store: Store, space: str, atom: NewAtom, text: str, embed: Embed, excluded: Sequence[str]) -> _Basis:
    """Find the user's words for a statement; `text` is the statement with its fact."""
    rules = _rules_of(atom)
    near = _users_words(store, space, atom.text, embed, excluded)
    if atom.label == "promise" and (promised := _find_promise(atom.text, near.sentences)):
        return _Basis(flags(str(promised), "user"), [promised], is_exact=True)
    claim = _about_the_user(atom.text, near.name)
    words = own_words(claim, near.sentences, rule=bool(rules))
    if not words and rules and atom.kind == "persona":  # "The user always reads the last page"
        words = own_words(claim, near.sentences, rule=False)
        rules = [rule for rule in rules if rule != atom.text] if words else rules
    kept = "\n".join(map(str, words))
    is_exact = bool(words) and _is_exact(atom, words)
    # About other matters an agent may know more than the user, whose words must then have all terms of the statement.
    is_whole = bool(words) and share_of(atom.text, known_terms(kept)) == 1
    if words and (is_whole or rules or _is_about_the_user(atom)):
        return _Basis(flags(f"{kept}\n{text}" if is_exact else kept, "user"), words, is_exact)
    hidden = flags(text, "user")
    suspected = [flag for flag in flags(text, "assistant") if flag not in hidden]
    whole = claim if atom.value is None else _about_the_user(text, near.name)
    probable = None if hidden or suspected else _probable_words(store, space, whole, near, rule=bool(rules))
    if rules:
        return _probable_basis(probable, rule=True) if probable else _Basis((*hidden, *suspected, "unstated"))
    echo = (
        largest_share(store, space, text, USER_TURNS) < _OWN
        and largest_share(store, space, text, TOOL_OUTPUTS) >= SAME_SHARE
    )
    if not echo and any(repeats(atom.text, output) for output in _outputs(store, space, atom.text, embed)):
        echo = True
    if probable and not echo and _is_about_the_user(atom):
        return _probable_basis(probable, rule=False)
    missing = ["unsaid"] if echo else ["unstated"] if _is_about_the_user(atom) else []
    return _Basis((*hidden, *suspected, *missing))


def _find_promise(claim: str, messages: Sequence[Said]) -> Said | None:
    """Return the user's sentence that a promise restates, or None.

    `own_words` cannot find it, because it skips conditions and orders for later.
    """
    claim_terms = set(base_terms(claim))
    best: Said | None = None
    least = _OWN
    for message in messages:
        for start, end in sentences(message.text):
            terms = set(base_terms(message.text[start:end]))
            share = len(terms & claim_terms) / max(len(terms), len(claim_terms), 1)
            if share >= least and len(terms) >= MIN_TERMS:
                sentence = message.text[start:end].strip()
                first, last = without_lead_in(sentence, 0, len(sentence))
                best, least = replace(message, text=sentence[first:last], before=""), share
    return best


def _probable_words(store: Store, space: str, claim: str, near: _UsersWords, *, rule: bool) -> Said | None:
    """Return the user's words from which a claim was probably derived; None if the user replaced or retracted them."""
    words = probable_words(claim, near.sentences, rule=rule, ended=_ended_rules(store, space) if rule else ())
    if words is None:
        return None
    turn = next(
        turn
        for turn, message in zip(near.turns, near.sentences, strict=True)
        if (message.message, message.at) == (words.message, words.at)
    )
    session = [other for other in near.turns if other.session == turn.session]
    return None if turn.id in _taken_back(store, space, words.text, session) else words


def _ended_rules(store: Store, space: str) -> list[str]:
    """Return the texts of rules that have ended, and the quotes that are their evidence."""
    rules = store.read(space, atom_rows.list_atoms, filters=Filters(kind="instruction", ended=True), limit=_ENDED)
    ended = [atom for atom in rules if atom.valid_to is not None]
    return [
        text
        for atom in ended
        for text in (atom.text, *(row.quote for row in store.read(space, atom_rows.evidence, atom.id)))
    ]


def _probable_basis(words: Said, *, rule: bool) -> _Basis:
    return _Basis(flags(str(words), "user"), [words], is_probable=not rule)


def _is_exact(atom: NewAtom, words: Sequence[Said]) -> bool:
    """Return whether the user's words say enough for a statement to state its fact and to end others.

    If the statement has a fact, the words must state that fact and nothing more. Otherwise they must have the same
    negation, time and mood as the statement, and mention only people whom it mentions.
    """
    if atom.entity and atom.relation and atom.value:
        return states_fact(words, entity=atom.entity, relation=atom.relation, value=atom.value)
    text = "\n".join(map(str, words))
    is_same = is_negative(text) == is_negative(atom.text) and not changes_frame(text, atom.text)
    return is_same and _people_in(text) <= _people_in(atom.text)


def _people_in(text: str) -> set[str]:
    return {match[1] for match in people().finditer(text.lower())}


def _about_the_user(text: str, name: str | None) -> str:
    """Return a statement with "the user" in place of the user's name."""
    return text if not name else re.sub(rf"\b{re.escape(name)}\b", USER_NOUN, text)


def _is_about_the_user(atom: NewAtom) -> bool:
    """Return whether a statement is about the user, by its kind, label or entity, or by its words."""
    return atom.kind == "persona" or atom.label == "promise" or names_the_user(atom.text, atom.entity)


def names_the_user(text: str, entity: str | None) -> bool:
    """Return whether a statement names the user as such: by the entity of its fact, or as "the user" in its words."""
    if entity and fold(entity) in name_words("user"):
        return True
    return not word_list("users").isdisjoint(words_in(text.lower()))


def _rules_of(atom: NewAtom) -> list[str]:
    """Return the texts of a statement that are rules, its sentence and its fact, whatever its kind: "Always run …".

    A promise is not a rule, because it applies to one occasion.
    """
    if atom.label == "promise":
        return []
    is_rule = atom.kind == "instruction" or bool(possible_rules(atom.text))
    rules = [atom.text] if is_rule else []
    if atom.relation and atom.value and fact_states_rule(atom.relation, atom.value):
        rules.append(f"{atom.relation.replace('_', ' ')} {atom.value}")
    return rules


def fact_states_rule(relation: str, value: str) -> bool:
    """Return whether a fact's relation or value is worded as a rule, such as `must always` or "never ask".

    Single-valued relations, such as `name`, are not read as part of an order.
    """
    named = relation.replace("_", " ")
    worded = (f"{named} {value}", f"{named}: {value}") if relation not in name_words("single-valued") else ()
    return any(map(possible_rules, (value, *worded)))


@dataclass(frozen=True, slots=True)
class _UsersWords:
    """The user's messages near to a statement, in order of time, with the assistant's question before each.

    `turns` are the stored turns of `sentences`; `name` is the user's name.
    """

    sentences: list[Said]
    turns: list[Turn]
    name: str | None


def _users_words(store: Store, space: str, text: str, embed: Embed, excluded: Sequence[str]) -> _UsersWords:
    """Return the user's turns that match a text in words or meaning or answer a matching turn, and the latest turns.

    Sentences in `excluded`, and turns that are quarantined, retracted or by other people, are left out.
    """
    turns = _near_turns(store, space, text, "user", embed)
    pairs = [
        (turn, after)
        for turn in _near_turns(store, space, text, "assistant", embed)
        for after in store.read(space, turn_rows.session_turns, turn.session, start=turn.position + 1, limit=1)
    ]
    for session in store.read(space, turn_rows.sessions, limit=_SESSIONS):
        turns += store.read(space, turn_rows.last_turns, session.session, limit=_LATEST, roles=("user",))
        pairs += pairwise(
            store.read(space, turn_rows.last_turns, session.session, limit=2 * _LATEST, roles=("user", "assistant"))
        )
    read = dict.fromkeys((*turns, *chain.from_iterable(pairs)))
    aside = suspicious_ids(store, space, read) | turns_of_others(store, space, read)
    aside |= _taken_back(store, space, text, [turn for turn in read if turn.id not in aside])
    asked = {after.id: before.content for before, after in pairs if before.role == "assistant"}
    theirs = {turn.id: turn for turn in (*turns, *(after for _, after in pairs)) if turn.role == "user"}
    # an agent writes the "since Monday" of a user as a date
    ordered = sorted(theirs.values(), key=lambda turn: (turn.said_at, turn.position))
    kept = [turn for turn in ordered if turn.id not in aside]
    sentences = [
        Said(text, asked.get(turn.id, ""), turn.said_at, message=text)
        for turn in kept
        for text in (_without(with_dates(typed_text(turn.content[:MAX_ROW_CHARS]), turn.said_at), excluded),)
    ]
    return _UsersWords(sentences=sentences, turns=kept, name=names_in(store, space, read).user)


def _without(text: str, excluded: Sequence[str]) -> str:
    """Return a text without the `excluded` statements and sentences that have nearly the same words."""
    for statement in excluded:
        text = text.replace(statement, " ")
    for terms in map(set, map(base_terms, excluded)):
        for start, end in reversed(list(sentences(text))):
            own = set(base_terms(text[start:end]))
            if own and len(own & terms) >= SAME_SHARE * max(len(own), len(terms)):
                text = text[:start] + text[end:]
    return text


def _taken_back(store: Store, space: str, claim: str, turns: Sequence[Turn]) -> set[str]:
    """Return the ids of those of the turns that the user retracts or corrects later in the session.

    Only the few turns after each turn, and later turns among `turns`, are searched for a retraction.
    """
    theirs = [turn for turn in turns if turn.role == "user"]
    withdrawn: set[str] = set()
    for turn in theirs:
        following = store.read(space, turn_rows.session_turns, turn.session, start=turn.position + 1, limit=_FOLLOWING)
        near = [other for other in theirs if other.session == turn.session and other.position > turn.position]
        later = {other.id: other for other in (*following, *near) if other.role == "user"}
        ordered = sorted(later.values(), key=lambda other: other.position)
        if is_taken_back(
            claim, typed_text(turn.content[:MAX_ROW_CHARS]), [typed_text(other.content) for other in ordered]
        ):
            withdrawn.add(turn.id)
    return withdrawn


def _outputs(store: Store, space: str, text: str, embed: Embed) -> list[str]:
    texts = [turn.content for turn in _near_turns(store, space, text, "tool", embed)]
    texts += rows_with(store, space, "chunk", None, list(content_terms(text)))
    return [output[:_OUTPUT_CHARS] for output in texts[:_OUTPUTS_READ]]


def _near_turns(store: Store, space: str, text: str, role: Role, embed: Embed) -> list[Turn]:
    """Return the turns of a role that have the words of a text, then those that are near to its meaning."""
    ids = row_ids_with(store, space, "turn", role, list(content_terms(text)))
    for vectors in embed(text):
        ids += [hit.id for hit in store.nearest(space, "turn", vectors, filters=Filters(role=role), limit=_NEAREST)]
    return store.read(space, turn_rows.by_ids, dict.fromkeys(ids))


def check_claim(
    store: Store,
    space: str,
    atom: NewAtom,
    *,
    embed: Embed,
    typed: bool = False,
    dated: bool = True,
    excluded: Sequence[str] = (),
    said_in: str | None = None,
) -> tuple[NewAtom, str | None]:
    """Return the accepted form of a statement, and a note for the agent about the changes, None if nothing changed.

    If the user `typed` it, no turn has to state it. If it is not `dated`, its time is unknown, and it is true from the
    time of the user's words on. These words are searched in the space `said_in`, by default that of the statement.
    `excluded` are statements whose sentences do not count as the user's words. `embed` gives the vectors by which turns
    of the same meaning are found. A quarantined statement supersedes nothing and
    states no fact; other people's statements never supersede the user's.
    """
    names = [] if atom.relation is None else [atom.entity, atom.relation.replace("_", " "), atom.value]
    full_text = "\n".join(part for part in (atom.text, *names) if part)
    notes: list[str] = []
    if atom.source != "user" or typed:
        why, is_said = flags(full_text, atom.source), True
    else:
        basis = _find_basis(store, said_in or space, atom, full_text, embed, excluded)
        why, is_said = basis.held, bool(basis.words)
        atom, notes = _reword(store, space, atom, basis, dated=dated)
    if why:
        because = ", ".join(REASONS.get(reason, reason) for reason in why)
        again = "record their words with record_turns, unless that is done for you, and call again"
        if "unstated" in why:
            again += ", in their words"
        return with_allowed_kind(quarantine(atom, why)), (
            f"It is stored, but waits for review and is not recalled until then: {because}. Tell the user in a "
            f"sentence; they release it with `mcp-memory review`. If they said it themselves, {again}."
        )
    if not is_said:
        atom = replace(atom, source="assistant")
        notes.append("Kept as your own word: no recorded turn of the user says it.")
    checked = _keep_statements_of_user(store, space, with_allowed_kind(atom))
    if checked.kind != atom.kind:
        notes.append(
            f"Kept as episodic: a rule, trait or promise needs the user's own word, and {SAID_BY[atom.source]} said it."
        )
    if checked.entity != atom.entity or tuple(checked.supersedes) != tuple(atom.supersedes):
        notes.append(f"It replaces nothing: what the user said is not ended by {SAID_BY[atom.source]}.")
    return checked, " ".join(notes) or None


def _reword(store: Store, space: str, atom: NewAtom, basis: _Basis, *, dated: bool) -> tuple[NewAtom, list[str]]:
    """Return a statement in the user's words, if there are any, and notes for the agent.

    Unless it is `dated`, it is true at the latest from the time of these words on. If the words are not exact
    (`_is_exact`), it states no fact and ends nothing. It ends no statement about something else and no later statement.
    """
    notes: list[str] = []
    if not basis.words:
        return atom, notes
    words = " ".join(map(str, basis.words))
    if words != atom.text:
        notes.append(f"Kept in the user's own words: {one_line(words, _WORDS_SHOWN)!r}.")
    if not basis.is_exact and (atom.entity or atom.supersedes):
        notes.append("It states no fact and replaces nothing, because the user said something else or more.")
        atom = without_effects(atom)
    if basis.is_probable:
        notes.append("Kept as episodic: they do not clearly say so.")
        atom = replace(atom, kind="episodic", priority=70 if atom.priority < 0 else atom.priority)
    said_at = max((message.at for message in basis.words if message.at), default=atom.valid_from)
    if atom.valid_to is not None and not states_end(words, said_at, atom.valid_to):
        notes.append("Kept without valid_until: the user's words do not clearly give that end.")
        if atom.valid_to <= said_at and (atom.entity or atom.supersedes):  # it may be past, so it replaces no value
            notes.append("It states no fact and replaces nothing.")
            atom = without_effects(atom)
        atom = replace(atom, valid_to=None)
    if not dated:
        atom = replace(atom, valid_from=min(atom.valid_from, said_at))
        if atom.single_valued and (until := _replaced_at(store, space, atom)):
            atom = replace(atom, valid_to=until)
    older = store.read(space, atom_rows.by_ids, atom.supersedes)
    left = {old.id: "that is about something else" for old in older if not _is_same_matter(old, atom, basis.words)}
    left |= {old.id: "that was said later" for old in older if old.valid_from > atom.valid_from}
    notes += [f"It does not replace {id}: {why}." for id, why in left.items()]
    atom = replace(atom, supersedes=tuple(id for id in atom.supersedes if id not in left))
    return replace(atom, text=words), notes


def _replaced_at(store: Store, space: str, atom: NewAtom) -> datetime | None:
    """Return when the next value of an atom's fact began, or None."""
    facts = store.read(space, atom_rows.facts, filters=Filters(entity=atom.entity, unheld=True), relation=atom.relation)
    later = [fact.valid_from for fact in facts if fact.value != atom.value and fact.valid_from > atom.valid_from]
    return min(later, default=None)


def _is_same_matter(old: Atom, new: NewAtom, words: Sequence[Said]) -> bool:
    """Return whether two statements are about one matter: both promises, facts of one relation, or near in `words`."""
    if old.label == new.label == "promise":
        return True
    if old.fact and (old.fact.relation, fold(old.fact.entity)) == (new.relation, fold(new.entity or "")):
        return True
    return any(is_near(old.text, str(message)) for message in words)


def _keep_statements_of_user(store: Store, space: str, atom: NewAtom) -> NewAtom:
    if atom.source == "user":
        return atom
    ended = store.read(space, atom_rows.by_ids, atom.supersedes)
    if any(is_less_trusted(atom.source, old.source) for old in ended):
        atom = replace(atom, supersedes=())
    if atom.entity and atom.single_valued:
        facts = store.read(space, atom_rows.facts, filters=Filters(entity=atom.entity), relation=atom.relation)
        tellers = store.read(space, atom_rows.by_ids, [fact.atom for fact in facts if fact.value != atom.value])
        if any(is_less_trusted(atom.source, old.source) for old in tellers):
            atom = replace(atom, entity=None, relation=None, value=None, single_valued=False)
    return atom
