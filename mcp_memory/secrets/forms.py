"""Keys and tokens whose form their makers publish: how each begins, and what its body is made of.

Forms are from the documentation of each service and from the public rules of gitleaks and detect-secrets, read in
November 2026. A form whose beginning is also an ordinary word asks more of its body: a digit, or a length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["FORMS", "Form"]

_BODY = r"[A-Za-z0-9_-]"
_HEX = r"[a-f0-9]"
_ALNUM = r"[A-Za-z0-9]"
_WORDS = r"(?:[a-z]+|[0-9]+|v[0-9]+)(?:[-_](?:[a-z]+|[0-9]+|v[0-9]+)){1,20}"
"""Words and numbers that are joined, such as the name of a file or a branch."""


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of key. A text that has none of `hints`, in small letters, has none of these keys.

    The pattern matches from a hint on; its group `shown`, where it has one, stays readable.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


_MIXED = r"(?![$<{\[-])(?=[^\s\"'`<>{}|;]{0,99}\d)(?=[^\s\"'`<>{}|;]{0,99}[A-Za-z])[^\s\"'`<>{}|;]"
"""A value of a command or an element that mixes letters and digits, and is no variable."""

_CHOSEN = r"(?!(?i:your|my[-_]|pass(?:word|wd)?\d{0,3}(?![\w!@#]))|secret(?!\w))"
"""Before a value: nothing that a manual writes in its place."""


def _begins(kind: str, body: str, *prefixes: str, joined: bool = False) -> Form:
    """Return the form of keys with these prefixes. What comes before may be no letter or digit.

    `joined`: nobody begins a word so, and it may be the end of a name such as `notes_ghp_…`.
    """
    heads = "|".join(re.escape(prefix) for prefix in prefixes)
    before = "A-Za-z0-9" if joined else "A-Za-z0-9_"
    # A digit tells a key from words that are joined by dashes; one far behind is of something else.
    pattern = rf"(?<![{before}])(?P<shown>{heads})(?!{_WORDS}(?!{_BODY}))(?={_BODY}{{0,250}}\d){body}"
    return Form(kind, tuple(prefix.lower() for prefix in prefixes), re.compile(pattern))


def _forms() -> Iterator[Form]:
    long, hex32, hex64 = f"{_BODY}{{16,}}", f"{_HEX}{{32}}", f"{_HEX}{{64}}"
    yield _begins("key of a model provider", long, "sk-", "gsk_", "xai-", "pplx-", "r8_", "hf_", "pcsk_", "tvly-")
    yield _begins("key of a model provider", long, "lsv2_pt_", "lsv2_sk_", "nvapi-", "fw_")
    yield _begins(
        "Stripe key",
        long,
        "sk_live_",
        "sk_test_",
        "rk_live_",
        "rk_test_",
        "pk_live_",
        "pk_test_",
        "whsec_",
        joined=True,
    )
    yield _begins("GitHub token", f"{_ALNUM}{{20,}}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", joined=True)
    yield _begins("GitHub token", r"\w{20,}", "github_pat_", joined=True)
    yield _begins("GitLab token", long, "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "gloas-", "glagent-")
    yield _begins(
        "Slack token", f"{_BODY}{{10,}}", "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"
    )
    yield _begins("AWS access key", r"[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA", "ABIA", "ACCA", joined=True)
    yield _begins("Alibaba access key", f"{_ALNUM}{{16,24}}(?![A-Za-z0-9])", "LTAI")
    yield _begins("Tencent access key", f"{_ALNUM}{{32}}(?![A-Za-z0-9])", "AKID")
    yield _begins("Google key", f"{_BODY}{{30,}}", "AIza", "ya29.", joined=True)
    yield _begins("Google key", f"{_BODY}{{24,}}", "GOCSPX-")
    yield _begins("registry token", f"{_ALNUM}{{30,}}", "npm_", "rubygems_", joined=True)
    yield _begins("registry token", long, "pypi-AgE", "dckr_pat_")
    yield _begins("SendGrid key", r"[\w-]{16,}\.[\w-]{16,}", "SG.")
    yield _begins("Twilio key", f"{hex32}(?![A-Za-z0-9])", "SK")
    yield _begins("Mailgun key", f"{hex32}(?![A-Za-z0-9])", "key-")
    yield _begins("Shopify token", f"(?i:{_HEX}){{32}}", "shpat_", "shpca_", "shppa_", "shpss_")
    yield _begins("Square token", f"{_BODY}{{22,}}", "sq0atp-", "sq0csp-", "EAAAE")
    yield _begins("DigitalOcean token", hex64, "dop_v1_", "doo_v1_", "dor_v1_")
    yield _begins("Databricks token", hex32, "dapi")
    yield _begins("Atlassian token", long, "ATATT3", "ATBB", "ATCTT3")
    yield _begins("Hugging Face token", f"{_ALNUM}{{30,}}", "api_org_")
    yield _begins("service token", long, "lin_api_", "ntn_", "PMAK-", "NRAK-", "glsa_", "glc_", "sbp_", "sb_secret_")
    yield _begins("service token", long, "figd_", "sntrys_", "sntryu_", "tskey-", "nfp_", "HRKU-", "CFPAT-", "tfp_")
    yield _begins("service token", long, "pscale_pw_", "pscale_tkn_", "ops_eyJ", "mcm_", "phx_", "dp.pt.", "FlyV1 fm2_")
    yield _begins("Vault token", f"{_BODY}{{20,}}", "hvs.", "hvb.", "hvr.")
    yield _begins("age key", r"[A-Z0-9]{40,}", "AGE-SECRET-KEY-1")
    yield Form(
        "JSON web token",
        ("eyj",),
        re.compile(r"(?<![A-Za-z0-9_-])(?P<shown>eyJ)[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    )
    yield Form(
        "private key",
        ("-----begin",),
        re.compile(
            r"(?P<shown>----)-BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----)){0,20000}-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            # or as much of one as is there
            r"|(?:(?:\s|\\[rn]){1,9}(?:[A-Z][A-Za-z-]{3,20}: [^\n\\]{1,80}|[A-Za-z0-9+/=]{16,}))*)"
        ),
    )
    yield Form(
        "private key",
        ("private-lines:",),  # as PuTTY writes them
        re.compile(
            r"(?P<shown>Private-Lines:) ?\d{1,4}(?:(?:\s|\\[rn]){1,9}[A-Za-z0-9+/=]{16,})+"
            r"(?:(?:\s|\\[rn]){1,9}[A-Za-z0-9+/=]{1,15}(?=(?:\s|\\[rn]){1,9}Private-))?"
        ),
    )
    yield Form(
        "private key",
        ("---- begin ssh2 ",),
        re.compile(
            r"(?P<shown>---)- BEGIN SSH2 [A-Z0-9 ]*PRIVATE KEY ----"
            r"(?:[^-]|-(?!---)){0,20000}---- END SSH2 [A-Z0-9 ]*PRIVATE KEY ----"
        ),
    )
    yield Form(
        "webhook address",
        ("hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        re.compile(r"(?i)(?P<shown>[a-z.]+/(?:services|api/webhooks)/)[\w/-]{20,}"),
    )
    yield Form("Telegram token", (":aa",), re.compile(r"(?<=\d{8})(?P<shown>:AA)[\w-]{32,34}(?![\w-])"))
    yield Form(
        "password in a URL",
        ("://",),
        re.compile(r"(?P<shown>://[^/\s:@\"'<>]{0,80}:)(?!\w*password@|[{$<•*%])[^/\s@\"'<>•]{3,}(?=@[\w.\[-])"),
    )
    yield Form(
        "credentials of a request",
        ("bearer ", "basic ", "token "),
        re.compile(
            r"(?i)(?<![a-z])(?P<shown>(?:bearer|basic|token)\s+)(?![a-z]+(?:[-_.](?:[a-z]+|v?\d+)){0,20}(?![\w.~+/-]))"
            r"(?!your|my[-_])(?=\S*\d)[a-z0-9._~+/-]{16,}={0,2}(?![\w(])"
        ),
    )
    yield Form(
        "password of a command",
        ("--passw", "--passphrase", "--token", "--api-key", "--apikey", "--auth-token"),
        re.compile(
            r"(?P<shown>--(?:password|passwd|passphrase|token|api-?key|auth-token)"
            rf"(?: [\"']?|[\"'],\s{{0,40}}[\"']))(?!(?i:your|my[-_])){_MIXED}{{6,}}"
        ),
    )
    yield Form(
        "password of a command",
        (" -u ", " --user "),
        re.compile(rf"(?P<shown> (?:-u|--user) [\"']?[\w.@-]{{1,60}}:){_MIXED}{{6,}}"),
    )
    yield Form(
        "password of a command",
        ("mysql", "mariadb"),
        re.compile(
            rf"(?P<shown>(?:mysql|mariadb)[\w-]{{0,20}} (?:[^\n|;&`]{{0,200}}? )??-p[\"']?){_CHOSEN}{_MIXED}{{5,}}"
        ),
    )
    yield Form(
        "password of a command",
        ("sshpass ",),
        re.compile(rf"(?P<shown>sshpass (?:-v )?-p ?[\"']?){_CHOSEN}{_MIXED}{{5,}}"),
    )
    yield Form(
        "password of a command",
        ("redis-cli ",),
        re.compile(rf"(?P<shown>redis-cli (?:[^\n|;&`]{{0,200}}? )??(?:-a|--pass) [\"']?){_CHOSEN}{_MIXED}{{5,}}"),
    )
    yield Form(
        "named value",
        ("password>", "passwd>", "passphrase>", "apikey>", "secret>", "token>"),
        re.compile(rf"(?P<shown>[A-Za-z]+>){_MIXED}{{6,120}}(?=</)"),
    )
    yield Form(
        "session cookie",
        ("cookie: ",),
        re.compile(r"(?i)(?P<shown>cookie: [\w.-]{1,60}=)(?=[^\s;]{0,200}\d)[\w%+/=.~-]{16,}"),
    )
    yield Form(
        "signed address",
        ("sig=", "x-amz-signature=", "x-goog-signature="),
        re.compile(r"(?i)(?<=[?&])(?P<shown>[a-z-]+=)(?=[^\s&]{0,200}\d)[\w%+/=-]{40,}"),
    )
    yield Form(
        "registry token",
        ('"auth":',),
        re.compile(r"(?P<shown>\"auth\":\s*\")(?=[^\"]*\d)(?=[^\"]*[A-Z])[A-Za-z0-9+/]{16,}={0,2}(?=\")"),
    )
    yield Form(
        "Azure key", ("accountkey=", "sharedaccesskey="), re.compile(r"(?i)(?P<shown>\w+key=)[a-z0-9+/]{40,}={0,2}")
    )


FORMS = tuple(_forms())
