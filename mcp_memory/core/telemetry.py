"""OpenTelemetry spans of requests, background work, the store, embeddings and models, if a collector is configured.

The SDK's middleware makes the spans of requests; `with_spans` wraps the layers below. Telemetry is on if
`OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) is set and the extra `otel` is installed; the other `OTEL_*`
variables have their usual meaning. If it is off, nothing is imported and nothing is wrapped.

Spans leave this process without contents, whoever made them: only attributes known to be names or numbers of ours, and
of errors only the type. Names that clients invent are removed.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import wraps
from importlib.util import find_spec
from typing import Any, TypeVar

from mcp_memory import __version__
from mcp_memory.core.distribution import install_hint
from mcp_memory.core.metrics import Histogram

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_SCOPE = "mcp-memory"
_SDK = "mcp-python-sdk"
_FINISHING_MS = 2_000
_METHOD = re.compile(
    r"(?:initialize|ping|server/discover"
    r"|(?:tools|resources|prompts|completion|logging|subscriptions|notifications)/[a-zA-Z_/]{1,40})"
)
_NAMES = {"gen_ai.tool.name", "gen_ai.prompt.name"}
_KEPT = {
    "error.type", "gen_ai.operation.name", "gen_ai.request.model", "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens", "mcp.protocol.version", "mcp_memory.claim_age_ms", "mcp_memory.pool_wait_ms",
    "mcp_memory.retries", "mcp_memory.texts", "rpc.response.status_code",
}  # fmt: skip
_TRANSACTIONS = {"read": 1, "write": 1, "read_home": 0, "write_home": 0}
"""Methods of the store that run a function, with its place in their arguments. A span is named after the function."""
_VERBS = {"embed": ("embed", "embed_query"), "model": ("ask",)}

_CLAIMED = Histogram("mcp_memory_queue_wait_seconds", "How long a space was due when a worker claimed it.", "queue")

_tracer: Any = None
_provider: Any = None


def is_configured(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether the environment asks for spans."""
    environ = os.environ if environ is None else environ
    off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    return not off and any(environ.get(name) for name in _ENDPOINTS)


