"""The user's own signed-in client as the model: `client:claude-code`, `client:codex`, `client:gemini`.

A question starts the client headless, with the prompt on standard input, and reads the JSON that it prints. The client
sees nothing but the question: no tools, MCP servers, hooks, plugins or skills, and no memory files of the user or a
project. So it never records or recalls the question. It runs in a new folder that is deleted afterwards, with the
sessions that it saves. Policies of an organisation stay in force.

Claude Code keeps its sign-in in separate places, so it gets the user's home, and flags that exclude all other files.
Codex and Gemini have no flags for all files. They get a new home with links to the files of the sign-in, so a token
that they renew is renewed for the user. A sign-in of Codex in the system's keyring cannot be used, since its entry
there is named after the home.

All processes of a memory's home ask one question at a time; meanwhile other questions raise Refused, and their jobs
are released.
`client:codex/gpt-6` names the client's model too.
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
"""Folders where installers put clients; servers that desktop programs start have a short PATH without them."""
_NOT_PASSED = re.compile(
    r"MCP_MEMORY_|CLAUDECODE$|CLAUDE_CODE_(ENTRYPOINT|SESSION_ID|SSE_PORT)$|CODEX_(SANDBOX|THREAD)"
)
"""Variables not passed to a client: those of the client that started this process, and our own."""


class _Answer(BaseModel):
    """The parsed output of a client.

    `tokens` has the tokens of the prompt and of the answer. `cached` of the prompt's tokens were read from a cache.
    """

    text: str | None = None
    error: str | None = None
    tokens: tuple[int, int] | None = None
    cached: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    """A client: its program and arguments, its command for signing in, and how to prepare a run and parse its output.

    `prepare` gets the run's folder, the user's environment and the system message, and returns the variables to add.
    If `takes_system`, `prepare` passes on the system message; else the prompt begins with it.
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
        users = json.loads(user.read_text(encoding="utf-8"))
        settings = {key: users[key] for key in _CLAUDE_SIGN_IN if key in users}
    _write(folder / "settings.json", json.dumps({**settings, "disableAllHooks": True}))
    _write(folder / "system.md", system)
    return {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _read_claude(out: str, err: str) -> _Answer:
    result = next(event for event in _objects(out) if event.get("type") == "result")
    usage = result["usage"]
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    text = result.get("result") or "; ".join(map(str, result.get("errors") or ())) or str(result.get("subtype"))
    status = result.get("api_error_status")
    return _Answer(
        text=None if result["is_error"] else text,
        error=f"{text} ({status})" if status and str(status) not in text else text if result["is_error"] else None,
        tokens=(sum(usage.get(name) or 0 for name in read), usage["output_tokens"]),
        cached=usage.get("cache_read_input_tokens") or 0,
        cost=result.get("total_cost_usd") or None,
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
"""Settings for all versions of Codex: each ignores the settings that it does not know."""


def _prepare_codex(folder: Path, environ: Mapping[str, str], system: str) -> Mapping[str, str]:
    home = folder / "home"
    home.mkdir()
    _write(home / "config.toml", _CODEX_CONFIG)
    _link(Path(environ.get("CODEX_HOME") or Path.home() / ".codex"), home, ("auth.json",))
    return {"CODEX_HOME": str(home)}


def _read_codex(out: str, err: str) -> _Answer:
    text, error, tokens, cached = None, None, None, 0
    for event in _objects(out):
        match event:
            case {"type": "item.completed", "item": {"type": "agent_message", "text": message}}:
                text = message
            case {"type": "turn.completed", "usage": usage}:
                tokens = usage["input_tokens"], usage["output_tokens"]
                cached = usage.get("cached_input_tokens") or 0
            case {"type": "turn.failed", "error": {"message": message}} | {"type": "error", "message": message}:
                error = message
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
    answer = next(item for item in (*_objects(out), *_objects(err)) if "response" in item or "error" in item)
    if error := answer.get("error"):
        return _Answer(error=f"{error.get('message')} ({error.get('code')})")
    usages = [item["tokens"] for item in answer.get("stats", {}).get("models", {}).values()]
    prompt, written = (sum(item.get("prompt", 0) for item in usages), sum(_written_by_gemini(item) for item in usages))
    cached = sum(item.get("cached", 0) for item in usages)
    return _Answer(text=answer["response"], tokens=(prompt, written) if prompt else None, cached=cached)


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
        takes_system=False,  # it keeps its own instructions: the service may reject others
        prepare=_prepare_codex,
        read=_read_codex,
    ),
    "gemini": _Client(
        title="Gemini CLI",
        program="gemini",
        arguments=("--output-format", "json", "--extensions", "none"),
        model="flash",  # without it, a model chooses the model
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
    """Return the client that a setting names. Raises InvalidInput for an unknown client."""
    client = CLIENTS.get(name.removeprefix(PREFIX).partition("/")[0])
    if client is None:
        names = ", ".join(f"{PREFIX}{client_name}" for client_name in CLIENTS)
        raise InvalidInput(f"{name!r} is not a supported client. Supported: {names}.")
    return client


class ClientLLM:
    """A language model behind an installed command-line client, which runs once for each question.

    `name` is the value of the setting `llm`, such as `client:claude-code/haiku`. The processes that share the directory
    `home` ask one question at a time. Raises InvalidInput for an unknown client; questions during and after `close()`
    raise Refused.
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
        """Return the path of the client's program. Raises ModelFailed if it is not installed."""
        title, program = self._client.title, self._client.program
        path = shutil.which(program, path=_path(os.environ))
        if path is None:
            raise ModelFailed(
                f"{title} was not found. Install it so that `{program}` is on the PATH, or set llm to none."
            )
        return path

    def close(self) -> None:
        """Stop running clients with all their children, and start no more."""
        with self._gate:
            self._closed = True
            runs = list(self._runs)
        for run in runs:
            run.end()

    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        """Run the client on a prompt, and return its answer.

        Raises ModelFailed without an answer, and Refused while the client answers another question or after `close()`.
        """
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
        system = "\n\n".join(argument.text for argument in prompt.messages if argument.role == "system")
        text = _prompt_text(prompt.messages, without_system=client.takes_system)
        _write(folder / "prompt", text)
        (folder / "temporary").mkdir()
        environ = {
            **{name: value for name, value in user.items() if not _NOT_PASSED.match(name)},
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder / "temporary")),
            "PATH": _path(user),
            **client.prepare(folder, user, system),
        }
        arguments = [argument.replace("{folder}", str(folder)) for argument in client.arguments]
        code, out, err = self._run(
            [program, *arguments, *(["--model", self._model] if self._model else [])], folder, environ, timeout
        )
        answer = self._read(code, out, err)
        assert answer.text is not None
        asked = text if not client.takes_system else f"{system}\n{text}"
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
        """Run the command, and return its exit code, standard output and standard error.

        Raises ModelFailed after the time limit, and Refused if `close()` was called.
        """
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
        """Parse the client's output. Raises ModelFailed, with the next step, if it has no answer."""
        client = self._client
        try:
            answer = client.read(out, err)
        except (StopIteration, LookupError, TypeError, AttributeError, ValidationError):
            answer = _Answer()
        if answer.text is not None and answer.error is None:
            return answer
        message = one_line(mask(answer.error or _error_line(err) or _error_line(out)), _LONGEST).rstrip(".")
        if code == CANNOT_START and not out:
            raise ModelFailed(f"{client.title} cannot be started: {message}. Install it again.")
        if _NO_QUOTA.search(message):
            raise ModelFailed(f"{client.title} has no quota left. It is asked again later. It said: {message}.")
        if _SIGNED_OUT.search(message):
            hint = f"Run `{client.sign_in}` and sign in."
            raise ModelFailed(f"{client.title} is not signed in. {hint} It said: {message}.")
        what = f"It said: {message}." if message else "It said nothing."
        raise ModelFailed(
            f"{client.title} gave no answer. Try `{client.program}` yourself, or update it. {what}",
            passes=bool(_PASSES.search(message)),
        )


