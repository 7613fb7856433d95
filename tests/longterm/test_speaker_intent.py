from __future__ import annotations

import pytest

from mcp_memory.longterm.search.query import speaker_intent


@pytest.mark.parametrize(
    "question",
    [
        "Where did I park the car?",
        "Can you remind me what my landlord is called?",
        "Do you remember which train we took?",
        "I told you about a café, which one was it?",
        "the user's favourite tea",
        "我上个月去了哪里？",
        "我跟你说过的餐厅叫什么？",
        "先月、私が読んだ本は何ですか",
        "내가 좋아하는 음식은 뭐야?",
        "Wann habe ich den Zahnarzt besucht?",
        "Où est-ce que j'ai garé ma voiture ?",
        "¿Dónde compré mi bicicleta?",
        "Где я купила билеты?",
    ],
)
def test_who_speaks_of_themselves_asks_for_what_they_said(question: str) -> None:
    assert speaker_intent(question) == "user"


@pytest.mark.parametrize(
    "question",
    [
        "Which books did you recommend?",
        "What was your suggestion for the back pain?",
        "what the assistant proposed for the schema",
        "你给我推荐过哪些书？",
        "Welches Buch hast du empfohlen?",
        "Какой фильм ты посоветовал?",
    ],
)
def test_who_addresses_the_assistant_asks_for_what_it_said(question: str) -> None:
    assert speaker_intent(question) == "assistant"


@pytest.mark.parametrize(
    "question", ["", "kettle price", "What did Caroline paint?", "周杰伦", "foo_bar.py", "Лиссабон"]
)
def test_a_question_without_either_person_asks_for_nobody(question: str) -> None:
    assert speaker_intent(question) is None
