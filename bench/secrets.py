"""Measures masking of secrets, and false alarms: `python -m bench.secrets [PATH...] [--each N] [--show N]`

    drawn    secrets in the formats of their issuers and in the places where programs keep them, in typical
             surroundings, drawn in four alphabets (mixed, letters, digits, words): the share that is masked, as tool
             results.
    told     secrets in text that people write, as messages.
             Both are invented, so they show that no known form was forgotten, not how well unknown ones are found.
    alarms   the share of real conversation turns (a folder with sessions.jsonl.gz) and of messages of agent runs (a
             .jsonl.gz) with anything masked, each as a message or a tool result. These sets are public, and contain
             only made-up secrets. Then our own look-alikes and output of real tools (`fixtures/`).

A secret is masked if no run of eight characters (of a shorter one: half of it) can be read. For comparison:
detect-secrets 1.5 with all its detectors except those of entropy and keywords ("forms"), and with all except those of
entropy ("forms and names").
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

from mcp_memory.core.secrets.detection import find_secrets
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line

FIXTURES = Path(__file__).parent.parent / "fixtures"

FORMS = [
    *("AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "DiscordBotTokenDetector"),
    *("GitHubTokenDetector", "GitLabTokenDetector", "JwtTokenDetector", "MailchimpDetector", "NpmDetector"),
    *("OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector", "SendGridDetector", "SlackDetector"),
    *("SquareOAuthDetector", "StripeDetector", "TelegramBotTokenDetector", "TwilioKeyDetector"),
]
_LETTERS, _HEX = string.ascii_letters + string.digits, "0123456789abcdef"

_NOUNS = """
amber anchor apron bacon badge basil beacon birch bishop blanket bottle brick bronze bucket cabin cactus candle canyon
carbon cedar cellar cherry chisel cinder cobalt comet copper coral cotton cradle cricket dagger dolphin ember engine
falcon fennel ferry fiddle flint forest fossil garlic ginger glacier goblet gravel hammer harbor hazel helmet hollow
island jacket jasper kettle ladder lantern lemon linen lizard magnet maple marble meadow mirror monkey napkin needle
nickel nutmeg onion orchid otter paddle pebble pepper pigeon pillow planet pocket poplar powder quarry quartz rabbit
radish raven ribbon rocket saddle salmon sapphire shovel silver sparrow spider squid stable summit sunset temple thistle
ticket timber tomato trumpet tulip tunnel turnip velvet violin walnut willow window winter zipper
"""
ALPHABETS = ("mixed", "letters", "digits", "words")


def _of(alphabet: str, length: int, chance: random.Random) -> str:
    """Return a value of an alphabet; words are joined by dashes up to the length."""
    match alphabet:
        case "letters":
            return "".join(chance.choices(string.ascii_letters, k=length))
        case "digits":
            return "".join(chance.choices(string.digits, k=length))
        case "words":
            return "-".join(chance.sample(_NOUNS.split(), max(4, length // 7)))
        case _:
            return "".join(chance.choices(_LETTERS, k=length - 2)) + "7k"


# Forms of makers: the parts of a key that are fixed, and the lengths of those that are drawn.
_MADE: dict[str, tuple[str | int, ...]] = {
    "Airtable": ("pat", 14, ".", 64),
    "Artifactory": ("AKCp", 69),
    "Azure": (3, "8Q~", 34),
    "Dynatrace": ("dt0c01.", 24, ".", 64),
    "Fly": ("fm2_", 120),
    "GitHub": ("ghp_", 36),
    "GitLab": ("glpat-", 20),
    "Grafana": ("glc_", 60),
    "HubSpot": ("pat-na1-", 8, "-", 4, "-", 4, "-", 4, "-", 12),
    "Hugging Face": ("hf_", 34),
    "Linear": ("lin_api_", 40),
    "Mapbox": ("sk.eyJ1Ijoi", 40, ".", 22),
    "Notion": ("secret_", 43),
    "npm": ("npm_", 36),
    "OpenAI": ("sk-proj-", 48),
    "Pulumi": ("pul-", 40),
    "SendGrid": ("SG.", 22, ".", 43),
    "Sonar": ("squ_", 40),
    "Stripe": ("sk_live_", 24),
    "Terraform": (14, ".atlasv1.", 67),
}
_PLACES = {
    "environment": "DB_PASSWORD={}",
    "export": "export SMTP_PASSWORD={}",
    "JSON": '{{"password": "{}"}}',
    "JSON, escaped": '{{\\"password\\": \\"{}\\"}}',
    "JSON, list": '"passwords": ["{}"]',
    "YAML": "password: {}",
    "YAML, block": "password: |\n  {}",
    "quoted": 'password = "{}"',
    "address": "https://db.example.org/login?user=ann&password={}",
    "address of a user": "postgres://ann:{}@db.example.org/app",
    "option": "tool --password {} --user ann",
    "option, joined": "tool --password={}",
    "element": "<password>{}</password>",
    "field of a page": "<input type=password value={}>",
    "list of names": "- name: DB_PASSWORD\n  value: {}",
    "state of Terraform": '"db_password": {{"value": "{}", "type": "string"}}',
    "netrc": "machine db.example.org login ann password {}",
    "pgpass": "db.example.org:5432:app:ann:{}",
    "table": "user | password\n-----+---------\nann | {}",
    "connection": "Server=db;Password={};Database=app",
    "key": "API_KEY={}",
    "key, JSON": '{{"client_secret": "{}"}}',
    "header": "X-Auth-Key: {}",
    "header, Fastly": "Fastly-Key: {}",
    "header, SSWS": "Authorization: SSWS {}",
    "header, ApiKey": "Authorization: ApiKey {}",
}
_AROUND_KEYS = ("{}", "the key is {} here", "export KEY={}", '{{"key": "{}"}}', "see {}, thanks")
_AROUND_PLACES = ("{}", "2026-11-22 step 3\n{}\ndone", "```\n{}\n```", "{}\nport: 5432", "host: db\n{}\nport: 5432")


def drawn(chance: random.Random) -> Iterator[tuple[str, str, str, str]]:
    """Yield (form, alphabet, secret part, text): each form in each alphabet, in each of the surroundings."""
    for alphabet in ALPHABETS:
        for form, parts in _MADE.items() if alphabet != "words" else ():  # no maker draws words
            for around in _AROUND_KEYS:
                bodies = [part if isinstance(part, str) else _of(alphabet, part, chance) for part in parts]
                yield form, alphabet, bodies[-1], around.format("".join(bodies))
        for form, place in _PLACES.items():
            for around in _AROUND_PLACES:
                value = _of(alphabet, chance.randint(20, 32), chance)
                yield form, alphabet, value, around.format(place.format(value))


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
    """Return a secret of each kind, and a text that contains it."""

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


def left_of(times: int, *, seed: int = 0) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Return (masked, all) drawn secrets by alphabet, and the texts of those that are not masked."""
    chance = random.Random(seed)
    counts: dict[str, tuple[int, int]] = {}
    missed: list[str] = []
    for _ in range(times):
        for form, alphabet, secret, text in drawn(chance):
            gone = not _stands(secret, mask(text, prose=False))
            many, of = counts.get(alphabet, (0, 0))
            counts[alphabet] = (many + gone, of + 1)
            if not gone:
                missed.append(f"{form}, {alphabet}: {text}")
    return counts, missed