def is_installed() -> bool:
    """Return whether the extra `otel`, which sends spans, is installed."""
    with suppress(ImportError):
        return all(map(find_spec, ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")))
    return False


def is_on() -> bool:
    return _tracer is not None


def set_up(known_names: Collection[str]) -> None:
    """Send spans from now on, if the environment asks for it. `known_names` are the names of tools and prompts.

    Without the extra `otel`, a warning is logged instead. If the collector cannot be reached, only its spans are lost.
    """
    global _tracer, _provider
    if not is_configured() or is_on():
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning("OTEL_EXPORTER_OTLP_ENDPOINT is set, and no spans are sent: %s", install_hint("otel"))
        return
    resource = Resource.create(
        {"service.name": os.environ.get("OTEL_SERVICE_NAME", _SCOPE), "service.version": __version__}
    )
    _provider = TracerProvider(resource=resource)
    _provider.add_span_processor(BatchSpanProcessor(without_contents(OTLPSpanExporter(), known_names)))
    trace.set_tracer_provider(_provider)
    _tracer = _provider.get_tracer(_SCOPE, __version__)


def finish() -> None:
    """Send the remaining spans, within two seconds. Call it before a process ends without its exit handlers."""
    if _provider is not None:
        _provider.force_flush(_FINISHING_MS)


# --- measurements -----------------------------------------------------------------------------------


def with_spans(thing: T, kind: str) -> T:
    """Return a proxy that runs the verbs of an object in spans. If telemetry is off, or for None, return the object.

    `kind` is store, embed or model.
    """
    if not is_on() or thing is None:
        return thing
    seen: Any = _SpanProxy(thing, kind, _VERBS.get(kind))
    return seen


def set_attribute(name: str, value: float) -> None:
    """Set the attribute `mcp_memory.NAME` of the current span; does nothing if telemetry is off."""
    if is_on():
        from opentelemetry.trace import get_current_span

        get_current_span().set_attribute(f"mcp_memory.{name}", value)


@contextmanager
def worker_span(kind: str, *, claim_age: timedelta) -> Generator[None]:
    """Run background work on a space in a span. `claim_age` is how long the work was due before it was claimed."""
    _CLAIMED.observe(claim_age.total_seconds(), kind)
    if not is_on():
        yield
        return
    about = {"mcp_memory.claim_age_ms": round(claim_age / timedelta(milliseconds=1))}
    with _tracer.start_as_current_span(
        f"worker {kind}", attributes=about, record_exception=False, set_status_on_exception=False
    ):
        yield


class _SpanProxy:
    """Proxy that runs the verbs of an object within spans.

    Calls of the store make spans only inside another span, because background threads call the store all the time.
    """

    def __init__(self, thing: Any, kind: str, verbs: Sequence[str] | None) -> None:
        self._thing, self._kind, self._verbs = thing, kind, verbs

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._thing, name)
        if name.startswith("_") or not callable(value) or (self._verbs is not None and name not in self._verbs):
            return value
        within = _wrap_verb(value, name, self._kind, self._thing)
        self.__dict__[name] = within
        return within


def _wrap_verb(verb: Callable[..., Any], name: str, kind: str, thing: Any) -> Callable[..., Any]:
    from opentelemetry.trace import SpanKind, StatusCode, get_current_span

    model = getattr(thing, "name", None) if kind == "model" else getattr(thing, "identity", None)
    is_far = SpanKind.CLIENT if kind == "model" else SpanKind.INTERNAL

    @wraps(verb)
    def run(*args: Any, **kwargs: Any) -> Any:
        if kind == "store" and not get_current_span().is_recording():
            return verb(*args, **kwargs)
        about: dict[str, Any] = {"gen_ai.request.model": model} if kind in _VERBS else {}
        if kind == "embed" and args:
            about["mcp_memory.texts"] = 1 if isinstance(args[0], str) else len(args[0])
        with _tracer.start_as_current_span(
            f"{kind} {_called(name, args) if kind == 'store' else name}",
            kind=is_far,
            attributes=about,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = verb(*args, **kwargs)
            except Exception as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise
            if kind == "model":
                span.set_attribute("gen_ai.usage.input_tokens", result.prompt_tokens)
                span.set_attribute("gen_ai.usage.output_tokens", result.completion_tokens)
            return result

    return run


def _called(method: str, args: Sequence[Any]) -> str:
    """Return the name of the function that a method of the store runs, such as `atom_rows.add`, or of the method."""
    place = _TRANSACTIONS.get(method, len(args))
    function = args[place] if place < len(args) else None
    name = getattr(function, "__name__", "")
    return f"{function.__module__.rpartition('.')[2]}.{name}" if name.isidentifier() else method


# --- without contents -------------------------------------------------------------------------------


def without_contents(exporter: Any, known_names: Collection[str]) -> Any:
    """Return an exporter that removes all contents from spans before it passes them on."""
    from opentelemetry.sdk.trace.export import SpanExporter

    class Clean(SpanExporter):
        def export(self, spans: Sequence[Any]) -> Any:
            return exporter.export([_clean(span, known_names) for span in spans])

        def shutdown(self) -> None:
            exporter.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return bool(exporter.force_flush(timeout_millis))

    return Clean()


def _clean(span: Any, known_names: Collection[str]) -> Any:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Status

    original: Mapping[str, Any] = span.attributes or {}
    about = {key: value for key, value in original.items() if key in _KEPT}
    about |= {key: original[key] for key in _NAMES if original.get(key) in known_names}
    method = str(original.get("mcp.method.name", ""))
    if _METHOD.fullmatch(method):
        about["mcp.method.name"] = method
    return ReadableSpan(
        name=_span_name(span, about),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=about,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _span_name(span: Any, about: Mapping[str, Any]) -> str:
    """Return the name of a span of ours unchanged; of other spans only the parts known to be harmless."""
    scope = span.instrumentation_scope.name
    if scope == _SCOPE:
        return str(span.name)
    parts = [about.get("mcp.method.name", "a request" if scope == _SDK else scope)]
    return " ".join([*parts, *(str(about[key]) for key in sorted(_NAMES) if key in about)])
