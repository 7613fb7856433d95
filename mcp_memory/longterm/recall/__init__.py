"""Recall: context for a question, in two blocks, so that prompt caches stay valid; automatic recall before a prompt.

blocks         the API: both blocks within a budget, automatic recall, explained recall
opening        the stable block at the start of a session without a persona page
dynamic_block  the lines that answer a question     overview  lines for a question about many things
rules          the rules that govern a prompt       promises  open promises that are due or called for
lines          a row as a line                      layout    the lines that fit, in order, under headings
"""
