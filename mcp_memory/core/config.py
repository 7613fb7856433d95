"""Settings: read once, from the environment over `config.toml` in the home over the defaults.

`load_settings()` is the only place that looks at the environment. A wrong value or an unknown key is an
`InvalidInput` that names it. Every setting `x_y` is `MCP_MEMORY_X_Y` in the environment.
"""

from __future__ import annotations

import errno
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import read_regular

PREFIX = "MCP_MEMORY_"
_OTHERS = {"MCP_MEMORY_SESSION"}
"""What `wrap` takes from the environment, and is no setting."""
_LARGEST = 2**20
"""Bytes of a `config.toml`."""


class Settings(BaseModel):
    """Everything that a person can set; the field descriptions are the README's table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Annotated[Path, Field(description="Folder of the store and all its files")] = Path("~/.mcp-memory")
    space: Annotated[str, Field(description="Whose memory: a user, a project, an agent")] = "default"
    embedder: Annotated[
        str,
        Field(
            description="`bundled`, `none`, a local model such as `fastembed:BAAI/bge-small-en-v1.5` or "
            "`model2vec:minishlab/potion-base-8M` (a folder works too), or a litellm embedding model such as "
            "`ollama/nomic-embed-text`"
        ),
    ] = "bundled"
    embedder_base_url: Annotated[
        str | None, Field(description="Address of the embedding endpoint, where it is not the provider's own")
    ] = None
    embedder_api_key: Annotated[
        str | None, Field(description="Key of the embedding provider; its own variable works too", repr=False)
    ] = None
    embedder_query_prefix: Annotated[
        str | None, Field(description="What the embedder wants before a question, where it is not known already")
    ] = None
    embedder_passage_prefix: Annotated[
        str | None, Field(description="What the embedder wants before a text that is to be found")
    ] = None
    llm: Annotated[
        str, Field(description="`none`, or a litellm model such as `ollama/qwen3:8b` or `anthropic/claude-haiku-4-5`")
    ] = "none"
    llm_base_url: Annotated[
        str | None, Field(description="Address of the model's endpoint, where it is not the provider's own")
    ] = None
    llm_api_key: Annotated[
        str | None, Field(description="Key of the model's provider; its own variable works too", repr=False)
    ] = None
    llm_timeout: Annotated[
        float, Field(description="Seconds that a question to the model may take, all attempts together", gt=0, le=3600)
    ] = 60
    llm_daily_tokens: Annotated[
        int, Field(description="Tokens a day (UTC) after which the model is not asked; 0 switches it off", ge=0)
    ] = 300_000
    llm_hourly_tokens: Annotated[
        int, Field(description="Tokens an hour after which the model is not asked; 0 switches it off", ge=0)
    ] = 100_000
    llm_extract: Annotated[str | None, Field(description="Another model for drawing atoms from turns")] = None
    llm_merge: Annotated[str | None, Field(description="Another model for merging them with what is held")] = None
    llm_scenes: Annotated[str | None, Field(description="Another model for writing scenes")] = None
    llm_persona: Annotated[str | None, Field(description="Another model for writing the persona")] = None
    llm_summaries: Annotated[
        str | None, Field(description="Another model for the summaries of results; `none` leaves them as they are")
    ] = None
    llm_canvas: Annotated[
        str | None, Field(description="Another model for the order of canvases; `none` leaves them as they are")
    ] = None
    distil: Annotated[
        bool, Field(description="Whether the model reads new turns by itself; the tool `distill` works without")
    ] = True
    batch_turns: Annotated[int, Field(description="Turns that one question reads", ge=1, le=100)] = 10
    background_turns: Annotated[int, Field(description="Turns before them that it shows", ge=0, le=50)] = 5
    every_turns: Annotated[
        int, Field(description="Turns of the user after which a session is read, once it is warm", ge=1, le=100)
    ] = 5
    idle_seconds: Annotated[
        float, Field(description="Silence after which the rest of a session is read", ge=0, le=86_400)
    ] = 600
    scenes_interval: Annotated[
        float, Field(description="Seconds between two rounds of writing scenes", ge=0, le=86_400)
    ] = 900
    persona_every: Annotated[int, Field(description="New atoms after which the persona is written anew", ge=1)] = 50
    max_scenes: Annotated[int, Field(description="Scenes that a space may have", ge=2, le=100)] = 15
    recall_similarity: Annotated[
        float, Field(description="Weight of similarity in the order of what is recalled", ge=0, le=1)
    ] = 0.6
    recall_confidence: Annotated[
        float, Field(description="Weight of confidence in the order of what is recalled", ge=0, le=1)
    ] = 0.4
    rerank: Annotated[bool, Field(description="Whether the model puts the first 20 results of a search into order")] = (
        False
    )
    rerank_timeout: Annotated[
        float, Field(description="Seconds that a search waits for that before it keeps its own order", gt=0, le=600)
    ] = 8
    offload_over: Annotated[
        int,
        Field(
            description="Tokens from which a tool's output is kept out of the context by the hooks of a client; "
            "0 leaves all as they are",
            ge=0,
        ),
    ] = 1_500
    keep_secrets: Annotated[
        bool,
        Field(
            description="Whether the files of tool results hold keys, passwords and card numbers of the result as they "
            "came; arguments, and everything else that is stored or shown, have them masked, always"
        ),
    ] = False
    tokenizer: Annotated[
        Literal["o200k_base", "cl100k_base"], Field(description="Vocabulary that tokens are counted with")
    ] = "o200k_base"
    token: Annotated[
        str | None,
        Field(
            description="Bearer token of the owner, for HTTP and SSE; `mcp-memory token create` makes those of others",
            repr=False,
        ),
    ] = None
    allowed_hosts: Annotated[
        str | None, Field(description="Names, with commas between, that clients may reach HTTP and SSE by besides")
    ] = None
    rate_limit: Annotated[
        int, Field(description="Requests a minute that a token, or another machine, may make; 0 for no limit", ge=0)
    ] = 600
    oauth_issuer: Annotated[
        str | None, Field(description="Authorization server whose access tokens HTTP and SSE take")
    ] = None
    oauth_audience: Annotated[str | None, Field(description="Address of this server that those tokens must be for")] = (
        None
    )
    oauth_space_claim: Annotated[
        str | None, Field(description="Claim of them that names the space; without it each user has one of their own")
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="What the log on stderr shows")
    ] = "warning"
    log_format: Annotated[
        Literal["text", "json"], Field(description="Whether its lines are for people or JSON objects for programs")
    ] = "text"
    log_contents: Annotated[
        bool, Field(description="Whether it may quote what is said, stored and asked; else that is left out")
    ] = False


def load_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Return the settings in force; `overrides` that are not None win over everything.

    Raises InvalidInput for an unknown key, a wrong value or a `config.toml` that is not TOML.
    """
    environ = os.environ if environ is None else environ
    given = {k: v for k, v in overrides.items() if v is not None}
    from_env = {
        name: environ[PREFIX + name.upper()] for name in Settings.model_fields if environ.get(PREFIX + name.upper())
    }
    home = Path(given.get("home") or from_env.get("home") or Settings.model_fields["home"].default).expanduser()
    values: dict[str, Any] = {
        **_read_toml(home / "config.toml"),
        **from_env,
        **given,
        "home": home.absolute(),
    }
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(_explain(error)) from None


