"""A remembered rule is no wider than the sentence that states it."""

from __future__ import annotations

import pytest

from mcp_memory.longterm.verification.support import supports_rule

KEPT = [
    ("In project Heron, always skip the slow tests.", "In project Heron, always skip the slow tests."),
    ("In project Heron, always skip the slow tests.", "Always skip slow tests in the Heron project."),
    ("When you write to clients, always use formal language.", "Always use formal language with clients."),
    ("In emails to the school, never use abbreviations.", "Never use abbreviations in emails to the school."),
    ("For the newsletter, never use more than one picture.", "Never use more than one picture in the newsletter."),
    ("Im Projekt Adler immer die langsamen Tests überspringen.", "Im Projekt Adler langsame Tests immer überspringen."),
    ("Dans le projet Aigle, saute toujours les tests lents.", "Toujours sauter les tests lents dans le projet Aigle."),
    (
        "En el proyecto Garza, omite siempre las pruebas lentas.",
        "Omitir siempre las pruebas lentas en el proyecto Garza.",
    ),
    ("From now on, always answer in English.", "Always answer in English."),
    ("In future, never send mails in my name.", "Never send mails in the user's name."),
]

WIDENED = [
    ("In project Heron, always skip the slow tests.", "Always skip the slow tests."),
    ("When you write to clients, always use formal language.", "Always use formal language."),
    ("In emails to the school, never use abbreviations.", "Never use abbreviations."),
    ("For the newsletter, never use more than one picture.", "Never use more than one picture."),
    ("Always skip the slow tests in the Heron project.", "Always skip the slow tests."),
    ("Always skip the review when you deploy to staging.", "Always skip the review."),
    ("Im Projekt Adler immer die langsamen Tests überspringen.", "Immer die langsamen Tests überspringen."),
    ("Dans le projet Aigle, saute toujours les tests lents.", "Sauter toujours les tests lents."),
    ("En el proyecto Garza, omite siempre las pruebas lentas.", "Omitir siempre las pruebas lentas."),
    ("My boss told the interns they must always wear a badge.", "Always wear a badge."),
    ("In my last job we always skipped the review.", "Always skip the review."),
    ("fix: always validate the token before use", "Always validate the token before use."),
    ("Always send the draft to Anna.", "Always send the draft to Boris."),
    ("Never deploy on Fridays.", "Always deploy on Fridays."),
]


@pytest.mark.parametrize(("said", "rule"), KEPT)
def test_a_rule_in_other_words_with_its_limits_is_supported(said: str, rule: str) -> None:
    assert supports_rule(rule, [said])


@pytest.mark.parametrize(("said", "rule"), WIDENED)
def test_a_rule_without_a_limit_of_its_sentence_or_with_other_words_is_not(said: str, rule: str) -> None:
    assert not supports_rule(rule, [said])
