"""Compresses lists of messages, for programs that own the context of their model.

compress       one compression of a list
message_lists  a list in a neutral form, from and to OpenAI and Anthropic
plan           rules, and which edits to make now
storing        stores everything that is removed, and makes the replacements
"""
