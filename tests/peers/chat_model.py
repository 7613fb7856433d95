"""Chat completions of OpenAI on loopback, with answers from a story: OpenClaw, Hermes and opencode run against them.

For each prompt of a person the story has the steps of a model, each a text or a call of a tool. The next step is
determined by the request itself (the number of answers after the prompt). Requests outside the story get a short answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from scripts.loopback import listening

Step = str | tuple[str, Mapping[str, Any]]
"""A text, or the name and arguments of a tool."""
MODEL = "scripted"
_RECALLED = re.compile(r"<mcp-memory-recall.*?</mcp-memory-recall>", re.DOTALL)


@dataclass
class ChatModel:
    """`story` are the steps by prompt; `url` is the base of the API, `asked` the requests that were answered."""

    story: Mapping[str, Sequence[Step]]
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def step(self, request: Mapping[str, Any]) -> Step:
        messages = request["messages"]
        for at in range(len(messages) - 1, -1, -1):
            said = _RECALLED.sub("", text_of(messages[at])) if messages[at]["role"] == "user" else ""
            steps = next((steps for prompt, steps in self.story.items() if prompt in said), None)
            if steps is not None:
                done = sum(message["role"] == "assistant" for message in messages[at + 1 :])
                return steps[min(done, len(steps) - 1)]
        return "Understood."


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


@contextmanager
def serving_chat(story: Mapping[str, Sequence[Step]]) -> Generator[ChatModel]:
    """Run the model on a free port of loopback until the block ends."""
    model = ChatModel(story)

    class Completions(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, "application/json", json.dumps({"object": "list", "data": [{"id": MODEL}]}))

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            if not self.path.endswith("/chat/completions"):
                return self._send(404, "application/json", "{}")
            model.asked.append(request)
            message = _message(model.step(request), number=len(model.asked))
            if not request.get("stream"):
                return self._send(200, "application/json", json.dumps(_reply("message", message)))
            return self._send(200, "text/event-stream", "".join(_events(message)))

        def _send(self, status: int, kind: str, text: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 its name in the base class
            pass

    with listening(Completions) as address:
        model.url = f"{address}/v1"
        yield model


def _message(step: Step, *, number: int) -> dict[str, Any]:
    if isinstance(step, str):
        return {"role": "assistant", "content": step}
    function = {"name": step[0], "arguments": json.dumps(step[1])}
    call = {"index": 0, "id": f"call_{number:04d}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _reply(key: str, message: Mapping[str, Any], finish: str | None = "") -> dict[str, Any]:
    if finish == "":
        finish = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion" if key == "message" else "chat.completion.chunk",
        "created": 1_750_000_000,
        "model": MODEL,
        "choices": [{"index": 0, key: message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def _events(message: Mapping[str, Any]) -> Iterator[str]:
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    for event in (_reply("delta", message, None), _reply("delta", {}, finish)):
        yield f"data: {json.dumps(event)}\n\n"
    yield "data: [DONE]\n\n"
