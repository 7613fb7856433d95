"""Memory for agents over MCP: a long-term pyramid and a short-term canvas over one local store."""

__version__ = "0.1.0"
