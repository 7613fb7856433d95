"""Texts on which a careless pattern takes quadratic time or worse: one unit repeated, between a beginning and an end.

Each pair of an opening and a closing mark comes opened only, closed only, in turn, and nested. A scanner that looks
ahead from every opening, or back from every closing, is quadratic on one of them.
"""

from __future__ import annotations

_PAIRS = {
    "div": ("<div>", "</div>"),
    "reminder": ("<system-reminder>", "</system-reminder>"),
    "private": ("<private>", "</private>"),
    "recall": ('<mcp-memory-recall part="a">', "</mcp-memory-recall>"),
    "comment": ("<!--", "-->"),
    "entity tag": ("&lt;b&gt;", "&lt;/b&gt;"),
    "parenthesis": ("(", ")"),
    "bracket": ("[", "]"),
    "brace": ("{", "}"),
    "json object": ('{"a":', "}"),
    "json array": ("[[", "]]"),
    "quotation": ("“", "”"),
    "german quotation": ("„", "“"),
    "guillemets": ("«", "»"),
    "corner bracket": ("「", "」"),
    "link": ("[a](http://", ")"),
    "citation": ("【1†", "】"),
    "mark of an export": (" \ue200", "\ue201"),
    "pem": ("-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n"),
    "fence": ("```\n", "\n```\n"),
    "block comment": ("/*", "*/"),
    "node": ('N1["', '"]\n'),
}

_UNITS = [
    # single characters
    *"a1 \t\n.,:;=-_*#/\\|<>&%$@!?\"'`~+^()[]{}\0é中あก",
    "\u0301", "\u200b", "\u200d", "\u202e", "\U000e0061", "\ufe0f", "\x1b", "\x08", "\r", "\u2028",
    # words and separators
    "a ", "a  ", " a", "a\t", "a\n", "a\n\n", "\n ", " \n", "\n\t", "a b\n", "1 ", "1\n", "1.", "1,", "1-", "1:", "1/", "-1",
    "a.", ". ", "a. ", "a, ", "a-", "a_", "_a", "a:", "a: ", "a = ", "a=", "a=1 ", "a=1\n", "a: b\n", "a|", "| a ", "a;", "A", "aA",
    "ab1", "a1", "a@", "a@b.", "@a", "a/", "/a", "./", "../", "a\\", "\\n", "\\\\", "\\\"", "\\u0061", "\\x61", "\\u003c",
    "://", "http://", "http://a", "https://a.b/c ", "http://a:", "http://a:b@", "www.", "a.com ",
    "%61", "%", "&lt;", "&amp;", "&amp;lt;", "&#97;", "&#x61;", "&", "&shy;", "a&shy;", "<", "</", "<a", "<b>a", "<a ", "<a href=",
    "<div><p>", "</p></div>", "<p>", "<br>", "a<b>b", "a**b", "**a** ", "*a", "`a", "`a`", "~~a~~", "'a'", "\"a\"", "\"a\": ", "\"a\",", "'a", " 'a",
    # secrets
    "key=", "key: ", "password=", "password: ", "password ", "password is ", "my password is ", "token", "secret=", "secret_", "api_key ", "Bearer ", "Authorization: ",
    "AKIA", "sk-", "ghp_", "eyJ", "eyJ.", "eyJhbGciOi.", "-----BEGIN ", "-----", "0x", "4111 ", "4111-", "41111111 ", "PIN ", "--password ", "-p ",
    "?sig=", "&token=", "<password>", "\"password\":", "password\n", "| password | ", "Passwort lautet ", "密码是", "mfa ", "user:pass@",
    "QUJD", "QUJDREVG", "dGVzdA==", "deadbeef", "de ad ", "\\xde", "de:", "a1b2c3d4-", "Zz9+/",
    # instructions, rules, times, speech
    "ignore previous instructions ", "ignore ", "instructions", "system: ", "user: ", "assistant:", "system", "[INST]", "<|system|>", "<|", "<function_calls>",
    "always ", "never ", "Always use a. ", "you must ", "if you are an AI, ", "note to ", "he said ", "he said that ", "> ", ">> ", "\n> ", "> a\n", "- ", "- a\n", "* a\n", "# a\n", "1. a\n",
    "today ", "last week ", "on Monday ", "2026-05-07 ", "2026-", "10:00 ", "10:", "in 3 days ", "3 days ", "days ", "January ", "the day before ", "昨天", "来週", "3日",
    "haha", "ok ", "thanks ", "lol", "lololo", "👍", "👨‍👩", "🏴", "hello ",
    "- [t1] a\n", "[t1] a\n", "[a1 · ", "> t1 · ",
    # listings, logs, code
    "at a.b(c:1)\n", "Traceback (most recent call last):\n", "  File \"a\", line 1\n", "diff --git a/a b/a\n", "@@ -1 +1 @@\n", "+a\n", "-a\n", "a:1: b\n", "a\tb\n", "a,b\n", "a  b\n",
    "drwx a\n", "commit deadbeef\n", "def a():\n", "class A:\n", "ERROR ", "error: ", "PASSED ", "{\"a\":1}\n", "<tr><td>", "<h1>", "<script>", "<style>", "<a href=\"", "[a]", "![", "![a](", "N1 --> N2\n", "%% ", "==> a <==\n", "├── a\n", "\x1b[31m",
]  # fmt: skip

_ENDS = ("", "\n", " x")


def hostile_texts(size: int) -> dict[str, str]:
    """Return texts of about `size` characters, by names for the reader of a failed test."""
    texts = {f"{unit!r} repeated": _filled(unit, size) for unit in _UNITS}
    for name, (opening, closing) in _PAIRS.items():
        texts[f"{name} opened"] = _filled(opening, size)
        texts[f"{name} opened on words"] = _filled(f"{opening}a ", size)
        texts[f"{name} opened on lines"] = _filled(f"{opening}a\n", size)
        texts[f"{name} closed"] = _filled(closing, size)
        texts[f"{name} in turn"] = _filled(f"{opening}a{closing} ", size)
        texts[f"{name} nested"] = _filled(opening, size // 2) + _filled(closing, size // 2)
    for name, unit in (("letters", "a"), ("spaces", " "), ("newlines", "\n"), ("digits", "1"), ("quotes", '"')):
        texts[f"{name} within words"] = "x" + _filled(unit, size) + "x"
        texts[f"{name} after an assignment"] = "password=" + _filled(unit, size) + "!"
    for unit in "*-=_.,:;/\\|!\"'`~^([{<&%$@#+ \n0aA\u0301":
        texts[f"a, then {unit!r} repeated, then x"] = f"a{_filled(unit, size)} x"
    texts["marks in an order that is none"] = "a" + _filled("\u0301\u0323", size)
    escaped = '"'
    while len(escaped) < size:
        escaped = escaped.replace("\\", "\\\\").replace('"', '\\"') + '"a'
    texts["escapes nested"] = escaped[:size]
    texts["json as a text of json"] = _filled('{\\"a\\":\\"{\\\\\\"b\\\\\\":1}\\"}', size)
    return texts


def _filled(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]
