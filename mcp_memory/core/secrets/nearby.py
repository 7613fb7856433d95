"""Passwords near their names: "the password? It's …", "ich habe das Passwort auf … geändert", "login: otto / …".

In a sentence with a word for a password, and in the answer to such a question, the first token that looks random is the
password, whatever words are between. A token looks random if it mixes letters, digits and symbols in a way that words,
identifiers, part numbers, versions, digests, paths and addresses do not. A word with a number (`Walnut48`) is the
password only after "is", "changed … to" or their equivalents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_memory.core.secrets.assignments import Name, strip_sentence_end
from mcp_memory.core.secrets.places import Places
from mcp_memory.core.secrets.values import (
    any_of,
    is_mixed,
    is_phrase,
    is_placeholder,
    is_random_token,
    is_word,
    reads_as_words,
    word_list,
    words_of,
)

_IS = any_of("joints of statements")
_NEW_ONE = (
    r"(?:(?:the|my|das|mein|le|la|el|o|a|il|quell[ao]|de|het|det|den)[ ])?"
    r"(?:new|neue[sn]?|nouveau|nouvelle|nuev[ao]|nov[ao]|nuov[ao]|nieuwe|nya|nye|nowe|новый)"
    rf"(?:[ ](?:one|password|passwort|ww))?(?:[ ](?:{_IS})|:|,?[ ]c['’]est)"
)
_IT_IS = (
    r"(?i:(?:now )?it['’]s(?: now)?|it is(?: now)?|es ist|es lautet|c['’]est|es|è|é|это|це|det är|det er|het is|to"
    rf"|{_NEW_ONE})[ ]"
)
_ANSWER = r"[ \t]*\r?\n[ \t]{0,8}(?:(?:a|answer|antwort|réponse|r|respuesta|risposta|ответ|答)[ ]?[:：.][ ])?"
"""The beginning of an answer on the line below its question."""
_REST = r"(?:[^\n.!?。！？؟]|[.!?](?=\S))"
_SENTENCE = re.compile(
    rf"(?i){_REST}{{0,100}}(?:(?:[ ]?[?？؟](?:{_ANSWER}|[ ]{{0,2}})|[.!][ ](?={_IT_IS})){_REST}{{0,60}})?"
)
"""The rest of a sentence. The answer to a question belongs to it: "The password? It's …"."""
_START_OF_SENTENCE = re.compile(r"[\n。！？؟]|[.!?][ ]")
_NEAR = re.compile(r"(?<![^\s\"'`:：(（\[=「『“„«/\u0e00-\u0eff\u2e80-\ufffd])[A-Za-z0-9][!#-~]{7,255}")
_OF_NAMES = re.compile(r"\d\.\d+[+*]?$|#\d+$|^#|[=(){}\[\]\\/]|^\d+%|%[0-9A-F]{2}|^[\w.-]+@")
"""Marks of versions, numbers of issues, options, percentages, URLs and addresses."""
_DESCRIBED = re.compile(rf"(?i)s?[ _-](?:{any_of('after a name of something else')})")
_GOES_ON = re.compile(r"[ ]?(?![A-ZÄÖÜ])[^\W\d]")
_VERSION = re.compile(r"[A-Za-z]{3,}\d{1,4}(?:\.\d{1,4})+[+*]?")
_ASKED = re.compile(rf"(?i)[ ]?[?？؟](?:{_ANSWER}|[ ]{{1,2}})")
_CHANGE = re.compile(rf"(?i){any_of('words of change')}")
_CHANGED_TO = re.compile(
    rf"(?i)(?:(?<![^\W_])(?:{any_of('joints of changes')})[ ][\"'`“„«*]{{0,2}}|[成为為にをへ로으]了?\s?|เป็น\s?)\Z"
)
OTHER = re.compile(
    r"(?i)://|^[a-f0-9]{7,40}$|^[a-f0-9]{8}-|\.(?:com|org|net|io|py|js|ts|md|txt|html|json|ya?ml)\b|^v?\d+\.\d|[\w.-]@[\w-]+\.[a-z]{2}|^@|@v?\d|@[\w-]+/"
)
_NETWORKS = frozenset(word_list("networks"))
_LOGINS = frozenset(word_list("logins"))
LOGIN_WORDS = _NETWORKS | _LOGINS
"""Words, in lower case, of which every text with a login or a key of a network contains at least one."""
_PAIR = re.compile(
    rf"""(?ix)(?:\b(?:zugangsdaten|zugang|anmeldedaten|login(?:daten|[ ]details|[ ]data)?
      |log(?:ged)?[ -]in|sign(?:ed)?[ -]in|credentials?|creds
      |identifiants(?:[ ]de[ ]connexion)?|credenciales|credenciais|credenziali|inloggegevens|dane[ ]logowania
      |přihlašovací[ ]údaje|уч[её]тные[ ]данные|логин|user(?:name)?[ ]?/[ ]?pass(?:word|wort)?)
      |账号(?:密码)?|帳號|ログイン(?:情報)?|계정)
    (?:[ ][\w'’.-]{{1,20}}){{0,4}}?(?:[ ]?[:：]|(?P<said>[ ](?:{any_of("joints of logins")})|[ ]?[(\[（]))[ ]{{0,3}}
    (?P<user>[\w.@+-]{{1,64}})(?P<joint>[ ][/|][ ]|[ ]?/[ ]?(?=\S)|,[ ]|:)(?P<value>[!-~]{{6,64}})"""
)
_KEY_OF_NETWORK = re.compile(
    rf"(?i)(?<![^\W_])(?:{any_of('networks')})(?![^\W_])[^\n.?]{{0,60}}?(?<![^\W_])(?:{any_of('keys of networks')})"
    rf"(?:[ ]?[:=：]|[ ](?:{_IS}))?[ ][\"'`“„«]?(?P<value>[!-~]{{8,63}})"
)
ACCOUNT = re.compile(r"(?i)\b(?:user(?:name)?|login|log in|account|e-?mail|ssid|wi-?fi|network|host|ssh|admin|id)\b|@")
_WORD_AND_NUMBER = re.compile(r"(?=.*[A-Z])(?:[A-Za-zÄÖÜ][a-zäöüß]{2,14}[!#-/:-@^_~]?){1,3}\d{2,6}\W?")
MARKS = ".:!?*_,"
ABBREVIATIONS = ("pw", "Pw", "PW", "psw", "mdp", "Mdp")
"""Short names that people use for passwords and rarely for anything else; MDP and PSW are terms of computing."""
BRACKETS = {"(": ")", "[": "]", "（": "）"}
SAID = re.compile(
    rf"(?i)(?:[:：=]|[ ](?:{_IS})|[是为為はがえ이가은는を]|คือ|['’](?:s|est)|[ ]هي|[ ]है)"
    r"(?:[ ](?:now|currently|still|jetzt))?[ \t]{0,3}[\"'`“„«「『*(]{0,2}\Z"
    r"|[ ]from[ ]\S{1,64}[ ]to[ ][\"'`“*]{0,2}\Z"
)
"""Matches the words between a name and its value."""
_WITHOUT_JOINT = word_list("names of passwords without a joint")
_LONGEST_BEFORE, _LEAST_OF_PASSWORD, _LEAST_OF_KEY = 80, 8, 16
_SHARE_OF_WORDS = 1 / 3
"""The least share of letters in words of three or more letters; 4 % of random values reach it."""


def find_nearby(text: str, name: Name) -> tuple[int, int] | None:
    """Return the span of the first value after a name, in its sentence or the answer to it, that looks like a secret.

    Otherwise, of a random value before the name; None if there is neither.
    """
    if name.of_hash:
        return None  # a digest in the same sentence may be of a commit or a file
    at_once = name.is_short and not ACCOUNT.search(text, max(0, name.start - 80), name.start)
    if at_once and name.text not in ABBREVIATIONS:
        return None
    sentence = _SENTENCE.match(text, name.end)
    end = sentence.end() if sentence else name.end
    if text[name.end : name.end + 1] == "(" or "•" in text[name.end : end]:
        return None  # a function; or it was given, and is masked
    for start, value in _tokens(text, name.end, end):
        if at_once and start != name.end + 1:
            return None
        is_given = _is_given_by_sentence(text, name, start, end)
        if _is_secret_of(value, name, text, is_given=is_given):
            return start, start + len(value)
    return _find_before(text, name)


def _find_before(text: str, name: Name) -> tuple[int, int] | None:
    """Return the span of a random value before a name in its sentence: "I set … as the new password"."""
    if not name.of_password or name.is_short:
        return None
    start = max(0, name.start - _LONGEST_BEFORE)
    for end in _START_OF_SENTENCE.finditer(text, start, name.start):
        start = end.end()
    for at, value in _tokens(text, start, name.start):
        if _is_secret_of(value, name, text, is_given=False):
            return at, at + len(value)
    return None


def _tokens(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the start and text of each token that begins in a range: ASCII, without spaces, at most 256 characters.

    The text ends before a closing quote or bracket, and before the punctuation of the sentence.
    """
    for begun in _NEAR.finditer(text, start, end):
        token = _NEAR.match(text, begun.start()) or begun  # to its own end
        before = text[token.start() - 1]
        value = token[0].split(before)[0] if before in "'`" else token[0]
        value = _within_bracket(text, token.start(), value)
        bare = value.rstrip(MARKS)
        if value[len(bare) :] in ("!", "?") and _GOES_ON.match(text, token.start() + len(value)):
            bare = value  # the mark belongs to the value
        yield token.start(), bare


def _within_bracket(text: str, at: int, value: str) -> str:
    """Return the part of a value at `at` up to the end of brackets that opened before it; else all of it."""
    start = max(0, at - _LONGEST_BEFORE)
    start = max(start, text.rfind("\n", start, at))
    for opening, closing in BRACKETS.items():
        if text.rfind(opening, start, at) > text.rfind(closing, start, at):
            value = value.split(closing, 1)[0]
    return value


def _is_secret_of(value: str, name: Name, text: str, *, is_given: bool) -> bool:
    """Return whether a value near a name is its secret. If `is_given`, words such as "is" connect the two."""
    if OTHER.search(value) or _VERSION.fullmatch(value) or is_placeholder(value, in_code=True):
        return False
    if not name.of_password:
        return len(value) >= _LEAST_OF_KEY and is_strong(value) and not _is_named(value)
    is_lower = value.isalnum() and value.islower()  # argon2id
    is_described = _DESCRIBED.match(text, name.end) is not None  # "password column is …"
    if is_given and not is_described and (is_strong(value) or (not is_lower and is_password(value))):
        return True
    return len(value) >= _LEAST_OF_PASSWORD and is_random(value)


def is_random(value: str) -> bool:
    """Return whether a value mixes characters in a way that words, identifiers, part numbers and digests do not."""
    if _OF_NAMES.search(value) or not is_mixed(value):
        return False
    if _has_symbol(value):
        return True
    if reads_as_words(value) or value.isupper() or _WORD_AND_NUMBER.fullmatch(value) or _is_named(value):
        return False
    return not value.islower() or is_strong(value)


def _has_symbol(value: str) -> bool:
    """Return whether a value contains a symbol that is frequent in passwords.

    File patterns and `sed` scripts contain such symbols too, but in lower case or next to a path separator.
    """
    if any(c in "!$%^" for c in value) and not any(c in "./:" for c in value):
        return True
    return any(c in "#*?~&+" for c in value) and any(map(str.islower, value)) and any(map(str.isupper, value))


def _is_named(value: str) -> bool:
    """Return whether at least a third of the letters are in words, as in names of products and classes."""
    parts = [part for part in words_of(value) if not part.isdigit()]
    letters_in_words = sum(len(part) for part in parts if len(part) > 2 and is_word(part))
    return letters_in_words >= _SHARE_OF_WORDS * sum(map(len, parts))


def _is_given_by_sentence(text: str, name: Name, start: int, end: int) -> bool:
    """Return whether the words before a value connect it with the name: "is", "from … to", "changed … to".

    In languages without a copula, such as Turkish and Hungarian, the value may follow its name directly.
    """
    if start == name.end + 1:
        return not name.text.isascii() or name.text.lower().startswith(_WITHOUT_JOINT)
    if _ASKED.fullmatch(text, name.end, start):
        return True
    return SAID.search(text, max(name.end, start - 80), start) is not None or (
        _CHANGED_TO.search(text, max(name.end, start - 16), start) is not None
        and _CHANGE.search(text, max(0, name.start - 60), end) is not None
    )


def login_passwords(text: str, places: Places) -> Iterator[tuple[int, int]]:
    """Yield the spans of passwords after a login ("Zugangsdaten: otto / …") and keys after a network."""
    if not _NETWORKS.isdisjoint(places):
        for match in _KEY_OF_NETWORK.finditer(text):
            value = strip_sentence_end(_within_bracket(text, match.start("value"), match["value"]))
            if not is_placeholder(value) and not OTHER.search(value) and (is_random(value) or is_strong(value)):
                yield match.start("value"), match.start("value") + len(value)
    if _LOGINS.isdisjoint(places):
        return
    for match in _PAIR.finditer(text):
        value = strip_sentence_end(_within_bracket(text, match.start("value"), match["value"]))
        is_named = reads_as_words(value) and not _has_symbol(value)
        weak = match["joint"] == ":" and is_named
        if match["said"] or match["joint"] == ", ":  # "log in with Google / …" names two services
            weak |= not (is_random(value) or (is_password(value) and not match["user"][0].isupper()))
        if is_mixed(value) and not (is_placeholder(value) or OTHER.search(value) or weak):
            yield match.start("value"), match.start("value") + len(value)


def is_strong(value: str) -> bool:
    return sum(c.isdigit() for c in value) >= 2 and is_random_token(value, 10) and not reads_as_words(value)


def is_password(value: str) -> bool:
    """Return whether a value is a passphrase, or mixes letters and digits in a way that identifiers do not."""
    if OTHER.search(value):
        return False
    is_of_person = _WORD_AND_NUMBER.fullmatch(value) is not None or not reads_as_words(value)
    return (len(value) >= 8 and is_mixed(value) and is_of_person) or is_phrase(value, 4)
