"""How much of a tool result a client would have shown to its model: an offload saves at most that.

Each client cuts large results itself, which hooks and servers do not see. The limits are those of Claude Code 2.1.330
(tried with results of all sizes), Gemini CLI 0.61 and Codex 0.169 as shipped. An unknown client is assumed to cut at
`MOST_CHARS`. Limits that a user has changed are unknown.
"""

from __future__ import annotations

MOST_CHARS = 40_000
"""Characters of a result that Gemini CLI shows. Codex shows 10,000 tokens, which it takes to be 40,000 bytes."""
_CLAUDE_CODE = "claude-code"
_CLAUDE_CODE_CHARS = 50_000
"""Characters of a server's answer that Claude Code shows; of a command, 30,000. It writes a longer text to a file."""
_BEGINNING = 2_000
_IN_A_FILE = """<persisted-output>
Output too large ({kilobytes}KB). Full output saved to: {file}

Preview (first 2KB):
{begins}
...
</persisted-output>"""


def shown_of(client: str, text: str, *, file: str | None = None, size: int | None = None, pages: bool = False) -> str:
    """Return the text that `client` would have shown its model.

    `file` is the file to which the client wrote the whole result, of `size` bytes; `text` may then be only its
    beginning. `pages` is true for a file that was read in pages, which the client does not cut again.
    """
    if not client.startswith(_CLAUDE_CODE):
        return text[:MOST_CHARS]
    if pages or (file is None and len(text) <= _CLAUDE_CODE_CHARS):
        return text
    begins = text[:_BEGINNING]
    return _IN_A_FILE.format(
        kilobytes=f"{(len(text) if size is None else size) / 1024:.1f}".removesuffix(".0"),
        file=file or "",
        begins=begins.rpartition("\n")[0] or begins,
    )
