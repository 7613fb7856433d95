"""Compares this memory with other memory servers in one run: `python -m bench.peers` (Linux, with npm and PyPI)."""
