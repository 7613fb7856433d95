"""Keys and tokens whose form their makers publish: how each begins, and what its body is made of.

Forms are from the documentation of each service and from the public rules of gitleaks and detect-secrets, read in
November 2026; what gitleaks knows besides is in `published`. A body of letters alone must not read as words: many a
prefix is also the beginning of a name.

Keys by the rules of gitleaks: `published.json`, which `scripts/refresh_published_keys.py` takes from its repository.

Each pattern begins with a prefix that only its maker uses, so nothing else needs to be known of the text around it.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

from mcp_memory.core.secrets.values import is_drawn, is_given, is_mixed, is_phrase, reads_as_words, stands_for_another

_BODY = r"[A-Za-z0-9_-]"
_HEX = r"[a-f0-9]"
_ALNUM = r"[A-Za-z0-9]"
_NAME_AND_PASSWORD = re.compile(rb"[\x21-\x7e]{1,200}:[\x20-\x7e]{2,200}")
_PART = r"(?:[a-z]{1,14}\d{0,5}|[0-9]{1,8}[a-z]{0,2}|v[0-9]+)"
_WORDS = rf"{_PART}(?:[-_]{_PART}){{1,20}}"
"""Words and numbers that are joined, such as the name of a file or a branch."""


@dataclass(frozen=True)
class Form:
    """A kind of key. A text that has none of `hints`, in small letters, has none of these keys.

    The pattern matches from `back` characters before a hint on. Its group `shown`, where it has one, stays readable;
    else the hint, where the match begins with it. `takes` looks at the rest of the match, where a pattern cannot tell.
    """

    kind: str
    hints: tuple[str, ...]
    source: str
    takes: Callable[[str], bool] | None = None
    back: int = 0
    begins: bool = False
    """Whether the hint is how a key begins, which also stands by chance in data that is encoded."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)

    def match(self, text: str, at: int, hint: str) -> tuple[int, int] | None:
        """Return from where to where a key is to be masked whose hint is at `at`; None where there is none."""
        found = self.pattern.match(text, at - self.back) if at >= self.back else None
        if found is None or (self.begins and (found[0].endswith("EXAMPLE") or _is_encoded(text, at, at + len(hint)))):
            return None
        start = found.start()
        if "shown" in self.pattern.groupindex:
            start = found.end("shown")
        elif not self.back:
            start += len(hint)
        return (start, found.end()) if self.takes is None or self.takes(text[start : found.end()]) else None


def _is_key(body: str) -> bool:
    return any(c.isdigit() for c in body[:300]) or not reads_as_words(body[:300])


def _is_value(value: str) -> bool:
    return not stands_for_another(value)


_MARKERS = re.compile(r"-{1,5}(?:BEGIN|END)[^-\n]{0,60}-{3,5}|[^\S\n]*[A-Z][A-Za-z-]{2,20}: [^\n]*")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{16}")


def _is_key_body(text: str) -> bool:
    """Tell whether the lines of a key stand behind its first one, and no code or talk about such lines."""
    body = _MARKERS.sub("", text)
    return (
        _ENCODED.search(body) is not None
        or (not body.strip(" -\\nr\n\t\"'") and "END" in text[5:])
        or (len(body.split()) == 1 and body.strip().isalnum())
    )


def _says_private(text: str) -> bool:
    try:
        return b"PRIVATE KEY" in b64decode(text[:80], validate=True)
    except (NoBase64, ValueError):
        return False


def _is_password(value: str) -> bool:
    return is_given(value) and not stands_for_another(value)


def _is_credential(value: str) -> bool:
    """Tell whether what stands behind `Basic` or `Bearer` is one: drawn, or a name and a password in base64."""
    if stands_for_another(value):
        return False
    if is_drawn(value, 16) or is_phrase(value, 4):
        return True
    try:
        return _NAME_AND_PASSWORD.fullmatch(b64decode(value, validate=True)) is not None
    except (NoBase64, ValueError):
        return False