def unknown_variables(environ: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Return variables that begin as ours do and set nothing, each with that which was meant, if one is near."""
    environ = os.environ if environ is None else environ
    known = {PREFIX + name.upper() for name in Settings.model_fields} | _OTHERS
    unknown = sorted(name for name, value in environ.items() if name.startswith(PREFIX) and name not in known and value)
    if not unknown:
        return {}
    from difflib import get_close_matches

    near = {name: get_close_matches(name, sorted(known), n=1, cutoff=0.8) for name in unknown}
    return {name: found[0] if found else None for name, found in near.items()}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = read_regular(path, _LARGEST).decode()
    except OSError as error:
        if error.errno in (errno.ESPIPE, errno.EFBIG):
            raise InvalidInput(f"{path} cannot be read: {error.strerror}. Mend or remove it.") from None
        return {}  # no file, or a home that cannot be read: opening the store says the latter better
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 (byte {error.start + 1}). Mend or remove it.") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML ({error}). Mend or remove it.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} holds a number or a nesting that is too large to read. Mend it.") from None


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "settings"
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(Settings.model_fields))
        name = name if len(name) <= 60 else f"{name[:60]}…"
        return f"There is no setting {name!r} in config.toml. Known settings: {known}."
    return f"Setting {name!r} ({PREFIX}{name.upper()}) is wrong: {first['msg']}."
