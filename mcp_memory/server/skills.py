"""The skill of this server, by the extension `io.modelcontextprotocol/skills` (SEP-2640): how to look into the memory,
correct it and tidy it.

Clients that know the extension find it by `skills/list` and `skills/get`, and read it as a resource. It is not in the
list of resources, so other clients see no difference. The plugin has a copy, made by `scripts/catalogues.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import mcp.types as wire
from mcp.server.context import ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.shared.exceptions import MCPError

from mcp_memory.core.text import one_line

SKILL = (resources.files("mcp_memory.server") / "skill.md").read_text(encoding="utf-8")
_HEAD = SKILL.split("---\n", 2)[1]
FRONTMATTER = dict(line.split(": ", 1) for line in _HEAD.splitlines())
"""The fields at the head of the skill, each a line of text."""
URI = f"skill://{FRONTMATTER['name']}/SKILL.md"
_CACHED = {"ttlMs": 3_600_000, "cacheScope": "public"}  # it changes only with the version of this package


class GetSkillParams(wire.RequestParams):
    uri: str


class Skills(Extension):
    """Lists the skill, and describes it with the digest of its text."""

    identifier = "io.modelcontextprotocol/skills"

    def methods(self) -> Sequence[MethodBinding]:
        return [
            MethodBinding("skills/list", wire.PaginatedRequestParams, _list),
            MethodBinding("skills/get", GetSkillParams, _get),
        ]


def read_skill(uri: str) -> ReadResourceContents | None:
    """Return the text of the skill for its address, None for any other."""
    return ReadResourceContents(SKILL, "text/markdown") if uri == URI else None


async def _list(ctx: ServerRequestContext[Any, Any], params: wire.PaginatedRequestParams) -> dict[str, Any]:
    return {"skills": [_entry()], **_CACHED}


async def _get(ctx: ServerRequestContext[Any, Any], params: GetSkillParams) -> dict[str, Any]:
    if params.uri != URI:
        raise MCPError(wire.INVALID_PARAMS, f"There is no skill {one_line(params.uri, 120)!r}. The one here is {URI}.")
    return {"skill": _entry(), **_CACHED}


def _entry() -> dict[str, Any]:
    content = SKILL.encode()
    file = {"uri": URI, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}
    return {"uri": URI, "frontmatter": FRONTMATTER, "resources": [file]}
