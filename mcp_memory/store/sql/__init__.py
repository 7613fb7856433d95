"""Domain SQL: the verbs of `store.protocol`, written once for every engine.

Functions take a `Transaction`, which is bound to one space. Operations that only one engine has are in that engine.
"""
