"""Values whose name says that they are secret: `password: hunter22`, `"api_key": "…"`, "das Passwort ist …".

A name is not enough: code is full of `password = form.password` and `api_key: "your-key-here"`. So the value must look
like nothing that a program or a manual would put there. What people say in so many words ("the password is
bluewhale") stays as it is: it cannot be told from talk about passwords.
"""

from __future__ import annotations

import re

__all__ = ["COVER", "HINTS", "end_of_value", "named"]

HINTS = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "kennwort", "contraseña", "mot de passe"),
    *("senha", "пароль", "密码", "密碼", "パスワード", "비밀번호", "parola d'ordine"),
    *("secret", "api_key", "api-key", "apikey", "api key", "access_key", "access-key", "accesskey", "private_key"),
    *("auth_token", "access_token", "refresh_token", "private_token", "bot_token", "auth-token", "access-token"),
    *("authtoken", "accesstoken", "refreshtoken", "session_token", "sessionid", "session_id", "credential"),
    *("hasło", "wachtwoord", "şifre", "lösenord", "adgangskode", "heslo", "jelszó", "salasana", "κωδικός"),
    *("كلمة المرور", "كلمة السر", "סיסמה", "รหัสผ่าน", "mật khẩu", "kata sandi", "private key", "secret key"),
    *("encryption_key", "signing_key", "master_key", "_token", "-token", "token="),
    *("pw", "pass"),
)
"""A name that has none of these, in small letters, is no name of a secret."""

COVER = "\uffff"
"""Stands in the text where a secret is known already, so that a value with one in it is secret, whatever it says."""

_VALUE = r"""[^\s"'`<>{}()\[\],;|\\•，。；、！？」』】]"""
_JUDGED = 128
"""Characters of a value that tell whether it is secret. All that follows a name may be one long run of names."""

_IS = "is|was|ist|lautet|est|es|è|é|—|–|-"
_FOR = "for|of|to|on|del|de|do|da|für|vom|zum|pour|per"
_JOINT = (
    r"[ \t]{0,3}(?::=|=>|==?|:|：)(?:\*\*)?[ \t]{0,3}"
    rf"|[ ](?:{_IS})[ ](?:now[ ])?|[ ]?[是はе이가은는][ ]?"
    rf"|[ ](?:{_FOR})[ ](?:[\w'.-]{{1,20}}[ ]){{0,2}}[\w'.-]{{1,20}}(?:[ ](?:{_IS})|:)[ ]"
    r"|:[ \t]{0,3}(?:\r?\n[ \t]{0,8}){1,2}(?=\S{5,64}[^\s:,;{(][ \t]*(?:\n|\Z))"
)
_AFTER = re.compile(
    rf"""(?ix)
    (?P<rest> [\w-]{{0,30}} ) [\\"'`\]*]{{0,8}} (?: {_JOINT} )
    (?P<quote> \\{{0,7}}["'`]? ) (?P<value> {_VALUE}{{4,{_JUDGED}}} )
    """
)
_SHORT = ("pw", "pass")
_SAID = re.compile(r"""[\\"'`\]*]{0,8}[ \t]?(?::=|=>|=|:|：)""")
_CURSOR = re.compile(r"(?i)(?:next|page|continu(?:e|ation)|cursor|sync|eos|bos|pad|unk|mask|sep|cls|special|stop)$")
_SESSION = re.compile(r"(?=(?:\D*\d){4})[\w+/=.%]{20,}")
_SCRIPT = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_SIGN = re.compile(r"[^\w./=-]")
_MARKS = ".:!?*_"
_RUN = re.compile(f"{_VALUE}*")
_ABOUT = re.compile(
    r"(?i)hash|field|label|reset|polic|manager|generat|input|file|path|url|name|length|type|hint|algo|^s?[_-]?ids?$"
)
"""A name with one of these after the hint is of something about a secret."""
_SAMPLE = "(?:my|the|test|foo|bar|baz|demo|fake|some|new|old|user|admin)"
_PLACEHOLDER = re.compile(
    r"(?i)your|example|exampl|placeholder|change.?me|replace|insert|dummy|sample|redacted|hidden|x{4}|\*{3}|\.{3}|…"
    rf"|1234567|abcdef|qwerty|^{_SAMPLE}(?:[_-]|{_SAMPLE}|pass|pw|secret|key|token|value|string|auth|api|db|app|\d*[!@#$]?$)|_here|-here"
    r"|(?:pass(?:word|wd|wort)?|secret|api_?key|token|senha|contraseña)s?[_-]?\d{0,4}[!@#$]?$|^(?:secret|pass)(?:[_-]|\d|$)"
)
_IN_CODE = re.compile(
    r"^\$|\$[{(]|^%[A-Z]|^(?:os|process|env|self|this|settings|config|secrets?|vault|import|require|base64)[._]|^(?:pbkdf2|scrypt|argon2|bcrypt|sha\d+)[\w-]*[:$]|::|->|^/|^\.|://"
)


def named(text: str, at: int, hint: str, *, beyond: int = 0) -> int | None:
    """Return where the value begins of the name that has this hint at `at`; None where it is no secret.

    None as well for a value that begins before `beyond`.
    """
    if text[at : at + len(hint)].lower() != hint:
        return None  # covered
    found = _AFTER.match(text, at + len(hint))
    if found is None or found.start("value") < beyond or _ABOUT.search(found["rest"]):
        return None
    if hint in _SHORT and (found["rest"] or text[at - 1 : at].isalnum() or not _SAID.match(text, found.end("rest"))):
        return None  # many a word has these in it, and many a sentence
    value = found["value"].rstrip(_MARKS) or found["value"]
    if hint in ("_token", "-token") and _CURSOR.search(text[max(0, at - 20) : at]):
        return None  # where a list goes on
    if "session" in hint and not _SESSION.fullmatch(value):
        return None  # most sessions have names, and those are no secrets
    value = _SCRIPT.split(value, maxsplit=1)[0]  # what follows in Chinese is the sentence
    asks_a_key = "key" in hint or "token" in hint or "secret" in hint or "session" in hint
    is_secret = COVER in value or _is_secret(value, asks_a_key=asks_a_key, quoted=bool(found["quote"]))
    return found.start("value") if is_secret else None


def end_of_value(text: str, start: int) -> int:
    """Return where a value ends, without the marks that end a sentence."""
    run = _RUN.match(text, start)
    value = run[0] if run else ""
    return start + len(value.rstrip(_MARKS) or value)


def _is_secret(value: str, *, asks_a_key: bool, quoted: bool) -> bool:
    """Whether a value is what somebody chose or drew for a secret. A key is long; a password mixes its characters."""
    digits, letters = sum(c.isdigit() for c in value), sum(c.isalpha() for c in value)
    if not value:
        return False
    if asks_a_key:
        shaped = len(value) >= 12 and digits >= 2 and letters >= 4
    else:
        shaped = len(value) >= 6 and letters >= 2 and (digits >= 1 or (quoted and _SIGN.search(value) is not None))
    return shaped and not (_PLACEHOLDER.search(value) or _IN_CODE.search(value))
