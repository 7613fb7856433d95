"""Recall: context for a question, in two blocks, so that prompt caches stay valid; automatic recall before a prompt.

blocks     both blocks within a budget, and automatic recall
dynamic    the lines that answer a question                      lines      a row as a line
"""