def benign() -> list[tuple[str, bool]]:
    """Return our look-alikes, as messages and as results, and output of real tools: nothing in them may be masked."""
    lines = (FIXTURES / "secrets" / "lookalikes.txt").read_text(encoding="utf-8").splitlines()
    outputs = (path.read_text(encoding="utf-8") for path in sorted((FIXTURES / "outputs").iterdir()))
    return [*((line, prose) for line in lines for prose in (True, False)), *((output, False) for output in outputs)]


def caught(each: int, *, seed: int = 0) -> dict[str, dict[str, float]]:
    """Return the share of told secrets that are masked, by kind and by detector."""
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
    """Return whether eight consecutive characters of the secret, except its beginning, can be read."""
    body = secret[-max(8, len(secret) // 2) :] if "\n" not in secret else secret[40:200]
    return any(body[at : at + 8] in left for at in range(max(1, len(body) - 7)))


def alarms(texts: Sequence[tuple[str, bool]], alarm: Callable[[str, bool], bool]) -> tuple[int, float]:
    """Return how many of the texts (each with whether it is a message) raise an alarm, and the megabytes per second."""
    began = perf_counter()
    many = sum(alarm(text, prose) for text, prose in texts)
    return many, sum(len(text) for text, _ in texts) / 1e6 / max(perf_counter() - began, 1e-9)


def _alarms_by(text: str, plugins: Sequence[str]) -> bool:
    with transient_settings({"plugins_used": [{"name": name} for name in plugins]}):
        return any(next(iter(scan_line(line)), None) is not None for line in text.splitlines())  # pyright: ignore[reportUnknownArgumentType]


# --- what is read -----------------------------------------------------------------------------------


def _texts(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the distinct messages of a set, and whether they are messages of a conversation or tool results."""
    file, runs = (path / "sessions.jsonl.gz", False) if path.is_dir() else (path, True)
    seen: set[str] = set()
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            value: Any = json.loads(line)
            for turn in value["messages" if runs else "turns"]:
                content = turn["content"]
                text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
                if content and text not in seen:
                    seen.add(text)
                    yield text, turn.get("role") != "tool"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.secrets", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="a retrieval set or a file of runs")
    parser.add_argument("--each", type=int, default=200, help="secrets of each kind")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N false alarms of each set")
    parser.add_argument("--seed", type=int, default=0, help="another draw")
    asked = parser.parse_args(arguments)
    counts, missed = left_of(max(1, asked.each // 40), seed=asked.seed)
    forms = len(_MADE) + len(_PLACES)
    print(f"drawn: {forms} forms x {len(_AROUND_KEYS)} surroundings, as results of tools")
    for alphabet, (many, of) in counts.items():
        print(f"    {alphabet:10}{many:6,} of {of:6,}  {many / of:7.2%}")
    for text in missed[: asked.show]:
        print(f"    left: {one_line(text, 120)}")
    print(f"\n{'told, of ' + str(asked.each):24}{'ours':>8}{'forms':>8}{'forms and names':>18}")
    for kind, shares in caught(asked.each, seed=asked.seed).items():
        print(f"{kind:24}{shares['ours']:8.1%}{shares['forms']:8.1%}{shares['forms and names']:18.1%}")
    print(f"\n{'alarms, of messages':24}{'messages':>8}{'ours':>9}{'forms':>9}{'forms and names':>18}{'ours MB/s':>11}")
    sets = {path.name: list(_texts(path)) for path in asked.paths}
    sets["look-alikes, outputs"] = benign()
    for name, given in sets.items():
        ours, speed = alarms(given, lambda text, prose: bool(find_secrets(text, prose=prose)))
        formed, _ = alarms(given, lambda text, _: _alarms_by(text, FORMS))
        named, _ = alarms(given, lambda text, _: _alarms_by(text, [*FORMS, "KeywordDetector"]))
        shares = (f"{many / len(given):.3%}" for many in (ours, formed, named))
        print(f"{name:24}{len(given):8,}{next(shares):>9}{next(shares):>9}{next(shares):>18}{speed:11.1f}")
        for said, one in (
            ((text, one) for text, prose in given for one in find_secrets(text, prose=prose)) if asked.show else ()
        ):
            print(f"    {one.kind}: {one_line(said[max(0, one.start - 60) : one.end + 20], 120)}")


if __name__ == "__main__":
    main(sys.argv[1:])
