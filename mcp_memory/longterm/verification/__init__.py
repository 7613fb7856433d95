"""Checks a claim against the words it rests on, and whose words these are."""
