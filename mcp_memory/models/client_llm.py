"""The user's own signed-in client as the model: `client:claude-code`, `client:codex`, `client:gemini`.

A question starts the client headless, with the prompt on standard input, and reads the JSON that it prints. It sees
nothing but the question: no tools, MCP servers, hooks, plugins or skills, and no memory files of the user or a project.
So it never records or recalls itself. It runs in a new folder that is deleted afterwards, and so are the sessions that
it saves. What an organisation imposes on a machine stays in force.

Claude Code keeps its sign-in in places of its own, so it gets the user's home and flags that leave the rest out. Codex
and Gemini have no such flags for everything. They get a home of their own with links to the files of the sign-in:
a token that they renew is the user's again. A sign-in of Codex in the system's keyring cannot be used, for its entry
there is named after the home.

One question at a time is asked over all processes of a memory's home; others raise Refused, and their jobs are given
back. `client:codex/gpt-6` names the client's model too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mcp_memory.core.errors import InvalidInput, ModelFailed, Refused
from mcp_memory.core.process_registry import sole_holder
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.token_counts import estimate_tokens
from mcp_memory.models.client_run import CANNOT_START, ClientRun
from mcp_memory.models.llm import ChatMessage, Completion, ModelPrompt

PREFIX = "client:"
_LONGEST = 200
_PLACES = (
    "~/.local/bin",
    "~/.claude/local",
    "~/.npm-global/bin",
    "~/.bun/bin",
    "/opt/homebrew/bin",
    "/usr/local/bin",
)
"""Where installers put clients: desktop programs start servers with a short PATH."""
_NOT_PASSED = re.compile(
    r"MCP_MEMORY_|CLAUDECODE$|CLAUDE_CODE_(ENTRYPOINT|SESSION_ID|SSE_PORT)$|CODEX_(SANDBOX|THREAD)"
)
"""Variables of the client that started this process, and our own."""


class _Answer(BaseModel):
    """What a client has printed. `tokens`: of the prompt, and of the answer; `cached`: of the prompt, from a cache."""

    text: str | None = None
    error: str | None = None
    tokens: tuple[int, int] | None = None
    cached: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    """A client: its title, program and arguments, what a user runs to sign in, and how it is prepared and read.

    `prepare` gets the run's folder, the user's environment and the system message. It returns the variables to add.
    `takes_system` says that the system message is given to the client there; else the prompt begins with it.
    """

    title: str
    program: str
    arguments: Sequence[str]
    model: str | None = None
    sign_in: str
    takes_system: bool
    prepare: Callable[[Path, Mapping[str, str], str], Mapping[str, str]]
    read: Callable[[str, str], _Answer]


# --- Claude Code ------------------------------------------------------------------------------------

_CLAUDE_SIGN_IN = ("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "env", "forceLoginMethod")


def _prepare_claude(folder: Path, environ: Mapping[str, str], system: str) -> Mapping[str, str]:
    user = Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "settings.json"
    settings: dict[str, Any] = {}
    with suppress(OSError, ValueError, AttributeError):
        told = json.loads(user.read_text(encoding="utf-8"))
        settings = {key: told[key] for key in _CLAUDE_SIGN_IN if key in told}
    _write(folder / "settings.json", json.dumps({**settings, "disableAllHooks": True}))
    _write(folder / "system.md", system)
    return {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _read_claude(out: str, err: str) -> _Answer:
    told = next(one for one in _objects(out) if one.get("type") == "result")
    usage = told["usage"]
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    said = told.get("result") or "; ".join(map(str, told.get("errors") or ())) or str(told.get("subtype"))
    status = told.get("api_error_status")
    return _Answer(
        text=None if told["is_error"] else said,
        error=f"{said} ({status})" if status and str(status) not in said else said if told["is_error"] else None,
        tokens=(sum(usage.get(name) or 0 for name in read), usage["output_tokens"]),
        cached=usage.get("cache_read_input_tokens") or 0,
        cost=told.get("total_cost_usd") or None,
    )


# --- Codex ------------------------------------------------------------------------------------------

_CODEX_CONFIG = """\
approval_policy = "never"
sandbox_mode = "read-only"
web_search = "disabled"
project_doc_max_bytes = 0
check_for_update_on_startup = false
include_apps_instructions = false
include_collaboration_mode_instructions = false
include_environment_context = false
include_permissions_instructions = false

