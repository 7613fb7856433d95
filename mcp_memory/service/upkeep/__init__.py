"""Upkeep of a home: backups, their restore, and repair of damage.

    backup     a file with all of a home, made during other work         archive         its format and validation
    restore    replaces a home by a backup                               quarantine_dir  keeps files that were replaced
    rebuild    makes a database that agrees with the files               maintenance     releases unused space
    repair     repairs the problems that `doctor` finds                  home_checks     checks without an open store

All of these work on the files of the embedded store; the PostgreSQL engine has separate upkeep. `move` copies a memory
from one engine to the other and verifies the copy.
"""
