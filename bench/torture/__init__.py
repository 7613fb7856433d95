"""Kills at random moments, and the proof that nothing acknowledged was lost: `python -m bench.torture`

deeds     what a process does: captures, remembers, offloads, folds, distils, by its seed and number
ledger    what it was about to do and what was acknowledged, in a file that its death leaves whole
by_api    a process that works through the public API      by_stdio   one that talks to a real server
seats     starts them, kills them, starts them again       births     the same to homes whose schema is brought up
proof     what holds afterwards, and what does not
"""
