"""What is measured, each a command: `python -m bench.retrieval`, `bench.latency`, `bench.embedders`,
`bench.ui`.

Every figure of ours stands beside a floor measured in the same run: something so plain that anybody could
have it without this package. A figure without its floor says more about the machine or the data than about us.
"""
