"""Passwords stated in prose: "my password is hunter22", "the pw for staging: …", "密码是…".

Prose about passwords is more frequent than passwords in prose, so a value counts only if it is not a word: letters
mixed with digits or capitals, letters that spell nothing, a number, or a row of words that is not a sentence. Tool
results are not read this way, because a wrong mask would change evidence for good.
"""

from __future__ import annotations

import re

from mcp_memory.core.secrets.assignments import COVER, DICEWARE, VALUE, Name, is_random_key, strip_sentence_end
from mcp_memory.core.secrets.nearby import (
    ABBREVIATIONS,
    ACCOUNT,
    BRACKETS,
    MARKS,
    OTHER,
    SAID,
    find_nearby,
    is_password,
    is_random,
    is_strong,
)
from mcp_memory.core.secrets.values import (
    any_of,
    is_mixed,
    is_phrase,
    is_placeholder,
    is_word,
    may_be_word,
    may_describe,
    words_of,
)

_IS = any_of("joints of statements")
_FOR = any_of("joints of purposes")
_JOINT = re.compile(
    rf"""(?ix)[\\"'`\]*]{{0,8}}(?:
      (?::|[ ](?:{_IS}))[ \t]{{0,3}}(?:\r?\n[ \t]{{0,8}}){{1,2}}(?=\S{{5,64}}[^\s:,;{{(][ \t]*(?:\n|\Z))
    | [ \t]{{0,3}}(?::|：|=|=>)[ \t]{{0,3}}(?:\*\*)?[ \t]{{0,3}}
    | [ ](?!on[ ]\S{{1,20}}[ ]is[ ])(?:{_IS}):?[ ](?:now[ ]|currently[ ]|still[ ]|jetzt[ ])?
    | [ ]?(?:[是为為はがे이가은는を]|คือ)[ ]?[:：]?[ ]?
    | (?:[ ][\w-]{1, 12})?,?[ ]c['’]est[ ]
    | (?:['’]s|[ ]will[ ]be|[ ](?:from|to)|[ ]هي|[ ]है)[ ]
    | [ ](?:was|is|got)?[ ]?(?:set|changed|reset|updated)[ ](?:from|to)[ ]
    | [ ](?:{_FOR})[ ](?:[\w'’.-]{{1,20}}[ ]){{0,3}}?[\w'’.-]{{1,20}}(?:[ ](?:{_IS})(?:[ ]now)?|[ ]?:)[ ]
    | ,[ ](?:[\w'’-]{{1,20}}[ ]){{0,4}}[\w'’-]{{1,20}},[ ](?:{_IS})[ ]
    )(?P<quote>["'`“„«「『])?"""
)
_BEFORE_BARE = re.compile(
    r"(?i)(?:\b(?:with|using|and|mit|und|avec|et|con|y|e|com|met|en|med|och|og|z|с|и)[ ]"
    r"(?:(?:the|my|dem|le|la|o|a|het)[ ])?|[,/(][ ]?)\Z"
)
_BEFORE_USED = re.compile(
    r"(?i)\b(?:use|using|enter|try|type|with|nimm|benutze|utilise|usa|użyj"
    r"|my|our|mein|unser|mi|mon|minha|мой|наш)[ ](?:(?:the|my|as)[ ])?\Z"
)
_BARE = re.compile(r"[ ](?P<quote>[\"'`“„«「『])?")
"""A value may directly follow its name if an account is given as well: "log in as ann with password …"."""
_TOKEN = re.compile(rf"{VALUE}{{4,128}}")
_PHRASE = re.compile(r"[a-z]{3,12}(?:[ -][a-z]{3,12}){3,32}(?=[ \t]*(?:[.!?;,)\n\"'`”]|$))")
_MINE = any_of("possessives")
_STANDARD = re.compile(r"[A-Z]{2,6}-?\d{1,5}")
_OWNED = re.compile(
    rf"(?i)(?<![^\W_])(?!mit[ ])(?:{any_of('words of possession')})[ ](?:[^\W_][\w'’-]{{0,20}}[ ]){{0,3}}\Z"
)
_IN_BRACKETS = re.compile(
    rf"[ ]?(?P<open>[(\[（])[ ]?(?:(?:(?:it['’]s|{_IS})[ ])|(?:now|currently|still|jetzt)[ ])?(?P<quote>[\"'`“„«])?"
    r"(?P<value>[^\s\"'`<>()\[\]（）”»]{4,128})[\"'`”“»]?[ ]?(?P<close>[)\]）])(?!\()"
)
_AHEAD = re.compile(
    r"(?:^|(?<=[\s\"'`:(]))(?P<value>[!-~]{6,64}?)[\"'`]?"
    r"(?:,| -| –| —| is| as| als| ist| es| est| è| é| como| come| comme)"
    rf"[ ](?:{_MINE})[ ](?:[\w'’-]{{1,20}}[ ]){{0,2}}\Z",
    re.IGNORECASE,
)
_END_OF_CLAUSE = re.compile(
    r"[ \t]*(?:[.,;:!?)\n]|\Z|(?:for|of|to|on|at|für|vom|zum|para|de|del|pour|du|per|di|voor)\b)"
)
_PLAIN_IS = ("is", "ist", "was", "es", "est", "c'est", "c’est", "è", "é")
_CLOSINGS = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_NEW = re.compile(r"\S{0,2} to [\"'`“]?(?P<value>[^\s\"'`”,;.]{6,64})")
_ENDED = re.compile(r"[*_`\"'”»」)]{0,3}[ \t]*(?:[.,;!?)|<\n]|\Z|[^\x00-\x7f])")
_STATED = re.compile(r"(?=[ \t]*(?:[.,;!?)\n]|$|\s(?:and|und|et|y|e)\s))")


