"""The user's client as the model: what it is given and shut off from, what its output means, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.errors import InvalidInput, ModelFailed, Refused
from mcp_memory.core.process_registry import sole_holder
from mcp_memory.core.token_counts import estimate_tokens
from mcp_memory.core.types import NewTurn
from mcp_memory.models.client_llm import CLIENTS, ClientLLM
from mcp_memory.models.llm import ChatMessage, ModelPrompt, parse
from mcp_memory.models.metered import make_llm
from mcp_memory.service.memory import open_memory
from tests.models.fake_client import FakeClient, make_client

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake client is a script with a #! line")


class Colour(BaseModel):
    colour: str


SYSTEM, USER, BLUE = "Name a colour.", "Which one? 蓝", '{"colour": "blue"}'
PROMPT = ModelPrompt(
    messages=[ChatMessage(role="system", text=SYSTEM), ChatMessage(role="user", text=USER)],
    shape=Colour,
    max_tokens=100,
)
CLAUDE: dict[str, Any] = {
    "type": "result",
    "is_error": False,
    "result": BLUE,
    "total_cost_usd": 0.25,
    "usage": {"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 7},
}
CODEX = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.completed", "item": {"type": "error", "message": "Codex is ignoring 1 setting."}},
    {"type": "error", "message": "Reconnecting... 1/5"},
    {"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": BLUE}},
    {"type": "turn.completed", "usage": {"input_tokens": 123, "cached_input_tokens": 100, "output_tokens": 7}},
]
GEMINI = {
    "session_id": "s",
    "response": BLUE,
    "stats": {
        "models": {"flash": {"tokens": {"prompt": 123, "cached": 100, "candidates": 5, "thoughts": 2, "total": 130}}}
    },
}
ANSWERS: dict[str, Any] = {"claude-code": CLAUDE, "codex": CODEX, "gemini": GEMINI}

Make = Callable[[str], FakeClient]


BEES = NewTurn(role="user", content="I keep bees in Porto, since the spring of 2019.")


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home folder, empty."""
    home = tmp_path / "user"
    home.mkdir()
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return home


@pytest.fixture
def made(user: Path, tmp_path: Path) -> Make:
    """Make a client on the PATH that answers."""

    def make(name: str) -> FakeClient:
        client = make_client(tmp_path / "bin", CLIENTS[name].program)
        client.says(ANSWERS[name])
        return client

    return make


def ask(name: str, home: Path, *, timeout: float = 20) -> Any:
    return ClientLLM(f"client:{name}", home=home).ask(PROMPT, timeout=timeout)


def failure(name: str, home: Path, *, timeout: float = 20) -> ModelFailed:
    with pytest.raises(ModelFailed) as raised:
        ask(name, home, timeout=timeout)
    return raised.value


# --- what it answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "cost"), [("claude-code", 0.25), ("codex", None), ("gemini", None)])
def test_the_answer_comes_with_the_tokens_and_the_cost_that_the_client_tells(
    made: Make, home: Path, name: str, cost: float | None
) -> None:
    made(name)
    said = ask(name, home)
    assert parse(said.text, Colour) == Colour(colour="blue")
    assert (said.prompt_tokens, said.cached_tokens, said.completion_tokens, said.cost) == (123, 100, 7, cost)


def test_tokens_that_the_client_does_not_tell_are_estimated(made: Make, home: Path) -> None:
    made("gemini").says({"response": BLUE})
    said = ask("gemini", home)
    assert said.prompt_tokens == estimate_tokens(f"{SYSTEM}\n{USER}")
    assert said.completion_tokens == estimate_tokens(BLUE)


def test_an_answer_that_did_not_fit_is_shown_with_the_reason(made: Make, home: Path) -> None:
    client = made("claude-code")
    wrong = [ChatMessage(role="assistant", text="red!"), ChatMessage(role="user", text="That cannot be used.")]
    longer = ModelPrompt(messages=[*PROMPT.messages, *wrong], shape=Colour, max_tokens=9)
    ClientLLM("client:claude-code", home=home).ask(longer, timeout=20)
    assert client.seen["prompt"] == f"{USER}\n\nYour answer was:\nred!\n\nThat cannot be used."


