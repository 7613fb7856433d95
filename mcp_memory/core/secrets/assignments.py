"""Values assigned to the name of a secret: `DB_PASSWORD=…`, `"api_key": "…"`, `Kennwort: …`.

In an assignment (environment, JSON, YAML, INI, a URL, an option, a quoted value) the name of a password is enough:
the value is masked, unless it is a placeholder such as `${PASSWORD}`, `form.password`, `string` or `changeme`. Code
assigns names too (`password = hashed`), so an unquoted value that reads like a name of code is kept. The value of
a key must look random.

A name with a word such as `reset`, `length` or `field` describes a secret and does not contain it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcp_memory.core.secrets.values import (
    LONGEST,
    any_of,
    is_chosen,
    is_chosen_or_phrase,
    is_cipher_key,
    is_digest,
    is_mixed,
    is_phrase,
    is_placeholder,
    is_random_token,
    reads_as_words,
    word_list,
)

_SCRIPT = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")

DICEWARE = 6
"""Words of a passphrase that may be a key. Fewer words may be the name of a resource, or an error."""
COVER = "\uffff"
"""Covers secrets that were already found; a value that contains it is secret."""

VALUE = r"""[^\s"'`<>{}()\[\],;|\\•，。；、！？」』】]"""
_CLOSING = r"(?P<close>(?:\\{0,7}[\"'`]|\\|\]|\*\*){0,6})"
_TYPE = (
    r"(?::[ \t]{0,3}[&?]?[A-Za-z][\w.\[\]<>|?]{0,40}|[ ](?:string|String|str|char|NSString)[ ]?\*?)"
    r"[ \t]{0,3}=(?=[ \t]{0,3}[\"'`])"
    r"|[ ]As[ ][A-Za-z]{1,20}[ ]="
)
_SIGN = rf":=|=>|===?|[?+]=|\|\||\?\?|{_TYPE}|=|:|：|,(?=[ \t]{{0,20}}[\"'])|\((?=[\"'])"
"""Signs of assignment, also after a type annotation, of a default value and in a call."""
_ASSIGN = re.compile(
    rf"(?x:{_CLOSING}(?P<joint>[ \t]{{0,20}}(?P<sign>{_SIGN})(?:\*\*)?[ \t]{{0,20}}))"
    r"(?:(?P<many>\[)[ \t]{0,3}|(?P<nested>\{)[ \t\r\n]{0,40}\\{0,7}\"value\\{0,7}\"[ \t]{0,3}:[ \t]{0,3})?"
    r"(?:(?<=:[ ])(?:!!(?:str|binary)|&[\w-]{1,40})[ ]{1,4})?"  # of YAML
    r"(?P<quote>(?:\\{0,7}|[rbufN])(?:\"\"\"|'''|``(?!`)|[\"'`](?![\"'`])))?"
)
_OPTION = re.compile(r"[ \t]{1,3}[\"']?|[\"'],\s{0,40}[\"']")
_SPACED = re.compile(r"[ \t]{1,40}(?P<quote>[\"'])?")
_COMMAND = re.compile(
    r"(?:^|[\n\r])[ \t]*"
    r"(?:(?:ENV|ARG|setx|set|set -[gxU]+|default|login \S{1,60}|user \S{1,60}|#define|aws configure set)[ \t]+)?"
    r"[\"'*-]{0,3}\Z"
)
_ONE_OF_MANY = re.compile(r"\w[ \t]*,[ \t]*\Z")
_RUN = re.compile(rf"{VALUE}{{1,{LONGEST}}}")
_IN_URL = re.compile(r"[^\s\"'`<>{}&;#•|\\，。]{1,4096}")
_OF_OPTION = re.compile(r"[^\s\"'`<>{}|;&•()\\]{1,4096}")
_LINE = re.compile(r"[^\s\"'`<>(){}$\\•]{1,4096}(?=[ \t]*(?:[\r\n]|\Z))")
_COMMENT = re.compile(r"[ \t]*(?:[ \t]#[^\n]*|[ \t]//[^\n]*)?(?:\\n|\\r|\r|\n|\"|'|\Z)")
_BEFORE = re.compile(
    r"(?:^|[\n\r]|\\n)[ \t]*(?:-[ \t]+|export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|[#;>|*+-]{1,3}[ \t]*)?"
    r"(?:[A-Za-z][a-z]{1,12}[ ]){0,3}[\"'*]{0,3}\Z"
)
_MARKS = ".:!?*_,"
_CODE_LINE = re.compile(
    r"[;,{(\[)]\s*$|^\s*(?:def|class|return|if|for|const|let|var|import|from|public|private|fn|func)\b"
)
_NEXT_OF_URL = re.compile(r"&(?=[\w-]{1,40}[=:])")
_NEXT_OF_CONNECTION = re.compile(r";[\w ]{1,40}=")
_SETTING = re.compile(r"^[ \t]*(?:-[ \t]+)?[\"']?[\w.-]{1,60}[\"']?[ \t]*[:=](?:[ \t]+\S|\S|$)")
_LOGIN = re.compile(r"(?im)^[ \t]*(?:-[ \t]+)?[\"']?\w{0,20}(?:user|login|mail|host|account)\w{0,10}[\"']?[ \t]*[:=]")
_LEAST_OF_PASSWORD, _LEAST_DIGITS = 4, 6


def assigned_values(text: str, name: Name, *, prose: bool) -> list[tuple[int, int]]:
    """Return the spans of the secret values assigned to a name; usually none.

    In `prose` any mix of letters and digits is a secret. Elsewhere a word with a number is not, because tests have
    such names.
    """
    if name.text.startswith("-"):
        option = _OPTION.match(text, name.end)
        if option:
            return _option_value(text, name, option.end(), is_listed="," in option[0])
    match = _ASSIGN.match(text, name.end)
    if match is None:
        return _span_after_space(text, name)
    start, quote = match.end(), match["quote"]
    if _ONE_OF_MANY.search(text, max(0, name.start - 40), name.start) and match["sign"] == "=":
        return []  # user, password = …
    if quote and match["sign"] == "," and not match["close"]:
        return []  # a name followed by a word
    if quote and match["sign"] in (",", "("):
        return [span for span in _quoted_value(text, name, start, quote) if is_chosen_or_phrase(text[slice(*span)])]
    if match["many"]:
        return _listed_values(text, name, start, quote) if quote else []
    if quote:
        return _quoted_value(text, name, start, quote)
    return _unquoted_value(text, name, match, prose=prose)


def _span_after_space(text: str, name: Name) -> list[tuple[int, int]]:
    """Return the span of a value after a space: in quotes, or alone up to the end of a line that the name begins."""
    match = _SPACED.match(text, name.end)
    if match is None or (name.is_short and not match["quote"]):
        return []
    if match["quote"]:
        return [
            span
            for span in _quoted_value(text, name, match.end(), match["quote"])
            if is_chosen_or_phrase(text[slice(*span)])
        ]
    run = _RUN.match(text, match.end())
    alone = (
        "\t" in match[0]
        and "\t" not in text[text.rfind("\n", max(0, name.start - LONGEST), name.start) + 1 : name.start]
    )  # not the header of a table
    alone = alone or name.text.isupper()
    if run is None or not (alone or _COMMAND.search(text, max(0, name.start - 80), name.start)):
        return []
    value = strip_sentence_end(run[0])
    if _COMMENT.match(text, run.end()) is None or is_placeholder(value, name.text):
        return []
    is_secret = is_chosen_or_phrase(value) if name.of_password else is_random_token(value)
    return [(run.start(), run.start() + len(value))] if is_secret else []


def _quoted_value(text: str, name: Name, start: int, quote: str) -> list[tuple[int, int]]:
    """Return the span of a value between quotes. It may contain spaces, as passphrases do."""
    closing = quote.lstrip("rbufN")
    line = text.find("\n", start, start + LONGEST)
    end = text.find(closing, start, line if line >= 0 else start + LONGEST)
    while end > start and len(closing) == 1 and _is_escaped(text, start, end):  # a quote inside the value
        end = text.find(closing, end + 1, line if line >= 0 else start + LONGEST)
    if end < 0:
        run = _RUN.match(text, start)
        if run is None:
            return []
        end = run.end()  # cut off
    value = text[start:end]
    secret = COVER in value or (_is_quoted_secret(value, name) and not _is_label(text, start, end))
    return [(start, end)] if secret else []


def _is_escaped(text: str, start: int, at: int) -> bool:
    """Return whether an odd number of backslashes precedes a character."""
    return (at - start - len(text[start:at].rstrip("\\"))) % 2 == 1


def _is_quoted_secret(value: str, name: Name) -> bool:
    if is_placeholder(value, name.text):
        return False
    if not name.of_password:
        return is_phrase(value, DICEWARE, of_key=True) if " " in value else is_random_key(name, value)
    if any(c.isspace() for c in value):
        return is_phrase(value) or _is_mixed_in_parts(value.split())
    if value.isdigit():
        return len(value) >= (_LEAST_DIGITS if not name.is_short else 10)
    return len(value) >= _LEAST_OF_PASSWORD and (
        (not name.is_short or is_mixed(value) or is_random_token(value, 10) or is_phrase(value, 4))
        and _has_letters(value)
    )


def _is_mixed_in_parts(parts: list[str]) -> bool:
    """Return whether the parts of a value are unlike prose.

    Of up to four parts one must mix letters and digits. Of up to six, two must contain digits, and one of these two
    also letters.
    """
    numbered = [part for part in parts if any(map(str.isdigit, part))]
    return (len(parts) <= 4 and any(map(is_mixed, parts))) or (
        len(parts) <= 6 and len(numbered) >= 2 and any(re.fullmatch(r"[a-z]+\d+|\d+[a-z]+", part) for part in numbered)
    )


def _is_label(text: str, start: int, end: int) -> bool:
    """Return whether a quoted value is one plain capitalised word, like labels on forms."""
    value = text[start:end]
    return value.isalpha() and value[:1].isupper() and value[1:].islower() and not is_chosen(value)


def _listed_values(text: str, name: Name, start: int, quote: str) -> list[tuple[int, int]]:
    """Return the spans of the secret values in a list of quoted strings."""
    closing = quote.lstrip("rbufN")
    end = text.find("]", start, start + LONGEST)
    inside = re.finditer(
        rf"{re.escape(closing)}?([^\"'`\n]{{1,200}}){re.escape(closing)}",
        text[start : end if end > 0 else start + LONGEST],
    )
    spans = [(start + item.start(1), start + item.end(1)) for item in inside if item[1].strip(", ")]
    return [(first, last) for first, last in spans if _is_quoted_secret(text[first:last], name)]


def _option_value(text: str, name: Name, start: int, *, is_listed: bool = False) -> list[tuple[int, int]]:
    """Return the span of an option's value. In a list (`["--password", "…"]`), never prose, it may be a word."""
    if (quote := text[start - 1]) in "\"'":
        spans = _quoted_value(text, name, start, quote)
        if spans and (" " in text[slice(*spans[0])] or text[start] == "/"):
            return spans
    run = _OF_OPTION.match(text, start)
    if run is None:
        return []
    value = run[0].rstrip("\"'") if is_listed else run[0]
    if value.startswith("-") or _is_metavar(value) or is_placeholder(value, name.text):
        return []
    if not name.of_password:
        secret = is_random_token(value, 8)
    else:
        secret = is_listed and len(value) >= _LEAST_OF_PASSWORD and _has_letters(value)
        secret = secret or is_chosen_or_phrase(value)
    return [(start, start + len(value))] if secret or COVER in value else []


def _is_metavar(value: str) -> bool:
    return value.isupper() and value.replace("_", "").isalpha() and len(value) <= 16


def _unquoted_value(text: str, name: Name, match: re.Match[str], *, prose: bool) -> list[tuple[int, int]]:
    """Return the span of an unquoted value in a position that a program reads."""
    start = match.end()
    tight = match["joint"] == match["sign"] == "="
    before = text[name.start - 1 : name.start]
    if tight and before in ("?", "&"):
        run = _IN_URL.match(text, start)
        return _span_if_secret(run, name, is_strict=True)
    if tight and (name.text.startswith("-") or before == "-"):
        return _option_value(text, name, start)
    run = _RUN.match(text, start)
    if run is None:
        return []
    is_environment = (
        tight and name.text.upper() == name.text and name.text.replace("_", "").isalpha() and len(name.text) > 2
    )
    of_connection = tight and (before == ";" or _NEXT_OF_CONNECTION.match(text, run.end()) is not None)
    if is_environment or of_connection:
        if is_environment and text[run.end() : run.end() + 1] in ("(", "["):
            return []
        if is_environment:
            run = _LINE.match(text, start) or _OF_OPTION.match(text, start)
        return _span_if_secret(run, name, is_strict=True)
    if match["close"] and text[start : start + 1].isdigit() and not name.is_short:  # {"password": 739876039017}
        return _span_if_secret(run, name, is_strict=True)
    at_start = _BEFORE.search(text, max(0, name.start - 60), name.start) is not None
    to_the_end = _COMMENT.match(text, run.end()) is not None
    if at_start and to_the_end and not name.is_short and match["sign"] in (":", "：", "=", ":=", "?="):
        return _span_if_secret(run, name, is_strict=_among_settings(text, name.start, run.end()), is_line=True)
    if text[run.end() : run.end() + 1] in ("(", "[") or (not prose and name.of_password and reads_as_words(run[0])):
        return []
    if name.is_short:
        if (
            not prose
            and name.text.lower() == "pass"
            and match["joint"].endswith(": ")
            and not _is_of_login(text, name, run)
        ):
            return []  # the result of a test
        return _span_if_secret(run, name, is_strict=False, is_line=True) if is_random_token(run[0], 10) else []
    return _span_if_secret(run, name, is_strict=False, is_line=tight)


def _is_of_login(text: str, name: Name, run: re.Match[str]) -> bool:
    """Return whether the lines nearby are settings of an account."""
    return name.text != "PASS" and _LOGIN.search(text, max(0, name.start - 200), run.end() + 200) is not None


def _span_if_secret(
    run: re.Match[str] | None, name: Name, *, is_strict: bool, is_line: bool = False
) -> list[tuple[int, int]]:
    if run is None:
        return []
    value = strip_sentence_end(_NEXT_OF_URL.split(run[0], maxsplit=1)[0])
    secret = COVER in value or (
        not is_placeholder(value, name.text, in_code=is_line or not is_strict)
        and _is_bare_secret(value, name, is_strict=is_strict, is_line=is_line)
    )
    return [(run.start(), run.start() + len(value))] if secret else []


def _is_bare_secret(value: str, name: Name, *, is_strict: bool, is_line: bool) -> bool:
    if not name.of_password:
        return is_random_key(name, value) or (is_strict and not is_line and is_phrase(value))
    if value.isdigit():
        return (is_strict or is_line) and not name.is_short and len(value) >= _LEAST_DIGITS
    if is_strict:
        return len(value) >= _LEAST_OF_PASSWORD and _has_letters(value) and (not name.is_short or is_chosen(value))
    if is_line:
        return is_chosen(value) or is_phrase(value)
    return is_mixed(value)


def is_random_key(name: Name, value: str) -> bool:
    """Return whether a value is random enough for a key of this name. Most session ids are names, not secrets."""
    if name.of_hash:
        return is_digest(value)
    small = name.text.lower()
    if small.endswith(_ANY_KEY) and not any(hint in small for hint in HINTS if hint not in _ANY_KEY):
        return len(value) >= _LEAST_OF_ANY_KEY and is_cipher_key(value)
    if "session" not in small or "token" in small or small.endswith(_ANY_KEY):
        return is_random_token(value) or (
            small not in ("secret", "credential", "token") and is_phrase(value, 4, of_key=True)
        )
    return is_random_token(value, 20) and "-" not in value and sum(c.isdigit() for c in value) >= 4


def strip_sentence_end(value: str) -> str:
    """Return a value without the marks that end a sentence; Chinese characters after it belong to the sentence too."""
    bare = value.rstrip(_MARKS) or value
    return _SCRIPT.split(bare, maxsplit=1)[0]


def _has_letters(value: str) -> bool:
    return sum(c.isalpha() for c in value) >= 2


def _among_settings(text: str, start: int, end: int) -> bool:
    """Return whether adjacent lines are settings, not code."""
    begin = text.rfind("\n", max(0, start - 400), start) + 1
    above = text[max(0, begin - 400) : begin].rstrip().rsplit("\n", 1)[-1]
    below = text[end : end + 400].split("\n", 2)[1:2]
    beside = [line for line in (above, *below) if line.strip()]
    return bool(beside) and any(_SETTING.match(line) for line in beside) and not any(map(_CODE_LINE.search, beside))


HINTS = (*word_list("names of passwords"), *word_list("names of keys"))
"""Every name of a secret contains one of these, in lower case."""
PASSWORD_HINTS = frozenset(word_list("names of passwords"))

_SHORT = ("pw", "pass", "psk", "psw", "mdp")
_ENDS_NAME = ("_pass", "-pass", ".pass", "_psk", "-psk", ".psk")
_ABOUT_BEFORE = re.compile(
    rf"(?i)(?:^|[_.\[-])(?:{any_of('before a name of something else')})[_.-]?\Z"
    r"|(?:page|sync|continuation|resume|cancell?ation|idempotency|client_?request)_?\Z|^(?-i:Client)\Z"
)
_DONE_BEFORE = re.compile(rf"(?i)(?:^|[_.\[-])(?:{any_of('before a name about passwords')})[_.-]?\Z")
_OTHER_KEY = re.compile(rf"(?i)(?:^|[_.\[-]|(?<=[a-z])(?=[A-Z]))(?:{any_of('keys of something else')})s?[_.-]?\Z")
_ANY_KEY = ("_key", "-key")
"""Ends of names that may also denote database keys. The value must be as long and mixed as a cipher key."""
_LEAST_OF_ANY_KEY = 32
_ABOUT_AFTER = re.compile(f"(?i){any_of('after a name of something else')}")


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a text, from `start` to `end`, of a password chosen by a person or of a random key."""

    start: int
    end: int
    text: str
    of_password: bool
    is_short: bool
    """`pass` and `pw` alone are also words, and results of tests."""
    of_hash: bool = False
    """The value is a hash of a password, which can be cracked offline."""


_BACK = re.compile(r"[\w.\[\]-]{0,60}")
"""The beginning of a name, read backwards."""
_REST = re.compile(r"[A-Za-z0-9_-]{0,40}")
_HASH_AFTER = re.compile(r"(?i)s?[ _.-]?(?:hash(?:es|[ _-]?value|wert)?|digest|md5|sha\d{0,3})(?![A-Za-z0-9_-])")
_HASHED_BEFORE = re.compile(r"(?i)(?:^|[_.\[-])hash(?:ed)?[_.-]?\Z")
_ENDING = re.compile(r"[^\W\d_\u0e00-\u0eff\u2e80-\uffff]{0,3}")
_IDEOGRAPH = "\u2e80"


def name_at(text: str, at: int, hint: str) -> Name | None:
    """Return the name with a hint at `at`; None if it is covered, or not the name of a secret."""
    end = at + len(hint)
    if text[at:end].lower() != hint:
        return None  # covered
    rest = (_REST if hint.isascii() else _ENDING).match(text, end) if hint < _IDEOGRAPH else None
    after = rest[0] if rest else ""
    back = _BACK.match(text[max(0, at - 60) : at][::-1]) if hint.isascii() else None
    before = back[0][::-1] if back else ""
    start = at - len(before)
    if hint in PASSWORD_HINTS and (hashed_to := _end_of_hash_name(text, before, end)):
        return Name(start, hashed_to, text[start:hashed_to], of_password=False, is_short=False, of_hash=True)
    is_short = hint in _SHORT
    if is_short and (after or before.strip("-[].")):
        return None  # many words contain these
    if hint in _ENDS_NAME and after.strip("0123456789"):
        return None  # pass_through
    if text[at - len(before) - 2 : at - len(before)] == "::" or (
        text[at - 1 : at] == ":" and text[at - 2 : at - 1].isalnum() and hint != "password"
    ):
        return None  # a path with colons, as in an ARN
    if (after and _ABOUT_AFTER.search(after)) or (before and _ABOUT_BEFORE.search(before.rstrip("["))):
        return None
    if before and _DONE_BEFORE.search(before.rstrip("[")) and (hint in PASSWORD_HINTS or text.startswith("(", end)):
        return None  # a function or a page; `reset_token` has a random value
    if hint == "token" and after[:1] in ("s", "i"):
        return None
    if hint in _ANY_KEY and (after or not before or _OTHER_KEY.search(before)):
        return None
    return Name(
        start=start,
        end=end + len(after),
        text=text[start : end + len(after)],
        of_password=hint in PASSWORD_HINTS,
        is_short=is_short,
    )


def _end_of_hash_name(text: str, before: str, end: int) -> int | None:
    """Return the end of the name of a password's hash (`password_hash`, `hashedPassword`); None for another name."""
    after = _HASH_AFTER.match(text, end)
    if after is not None:
        return after.end()
    rest = _REST.match(text, end)
    return end if _HASHED_BEFORE.search(before) and rest is not None and not rest[0] else None
