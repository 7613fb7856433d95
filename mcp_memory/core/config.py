"""Settings, read once: environment variables override `config.toml` in the home, which overrides the defaults.

Only `load_settings()` reads the environment. A wrong value or an unknown key raises InvalidInput, which names it. The
environment variable of a setting `x_y` is `MCP_MEMORY_X_Y`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mcp_memory.core.config_file import PREFIX, read_config
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.paths import DEFAULT_HOME, expand_path, home_of_environment, home_problem
from mcp_memory.core.server_address import ServerAccess, parse_address
from mcp_memory.core.token_counts import OFFLOAD_OVER

_OTHERS = {"MCP_MEMORY_SESSION"}
"""Variables that are not settings: an option of `wrap`."""


def _setting(default: Any, description: str, **limits: Any) -> Any:
    return Field(default=default, description=description, **limits)


class Settings(BaseModel):
    """All settings. The field descriptions are the table of docs/settings.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path = _setting(Path(DEFAULT_HOME), "Folder of the store and all its files; `~` and variables are expanded")
    store: str | None = _setting(
        None,
        "PostgreSQL database of a memory that several servers share, `postgresql://…`; default: a file in the home",
        repr=False,
        pattern=r"^postgres(ql)?://",
    )
    store_key: str | None = _setting(
        None,
        "Key of such a database, without which its user sees no rows; `mcp-memory migrate --grant USER` prints it",
        repr=False,
        pattern=r"^\S{32,}$",
    )
    store_reads: str | None = _setting(
        None,
        "Standbys of that database, `postgresql://…`, which answer recalls and searches while they are up to date",
        repr=False,
        pattern=r"^postgres(ql)?://",
    )
    objects: str | None = _setting(
        None,
        "Bucket for the tool results of such a memory, `s3://BUCKET/PREFIX`; default: in the database",
        pattern=r"^s3://[^/\s]+(/\S*)?$",
    )
    store_timeout: float = _setting(
        10, "Seconds for a call to such a memory; then it fails, as when the database is stopped", ge=2, le=3600
    )
    server: str | None = _setting(
        None,
        "Address of a server whose memory this machine uses, `https://…`: hooks, commands, `wrap` and `import` ask it, "
        "and nothing is stored in the home but what waits for it",
    )
    server_token: str | None = _setting(None, "Token for that server; default: from the file", repr=False)
    server_token_file: str | None = _setting(
        None, "File with that token; default: the one in the home that `mcp-memory install CLIENT --server URL` wrote"
    )
    server_http: bool = _setting(
        False, "Whether `server` may be `http://` on another machine, such as inside a VPN: the token is not encrypted"
    )
    space: str = _setting("default", "Whose memory: a user, a project, an agent")
    personal_space: str = _setting(
        "none",
        "Space of the user's personal memory, which is recalled beside that of a project and gets what is remembered "
        "about the person; `none` for neither",
    )
    embedder: str = _setting(
        "bundled",
        "`bundled`, `none`, a local model (`fastembed:BAAI/bge-small-en-v1.5`, "
        "`model2vec:minishlab/potion-base-8M`, or a folder), or a litellm embedding model "
        "(`ollama/nomic-embed-text`)",
    )
    embedder_base_url: str | None = _setting(None, "Address of the embedding endpoint; default: the provider's")
    embedder_api_key: str | None = _setting(
        None, "Key of the embedding provider; its own variable works too", repr=False
    )
    embedder_query_prefix: str | None = _setting(None, "Prefix of a question; default: that of the model, if known")
    embedder_passage_prefix: str | None = _setting(None, "Prefix of a text to be found, likewise")
    llm: str = _setting(
        "none",
        "`none`; a litellm model such as `ollama/qwen3:8b` or `anthropic/claude-haiku-4-5`; or the client that you are "
        "signed in to: `client:claude-code`, `client:codex` or `client:gemini`, also with its model, such as "
        "`client:claude-code/haiku`",
    )
    llm_base_url: str | None = _setting(None, "Address of the model's endpoint; default: the provider's")
    llm_api_key: str | None = _setting(None, "Key of the model's provider; its own variable works too", repr=False)
    llm_timeout: float = _setting(
        60, "Seconds for a question to the model, all attempts together; for a client 300", gt=0, le=3600
    )
    llm_daily_tokens: int = _setting(
        300_000, "Tokens a day (UTC) after which no model is asked; 0 switches it off", ge=0
    )
    llm_hourly_tokens: int = _setting(100_000, "Tokens an hour after which no model is asked; 0 switches it off", ge=0)
    llm_extract: str | None = _setting(None, "Another model for extracting atoms from turns")
    llm_merge: str | None = _setting(None, "Another model for merging atoms with stored ones")
    llm_scenes: str | None = _setting(None, "Another model for writing scenes")
    llm_persona: str | None = _setting(None, "Another model for writing the persona")
    llm_summaries: str | None = _setting(None, "Another model for summaries of results; `none` switches them off")
    llm_canvas: str | None = _setting(None, "Another model for the order of canvases; `none` switches it off")
    read_sentences: bool = _setting(True, "Whether statements are made of the user's sentences without a model")
    distil: bool = _setting(True, "Whether the model reads new turns automatically; the tool `distill` works without")
    batch_turns: int = _setting(40, "Most turns that one question covers", ge=1, le=100)
    background_turns: int = _setting(5, "Earlier turns that it shows as context", ge=0, le=50)
    every_turns: int = _setting(
        16, "Unread turns of the user that make a silent session due; fewer wait a week", ge=1, le=100
    )
    idle_seconds: float = _setting(600, "Silence after which a session is read", ge=0, le=86_400)
    scenes_interval: float = _setting(900, "Seconds between two updates of the scenes", ge=0, le=86_400)
    persona_every: int = _setting(50, "New atoms after which the persona is rewritten", ge=1)
    max_scenes: int = _setting(15, "Most scenes of a space", ge=2, le=100)
    recall_similarity: float = _setting(0.6, "Weight of similarity in the order of recalled atoms", ge=0, le=1)
    recall_confidence: float = _setting(0.4, "Weight of confidence in the order of recalled atoms", ge=0, le=1)
    rerank: bool = _setting(False, "Whether the model reorders the first 20 results of a search")
    rerank_timeout: float = _setting(8, "Seconds that a search waits for that before it keeps its order", gt=0, le=600)
    offload_over: int = _setting(
        OFFLOAD_OVER, "Tokens from which hooks keep a tool's output out of the context; 0 switches it off", ge=0
    )
    keep_secrets: bool = _setting(
        False, "Whether files of tool results keep their keys, passwords and card numbers; all else is always masked"
    )
    tokenizer: Literal["o200k_base", "cl100k_base"] = _setting("o200k_base", "Vocabulary for counting tokens")
    token: str | None = _setting(
        None, "Bearer token of the owner, for HTTP and SSE; `mcp-memory token create` makes those of others", repr=False
    )
    allowed_hosts: str | None = _setting(None, "Further host names for HTTP and SSE, separated by commas")
    rate_limit: int = _setting(600, "Requests a minute for a token or a remote address; 0 for no limit", ge=0)
    oauth_issuer: str | None = _setting(None, "Authorization server whose access tokens HTTP and SSE accept")
    oauth_audience: str | None = _setting(None, "Address of this server that those tokens must name")
    oauth_space_claim: str | None = _setting(
        None, "Claim that names the space; without it each user has a separate space"
    )
    metrics_token: str | None = _setting(
        None, "Bearer token for the metrics at `/metrics`; without it there are none", repr=False
    )
    audit_log: str | None = _setting(
        None, "Audit log of requests and commands, a file or `stderr`; without it there is none"
    )
    ui_port: int | None = _setting(
        None, "Port of `mcp-memory ui`; default: that of its last run if it is free, else any", ge=0, le=65535
    )
    shared: bool = _setting(
        True, "Whether stdio clients with the same settings share one server process, which their hooks use too"
    )
    hooks_idle_hours: float = _setting(
        12, "Hours without an event after which the process that answers hooks ends", gt=0, le=8760
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "warning", "Least severe messages in the log on stderr"
    )
    log_format: Literal["text", "json"] = _setting("text", "Lines for people, or JSON objects for programs")
    log_contents: bool = _setting(False, "Whether the log may quote stored text and questions")

    @model_validator(mode="before")
    @classmethod
    def _extend_client_timeout(cls, values: dict[str, Any]) -> dict[str, Any]:
        is_client = str(values.get("llm", "")).startswith("client:")
        return {"llm_timeout": 300, **values} if is_client else values

    def server_access(self) -> ServerAccess | None:
        """Return how to reach `server`; None if the memory is on this machine. Raises InvalidInput for a bad address.

        The space is that of the token unless one is set.
        """
        if self.server is None:
            return None
        return ServerAccess(
            address=parse_address(self.server, allow_http=self.server_http),
            home=self.home,
            given_token=self.server_token,
            given_file=self.server_token_file,
            space=self.space if "space" in self.model_fields_set else None,
            personal_space=None if self.personal_space in ("none", self.space) else self.personal_space,
        )


