"""A transformer's folder as sentence-transformers exports it, as small as it can be: word embeddings and nothing else.

An ONNX file is a protobuf message; the few fields of a graph with one `Gather` are written here by hand.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

INT64, FLOAT = 7, 1
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bees", "honey", "query", "passage", ":", "rain"]


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def tensor_info(name: str, kind: int, *dims: str) -> bytes:
    shape = b"".join(field(1, field(2, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def graph(table: NDArray[np.float32]) -> bytes:
    gather = field(1, "table") + field(1, "input_ids") + field(2, "last_hidden_state") + field(4, "Gather")
    weights = (
        field(1, table.shape[0])
        + field(1, table.shape[1])
        + field(2, FLOAT)
        + field(8, "table")
        + field(9, table.tobytes())
    )
    inputs = b"".join(field(11, tensor_info(name, INT64, "batch", "words")) for name in ("input_ids", "attention_mask"))
    output = field(12, tensor_info("last_hidden_state", FLOAT, "batch", "words", "size"))
    return field(1, gather) + field(2, "words") + field(5, weights) + inputs + output


def write_model(folder: Path, *, prompts: dict[str, str] | None = None) -> NDArray[np.float32]:
    """Write the folder and return its table: a row for each of WORDS. It takes the first token's row for a text's."""
    table = np.eye(len(WORDS), dtype=np.float32)
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="$A [SEP]", special_tokens=[("[SEP]", WORDS.index("[SEP]"))])
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(field(1, 8) + field(7, graph(table)) + field(8, field(1, "") + field(2, 13)))
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {
        "config.json": {"hidden_size": len(WORDS), "pad_token_id": 0},
        "tokenizer_config.json": {"model_max_length": 16, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"pad_token": "[PAD]", "unk_token": "[UNK]", "sep_token": "[SEP]"},
        "1_Pooling/config.json": {"pooling_mode_cls_token": True},
    }
    if prompts is not None:
        files["config_sentence_transformers.json"] = {"prompts": prompts}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return table
