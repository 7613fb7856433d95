"""Values whose name says that they are secret: `password: hunter22`, `"api_key": "…"`, "das Passwort ist …".

A name is not enough: code is full of `password = form.password` and `api_key: "your-key-here"`. So the value must look
like nothing that a program or a manual would put there. What people say in so many words ("the password is
bluewhale") stays as it is: it cannot be told from talk about passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["HINTS", "named"]

HINTS = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "kennwort", "contraseña", "mot de passe"),
    *("senha", "пароль", "密码", "密碼", "パスワード", "비밀번호", "parola d'ordine"),
    *("secret", "api_key", "api-key", "apikey", "api key", "access_key", "access-key", "accesskey", "private_key"),
    *("auth_token", "access_token", "refresh_token", "private_token", "bot_token", "auth-token", "access-token"),
    *("authtoken", "accesstoken", "refreshtoken", "session_token", "sessionid", "session_id", "credential"),
    *("encryption_key", "signing_key", "master_key", "_token", "-token", "token="),
)
"""A name that has none of these, in small letters, is no name of a secret."""

_IS = "is|was|ist|lautet|est|es|è|é|—|-"
_JOINT = rf"[ \t]{{0,3}}(?::=|=>|==?|:|：)[ \t]{{0,3}}|[ ](?:{_IS})[ ](?:now[ ])?|[ ]?[是はе이가은는][ ]?"
_AFTER = re.compile(
    rf"""(?ix)
    (?P<rest> [\w-]{{0,30}} ) [\\"'`\]*]{{0,4}} (?: {_JOINT} )
    (?P<quote> \\?["'`]? ) (?P<value> [^\s"'`<>{{}}()\[\],;|\\•，。；、！？」』】]{{4,}} )
    """
)
_ABOUT = re.compile(r"(?i)hash|field|label|reset|polic|manager|generat|input|file|path|url|name|length|type|hint|algo")
"""A name with one of these after the hint is of something about a secret."""
_PLACEHOLDER = re.compile(
    r"(?i)your|example|exampl|placeholder|change.?me|replace|insert|dummy|sample|redacted|hidden|x{4}|\*{3}|\.{3}|…"
    r"|1234567|abcdef|qwerty|^(?:my|the|test|foo|bar|demo|fake|some|new|old|user|admin)[_-]?|_here|-here"
    r"|(?:pass(?:word|wd|wort)?|secret|api_?key|token|senha|contraseña)s?[_-]?\d{0,4}[!@#$]?$|^(?:secret|pass)"
)
_IN_CODE = re.compile(
    r"\$|%[A-Z]|^(?:os|process|env|self|this|settings|config|secrets?|vault|import|require|base64)[._]|::|->|^/|^\.|://"
)


def named(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield where the value of the name stands that has a hint at `at`; nothing where it is no secret."""
    hint = next((hint for hint in HINTS if text[at : at + len(hint)].lower() == hint), None)
    if hint is None:
        return
    found = _AFTER.match(text, at + len(hint))
    if found is None or _ABOUT.search(found["rest"]):
        return
    value, quoted = found["value"].rstrip(".:!?*_") or found["value"], bool(found["quote"])
    asks_a_key = "key" in hint or "token" in hint or "secret" in hint or "session" in hint
    if _is_secret(value, asks_a_key=asks_a_key, quoted=quoted):
        yield found.start("value"), found.start("value") + len(value)


def _is_secret(value: str, *, asks_a_key: bool, quoted: bool) -> bool:
    """Whether a value is what somebody chose or drew for a secret. A key is long; a password mixes its characters."""
    if _PLACEHOLDER.search(value) or _IN_CODE.search(value):
        return False
    digits, letters = sum(c.isdigit() for c in value), sum(c.isalpha() for c in value)
    signs = sum(not c.isalnum() and c not in "_-./=" for c in value)
    if asks_a_key:
        return len(value) >= 12 and digits >= 2 and letters >= 4
    return len(value) >= 6 and letters >= 2 and (digits >= 1 or (quoted and signs >= 1))
