"""A user's message in a client's log: which of its words the user typed.

Claude Code, Codex and Gemini CLI run a hook with each prompt. What they reported there is matched with the message in
the log; the rest of the message is attached. Without a matching prompt, the message itself is read
(`longterm.attachments`), even if other prompts of the conversation were reported: hooks miss prompts (typed before the
daemon ran or while the agent worked, too long, or rewritten as a slash command), and a user's words that count as
attached never become memories. A prompt is read the same way, because clients that run inside an editor add to it
before the hook sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcp_memory.longterm.attachments import Message, parts_of_message


def message_of(parts: Iterable[str], prompts: Sequence[str] = ()) -> Message:
    """Return the parts of a user's message; `prompts` are what the user typed in the conversation."""
    texts = [part for part in parts if part.strip()]
    text = "\n\n".join(texts)
    stripped = (prompt.strip() for prompt in prompts)
    reported = max((prompt for prompt in stripped if prompt and _find_prompt(prompt, text) >= 0), key=len, default=None)
    if reported is None:
        return _merge_messages([parts_of_message(*texts)])
    place = _find_prompt(reported, text)
    before, after = text[:place], text[place + len(reported) :]
    beside = [_as_attached(parts_of_message(rest)) for rest in (before, after)]
    return _merge_messages([beside[0], parts_of_message(reported), beside[1]])


def _find_prompt(prompt: str, text: str) -> int:
    """Return where the prompt is in the text, with nothing else in its lines; -1 if nowhere."""
    place = text.find(prompt)
    while place >= 0:
        line = text.rfind("\n", 0, place) + 1
        end = text.find("\n", place + len(prompt))
        if not text[line:place].strip() and not text[place + len(prompt) : end if end >= 0 else len(text)].strip():
            return place
        place = text.find(prompt, place + len(prompt))
    return -1


def _as_attached(message: Message) -> Message:
    beside = message.typed.strip()
    return Message("", (*message.attached, beside) if beside else message.attached, message.notices)


def _merge_messages(messages: Iterable[Message]) -> Message:
    messages = list(messages)
    return Message(
        "\n\n".join(message.typed.strip() for message in messages if message.typed.strip()),
        tuple(passage for message in messages for passage in message.attached),
        tuple(notice for message in messages for notice in message.notices),
    )
