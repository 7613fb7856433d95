"""Standing rules said in passing, in many languages; and what only looks like one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.language.sentences import READ, may_state_rule
from mcp_memory.longterm.standing_rules import STATES, SUPPORTS, Rule, judged, standing_rules

FIXTURES = Path(__file__).parents[2] / "fixtures"


def labelled(name: str) -> list[tuple[str, bool]]:
    lines = (FIXTURES / "rules" / name).read_text(encoding="utf-8").splitlines()
    return [(row["text"], row["rule"]) for row in map(json.loads, lines)]


def test_core_wordings_are_judged_right() -> None:
    core = labelled("earlier.jsonl")
    assert [text for text, is_rule in core if not is_rule and standing_rules(text)] == []
    missed = [text for text, is_rule in core if is_rule and not standing_rules(text)]
    assert len(missed) <= 0.02 * len(core)
    assert all(max(rule.strength for rule in judged(text)) >= SUPPORTS for text in missed)


@pytest.mark.parametrize("limit", ["states", "supports"])
def test_sentences_by_authors_who_are_left_out_of_the_fit_are_judged_as_recorded(limit: str) -> None:
    recorded = json.loads((FIXTURES / "rules/left_out.json").read_text(encoding="utf-8"))
    figures, mixture = recorded[limit]["all"], recorded[limit]["authors"]["labelled"]
    assert recorded[limit]["limit"] == {"states": STATES, "supports": SUPPORTS}[limit]
    assert figures["precision"] >= {"states": 0.9, "supports": 0.75}[limit]
    assert mixture["precision"] >= {"states": 0.95, "supports": 0.8}[limit]
    assert mixture["recall"] >= {"states": 0.85, "supports": 0.95}[limit]
    assert figures["sentences"] >= 400


def test_rules_by_an_author_whose_sentences_were_never_fitted_are_found() -> None:
    blind = labelled("blind/author_g.jsonl")
    found = [is_rule for text, is_rule in blind if standing_rules(text)]
    assert sum(found) >= 0.95 * len(found)
    assert sum(found) >= 0.85 * sum(is_rule for _, is_rule in blind)


def test_nearly_all_rules_and_few_prompts_have_words_of_a_rule() -> None:
    rules = [text for text, is_rule in labelled("labelled.jsonl") if is_rule]
    prompts = (FIXTURES / "prompts/test.jsonl").read_text(encoding="utf-8").splitlines()
    assert sum(map(may_state_rule, rules)) >= 0.97 * len(rules)
    assert sum(may_state_rule(json.loads(line)["text"]) for line in prompts) <= 0.4 * len(prompts)


NO_RULES = """
My boss told the interns they must always wear a badge.
According to the guide all pull requests need two reviews.
In my last team we always rebased before merging.
fix: never log passwords in plain text
2026-04-11 08:00:01 WARN [auth] always use TLS 1.3
Always by your side!
Sure, let's proceed with the next step.
I'm allergic to peanuts.
Never mind, it works now.
Do you always answer so quickly?
Mein Chef sagt, man soll nie vor zehn anrufen.
Elle ferme toujours la porte à clé.
El jefe les dijo a los becarios que nunca lleguen tarde.
Ti ricordi? Andavamo sempre al mare.
我同事总是在周五部署。
昔はいつもバスで通っていた。
My boss says never use Python for scripts.
Mon chef dit qu'il ne faut jamais répondre le week-end.
The manual claims you should always unplug it first.
He told me to never share the calendar with clients.
If I were rich I would always fly first class.
Wenn ich reich wäre, würde ich immer erster Klasse fliegen.
I don't want you to always answer in bullet points.
Du musst nicht immer auf Deutsch antworten.
"""

RULES = """
From now on please use British spelling, will you?
Always run the linter before you commit.
In project Heron, always skip the slow tests.
Please never send mails in my name.
Ab jetzt bitte alle Preise mit Mehrwertsteuer.
Désormais, réponds-moi toujours en français.
A partir de ahora contéstame siempre en español.
D'ora in poi scrivimi sempre in italiano.
Никогда не удаляй файлы без моего разрешения.
以后都用中文回答我。
今後は必ず日本語で答えてください。
"""


def lines(table: str) -> list[str]:
    return [line for line in table.split("\n") if line]


@pytest.mark.parametrize(
    "text",
    [
        *lines(NO_RULES),
        'She told me "always use tabs" yesterday.',
        "```\n# never edit this file\n```\nwhat does this header mean?",
        "> Never send invoices on Friday.\nthat was his mail",
        "The linter says `never use var` for line 3.",
    ],
)
def test_what_others_say_what_would_be_what_is_quoted_or_code_and_small_talk_are_no_rules(text: str) -> None:
    assert standing_rules(text) == []


@pytest.mark.parametrize("text", lines(RULES))
def test_an_order_for_good_is_a_rule_and_a_candidate_among_other_sentences(text: str) -> None:
    assert len(standing_rules(text)) == 1
    assert may_state_rule(f"Good morning. {text}")


def test_each_sentence_that_states_a_rule_is_a_span_of_the_turn() -> None:
    text = "Morning! Never rename a released file. I was late today. No vendor names in tests, ever. What is next?"
    found = standing_rules(text)
    assert [text[rule.start : rule.end] for rule in found] == [
        "Never rename a released file.",
        "No vendor names in tests, ever.",
    ]
    assert all(0 < rule.strength <= 1 for rule in found)


def test_plain_statements_under_a_heading_are_rules_until_the_paragraph_ends() -> None:
    text = "Rules: dates are ISO. Table names are plural. Colours come from the theme.\n\nThe weather is nice here."
    assert [text[rule.start : rule.end] for rule in standing_rules(text)] == [
        "Rules: dates are ISO.",
        "Table names are plural.",
        "Colours come from the theme.",
    ]


def test_only_clear_wording_counts_in_a_long_text() -> None:
    filler = "The committee met in the afternoon and went through the list of members. " * 20
    assert [rule.strength > 0.95 for rule in standing_rules(f"{filler}Never send drafts to the printer.")] == [True]
    sentences = [text for text, is_rule in labelled("author_d.jsonl") if is_rule][:40]
    assert all(rule.strength >= 0.95 for rule in standing_rules(f"{filler}{' '.join(sentences)}"))


def test_what_follows_the_part_that_is_read_is_left_alone() -> None:
    assert standing_rules("x " * READ + "never send drafts to the printer") == []


def test_a_capital_letter_that_becomes_two_small_ones_moves_no_span() -> None:
    text = "İİİ İstanbul. Never send drafts to the printer."
    assert [text[rule.start : rule.end] for rule in standing_rules(text)] == ["Never send drafts to the printer."]


WORDS = 'never no always please ever nie immer kein jamais toujours nunca siempre mai sempre nooit 以后 不要 必ず 항상 , . ? : \n " ` use İ rules'


@given(st.text(max_size=300) | st.lists(st.sampled_from(WORDS.split(" ")), max_size=60).map(" ".join))
def test_any_text_has_rules_in_order_inside_it(text: str) -> None:
    end = 0
    for rule in standing_rules(text):
        assert isinstance(rule, Rule)
        assert end <= rule.start < rule.end <= len(text)
        assert text[rule.start : rule.end].strip() == text[rule.start : rule.end]
        assert 0 < rule.strength <= 1
        end = rule.end
