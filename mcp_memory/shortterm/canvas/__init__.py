"""The canvas: the flowchart of a task.

flowchart    nodes and edges as a value, and the `.mmd` text
placement    the intent of a call, and the node for its step
tasks        the task and canvas of a call, and where one task ends and another begins
folding      groups and phases within a budget
state        edits, versions and undo
view         views for the context: show, fold, unfold, complete, switch; the picture for people
forgetting   removes and restores texts of forgotten results, turns and tasks
"""
