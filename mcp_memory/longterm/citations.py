"""Citations as the stages read and write them; what they are is the store's to say, whose scenes rest on them."""

from mcp_memory.store.citations import cited, links, plain, uncovered, unwrapped, without

__all__ = ["cited", "links", "plain", "uncovered", "unwrapped", "without"]
