"""Where a task ends and another begins, by what was said; and tasks that are left and taken up again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import Role
from mcp_memory.shortterm.canvas.tasks import BoundaryVerdict, boundary, content
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows
from tests.shortterm.agent import Agent

ABOUT = content("Fix the login test in auth")


def heard(*messages: str) -> BoundaryVerdict:
    said: list[tuple[Role, str]] = [
        ("assistant", each[6:]) if each.startswith("agent:") else ("user", each) for each in messages
    ]
    return boundary(said, about=ABOUT)


@pytest.mark.parametrize(
    ("said", "goal", "done"),
    [
        ("Next task: write the release notes", "write the release notes", False),
        ("New task. Please translate the README to German.", "translate the README to German", False),
        ("Let's move on to the billing export", "billing export", False),
        ("Great, done with the login. Now fix the docs.", "fix the docs", True),
        ("That works, now let's do the importer", "do the importer", True),
        ("Now let's build a CSV importer for invoices", "build a CSV importer for invoices", False),
        ("Das ist fertig. Jetzt bitte die Doku übersetzen.", "die Doku übersetzen", True),
        ("Merci, c'est fini. Passons à la facturation", "la facturation", True),
        ("Nueva tarea: exportar facturas", "exportar facturas", False),
        ("Всё готово. Теперь напиши заметки к выпуску", "напиши заметки к выпуску", True),
        ("这个做完了。接下来帮我写发布说明", "写发布说明", True),
        ("新しいタスク：請求書の出力", "請求書の出力", False),
    ],
)
def test_words_that_begin_a_task_name_it(said: str, goal: str, done: bool) -> None:
    verdict = heard(said)
    assert (verdict.new, verdict.back) == (goal, None)
    assert verdict.done == done or "c'est" in said


@pytest.mark.parametrize(
    "said",
    [
        "Now let's run the tests",
        "now let's look at the token code",
        "Now write a test for it",
        "ok now also add a check",
        "Then check whether the fix holds",
        "let's move on to the next step",
        "Is it done?",
        "it's not done yet, now run it again",
        "when that's done, fix the docs",
        "That works. Then I tried it on Windows and it fails there",
        "switch to the dev branch",
        'The log says "next task: explode" and `let\'s move on to x`',
        "agent: I'm done with reading the file. Now let's create a parser for invoices.",
        "agent: New task: rewrite everything",
    ],
)
def test_when_in_doubt_the_task_goes_on(said: str) -> None:
    verdict = heard(said)
    assert (verdict.new, verdict.back) == (None, None)


def test_a_request_after_the_task_was_said_to_be_done_begins_another() -> None:
    thanked = ("That works, thanks!", "agent: You're welcome.")
    assert heard(*thanked) == BoundaryVerdict(done=True)
    assert heard(*thanked, "Can you plan a trip to Rome?") == BoundaryVerdict(new="plan a trip to Rome", done=True)
    assert heard(*thanked, "Also check the logs of the login") == BoundaryVerdict(done=True)
    assert heard(*thanked, "Why did the login test fail?") == BoundaryVerdict(done=True)
    assert heard("agent: The task is complete.", "Now build a CSV importer").new == "build a CSV importer"


def test_coming_back_names_the_task_or_means_the_one_before() -> None:
    assert heard("let's go back to the billing export") == BoundaryVerdict(back="billing export")
    assert heard("Wait, back to the login test please") == BoundaryVerdict(back="login test")
    assert heard("back to the previous task") == BoundaryVerdict(back="")
    assert heard("Вернёмся к экспорту счетов") == BoundaryVerdict(back="экспорту счетов")


@given(st.lists(st.text(max_size=200), max_size=4))
def test_any_talk_has_a_verdict_that_names_no_path(said: list[str]) -> None:
    verdict = heard(*said)
    assert verdict == heard(*said)
    assert verdict.new != ""


# --- on canvases ------------------------------------------------------------------------------------


def tasks(agent: Agent) -> list[str]:
    rows = sorted(
        agent.store.read(agent.space, canvas_rows.list_canvases, session=agent.session), key=lambda row: row.number
    )
    return [f"{row.number} {row.label} {row.status}" for row in rows]


def test_tasks_follow_what_is_said_and_are_taken_up_again(agent: Agent) -> None:
    agent.hear("Please fix the login test")
    agent.offload("a", hint="fix the login test")
    agent.hear("Let's move on to the billing export")
    agent.offload("b")
    agent.hear("Now run it once more")
    agent.offload("c")
    assert tasks(agent) == ["1 fix-the-login-test paused", "2 billing-export doing"]
    agent.hear("ok, back to the login test")
    assert agent.offload("d").canvas == "001"
    agent.hear("That's fixed and done.", "agent: Great.", "Everything is done. Next task: write release notes")
    assert agent.offload("e").canvas == "003"
    assert tasks(agent) == ["1 fix-the-login-test done", "2 billing-export paused", "3 write-release-notes doing"]


def test_a_task_named_in_other_words_of_the_same_sense_is_the_same(agent: Agent) -> None:
    agent.offload("a", task="Fix the login tests")
    agent.offload("b", task="Write docs")
    assert agent.offload("c", task="fix login test").canvas == "001"
    assert tasks(agent) == ["1 fix-the-login-tests doing", "2 write-docs paused"]


def test_what_was_said_before_the_last_step_or_in_another_session_ends_nothing(store: Store) -> None:
    one, other = Agent(store, session="one"), Agent(store, session="other")
    one.hear("Next task: write the release notes")
    one.offload("a", task="Fix login")
    other.offload("b", task="Fix login")
    one.offload("c")
    other.hear("Next task: write the release notes")
    one.offload("d")
    other.offload("e")
    assert tasks(one) == ["1 fix-login doing"]
    assert tasks(other) == ["2 fix-login paused", "3 write-the-release-notes doing"]
