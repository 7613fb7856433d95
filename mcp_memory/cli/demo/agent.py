"""The agent that the demo plays: it calls tools and reads resources. And how an act looks on paper."""

from __future__ import annotations

import base64
from typing import Any

import click
from mcp import Client
from mcp.types import BlobResourceContents, TextResourceContents

from mcp_memory.cli.terminal import WIDTH, one_line, wrapped

__all__ = ["Agent", "act", "quoted"]


class Agent:
    """What an agent does with the connection: calls tools, reads resources."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured answer of a tool."""
        given = {name: value for name, value in arguments.items() if value is not None}
        result = await self._client.call_tool(tool, given)
        if result.is_error or result.structured_content is None:
            raise RuntimeError(f"{tool} failed: {result.content}")
        return result.structured_content

    async def read(self, uri: str) -> bytes:
        """Return the bytes of a resource."""
        match (await self._client.read_resource(uri)).contents:
            case [TextResourceContents(text=text)]:
                return text.encode()
            case [BlobResourceContents(blob=blob)]:
                return base64.b64decode(blob)
            case other:
                raise RuntimeError(f"{uri} has {len(other)} parts")


def act(title: str, about: str) -> None:
    click.echo(f"\n{click.style(title, bold=True)}\n{click.style(about, dim=True)}\n")


def quoted(title: str, text: str, *, wrap: bool = True) -> None:
    """Print stored words behind a bar; lines that are too long are wrapped, or cut."""
    click.echo(f"  {click.style(title, bold=True)}")
    lines = text.strip().split("\n")
    click.echo(wrapped("\n".join(lines if wrap else (one_line(line, WIDTH - 4) for line in lines)), "  | "))
    click.echo()
