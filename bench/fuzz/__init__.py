"""Fuzzes readers and tools: `python -m bench.fuzz parsers|tools [--minutes N] [--seed N]`

    material   texts, JSON and bytes that often break readers, as hypothesis strategies
    readers    targets for the package's own formats, user text and model replies
    imports    targets that read files of other programs
    trust      targets for exports, backups and notes, secrets and attacks, settings
    hunting    runs a target until time is over; reports each finding once, minimized
    guided     the same with atheris, which is guided by branch coverage
    calls      valid and hostile calls of every tool, drawn from its schema
    serving    servers as processes      oracle  checks of answers, logs and homes
    protocol   those calls over the real protocol: both transports, both generations

A finding is: an error of a foreign type, an endless computation, a violated invariant, a server that dies, reports
"internal error" or violates its own schema, or a store with problems that `doctor` reports. Each is printed once, with
the smallest input found. The exit code tells whether there were findings.

Inputs of fixed findings are kept under `fixtures/fuzz/`, one file each, and the tests read them again.
"""
