"""Both protocol generations, as for the server."""

from __future__ import annotations

from tests.server.conftest import era as era
