"""Models that run on this machine through a library of their own: fastembed (ONNX) and model2vec (static).

Set as `fastembed:BAAI/bge-small-en-v1.5` or `model2vec:minishlab/potion-base-8M`, or with a folder in place of the
name. The library is an extra (`pip install 'mcp-memory[fastembed]'`); it downloads a model at its first use,
fastembed's into `models` under the home, model2vec's into the cache of Hugging Face.

Neither is `local` in the sense of the protocol. A transformer takes some 10 ms a text, and the first use of
either may be a download of minutes: no turn waits for that, the background follows. Questions
wait for a model in the first 10 seconds of its loading; after that they are searched by words until it is there.

The identity of a model by name is that name: hubs do not let a tag be read without asking them, so a model that
changes behind its name is not noticed, unless its dimensions do. A folder's identity has a hash over its files: names,
sizes, and the beginning and end of each.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.secrets import mask
from mcp_memory.models.embed.prefixes import Prefixes, is_folder
from mcp_memory.models.embed.protocol import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Library", "LocalEmbedder"]

Library = Literal["fastembed", "model2vec"]

CHARACTERS_READ = 6000  # no such model reads further; tokenizing a megabyte for its first page takes seconds
_QUERY_WAITS_S = 10.0
_BATCH = 32  # padded to the longest text in it: larger ones take gigabytes
_HASHED_END = 64 * 1024


class LocalEmbedder:
    """One model of a library. All of them in a process share what is loaded of it."""

    local = False

    def __init__(self, library: Library, model: str, *, prefixes: Prefixes, models: Path) -> None:
        """`model` is a name on the hub or a folder; `models` is where fastembed keeps what it downloads."""
        self._library: Library = library
        self._model = str(Path(model).expanduser().absolute()) if is_folder(model) else model
        self._prefixes = prefixes
        self._models = models
        at = f"@{_fingerprint(Path(self._model))}" if is_folder(model) else ""
        self.identity = f"{library}/1:{self._model}{at}{prefixes.mark}"

    @property
    def dimensions(self) -> int:
        return self.embed(["How long is a vector?"]).shape[1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._vectors(self._loading().done.result(), texts, self._prefixes.passage, question=False)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        try:
            loading = self._loading()
            loaded = loading.done.result(timeout=max(0.0, loading.began + _QUERY_WAITS_S - time.monotonic()))
        except TimeoutError:
            raise EmbeddingFailed(
                f"The embedding model {self._model} is still being loaded; its first use downloads it."
            ) from None
        return self._vectors(loaded, [text], self._prefixes.query, question=True)[0]

    def _loading(self) -> _Loading:
        return _loading(self._library, self._model, self._models)

    def _vectors(self, loaded: _Loaded, texts: Sequence[str], prefix: str, *, question: bool) -> NDArray[np.float32]:
        import numpy as np

        rows = [row for row, text in enumerate(texts) if text and not text.isspace()]
        sent = [prefix + texts[row][:CHARACTERS_READ].encode("utf-8", "replace").decode() for row in rows]
        if not sent:
            sent = ["nothing"]  # a blank text has a row of zeros, as long as any other
        try:
            data = loaded.question(sent) if question else loaded.passages(sent)
        except Exception as error:
            raise EmbeddingFailed(f"The embedding model {self._model} failed: {_first_line(error)}") from error
        vectors = np.zeros((len(texts), data.shape[1]), dtype=np.float32)
        if rows:
            vectors[rows] = np.nan_to_num(data)
        return unit_rows(vectors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Loaded:
    """A library's model, ready; both take texts and give one row each."""

    passages: Callable[[list[str]], NDArray[np.float32]]
    question: Callable[[list[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Loading:
    """A model on its way, or there; `began` is by the monotonic clock."""

    done: Future[_Loaded]
    began: float


# --- loading ----------------------------------------------------------------------------------------

_lock = threading.Lock()
_known: dict[tuple[str, str], _Loading] = {}


def _loading(library: Library, model: str, models: Path) -> _Loading:
    """Return the model, loaded or being loaded. A failure is not kept: whoever asks next tries again."""
    with _lock:
        known = _known.get((library, model))
        if known is not None and not (known.done.done() and known.done.exception()):
            return known
        loading = _known[library, model] = _Loading(done=Future(), began=time.monotonic())
    threading.Thread(target=_load, args=(loading.done, library, model, models), name="model", daemon=True).start()
    return loading


def _load(future: Future[_Loaded], library: Library, model: str, models: Path) -> None:
    try:
        future.set_result(_fastembed(model, models) if library == "fastembed" else _model2vec(model))
    except ModuleNotFoundError as error:
        future.set_exception(
            EmbeddingFailed(
                f"The embedder {library}:{model} needs a library that is not here ({error.name}). "
                f"Install it: pip install 'mcp-memory[{library}]'."
            )
        )
    except Exception as error:  # noqa: BLE001 what a library raises is its own; all of it means this one thing
        future.set_exception(
            EmbeddingFailed(
                f"The embedding model {model} cannot be loaded: {_first_line(error)} Check its name in "
                "MCP_MEMORY_EMBEDDER and, at its first use, the network; or name a folder that holds it."
            )
        )


def _fastembed(model: str, models: Path) -> _Loaded:
    library: Any = import_module("fastembed")
    if is_folder(model):
        _register(library, model)
        loaded = library.TextEmbedding(model_name=model, specific_model_path=model)
    else:
        cache = os.environ.get("FASTEMBED_CACHE_PATH") or str(models)  # its default is a folder that reboots empty
        loaded = library.TextEmbedding(model_name=model, cache_dir=cache)
    return _Loaded(
        passages=lambda texts: _stacked(loaded.passage_embed(texts, batch_size=_BATCH)),
        question=lambda texts: _stacked(loaded.query_embed(texts)),
    )


def _register(library: Any, folder: str) -> None:
    """Tell fastembed of a model that it does not list: what its files say of pooling and size."""
    if any(known["model"] == folder for known in library.TextEmbedding.list_supported_models()):
        return
    described: Any = import_module("fastembed.common.model_description")
    place = Path(folder)
    pooled = _read_json(place / "1_Pooling" / "config.json")
    pooling = described.PoolingType.CLS if pooled.get("pooling_mode_cls_token") else described.PoolingType.MEAN
    files = [path.relative_to(place).as_posix() for path in sorted(place.rglob("*.onnx"))]
    if not files:
        raise FileNotFoundError(f"{folder} holds no .onnx file.")
    library.TextEmbedding.add_custom_model(
        model=folder,
        pooling=pooling,
        normalization=True,
        sources=described.ModelSource(hf=folder),
        dim=int(_read_json(place / "config.json").get("hidden_size", 0)),
        model_file=min(files, key=len),  # `model.onnx` before `model_O4.onnx` and `onnx/model_quantized.onnx`
    )


def _model2vec(model: str) -> _Loaded:
    loaded: Any = import_module("model2vec").StaticModel.from_pretrained(model)
    encode = partial(loaded.encode, max_length=None, show_progress_bar=False, use_multiprocessing=False)
    return _Loaded(passages=encode, question=encode)


def _stacked(rows: Any) -> NDArray[np.float32]:
    import numpy as np

    return np.stack(list(rows)).astype(np.float32)


# --- folders ----------------------------------------------------------------------------------------


@cache
def _fingerprint(folder: Path) -> str:
    """Return a hash over the folder's files that tells one model from another without reading all of either."""
    digest = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(_HASHED_END))
            file.seek(max(0, size - _HASHED_END))
            digest.update(file.read())
    return digest.hexdigest()[:12]


_LARGEST_JSON = 64 * 2**20


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(read_regular(path, _LARGEST_JSON))
    except FileNotFoundError:
        return {}


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{mask(lines[0])[:300].rstrip('.')}."
