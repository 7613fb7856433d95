"""Embedding models that are not bundled: fastembed and model2vec on this machine, and models that litellm reaches.

Local models are set as `fastembed:BAAI/bge-small-en-v1.5` or `model2vec:minishlab/potion-base-8M`, or with a folder in
place of the name. The library is an extra of this package. It downloads a model at first use, fastembed into `models`
under the home, model2vec into the cache of Hugging Face. Their models do not count as `local` (see `protocol`), so
turns are embedded in the background: a transformer takes 10 ms a text, and a download may take minutes. Questions wait
for a model in the first 10 seconds of its loading, and then are searched by words until it is ready. The identity of a
model by name is that name, so a change behind the name is noticed only by its dimensions; a folder's identity has a
hash over its files.

Remote answers are checked before use: as many vectors as texts, of equal length, every number finite. Any failure is an
EmbeddingFailed that names the model, the problem and the next step, never the key. A temporary failure (429, 5xx, no
connection, timeout) is followed by another attempt for a query, and by up to two for rows. `dimensions` is learned from
the first answer. The identity is the model's name, its address and its prefixes; a model whose dimensions change is
refused for the life of the object. Only the first 6,000 characters of a text are sent: a text over the usual limit of
8,192 tokens makes its whole request fail.
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
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from mcp_memory.core.distribution import install_hint
from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.regular_files import read_regular
from mcp_memory.models.embed.protocol import NO_PREFIXES, Prefixes, is_folder, unit_rows
from mcp_memory.models.llm import explain_failure, first_line, import_litellm, is_temporary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Library = Literal["fastembed", "model2vec"]

CHARACTERS_SENT = 6000  # few models read further; tokenizing a megabyte for its first page takes seconds
_QUERY_WAITS_S = 10.0
_BATCH = 32  # padded to the longest text in it: larger ones take gigabytes
_HASHED_END = 64 * 1024


class LocalEmbedder:
    """Embeds with a model of fastembed or model2vec. All instances in a process share the loaded model."""

    local = False

    def __init__(self, library: Library, model: str, *, prefixes: Prefixes, models: Path) -> None:
        """`model` is a name on the hub or a folder; `models` is where fastembed stores downloads."""
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
        sent = [prefix + _shortened(texts[row]) for row in rows]
        if not sent:
            sent = ["nothing"]  # to learn the length of the row of zeros
        try:
            data = loaded.question(sent) if question else loaded.passages(sent)
        except Exception as error:
            raise EmbeddingFailed(f"The embedding model {self._model} failed: {first_line(error)}.") from error
        vectors = np.zeros((len(texts), data.shape[1]), dtype=np.float32)
        if rows:
            vectors[rows] = np.nan_to_num(data)
        return unit_rows(vectors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Loaded:
    """A loaded model of a library. Both functions take texts and return one row per text."""

    passages: Callable[[list[str]], NDArray[np.float32]]
    question: Callable[[list[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Loading:
    """A model that is being loaded or is loaded. `began` is the start of loading by the monotonic clock, in seconds."""

    done: Future[_Loaded]
    began: float


# --- loading ----------------------------------------------------------------------------------------

_lock = threading.Lock()
_loadings: dict[tuple[str, str], _Loading] = {}


def _loading(library: Library, model: str, models: Path) -> _Loading:
    """Return the model, loaded or being loaded; otherwise, also after a failure, start loading it on a thread."""
    with _lock:
        current = _loadings.get((library, model))
        if current is not None and not (current.done.done() and current.done.exception()):
            return current
        loading = _loadings[library, model] = _Loading(done=Future(), began=time.monotonic())
    threading.Thread(target=_load, args=(loading.done, library, model, models), name="model", daemon=True).start()
    return loading


def _load(future: Future[_Loaded], library: Library, model: str, models: Path) -> None:
    try:
        future.set_result(_fastembed(model, models) if library == "fastembed" else _model2vec(model))
    except ModuleNotFoundError as error:
        future.set_exception(
            EmbeddingFailed(
                f"The embedder {library}:{model} needs a library that is not installed ({error.name}). "
                f"Install it: {install_hint(library)}."
            )
        )
    except Exception as error:  # noqa: BLE001 libraries raise their own errors
        future.set_exception(
            EmbeddingFailed(
                f"The embedding model {model} cannot be loaded: {first_line(error)}. Check its name in "
                "MCP_MEMORY_EMBEDDER and, at its first use, the network; or name a folder that holds it."
            )
        )


def _fastembed(model: str, models: Path) -> _Loaded:
    library: Any = import_module("fastembed")
    if is_folder(model):
        _register(library, model)
        loaded = library.TextEmbedding(model_name=model, specific_model_path=model)
    else:
        cache = os.environ.get("FASTEMBED_CACHE_PATH") or str(models)  # its default folder is emptied by a reboot
        loaded = library.TextEmbedding(model_name=model, cache_dir=cache)
    return _Loaded(
        passages=lambda texts: _stack(loaded.passage_embed(texts, batch_size=_BATCH)),
        question=lambda texts: _stack(loaded.query_embed(texts)),
    )


def _register(library: Any, folder: str) -> None:
    """Register a folder's model with fastembed, unless it is listed there, with pooling and size from its files.

    Raises FileNotFoundError if the folder has no .onnx file.
    """
    if any(supported["model"] == folder for supported in library.TextEmbedding.list_supported_models()):
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


def _stack(rows: Any) -> NDArray[np.float32]:
    import numpy as np

    return np.stack(list(rows)).astype(np.float32)


# --- folders ----------------------------------------------------------------------------------------


@cache
def _fingerprint(folder: Path) -> str:
    """Return a hash over the folder's files: names, sizes, and the beginning and end of each."""
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


