"""A list of messages as programs send them to models, which is one conversation: see `messages`."""

from __future__ import annotations

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.messages import CHAT, is_message

FORMAT = Format(
    title="a list of messages in the form of a model's API",
    location="messages of LangChain, the AI SDK, OpenAI or Anthropic, in a file of their own",
    unit="document",
    is_last=True,
    matches=is_message,
    records=CHAT.records,
)
