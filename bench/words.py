"""English function words, most frequent first: stop words of a floor, and part of the invented corpus."""

from __future__ import annotations

_WORDS = """
the to and of a i in is it that you for was on with my be have this are so at but not we do as they what can me just
if or about your all from there an when he she how out up will some them more then had has no by which were been did
who their our her his its than now too very any only where into over after before here should why us these those
other am down off again while being does doing having both each few most such own same once under until against
between through during above below further nor him himself herself itself themselves myself yourself ourselves yours
ours hers theirs whom whose s t d m
"""
FUNCTION_WORDS = tuple(_WORDS.split())