def stated_value(text: str, name: Name, *, prose: bool) -> tuple[int, int] | None:
    """Return the span of the value that a sentence gives for a name; None for prose about passwords.

    Without `prose` (results contain mails and notes: "your initial password is …") a copula or a colon must connect
    name and value, and the value must be mixed.
    """
    span = (
        _span_after_joint(text, name)
        or _span_in_brackets(text, name)
        or (find_nearby(text, name) if prose or name.of_password else None)
    )
    span = span or _span_before_name(text, name)
    if span and text.endswith(" from ", 0, span[0]) and (new := _NEW.match(text, span[1])) and is_mixed(new["value"]):
        span = span[0], new.end()  # the old password and the new one
    if span is None or prose:
        return span
    value = text[slice(*span)]
    if COVER in value:
        return span
    if is_strong(value) or (name.of_password and not name.is_short and is_password(value)):
        return span if _has_joint(text, name, span) else None
    return None


def _has_joint(text: str, name: Name, span: tuple[int, int]) -> bool:
    """Return whether "is", a bracket, or a colon before a value that ends its clause connects it with its name.

    A value before its name needs none of these.
    """
    start, end = span
    bracket = _IN_BRACKETS.match(text, name.end)
    if bracket is not None and bracket.start("value") == start:
        return True
    joint = SAID.search(text, max(0, start - 24), start) if start > name.start else None
    if joint is None:
        return start < name.start
    return ":" not in joint[0] or is_strong(text[start:end]) or _ENDED.match(text, end) is not None


def _span_before_name(text: str, name: Name) -> tuple[int, int] | None:
    """Return the span of a value before its name: "it's …, my password", "use … as the password"."""
    if not name.of_password or name.is_short or _END_OF_CLAUSE.match(text, name.end) is None:
        return None
    match = _AHEAD.search(text, max(0, name.start - 120), name.start)
    value = match["value"] if match else ""
    if (
        match is None
        or not (is_mixed(value) or is_phrase(value, 4))
        or is_placeholder(value, name.text, in_code=True)
        or OTHER.search(value)
    ):
        return None
    start, end = match.span("value")
    return (start + (value[0] in "\"'`"), end)


def _span_after_joint(text: str, name: Name) -> tuple[int, int] | None:
    beside_account = _is_beside_account(text, name)
    joint = _JOINT.match(text, name.end) or (_BARE.match(text, name.end) if beside_account else None)
    if joint is None and name.of_password and not name.is_short:
        return _span_directly_after(text, name)
    if joint is None or (name.is_short and not (beside_account or _is_of_account(text, name, joint))):
        return None
    start = joint.end()
    if (quote := joint["quote"]) and name.of_password:
        end = text.find(_CLOSINGS[quote], start, start + 128)
        value = text[start:end]
        if end > 0 and " " in value:
            return (start, end) if is_phrase(value) and not is_placeholder(value) else None
    least = 4 if name.of_password and joint[0].strip() else DICEWARE
    is_short = name.is_short and not beside_account
    if (
        not is_short
        and (phrase := _PHRASE.match(text, start))
        and is_phrase(phrase[0], least, of_key=not name.of_password)
    ):
        return phrase.span()
    token = _TOKEN.match(text, start)
    if token is None:
        return None
    value = strip_sentence_end(token[0])
    if text[token.end() : token.end() + 1] in ("(", "["):
        return None  # a call
    if COVER in value or (
        not is_placeholder(value, name.text, in_code=True) and _is_no_word(value, name, is_short=is_short)
    ):
        return start, start + len(value)
    return None


