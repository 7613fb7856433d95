"""The garbage collector of a server."""

import gc

_NEW_OBJECTS = 10_000  # 700 by default: indexing a result of 1 MiB then spends a fifth of its time on collections


def collect_rarely() -> None:
    """Leave the objects made so far out of collections, and collect after many new ones.

    Call it after the imports, which make many objects and no garbage.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    gc.enable()
