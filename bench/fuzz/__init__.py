"""What breaks readers and tools: `python -m bench.fuzz parsers|tools [--minutes N] [--seed N]`

    material   texts, JSON and bytes that have broken readers before, as hypothesis strategies
    readers    the readers of this package, each a target: bytes in, nothing out, what must hold inside
    imports    those that read files which other programs wrote
    trust      those of exports, backups and notes, of secrets and attacks, of settings
    hunting    a target run again and again until time is over; what is found once, made small
    guided     the same with atheris, which is led by the branches that an input reaches
    calls      calls of every tool, drawn from its own schema, and hostile ones
    serving    servers as processes      oracle  what their answers, logs and homes must be like
    protocol   those calls over the real protocol: both transports, both generations

A finding is any of: an error that is not one of ours, work without end, a law that does not hold, a server that
dies, says "internal error", answers against its own schema or leaves a store that `doctor` complains about. Each is
printed once, with the smallest input that was found for it. The exit code says whether there were any.

What was found and mended is kept under `fixtures/fuzz/`, one file an input, and read again by the tests.
"""
