"""The door to litellm, through which every call to a model goes.

Importing litellm takes 2 to 3 seconds and some 150 MB, so it happens late, on the thread that needs it, and
not at all where no model is configured. This module is the only one that imports it.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

__all__ = ["import_litellm"]


def import_litellm() -> Any:
    """Return litellm, imported so that it reads no `.env`, fetches no price list and prints nothing.

    Its own retries are off: whoever calls counts attempts in one place, or a failure is tried nine times.
    """
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # anything else reads `.env` of the folder the client started us in
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for prices at each import
    library: Any = import_module("litellm")  # its types are partial; to us it is one function and its errors
    library.suppress_debug_info = True  # it prints to stdout, which belongs to the protocol
    library.DEFAULT_MAX_RETRIES = 0  # asking for `max_retries=0` in a call falls back to this
    return library
