"""What a context needs to know, within a budget."""
