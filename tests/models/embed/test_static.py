"""The bundled model: the bytes that ship, and what it makes of any text."""

from __future__ import annotations

import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from mcp_memory.core.config import Settings
from mcp_memory.models.embed import bundled
from mcp_memory.models.embed.bundled import STATIC_CHARACTERS, STATIC_IDENTITY, TOKENS_READ, StaticEmbedder
from mcp_memory.models.embed.factory import embedder_for, make_embedder

MODEL = Path(str(resources.files("mcp_memory.models.embed") / "model"))
EMBEDDER = StaticEmbedder()
TOKENIZER = Tokenizer.from_file(str(MODEL / "tokenizer.json"))


def cosine(left: str, right: str) -> float:
    vectors = EMBEDDER.embed([left, right])
    return float(vectors[0] @ vectors[1])


def test_the_identity_names_the_bytes_that_are_shipped() -> None:
    digest = sha256()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        digest.update((MODEL / name).read_bytes())
    assert STATIC_IDENTITY.rpartition(":")[2] == digest.hexdigest()[:8], "a new model needs a new identity"


@pytest.mark.parametrize("text", ["", " \n\t", "\U0001f9ed", "\ue000"])
def test_a_text_with_no_known_token_is_a_row_of_zeros(text: str) -> None:
    assert not EMBEDDER.embed([text, "a letter"])[0].any()


def test_a_text_about_the_same_is_nearer_than_another_though_they_share_no_word() -> None:
    asked = "Which pet does she own?"
    assert cosine(asked, "Her dog is called Biscuit.") > cosine(asked, "A bridge was closed until Monday.")


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    long = "harbour " * (TOKENS_READ + 40)
    assert np.array_equal(EMBEDDER.embed_query(long + "violin"), EMBEDDER.embed_query("harbour " * TOKENS_READ))
    assert np.array_equal(
        EMBEDDER.embed_query("." * STATIC_CHARACTERS + "x"), EMBEDDER.embed_query("." * STATIC_CHARACTERS)
    )


def test_the_vectors_are_those_that_model2vec_makes_of_the_same_files() -> None:
    from model2vec import StaticModel

    texts = ["The ferry leaves at six.", "def main() -> None:", "Ünïcode und Umlaute", "東京で会いましょう", "a", "42"]
    theirs = StaticModel.from_pretrained(MODEL, force_download=False).encode(texts, max_length=TOKENS_READ)
    assert np.allclose(EMBEDDER.embed(texts), theirs, atol=1e-5)


def known_tokens(text: str) -> list[int]:
    return bundled._known_tokens(bundled._load_static(), text)  # pyright: ignore[reportPrivateUsage]


def tokens_of_the_library(text: str) -> list[int]:
    ids = TOKENIZER.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False).ids
    return [id for id in ids if id != TOKENIZER.token_to_id("[UNK]")][:TOKENS_READ]


def is_settled(character: str) -> bool:
    """Whether a character has had one category since Unicode 3.2; the library's tables are those of Unicode 8."""
    return unicodedata.category(character) == unicodedata.ucd_3_2_0.category(character)


ANY_TEXT = st.text(max_size=300)
ASCII_TEXT = st.text(st.characters(max_codepoint=127), max_size=300)
WORDS_AND_SIGNS = st.lists(
    st.sampled_from(
        ["Straße", "İstanbul", "naïve", "it’s", "東京で", "한국어", "Ελλάς", "≠", "²", "\u00ad", "\u2028", "x"]
    ),
    max_size=60,
).map("".join)


@given(ANY_TEXT.filter(lambda text: all(map(is_settled, text))) | ASCII_TEXT | WORDS_AND_SIGNS)
def test_a_text_has_the_tokens_that_the_library_finds_in_the_whole_of_it(text: str) -> None:
    assert known_tokens(text) == tokens_of_the_library(text)


def test_every_character_is_read_as_the_library_reads_it() -> None:
    characters = [chr(code) for code in range(0x40000) if unicodedata.category(chr(code)) not in {"Cn", "Cs"}]
    settled = [character for character in characters if is_settled(character)]
    for start in range(0, len(settled), 40):
        text = " ".join(f"a{character}b" for character in settled[start : start + 40])
        assert known_tokens(text) == tokens_of_the_library(text)


def test_the_names_of_special_tokens_are_words_in_any_text() -> None:
    plain = known_tokens("[PAD] and [UNK]")
    assert known_tokens("[PAD] and [UNK] \N{WORD JOINER}") == plain
    assert 0 not in plain


def test_threads_that_come_at_once_get_the_same_vectors() -> None:
    start = threading.Barrier(4)

    def ask(_: int) -> bytes:
        start.wait(timeout=10)
        return StaticEmbedder().embed_query("The ferry leaves at six.").tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, range(4))) == {EMBEDDER.embed_query("The ferry leaves at six.").tobytes()}


def test_the_settings_choose_the_embedder(tmp_path: Path) -> None:
    def made(name: str) -> str | None:
        embedder = make_embedder(Settings(home=tmp_path, embedder=name))
        return embedder and embedder.identity

    identities = [bundled.IDENTITY, None, "litellm/1:ollama/all-minilm"]
    assert [made(name) for name in ("bundled", "none", "ollama/all-minilm")] == identities


def test_the_address_is_part_of_a_remote_identity_and_cannot_be_read_from_it(tmp_path: Path) -> None:
    here, there = (
        make_embedder(Settings(home=tmp_path, embedder="openai/m", embedder_base_url=f"http://u:pass@{host}/v1"))
        for host in ("here", "there")
    )
    assert here is not None
    assert there is not None
    assert here.identity != there.identity
    assert "pass" not in here.identity


def test_an_index_can_be_searched_while_its_model_can_still_be_had(tmp_path: Path) -> None:
    remote = Settings(home=tmp_path, embedder="ollama/all-minilm")

    def still(identity: str, settings: Settings) -> str | None:
        embedder = embedder_for(identity, settings)
        return embedder and embedder.identity

    assert still(STATIC_IDENTITY, remote) == STATIC_IDENTITY
    assert still("litellm/1:ollama/all-minilm", remote) == "litellm/1:ollama/all-minilm"
    assert still("litellm/1:ollama/all-minilm", Settings(home=tmp_path)) is None
    assert still("bundled/1:an-older-model:256:0123abcd", Settings(home=tmp_path)) is None
