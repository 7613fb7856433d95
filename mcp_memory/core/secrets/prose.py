"""Passwords that people tell: "my password is hunter22", "the pw for staging: …", "密码是…".

Talk about passwords is more frequent than passwords in talk, so a value counts only where it is no word: letters mixed
with digits or capitals, letters that spell nothing, a number, or words in a row that are no sentence. Tool results are
not read so: there a wrong mask would change evidence for good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_memory.core.secrets.assignments import COVER, DICEWARE, VALUE, Name, is_drawn_for, without_sentence
from mcp_memory.core.secrets.values import (
    any_of,
    is_drawn,
    is_mixed,
    is_phrase,
    is_word,
    may_be_word,
    may_describe,
    reads_as_words,
    stands_for_another,
    word_list,
    words_of,
)

_IS = any_of("joints of statements")
_IT_IS = r"(?i:it['’]s|it is|es ist|es lautet|c['’]est|es|è|é|это|це|det är|det er|het is|to)[ ]"
_REST = r"(?:[^\n.!?。！？؟]|[.!?](?=\S))"
_SENTENCE = re.compile(rf"{_REST}{{0,100}}(?:(?:[ ]?[?？؟][ ]{{0,2}}|[.!][ ](?={_IT_IS})){_REST}{{0,60}})?")
"""The rest of a sentence. The answer to a question belongs to it: "The password? It's …"."""
_START_OF_SENTENCE = re.compile(r"[\n。！？؟]|[.!?][ ]")
_NEAR = re.compile(r"(?<![^\s\"'`:：(（=「『“„«/\u0e00-\u0eff\u2e80-\ufffd])[A-Za-z0-9][!#-~]{7,255}")
_SYMBOLS = re.compile(r"[!$%^](?!.*[./:])|(?=.*[a-z])(?=.*[A-Z]).*[#*?~&+]")
"""What passwords have between letters. Patterns of files and of `sed` have some of these, between small letters."""
_OF_NAMES = re.compile(r"\d\.\d+[+*]?$|#\d+$|^#|[=(){}\[\]\\/]|^\d+%|%[0-9A-F]{2}|^[\w.-]+@")
"""In versions, numbers of issues, options, shares, parts of URLs and addresses."""
_DESCRIBED = re.compile(rf"(?i)s?[ _-](?:{any_of('after a name of something else')})")
_GOES_ON = re.compile(r"[ ]?(?![A-ZÄÖÜ])[^\W\d]")
_VERSION = re.compile(r"[A-Za-z]{3,}\d{1,4}(?:\.\d{1,4})+[+*]?")
_ASKED = re.compile(r"[ ]?[?？؟][ ]{1,2}")
_CHANGE = re.compile(rf"(?i){any_of('words of change')}")
_CHANGED_TO = re.compile(
    rf"(?i)(?:(?<![^\W_])(?:{any_of('joints of changes')})[ ][\"'`“„«*]{{0,2}}|[成为為にをへ로으]了?\s?|เป็น\s?)\Z"
)
_OTHER = re.compile(
    r"(?i)://|^[a-f0-9]{7,40}$|^[a-f0-9]{8}-|\.(?:com|org|net|io|py|js|ts|md|txt|html|json|ya?ml)\b|^v?\d+\.\d|[\w.-]@[\w-]+\.[a-z]{2}|^@|@v?\d|@[\w-]+/"
)
_FOR = any_of("joints of purposes")
_JOINT = re.compile(
    rf"""(?ix)[\\"'`\]*]{{0,8}}(?:
      :[ \t]{{0,3}}(?:\r?\n[ \t]{{0,8}}){{1,2}}(?=\S{{5,64}}[^\s:,;{{(][ \t]*(?:\n|\Z))
    | [ \t]{{0,3}}(?::|：|=|=>)[ \t]{{0,3}}(?:\*\*)?[ \t]{{0,3}}
    | [ ](?:{_IS}):?[ ](?:now[ ]|currently[ ]|still[ ]|jetzt[ ])?
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
    r"(?:(?:the|my|dem|le|la|o|a|het)[ ])?|[,/][ ]?)\Z"
)
_BEFORE_USED = re.compile(
    r"(?i)\b(?:use|using|enter|try|type|with|nimm|benutze|utilise|usa|użyj"
    r"|my|our|mein|unser|mi|mon|minha|мой|наш)[ ](?:(?:the|my|as)[ ])?\Z"
)
_BARE = re.compile(r"[ ](?P<quote>[\"'`“„«「『])?")
"""A value may follow its name at once where an account is told as well: "log in as ann with password …"."""
_TOKEN = re.compile(rf"{VALUE}{{4,128}}")
_PHRASE = re.compile(r"[a-z]{3,12}(?:[ -][a-z]{3,12}){3,32}(?=[ \t]*(?:[.!?;,)\n\"'`”]|$))")
_MARKS = ".:!?*_,"
_MINE = any_of("possessives")
_AHEAD = re.compile(
    r"(?:^|(?<=[\s\"'`:(]))(?P<value>[!-~]{6,64}?)[\"'`]?"
    r"(?:,| -| –| —| is| as| als| ist| es| est| è| é| como| come| comme)"
    rf"[ ](?:{_MINE})[ ](?:[\w'’-]{{1,20}}[ ]){{0,2}}\Z",
    re.IGNORECASE,
)
_END_OF_CLAUSE = re.compile(
    r"[ \t]*(?:[.,;:!?)\n]|\Z|(?:for|of|to|on|at|für|vom|zum|para|de|del|pour|du|per|di|voor)\b)"
)
_OF_PAIRS = word_list("logins")
_PAIR = re.compile(
    r"""(?ix)(?:\b(?:zugangsdaten|zugang|anmeldedaten|login(?:daten|[ ]details|[ ]data)?|log(?:ged)?[ -]in|sign(?:ed)?[ -]in|credentials?|creds
      |identifiants(?:[ ]de[ ]connexion)?|credenciales|credenciais|credenziali|inloggegevens|dane[ ]logowania
      |přihlašovací[ ]údaje|уч[её]тные[ ]данные|логин|user(?:name)?[ ]?/[ ]?pass(?:word|wort)?)
      |账号(?:密码)?|帳號|ログイン(?:情報)?|계정)
    (?:[ ][\w'’.-]{1,20}){0,4}?(?:[ ]?[:：]|(?P<said>[ ](?:with|as|mit|als|avec|con|com|met|are|sind|sont|son|são|sono|zijn|är|er|to|је|su|vagyok)))[ ]{0,3}
    (?P<user>[\w.@+-]{1,64})(?P<joint>[ ][/|][ ]|[ ]?/[ ]?(?=\S)|,[ ]|:)(?P<value>[!-~]{6,64})"""
)
_KEY_OF_NETWORK = re.compile(
    rf"(?i)(?<![^\W_])(?:{any_of('networks')})(?![^\W_])[^\n.?]{{0,60}}?(?<![^\W_])(?:{any_of('keys of networks')})"
    rf"(?:[ ]?[:=：]|[ ](?:{_IS}))?[ ][\"'`“„«]?(?P<value>[!-~]{{8,63}})"
)
_ACCOUNT = re.compile(r"(?i)\b(?:user(?:name)?|login|log in|account|e-?mail|ssid|wi-?fi|network|host|ssh|admin|id)\b|@")
_WORD_AND_NUMBER = re.compile(r"(?=.*[A-Z])(?:[A-Za-zÄÖÜ][a-zäöüß]{2,14}[!#-/:-@^_~]?){1,3}\d{2,6}\W?")
_PLAIN_IS = ("is", "ist", "was", "es", "est", "è", "é")
_CLOSINGS = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_SAID = re.compile(
    rf"(?i)(?:[:：=]|[ ](?:{_IS})|[是为為はがえ이가은는を]|คือ|['’](?:s|est)|[ ]هي|[ ]है)"
    r"(?:[ ](?:now|currently|still|jetzt))?[ \t]{0,3}[\"'`“„«「『*(]{0,2}\Z"
    r"|[ ]from[ ]\S{1,64}[ ]to[ ][\"'`“*]{0,2}\Z"
)
"""What says that a name has the value behind it."""
_NEW = re.compile(r"\S{0,2} to [\"'`“]?(?P<value>[^\s\"'`”,;.]{6,64})")
_ENDED = re.compile(r"[*_`\"'”»」)]{0,3}[ \t]*(?:[.,;!?)|<\n]|\Z|[^\x00-\x7f])")
_WITHOUT_JOINT = word_list("names of passwords without a joint")
_LONGEST_BEFORE, _LEAST_OF_PASSWORD, _LEAST_OF_KEY = 80, 8, 16
_SHARE_OF_WORDS = 1 / 3
"""Of the letters of a name; one drawn value in twenty-five has as many in words of three letters or more."""
_STATED = re.compile(r"(?=[ \t]*(?:[.,;!?)\n]|$|\s(?:and|und|et|y|e)\s))")


def told(text: str, name: Name, *, prose: bool) -> tuple[int, int] | None:
    """Return the span of a value that a sentence gives for a name; None for talk about passwords.

    Without `prose` (mails and notes are results, too: "your initial password is …") the name must be said to be the
    value, or a colon stand between, and the value must be mixed.
    """
    span = _direct(text, name) or (_near(text, name) if prose or name.of_password else None)
    span = span or _ahead(text, name)
    if span and text.endswith(" from ", 0, span[0]) and (new := _NEW.match(text, span[1])) and is_mixed(new["value"]):
        span = span[0], new.end()  # the old password and the new one
    if span is None or prose:
        return span
    value = text[slice(*span)]
    if COVER in value:
        return span
    if _is_strong(value) or (name.of_password and not name.is_short and _is_password(value)):
        return span if _is_said(text, name, span) else None
    return None


def _is_said(text: str, name: Name, span: tuple[int, int]) -> bool:
    """Tell whether a name is said to be a value: "is" stands between, or a colon and nothing follows in the clause."""
    start, end = span
    said = _SAID.search(text, max(0, start - 24), start) if start > name.start else None
    if said is None:
        return start < name.start
    return ":" not in said[0] or _is_strong(text[start:end]) or _ENDED.match(text, end) is not None


def _is_strong(value: str) -> bool:
    return sum(c.isdigit() for c in value) >= 2 and is_drawn(value, 10) and not reads_as_words(value)


def _is_password(value: str) -> bool:
    """Tell whether a value mixes letters with digits as no name of code does, or is a phrase."""
    if _OTHER.search(value):
        return False
    is_of_person = _WORD_AND_NUMBER.fullmatch(value) is not None or not reads_as_words(value)
    return (len(value) >= 8 and is_mixed(value) and is_of_person) or is_phrase(value, 4)


def _near(text: str, name: Name) -> tuple[int, int] | None:
    """Return a value near a name, in its sentence or in the answer to it, that is too mixed for anything else."""
    if name.is_short and not _ACCOUNT.search(text, max(0, name.start - 80), name.start):
        return None
    sentence = _SENTENCE.match(text, name.end)
    end = sentence.end() if sentence else name.end
    if text[name.end : name.end + 1] == "(" or "•" in text[name.end : end]:
        return None  # a function; or it was given, and is masked
    for found, value in _tokens(text, name.end, end):
        is_given = _is_given_by_sentence(text, name, found, end)
        if _is_secret_of(value, name, text, is_given=is_given):
            return found, found + len(value)
    return _before(text, name)


def _before(text: str, name: Name) -> tuple[int, int] | None:
    """Return a random value before a name in its sentence: "I set … as the new password"."""
    if not name.of_password or name.is_short:
        return None
    start = max(0, name.start - _LONGEST_BEFORE)
    for end in _START_OF_SENTENCE.finditer(text, start, name.start):
        start = end.end()
    for found, value in _tokens(text, start, name.start):
        if _is_secret_of(value, name, text, is_given=False):
            return found, found + len(value)
    return None


def _tokens(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the tokens of printable characters that begin between two places, without the marks of the sentence."""
    for begun in _NEAR.finditer(text, start, end):
        found = _NEAR.match(text, begun.start()) or begun  # to its own end
        before = text[found.start() - 1]
        value = found[0].split(before)[0] if before in "'`" else found[0]
        bare = value.rstrip(_MARKS)
        if value[len(bare) :] in ("!", "?") and _GOES_ON.match(text, found.start() + len(value)):
            bare = value  # no mark of the sentence
        yield found.start(), bare


def _is_secret_of(value: str, name: Name, text: str, *, is_given: bool) -> bool:
    """Tell whether a value near a name is its secret; `is_given`: the sentence says so."""
    if _OTHER.search(value) or _VERSION.fullmatch(value) or stands_for_another(value, in_code=True):
        return False
    if not name.of_password:
        return len(value) >= _LEAST_OF_KEY and _is_strong(value) and not _is_named(value)
    is_lower = value.isalnum() and value.islower()  # argon2id
    is_described = _DESCRIBED.match(text, name.end) is not None  # "password column is …"
    if is_given and not is_described and (_is_strong(value) or (not is_lower and _is_password(value))):
        return True
    return len(value) >= _LEAST_OF_PASSWORD and _is_random(value)


def _is_random(value: str) -> bool:
    """Tell whether a value mixes kinds of characters as no word, identifier, part number, version or digest does."""
    if _OF_NAMES.search(value) or not is_mixed(value):
        return False
    if _SYMBOLS.search(value):
        return True
    if reads_as_words(value) or value.isupper() or _WORD_AND_NUMBER.fullmatch(value) or _is_named(value):
        return False
    return not value.islower() or _is_strong(value)


def _is_named(value: str) -> bool:
    """Tell whether a good part of the letters are words, as in the name of a thing."""
    parts = [part for part in words_of(value) if not part.isdigit()]
    known = sum(len(part) for part in parts if len(part) > 2 and is_word(part))
    return known >= _SHARE_OF_WORDS * sum(map(len, parts))


def _is_given_by_sentence(text: str, name: Name, start: int, end: int) -> bool:
    """Tell whether the words before a value say that it is one: "is", "from … to", "changed … to".

    Some languages need no word: in Turkish and Hungarian the value may follow its name at once.
    """
    if start == name.end + 1:
        return not name.text.isascii() or name.text.lower().startswith(_WITHOUT_JOINT)
    if _ASKED.fullmatch(text, name.end, start):
        return True
    return _SAID.search(text, max(name.end, start - 80), start) is not None or (
        _CHANGED_TO.search(text, max(name.end, start - 16), start) is not None
        and _CHANGE.search(text, max(0, name.start - 60), end) is not None
    )


def _ahead(text: str, name: Name) -> tuple[int, int] | None:
    """Return a value that stands before its name: "it's …, my password", "use … as the password"."""
    if not name.of_password or name.is_short or _END_OF_CLAUSE.match(text, name.end) is None:
        return None
    found = _AHEAD.search(text, max(0, name.start - 120), name.start)
    value = found["value"] if found else ""
    if (
        found is None
        or not (is_mixed(value) or is_phrase(value, 4))
        or stands_for_another(value, name.text, in_code=True)
        or _OTHER.search(value)
    ):
        return None
    start, end = found.span("value")
    return (start + (value[0] in "\"'`"), end)


def pairs(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield where a password is behind a login ("Zugangsdaten: otto / …") or a key behind a network."""
    if any(word in small for word in word_list("networks")):
        for found in _KEY_OF_NETWORK.finditer(text):
            value = without_sentence(found["value"])
            if not stands_for_another(value) and not _OTHER.search(value) and (_is_random(value) or _is_strong(value)):
                yield found.start("value"), found.start("value") + len(value)
    if not any(word in small for word in _OF_PAIRS):
        return
    for found in _PAIR.finditer(text):
        value = without_sentence(found["value"])
        is_named = reads_as_words(value) and not _SYMBOLS.search(value)
        weak = found["joint"] == ":" and is_named
        if found["said"] or found["joint"] == ", ":  # "log in with Google / …" names two services
            weak |= not (_is_random(value) or (_is_password(value) and not found["user"][0].isupper()))
        if is_mixed(value) and not (stands_for_another(value) or _OTHER.search(value) or weak):
            yield found.start("value"), found.start("value") + len(value)


def _direct(text: str, name: Name) -> tuple[int, int] | None:
    beside_account = _is_beside_account(text, name)
    joint = _JOINT.match(text, name.end) or (_BARE.match(text, name.end) if beside_account else None)
    if joint is None and name.of_password and not name.is_short:
        return _used(text, name)
    if joint is None or (name.is_short and not (beside_account or _is_of_account(text, name, joint))):
        return None
    start = joint.end()
    if (quote := joint["quote"]) and name.of_password:
        end = text.find(_CLOSINGS[quote], start, start + 128)
        value = text[start:end]
        if end > 0 and " " in value:
            return (start, end) if is_phrase(value) and not stands_for_another(value) else None
    least = 4 if name.of_password and joint[0].strip() else DICEWARE
    is_short = name.is_short and not beside_account
    if (
        not is_short
        and (phrase := _PHRASE.match(text, start))
        and is_phrase(phrase[0], least, of_key=not name.of_password)
    ):
        return phrase.span()
    found = _TOKEN.match(text, start)
    if found is None:
        return None
    value = without_sentence(found[0])
    if text[found.end() : found.end() + 1] in ("(", "["):
        return None  # a call
    if COVER in value or (
        not stands_for_another(value, name.text, in_code=True) and _is_no_word(value, name, is_short=is_short)
    ):
        return start, start + len(value)
    return None


def _used(text: str, name: Name) -> tuple[int, int] | None:
    """Return a mixed value at once behind a name: "use password … for the staging box"."""
    bare = _BARE.match(text, name.end) if _BEFORE_USED.search(text, max(0, name.start - 24), name.start) else None
    found = _TOKEN.match(text, bare.end()) if bare else None
    value = without_sentence(found[0]) if found else ""
    if (
        found is None
        or not (_is_password(value) and is_mixed(value))
        or stands_for_another(value, name.text, in_code=True)
    ):
        return None
    return found.start(), found.start() + len(value)


def _is_beside_account(text: str, name: Name) -> bool:
    """Tell whether a name stands behind an account and a word or mark that joins the two."""
    return (
        name.of_password
        and name.text.lower() != "pass"
        and _BEFORE_BARE.search(text, max(0, name.start - 20), name.start) is not None
        and _ACCOUNT.search(text, max(0, name.start - 80), name.start) is not None
    )


def _is_of_account(text: str, name: Name, joint: re.Match[str]) -> bool:
    """Tell whether `pass:` or `pw:` is a password's: a pass may be for a train or over a mountain, or a test's."""
    if name.text.lower() == "pw" and f"{joint[0].strip()}" in _PLAIN_IS:
        return True
    if not joint[0].strip().startswith((":", "=", "：")) or name.text == "PASS":
        return False
    return name.text.lower() != "pass" or _ACCOUNT.search(text, max(0, name.start - 80), name.start) is not None


def _is_no_word(value: str, name: Name, *, is_short: bool) -> bool:
    if not name.of_password:
        return is_drawn_for(name, value) or is_phrase(value, DICEWARE, of_key=True)
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
        and (is_phrase(value, 4) or _is_spelled_by_nobody(value, parts))
    )


def _is_spelled_by_nobody(value: str, parts: list[str]) -> bool:
    """Tell whether letters are in no order that words have, or capitals stand inside a word."""
    if value.isalpha() and (value.islower() or value.istitle() or value.isupper()):
        return not (is_word(value) or may_be_word(value) or may_describe(value))
    return not all(is_word(part) for part in parts if len(part) > 1)


def is_stated(text: str, name: Name) -> bool:
    """Tell whether a statement gives a one-word password at the end of a clause: "the wifi password is sunshine".

    Used for statements to be remembered, where a false alarm costs a question and a miss is shown for years. It knows
    only English adjectives; in other languages a word after "is" stays.
    """
    joint = _JOINT.match(text, name.end) if name.of_password and not name.is_short else None
    found = _TOKEN.match(text, joint.end()) if joint and " is " in joint[0] else None
    if found is None:
        return False
    value = found[0].rstrip(_MARKS)
    return (
        bool(value)
        and _STATED.match(text, found.start() + len(value)) is not None
        and not stands_for_another(value, name.text, in_code=True)
        and not may_describe(value)
    )
