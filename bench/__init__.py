"""Benchmarks, each a command: `python -m bench.retrieval`, `bench.latency`, `bench.embedders`, `bench.ui`.

Every figure is printed with a floor from the same run: a baseline so simple that anyone could have it without this
package. Without it, a figure says more about the machine or the data than about the package.
"""
