"""`search` and `show` on a small real memory: what people read, and what programs parse."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from tests.cli.conftest import LOG, ODD
from tests.in_memory import in_memory

Run = Callable[..., Result]
Answer = Callable[..., Any]


# --- search -----------------------------------------------------------------------------------------


def test_a_search_shows_all_layers_in_one_list_with_ids_and_dates(run: Run) -> None:
    result = run("search", "hazelnuts", "TRF-90457")
    assert result.exit_code == 0
    first, rest = result.stdout.split("\n", 1)
    assert first.startswith("  t1  2026-10-21 ")
    assert rest.startswith("    The van is booked under reference TRF-90457.\n")
    assert re.search(r"\n  a1  20\d\d-\d\d-\d\d  persona\n    Tamsin is allergic to hazelnuts\.\n", result.stdout)


def test_a_search_in_json_has_these_keys(answer: Answer) -> None:
    found = answer("search", "TRF-90457")
    assert list(found) == ["query", "hits", "cursor", "known", "period", "filtered", "note"]
    assert found["hits"][0]["text"] == "The van is booked under reference TRF-90457."
    assert found["hits"][0]["verbatim"]


def test_lines_of_a_tool_result_are_found_with_where_they_stand(answer: Answer, run: Run) -> None:
    hit = answer("search", "ERROR key lost", "--in", "results")["hits"][0]
    assert hit["node"] == "001-N1"
    assert hit["id"].endswith("-61")
    assert hit["text"].endswith("ERROR key lost")
    shown = run("search", "ERROR key lost", "--role", "tool").stdout
    assert f"  {hit['id']}  001-N1" in shown
    assert "    | 2026-10-25 01:11:00 ERROR key lost" in shown


def test_why_tells_which_output_a_memory_rests_on(tmp_path: Path, run: Run) -> None:
    assert run("why", "a999").exit_code == 1

    async def tell(memory: Memory) -> str:
        done = await memory.offload_tool_result("shell", LOG, session="s", task="Look")
        await memory.remember("The key was lost at 01:11", cites=[f"{done.ref}:61"], typed=True)
        return done.ref

    ref = in_memory(tmp_path / "home", tell)
    down = run("why", "a1", home=tmp_path / "home").stdout
    assert f"{ref}:61" in down
    assert "    | 2026-10-25 01:11:00 ERROR key lost" in down
    up = json.loads(run("why", ref, "--json", home=tmp_path / "home").stdout)
    assert [(one["id"], one["at"]) for one in up["cited_by"]] == [("a1", f"{ref}:61")]


def test_why_of_a_statement_shows_its_words_who_said_them_and_what_is_based_on_it(tmp_path: Path, run: Run) -> None:
    home = tmp_path / "home"

    async def fill(memory: Memory) -> None:
        old = await memory.remember(
            "Tamsin lives in Bergen.", entity="user", relation="lives in", value="Bergen", typed=True
        )
        await memory.remember("Tamsin lives in Oslo.", supersedes=[old.atom.id], typed=True)

    in_memory(home, fill)
    newer, older = run("why", "a2", home=home).stdout, run("why", "a1", home=home).stdout
    assert re.search(r"Based on these words\n  t2  20.*stored with `remember`.*\n    “Tamsin lives in Oslo\.”\n", newer)
    assert "These words are in the turn, unchanged." in newer
    assert re.search(r"Replaces\n  a1 .*\n    Tamsin lives in Bergen\.\n", newer)
    assert "Named in\n  persona\n    Tamsin lives in Oslo. (a2)\n" in newer
    assert re.search(r"Replaced by\n  a2 .*\n    Tamsin lives in Oslo\.\n", older)
    told = json.loads(run("why", "a1", "--json", home=home).stdout)
    assert [one["id"] for one in told["replaced_by"]] == ["a2"]
    assert [(one["turn_id"], one["quote"], one["stands"]) for one in told["quotes"]] == [
        ("t1", "Tamsin lives in Bergen.", True)
    ]
    based = json.loads(run("why", "t1", "--json", home=home).stdout)
    assert [one["id"] for one in based["atoms"]] == ["a1"]
    with sqlite3.connect(home / "memory.db") as con:
        con.execute("DROP TRIGGER turn_is_evidence")
        con.execute("UPDATE turn SET content = 'Tamsin lives in Rome.' WHERE content LIKE '%Bergen.'")
    assert "The turn no longer has these words" in run("why", "a1", home=home).stdout


def test_why_of_a_query_tells_how_it_is_found(run: Run) -> None:
    shown = run("why", "night", "boat").stdout
    assert "Shown, best first" in shown
    assert "(no. 1)" in shown
    assert "Recall would bring" in shown
    told = json.loads(run("why", "night boat", "--json").stdout)
    assert told["search"]["shown"][0]["parts"][0]["points"] > 0
    assert run("why", " ").exit_code == 2


@pytest.mark.parametrize(
    ("narrowing", "layer"),
    [
        (["--in", "turns"], "turn"),
        (["--role", "user"], "turn"),
        (["--session", "moving"], "turn"),
        (["--in", "statements"], "statement"),
        (["--kind", "persona"], "statement"),
        (["--entity", "user"], "statement"),
    ],
)
def test_a_filter_of_one_layer_searches_only_that_layer(narrowing: list[str], layer: str, answer: Answer) -> None:
    found = answer("search", "Bergen", "van", *narrowing)
    assert {hit["layer"] for hit in found["hits"]} == {layer}


def test_filters_that_no_layer_has_together_are_refused(run: Run) -> None:
    assert "--session and --role are about turns" in run("search", "x", "--role", "user", "--kind", "persona").stderr


def test_neighbours_stand_around_the_turn_that_was_found(run: Run) -> None:
    lines = run("search", "Noted", "Saturday", "--neighbours", "1", "--limit", "1").stdout.splitlines()
    heads = [line[:4] for line in lines if line[2:3] == "t" and line[2:4] != "tu"]
    assert heads == ["  t1", "* t2", "  t3"]


def test_a_cursor_continues_where_the_page_ended(answer: Answer) -> None:
    whole = [hit["id"] for hit in answer("search", "TRF-90457")["hits"]]
    first = answer("search", "TRF-90457", "--limit", "2")
    second = answer("search", "TRF-90457", "--limit", "2", "--cursor", first["cursor"])
    assert [hit["id"] for hit in (*first["hits"], *second["hits"])] == whole[:4]


def test_what_is_not_found_ends_with_1_and_says_where_it_looked_or_in_json_that_there_is_nothing(run: Run) -> None:
    words = ("search", "zzzunheardof", "--in", "turns", "--since", "2030")
    result = run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: Nothing found in default. Other spaces with contents: work.\n"
    result = run(*words, "--json")
    assert (result.exit_code, json.loads(result.stdout)["hits"]) == (1, [])


def test_a_search_that_finds_nothing_close_says_so_first_and_shows_few(run: Run, answer: Answer) -> None:
    shown = run("search", "quarterly tax form").stdout
    assert shown.startswith("Nothing close is known here. The nearest, perhaps about other things:\n")
    assert len(re.findall(r"^  [ta]\d+  ", shown, flags=re.MULTILINE)) == 3
    told = answer("search", "quarterly tax form")
    assert (told["known"], len(told["hits"]) > 3) == ("unlikely", True)
    assert "Nothing close" not in run("search", "TRF-90457").stdout
    assert answer("search", "TRF-90457")["known"] == "likely"


def test_recall_prints_what_an_agent_would_get(run: Run, answer: Answer) -> None:
    question = "under which reference is the van booked?"
    found = answer("recall", question)
    assert list(found) == ["stable", "dynamic", "tokens", "left_out", "known"]
    assert "TRF-90457" in found["dynamic"]
    shown = run("recall", *question.split()).stdout
    assert (found["stable"] in shown, found["dynamic"] in shown) == (True, True)
    assert answer("recall", question, "--budget-tokens", "200")["tokens"] <= 200
    assert run("recall", question, "--budget-tokens", "10").exit_code == 2


def test_a_recall_in_an_empty_space_ends_with_1_and_says_what_to_do(run: Run) -> None:
    result = run("--space", "empty", "recall", "anything")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: Nothing about this is known in empty.")


def test_stored_words_cannot_act_on_the_terminal(run: Run) -> None:
    for command in (["search", "terminal", "trap"], ["show", "session", "moving"]):
        shown = run(*command).stdout
        assert "\\x1b[2J" in shown
        assert "\x1b" not in shown


# --- show -------------------------------------------------------------------------------------------


def test_the_persona_lists_what_was_told(run: Run, answer: Answer) -> None:
    page = answer("show", "persona")
    assert list(page) == ["text", "sections", "version", "updated"]
    assert "hazelnuts" in page["text"]
    assert run("show", "persona").stdout == page["text"] + "\n"


def test_one_section_of_the_persona(answer: Answer) -> None:
    first = answer("show", "persona")["sections"][0]
    assert answer("show", "persona", first)["text"].startswith(f"## {first}\n")


def test_a_memory_that_nobody_has_read_has_no_scenes(run: Run, answer: Answer) -> None:
    assert run("show", "scenes").stdout == "There is no scene in this space yet.\n"
    assert answer("show", "scenes") == []


def test_a_session_is_shown_turn_by_turn(run: Run, answer: Answer) -> None:
    shown = answer("show", "session", "moving")
    assert (shown["session"], [turn["position"] for turn in shown["turns"]]) == ("moving", [0, 1, 2, 3])
    assert "  t1  2026-10-21 " in run("show", "session", "moving").stdout


def test_a_long_session_is_paged(run: Run) -> None:
    result = run("show", "session", "moving", "--start", "1", "--limit", "2")
    assert ("t2" in result.stdout, "t4" in result.stdout) == (True, False)
    assert "--start 3" in result.stderr


def test_without_a_name_the_latest_session_is_shown(answer: Answer) -> None:
    listed = answer("show", "sessions")
    latest = listed["conversations"][0]
    assert list(listed) == ["conversations", "cursor"]
    assert answer("show", "session")["session"] == latest["session"]
    fields = ["session", "title", "first_line", "client", "project", "turns", "first", "last"]
    assert list(latest) == fields


def test_a_session_is_listed_with_its_date_and_title_and_below_them_its_name(run: Run) -> None:
    assert run("show", "sessions").stdout.splitlines() == [
        "2026-10-21  The van is booked under reference TRF-90457",
        "            moving  4 turns",
    ]


def test_sessions_are_found_by_words_month_client_and_project(run: Run) -> None:
    assert "moving" in run("show", "sessions", "van", "reference", "--month", "2026-10").stdout
    for nothing in (["ferry"], ["--month", "2026-09"], ["--client", "codex"], ["--project", "/srv/web"]):
        assert run("show", "sessions", *nothing).stdout == "No session matches.\n"


def test_a_list_of_sessions_continues_at_a_cursor(tmp_path: Path, run: Run) -> None:
    home = tmp_path / "home"

    async def say(memory: Memory) -> None:
        for session in ("boat", "train"):
            await memory.record_turns([NewTurn(role="user", content=f"Book the {session} to Porto.")], session=session)

    in_memory(home, say)
    first = run("show", "sessions", "--limit", "1", home=home)
    rest = run("show", "sessions", "--cursor", first.stderr.split()[-1], home=home)
    assert ("Book the train" in first.stdout, "Book the boat" in rest.stdout) == (True, True)
    assert "--cursor" not in rest.stderr


def test_a_canvas_is_shown_step_by_step_with_its_refs(run: Run, answer: Answer) -> None:
    told = answer("show", "canvas")
    assert [(node["id"], node["title"], node["status"]) for node in told["nodes"]] == [
        ("001-N1", "Read the log", "done"),
        ("001-N2", "Try a newer library", "blocked"),
        ("001-N3", "Read the code", told["nodes"][2]["status"]),
    ]
    shown = run("show", "canvas").stdout
    assert "blocked  N2    Try a newer library" in shown
    assert "Read the code  <- N1" in shown
    assert all(ref in shown for node in told["nodes"] for ref in node["refs"])


@pytest.mark.parametrize("name", ["1", "001"])
def test_a_canvas_is_named_by_number_or_label(name: str, answer: Answer) -> None:
    listed = answer("show", "canvases")[0]
    assert answer("show", "canvas", name) == answer("show", "canvas", listed["label"])
    assert answer("show", "canvas", f"001-{listed['label']}")["number"] == 1


def test_the_mermaid_text_is_the_file(run: Run, small_home: Path) -> None:
    [file] = (small_home / "spaces" / "default" / "mmds").iterdir()
    assert run("show", "canvas", "1", "--mermaid").stdout_bytes == file.read_bytes()


def test_a_canvas_is_drawn_by_the_real_mermaid(run: Run, tmp_path: Path) -> None:
    svg, png = tmp_path / "task.svg", tmp_path / "task.png"
    result = run("show", "canvas", "--svg", str(svg), "--png", str(png))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Try a newer library" in svg.read_text(encoding="utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_drawing_without_the_extra_says_how_to_get_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mermaidx", None)
    result = run("show", "canvas", "--svg", str(tmp_path / "x.svg"))
    assert result.exit_code == 1
    assert "pip install 'memory-pyramid[render] @ git+https://" in " ".join(result.stderr.split())


@pytest.mark.slow
def test_drawing_into_a_folder_that_is_not_there_is_an_error(run: Run, tmp_path: Path) -> None:
    result = run("show", "canvas", "--svg", str(tmp_path / "none" / "x.svg"))
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


def test_a_ref_comes_out_byte_for_byte(run: Run, answer: Answer) -> None:
    nodes = {node["title"]: node for node in answer("show", "canvas")["nodes"]}
    for title, raw in (("Read the log", LOG), ("Try a newer library", ODD)):
        [ref] = nodes[title]["refs"]
        assert run("show", "ref", ref).stdout_bytes == raw.encode()
        assert run("show", "ref", nodes[title]["id"]).stdout_bytes == raw.encode()


def test_a_ref_in_json_has_its_header_and_its_text(answer: Answer) -> None:
    told = answer("show", "ref", "001-N2")
    assert (list(told), told["text"], told["ref"]["tool"]) == (["ref", "text"], ODD, "shell")
    assert told["ref"]["bytes"] == len(ODD.encode())


def test_why_names_the_origin_of_a_sentence(run: Run, tmp_path: Path) -> None:
    async def talk(memory: Memory) -> None:
        await memory.record_turns(
            [NewTurn(role="user", content="I am a geography teacher and live in Oslo with my two cats.")]
        )

    in_memory(
        tmp_path / "home", talk, read_sentences=True, embedder="bundled"
    )  # its end waits until the sentences are read
    shown = run("why", "a1", home=tmp_path / "home").stdout
    assert re.search(r"origin +extracted without a model, verbatim", shown)
