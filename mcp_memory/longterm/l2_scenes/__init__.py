"""L2: pages that each tell one theme of a life."""
