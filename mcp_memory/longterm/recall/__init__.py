"""Recall: context for a question or a conversation, within a token budget."""
