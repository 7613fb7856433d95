"""Google's generateContent on loopback: a model that calls one tool, then says one sentence. Gemini runs against it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from scripts.loopback import listening


@dataclass
class GeminiModel:
    """`url` is what GOOGLE_GEMINI_BASE_URL names, `asked` the requests that were answered."""

    tool: str
    arguments: dict[str, Any]
    sentence: str
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call the tool once; what the client asks beside the conversation, in JSON, gets an object."""
        self.asked.append(request)
        if request.get("generationConfig", {}).get("responseMimeType") == "application/json":
            return {"text": json.dumps({"reasoning": "", "next_speaker": "user"})}
        if any("functionResponse" in part for part in request["contents"][-1]["parts"]):
            return {"text": self.sentence}
        return {"functionCall": {"name": self.tool, "args": self.arguments}}


@contextmanager
def serving_gemini(model: GeminiModel) -> Iterator[GeminiModel]:
    """Run the model on a free port of loopback until the block ends."""

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "countTokens" in self.path:
                return self._send("application/json", json.dumps({"totalTokens": 1}))
            candidate = {
                "content": {"role": "model", "parts": [model.answer(body)]},
                "finishReason": "STOP",
                "index": 0,
            }
            told = json.dumps({"candidates": [candidate], "usageMetadata": {"totalTokenCount": 1}})
            if "streamGenerateContent" in self.path:
                return self._send("text/event-stream", f"data: {told}\r\n\r\n")
            return self._send("application/json", told)

        def _send(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            pass

    with listening(Api) as address:
        model.url = address
        yield model
