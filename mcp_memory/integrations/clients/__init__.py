"""MCP clients and how this server gets into their configuration.

programs       where each client keeps its configuration, the command that starts this installation, and our entry and
               hooks in a client's document
config_text    JSON, JSON with comments and TOML, edited in place
config_file    reads and atomically replaces a configuration file, with a backup
published      install links and badges, the commands of the plugin
plan           the changes of an installation or removal, shown as a diff and carried out
server_check   starts the server as the client would and completes the handshake
"""
