"""The programs that an MCP server is for, and how it gets into their configuration.

places      where each keeps it, on every system       command    how this installation is started
entries     what stands in it: a server, its hooks     json_text, json_change, toml_text   texts that keep their form
parts       which of it belongs into which file
plan        what would change, and the way back        files      read with care, written atomically, backed up
checking    the server started as the client would
"""
