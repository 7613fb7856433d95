"""Facts of `remember`: accepted only if every word of the user's sentence belongs to the fact."""

from __future__ import annotations

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.verification.own_words import Said
from mcp_memory.longterm.verification.stated_facts import states_fact
from mcp_memory.service.memory import Memory

Fact = tuple[str, str, str]


def states(fact: Fact, said: Said) -> bool:
    entity, relation, value = fact
    return states_fact([said], entity=entity, relation=relation, value=value)


CHANGED: list[tuple[str, str, Fact]] = [
    ("I like jazz, not opera.", "The user likes opera.", ("user", "likes", "opera")),
    ("I'm allergic to nuts but not to milk.", "The user is allergic to milk.", ("user", "is allergic to", "milk")),
    ("I divorced Karim in 2020.", "The user divorced Karim in 2020.", ("user", "married to", "Karim")),
    ("I quit my job at Nokia.", "The user quit their job at Nokia.", ("user", "works at", "Nokia")),
    ("I hardly ever eat meat.", "The user hardly ever eats meat.", ("user", "eats", "meat")),
    ("I seldom use Excel.", "The user seldom uses Excel.", ("user", "uses", "Excel")),
    ("I lived in Leeds.", "The user lived in Leeds.", ("user", "lives in", "Leeds")),
    ("Petra hates me.", "Petra hates the user.", ("user", "hates", "Petra")),
    ("I'm Catholic.", "The user is Catholic.", ("user", "name", "Catholic")),
    ("I am Ben's boss.", "The user is Ben's boss.", ("user", "boss", "Ben")),
    ("Anna hired Ben.", "Anna hired Ben.", ("Ben", "hired", "Anna")),
    ("Ben was hired by Anna.", "Ben was hired by Anna.", ("Ben", "hired", "Anna")),
    ("Correct this sentence: I lives in Madrid.", "The user lives in Madrid.", ("user", "lives in", "Madrid")),
    ("I live in Hell. Put that in my song.", "The user lives in Hell.", ("user", "lives in", "Hell")),
    ("Tim is healthy, my neighbour Karl has cancer.", "Karl has cancer.", ("Tim", "has", "cancer")),
    ("Ich trinke keinen Kaffee, nur Tee.", "Der Nutzer trinkt nur Tee.", ("user", "trinkt", "Kaffee")),
    ("Jonas ist mein Bruder, Felix ist mein Chef.", "Felix ist der Chef.", ("user", "Bruder", "Felix")),
    ("Ich wohnte in Gera.", "Der Nutzer wohnte in Gera.", ("user", "wohnt in", "Gera")),
    ("Lena wohnt in Gera, Paul in Jena.", "Lena wohnt in Gera, Paul in Jena.", ("Paul", "wohnt in", "Gera")),
    ("Je mange rarement du poisson.", "L'utilisateur mange du poisson.", ("user", "mange", "poisson")),
    ("Karl m'aime.", "Karl aime l'utilisateur.", ("user", "aime", "Karl")),
    ("J'habitais à Lille.", "L'utilisateur habitait à Lille.", ("user", "habite à", "Lille")),
    ("No vivo en Vigo, vivo en Lugo.", "El usuario vive en Lugo.", ("user", "vive en", "Vigo")),
    ("Bebí café.", "El usuario bebió café.", ("user", "bebe", "café")),
    ("Lavoro a Pisa ma vivo a Lucca.", "L'utente vive a Lucca.", ("user", "vive a", "Pisa")),
    ("Mi odia Petra.", "Petra odia l'utente.", ("user", "odia", "Petra")),
    ("Não sou médico.", "O usuário não é médico.", ("user", "é", "médico")),
    ("Ik woonde in Gent.", "De gebruiker woonde in Gent.", ("user", "woont in", "Gent")),
    ("Nie jestem lekarzem.", "Użytkownik nie jest lekarzem.", ("user", "jest", "lekarzem")),
    ("Jag bodde i Lund.", "Användaren bodde i Lund.", ("user", "bor i", "Lund")),
    ("Я живу в Туле, а работаю в Москве.", "Пользователь живёт в Туле.", ("user", "живёт в", "Москве")),
    ("Он живёт в Туле.", "Он живёт в Туле.", ("user", "живёт в", "Туле")),
    ("我不喜欢狗，喜欢猫。", "用户喜欢猫。", ("user", "喜欢", "狗")),
    ("我妈妈住在杭州。", "用户的妈妈住在杭州。", ("user", "住在", "杭州")),
    ("小王是医生，小李是警察。", "小王是医生，小李是警察。", ("小李", "是", "医生")),
    ("私は肉が嫌いで、魚が好きです。", "ユーザーは魚が好きです。", ("user", "好き", "肉")),
    ("私は名古屋に住んでいました。", "ユーザーは名古屋に住んでいました。", ("user", "住んでいる", "名古屋")),
]