def _prompt_text(messages: Sequence[ChatMessage], *, without_system: bool) -> str:
    """Return the messages as one text, without the system messages if `without_system`."""
    parts = ["Answer from this text alone. Use no tools."] if not without_system else []
    for message in messages:
        match message.role:
            case "system":
                parts += [] if without_system else [message.text]
            case "user":
                parts.append(message.text)
            case "assistant":
                parts.append(f"Your answer was:\n{message.text}")
    return "\n\n".join(parts)


def _path(environ: Mapping[str, str]) -> str:
    return os.pathsep.join([environ.get("PATH", os.defpath), *(str(Path(folder).expanduser()) for folder in _PLACES)])


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")


def _link(user: Path, home: Path, names: Sequence[str]) -> None:
    """Link the user's files into a folder, so that a token renewed there is renewed for the user."""
    for name in names:
        if (user / name).is_file():
            try:
                (home / name).symlink_to((user / name).absolute())
            except OSError:  # on Windows, symbolic links need a privilege that few users have
                os.link(user / name, home / name)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that begin a line."""
    decoder, end = json.JSONDecoder(strict=False), 0
    for start in (opening.start() for opening in re.finditer(r"^\{", text, re.M)):
        if start >= end:
            with suppress(ValueError, RecursionError):
                value, end = decoder.raw_decode(text, start)
                yield value


def _error_line(text: str) -> str:
    """Return the first line of a text that mentions an error, else its first line that is not blank."""
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in lines if re.search(r"error", line, re.I)), lines[0] if lines else "")
