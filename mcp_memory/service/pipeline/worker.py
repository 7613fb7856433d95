"""The background thread that has the configured model do what is due. The bell only wakes it: rows are the queue.

It serves all spaces that are open, a question for each in turn. Where one fails it rests, and goes on with the next.
"""

from __future__ import annotations

import logging
import threading

from mcp_memory.core.errors import McpMemoryError, Refused
from mcp_memory.models.metered import Metered
from mcp_memory.service.pipeline.desk import Pipeline

__all__ = ["Worker"]

logger = logging.getLogger(__name__)

_EVERY_S = 15.0  # silence has no bell
_REFUSED_S = 60.0
_CLOSING_S = 2.0


class Worker:
    """`start()` and `close()` belong to `open_memory`."""

    def __init__(self, pipeline: Pipeline, model: Metered) -> None:
        self._pipelines = [pipeline]
        self._model = model
        self._bell = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, pipeline: Pipeline) -> None:
        """Serve another space too."""
        self._pipelines = [*self._pipelines, pipeline]

    def remove(self, pipeline: Pipeline) -> None:
        self._pipelines = [one for one in self._pipelines if one is not pipeline]

    def ring(self) -> None:
        """Tell it that there may be something to do."""
        self._bell.set()

    def close(self) -> None:
        """Stop after the step at hand, or in the middle of a model's answer: its work is taken up again later."""
        self._stop.set()
        self._bell.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_CLOSING_S)

    def _run(self) -> None:
        first = 0
        while not self._stop.is_set():
            self._bell.clear()
            wait = _EVERY_S
            pipelines = self._pipelines
            for number in range(len(pipelines)):
                at = (first + number) % len(pipelines)
                if self._stop.is_set():
                    break
                try:
                    if pipelines[at].step(self._model):
                        wait = 0.0
                    continue
                except Refused as refused:
                    logger.info("the pipeline waits: %s", refused)
                except McpMemoryError as error:
                    if not self._stop.is_set():
                        logger.warning("the pipeline waits: %s", error)
                except Exception:
                    if not self._stop.is_set():  # a store that closes under it is no fault
                        logger.exception("the pipeline failed")
                first, wait = at + 1, _REFUSED_S
                break
            if wait:
                self._bell.wait(wait)