TEXTS_A_REQUEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPatience:
    """The timeout of a request, and the pauses before further attempts, in seconds."""

    timeout: float
    pauses: tuple[float, ...]


FOR_A_QUERY = RequestPatience(timeout=10, pauses=(0.5,))
FOR_ROWS = RequestPatience(timeout=30, pauses=(0.5, 2))


class RemoteEmbedder:
    """Asks a model through litellm. `model` is litellm's name for it, such as `ollama/nomic-embed-text`."""

    local = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        prefixes: Prefixes = NO_PREFIXES,
        for_a_query: RequestPatience = FOR_A_QUERY,
        for_rows: RequestPatience = FOR_ROWS,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._prefixes = prefixes
        self._for_a_query = for_a_query
        self._for_rows = for_rows
        self._pause = pause
        self._learned: int | None = None
        at = f"@{sha256(base_url.encode()).hexdigest()[:8]}" if base_url else ""  # hashed: it may hold a password
        self.identity = f"litellm/1:{model}{at}{prefixes.mark}"

    @property
    def dimensions(self) -> int:
        if self._learned is None:
            self._answer(["How long is a vector?"], self._for_a_query)
        assert self._learned is not None
        return self._learned

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed(texts, self._prefixes.passage, self._for_rows)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._embed([text], self._prefixes.query, self._for_a_query)[0]

    def _embed(self, texts: Sequence[str], prefix: str, patience: RequestPatience) -> NDArray[np.float32]:
        import numpy as np

        # Providers refuse an empty text, and with it the whole request.
        sent = [(row, prefix + _shortened(text)) for row, text in enumerate(texts) if text and not text.isspace()]
        batches = [sent[start : start + TEXTS_A_REQUEST] for start in range(0, len(sent), TEXTS_A_REQUEST)]
        answers = [(batch, self._answer([text for _, text in batch], patience)) for batch in batches]
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for batch, answer in answers:
            vectors[[row for row, _ in batch]] = answer
        return unit_rows(vectors)

    def _answer(self, texts: list[str], patience: RequestPatience) -> NDArray[np.float32]:
        return self._check_vectors(self._ask(texts, patience), len(texts))

    def _ask(self, texts: list[str], patience: RequestPatience) -> Any:
        """Send texts to the model, with as many attempts as `patience` allows, and return litellm's response."""
        litellm = import_litellm()
        for pause in (*patience.pauses, None):
            try:
                return litellm.embedding(
                    model=self._model,
                    input=texts,
                    api_base=self._base_url,
                    api_key=self._api_key,
                    timeout=patience.timeout,
                    encoding_format="float",
                    drop_params=True,  # not every provider knows the line above
                )
            except (*litellm.LITELLM_EXCEPTION_TYPES, ValueError) as error:
                status = getattr(error, "status_code", None)
                if not is_temporary(status) or pause is None:
                    settings, secret = "EMBEDDER", self._api_key
                    self._fail(
                        *explain_failure(status, error, settings=settings, timeout=patience.timeout, secret=secret)
                    )
            self._pause(pause)
        raise AssertionError("the last attempt returns or raises")

    def _check_vectors(self, response: Any, expected: int) -> NDArray[np.float32]:
        import numpy as np

        data: Any = getattr(response, "data", None)
        try:
            rows: list[Any] = [item["embedding"] for item in data]
            vectors = np.array(rows, dtype=np.float32)
        except (TypeError, ValueError, KeyError):
            self._fail("answered with something that is not vectors", _WRONG_ENDPOINT)
        if len(rows) != expected:
            self._fail(f"answered with {len(rows)} vectors for {expected} texts", _WRONG_ENDPOINT)
        if vectors.ndim != 2 or vectors.shape[1] == 0 or not np.isfinite(vectors).all():
            self._fail("answered with invalid numbers", _WRONG_ENDPOINT)
        if self._learned not in (None, vectors.shape[1]):
            self._fail(
                f"answered with {vectors.shape[1]} numbers a vector and with {self._learned} before",
                "Another model stands behind that name now; set the embedder to a name of its own.",
            )
        self._learned = vectors.shape[1]
        return vectors

    def _fail(self, what: str, next_step: str) -> NoReturn:
        raise EmbeddingFailed(f"The embedding model {self._model} {what}. {next_step}") from None


_WRONG_ENDPOINT = "Check that MCP_MEMORY_EMBEDDER_BASE_URL is the address of an embedding endpoint."


def _shortened(text: str) -> str:
    return text[:CHARACTERS_SENT].encode("utf-8", "replace").decode()  # a lone surrogate is not valid JSON
