"""Domain SQL: the verbs of `store.protocol`, written once for every engine.

Functions take a `Transaction`, which is bound to one space. What only one engine can do is that engine's own.
"""