_HASH = re.compile(r"(?i)(?<![a-z])(?:sha-?\d{1,3}|md5|blake\w{1,3})[=:-][\w+/-]{0,90}\Z")
_WRAPPED = re.compile(r"[A-Za-z0-9+/]{60,}\r?\n[A-Za-z0-9+/]{0,80}\Z")
_ENCODED_LINE = re.compile(r"[A-Za-z0-9+/]{40,}")
_RUN = re.compile(r"[\w+/-]{16,}[+/_-]\Z", re.ASCII)
_LONG_HINT = 5


def _is_encoded(text: str, start: int, end: int) -> bool:
    """Tell whether the beginning of a key stands inside a hash or other data in base64.

    A long beginning with a mark in it does not come up there by chance.
    """
    if _HASH.search(text, max(0, start - 100), start):
        return True
    hint = text[start:end]
    if len(hint) >= _LONG_HINT and not hint.isalnum():
        return False
    wrapped = _WRAPPED.search(text, max(0, start - 170), start) if hint.isalnum() else None
    if wrapped and _ENCODED_LINE.match(text, wrapped.end() - len(wrapped[0].rpartition("\n")[2])):
        return True
    run = _RUN.search(text, max(0, start - 60), start)
    if run is None or run[0].islower() or run[0].isupper():
        return False
    return "+" in run[0] or (any(map(str.isdigit, run[0])) and not reads_as_words(run[0]))


_COMMANDS = (
    (
        ("docker login ", "podman login ", "registry login ", "az login "),
        r"(?:docker|podman|registry|az) login",
        r"-p[ =]",
    ),
    (("mongo", "twine upload "), r"(?:mongo\w{0,10}|twine upload)", r"-p[ ]"),
    (("zip ", "unzip "), r"(?:un)?zip", r"-P[ ]?"),
    (("sqlcmd ", "mosquitto_"), r"(?:sqlcmd|mosquitto_[a-z]{2,6})", r"-P[ ]?"),
    (("xfreerdp",), r"xfreerdp\d?", r"/p:"),
    (("psexec",), r"psexec(?:64)?(?:\.exe)?", r"-p[ ]"),
    (("plink ", "pscp "), r"(?:plink|pscp)", r"-pw[ ]"),
    (("keytool ",), r"keytool", r"-(?:src|dest)?(?:store|key)pass[ ]"),
    (("gh secret set ",), r"gh secret set", r"(?:--body|-b)[ =]"),
    (("htpasswd ",), r"htpasswd (?:-\w+ )*-\w*b\w*(?: -\w+){0,4} [^\s-]\S{0,200}", r"\S{1,60}[ ]"),
    (
        ("mc alias set ", "mc config host add "),
        r"mc (?:alias set|config host add) \S{1,60} https?://\S{1,200}",
        r"\S{3,80}[ ]",
    ),
    (("rabbitmqctl ",), r"rabbitmqctl", r"(?:add_user|change_password)[ ]\S{1,60}[ ]"),
    (("rclone obscure ",), r"rclone", r"obscure[ ]"),
)
"""Programs that take a password as an argument: hints, the command, and the option before the password."""

_TAKEN = r"[^\s\"'`<>{}|;&()$\\]"
"""A character of a value that a command takes."""


def _begins(kind: str, body: str, *prefixes: str, joined: bool = False) -> Form:
    """Return the form of keys with these prefixes. What comes before may be no letter or digit.

    `joined`: nobody begins a word so, and it may be the end of a name such as `notes_ghp_…`.
    """
    heads = "|".join(re.escape(prefix) for prefix in prefixes)
    before = "A-Za-z0-9" if joined else "A-Za-z0-9_"
    pattern = rf"(?<![{before}])(?P<shown>{heads})(?!{_WORDS}(?!{_BODY})){body}"
    return Form(kind, tuple(prefix.lower() for prefix in prefixes), pattern, _is_key, begins=True)


