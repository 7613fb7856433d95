"""The walk from the persona down to the turns: what still holds, and what no longer does."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from mcp_memory.core.types import NewTurn, Verified
from mcp_memory.longterm.verification.evidence import verify
from mcp_memory.store.evidence import is_intact
from mcp_memory.store.sql import atom_rows, stage_outputs, turn_rows
from mcp_memory.store.values import PersonaPage
from tests.longterm.by_hand import SPACE, ByHand


def problems(hand: ByHand) -> list[str]:
    return verify(hand.store, SPACE).problems


def tamper(home: Path, sql: str) -> None:
    """Change rows behind the store's back, as a broken disk or a curious person would."""
    con = apsw.Connection(str(home / "memory.db"))
    con.execute("DROP TRIGGER IF EXISTS turn_is_evidence")
    con.execute(sql)
    con.close()


def test_a_pyramid_that_stands_is_walked_to_its_ground(hand: ByHand) -> None:
    told, drawn = hand.tell("Plays the cello"), hand.draw("Lives in Turin")
    hand.scene("home", f"Lives in Turin ({drawn})\nA fine town.")
    hand.write(f"Plays the cello ({told})", "- Turin ([[Home]])", "Is kind.")
    walked = {"personas": 1, "scenes": 1, "atoms": 2, "quotes": 2, "turns": 2}
    uncovered = ["about the user: Is kind.", "home: A fine town."]
    assert verify(hand.store, SPACE) == Verified(**walked, problems=[], uncovered=uncovered)


def test_an_empty_space_and_a_listing_are_sound(hand: ByHand) -> None:
    assert verify(hand.store, "nobody").problems == []
    hand.store.write(
        SPACE,
        stage_outputs.commit,
        None,
        PersonaPage(text=f"- Plays the cello ({hand.tell('Plays the cello')})"),
        outcome={},
        now=hand.now,
    )
    assert verify(hand.store, SPACE) == Verified(
        personas=0, scenes=0, atoms=1, quotes=1, turns=1, problems=[], uncovered=[]
    )


def test_what_rests_on_the_forgotten_is_named_without_its_words(hand: ByHand) -> None:
    kept, gone = hand.tell("Plays the cello"), hand.tell("Has a secret")
    hand.scene("cello", f"Plays ({kept}) in secret ({gone})")
    hand.write(f"Plays the cello ({kept}, {gone})")
    hand.forget(gone)
    assert problems(hand) == [
        f"The page about the user rests on {gone}, which was forgotten or never was.",
        f"The page cello rests on {gone}, which was forgotten or never was.",
    ]


def test_what_ended_since_is_named_with_what_holds_instead(hand: ByHand) -> None:
    turin = hand.tell("Lives in Turin")
    hand.scene("home", f"Turin ({turin})")
    hand.write(f"Lives in Turin ({turin})")
    rome = hand.tell("Lives in Rome", supersedes=[turin])
    assert problems(hand) == [
        f"The page about the user tells {turin} as it was: since then it ended, and {rome} holds instead.",
        f"The page home tells {turin} as it was: since then it ended, and {rome} holds instead.",
    ]


def test_a_page_that_names_a_scene_which_is_gone_is_told(hand: ByHand) -> None:
    hand.tell("Plays the cello")
    hand.write("Plays it ([[cello]])")
    assert problems(hand) == ["The page about the user names the page [[cello]], which is gone."]


def test_forgetting_a_turn_leaves_no_atom_without_ground(hand: ByHand) -> None:
    drawn = hand.draw("Lives in Turin")
    hand.forget(hand.store.read(SPACE, atom_rows.evidence, drawn)[0].turn)
    assert verify(hand.store, SPACE) == Verified(
        personas=0, scenes=0, atoms=0, quotes=0, turns=0, problems=[], uncovered=[]
    )


def test_words_that_were_changed_behind_its_back_are_found(hand: ByHand, home: Path) -> None:
    drawn = hand.draw("Lives in Turin")
    turn = hand.store.read(SPACE, atom_rows.evidence, drawn)[0].turn
    tamper(home, f"UPDATE turn SET content = replace(content, 'Turin', 'Milan') WHERE id = {turn[1:]}")
    assert problems(hand) == [f"{turn} does not match its hash: its words were changed outside this program."]
    tamper(home, f"UPDATE turn SET content = 'Lives' WHERE id = {turn[1:]}")
    assert problems(hand)[0] == f"{drawn} quotes words of {turn} that do not stand there."


@pytest.mark.parametrize("dated", [True, False])
def test_a_turn_is_intact_whether_its_client_gave_it_a_time_or_not(hand: ByHand, dated: bool) -> None:
    new = NewTurn(role="user", name="Anna", content="Hello", said_at=hand.now if dated else None)
    (turn,) = hand.store.write(SPACE, turn_rows.append, "s", turn_rows.prepare([new]), now=hand.tick()).stored
    assert is_intact(turn)
