"""Write the tries of the package: `python scripts/write_tries.py`.

    core/secrets/words.marisa           the words that no secret is made of, from the pieces of both bundled models
    models/embed/model/table_pieces.*   the pieces of the word table, from `tokenizer.json`

Run it after `words of code` in `core/secrets/words.txt` or one of the models has changed; tests hold the files to what
they are made from. The pieces of the encoder are written by `scripts/convert_encoder.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from mcp_memory.core.secrets import values
from mcp_memory.core.tries import write_trie
from mcp_memory.models.embed import bundled
from mcp_memory.models.embed.mapped_files import PieceNumbers

_SECRETS = Path(values.__file__).parent
_WORD_START, _NO_START = "▁", "##"


def table_pieces() -> dict[str, int]:
    """Return the numbers of the word table's pieces."""
    pieces: dict[str, int] = json.loads((bundled.MODEL / "tokenizer.json").read_text(encoding="utf-8"))["model"][
        "vocab"
    ]
    return pieces


def known_words() -> set[str]:
    """Return the whole words of both models in small letters, and those of code."""
    words = {piece[1:] for piece in PieceNumbers(bundled.MODEL, bundled.PIECES) if piece.startswith(_WORD_START)}
    words.update(word for word in table_pieces() if not word.startswith(_NO_START))
    return {word.lower() for word in words if word.isalpha()}.union(values.word_list("words of code"))


def main() -> None:
    pieces = table_pieces()
    PieceNumbers.write(bundled.MODEL, bundled.STATIC_PIECES, [*pieces], [*pieces.values()])
    write_trie(_SECRETS / values.WORDS, known_words())


if __name__ == "__main__":
    main()