def load_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Return the effective settings. `overrides` that are not None take precedence over everything else.

    A relative `home` in `overrides` is relative to the working folder; in the environment it is refused. Raises
    InvalidInput for an unknown key, a wrong value, an impossible home or an invalid `config.toml`.
    """
    environ = os.environ if environ is None else environ
    explicit = {k: v for k, v in overrides.items() if v is not None}
    from_env = {
        name: environ[PREFIX + name.upper()] for name in Settings.model_fields if environ.get(PREFIX + name.upper())
    }
    home = (
        expand_path(str(explicit["home"]), "--home")
        if explicit.get("home")
        else home_of_environment(from_env.get("home"))
    )
    values: dict[str, Any] = {
        **read_config(home),
        **from_env,
        **explicit,
        "home": home.absolute(),
    }
    for named, other in (("store", "server"), ("server", "store")):  # the one on the command line replaces the other
        if named in explicit and other not in explicit:
            values.pop(other, None)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(_explain(error)) from None
    if settings.server is not None and settings.store is not None:
        raise InvalidInput(
            "Settings 'server' and 'store' are both set. With MCP_MEMORY_SERVER the server has the database: unset "
            "MCP_MEMORY_STORE."
        )
    settings.server_access()
    return settings


def require_home(settings: Settings) -> None:
    """Raise InvalidInput if the home of these settings cannot contain a memory. Reads the folder."""
    if settings.store is None and (
        why := home_problem(settings.home)
    ):  # a PostgreSQL store keeps nothing in the home; a server's clients keep what waits for it
        raise InvalidInput(why)


def unknown_variables(environ: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Return variables with our prefix that set nothing, each with the closest known name or None."""
    environ = os.environ if environ is None else environ
    names = {PREFIX + name.upper() for name in Settings.model_fields} | _OTHERS
    unknown = sorted(name for name, value in environ.items() if name.startswith(PREFIX) and name not in names and value)
    if not unknown:
        return {}
    from difflib import get_close_matches

    near = {name: get_close_matches(name, sorted(names), n=1, cutoff=0.8) for name in unknown}
    return {name: matches[0] if matches else None for name, matches in near.items()}


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "settings"
    if first["type"] == "extra_forbidden":
        settings = ", ".join(sorted(Settings.model_fields))
        name = name if len(name) <= 60 else f"{name[:60]}…"
        return f"Unknown setting {name!r} in config.toml. Known settings: {settings}."
    return f"Setting {name!r} ({PREFIX}{name.upper()}) is wrong: {first['msg']}."
