"""Short-term memory: a large tool result kept whole, and what stands for it in the context.

results/   raw results: put away, cut for the search, opened again
synopsis/  what a raw text holds, said without a model; it sees text only
canvas/    the flowchart of a task: drawn, folded, bettered, drawn anew
stages/    what a model may better of records and canvases, in the background
"""
