"""The memory of a server, for hooks, commands, `wrap` and `import` on another machine.

    verbs          what such a program may ask a server for, with the right that it needs
    connection     requests over HTTP: one for each verb
    memory         the verbs as those of an open `Memory`
    local_records  what this machine notes: how far it has read its own logs and files

A verb is a tool of the server's MCP endpoint that is not listed, so that models are not offered it: the same address,
token, spaces, limits and logs apply as to every tool.
"""
