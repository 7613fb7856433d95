"""Forgetting in SQLite: what goes, what comes back, what is erased, and by what the forgotten is known again.

    matching   what words, a session and times name     reach       what goes with it
    marking    taken out, and put back                  tombstones  the lines that tell of it
    digests    by what it is known when it comes again  returning   what an older copy would bring back
    purging    erased for good                          retention   what a space keeps for a while only

Rows are kept, out of everything but the evidence, until they are purged.
"""
