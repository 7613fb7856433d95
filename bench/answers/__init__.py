"""Measures whether a reader answers questions right from what each system brings: `python -m bench.answers --help`."""
