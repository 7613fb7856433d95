import pytest

from mcp_memory.models.embed.sentence_labels import SentenceInTurn, classify


def _likeliest(text: str, reply_to: str = "") -> str:
    (found,) = classify([SentenceInTurn(text, reply_to=reply_to)])
    chances = found.chances
    return max((*chances, "none"), key=lambda label: chances.get(label, 1 - sum(chances.values())))


def test_each_kind_of_sentence_is_recognised_in_its_plainest_form() -> None:
    assert _likeliest("I live in Bergen and work as a nurse.") == "trait"
    assert _likeliest("Ines is my sister, she lives in Porto with her two kids.") == "person"
    assert _likeliest("always answer in German, never in English") == "rule"
    assert _likeliest("we decided to go with postgres instead of mysql") == "decision"
    assert _likeliest("next Thursday the electrician is coming at nine") == "plan"
    assert _likeliest("yesterday the boiler broke down and flooded the cellar") == "event"
    assert _likeliest("next time I mention Lisbon, tell me that Bruno owes me 40 euros") == "promise"


@pytest.mark.parametrize(
    "promise",
    [
        "Next time I mention Lisbon, tell me that Bruno owes me 40 euros.",
        "Wenn ich das nächste Mal Lissabon erwähne, sag mir, dass Bruno mir 40 Euro schuldet.",
    ],
)
def test_a_promise_is_not_taken_for_a_standing_rule(promise: str) -> None:
    assert _likeliest(promise) == "promise"


@pytest.mark.parametrize(
    "text",
    [
        "cups, bowls, plates",
        "vasos, platos y cubiertos",
        "There are five of them along the path",
        "в суботу їдемо на Харків двома бусами.",
        "Fronius und SMA, Fronius per JSON, SMA als CSV mit Semikolon und BOM davor",
    ],
)
def test_a_list_or_a_plain_statement_without_words_of_a_rule_is_none(text: str) -> None:
    assert _likeliest(text) != "rule"


@pytest.mark.parametrize(
    "text",
    [
        "Always answer in German.",
        "Recipes always in grams, never in cups.",
        "For orders above 500 euros ask Petra before you place them.",
        "siezen, nie duzen",
        "charts in blue and gray, red only for patient harm",
    ],
)
def test_a_terse_rule_is_a_rule(text: str) -> None:
    assert _likeliest(text) == "rule"


@pytest.mark.parametrize(
    "text",
    [
        "I am allergic to penicillin.",
        "Ich bin gegen Nüsse allergisch.",
        "My sister Ines lives in Porto.",
        "I'm a nurse and live in Oslo.",
        "Our wedding is on 12 June 2027.",
        "我对花生过敏。",
    ],
)
def test_a_plain_short_fact_is_worth_more_than_what_just_happened(text: str) -> None:
    moments = ["I'm tired today.", "The tests pass now.", "We had pizza for lunch.", "make it shorter"]
    fact, *others = classify([SentenceInTurn(said) for said in (text, *moments)])
    assert fact.worth > 2 * max(moment.worth for moment in others)


@pytest.mark.parametrize("rule", ["siezen, bitte", "Answer in German.", "use pnpm, not npm"])
def test_a_terse_rule_is_worth_more_than_a_terse_request(rule: str) -> None:
    found, request = classify([SentenceInTurn(rule), SentenceInTurn("make it shorter")])
    assert found.worth > 4 * request.worth
    assert found.chances["rule"] >= 0.5


@pytest.mark.parametrize("text", ["She is a nurse.", "Er ist Arzt.", "and she wants it in blue by then"])
def test_a_sentence_without_its_subject_is_a_fragment(text: str) -> None:
    whole, fragment = classify([SentenceInTurn("My sister Ines lives in Porto."), SentenceInTurn(text)])
    assert whole.fragment < 0.5 <= fragment.fragment


def test_requests_and_small_talk_state_nothing() -> None:
    assert _likeliest("can you make it shorter?") == "none"
    assert _likeliest("haha thanks, perfect") == "none"


def test_the_chances_of_a_sentence_add_up_to_at_most_one() -> None:
    for found in classify([SentenceInTurn("ok"), SentenceInTurn(""), SentenceInTurn("我住在北京", "你好", "", "?")]):
        chances = found.chances
        assert len(chances) == 7
        assert 0 <= found.worth <= 1
        assert all(0 <= chance <= 1 for chance in chances.values())
        assert sum(chances.values()) <= 1.000_001


def test_an_empty_list_is_classified_as_an_empty_list() -> None:
    assert classify([]) == []
