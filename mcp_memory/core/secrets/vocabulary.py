"""Ordinary words of sixteen languages: the whole words in the vocabularies of the bundled models.

A drawn password is no word, so this tells `token = request_token` from `token = kqzwlmvxprtyub`. Read when first
asked (some 30 ms and 8 MB), which most texts never do. It knows frequent words only, so words with a common ending or
prefix, and two or three words written as one, count as well.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources

__all__ = ["holds_word", "is_word", "reads_as_words", "words_of"]

_PIECES, _WORD_START = "models/embed/model/encoder_pieces.txt", "▁"
_WORDS, _NO_START = "models/embed/model/tokenizer.json", "##"
_IN_CODE_TEXT = """
api arg args argon async attr auth aws base bcrypt bool cfg cli cmd cn conf config conn cred credential creds csrf
ctx dao db dest dev dict dir dns decrypt dst dto elem enc encrypt env err exec expr fmt fn func gcp gpg hex hmac
html http https id idx impl init int io ip jdbc jks json jwt keychain keyring keystore kms kube kw kwargs ldap lib
len login mfa msg mysql nginx nil num oauth oidc org os otp param params passwd pem pgp preflight printable php pin
pkg postgres prod ptr pwd py redis ref regex repo req res resp rsa ruby saml scrypt sdk sha smtp sql src ssh sso
ssl stderr stdin stdout str struct svc sync sys tcp temp tls tmp totp ttl tty txt ui uid unix uri url usr unset
username utf util utils uuid val var vars vpn webhook wifi xml yaml yml
"""
_IN_CODE = frozenset(_IN_CODE_TEXT.split())
_ENDINGS = re.compile(r"(?:s|es|ed|ing|er|ers|ly|able|ible|less|ful|ness|tion|ized|ised|izer|iser|ation|or|en|e|n)$")
_PREFIX = re.compile(r"^(?:un|in|im|non|re|auto|pre|multi|de|dis|over|sub|mis|cross|inter)(?=[a-z]{4})")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_JOINED = re.compile(r"[a-z]{1,14}(?:[-_./:](?:[a-z]{1,14}|v?\d{1,4}))+")
_SHARE, _SHARE_JOINED = 0.75, 0.5
_SHORTEST_PART = 4  # letters of a word within a compound


@cache
def _vocabulary() -> frozenset[str]:
    package = resources.files("mcp_memory")
    pieces = (package / _PIECES).read_text(encoding="utf-8").split("\n")
    words = json.loads((package / _WORDS).read_text(encoding="utf-8"))["model"]["vocab"]
    known = [line[1:] for line in pieces if line.startswith(_WORD_START)]
    known += [word for word in words if not word.startswith(_NO_START)]
    return _IN_CODE | {word.lower() for word in known if word.isalpha()}


def is_word(text: str) -> bool:
    """Tell whether letters are a word, or up to three words written as one."""
    small = text.lower()
    return _one_word(small) or (len(small) <= 24 and _is_compound(small, 3))


def holds_word(text: str, least: int) -> bool:
    """Tell whether a word of at least so many letters (and of twelve at most) stands anywhere in letters."""
    small, known = text.lower(), _vocabulary()
    return any(small[at : at + length] in known for length in range(least, 13) for at in range(len(small) - length + 1))


def words_of(text: str) -> list[str]:
    """Return the parts of an identifier: `hashedPassword_v2` has hashed, Password, v and 2."""
    return _PART.findall(text)


def reads_as_words(text: str) -> bool:
    """Tell whether most letters of a text are in words, as in names that people give.

    Parts that are joined by marks need fewer: drawn letters are not cut into small ones of a word's length.
    """
    parts = [part for part in words_of(text) if not part.isdigit()]
    letters = sum(map(len, parts))
    known = sum(len(part) for part in parts if len(part) > 2 and is_word(part))
    return bool(letters) and known >= (_SHARE_JOINED if _JOINED.fullmatch(text) else _SHARE) * letters


def _one_word(small: str) -> bool:
    known = _vocabulary()
    if small in known:
        return True
    stem = _PREFIX.sub("", small)
    bare = _ENDINGS.sub("", stem)
    return stem in known or (len(bare) > 2 and (bare in known or f"{bare}e" in known or f"{bare}y" in known))


def _is_compound(small: str, parts: int) -> bool:
    if parts == 1:
        return _one_word(small)
    return any(
        _one_word(small[:at]) and (_one_word(small[at:]) or _is_compound(small[at:], parts - 1))
        for at in range(_SHORTEST_PART, len(small) - _SHORTEST_PART + 1)
    )
