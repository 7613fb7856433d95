"""MCP clients, and how this server gets into their configuration.

description       what the files in descriptions/ say about each client, one file a client
programs          where each client keeps its configuration; our entry and hooks in a document; install links
hook_entries      the hooks to install in a configuration
settings          settings inside a configuration, added and removed as trees of members
json_text         JSON, also with comments, edited in place
toml_text         TOML, edited in place
yaml_text         YAML, edited in place
plan              changes of configuration files: planned, shown as a diff, written with a backup
plugins           files for clients that run plugins instead of commands, in a folder for each
effects           what the client will do then, in sentences
reference_memory  the files of the reference memory server, where a client starts it
server_check      starts the server as the client would, and completes the handshake
"""
