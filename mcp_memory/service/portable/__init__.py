"""Exports: a memory as one zip of Markdown and JSON lines, which people can read and any other memory can import.

    form      the layout and the page that explains it; rows as lines of JSON and back, and as pages
    writing   the rows of a store → the file      reading   the file → rows, all of it checked first
    bringing  rows → another store or space, each once

The same store gives the same bytes: the file does not say when, where or by which program it was written.
"""
