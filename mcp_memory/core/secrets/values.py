"""Classifies values: random, chosen by a person, a phrase, a word, or a placeholder of code and manuals.

The vocabulary is the whole words of the bundled models, in sixteen languages; it separates `token = request_token`
from `token = kqzwlmvxprtyub`. `scripts/write_tries.py` writes its file, a trie that processes share. It has frequent
words only, so words with a common ending or prefix, and two or three words written as one, count as well.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from itertools import pairwise

from mcp_memory.core.tries import Trie, mapped_trie


@cache
def _word_lists() -> dict[str, tuple[str, ...]]:
    text = (resources.files("mcp_memory.core.secrets") / "words.txt").read_text(encoding="utf-8")
    lists: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("["):
            title = line.strip("[]")
        elif line and not line.startswith("#"):
            lists.setdefault(title, []).append(line)
    return {title: tuple(" ".join(lines).rstrip(",").split(", ")) for title, lines in lists.items()}


def word_list(title: str) -> tuple[str, ...]:
    """Return the words under a heading of `words.txt`."""
    return _word_lists()[title]


def any_of(title: str) -> str:
    """Return a pattern of the words, or patterns, under a heading."""
    return "|".join(word_list(title))


LONGEST = 4_096
"""Most characters of a value; a longer run is other data."""

_JUDGED = 256
_LONG = 20  # characters: a longer random value may begin or end with anything
_LONGEST_WITHOUT_WORD = 48  # letters: longer values may contain a word of five by chance
_SAMPLE = "(?:my|the|test|foo|bar|baz|demo|fake|some|new|old|user|admin)"
_PLACEHOLDER = re.compile(
    r"(?i)your|example|exampl|placeholder|change.?(?:me|it|this)|replace|insert|dummy|sample|redacted|hidden|x{4}|\*{3}"
    r"|\.{3}|…|^(?P<one>.)(?P=one)*$|to.?be.?(?:set|filled)|fill.?(?:me|in)|^(?:todo|tbd|fixme)|_here|-here"
)
_SHORT_PLACEHOLDER = re.compile(
    rf"(?i)^{_SAMPLE}(?:[_-]|{_SAMPLE}|pass|pw|secret|key|token|value|string|auth|api|db|app|\d*[!@#$]?$)"
    r"|(?:pass(?:word|wd|wort|phrase|code)?|pwd|secret|credential|api_?key|token|senha|contraseña|kennwort|username"
    r"|salasana|lösenord|пароль|密码|密碼|パスワード|비밀번호)s?[_-]?\d{0,4}[!@#$]?$"
    r"|^(?:secret|pass|pw)(?:[_-]|\d|$)|^p[a@]ss\w?w[o0]r[dt]|1234567|^1234|^abc(?:def)?[a-z]*\d{0,6}$|qwerty"
)
_DEFAULTS = frozenset(word_list("placeholders"))
"""Not values: defaults of programs, types, states."""

_CODE_EXPRESSION = re.compile(
    r"^0x[0-9a-fA-F]{2,40}$|^\{|^\$\w+(?:$|[/.:,;>\[\\-])|\$[{(]|^%(?:[A-Za-z]$|\w+%|[({])|^#\{|\{\{|^<|>$|^[@&!*][A-Za-z_.]+\d?$|^&(?:mut|str)\b|^!Ref\b|::|->|=>|^\.{1,2}/|^~/|://|^[A-Za-z]:\\"
    rf"|^(?:{any_of('owners of values')})[._:\[(]|^base64[.(]"
    r"|^(?:pbkdf2|scrypt|argon2|bcrypt|sha\d+|md5|crypt)[\w-]*[:$(]|^\{[A-Z0-9-]+\}|^\$\d\w?\$|^[x*!]:\d"
    r"|^\[?[A-Za-z_$][\w$]*(?:\.[\w$]+)+@[0-9a-f]{1,16}$|^[A-Z][A-Za-z]*@(?=\d*[a-f])[0-9a-f]{5,8}$"  # objects of Java
    r"|^\d{1,5}/(?:tcp|udp|sctp|dccp)$"  # a port
    r"|^(?:ISO|RFC|CVE|DIN|IEEE|NIST|FIPS|PKCS)-?\d[\d-]*$"  # a standard
    r"|^pk_(?:live|test)_|^pk\.ey|^pk-lf-|^-----BEGIN (?:[A-Z]+ )?PUBLIC|^(?:ssh-|ecdsa-)"  # public keys
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]|\Z)")
_CALL = re.compile(r"^[A-Za-z_][\w.]*[(\[][^@#%^*]*$|^(?:async|await|new|lambda|not|typeof)\b")
_PART_OF_ATTRIBUTE = re.compile(r"_{0,2}([A-Za-z]+(?:_[A-Za-z]+)*)_{0,2}(?:\d|16|32|64|128|256|512)?|[a-z]\d[a-z]")
_SHORT_PART = 3  # letters: `e`, `req` and `cfg` are identifiers that no vocabulary has
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_OF_CODE = re.compile(r"[A-Za-z]+\d{0,4}|[A-Za-z]\w*_\w*")
"""A name of code with digits in it: at its end, or among parts joined by underscores."""
_CONSTANT = re.compile(r"_?[A-Za-z]+(?:_[A-Za-z]+)+_?\d{0,2}|[a-z]{2,}(?:-[a-z]{2,})+")
"""A name of code: a constant, or words joined by one kind of mark."""
_CONSONANTS = re.compile(r"(?i)[bcdfghjklmnpqrstvwxz]{4}")
_DESCRIBES = re.compile(r"(?i)(?:ed|ing|able|ible|less|ful|ous|ive|ic|ant|ent|al|ly|ory|ary|y)$")
_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxz]{4}|[aeiou]{4}|[jqvxz]{2}|q[^u]")
_PART_OF_RULE = re.compile(r"[|,;:\s]")
_OF_ITSELF = re.compile(r"(?i)passwor[dt]|passphrase|secret|token|credential|api[_-]?key|private[_-]?key")
"""Words for secrets. A value of words that contains one is a name, not a secret."""
_PART_OF_PHRASE = re.compile(r"[^\W\d_]{2,}\Z")
_TALK = frozenset(word_list("sentence words"))
_SENTENCE = re.compile(r"[.?!:,;…]$|[?!:,;]\s|\.\s")


def is_placeholder(value: str, name: str = "", *, in_code: bool = False) -> bool:
    """Return whether a value is not a secret itself: a placeholder, a default, a type, or code that provides the value.

    If `in_code`, the value is unquoted, so code may assign an attribute, as in `password = form.password.data`.
    Elsewhere (a URL, a header, a string, an environment variable) `a.b.c` is a literal.
    """
    value = value[:_JUDGED]
    small = value.lower().strip("_-.!?")
    first = _PART_OF_RULE.split(small, maxsplit=1)[0]
    return (
        not small
        or small in _DEFAULTS
        or (first != small and first in _DEFAULTS)  # "required|string|min:12"
        or (_OF_ITSELF.search(value) is not None and reads_as_words(value))
        or small in (part.lower() for part in words_of(name))
        or _PLACEHOLDER.search(value) is not None
        or (_SHORT_PLACEHOLDER.search(value) is not None and (len(value) < _LONG or reads_as_words(value)))
        or _CODE_EXPRESSION.search(value) is not None
        or _is_path(value)
        or _CALL.search(value) is not None
        or (in_code and is_attribute(value))
        or _DATE.match(value) is not None
    )


def _is_path(value: str) -> bool:
    """Return whether a value is a file path. A base64 key may start with a slash too, but contains no words."""
    if not value.startswith("/"):
        return False
    rest = value[1:]
    if not is_mixed(rest) or reads_as_words(rest):
        return True
    if "/" not in rest and "." not in rest:
        return len(rest) < _SHORTEST_BEHIND_SLASH
    has_words = any(len(part) >= _SHORTEST_PART and is_word(part) for part in words_of(rest))
    return has_words or rest.islower() or rest.isupper() or not is_random_token(rest)


def is_attribute(value: str) -> bool:
    """Return whether a value is a dotted path of identifiers, such as `request.user.id` or `cfg.dbPassword`.

    In a generated password with dots, digits occur among letters or the parts are not words.
    """
    parts = [_PART_OF_ATTRIBUTE.fullmatch(part) for part in value.split(".")]
    return len(parts) > 1 and all(part is not None and _is_identifier(part[1] or "") for part in parts)


def _is_identifier(letters: str) -> bool:
    if letters.islower() and (len(letters) <= _SHORT_PART or may_be_word(letters)):
        return True
    return not letters or reads_as_words(letters)


def is_mixed(value: str) -> bool:
    """Return whether a password mixes letters with digits, as no word does."""
    return (
        len(value) >= 6
        and sum(c.isalpha() for c in value[:_JUDGED]) >= 2
        and any(c.isdigit() for c in value[:_JUDGED])
        and not _is_numbered(value)
    )


def _is_numbered(value: str) -> bool:
    """Return whether words are numbered or joined by marks, as in `tests/unit/foo-1.test` and `token_2`."""
    return re.fullmatch(r"(?:[a-z]+|\d{1,4}|v\d+)(?:[-_./](?:[a-z]+|\d{1,4}|v\d+))+", value) is not None and (
        reads_as_words(value)
    )


def is_random_token(value: str, least: int = 12) -> bool:
    """Return whether a token of `least` or more characters is random: not ordered like words, or 12 digits or more."""
    value = value[:_JUDGED]
    digits, letters = sum(c.isdigit() for c in value), sum(c.isalpha() for c in value)
    if len(value) < least or len(set(value)) < 5:
        return False
    if value.isdigit():
        return len(value) >= 12
    if letters < 4 or _CONSTANT.fullmatch(value):
        return False
    if digits >= 2:
        return not (_is_numbered(value) or (digits <= 4 and _OF_CODE.fullmatch(value) and reads_as_words(value)))
    return len(value) >= 16 and value.isascii() and not reads_as_words(value) and _is_scrambled(value)


def _is_scrambled(value: str) -> bool:
    """Return whether letters are in an order that no language and no name of code has.

    They contain no word. Long values and values with marks contain many consonants in a row or many changes of case.
    """
    if value.isalpha() and len(value) <= _LONGEST_WITHOUT_WORD:
        return not may_be_word(value) and not contains_word(
            value, 5
        )  # true for 97 of 100 random values, few joined names of code
    bare = "".join(filter(str.isalpha, value))
    if len(bare) < 8:
        return False
    clusters = sum(1 for at in range(len(bare) - 3) if _CONSONANTS.fullmatch(bare, at, at + 4))
    switches = sum(left.isupper() != right.isupper() for left, right in pairwise(bare))
    few = 0.14 if len(bare) >= 24 else 0.18  # nearly no long random value has fewer
    return clusters >= few * len(bare) or switches >= 0.38 * len(bare)


_HEX_KEY = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{64}|[0-9a-fA-F]{128})")
_BASE64_KEY = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}")


def is_cipher_key(value: str) -> bool:
    """Return whether a value is as long and mixed as a key of 256 bits in hexadecimal, or of 192 or more in base64."""
    return _HEX_KEY.fullmatch(value) is not None or (
        _BASE64_KEY.fullmatch(value) is not None
        and all(any(map(of, value[:_JUDGED])) for of in (str.islower, str.isupper, str.isdigit))
        and not reads_as_words(value[:_JUDGED])
    )


_HEX_DIGEST = re.compile(r"(?:[0-9a-f]{32,128}|[0-9A-F]{32,128})")
_BASE64_DIGEST = re.compile(r"[A-Za-z0-9+/_-]{22,88}={0,2}")


def is_digest(value: str) -> bool:
    """Return whether a value has the form of a hash of at least 128 bits, in hexadecimal or base64."""
    return _HEX_DIGEST.fullmatch(value) is not None or (
        _BASE64_DIGEST.fullmatch(value) is not None
        and all(any(map(of, value)) for of in (str.islower, str.isupper, str.isdigit))
        and not reads_as_words(value)
    )


def is_chosen(value: str) -> bool:
    """Return whether a token was chosen by a person: mixed, or neither a word nor a name of code."""
    return is_mixed(value) or (
        len(value) >= 6
        and any(c.isalpha() for c in value)
        and not (_NAME.match(value) and "_" in value)
        and not reads_as_words(value)
        and not may_be_word(value)
    )


def is_chosen_or_phrase(value: str) -> bool:
    """Return whether a value in a position for passwords is a password: chosen, a long number, or a phrase."""
    return is_chosen(value) or (value.isdigit() and len(value) >= 6) or is_phrase(value)


def may_be_word(value: str) -> bool:
    """Return whether letters could be a word of a language that the vocabulary hardly covers."""
    if not value.isalpha() or not (value.islower() or value.istitle() or value.isupper()):
        return False
    small = value.lower()
    vowels = sum(c in "aeiouyäöüáéíóúàèìòùâêîôûåæøœıăąęėű" for c in small)
    return not small.isascii() or (0.25 <= vowels / len(small) <= 0.7 and _CLUSTER.search(small) is None)


def may_describe(value: str) -> bool:
    """Return whether an English word may describe a password, such as `rotated`."""
    return _DESCRIBES.search(value) is not None


def is_phrase(value: str, least: int = 3, *, of_key: bool = False) -> bool:
    """Return whether a row of words is a passphrase: bare words with the same separator, not a sentence.

    In a password of four words or more, one word may also be a placeholder or, between hyphens, a word of sentences.
    """
    for joint in (" ", "-", ".", "_"):
        words = value.split(joint)
        if least <= len(words) <= 33:
            break
    else:
        return False
    small = [word.lower() for word in words]
    talk, other = sum(word in _TALK for word in small), sum(word in _DEFAULTS and word not in _TALK for word in small)
    return (
        all(_PART_OF_PHRASE.match(word) for word in words)
        and not _SENTENCE.search(value)
        and (talk == 0 or joint == "-")
        and talk + other <= (len(words) >= 4 and joint in " -" and not of_key)
        and (value == value.lower() or all(word[:1].isupper() for word in words))
    )


_ENDINGS = re.compile(r"(?:s|es|ed|ing|er|ers|ly|able|ible|less|ful|ness|tion|ized|ised|izer|iser|ation|or|en|e|n)$")
_PREFIX = re.compile(r"^(?:un|in|im|non|re|auto|pre|multi|de|dis|over|sub|mis|cross|inter)(?=[a-z]{4})")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_JOINED = re.compile(r"[a-z]{1,14}(?:[-_./:](?:[a-z]{1,14}|v?\d{1,4}))+")
_SHARE, _SHARE_JOINED = 0.75, 0.5
_SHORTEST_PART = 4  # letters of a word within a compound
_SHORTEST_BEHIND_SLASH = 7


WORDS = "words.marisa"


@cache
def _vocabulary() -> Trie:
    with resources.as_file(resources.files("mcp_memory.core.secrets") / WORDS) as path:
        return mapped_trie(path)


def is_word(text: str) -> bool:
    """Return whether letters are a word, or up to three words written as one."""
    small = _replace_surrogates(text.lower())
    return _is_one_word(small) or (len(small) <= 24 and _is_compound(small, 3))


def contains_word(text: str, least: int) -> bool:
    """Return whether a word of `least` to twelve letters occurs anywhere in the letters."""
    small, vocabulary = _replace_surrogates(text.lower()), _vocabulary()
    return any(len(word) >= least for at in range(len(small)) for word in vocabulary.prefixes(small[at : at + 12]))


def _replace_surrogates(text: str) -> str:
    """Return a text with lone surrogates replaced; no word contains them."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def words_of(text: str) -> list[str]:
    """Return the parts of an identifier: `hashedPassword_v2` has hashed, Password, v and 2."""
    return _PART.findall(text)


