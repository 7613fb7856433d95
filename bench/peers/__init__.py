"""This memory beside other memory servers, in one run: `python -m bench.peers` (Linux, with npm and PyPI)."""
