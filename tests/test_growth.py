"""What an analysis of incoming text costs grows no faster than the text, whatever the text is.

Each analysis reads texts of two sizes, the larger four times the smaller. Linear code takes four times as long, a
pattern that scans ahead from every place sixteen times. What is quick at the larger size is not measured again. The
clock is that of this process, and the least of several measurements counts, so other programs change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from time import process_time
from typing import Any

import pytest

from mcp_memory.core import text as text_
from mcp_memory.core.secrets import masking
from mcp_memory.core.types import NewTurn, Turn
from mcp_memory.integrations.importers.agent_logs import extract_summary
from mcp_memory.integrations.importers.log_lines import is_stand_in
from mcp_memory.language import sentences, words
from mcp_memory.language.snippet import matches, snippet
from mcp_memory.language.when.annotate import with_dates
from mcp_memory.language.when.intervals import spans_in
from mcp_memory.longterm import sentence_statements, standing_rules, turns
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.models.embed.sentence_labels import classify
from mcp_memory.shortterm import calls, chunks
from mcp_memory.shortterm.canvas import flowchart
from mcp_memory.shortterm.synopsis.synopsis import synopsise
from mcp_memory.suspicion import flags
from mcp_memory.suspicion.disguises import messages_of
from mcp_memory.suspicion.injected_instructions import without_examples
from tests.hostile_texts import hostile_texts

NOW = datetime(2026, 5, 7, 12, 0, tzinfo=UTC)
WANTED = frozenset(["a", "key", "password"])
SMALL = 1_500
TIMES = 4
QUICK = 0.04  # seconds of this process for the larger text: quadratic code takes more
MOST = 12.0  # times the cost of the smaller text


def marked(text: str) -> Any:
    return snippet(text, 200, matches(text, WANTED))


def statements(text: str) -> object:
    turn = Turn(
        id="t1", session="s", position=0, role="user", name=None, content=text, said_at=NOW, learned_at=NOW, sha256=""
    )
    said = sentence_statements.sentences_of(turn, None)
    return sentence_statements.statements_of(said, classify(sentence_statements.in_context(said)))


ANALYSES: dict[str, Callable[[str], object]] = {
    "flags of a tool's text": lambda text: flags.flags(text, "tool", meaning=False),
    "messages of lines": messages_of,
    "flags of the user's text": lambda text: flags.flags(text, "user"),
    "quotations left out": without_examples,
    "fences": flags.defuse,
    "secrets of a message": masking.mask,
    "secrets of a result": lambda text: masking.mask_result(text.encode()),
    "secrets of a part": masking.mask_lines,
    "secrets of values": lambda text: masking.mask_values({"a": [text]}),
    "secrets of an id": masking.mask_id,
    "admission": lambda text: turns.admit([NewTurn(role="tool", content=f"x{text}")]),
    "small talk": turns.small_talk_kind,
    "the own words": turns.own_words,
    "hidden characters": text_.has_hidden_text,
    "text as it looks": text_.to_plain_letters,
    "text without hidden characters": text_.remove_hidden,
    "standing rules": standing_rules.standing_rules,
    "statements of sentences": statements,
    "negation": sentences.is_negative,
    "sentences": lambda text: list(sentences.sentences(text)),
    "terms": words.index_terms,
    "terms of a question": words.query_terms,
    "excerpts": marked,
    "dates": lambda text: with_dates(text, NOW),
    "times": lambda text: spans_in(text, NOW),
    "synopsis": lambda text: synopsise(text, tool="Bash", arguments={"command": text[:2_000]}, budget_chars=2_000),
    "chunks": lambda text: list(chunks.chunks_of(text.encode())),
    "the line of a call": lambda text: calls.call_line("Bash", {"command": text}),
    "labels": lambda text: flowchart.decode(flowchart.encode(text)),
    "attachments of a message": typed_text,
    "notes of a client": lambda text: (is_stand_in(text), extract_summary(text)),
}


def cost(analysis: Callable[[str], object], text: str) -> float:
    start = process_time()
    analysis(text)
    return process_time() - start


def fast_growing(name: str, chosen: Callable[[str], bool] = lambda kind: True) -> dict[str, float]:
    """Return by how much the cost of an analysis grew, for the texts on which it grew faster than they did."""
    analysis = ANALYSES[name]
    analysis("warm up: what is loaded late is no cost of a text, e.g. password=x1 on Monday")
    small, large = hostile_texts(SMALL), hostile_texts(TIMES * SMALL)
    found: dict[str, float] = {}
    for kind in filter(chosen, large):
        if cost(analysis, large[kind]) <= QUICK:
            continue
        least = min(cost(analysis, large[kind]) for _ in range(2))
        growth = least / max(min(cost(analysis, small[kind]) for _ in range(3)), QUICK / MOST)
        if least > QUICK and growth > MOST:
            found[kind] = growth
    return found


REPORTED = ("'<div><p>' repeated", "'&lt;' repeated", r"'\\u0061' repeated", "reminder opened", "escapes nested")


@pytest.mark.parametrize("name", ANALYSES)
def test_the_cost_of_an_analysis_grows_no_faster_than_a_text_that_once_stopped_the_server(name: str) -> None:
    assert fast_growing(name, lambda kind: kind in REPORTED or kind.startswith("marks")) == {}


SAMPLED = ("secrets of a part", "secrets of values", "secrets of an id", "statements of sentences")
"""Analyses that read one text in seven by default: they call "secrets of a message", or the encoder for each sentence."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ANALYSES)
def test_the_cost_of_an_analysis_grows_no_faster_than_the_text(name: str) -> None:
    kinds = list(hostile_texts(1))
    chosen = frozenset(kinds[::7] if name in SAMPLED else kinds)
    assert fast_growing(name, chosen.__contains__) == {}


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", SAMPLED)
def test_the_cost_of_a_sampled_analysis_grows_no_faster_than_any_text(name: str) -> None:
    assert fast_growing(name) == {}


def test_a_row_of_asterisks_within_a_word_is_read_once() -> None:
    assert flags.flags(f"a{'*' * 60} ", "tool", meaning=False) == ()


def test_marks_in_a_row_that_no_script_has_are_left_out_of_normal_forms() -> None:
    zalgo = "x" + "\u0301\u0323" * 20_000 + "y"
    assert len(text_.normalize("NFD", zalgo)) == 32
    assert text_.normalize("NFC", "e\u0301a\u0308") == "éä"