_READ_FOR_WORDS = 300
"""Characters of a value that are checked for words, because many values may overlap: `b=c` and `c` in `a=b=c`."""


def reads_as_words(text: str) -> bool:
    """Return whether most letters of a text are in words, as in names that people give; only its beginning counts.

    For lower-case parts joined by marks half of the letters suffice, because random letters are not divided like this.
    """
    text = text[:_READ_FOR_WORDS]
    parts = [part for part in words_of(text) if not part.isdigit()]
    letters = sum(map(len, parts))
    letters_in_words = sum(len(part) for part in parts if len(part) > 2 and is_word(part))
    return bool(letters) and letters_in_words >= (_SHARE_JOINED if _JOINED.fullmatch(text) else _SHARE) * letters


def _is_one_word(small: str) -> bool:
    vocabulary = _vocabulary()
    if small in vocabulary:
        return True
    stem = _PREFIX.sub("", small)
    bare = _ENDINGS.sub("", stem)
    return stem in vocabulary or (
        len(bare) > 2 and (bare in vocabulary or f"{bare}e" in vocabulary or f"{bare}y" in vocabulary)
    )


def _is_compound(small: str, parts: int) -> bool:
    if parts == 1:
        return _is_one_word(small)
    return any(
        _is_one_word(small[:at]) and (_is_one_word(small[at:]) or _is_compound(small[at:], parts - 1))
        for at in range(_SHORTEST_PART, len(small) - _SHORTEST_PART + 1)
    )
