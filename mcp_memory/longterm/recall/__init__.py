"""What a context needs to know, within a budget, and nothing where nothing is relevant."""
