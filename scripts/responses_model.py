"""The Responses API of OpenAI on loopback: a model that says one sentence. Codex runs against it as it is."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from scripts.loopback import listening


@dataclass
class ResponsesModel:
    """`url` is what `openai_base_url` names in Codex's configuration, `asked` the requests that were answered."""

    sentence: str
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@contextmanager
def serving_responses(model: ResponsesModel) -> Generator[ResponsesModel]:
    """Run the model on a free port of loopback until the block ends."""

    class Api(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(426, "text/plain", b"")  # no WebSockets: Codex goes on over HTTP at once

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if not self.path.endswith("/responses"):
                return self._send(404, "application/json", b"{}")
            if not self.headers.get("authorization"):
                return self._send(401, "application/json", b'{"error": {"message": "Missing authentication"}}')
            model.asked.append(json.loads(body))
            return self._send(200, "text/event-stream", _stream(model.sentence))

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 its name in the base class
            pass

    with listening(Api) as address:
        model.url = f"{address}/v1"
        yield model


def _stream(sentence: str) -> bytes:
    content: list[dict[str, Any]] = [{"type": "output_text", "text": sentence, "annotations": []}]
    item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    usage = {
        "input_tokens": 300,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 307,
    }
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