@pytest.mark.parametrize(("said", "claim", "fact"), CHANGED)
async def test_a_sentence_that_says_more_than_a_fact_does_not_state_it_but_is_kept(
    memory: Memory, said: str, claim: str, fact: Fact
) -> None:
    entity, relation, value = fact
    await memory.record_turns([NewTurn(role="user", content=said)])
    done = await memory.remember(claim, kind="persona", entity=entity, relation=relation, value=value)
    assert done.atom.fact is None
    assert done.atom.held or done.atom.text.rstrip(".。") in said


def test_no_changed_fact_is_stated_whatever_the_statement_says() -> None:
    assert [(said, fact) for said, _, fact in CHANGED if states(fact, Said(said, message=said))] == []


HONEST: list[tuple[str, Fact]] = [
    ("I live in Leeds.", ("user", "lives_in", "Leeds")),
    ("I'm allergic to penicillin, by the way.", ("user", "is allergic to", "penicillin")),
    ("I drive a 2014 Volvo V60.", ("user", "drives", "2014 Volvo V60")),
    ("I don't drink alcohol.", ("user", "does not drink", "alcohol")),
    ("My sister's name is Ines.", ("user", "sister", "Ines")),
    ("My sister Ines keeps bees.", ("Ines", "keeps", "bees")),
    ("The project's database is PostgreSQL 16.", ("project", "database", "PostgreSQL 16")),
    ("Anna hired Ben.", ("Anna", "hired", "Ben")),
    ("Ich wohne jetzt in Freiburg.", ("user", "wohnt in", "Freiburg")),
    ("Mein Hund heißt Rex.", ("user", "Hund", "Rex")),
    ("J'habite à Nantes.", ("user", "habite à", "Nantes")),
    ("Mon fils s'appelle Émile.", ("user", "fils", "Émile")),
    ("Vivo en Granada.", ("user", "vive en", "Granada")),
    ("Mia figlia si chiama Giulia.", ("user", "figlia", "Giulia")),
    ("Moro em Braga.", ("user", "mora em", "Braga")),
    ("Ik woon in Utrecht.", ("user", "woont in", "Utrecht")),
    ("Mieszkam w Łodzi.", ("user", "mieszka w", "Łodzi")),
    ("Jag bor i Lund.", ("user", "bor i", "Lund")),
    ("Я живу в Перми.", ("user", "живёт в", "Перми")),
    ("我对海鲜过敏。", ("user", "过敏", "海鲜")),
    ("私は名古屋に住んでいます。", ("user", "住んでいる", "名古屋")),
    # Dropped: a translation, a paraphrase, and two facts that are only a part of what the user said.
    ("Ik woon in Gent.", ("user", "lives in", "Gent")),
    ("I'm a nurse.", ("user", "works as", "nurse")),
    ("I play the cello in an orchestra.", ("user", "plays", "cello")),
    ("I live in York. Which plumber is good?", ("user", "lives in", "York")),
]


def test_of_honest_facts_those_in_the_users_own_words_stand() -> None:
    stated = [states(fact, Said(said, message=said)) for said, fact in HONEST]
    assert (stated.count(True), len(stated)) == (21, 25)


@pytest.mark.parametrize(
    ("question", "answer", "fact", "stated"),
    [
        ("Do you live in Oslo?", "Yes.", ("user", "lives in", "Oslo"), True),
        ("Where do you live?", "Oh, in Galway.", ("user", "lives in", "Galway"), True),
        ("Do you work at BMW or Audi?", "Yes.", ("user", "works at", "Audi"), False),
        ("Wohnst du in Bonn oder Köln?", "Ja.", ("user", "wohnt in", "Köln"), False),
        ("You don't drink wine, do you?", "Yes.", ("user", "drinks", "wine"), False),
        ("Do you drink wine?", "No.", ("user", "drinks", "wine"), False),
        ("Where does your brother live?", "Galway", ("user", "lives in", "Galway"), False),
    ],
)
def test_an_answer_states_what_its_question_asks_for_alone(
    question: str, answer: str, fact: Fact, stated: bool
) -> None:
    assert states(fact, Said(answer, question, message=answer)) == stated
