"""Domain SQL, written once for every engine: functions on a `Transaction`, which is bound to one space.

Upper layers run the public functions of the modules of rows through a store: `store.read(space, turn_rows.by_ids, ids)`
or `store.write(…)`, and functions on a `HomeTransaction` through `read_home` and `write_home`. Each such call
is one transaction, in which functions call each other. Operations that differ by engine are methods of the store.
"""
