"""Rows found by their words, their meaning and what was said around them, ranked, and shown in pages."""
