"""Models of fastembed and model2vec on this machine, their folders, and what they want before a text."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import anyio
import numpy as np
import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import EmbeddingFailed, InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.models.embed.bundled import StaticEmbedder
from mcp_memory.models.embed.factory import embedder_for, make_embedder
from mcp_memory.models.embed.protocol import Embedder, Prefixes, prefixes_of
from mcp_memory.service.memory import open_memory
from tests.models.embed.onnx_model import WORDS, write_model

BUNDLED = Path(__file__).parents[3] / "mcp_memory" / "models" / "embed" / "model"
TEXTS = ["My sister keeps bees in Porto.", "", " \n", "The ferry sails at seven; it rains."]


def made(name: str, **more: str) -> Embedder:
    embedder = make_embedder(Settings(embedder=name, **more))
    assert embedder is not None
    return embedder


def test_model2vec_gives_the_vectors_that_the_bundled_reader_gives_of_the_same_folder() -> None:
    embedder, reader = made(f"model2vec:{BUNDLED}"), StaticEmbedder()
    np.testing.assert_allclose(embedder.embed(TEXTS), reader.embed(TEXTS), atol=1e-5)
    np.testing.assert_allclose(embedder.embed_query(TEXTS[0]), reader.embed_query(TEXTS[0]), atol=1e-5)
    assert (embedder.dimensions, embedder.local) == (256, False)


def test_what_is_no_text_to_a_tokenizer_does_not_fail_the_texts_beside_it() -> None:
    vectors = made(f"model2vec:{BUNDLED}").embed(["\ud800 bees", "", "bees " * 100_000, "bees"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 1], atol=1e-5)


def test_a_folder_of_onnx_is_read_by_fastembed_with_its_own_pooling_and_prompts(tmp_path: Path) -> None:
    pytest.importorskip("fastembed")
    table = write_model(tmp_path / "words", prompts={"query": "query : ", "document": ""})
    embedder = made(f"fastembed:{tmp_path / 'words'}")
    bees, rain, query = (table[WORDS.index(word)] for word in ("bees", "rain", "query"))
    np.testing.assert_allclose(embedder.embed(["bees honey", "", "rain"]), [bees, 0 * bees, rain], atol=1e-6)
    np.testing.assert_allclose(embedder.embed_query("bees"), query, atol=1e-6)  # the first token is the prefix's
    assert embedder.dimensions == len(WORDS)


@pytest.mark.parametrize(("library", "says"), [("fastembed", "holds no .onnx file"), ("model2vec", "cannot be loaded")])
def test_a_folder_without_a_model_is_said(tmp_path: Path, library: str, says: str) -> None:
    pytest.importorskip(library)
    embedder = made(f"{library}:{tmp_path}/nothing")
    with pytest.raises(EmbeddingFailed, match=says):
        embedder.embed_query("bees")


@pytest.mark.parametrize("library", ["fastembed", "model2vec"])
def test_a_library_that_is_not_installed_is_named_with_the_command_that_installs_it(
    tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    write_model(tmp_path / "words")
    with pytest.raises(EmbeddingFailed) as failed:
        made(f"{library}:{tmp_path}/words").embed(["bees"])
    assert str(failed.value) == (
        f"The embedder {library}:{tmp_path}/words needs a library that is not installed ({library}). "
        f"Install it: pip install 'memory-pyramid[{library}] @ git+https://github.com/mcp-memory/mcp-memory'."
    )


def test_a_failure_to_load_is_not_kept(tmp_path: Path) -> None:
    embedder = made(f"model2vec:{tmp_path}/later")
    with pytest.raises(EmbeddingFailed):
        embedder.embed(["bees"])
    shutil.copytree(BUNDLED, tmp_path / "later")
    assert embedder.embed(["bees"]).shape == (1, 256)


def test_a_name_without_a_model_is_refused() -> None:
    with pytest.raises(InvalidInput, match="names no model"):
        made("fastembed:")


def test_the_identity_of_a_folder_follows_its_content_and_that_of_a_name_is_the_name(tmp_path: Path) -> None:
    shutil.copytree(BUNDLED, tmp_path / "a")
    shutil.copytree(BUNDLED, tmp_path / "b")
    (tmp_path / "b" / "config.json").write_text("{}")
    first, second = (made(f"model2vec:{tmp_path / name}").identity for name in "ab")
    assert first.startswith(f"model2vec/1:{tmp_path}/a@")
    assert first.rpartition("@")[2] != second.rpartition("@")[2]
    assert made("model2vec:minishlab/potion-base-8M").identity == "model2vec/1:minishlab/potion-base-8M"


@pytest.mark.parametrize(
    "name", ["fastembed:BAAI/bge-small-en-v1.5", "model2vec:minishlab/potion-base-8M", f"model2vec:{BUNDLED}"]
)
def test_a_local_embedder_is_made_again_from_its_identity(name: str) -> None:
    identity = made(name).identity
    again = embedder_for(identity, Settings(embedder="none"))
    assert again is not None
    assert again.identity == identity


def test_no_embedder_is_made_of_an_identity_that_its_folder_no_longer_has(tmp_path: Path) -> None:
    shutil.copytree(BUNDLED, tmp_path / "a")
    identity = made(f"model2vec:{tmp_path}/a").identity
    earlier = identity[:-12] + "0" * 12
    assert embedder_for(earlier, Settings(embedder="none")) is None


def test_prefixes_are_part_of_the_identity_and_the_settings_stand_over_what_is_known() -> None:
    plain, known = made("openai/some-embedder").identity, made("ollama/nomic-embed-text").identity
    set_ = made("openai/some-embedder", embedder_query_prefix="Q: ").identity
    assert plain == "litellm/1:openai/some-embedder"
    assert known.startswith("litellm/1:ollama/nomic-embed-text+")
    assert set_.startswith("litellm/1:openai/some-embedder+")
    assert made("ollama/nomic-embed-text", embedder_query_prefix="", embedder_passage_prefix="").identity == (
        "litellm/1:ollama/nomic-embed-text"
    )


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("intfloat/e5-small-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "", ""),
        ("ollama/nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-m3", "", ""),
        ("snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
        ("openai/text-embedding-3-small", "", ""),
    ],
)
def test_prefixes_of_known_models(model: str, query: str, passage: str) -> None:
    assert prefixes_of(model, Settings()) == Prefixes(query=query, passage=passage)


def test_a_models_own_word_on_its_prefixes_stands_over_the_table(tmp_path: Path) -> None:
    write_model(tmp_path / "e5-mine", prompts={"query": "ask: ", "passage": "told: "})
    assert prefixes_of(str(tmp_path / "e5-mine"), Settings()) == Prefixes(query="ask: ", passage="told: ")
    (tmp_path / "e5-mine" / "config_sentence_transformers.json").write_text('{"prompts": null}')
    assert prefixes_of(str(tmp_path / "e5-mine"), Settings()) == Prefixes(query="query: ", passage="passage: ")


async def test_a_memory_finds_by_the_meaning_that_a_local_model_sees(home: Path) -> None:
    async with open_memory(home=home, embedder=f"model2vec:{BUNDLED}") as memory:
        await memory.record_turns([NewTurn(role="user", content="My automobile would not start")], session="s")
        with anyio.fail_after(20):
            while True:
                if (await memory.status())["embedding"]["embedded"]:
                    break
                await anyio.sleep(0.01)
        (hit,) = (await memory.conversation_search("car trouble")).hits
    assert list(hit.found_by) == ["related", "meaning"]
