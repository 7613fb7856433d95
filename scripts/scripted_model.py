"""The Messages API of Anthropic on loopback, with answers from a story: Claude Code runs against it unmodified.

For each prompt of a person the story has the steps of a model: each a list of content blocks. The next step is
determined by the request itself (the number of answers after the prompt), so a repeated request gets the same answer.
Requests outside the conversation get a short answer. Every request is kept.

`$PROJECT` in a block is the working folder, `$NODE(step)` the node of that step on the canvas in the request.

This module does not know what the client does with the answers, nor what its hooks say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from scripts.loopback import listening

Block = dict[str, Any]

_SUMMARISE = "Your task is to create a detailed summary of the conversation"
_NODE = re.compile(r"\$NODE\(([^)]*)\)")


@dataclass(frozen=True)
class Turn:
    """A prompt of a person, and the steps of the answer: all but the last call tools."""

    prompt: str
    steps: Sequence[Sequence[Block]]


@dataclass
class ScriptedModel:
    """A model that has read the story: `url` is what ANTHROPIC_BASE_URL names, `asked` are the bodies it was sent."""

    turns: Sequence[Turn]
    summary: str
    project: str
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def answer(self, request: dict[str, Any]) -> list[Block]:
        """Return the content blocks that answer a request; tool calls have no id yet."""
        messages: list[dict[str, Any]] = request["messages"]
        if any(_SUMMARISE in text for message in messages[-2:] for text in texts(message)):
            return [{"type": "text", "text": self.summary}]
        for at in range(len(messages) - 1, -1, -1):
            if messages[at]["role"] != "user":
                continue
            prompt_texts = texts(messages[at])
            turn = next((turn for turn in self.turns if any(_has(text, turn.prompt) for text in prompt_texts)), None)
            if turn is not None:
                done = sum(message["role"] == "assistant" for message in messages[at + 1 :])
                step = json.dumps(turn.steps[min(done, len(turn.steps) - 1)])
                return json.loads(self._filled(step, messages))
        return [{"type": "text", "text": "Understood."}]

    def _filled(self, step: str, messages: Sequence[dict[str, Any]]) -> str:
        text = json.dumps(messages)
        return _NODE.sub(lambda name: _node_of(name[1], text), step.replace("$PROJECT", self.project))


def _has(text: str, prompt: str) -> bool:
    """Return whether a text is the prompt, or has it as a paragraph among what the client added."""
    return f"\n\n{prompt}\n\n" in f"\n\n{text}\n\n"


def _node_of(step: str, text: str) -> str:
    """Return the node whose label begins with the step, from a canvas inside JSON; else a wrong node."""
    match = re.search(rf"(\d{{3}}-N\d+)\[\\*\"{re.escape(step)}", text)
    return match[1] if match else "999-N9"


def texts(message: dict[str, Any]) -> list[str]:
    """Return the texts of a message, those inside tool results too."""
    content = message["content"]
    if isinstance(content, str):
        return [content]
    results: list[str] = []
    for block in content:
        if block["type"] == "text":
            results.append(block["text"])
        elif block["type"] == "tool_result":
            results.extend(texts(block))
    return results


@contextmanager
def serving_model(turns: Sequence[Turn], *, summary: str, project: str) -> Generator[ScriptedModel]:
    """Run the model on a free port of loopback until the block ends."""
    model = ScriptedModel(turns, summary, project)

    class Messages(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._json(200, b"")

        def do_GET(self) -> None:
            self._json(404, b"{}")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            path = self.path.partition("?")[0]
            if path == "/v1/messages/count_tokens":
                return self._json(200, json.dumps({"input_tokens": len(body) // 4}).encode())
            if path != "/v1/messages":
                return self._json(404, b"{}")
            request = json.loads(body)
            model.asked.append(request)
            blocks = model.answer(request)
            for at, block in enumerate(blocks):
                if block["type"] == "tool_use":
                    block["id"] = f"toolu_{len(model.asked):04d}{at:02d}"
            reply = _reply(request, blocks, number=len(model.asked), tokens=len(body) // 4)
            if not request.get("stream"):
                return self._json(200, json.dumps(reply).encode())
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in _events(reply):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.close_connection = True
            return None

        def _json(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 its name in the base class
            pass

    with listening(Messages) as address:
        model.url = address
        yield model


def _reply(request: dict[str, Any], blocks: list[Block], *, number: int, tokens: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": blocks,
        "stop_reason": "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 20},
    }


def _events(reply: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the stream of events of a reply."""
    yield {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}}
    for at, block in enumerate(reply["content"]):
        empty: Block = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        if block["type"] == "text":
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": at, "content_block": empty}
        yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    ending = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}
