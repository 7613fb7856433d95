"""Words that make a line worth reading: of trouble, of warnings, and of totals."""

from __future__ import annotations

import re

TROUBLE = re.compile(
    r"\b(?:errors?|fail(?:ed|ure|ures|ing|s)?|fatal|panic|exception|traceback|denied|refused|cannot|could not|not found"
    r"|no such|invalid|unable|critical|killed|timed? ?out|segfault|segmentation|oops|bug|nan|not saved|crash\w*|abort\w*"
    r"|unhealthy|back-?off|blocker|severe|vulnerab\w+)\b|\b[A-Z]\w*(?:Error|Exception|Failed|Failure|BackOff)\b|\bFailed[A-Z]\w+",
    re.I,
)
WARNING = re.compile(r"\b(?:warn(?:ing|ings)?|deprecated|obsolete|skipped|retry\w*|duplicate\w*|unlike)\b", re.I)
TOTAL = re.compile(
    r"\b(?:total\w*|summary|pass(?:ed|es)|found|finished|results?|status|exit(?:ed)?|succe\w+|complete\w*|done|built|took"
    r"|tests?(?: run)?|transmitted|received|loss|average|version|count|failures?|errors?|pending|duration|licen[sc]e|state)\b|HTTP/[\d.]+ \d{3}",
    re.I,
)
