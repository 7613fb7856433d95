"""`remember` from the command line: a statement is stored, or another one corrected."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run


def test_a_statement_is_stored_in_a_memory_that_is_made_for_it_and_corrected_later(run: Run, home: Path) -> None:
    assert (
        run("remember", "I drink tea,", "not coffee.", home=home).stdout == "Stored as a1: I drink tea, not coffee.\n"
    )
    corrected = run("remember", "I drink coffee again.", "--supersedes", "a1", home=home).stdout
    assert corrected == "Stored as a2: I drink coffee again.\nNo longer valid: a1 I drink tea, not coffee.\n"
    assert "a2" in run("search", "what do I drink?", "--in", "statements", home=home).stdout


def test_the_same_statement_is_stored_once(run: Run, home: Path) -> None:
    run("remember", "Pixel eats socks.", home=home)
    assert run("remember", "Pixel eats socks.", home=home).stdout.startswith("It was stored before as a1:")


def test_a_statement_that_corrects_nothing_known_is_refused(run: Run, home: Path) -> None:
    wrong = run("remember", "It is Friday.", "--supersedes", "a9", home=home)
    assert (wrong.exit_code, "a9" in wrong.stderr) == (1, True)
