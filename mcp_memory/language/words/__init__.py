"""Words of any language, made comparable: the index terms of documents and queries, and folding."""

from mcp_memory.language.words.folding import fold
from mcp_memory.language.words.terms import TERMS_VERSION, base_terms, index_terms, query_terms

__all__ = ["TERMS_VERSION", "base_terms", "fold", "index_terms", "query_terms"]
