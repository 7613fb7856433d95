"""Measures whether a reader answers correctly from the text of each system: `python -m bench.answers --help`."""