# --- what it is given, and shut off from ------------------------------------------------------------


@pytest.mark.parametrize("name", CLIENTS)
def test_it_runs_in_an_empty_folder_that_is_gone_afterwards(made: Make, home: Path, name: str) -> None:
    client = made(name)
    ask(name, home)
    seen = client.seen
    assert seen["files"] == []
    assert not Path(seen["cwd"]).parent.exists()
    assert Path(seen["environ"]["TMPDIR"]).parent == Path(seen["cwd"]).parent
    assert USER in seen["prompt"]
    assert not any(USER in argument for argument in seen["arguments"])


def test_claude_code_runs_without_tools_servers_hooks_settings_and_a_saved_session(made: Make, home: Path) -> None:
    client = made("claude-code")
    ask("claude-code/haiku", home)
    line = " ".join(client.seen["arguments"])
    for option in ("tools  --", "strict-mcp-config", "setting-sources  --", "no-session-persistence", "model haiku"):
        assert f"--{option}" in line
    assert "--disable-slash-commands" in line
    system, settings = sorted(client.seen["named"].items(), key=lambda one: one[0].endswith("settings.json"))[-2:]
    assert system[1] == SYSTEM
    assert settings[1] == '{"disableAllHooks": true}'


def test_of_the_settings_of_claude_code_only_the_sign_in_is_passed_on(made: Make, home: Path, user: Path) -> None:
    client = made("claude-code")
    (user / ".claude").mkdir()
    (user / ".claude" / "settings.json").write_text(
        '{"apiKeyHelper": "key", "hooks": {"Stop": []}, "disableAllHooks": false, "permissions": {}}'
    )
    ask("claude-code", home)
    assert '{"apiKeyHelper": "key", "disableAllHooks": true}' in client.seen["named"].values()


def test_codex_gets_a_home_of_its_own_and_a_token_that_it_renews_is_the_users(
    made: Make, home: Path, user: Path
) -> None:
    client = made("codex")
    client.says(CODEX, renews={"auth.json": "new"})
    (user / ".codex").mkdir()
    (user / ".codex" / "auth.json").write_text("old")
    (user / ".codex" / "AGENTS.md").write_text("Recall first.")
    (user / ".codex" / "hooks.json").write_text("{}")
    ask("codex", home)
    assert set(client.seen["home"]) == {"auth.json", "config.toml"}
    assert client.seen["home"]["auth.json"] == "old"
    assert (user / ".codex" / "auth.json").read_text() == "new"
    assert client.seen["prompt"].endswith(f"{SYSTEM}\n\n{USER}")


def test_gemini_gets_a_home_of_its_own_with_the_users_way_to_sign_in(made: Make, home: Path, user: Path) -> None:
    client = made("gemini")
    (user / ".gemini").mkdir()
    (user / ".gemini" / "oauth_creds.json").write_text("token")
    (user / ".gemini" / "GEMINI.md").write_text("Recall first.")
    (user / ".gemini" / "settings.json").write_text(
        '{// mine\n"security": {"auth": {"selectedType": "oauth-personal"}}, "mcpServers": {"x": {}}}'
    )
    ask("gemini", home)
    assert set(client.seen["home"]) == {".gemini/oauth_creds.json", ".gemini/settings.json"}
    settings = client.seen["home"][".gemini/settings.json"]
    assert '"selectedType": "oauth-personal"' in settings
    assert '"core": []' in settings
    assert "mcpServers" not in settings


