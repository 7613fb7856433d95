"""litellm over real loopback HTTP. Importing litellm takes seconds: every test that needs it is here."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.models.embed.external import CHARACTERS_SENT, TEXTS_A_REQUEST, RemoteEmbedder, RequestPatience
from mcp_memory.models.llm import import_litellm

KEY = "sk-a-secret-of-the-test"
OK = object()

pytestmark = pytest.mark.usefixtures("loop_for_litellm")


@dataclass
class Endpoint:
    """An OpenAI-compatible /v1/embeddings: each request takes the next scripted answer, then honest ones.

    An answer is OK, a status, a body, or None: no answer until the test is over.
    """

    url: str = ""
    script: list[Any] = field(default_factory=list)
    asked: list[list[str]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def answer(self, texts: list[str]) -> tuple[int, bytes]:
        turn = self.script.pop(0) if self.script else OK
        match turn:
            case None:
                self.over.wait(30)
                return 200, b""
            case int():
                return turn, json.dumps({"error": {"message": f"no, {KEY}"}}).encode()
            case bytes():
                return 200, turn
            case list():
                return 200, body(turn)
            case _:
                return 200, body([[float(len(text)), 4.0, 0.0] for text in texts])


def body(vectors: list[Any]) -> bytes:
    data = [{"object": "embedding", "index": place, "embedding": each} for place, each in enumerate(vectors)]
    return json.dumps(
        {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    ).encode()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    scripted = Endpoint()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            scripted.asked.append(request["input"])
            scripted.keys.add(self.headers["authorization"])
            status, sent = scripted.answer(request["input"])
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

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


@pytest.fixture
def paused() -> list[float]:
    return []


@pytest.fixture
def embedder(endpoint: Endpoint, paused: list[float]) -> RemoteEmbedder:
    return RemoteEmbedder(
        "openai/m",
        base_url=endpoint.url,
        api_key=KEY,
        for_a_query=RequestPatience(timeout=10, pauses=(0.5,)),
        for_rows=RequestPatience(timeout=10, pauses=(0.5, 2)),
        pause=paused.append,
    )


def test_rows_come_back_in_order_and_of_length_one(embedder: RemoteEmbedder, endpoint: Endpoint) -> None:
    vectors = embedder.embed(["abc", "", "abcabcab", " \n"])
    assert np.allclose(vectors, [[0.6, 0.8, 0], [0, 0, 0], [0.8944272, 0.4472136, 0], [0, 0, 0]])
    assert (vectors.dtype, endpoint.asked, endpoint.keys) == (np.float32, [["abc", "abcabcab"]], {f"Bearer {KEY}"})


def test_nothing_is_asked_before_there_is_a_text(embedder: RemoteEmbedder, endpoint: Endpoint) -> None:
    assert (embedder.identity.startswith("litellm/1:openai/m@"), embedder.local, endpoint.asked) == (True, False, [])


def test_the_dimension_is_asked_for_once_and_learned_from_any_answer(
    embedder: RemoteEmbedder, endpoint: Endpoint
) -> None:
    assert (embedder.dimensions, embedder.dimensions, len(endpoint.asked)) == (3, 3, 1)
    assert embedder.embed([]).shape == (0, 3)
    assert not embedder.embed_query("").any()
    assert len(endpoint.asked) == 1


def test_many_texts_go_in_batches(embedder: RemoteEmbedder, endpoint: Endpoint) -> None:
    lengths = [1 + place % 7 for place in range(2 * TEXTS_A_REQUEST + 1)]
    vectors = embedder.embed(["x" * length for length in lengths])
    assert np.allclose(vectors[:, 0] / vectors[:, 1] * 4, lengths)
    assert [len(texts) for texts in endpoint.asked] == [TEXTS_A_REQUEST, TEXTS_A_REQUEST, 1]


def test_long_texts_are_cut_and_lone_surrogates_replaced(embedder: RemoteEmbedder, endpoint: Endpoint) -> None:
    embedder.embed(["é" * (CHARACTERS_SENT + 1), "half \ud83d, zero \0"])
    assert endpoint.asked == [["é" * CHARACTERS_SENT, "half ?, zero \0"]]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_that_passes_is_tried_again(
    embedder: RemoteEmbedder, endpoint: Endpoint, paused: list[float], status: int
) -> None:
    endpoint.script = [status, status]
    assert np.allclose(embedder.embed(["abc"]), [[0.6, 0.8, 0]])
    assert (paused, len(endpoint.asked)) == ([0.5, 2], 3)


@pytest.mark.parametrize(
    ("status", "attempts", "says"),
    [
        (429, 3, "is asked more often than its provider allows"),
        (500, 3, "failed: "),
        (401, 1, "refused the key. Set MCP_MEMORY_EMBEDDER_API_KEY"),
        (404, 1, "is not known there. Check MCP_MEMORY_EMBEDDER"),
        (400, 1, "failed: "),
    ],
)
def test_a_failure_that_stays_names_the_model_and_the_next_step_and_never_the_key(
    embedder: RemoteEmbedder, endpoint: Endpoint, status: int, attempts: int, says: str
) -> None:
    endpoint.script = [status] * 5
    with pytest.raises(EmbeddingFailed) as failed:
        embedder.embed(["abc"])
    assert str(failed.value).startswith(f"The embedding model openai/m {says}")
    assert KEY not in str(failed.value)
    assert len(endpoint.asked) == attempts


def test_a_query_is_given_up_sooner_than_rows(
    embedder: RemoteEmbedder, endpoint: Endpoint, paused: list[float]
) -> None:
    endpoint.script = [503] * 5
    with pytest.raises(EmbeddingFailed, match="failed"):
        embedder.embed_query("abc")
    assert (paused, len(endpoint.asked)) == ([0.5], 2)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([[1.0, 2.0]], "answered with 1 vectors for 2 texts"),
        ([[1.0, 2.0]] * 3, "answered with 3 vectors for 2 texts"),
        ([[1.0, 2.0], [1.0]], "answered with something that is not vectors"),
        ([[], []], "answered with invalid numbers"),
        ([1.0, 2.0], "failed: "),
        (body([[1.0, 2.0], [1.0, 7.25]]).replace(b"7.25", b"NaN"), "answered with invalid numbers"),
        (body([[1.0, 2.0], [1.0, 7.25]]).replace(b"7.25", b"1e400"), "answered with invalid numbers"),
        (b'{"object": "list"}', "answered with something that is not vectors"),
        (b"<html>It works!</html>", "failed: "),
        (b"", "failed: "),
    ],
)  # fmt: skip
def test_an_answer_that_is_not_the_vectors_asked_for_is_refused(
    embedder: RemoteEmbedder, endpoint: Endpoint, answer: Any, says: str
) -> None:
    endpoint.script = [answer] * 3
    with pytest.raises(EmbeddingFailed) as failed:
        embedder.embed(["abc", "de"])
    assert str(failed.value).startswith(f"The embedding model openai/m {says}")


def test_a_model_that_changes_its_dimension_is_refused(embedder: RemoteEmbedder, endpoint: Endpoint) -> None:
    endpoint.script = [OK, [[1.0, 2.0]]]
    embedder.embed(["abc"])
    with pytest.raises(EmbeddingFailed, match="with 2 numbers a vector and with 3 before"):
        embedder.embed(["abc"])


def test_no_answer_in_time_is_said(endpoint: Endpoint) -> None:
    endpoint.script = [None]
    embedder = RemoteEmbedder(
        "openai/m", base_url=endpoint.url, api_key=KEY, for_a_query=RequestPatience(timeout=0.2, pauses=())
    )
    with pytest.raises(EmbeddingFailed, match=r"openai/m did not answer within 0\.2 s"):
        embedder.embed_query("abc")


def test_an_endpoint_that_is_not_there_is_said(paused: list[float]) -> None:
    nobody = RemoteEmbedder("openai/m", base_url="http://127.0.0.1:9/v1", api_key=KEY, pause=paused.append)
    with pytest.raises(EmbeddingFailed, match="The embedding model openai/m failed: "):
        nobody.embed_query("abc")
    assert paused == [0.5]


def test_a_name_that_litellm_does_not_know_is_said(paused: list[float]) -> None:
    with pytest.raises(EmbeddingFailed, match="The embedding model no-such-model failed: "):
        RemoteEmbedder("no-such-model", pause=paused.append).embed_query("abc")
    assert paused == []


def test_litellm_reads_no_env_file_and_fetches_no_prices() -> None:
    import_litellm()
    assert (os.environ["LITELLM_MODE"], os.environ["LITELLM_LOCAL_MODEL_COST_MAP"]) == ("PRODUCTION", "True")
