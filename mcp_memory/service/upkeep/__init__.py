"""Upkeep of a home: backups, their restore, and repair of damage.

    backup     one file with all of a home, made while others write      archive         its format, read with suspicion
    restore    a home made from a backup                                 quarantine_dir  keeps files that were replaced
    rebuild    a new database that agrees with the files, and the proof  maintenance     releases unused space
    repair     repairs the problems that `doctor` finds                  home_checks     checks without an open store

All of this is about the files of the embedded store; another engine has its own upkeep. `move` is about both: a memory
copied from one engine to the other, and proven.
"""
