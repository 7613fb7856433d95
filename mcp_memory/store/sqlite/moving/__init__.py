"""Rows on their way out of a home (`carrying`) and into another (`arrivals`)."""