def test_our_variables_and_those_of_the_client_that_started_us_are_not_passed_on(
    made: Make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = made("claude-code")
    ours = {"MCP_MEMORY_TOKEN": "t", "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
    theirs = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "CLAUDE_CODE_OAUTH_TOKEN": "k"}
    for variable, value in (ours | theirs).items():
        monkeypatch.setenv(variable, value)
    ask("claude-code", home)
    assert not ours.keys() & client.seen["environ"].keys()
    assert theirs.items() <= client.seen["environ"].items()


# --- what can go wrong ------------------------------------------------------------------------------

OUT_OF_QUOTA: dict[str, tuple[Any, str]] = {
    "claude-code": (
        {**CLAUDE, "is_error": True, "result": "You've hit your 5-hour limit · resets 4:13am (UTC)"},
        "",
    ),
    "codex": ([{"type": "turn.failed", "error": {"message": "You’ve hit your usage limit. Try again at 4 AM."}}], ""),
    "gemini": ("", 'Warning: x\n{\n"error": {"message": "You have exhausted your capacity.", "code": 429}\n}'),
}
SIGNED_OUT: dict[str, tuple[Any, str]] = {
    "claude-code": ({**CLAUDE, "is_error": True, "result": "Not logged in · Please run /login"}, ""),
    "codex": ([{"type": "turn.failed", "error": {"message": "unexpected status 401 Unauthorized: Missing"}}], ""),
    "gemini": ("", '{\n"error": {"type": "Error", "message": "Please set an Auth method", "code": 41}\n}'),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_is_not_installed_is_named(user: Path, home: Path, name: str) -> None:
    failed = failure(name, home)
    assert str(failed).endswith(f"so that `{CLIENTS[name].program}` is on the PATH, or set llm to none.")
    assert not failed.passes


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize(
    ("said", "says"),
    [
        (SIGNED_OUT, "is not signed in. Run `{}` and sign in. It said: "),
        (OUT_OF_QUOTA, "has no quota left. It is asked again later. It said: You"),
    ],
    ids=["signed out", "without quota"],
)
def test_a_client_that_is_signed_out_or_without_quota_is_said_so(
    made: Make, home: Path, name: str, said: dict[str, tuple[Any, str]], says: str
) -> None:
    made(name).says(*said[name], code=1)
    failed = failure(name, home)
    assert says.format(CLIENTS[name].sign_in) in str(failed)
    assert not failed.passes


def test_an_overloaded_service_may_be_asked_again_at_once(made: Make, home: Path) -> None:
    made("claude-code").says({**CLAUDE, "is_error": True, "result": "API Error", "api_error_status": 529}, code=1)
    assert failure("claude-code", home).passes


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("out", ["no JSON", "[1]", "{}", '{"type": "result"}', '{"response": 7}', "{" * 5_000, ""])
def test_what_is_no_answer_of_the_client_is_a_failure(made: Make, home: Path, name: str, out: str) -> None:
    made(name).says(out)
    assert "gave no answer. Try" in str(failure(name, home))


def test_an_older_client_that_does_not_know_an_option_is_quoted(made: Make, home: Path) -> None:
    made("claude-code").says("", "note\nerror: unknown option '--tools'\n", code=1)
    assert str(failure("claude-code", home)).endswith("or update it. It said: error: unknown option '--tools'.")


def test_a_program_that_cannot_be_started_is_to_be_installed_again(made: Make, home: Path, tmp_path: Path) -> None:
    made("codex")
    (tmp_path / "bin" / "codex").write_text("#!/no/such/program\n")
    assert "Codex cannot be started: " in str(failure("codex", home))


def test_a_client_that_is_not_known_is_refused_with_the_names_of_the_others(home: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'client:cursor' is not a supported client.*client:codex"):
        make_llm(Settings(home=home, llm="client:cursor"))


# --- how it ends ------------------------------------------------------------------------------------


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.005)


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return stat.rpartition(")")[2].split()[0] != "Z"  # an orphan may have nobody to reap it


@contextmanager
def asking(model: ClientLLM, client: FakeClient) -> Generator[Any]:
    """Ask on another thread a client that hangs, and wait until it does."""
    client.says(hangs=True)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(model.ask, PROMPT, timeout=60)
        until(client.running.exists)
        yield answer


def ended(client: FakeClient) -> bool:
    return not any(map(lives, client.seen["pids"])) and not Path(client.seen["cwd"]).exists()


@pytest.mark.slow
def test_at_the_time_limit_the_client_is_killed_with_its_children(made: Make, home: Path) -> None:
    client = made("claude-code")
    client.says(hangs=True)
    failed = failure("claude-code", home, timeout=1)
    assert str(failed) == "Claude Code did not answer within 1 s. Raise MCP_MEMORY_LLM_TIMEOUT."
    assert failed.billed
    until(lambda: ended(client))


def test_when_the_memory_closes_the_client_is_killed_and_no_other_is_started(made: Make, home: Path) -> None:
    client = made("codex")
    model = ClientLLM("client:codex", home=home)
    with asking(model, client) as answer:
        model.close()
        with pytest.raises(Refused, match="Its question is asked again"):
            answer.result(20)
    until(lambda: ended(client))
    with pytest.raises(Refused):
        model.ask(PROMPT, timeout=20)


@pytest.mark.slow
def test_when_this_process_is_killed_the_client_is_killed_too(made: Make, home: Path) -> None:
    client = made("gemini")
    client.says(hangs=True)
    code = (
        "import sys; from pathlib import Path; from tests.models.test_client_llm import ClientLLM, PROMPT\n"
        "ClientLLM('client:gemini', home=Path(sys.argv[1])).ask(PROMPT, timeout=60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(home)]) as asker:
        until(client.running.exists)
        asker.send_signal(signal.SIGKILL)
    until(lambda: ended(client))


def test_one_question_at_a_time_is_asked_over_all_processes_of_a_home(made: Make, home: Path) -> None:
    client = made("claude-code")
    (home / "run").mkdir(parents=True)
    with sole_holder(home, "client") as free:
        assert free
        with pytest.raises(Refused, match="Claude Code is answering another question"):
            ask("claude-code", home)
    client.says(CLAUDE)
    assert ask("claude-code", home).text == BLUE


# --- in a memory ------------------------------------------------------------------------------------


async def test_the_answer_is_a_row_of_the_ledger(made: Make, home: Path) -> None:
    made("claude-code").says({**CLAUDE, "result": '{"atoms": []}'})
    settings = Settings(home=home, embedder="none", llm="client:claude-code", distil=False)
    async with open_memory(settings) as memory:
        await memory.record_turns([BEES])
        await memory.consolidate()
        model = (await memory.status())["model"]
    [call] = model["ever"]
    assert (call["purpose"], call["model"]) == ("extract", "client:claude-code")
    assert (call["prompt_tokens"], call["cost"]) == (123, 0.25)


def test_a_client_gets_more_time_than_a_server_unless_it_is_set(home: Path) -> None:
    assert Settings(home=home).llm_timeout == 60
    assert Settings(home=home, llm="client:codex").llm_timeout == 300
    environ = {"MCP_MEMORY_LLM": "client:codex", "MCP_MEMORY_LLM_TIMEOUT": "90"}
    assert load_settings(environ, home=home).llm_timeout == 90


@pytest.mark.slow
async def test_when_a_server_stops_in_the_middle_of_an_answer_the_job_is_given_back(made: Make, home: Path) -> None:
    client = made("claude-code")
    client.says(hangs=True)
    settings = Settings(home=home, embedder="none", llm="client:claude-code", idle_seconds=0)
    async with open_memory(settings) as memory:
        await memory.record_turns([BEES])
        await memory.flush()
        await anyio.to_thread.run_sync(until, client.running.exists)
    await anyio.to_thread.run_sync(until, lambda: ended(client))
    async with open_memory(settings, distil=False) as memory:
        pyramid = (await memory.status())["pyramid"]
    assert [job for job in pyramid["works"] if job["state"] == "parked"] == []
    assert pyramid["waiting"]["turns"] == 1


async def test_past_a_cap_no_client_is_started(made: Make, home: Path) -> None:
    client = made("codex")
    settings = Settings(home=home, embedder="none", llm="client:codex", distil=False, llm_daily_tokens=10)
    async with open_memory(settings) as memory:
        await memory.record_turns([BEES])
        with pytest.raises(Refused, match="The day's 10 tokens for the model are used up"):
            await memory.consolidate()
    assert not (client.folder / "seen.json").exists()


async def test_a_job_of_a_client_that_is_signed_out_is_parked_and_the_status_says_why(made: Make, home: Path) -> None:
    made("claude-code").says(*SIGNED_OUT["claude-code"], code=1)
    settings = Settings(home=home, embedder="none", llm="client:claude-code", distil=False)
    async with open_memory(settings) as memory:
        await memory.record_turns([BEES])
        with pytest.raises(ModelFailed):
            await memory.consolidate()
        [job] = (await memory.status())["pyramid"]["works"]
    assert job["state"] == "parked"
    assert job["error"].startswith("Claude Code is not signed in. Run `claude` and sign in.")