def _span_in_brackets(text: str, name: Name) -> tuple[int, int] | None:
    """Return the span of a single value in brackets after a name: "my password (…) leaked".

    Brackets also contain remarks, so a word with a number is a value only after a possessive ("my", "our").
    """
    match = _IN_BRACKETS.match(text, name.end)
    if match is None or (match.start("open") == name.end and name.text.isascii() and match["open"] != "（"):
        return None  # a call or an index
    value = match["value"]
    if BRACKETS[match["open"]] != match["close"] or OTHER.search(value) or is_placeholder(value, in_code=True):
        return None
    is_owned = _OWNED.search(text, max(0, name.start - 80), name.start) is not None
    if not name.of_password:
        is_value = is_random_key(name, value)
    elif is_owned:
        is_value = (
            (is_mixed(value) and not _STANDARD.fullmatch(value))
            or is_phrase(value, 4)
            or (value.isdigit() and len(value) >= 6)
        )
    else:
        is_value = len(value) >= 8 and is_random(value)
    return match.span("value") if is_value or COVER in value else None


def _span_directly_after(text: str, name: Name) -> tuple[int, int] | None:
    """Return the span of a mixed value directly after a name: "use password … for the staging box"."""
    bare = _BARE.match(text, name.end) if _BEFORE_USED.search(text, max(0, name.start - 24), name.start) else None
    token = _TOKEN.match(text, bare.end()) if bare else None
    value = strip_sentence_end(token[0]) if token else ""
    if token is None or not (is_password(value) and is_mixed(value)) or is_placeholder(value, name.text, in_code=True):
        return None
    return token.start(), token.start() + len(value)


def _is_beside_account(text: str, name: Name) -> bool:
    """Return whether a name follows an account, with a connecting word or mark."""
    return (
        name.of_password
        and name.text.lower() != "pass"
        and _BEFORE_BARE.search(text, max(0, name.start - 20), name.start) is not None
        and ACCOUNT.search(text, max(0, name.start - 80), name.start) is not None
    )


def _is_of_account(text: str, name: Name, joint: re.Match[str]) -> bool:
    """Return whether `pass:` or `pw:` introduces a password and not, say, a train pass or the result of a test."""
    if name.text in ABBREVIATIONS and joint[0].rstrip().endswith(_PLAIN_IS):
        return True
    if not joint[0].strip().startswith((":", "=", "：")) or name.text in ("PASS", "PSW", "MDP"):
        return False
    return name.text.lower() != "pass" or ACCOUNT.search(text, max(0, name.start - 80), name.start) is not None


def _is_no_word(value: str, name: Name, *, is_short: bool) -> bool:
    if not name.of_password:
        return is_random_key(name, value) or is_phrase(value, DICEWARE, of_key=True)
    if is_mixed(value):
        return True
    if is_short:
        return False
    if value.isdigit():
        return len(value) >= 6
    parts = [part for part in words_of(value) if not part.isdigit()]
    return (
        len(value) >= 6
        and value.isascii()
        and bool(parts)
        and not any(c in value for c in "/@")
        and (is_phrase(value, 4) or _is_not_spelled_like_words(value, parts))
    )


def _is_not_spelled_like_words(value: str, parts: list[str]) -> bool:
    """Return whether letters are unlike any word, or capitals occur inside a word."""
    if value.isalpha() and (value.islower() or value.istitle() or value.isupper()):
        return not (is_word(value) or may_be_word(value) or may_describe(value))
    return not all(is_word(part) for part in parts if len(part) > 1)


def states_password(text: str, name: Name) -> bool:
    """Return whether a statement gives a one-word password at the end of a clause: "the wifi password is sunshine".

    Used for statements to be remembered, where a false alarm costs a question and a miss is shown for years. It knows
    only English adjectives; in other languages a word after "is" is kept.
    """
    joint = _JOINT.match(text, name.end) if name.of_password and not name.is_short else None
    token = _TOKEN.match(text, joint.end()) if joint and " is " in joint[0] else None
    if token is None:
        return False
    value = token[0].rstrip(MARKS)
    return (
        bool(value)
        and _STATED.match(text, token.start() + len(value)) is not None
        and not is_placeholder(value, name.text, in_code=True)
        and not may_describe(value)
    )
