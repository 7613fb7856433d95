"""What a call is for, and which calls in a row are one step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.shortterm.canvas.flowchart import TITLE_LIMIT, parse
from mcp_memory.shortterm.canvas.placement import call_intent, continues, extend_title
from mcp_memory.store.sql import canvas_rows
from tests.shortterm.agent import Agent


@pytest.mark.parametrize(
    ("tool", "arguments", "key"),
    [
        ("Read", {"file_path": "/repo/src/app.py"}, "look ok Read app.py"),
        ("mcp__github__search_issues", {"query": "login loop"}, "look ok search_issues login loop"),
        ("get_user_details", {"user_id": "mia_li_3668"}, "look ok get_user_details mia_li_3668"),
        ("str_replace", {"path": "a/b.py"}, "change ok str_replace b.py"),
        ("bash", {"command": "cd /repo && grep -rn 'def login' src/"}, "look ok grep def login"),
        ("bash", {"command": 'find . -name "*.py" 2>/dev/null'}, "look ok find "),
        ("bash", {"command": "sed -n '1,9p' src/app.py"}, "look ok sed app.py"),
        ("bash", {"command": "sed -i 's/a/b/' src/app.py"}, "change ok sed app.py"),
        ("bash", {"command": "cat > t.py << 'EOF'\nopen('other.py')\nEOF"}, "change ok cat t.py"),
        ("bash", {"command": "python t.py > out.txt 2>&1"}, "run ok python t.py"),
        ("bash", {"command": "git diff --stat"}, "look ok git "),
        ("bash", {"command": "git checkout src/app.py"}, "change ok git app.py"),
        ("bash", {"command": "python -m pip install -q numpy"}, "install ok python "),
        ("calculate", {"expression": "2 + 2"}, "other ok calculate 2 + 2"),
    ],
)
def test_a_call_says_what_it_is_for(tool: str, arguments: Any, key: str) -> None:
    assert call_intent(tool, arguments).key == key


def shell(agent: Agent, *commands: str, result: str = "fine\n" * 9) -> list[str]:
    """Run them, and return the titles of the canvas with their nodes' numbers."""
    for command in commands:
        agent.offload(f"{result}{agent.seconds}", tool="bash", arguments={"command": command})
    nodes = parse(agent.store.read("default", canvas_rows.canvas, 1).text).nodes
    return [f"{node.id[4:]} {node.title}" for node in nodes]


def test_looking_about_is_one_step_that_names_what_was_looked_at(agent: Agent) -> None:
    titles = shell(agent, "cat src/app.py", "grep -n 'def login' src/auth.py", "ls -la", "sed -n '1,9p' src/app.py")
    assert titles == ["N1 Look: app.py, auth.py (+2 more)"]


def test_a_file_that_is_written_and_run_is_one_step_and_the_next_file_another(agent: Agent) -> None:
    titles = shell(agent, "cat > t.py << 'EOF'\nx\nEOF", "python t.py", "python t.py", "cat > u.py << 'EOF'\nx\nEOF")
    assert titles == ["N1 Write and run t.py (+1 more)", "N2 Write u.py"]


def test_what_turns_out_otherwise_than_before_is_a_step_of_its_own(agent: Agent) -> None:
    trace = "Traceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 1\n"
    shell(agent, "pytest -x tests/test_a.py", result=trace)
    shell(agent, "pytest -x tests/test_a.py")
    titles = shell(agent, "pytest tests/test_a.py")
    assert titles == ["N1 pytest -x tests/test_a.py", "N2 pytest -x tests/test_a.py (+1 more)"]


def test_a_dead_end_and_a_step_that_was_named_stand_alone(agent: Agent) -> None:
    agent.offload("a", arguments={"path": "a.py"})
    agent.offload("b", arguments={"path": "b.py"}, status="blocked")
    agent.offload("c", arguments={"path": "c.py"}, step="Read the third")
    agent.offload("d", arguments={"path": "d.py"})
    titles = [node.title for node in parse(agent.store.read("default", canvas_rows.canvas, 1).text).nodes]
    assert titles == ["Read a.py", "Read b.py", "Read the third", "Read d.py"]


@given(st.lists(st.tuples(st.sampled_from(["Read", "bash", "x"]), st.text(max_size=60), st.booleans()), max_size=12))
def test_any_calls_have_an_intent_and_titles_stay_short(calls: list[tuple[str, str, bool]]) -> None:
    title, before = "t" * TITLE_LIMIT, ""
    for tool, words, failed in calls:
        now = call_intent(tool, {"command": words} if tool == "bash" else words, failed=failed)
        assert continues(now.key, now) or now.intent in ("change", "run")
        title, before = extend_title(title, before, now), now.key
        assert len(title) <= TITLE_LIMIT
