"""Kills processes at random moments, and proves that no acknowledged write was lost: `python -m bench.torture`

deeds     the operations of a process, by seed and number: capture, remember, offload, fold, distil ledger    its
intended and acknowledged operations, in a file that survives its death by_api    a process that works through the
public API      by_stdio   one that calls a real server seats     starts, kills and restarts them
births     the same for homes that are being created proof     checks of the home afterwards
"""
