"""The command line: the API of `Memory` for people and shell scripts.

    main                      the program and its groups of commands
    importing, import_files   import
    installing                install, uninstall
    serving                   serve, ui, demo, wrap, hook
    search                    recall, search, why
    show                      show
    spaces                    space
    changing                  remember, forget, purge, retention, review
    distilling                distill, flush, pause, resume, verify, scene, persona, compress; cost estimates
    status, doctor            status, doctor
    administration            backup, restore, rebuild, compact, migrate, move, export, token
    evaluation                bench
    base, terminal            options, errors and output that all commands share

Nearly every command that reads takes `--json`. Importing `main` loads click and little else, because a client that
starts `mcp-memory serve` waits for it.
"""

import sys
import time

try:
    time.time()
except OverflowError:  # before `logging`, whose import would end in a traceback
    sys.exit("The clock of this computer is past the year 2262, which Python cannot represent. Set it and start again.")
