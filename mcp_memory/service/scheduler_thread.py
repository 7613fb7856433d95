"""Background thread that runs due jobs with the configured model, for all spaces of the store, open or not.

It claims the space that has been due longest (`queues.claim_space`), so the threads of all processes share the spaces.
It runs a job of the space and releases it, due now if there was a job, else when time will make a job due. The bell
only wakes the thread: due jobs are computed from rows.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from datetime import timedelta

from mcp_memory.core import telemetry
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError, ModelFailed, NoUsableReply, Refused
from mcp_memory.models.metered import MeteredModel
from mcp_memory.service.scheduler import Scheduler, model_lease
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import home_rows, queues
from mcp_memory.store.values import DISTIL

logger = logging.getLogger(__name__)

_EVERY_S = 15.0  # silence rings no bell
_REFUSED_S = 60.0
_SETTLE_S = 0.5  # turns arrive in bursts
_CLOSING_S = 2.0


class SchedulerThread:
    """Serves the due spaces of a store. `open_memory` calls `start()` and `close()`."""

    def __init__(
        self, store: Store, scheduler_of: Callable[[str], Scheduler], model: MeteredModel, settings: Settings
    ) -> None:
        self._store = store
        self._scheduler_of = scheduler_of
        self._model = model
        self._lease = model_lease(settings)
        self._worker = secrets.token_hex(8)
        self._bell = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ring(self) -> None:
        """Wake the thread: there may be something to do."""
        self._bell.set()

    def close(self) -> None:
        """Stop after the current step, or during a model's answer: that job is leased again later."""
        self._stop.set()
        self._bell.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_CLOSING_S)

    def _run(self) -> None:
        is_open, failure = False, ""
        while not self._stop.is_set():
            self._bell.clear()
            wait = _REFUSED_S
            try:
                if not is_open:
                    self._store.write_home(queues.open_queue, DISTIL, worker=self._worker)
                    is_open = True
                wait = 0.0 if self._serve_next() else _EVERY_S
                failure = ""
            except Refused as refused:
                logger.info("the scheduler waits: %s", refused)
            except McpMemoryError as error:
                is_open = False  # a claim may be left
                if str(error) != failure and not self._stop.is_set():
                    logger.warning("the scheduler waits: %s", error)
                failure = str(error)
            except Exception:
                is_open = False
                if not self._stop.is_set():  # the store may have been closed
                    logger.exception("the scheduler failed")
            if wait and self._bell.wait(wait):
                self._stop.wait(_SETTLE_S)

    def _serve_next(self) -> bool:
        """Serve the space that has been due longest. Return False if there is none, or models are paused.

        A failure in one space does not stop the other spaces. ModelFailed (except NoUsableReply) and Refused are passed
        through, since all spaces share the model.
        """
        if self._store.read_home(home_rows.paused):
            return False
        claim = queues.claim_space(self._store, DISTIL, lease=self._lease, worker=self._worker)
        if claim is None:
            return False
        again = timedelta(seconds=_REFUSED_S)
        try:
            with telemetry.worker_span("distil", claim_age=claim.age):
                again = self._scheduler_of(claim.space).serve(self._model)
        except NoUsableReply as failure:  # its job is parked
            again = timedelta(0)
            logger.info("a job waits: %s", failure)
        except (ModelFailed, Refused):
            raise
        except McpMemoryError as error:
            logger.warning("a space waits for the scheduler: %s", error)
        except Exception:
            logger.exception("the scheduler failed at a space")
        finally:
            self._store.write_home(queues.release, claim, again=again)
        return True
