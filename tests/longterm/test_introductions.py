"""Names and relations by pattern: only where they are sure."""

from __future__ import annotations

import pytest

from mcp_memory.longterm.introductions import certain_names, introduced


@pytest.mark.parametrize(
    ("sentence", "name", "relation"),
    [
        ("My daughter Fiona has put this on the tablet.", "Fiona", "daughter"),
        ("Gwen, my sister, allows no kneeling.", "Gwen", "sister"),
        ("the photos are by Noa Varela, my sister", "Noa Varela", "sister"),
        ("Meine Chefin Frau Roth kommt später.", "Frau Roth", "chefin"),
        ("Ich war gestern bei meiner Schwester, Ines, zu Besuch.", "Ines", "schwester"),
        ("una cosa: las fotos son de Noa, mi hermana, viene los jueves.", "Noa", "hermana"),
        ("mi cuñado Rafa viene con la máquina", "Rafa", "cuñado"),
        ("ma sœur Maude a deux jumeaux", "Maude", "sœur"),
        ("mon oncle s'appelle Normand", "Normand", "oncle"),
        ("mio padre Secondo ha 83 anni", "Secondo", "padre"),
        ("a minha mãe, Graciete, quer vir viver connosco", "Graciete", "mãe"),
        ("Onze dochter Lot komt met kerst over uit Gent", "Lot", "dochter"),
        ("我的同事小李明天过来", "小李", "同事"),
        ("我姐姐叫王丽，住在杭州", "王丽", "姐姐"),
        ("Mein Name ist Jördis Wallmann.", "Jördis Wallmann", "name"),
        ("Guten Morgen, ich bin Jördis Wallmann.", "Jördis Wallmann", "name"),
        ("hola, soy Inés, hago cerámica", "Inés", "name"),
        ("Hi, I'm Anna.", "Anna", "name"),
    ],
)
def test_people_are_introduced_in_many_languages(sentence: str, name: str, relation: str) -> None:
    assert (name, relation) in introduced(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "I can't come because my sister Monday",
        "Heute nicht, weil meine Schwester Geburtstag hat.",
        "Ich gehe mit meiner Frau Tennis spielen, das ist immer so.",
        "When I asked my sister, Paul had already left.",
        "I'm Irish, and so is everybody here.",
        "I am Principal of a school in Rohini.",
        "Ich bin Lehrerin, aber nicht mehr lange.",
        "her sister Ines is not mine",
        "我老板小气得很",
    ],
)
def test_what_is_not_sure_introduces_nobody(sentence: str) -> None:
    assert introduced(sentence, opening=True) == []


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        (
            "talked to Wouter Coussement and Mr Pirie on Easter Monday in Paris",
            ["Wouter Coussement", "Mr Pirie", "Paris"],
        ),
        ("Die Kinderärztin sagt, Frau Tietjen ruft Liebe Eltern nicht zurück.", ["Frau Tietjen"]),
        (
            "The branches are Ledeberg, Sint-Amandsberg and the one on the Gulf of Riga",
            ["Ledeberg", "Sint-Amandsberg", "Gulf of Riga"],
        ),
        ("Harriet Plumb (she is the daughter) sells pots to Bristol", ["Harriet Plumb", "Bristol"]),
        ("Tormod Eikås at the harbour office wants a list", ["Tormod Eikås"]),
        ("Leif-Arne wants a date for the cutover", ["Leif-Arne"]),
        ("hi! I run a sewing machine shop in Ghent called Naald en Draad", ["Ghent", "Naald en Draad"]),
        ("Ik ga morgen met Jan en Piet naar Gent", ["Jan", "Piet", "Gent"]),
        ("I met Ben and Will in the office", ["Ben"]),
        ("please tell Priya that I speak English, not PHP, since May", ["Priya"]),
        ("Ask Geir and then Ivana on Tuesday", ["Ivana"]),
        ('write "Dear Hedvig" and not Dr Lundqvist', ["Dr Lundqvist"]),
        ("six Gardener's Delight on the 3rd of May, please", []),
        ("Update the docs. Then Restart everything", []),
    ],
)
def test_names_have_a_capital_inside_a_sentence(sentence: str, names: list[str]) -> None:
    assert certain_names(sentence) == names
