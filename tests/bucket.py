"""An S3-compatible server for tests: moto's, in a thread on loopback."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.request import Request, urlopen

import obstore
import pytest
from obstore.store import S3Store

_NAME = "memory"


@dataclass(frozen=True, slots=True)
class TestBucket:
    """A bucket; the variables `AWS_…` name its server. `address` is the setting `objects`."""

    __test__ = False

    endpoint: str
    address: str = f"s3://{_NAME}/results"

    def objects(self) -> dict[str, bytes]:
        """Return all objects of the bucket by key, without the prefix of the setting."""
        store = self._store()
        keys = [one["path"] for page in obstore.list(store) for one in page]
        return {key: bytes(obstore.get(store, key).bytes()) for key in keys}

    def put(self, key: str, data: bytes) -> None:
        obstore.put(self._store(), key, data)

    def delete(self, *keys: str) -> None:
        obstore.delete(self._store(), list(keys))

    def empty(self) -> None:
        self.delete(*self.objects())

    def _store(self) -> S3Store:
        return S3Store(_NAME, prefix="results", client_options={"allow_http": True})


@contextmanager
def running_bucket() -> Generator[TestBucket]:
    """Start a server with one bucket; it ends with the block."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    made = TestBucket(f"http://{host}:{port}")
    variables = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": made.endpoint,
    }
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            with urlopen(Request(f"{made.endpoint}/{_NAME}", method="PUT"), timeout=20):
                pass
            yield made
    finally:
        server.stop()