[features]
apps = false
code_mode_host = false
goals = false
hooks = false
image_generation = false
memories = false
plugins = false
shell_snapshot = false
shell_tool = false
skill_search = false
sleep_tool = false
tool_suggest = false
unified_exec = false
view_image = false

[agents]
enabled = false

[skills]
include_instructions = false

[analytics]
enabled = false
"""
"""What is unknown to another version is ignored by it."""


def _prepare_codex(folder: Path, environ: Mapping[str, str], system: str) -> Mapping[str, str]:
    home = folder / "home"
    home.mkdir()
    _write(home / "config.toml", _CODEX_CONFIG)
    _link(Path(environ.get("CODEX_HOME") or Path.home() / ".codex"), home, ("auth.json",))
    return {"CODEX_HOME": str(home)}


def _read_codex(out: str, err: str) -> _Answer:
    text, error, tokens, cached = None, None, None, 0
    for told in _objects(out):
        match told:
            case {"type": "item.completed", "item": {"type": "agent_message", "text": said}}:
                text = said
            case {"type": "turn.completed", "usage": usage}:
                tokens = usage["input_tokens"], usage["output_tokens"]
                cached = usage.get("cached_input_tokens") or 0
            case {"type": "turn.failed", "error": {"message": said}} | {"type": "error", "message": said}:
                error = said
            case _:
                pass
    return _Answer(text=text, error=error if tokens is None else None, tokens=tokens, cached=cached)


# --- Gemini -----------------------------------------------------------------------------------------

_GEMINI_SETTINGS: dict[str, Any] = {
    "context": {"fileName": "none.md"},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "hooksConfig": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
    "skills": {"enabled": False},
    "tools": {"core": []},
}
_GEMINI_SIGN_IN = ("oauth_creds.json", "google_accounts.json", "gemini-credentials.json", "installation_id", ".env")
_GEMINI_WAY = re.compile(r'"selected(?:Auth)?Type"\s*:\s*"([\w-]+)"')


def _prepare_gemini(folder: Path, environ: Mapping[str, str], system: str) -> Mapping[str, str]:
    user, home = Path(environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini", folder / "home" / ".gemini"
    home.mkdir(parents=True)
    settings = dict(_GEMINI_SETTINGS)
    with suppress(OSError, UnicodeDecodeError):
        if way := _GEMINI_WAY.search((user / "settings.json").read_text(encoding="utf-8")):
            settings["security"] = {"auth": {"selectedType": way[1]}}
    _write(home / "settings.json", json.dumps(settings))
    _write(folder / "system.md", system)
    _link(user, home, _GEMINI_SIGN_IN)
    return {
        "GEMINI_CLI_HOME": str(home.parent),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_SYSTEM_MD": str(folder / "system.md"),
    }


def _read_gemini(out: str, err: str) -> _Answer:
    told = next(one for one in (*_objects(out), *_objects(err)) if "response" in one or "error" in one)
    if error := told.get("error"):
        return _Answer(error=f"{error.get('message')} ({error.get('code')})")
    used = [one["tokens"] for one in told.get("stats", {}).get("models", {}).values()]
    prompt, written = (sum(one.get("prompt", 0) for one in used), sum(_written_by_gemini(one) for one in used))
    cached = sum(one.get("cached", 0) for one in used)
    return _Answer(text=told["response"], tokens=(prompt, written) if prompt else None, cached=cached)


def _written_by_gemini(tokens: Mapping[str, int]) -> int:
    return tokens.get("candidates", 0) + tokens.get("thoughts", 0)


# --- all of them ------------------------------------------------------------------------------------

CLIENTS: Mapping[str, _Client] = {
    "claude-code": _Client(
        title="Claude Code",
        program="claude",
        arguments=(
            *("-p", "--output-format", "json", "--no-session-persistence", "--tools", "", "--strict-mcp-config"),
            *("--setting-sources", "", "--settings", "{folder}/settings.json", "--disable-slash-commands"),
            *("--system-prompt-file", "{folder}/system.md"),
        ),
        sign_in="claude",
        takes_system=True,
        prepare=_prepare_claude,
        read=_read_claude,
    ),
    "codex": _Client(
        title="Codex",
        program="codex",
        arguments=("exec", "--json", "--ephemeral", "--skip-git-repo-check", "-"),
        sign_in="codex login",
        takes_system=False,  # the instructions of its own stay: the service may refuse others
        prepare=_prepare_codex,
        read=_read_codex,
    ),
    "gemini": _Client(
        title="Gemini CLI",
        program="gemini",
        arguments=("--output-format", "json", "--extensions", "none"),
        model="flash",  # without one it asks a model which model to ask
        sign_in="gemini",
        takes_system=True,
        prepare=_prepare_gemini,
        read=_read_gemini,
    ),
}

_SIGNED_OUT = re.compile(
    r"log ?in|sign(ed)? ?in|logged (in|out)|authenticat|unauthori[sz]ed|auth method|api[ _]key|\b40[13]\b", re.I
)
_NO_QUOTA = re.compile(
    r"(hit|reached|exceed\w*)\b.{0,40}\blimit|(usage|rate).?limit|quota|credit balance|exhausted|\b429\b", re.I
)
_PASSES = re.compile(r"overloaded|\b5\d\d\b", re.I)


def client_of(name: str) -> _Client:
    """Return the client that a setting names. Raises InvalidInput for any other."""
    client = CLIENTS.get(name.removeprefix(PREFIX).partition("/")[0])
    if client is None:
        known = ", ".join(f"{PREFIX}{one}" for one in CLIENTS)
        raise InvalidInput(f"{name!r} names no client that can be asked. Those that can: {known}.")
    return client


class ClientLLM:
    """Asks a client. `name` is the setting; `home` the memory's, over whose processes one question is asked at a time.

    Raises InvalidInput for a client that is not known. After `close()`, and during it, questions raise Refused.
    """

    def __init__(self, name: str, *, home: Path) -> None:
        self.name = name
        self._client = client_of(name)
        self._model = name.partition("/")[2] or self._client.model
        self._home = home
        self._gate = threading.Lock()
        self._closed = False
        self._runs = set[ClientRun]()

    def program(self) -> str:
        """Return the path of the client's program. Raises ModelFailed where it is not installed."""
        title, program = self._client.title, self._client.program
        path = shutil.which(program, path=_path(os.environ))
        if path is None:
            raise ModelFailed(
                f"{title} was not found. Install it so that `{program}` is on the PATH, or set llm to none."
            )
        return path

    def close(self) -> None:
        """End the client with all its children, if it is at work, and start it no more."""
        with self._gate:
            self._closed = True
            runs = list(self._runs)
        for run in runs:
            run.end()

    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        """Return the client's answer. Raises ModelFailed, and Refused while it is answering another question."""
        with (
            sole_holder(self._home, "client") as free,
            tempfile.TemporaryDirectory(prefix="mcp-memory-", ignore_cleanup_errors=True) as folder,
        ):
            if not free:
                raise Refused(f"{self._client.title} is answering another question. Ask again in a minute.")
            return self._ask(prompt, timeout, Path(folder))

    def _ask(self, prompt: ModelPrompt, timeout: float, folder: Path) -> Completion:
        client, user = self._client, dict(os.environ)
        program = self.program()
        system = "\n\n".join(one.text for one in prompt.messages if one.role == "system")
        told = _told(prompt.messages, without_system=client.takes_system)
        _write(folder / "prompt", told)
        (folder / "temporary").mkdir()
        environ = {
            **{name: value for name, value in user.items() if not _NOT_PASSED.match(name)},
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder / "temporary")),
            "PATH": _path(user),
            **client.prepare(folder, user, system),
        }
        arguments = [one.replace("{folder}", str(folder)) for one in client.arguments]
        code, out, err = self._run(
            [program, *arguments, *(["--model", self._model] if self._model else [])], folder, environ, timeout
        )
        answer = self._read(code, out, err)
        assert answer.text is not None
        asked = told if not client.takes_system else f"{system}\n{told}"
        tokens = answer.tokens or (estimate_tokens(asked), estimate_tokens(answer.text))
        return Completion(
            text=answer.text,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            cached_tokens=answer.cached,
            cost=answer.cost,
        )

    def _run(
        self, command: Sequence[str], folder: Path, environ: Mapping[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """Return the exit code and what was printed. Raises ModelFailed after the time limit, Refused if closed."""
        with self._gate:
            run = None if self._closed else ClientRun(command, folder, environ)
            self._runs |= {run} if run else set()
        code = None
        try:
            code = run.wait(timeout) if run else None
        finally:
            if run:
                run.end()
                self._runs.discard(run)
        if run is None or self._closed:
            raise Refused(f"{self._client.title} was ended with this program. Its question is asked again.")
        if code is None:
            raise ModelFailed(
                f"{self._client.title} did not answer within {timeout:.3g} s. Raise MCP_MEMORY_LLM_TIMEOUT.",
                passes=True,
                billed=True,
            )
        return code, *run.output()

    def _read(self, code: int, out: str, err: str) -> _Answer:
        """Return an answer that has a text. Raises ModelFailed with the next step."""
        client = self._client
        try:
            answer = client.read(out, err)
        except (StopIteration, LookupError, TypeError, AttributeError, ValidationError):
            answer = _Answer()
        if answer.text is not None and answer.error is None:
            return answer
        said = one_line(mask(answer.error or _complaint(err) or _complaint(out)), _LONGEST).rstrip(".")
        if code == CANNOT_START and not out:
            raise ModelFailed(f"{client.title} cannot be started: {said}. Install it again.")
        if _NO_QUOTA.search(said):
            raise ModelFailed(f"{client.title} has no quota left. It is asked again later. It said: {said}.")
        if _SIGNED_OUT.search(said):
            raise ModelFailed(f"{client.title} is not signed in. Run `{client.sign_in}` and sign in. It said: {said}.")
        what = f"It said: {said}." if said else "It said nothing."
        raise ModelFailed(
            f"{client.title} gave no answer. Try `{client.program}` yourself, or update it. {what}",
            passes=bool(_PASSES.search(said)),
        )


def _told(messages: Sequence[ChatMessage], *, without_system: bool) -> str:
    """Return the messages as one text."""
    parts = ["Answer from this text alone. Use no tools."] if not without_system else []
    for one in messages:
        match one.role:
            case "system":
                parts += [] if without_system else [one.text]
            case "user":
                parts.append(one.text)
            case "assistant":
                parts.append(f"Your answer was:\n{one.text}")
    return "\n\n".join(parts)


def _path(environ: Mapping[str, str]) -> str:
    return os.pathsep.join([environ.get("PATH", os.defpath), *(str(Path(one).expanduser()) for one in _PLACES)])


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")


def _link(user: Path, home: Path, names: Sequence[str]) -> None:
    """Put links to files of the user's into a folder, so that what is renewed there is renewed for the user."""
    for name in names:
        if (user / name).is_file():
            try:
                (home / name).symlink_to((user / name).absolute())
            except OSError:  # on Windows, a right that few have
                os.link(user / name, home / name)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that begin a line."""
    decoder, end = json.JSONDecoder(strict=False), 0
    for start in (one.start() for one in re.finditer(r"^\{", text, re.M)):
        if start >= end:
            with suppress(ValueError, RecursionError):
                value, end = decoder.raw_decode(text, start)
                yield value


def _complaint(text: str) -> str:
    """Return the line of a text that names an error, or else its first line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in lines if re.search(r"error", line, re.I)), lines[0] if lines else "")
