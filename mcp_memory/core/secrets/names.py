"""Names of secrets in what programs and people write: `DB_PASSWORD`, `api-key`, `Kennwort`.

Behind a name of a password stands what somebody chose; behind that of a key, what a program drew. A name with a word
such as `reset`, `length` or `field` is of something about a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["HINTS", "KEY_HINTS", "PASSWORD_HINTS", "Name", "name_at"]

PASSWORD_HINTS = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "kennwort", "contraseña", "mot de passe"),
    *("senha", "пароль", "密码", "密碼", "パスワード", "비밀번호", "parola d'ordine"),
    *("hasło", "wachtwoord", "şifre", "lösenord", "adgangskode", "passord", "heslo", "jelszó", "salasana", "κωδικός"),
    *("كلمة المرور", "كلمة السر", "סיסמה", "סיסמא", "रहस्य शब्द", "पासवर्ड", "รหัสผ่าน", "mật khẩu", "kata sandi"),
    *("parolă", "parola", "lozinka", "گذرواژه", "رمز عبور"),
    *(
        "_pass",
        "-pass",
        ".pass",
        "dbpass",
        "userpass",
        "smtppass",
        "requirepass",
        "masterauth",
        "rootpass",
        "adminpass",
    ),
    *("keypass", "storepass", "mypass", "pass", "pw", "psk", "口令", "kata laluan", "contrasenya"),
)
KEY_HINTS = (
    *(
        "secret",
        "secret key",
        "api_key",
        "api-key",
        "apikey",
        "api key",
        "access_key",
        "access-key",
        "accesskey",
        "private_key",
    ),
    *("auth_key", "auth-key", "authkey", "access key", "private-key", "privatekey", "master key", "license_key"),
    *("private key", "encryption_key", "encryption-key", "signing_key", "signing-key", "master_key", "account_key"),
    *("accountkey", "sharedaccesskey", "shared_key", "sas_key", "service_key", "server_key", "webhook_key", "app_key"),
    *(
        "appkey",
        "application_key",
        "consumer_key",
        "storage_key",
        "session_key",
        "hmac_key",
        "deploy_key",
        "credential",
    ),
    *("authtoken", "accesstoken", "refreshtoken", "sessiontoken", "bottoken", "apitoken", "_token", "-token", "token"),
    *(
        "fastly-key",
        "subscription-key",
        "insert-key",
        "application-key",
        "master-key",
        "art-api",
        "x-key",
        "ingestion-key",
    ),
    *(
        "presharedkey",
        "preshared_key",
        "schlüssel",
        "clé api",
        "clé d'api",
        "clave",
        "chiave api",
        "chave",
        "密钥",
        "密鑰",
    ),
    *("api キー", "apiキー", "api 키", "ключ", "authentication key", "license key"),
    *("credential", "sessionid", "session_id"),
)
HINTS = (*PASSWORD_HINTS, *KEY_HINTS)
"""A name that has none of these, in small letters, is no name of a secret."""

_SHORT = ("pw", "pass", "psk")
_ENDS_NAME = ("_pass", "-pass", ".pass", "_psk", "-psk", ".psk")
_ABOUT_BEFORE = re.compile(
    r"(?i)(?:^|[_.\[-])(?:forg[eo]t|reset|show|hide|has|have|is|no|without|min|max|change|hash|hashed|verify|check|validate"
    r"|invalid|wrong|empty|missing|require|required|lost|update|toggle|use|with|allow|bad|need|needs|prompt|set|get|num"
    r"|generate|make|create|delete|remove|rotate|revoke|list|find|parse|send|fetch|expired?|next|prev|page|continu(?:e|ation)"
    r"|cursor|sync|eos|bos|pad|unk|mask|sep|cls|special|split|stop|start|end|total|completion|per|count|new_line|newline|syntax|peek|skip)"
    r"[_.-]?\Z|(?:page|sync|continuation|resume|cancell?ation|idempotency|client_?request)_?\Z|^(?-i:Client)\Z"
)
_ABOUT_AFTER = re.compile(
    r"(?i)hash|field|label|reset|polic|manager|generat|input|file|path|ur[li]|name|length|type|hint|algo|_at|_on$|date|time"
    r"|expir|_age|min|max|_len|count|attempt|retr|chang|updat|creat|requir|enabl|valid|streng|score|error|protect|column"
    r"|prompt|format|pattern|regex|rule|confirm(?:ed|ation)$|hasher|encod|check|form|view|page|store|backend|class|schema"
    r"|version|arn|scope|ttl|rotat|index|iz|is[ei]|bucket|limit|rate|usage|budget|price|cost|per|list|ref|mount|mode|prefix"
    r"|suffix|header|status|state|descr|help|title|text|size|bytes|source|provider|endpoint|agent|less|param|manager|mgr|last|histor|_const|address|contract|symbol|^ar(?:y|ies|iat)|^s?[_-]?ids?$|^s?[_-]?id[_-]"
)


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a text, from `start` to `end`; `asks` what stands behind it: a password that was chosen, or a key."""

    start: int
    end: int
    text: str
    of_password: bool
    is_short: bool
    """`pass` and `pw` alone are words, and results of tests."""


_BACK = re.compile(r"[\w.\[\]-]{1,60}\Z")
_REST = re.compile(r"[A-Za-z0-9_-]{0,40}")
_ENDING = re.compile(r"[^\W\d_\u0e00-\u0eff\u2e80-\uffff]{0,3}")
_IDEOGRAPH = "\u2e80"


def name_at(text: str, at: int, hint: str) -> Name | None:
    """Return the name that has a hint at `at`; None where it is one of something about a secret."""
    end = at + len(hint)
    if text[at:end].lower() != hint:
        return None  # covered
    rest = (_REST if hint.isascii() else _ENDING).match(text, end) if hint < _IDEOGRAPH else None
    after = rest[0] if rest else ""
    back = _BACK.search(text, max(0, at - 60), at)
    before = back[0] if back and hint.isascii() else ""
    is_short = hint in _SHORT
    if is_short and (after or before.strip("-[].")):
        return None  # many a word has these in it
    if hint in _ENDS_NAME and after.strip("0123456789"):
        return None  # pass_through
    if text[at - len(before) - 2 : at - len(before)] == "::" or (
        text[at - 1 : at] == ":" and text[at - 2 : at - 1].isalnum() and hint != "password"
    ):
        return None  # a path of parts, as in an ARN
    if (after and _ABOUT_AFTER.search(after)) or (before and _ABOUT_BEFORE.search(before.rstrip("["))):
        return None
    if hint == "token" and after[:1] in ("s", "i"):
        return None
    start = at - len(before)
    return Name(
        start=start,
        end=end + len(after),
        text=text[start : end + len(after)],
        of_password=hint in PASSWORD_HINTS,
        is_short=is_short,
    )
