"""Secrets that are masked, and texts that only look so: `python -m bench.secrets [PATH...] [--each N] [--show N]`

    caught   of invented secrets, one a text, drawn in the forms of their makers and set into what people and
             programs write around them: the share of which no run of eight characters (of a password: all of it)
             stands in the masked text. They are of our own making, so this says that nothing was forgotten, not how
             well unknown ones are known.
    alarms   of the turns of real conversations (a folder with sessions.jsonl.gz) and of agents' runs (a .jsonl.gz):
             the share with anything masked. These sets are public, and hold no secrets but made-up ones.

Beside each stands detect-secrets 1.5 with all its detectors but those of entropy and keywords ("forms"), and with all
but those of entropy ("forms and names").
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import string
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from detect_secrets.core.scan import scan_line  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from detect_secrets.settings import transient_settings  # pyright: ignore[reportMissingTypeStubs]

from mcp_memory.secrets import find, mask
from mcp_memory.text import one_line

__all__ = ["alarms", "caught", "invented"]

FORMS = [
    *("AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "DiscordBotTokenDetector"),
    *("GitHubTokenDetector", "GitLabTokenDetector", "JwtTokenDetector", "MailchimpDetector", "NpmDetector"),
    *("OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector", "SendGridDetector", "SlackDetector"),
    *("SquareOAuthDetector", "StripeDetector", "TelegramBotTokenDetector", "TwilioKeyDetector"),
]
_LETTERS, _HEX = string.ascii_letters + string.digits, "0123456789abcdef"

_AROUND = [
    "{}",
    "use {} for the staging box",
    "export KEY={}",
    'Here it is: "{}". Please keep it safe.',
    "curl https://api.example.org/v1/items -H 'X-Key: {}'",
    "2026-11-22T05:41:00Z DEBUG sending {} to upstream",
    "Das hier ist mein Schlüssel: {}",
    "这是我的密钥：{}",
    '{{"env": {{"KEY": "{}"}}}}',
]
_NAMED = [
    "password: {}",
    'password = "{}"',
    "DB_PASSWORD={}",
    '{{"password": "{}", "user": "ann"}}',
    "my password is {}",
    "Mein Passwort lautet {}",
    "mi contraseña es {}",
    "mot de passe : {}",
    "пароль: {}",
    "密码是{}",
    "パスワードは{}",
    "비밀번호: {}",
    "passphrase: {}",
    "pw: {}",
    "user ann, pass: {}",
    "mysql -u root -p{} shop",
    "mysqldump --password={} shop",
]


def invented(chance: random.Random) -> dict[str, tuple[str, str]]:
    """Return a secret of each kind, and a text that holds it."""

    def of(alphabet: str, length: int) -> str:
        return "".join(chance.choices(alphabet, k=length - 2)) + "7k"

    def card(head: str, length: int, gap: str) -> str:
        digits = head + "".join(chance.choices("0123456789", k=length - 1 - len(head)))
        odd = sum(sum(divmod(int(d) * 2, 10)) for d in digits[::-2]) + sum(int(d) for d in digits[-2::-2])
        digits += str(-odd % 10)
        return gap.join(digits[at : at + 4] for at in range(0, length, 4))

    word = of(_LETTERS + "-_", 40)
    lines = "\n".join(of(_LETTERS, 64) for _ in range(12))
    keys = {
        "OpenAI": f"sk-proj-{of(_LETTERS, 48)}",
        "Anthropic": f"sk-ant-api03-{word}",
        "Hugging Face": f"hf_{of(_LETTERS, 34)}",
        "Groq": f"gsk_{of(_LETTERS, 52)}",
        "GitHub": f"ghp_{of(_LETTERS, 36)}",
        "GitHub, fine": f"github_pat_{of(_LETTERS, 22)}_{of(_LETTERS, 59)}",
        "GitLab": f"glpat-{of(_LETTERS, 20)}",
        "Slack": f"xoxb-{of(string.digits, 12)}-{of(_LETTERS, 24)}",
        "AWS": f"AKIA{''.join(chance.choices(string.ascii_uppercase + '234567', k=15))}7",
        "Google": f"AIza{of(_LETTERS + '-_', 35)}",
        "Google, OAuth": f"ya29.{of(_LETTERS + '-_', 60)}",
        "Stripe": f"sk_live_{of(_LETTERS, 24)}",
        "npm": f"npm_{of(_LETTERS, 36)}",
        "SendGrid": f"SG.{of(_LETTERS, 22)}.{of(_LETTERS, 43)}",
        "Telegram": f"{of(string.digits, 9)[:-1]}19:AA{of(_LETTERS, 33)}",
        "JSON web token": f"eyJ{of(_LETTERS, 33)}.eyJ{of(_LETTERS, 60)}.{of(_LETTERS, 43)}",
        "DigitalOcean": f"dop_v1_{''.join(chance.choices(_HEX, k=63))}7",
        "Shopify": f"shpat_{''.join(chance.choices(_HEX, k=31))}7",
        "Vault": f"hvs.{of(_LETTERS, 90)}",
        "bearer": f"Bearer {of(_LETTERS, 40)}",
        "webhook": f"https://hooks.slack.com/services/T{of(_LETTERS, 8)}/B{of(_LETTERS, 8)}/{of(_LETTERS, 24)}",
        "private key": f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----",
        "private key, PuTTY": f"Private-Lines: 13\n{lines}\n{of(_LETTERS, 8)}\nPrivate-MAC: 7f",
        "key, unseen breaks": f"sk-proj-{chr(0x200B).join(of(_LETTERS, 8) for _ in range(4))}",
        "key, in two lines": f"sk-proj-{of(_LETTERS, 12)}\\\n    {of(_LETTERS, 32)}",
        "card": card(chance.choice(["4", "51", "2221", "6011"]), 16, chance.choice(["", " ", "-", "."])),
        "card, 15 digits": card("37", 15, ""),
    }
    made = {kind: (key, chance.choice(_AROUND).format(key)) for kind, key in keys.items()}
    password = of(_LETTERS, chance.randint(8, 16))
    made["password"] = (password, chance.choice(_NAMED).format(password))
    user = of(_LETTERS, 12)
    made["password in a URL"] = (user, f"postgresql://app:{user}@db.internal:5432/app")
    made["API key"] = (user * 2, f'{chance.choice(["api_key", "apiKey", "client_secret"])}: "{user * 2}"')
    return made


# --- the two measures -------------------------------------------------------------------------------


def caught(each: int, *, seed: int = 0) -> dict[str, dict[str, float]]:
    """Return, by kind and by detector, the share of secrets that are gone."""
    chance = random.Random(seed)
    gone: dict[str, dict[str, int]] = {}
    for _ in range(each):
        for kind, (secret, text) in invented(chance).items():
            left = mask(text)
            seen = {"ours": not _stands(secret, left), "forms": _alarms_by(text, FORMS)}
            seen["forms and names"] = seen["forms"] or _alarms_by(text, ["KeywordDetector"])
            for name, one in seen.items():
                counts = gone.setdefault(kind, {})
                counts[name] = counts.get(name, 0) + one
    return {kind: {name: many / each for name, many in counts.items()} for kind, counts in gone.items()}


def _stands(secret: str, left: str) -> bool:
    """Whether a run of eight characters of the secret that is not its beginning can be read."""
    body = secret[-max(8, len(secret) // 2) :] if "\n" not in secret else secret[40:200]
    return any(body[at : at + 8] in left for at in range(max(1, len(body) - 7)))


def alarms(texts: Sequence[str], alarm: Callable[[str], bool]) -> tuple[int, float]:
    """Return how many of the texts raise an alarm, and the megabytes a second."""
    began = perf_counter()
    many = sum(map(alarm, texts))
    return many, sum(map(len, texts)) / 1e6 / max(perf_counter() - began, 1e-9)


def _alarms_by(text: str, plugins: Sequence[str]) -> bool:
    with transient_settings({"plugins_used": [{"name": name} for name in plugins]}):
        return any(next(iter(scan_line(line)), None) is not None for line in text.splitlines())  # pyright: ignore[reportUnknownArgumentType]


# --- what is read -----------------------------------------------------------------------------------


def _texts(path: Path) -> Iterator[str]:
    file, runs = (path / "sessions.jsonl.gz", False) if path.is_dir() else (path, True)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            value: Any = json.loads(line)
            for turn in value["messages" if runs else "turns"]:
                content = turn["content"]
                if content:
                    yield content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.secrets", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="a retrieval set or a file of runs")
    parser.add_argument("--each", type=int, default=200, help="secrets of each kind")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N false alarms of each set")
    asked = parser.parse_args(arguments)
    print(f"{'caught, of ' + str(asked.each):24}{'ours':>8}{'forms':>8}{'forms and names':>18}")
    for kind, shares in caught(asked.each).items():
        print(f"{kind:24}{shares['ours']:8.1%}{shares['forms']:8.1%}{shares['forms and names']:18.1%}")
    if asked.paths:
        print(f"\n{'alarms, of turns':24}{'turns':>8}{'ours':>9}{'forms':>9}{'forms and names':>18}{'ours MB/s':>11}")
    for path in asked.paths:
        texts = list(_texts(path))
        ours, speed = alarms(texts, lambda text: bool(find(text)))
        forms, _ = alarms(texts, lambda text: _alarms_by(text, FORMS))
        named, _ = alarms(texts, lambda text: _alarms_by(text, [*FORMS, "KeywordDetector"]))
        shares = (f"{many / len(texts):.3%}" for many in (ours, forms, named))
        print(f"{path.name:24}{len(texts):8,}{next(shares):>9}{next(shares):>9}{next(shares):>18}{speed:11.1f}")
        for said, one in ((text, one) for text in texts for one in find(text)) if asked.show else ():
            print(f"    {one.kind}: {one_line(said[max(0, one.start - 60) : one.end + 20], 120)}")


if __name__ == "__main__":
    main(sys.argv[1:])
