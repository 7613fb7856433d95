"""An OpenAI-compatible endpoint on loopback whose answers follow a script: what a provider does on its bad days too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Endpoint:
    """An OpenAI-compatible /v1/chat/completions: each request takes the next answer of the script.

    An answer is a text of the model, a whole body, (status, headers), or None: a byte now and then, for ever; or a
    function that makes one of these of the request.
    """

    url: str = ""
    script: list[Any] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


def completion(text: str | None, *, why: str = "stop", calls: Sequence[Any] = (), cached: int | None = None) -> bytes:
    """A completion; `cached` is the part of the prompt that was read from a cache, where the endpoint tells it."""
    said = {"role": "assistant", "content": text, **({"tool_calls": [*calls]} if calls else {})}
    choice = {"index": 0, "finish_reason": why, "message": said}
    told = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17, **told}
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    ).encode()


def calling(tool: str, **arguments: Any) -> bytes:
    """A completion that calls one tool."""
    call = {"id": "call-1", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    return completion(None, why="tool_calls", calls=[call])


@contextmanager
def serving(*, saying: str = "no") -> Iterator[Endpoint]:
    """Run the endpoint; errors of a status say `saying`."""
    scripted = Endpoint()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            scripted.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            step = scripted.script.pop(0)
            match step(scripted.asked[-1]) if callable(step) else step:
                case str() as text:
                    self.answer(200, {}, completion(text))
                case bytes() as body:
                    self.answer(200, {}, body)
                case None:
                    self.drip()
                case status, headers:
                    self.answer(status, headers, json.dumps({"error": {"message": saying}}).encode())

        def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def drip(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "1000000")
            self.end_headers()
            while not scripted.over.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()
            self.close_connection = True

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = False
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        scripted.url = f"http://127.0.0.1:{server.server_port}/v1"
        yield scripted
        scripted.over.set()
        server.shutdown()
        serving.join()