def _forms() -> Iterator[Form]:
    long, hex32 = f"{_BODY}{{16,}}", f"{_HEX}{{32}}"
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
    yield _begins("Notion token", f"{_ALNUM}{{40,}}(?![A-Za-z0-9])", "secret_")
    yield _begins("Sonar token", f"{_ALNUM}{{40}}(?![A-Za-z0-9])", "squ_", "sqp_", "sqa_")
    yield _begins("Pulumi token", f"{_ALNUM}{{40}}(?![A-Za-z0-9])", "pul-")
    yield _begins("Artifactory key", f"{_ALNUM}{{58,}}", "AKCp", "cmVmd")
    yield _begins("Twilio key", f"{hex32}(?![A-Za-z0-9])", "SK")
    yield _begins("Mailgun key", f"{hex32}(?![A-Za-z0-9])", "key-")
    yield _begins("Shopify token", f"{_ALNUM}{{32}}", "shpat_", "shpca_", "shppa_", "shpss_")
    yield _begins("Square token", f"{_BODY}{{22,}}", "sq0atp-", "sq0csp-", "EAAAE")
    yield _begins("DigitalOcean token", f"{_ALNUM}{{64}}", "dop_v1_", "doo_v1_", "dor_v1_")
    yield _begins("Databricks token", f"{hex32}(?![A-Za-z0-9])", "dapi")
    yield _begins("Atlassian token", long, "ATATT3", "ATBB", "ATCTT3")
    yield _begins("Hugging Face token", f"{_ALNUM}{{30,}}", "api_org_")
    yield _begins("service token", long, "lin_api_", "ntn_", "PMAK-", "NRAK-", "glsa_", "glc_", "sbp_", "sb_secret_")
    yield _begins("service token", long, "figd_", "sntrys_", "sntryu_", "tskey-", "nfp_", "HRKU-", "CFPAT-", "tfp_")
    yield _begins("service token", long, "pscale_pw_", "pscale_tkn_", "ops_eyJ", "mcm_", "phx_", "dp.pt.")
    yield _begins("service token", f"{_ALNUM}{{32,}}", "vcp_", "vci_", "vca_", "vcr_", "vck_", "napi_")
    yield _begins(
        "service token",
        rf"(?:[a-z0-9_-]{{2,35}}\.)?{_ALNUM}{{40,44}}(?!{_BODY})",
        *(f"dp.{kind}." for kind in ("st", "ct", "sa", "scim", "audit")),
    )
    yield _begins("Google key", f"{_BODY}{{60,}}", "1//0")
    yield _begins("Dropbox token", rf"(?:u\.)?{_BODY}{{120,}}", "sl.")
    yield _begins("ElevenLabs key", f"{_HEX}{{48}}(?!{_BODY})", "sk_")
    yield _begins("Resend key", rf"(?=\w*\d){_ALNUM}{{8}}_{_ALNUM}{{24}}(?!{_BODY})", "re_")
    yield _begins("LaunchDarkly key", f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?!{_BODY})", "sdk-")
    yield _begins("registry token", rf"(?<![+/]cio)(?=\w*\d)(?=\w*[A-Z]){_ALNUM}{{32}}(?![A-Za-z0-9_+/=-])", "cio")
    yield _begins(
        "service token", long, "CCIPAT_", "CCIPRJ_", "bkua_", "bkagt_", "dckr_oat_", "cio_", "rnd_", "tr_dev_"
    )
    yield _begins("Vault token", f"{_BODY}{{20,}}", "hvs.", "hvb.", "hvr.")
    yield _begins("age key", r"[A-Z0-9]{40,}", "AGE-SECRET-KEY-1")
    yield Form(
        "JSON web token",
        ("eyj",),
        (r"(?<![A-Za-z0-9_-])(?P<shown>eyJ)[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    )
    header = r"[A-Z][A-Za-z-]{2,20}: [^\n\\]{1,80}"
    yield Form(
        "private key",
        ("-----begin",),
        r"(?P<shown>----)-BEGIN [A-Z0-9 ]*(?:PRIVATE KEY(?: BLOCK)?|(?:OpenVPN )?Static key V1)-----"
        rf"(?:(?:{header}|[A-Za-z0-9+/=\s\\.,:;|>→•*#'\"-](?<!----)){{0,20000}}?"
        r"-----END [A-Z0-9 ]*(?:PRIVATE KEY(?: BLOCK)?|(?:OpenVPN )?Static key V1)-----"
        # or as much of one as is there
        rf"|(?:(?:\s|\\[rn]){{1,9}}(?:{header}|[A-Za-z0-9+/=]{{16,}}))*)",
        _is_key_body,
    )
    yield Form(
        "private key",
        ("ls0tls1crudjti",),  # the same in base64
        r"(?P<shown>LS0tLS1CRUdJTi)[A-Za-z0-9+/=]{20,}",
        lambda rest: _says_private("LS0tLS1CRUdJTi" + rest),
    )
    yield Form(
        "private key",
        ("private-lines:",),  # as PuTTY writes them
        (
            r"(?P<shown>Private-Lines:) ?\d{1,4}(?:(?:\s|\\[rn]){1,9}[A-Za-z0-9+/=]{16,})+"
            r"(?:(?:\s|\\[rn]){1,9}[A-Za-z0-9+/=]{1,15}(?=(?:\s|\\[rn]){1,9}Private-))?"
        ),
    )
    yield Form(
        "private key",
        ("---- begin ssh2 ",),
        (
            r"(?P<shown>---)- BEGIN SSH2 [A-Z0-9 ]*PRIVATE KEY ----"
            r"(?:[^-]|-(?!---)){0,20000}---- END SSH2 [A-Z0-9 ]*PRIVATE KEY ----"
        ),
    )
    yield Form(
        "webhook address",
        ("hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        (r"(?i)(?P<shown>[a-z.]+/(?:services|api/webhooks)/)[\w/-]{20,}"),
    )
    yield Form("Telegram token", (":aa",), (r"(?a)(?<=\d{8})(?P<shown>:AA)[\w-]{32,34}(?![\w-])"))
    yield Form(
        "password in a URL",
        ("://",),
        r"(?P<shown>://[^/\s:@\"'<>]{0,80}:)[^/\s@\"'<>•]{3,}(?=@[\w.\[-])",
        _is_value,
    )
    yield Form(
        "credentials of a request",
        ("bearer ", "basic ", "token ", "ssws ", "apikey ", "api-key ", "geniekey ", "splunk "),
        r"(?i)(?<![a-z])(?P<shown>(?:bearer|basic|token|ssws|api-?key|geniekey|splunk)\s+)[a-z0-9._~+/-]{8,}={0,2}(?![\w(])",
        _is_credential,
    )
    yield Form(
        "credentials of a request",
        ("authorization",),
        r"(?i)(?P<shown>authorization[\\\"']{0,4}[ ]?[:=][ ]?[\\\"']{0,4}"
        r"(?:[a-z][a-z0-9_-]{1,20}[ ]{1,3}(?:[a-z]+=\"?)?)?)"
        r"[a-z0-9._~+/:-]{12,}={0,2}(?![\w(]|[ ]Credential)",
        lambda value: _is_credential(value) or (len(value) >= 16 and value.isalnum() and not reads_as_words(value)),
    )
    for hints, command, option in _COMMANDS:
        yield Form(
            "password of a command",
            hints,
            rf"(?i)(?<![A-Za-z0-9_.-])(?P<shown>{command}(?:[ ][^\n|;&`,]{{0,200}}?)??[ ]"
            rf"(?-i:{option})(?P<quote>[\"'])?)"
            rf"(?(quote)[^\"'\n]{{4,200}}|(?!-){_TAKEN}{{6,}})",
            _is_password,
        )
    command = rf"{_TAKEN}{{6,}}"
    yield Form(
        "password of a command",
        (" -u ", " --user ", " -u'", ' -u"'),
        rf"(?P<shown> (?:-u|--user) ?[\"']?[\w.@-]{{1,60}}:){command}",
        lambda value: is_mixed(value) and _is_value(value),
    )
    yield Form(
        "password of a command",
        ('"-u",', '"--user",', "'-u',", "'--user',"),
        rf"(?P<shown>[\"'](?:-u|--user)[\"'],\s{{0,40}}[\"'][\w.@-]{{1,60}}:){command}",
        _is_value,
    )
    yield Form(
        "password of a command",
        ("curl ", "wget ", "http "),
        r"(?P<shown>(?:curl|wget|http) (?:[^\n|;`]{0,200}? )??(?:-u|--user|-a|--auth) ?[\"']?[\w.@-]{1,60}:)" + command,
        _is_value,
    )
    yield Form(
        "password of a command",
        ("mysql", "mariadb"),
        rf"(?P<shown>(?:mysql|mariadb)[\w-]{{0,20}} (?:[^\n|;&`]{{0,200}}? )??-p[\"']?)"
        rf"(?![a-z]+-(?!(?:[a-z]+-){{2}}[a-z])){command}",
        _is_password,
    )
    yield Form(
        "password of a command",
        ("-passin ", "-passout ", "pass:"),
        rf"(?P<shown>(?:-passin|-passout|-k)[ ]+[\"']?pass:){command}",
        _is_value,
    )
    yield Form(
        "password of a command",
        ("7z ", "7za ", "ldapsearch ", "ldapadd ", "ldapmodify ", "useradd ", "smbclient ", "ipmitool "),
        r"(?P<shown>(?:7za? (?:[^\n|;]{0,200} )?-p|ldap\w+ (?:[^\n|;]{0,200} )?-w ?[\"']?"
        r"|useradd (?:[^\n|;]{0,200} )?-p [\"']?|ipmitool (?:[^\n|;]{0,200} )?-P [\"']?"
        r"|smbclient (?:[^\n|;]{0,200} )?-U [\"']?[\w.\\-]{1,60}%))" + command,
        _is_password,
    )
    yield Form(
        "password of a command",
        ("echo ", "printf "),
        r"(?P<shown>(?:echo|printf)(?: -n)? [\"']?(?:[\w.-]{1,60}:)?)"
        r"[^\s\"'|$]{6,200}(?=[\"']?(?:\\n)?[\"']?[ ]*\|[ ]*(?:sudo )?"
        r"(?:chpasswd|docker login|[\w/ -]{1,40}--password-stdin))",
        _is_value,
    )
    yield Form(
        "password of a command",
        ("/user:", "sqlplus ", "jdbc:oracle:thin:"),
        r"(?i)(?P<shown>(?:/user:[\w\\.-]{1,60}[ ]|sqlplus (?:-\w+ )*\w{1,40}/|jdbc:oracle:thin:\w{1,40}/)[\"']?)"
        r"[^\s\"'@/<>{}$]{6,200}",
        _is_password,
    )
    yield Form(
        "password in an address",
        ("https://", "http://"),
        r"(?P<shown>https?://)[A-Za-z0-9_-]{16,255}(?=@(?:github|gitlab|bitbucket|dev\.azure|[\w-]+\.\w))",
        lambda value: is_drawn(value, 16),
    )
    yield Form(
        "password of a program",
        ("basicauth(", "networkcredential(", "auth=(", "auth = (", "login("),
        r"(?i)(?P<shown>(?:basicauth|networkcredential|auth\s?=\s?|login)\(\s?[\"'][^\"'\n]{1,60}[\"'],\s?[\"'])[^\"'\n]{4,200}",
        _is_password,
    )
    yield Form(
        "password of a program",
        ("convertto-securestring ", "identified by ", "identified with "),
        r"(?i)(?P<shown>(?:ConvertTo-SecureString (?:-String )?"
        r"|identified (?:with \S{1,40} )?(?:by|as) (?:password )?)[\"'])"
        r"[^\"'\n]{4,200}",
        _is_value,
    )
    yield Form(
        "password of a command",
        ("sshpass ",),
        rf"(?P<shown>sshpass (?:-v )?-p ?(?P<quote>[\"'])?)(?(quote)[^\"'\n]{{6,200}}|{command})",
        _is_value,
    )
    yield Form(
        "password of a command",
        ("redis-cli ",),
        rf"(?P<shown>redis-cli (?:[^\n|;&`]{{0,200}}? )??(?:-a|--pass) [\"']?){command}",
        _is_value,
    )
    yield Form(
        "named value",
        ("password>", "passwd>", "passphrase>", "apikey>", "secret>", "token>", "pwd>"),
        r"(?P<shown>[A-Za-z]+>)[^<>{}$\n]{4,200}(?=</)",
        lambda value: _is_password(value) and (len(value.split()) == 1 or is_phrase(value, 4)),
    )
    yield Form(
        "session cookie",
        ("cookie: ",),
        r"(?i)(?P<shown>cookie: [\w.-]{1,60}=)[\w%+/=.~-]{16,}",
        lambda value: is_drawn(value, 16) or not reads_as_words(value),
    )
    yield Form(
        "signed address",
        ("sig=", "x-amz-signature=", "x-goog-signature="),
        r"(?i)(?<=[?&])(?P<shown>[a-z-]+=)(?=[^\s&]{0,200}\d)[\w%+/=-]{40,}",
    )
    yield Form(
        "registry token",
        ('"auth":', "_auth=", "_authtoken=", "_password="),
        r"(?P<shown>(?:\"auth\":\s*\"|_(?:auth|authToken|password)=[\"']?))[A-Za-z0-9+/._-]{8,}={0,2}",
        _is_credential,
    )
    yield Form("Azure key", ("accountkey=", "sharedaccesskey="), r"(?i)(?P<shown>\w+key=)[a-z0-9+/]{40,}={0,2}")
    yield Form(
        "Azure client secret",
        ("q~",),
        r"(?a)(?<![\w~.-])[\w.~-]{3}\dQ~[\w~.-]{31,40}",
        back=4,
    )
    yield Form("Terraform token", (".atlasv1.",), r"(?a)(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}", back=14)
    yield Form("Discord token", (".g",), r"(?a)(?<![\w.])[MNO][\w-]{23,27}\.G[\w-]{5}\.[\w-]{27,40}", back=24)
    yield Form("Discord token", (".g",), r"(?a)(?<![\w.])[MNO][\w-]{23,27}\.G[\w-]{5}\.[\w-]{27,40}", back=26)
    yield Form("Asana token", ("1/",), r"(?a)(?<![\w/])(?P<shown>1/)\d{12,20}:[a-f0-9]{32}(?!\w)")
    yield Form("MaxMind key", ("_mmk",), r"(?a)(?<![A-Za-z0-9])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\w)", back=36)
    yield Form("Mailchimp key", ("-us",), r"(?a)(?<![A-Za-z0-9])[a-z0-9]{32}-us\d{1,2}(?!\w)", back=32)
    yield Form(
        "HubSpot token",
        ("pat-na", "pat-eu", "pat-ap"),
        r"(?a)(?<![\w-])(?P<shown>pat-(?:na|eu|ap)\d-)[A-Za-z0-9]{8}(?:-?[A-Za-z0-9]{4}){3}-?[A-Za-z0-9]{12}(?!\w)",
    )
    yield Form("Airtable token", ("pat",), r"(?a)(?<![\w-])(?P<shown>pat)[A-Za-z0-9]{14}\.[A-Za-z0-9]{40,}(?!\w)")
    yield Form("Mapbox token", ("sk.", "pk.", "tk."), r"(?a)(?<![\w.])(?P<shown>[spt]k\.)ey[\w-]{20,}\.[\w-]{20,}")
    yield Form("Mapbox token", ("sk.",), r"(?a)(?<![\w.])(?P<shown>sk\.)[A-Za-z0-9]{50,}\.[\w-]{20,24}(?!\w)")
    yield Form("Dynatrace token", ("dt0",), r"(?a)(?<![\w.])(?P<shown>dt0[a-z]\d\d\.)[A-Z0-9a-z]{24}\.[A-Za-z0-9]{60,}")
    yield Form(
        "Fly token", ("fm2_", "fm1r_", "fm1a_", "fo1_"), r"(?a)(?<!\w)(?P<shown>fm2_|fm1[ar]_|fo1_)[\w+/-]{40,}={0,3}"
    )


FORMS = tuple(_forms())


@cache
def forms() -> tuple[Form, ...]:
    """Return all forms of keys: those written here, then those that gitleaks knows. Read once (1 ms)."""
    text = (resources.files("mcp_memory.core.secrets") / "published.json").read_text(encoding="utf-8")
    published = (
        Form(rule["id"].replace("-", " "), tuple(rule["hints"]), "(?a)" + rule["pattern"], begins=True)
        for rule in json.loads(text)["forms"]
    )
    return (*FORMS, *published)
