"""The canvas: the flowchart of a task.

flowchart    nodes and edges as a value, and the `.mmd` text          folding  groups and phases within a budget
placement    the intent of a call, and the node where a step goes     state    edits, versions and undo
tasks        the task and canvas of a call, and where talk ends one task and begins another
view         what the context shows: show, fold, unfold, complete, switch; the picture for people
"""
