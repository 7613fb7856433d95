"""The bundled model: word table and multilingual encoder in one vector, and the files that ship."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.secrets.values import WORDS
from mcp_memory.core.tries import mapped_trie
from mcp_memory.models.embed.bundled import (
    ENGLISH,
    IDENTITY,
    OTHER,
    PIECES,
    PIECES_READ,
    STATIC_PIECES,
    TABLE,
    WEIGHTS,
    BundledEmbedder,
    StaticEmbedder,
    encoder_share,
    shared_encoder,
)
from mcp_memory.models.embed.mapped_files import PieceNumbers
from scripts import write_tries

MODEL = Path(str(resources.files("mcp_memory.models.embed") / "model"))
EMBEDDER, ENCODER = BundledEmbedder(), shared_encoder()

any_text = st.text(max_size=200) | st.text(st.characters(codec=None), max_size=50)

TRANSLATIONS = {
    "ar": ("القطار يغادر في الساعة السادسة", "The train leaves at six"),
    "de": ("Der Schlüssel liegt unter der Matte", "The key is under the mat"),
    "es": ("El horno se estropeó ayer", "The oven broke yesterday"),
    "fr": ("La réunion est reportée à jeudi", "The meeting was moved to Thursday"),
    "it": ("Mio fratello suona il violino", "My brother plays the violin"),
    "ja": ("来月、大阪に引っ越します", "I am moving to Osaka next month"),
    "ko": ("어머니는 간호사로 일하십니다", "My mother works as a nurse"),
    "nl": ("Ik mag geen melk drinken", "I must not drink milk"),
    "pl": ("Kupiliśmy nowy samochód", "We bought a new car"),
    "pt": ("O dentista fica na esquina", "The dentist is at the corner"),
    "ru": ("Собака боится грозы", "The dog is afraid of thunderstorms"),
    "th": ("แมวของฉันชื่อส้ม", "My cat is called Orange"),
    "tr": ("Fırın pazar günleri kapalı", "The bakery is closed on Sundays"),
    "zh": ("会议室在三楼", "The conference room is on the third floor"),
}


def test_the_identity_names_the_bytes_of_the_encoder_that_are_shipped() -> None:
    pieces = "\n".join(PieceNumbers(MODEL, PIECES)).encode()
    digest = sha256((MODEL / WEIGHTS).read_bytes() + pieces + (MODEL / TABLE).read_bytes())
    assert IDENTITY.rpartition(":")[2] == digest.hexdigest()[:8], "a new model needs a new identity"


def test_the_tries_have_what_they_are_made_from() -> None:
    table = write_tries.table_pieces()
    assert list(PieceNumbers(MODEL, STATIC_PIECES)) == sorted(table, key=lambda piece: table[piece])
    with resources.as_file(resources.files("mcp_memory.core.secrets") / WORDS) as path:
        assert set(mapped_trie(path)) == write_tries.known_words()


def test_the_shipped_files_stay_within_forty_six_megabytes() -> None:
    assert sum(path.stat().st_size for path in MODEL.iterdir()) <= 46_000_000


@pytest.mark.parametrize("embedder", [EMBEDDER, StaticEmbedder()], ids=["bundled", "static"])
@given(st.lists(any_text, max_size=4))
def test_any_text_has_a_row_of_length_one_or_of_zeros_alone_and_among_others(
    embedder: BundledEmbedder | StaticEmbedder, texts: list[str]
) -> None:
    vectors = embedder.embed(texts)
    lengths = np.linalg.norm(vectors, axis=1)
    assert (vectors.shape, vectors.dtype) == ((len(texts), embedder.dimensions), np.float32)
    assert bool(np.all(np.isclose(lengths, 1, atol=1e-5) | (lengths == 0)))
    assert all(np.array_equal(row, embedder.embed([text])[0]) for row, text in zip(vectors, texts, strict=True))


few_words = st.sampled_from(["never", "ship", "on", "friday", ",", "nunca", "los", "viernes"])
repetitive_text = st.lists(few_words, max_size=30).map(" ".join)


@given(st.lists(any_text | repetitive_text, max_size=40))
def test_texts_have_the_same_features_together_as_alone_but_for_rounding(texts: list[str]) -> None:
    together = shared_encoder().features(texts)
    for row, text in zip(together, texts, strict=True):
        assert np.allclose(row, shared_encoder().features([text])[0], atol=1e-4)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_blank_text_is_a_row_of_zeros(text: str) -> None:
    assert not EMBEDDER.embed([text, "a letter"])[0].any()


def test_a_text_is_nearest_to_its_own_translation() -> None:
    theirs, english = (EMBEDDER.embed([pair[side] for pair in TRANSLATIONS.values()]) for side in (0, 1))
    nearest = (theirs[:, 256:] @ english[:, 256:].T).argmax(axis=1)
    assert [list(TRANSLATIONS)[place] for place in nearest] == list(TRANSLATIONS)


def test_a_question_is_nearer_to_its_answer_in_other_words_than_to_something_else() -> None:
    question = EMBEDDER.embed_query("When is the wedding?")
    answer, other = EMBEDDER.embed(["They marry on 4 May.", "The ring is too small."])
    assert float(question @ answer) > float(question @ other)


def test_a_question_weighs_the_encoder_by_its_language() -> None:
    assert encoder_share("When does the ferry leave in the morning?") == ENGLISH
    assert encoder_share("Wann fährt die Fähre am Morgen?") == encoder_share("渡轮几点出发？") == OTHER


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    long = "harbour " * PIECES_READ
    assert np.array_equal(ENCODER.embed([long + "violin"]), ENCODER.embed([long + "trumpet"]))


def test_a_missing_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingFailed, match=re.escape("Install mcp-memory again")):
        shared_encoder(tmp_path).embed(["a letter"])
