"""Secrets: what is taken for one, what is not, and what is left of a text."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.secrets import benign, caught, invented, left_of
from mcp_memory.core.secrets.detection import find_secrets, hint_places, lower_in_place, shift_places, text_views
from mcp_memory.core.secrets.masking import (
    MASK,
    holds_secret,
    mask,
    mask_lines,
    mask_result,
    mask_values,
    states_secret,
)
from mcp_memory.shortterm.calls import call_line, subject_of, title_of
from mcp_memory.shortterm.summary_stage import sample

# Keys are put together here, so that this file does not look as if it held any.
GITHUB = "ghp_" + "a1B2" * 9
OPENAI = "sk-proj-" + "x7Yz" * 6
texts = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from([GITHUB, OPENAI, "password: hunter22", " ", "\n", "4242 4242 4242 4242", "é🙂", "://a:b7c@d"])
    ).map("".join),
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("curl -H 'Authorization: Bearer abcdef0123456789abcdef'", "curl -H 'Authorization: Bearer •••'"),
        (f"OPENAI_API_KEY={OPENAI} run", "OPENAI_API_KEY=••• run"),
        ("key sk-ant-api03-" + "abcdefghijklmnop1234", "key sk-•••"),
        ('{"password": "hunter22", "user": "ann"}', '{"password": "•••", "user": "ann"}'),
        ('{\\"password\\": \\"hunter22\\"}', '{\\"password\\": \\"•••\\"}'),
        ("postgres://ann:s3cret@db/x", "postgres://ann:•••@db/x"),
        (f"it is {GITHUB}", "it is ghp_•••"),
        (f"token {GITHUB}", "token •••"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "----•••"),
        ("Das Passwort lautet Blauwal77.", "Das Passwort lautet •••."),
        ("密码是Lanjing77，别忘了", "密码是•••，别忘了"),
        ("パスワードは kujira77 です", "パスワードは ••• です"),
        ("card 4242 4242 4242 4242, 12/29", "card •••4242, 12/29"),
        ("4012888888881881;ann", "•••1881;ann"),
        ("It's Blauwal77, my password for the bank", "It's •••, my password for the bank"),
        ("Use Blauwal77 as the password.", "Use ••• as the password."),
        ("Zugangsdaten für den Router: jo / Blauwal77", "Zugangsdaten für den Router: jo / •••"),
        ("Identifiants : jo / Blauwal77", "Identifiants : jo / •••"),
        ("my token is otter-lamp-frost-marble-canyon-velvet", "my token is •••"),
        ('{"secret": "otter lamp frost marble canyon velvet"}', '{"secret": "•••"}'),
        ("user,password\njo,sunflower\n", "user,password\njo,•••\n"),
        ("https://a.example.net/c?sv=2020&sig=aB3dE9x&x=1", "https://a.example.net/c?sv=2020&sig=•••&x=1"),
        ("AKIA" + "IOSFODNN7REALKEY", "AKIA•••"),
        ("4012\u00a08888\u00a08888\u00a01881 cc number 4012888888881881", "•••1881 cc number •••1881"),
        (f"see notes_{GITHUB}.txt and CI_TOKEN_{GITHUB}", "see notes_ghp_•••.txt and CI_TOKEN_ghp_•••"),
        ("password: Barcelona1992, then Passau2019", "password: •••, then Passau2019"),
        ("password: Pa$$w0rd!x", "password: •••"),
        ("**Password:** Blauwal77", "**Password:** •••"),
        ("The password for the guest network is Blauwal77.", "The password for the guest network is •••."),
        ("Your password:\n\nBlauwal77\n\nRegards", "Your password:\n\n•••\n\nRegards"),
        ("hasło: Blauwal77 / wachtwoord – Blauwal77", "hasło: ••• / wachtwoord – •••"),
        ("tool --password Blauwal77 --user ann", "tool --password ••• --user ann"),
        ("curl -u ann:Blauwal77 https://example.org", "curl -u ann:••• https://example.org"),
        ("<user>ann</user><password>Blauwal77</password>", "<user>ann</user><password>•••</password>"),
        ('{\\\\\\"password\\\\\\": \\\\\\"Blauwal77\\\\\\"}', '{\\\\\\"password\\\\\\": \\\\\\"•••\\\\\\"}'),
        ("Cookie: session=" + "c3a30f47" * 4 + "; a=b", "Cookie: session=•••; a=b"),
        (
            "https://a.example.net/c?sv=2020&sig=" + "aB3d" * 10 + "%3D&x=1",
            "https://a.example.net/c?sv=2020&sig=•••&x=1",
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n"
            + "MIIEa1+/" * 8
            + "\n-----END RSA PRIVATE KEY-----\nbye",
            "----•••\nbye",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEa1+/" * 8 + "\nThat was cut.", "----•••\nThat was cut."),
        (
            "Private-Lines: 2\n" + "AAAA1Nz/" * 8 + "\nAAb=\nPrivate-MAC: 01ab",
            "Private-Lines:•••\nPrivate-MAC: 01ab",
        ),
        (
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nAA1b\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\nbye",
            "---•••\nbye",
        ),
        ("gh\u200bp_" + "a1B2\u200d" * 9 + "\u200b, then", "gh\u200bp_•••\u200d\u200b, then"),
        ("no\u200b" + GITHUB, "no\u200bghp_•••"),
        ("pass\u00adword: Blau\u00adwal77", "pass\u00adword: •••"),
        ("export KEY=ghp_" + "a1B2" * 4 + "\\\n   " + "a1B2" * 5 + " done", "export KEY=ghp_••• done"),
        ("４０１２－８８８８－８８８８－１８８１", "•••１８８１"),
        ("4012.8888.8888.1881 or 4012–8888–8888–1881", "•••1881 or •••1881"),
        ("user ann, pw: Blauwal77", "user ann, pw: •••"),
        ('{"user": "ann", "pass": "Blauwal77"}', '{"user": "ann", "pass": "•••"}'),
        ("mysqldump -u root -pBlauwal77 shop -p5", "mysqldump -u root -p••• shop -p5"),
        (
            "sshpass -p 'Blauwal77' ssh ann@db && redis-cli -a Blauwal77 ping",
            "sshpass -p '•••' ssh ann@db && redis-cli -a ••• ping",
        ),
        ('password: "tulip kazoo mango brick"', 'password: "•••"'),
        ('password = "Blau\\"wal77x"', 'password = "•••"'),
        ("pwd=a1b2c3d4&pwd: hunter22 is all", "pwd=•••&pwd: ••• is all"),
        ('["run", "--password",\n  "Blauwal77"]', '["run", "--password",\n  "•••"]'),
        ("the alarm code is 4711", "the alarm code is •••"),
        ("Türcode 2580#", "Türcode •••"),
        ("Meine PIN lautet 2580", "Meine PIN lautet •••"),
    ],
)
def test_secrets_are_masked_and_their_names_stay(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert holds_secret(text)
    assert not holds_secret(masked)


@pytest.mark.parametrize(
    "text",
    [
        "password: None",
        "the token expired at 12:00",
        "max_tokens=2000",
        "secret = get_secret(name)",
        "Basic usage",
        "this.password = password;",
        'api_key: "your-api-key-here"',
        "const apiKey = process.env.OPENWEATHER_API_KEY;",
        "MYSQL_PASSWORD=secret",
        "Use a password manager: 1Password, Bitwarden",
        "generate_password_hash is `pbkdf2:sha256`",
        "credentials:\n  credential1:\n    name: x",
        "the risk-free sk-learn pipeline, task-oriented and desk-bound",
        "the password is written on the fridge",
        "order id: 4012888888881881",
        "4012888888881882 fails its checksum",
        "0.4012888888881881",
        "git@example.org:ann/app.git and https://example.org:8443/@ann",
        "tel. +49 4012 8888 8888",
        "sk-estimator-test-2026-11-22-results and risk-assessment-2026-q4",
        "the token bucket_rate_limiter_v2 of basic authentication-guide-2026",
        'session_id = "sess-2026-11-22-a1", sessionId: f47ac10b-58cc-4372-a567-0e02b2c3d479',
        'next_token = "page-2-of-10-results"',
        "credentialsId: 'github-deploy-2026'",
        "密码: 至少8位字符 / パスワードは8文字以上です / 비밀번호는 8자 이상",
        "docker run --user 1000:1000 -u www-data:www-data --token $TOKEN1",
        "the password for the staging box is in the vault",
        "Hashed password: pbkdf2:sha256:260000$zL6yRjZtQ5vGKwFf$5b7c",
        "passwords:\n  - at least 12 characters\n  - one digit",
        "mysql -u root -p shop2024 && mysql -p$PASS1 && mysql -pYourPassword1 && docker run mysql:8 -p 3306:3306",
        "All tests pass: 12 of 12; first pass - build2024; bypass: route66; kpw: Blauwal77",
        "echo a \\\n  && ls -l pass\u200bages: chapter10",
        "version 2026.1122.0541.1002",
        "Use OAuth2 as the password grant flow; we use SHA256 for the password hash.",
        "It's Friday, my password expires today. Version2 is the password manager we use.",
        "Login: Monday / Tuesday; login: see README / wiki2page.txt; Login: jo / guest",
        "credentials: module:function2, Login: https://example.org/login2page",
        "Şifrem unuttum.",
        "token: android.os.BinderProxy@2bd79ce",
        "STRIPE_KEY=pk_live_" + "a1B2" * 6,
        "the error code is 4711",
        "cache_key: " + "a1B2" * 10,
        "abandon ability able about above absent absorb abstract absurd abuse access accident",
        "you can find what you need more easily this can also help",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


SEED = "speed october drill tuna spike album corn clump twenty bus foster praise"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"my recovery phrase is {SEED}.", "my recovery phrase is •••."),
        ("\n".join(f"{n}. {word}" for n, word in enumerate(SEED.split(), 1)), "1. •••"),
        ("key 5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ ok", "key ••• ok"),
        ("PRIVATE_KEY=0x" + "a1b2" * 16, "PRIVATE_KEY=•••"),
        ('{"kty": "EC", "x": "abc", "d": "' + "aB3d" * 10 + 'xyz"}', '{"kty": "EC", "x": "abc", "d": "•••"}'),
        ("| Password | Blauwal77 |", "| Password | ••• |"),
        ("<dt>Password</dt><dd>Blauwal77</dd>", "<dt>Password</dt><dd>•••</dd>"),
        ("/k?a=1&amp;X-Amz-Signature=" + "a1b2" * 16, "/k?a=1&amp;X-Amz-Signature=•••"),
        ("Authorization: Bearer a.b.c", "Authorization: Bearer •••"),
        ("root:$6$saltsalt$" + "aB3d./" * 14 + "ab:19700:0:", "root:$6$•••:19700:0:"),
        ("net use Z: \\\\srv\\share Blauwal77 /user:jo", "net use Z: \\\\srv\\share ••• /user:jo"),
        ("数据库密码是 Blauwal77", "数据库密码是 •••"),
        ("root password: correct-horse-battery-staple", "root password: •••"),
    ],
)
def test_secrets_are_masked_in_messages_and_results_alike(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(text, prose=False) == masked


def test_a_secret_of_every_known_kind_is_caught_in_what_people_and_programs_write() -> None:
    assert {kind: shares["ours"] for kind, shares in caught(5).items() if shares["ours"] < 1} == {}


def test_a_secret_is_gone_in_every_form_place_surrounding_and_alphabet() -> None:
    counts, missed = left_of(2)
    assert missed == []
    assert set(counts) == {"mixed", "letters", "digits", "words"}


def test_nothing_is_masked_in_look_alikes_and_in_what_real_tools_print() -> None:
    texts = benign()
    assert [
        (text[:200], mask(text, prose=prose)[:200]) for text, prose in texts if mask(text, prose=prose) != text
    ] == []
    assert len(texts) > 250


@pytest.mark.parametrize(
    "result",
    [
        "--- PASS: TestParse2 (0.00s)",
        "PASS: tests/unit/foo-1.test",
        "PASS: aoi=100, n=1: got 0.0",
        "Boarding pass: BA2490, seat 12A",
        "the pass: Khyber1070",
        "order 4012888888881881 was shipped",
        "4012888888881881",
        "my password is hunter22, she said",
        "Basic Overview, Token Overview1",
    ],
)
def test_a_result_is_kept_as_it_came_where_only_talk_would_read_a_secret_in_it(result: str) -> None:
    data = result.encode()
    assert mask_result(data) == (data, [])


@pytest.mark.parametrize(
    "statement",
    [
        "The wifi password is sunshine",
        "The wifi password is SunnyDays",
        "Ann's door code: the passcode is 739812",
        "The Netflix password is bluewhale.",
        "My bank card's PIN is 4821",
        "My passphrase is tulip kazoo mango brick otter",
        "Das Passwort fürs WLAN ist Zqwtlkz",
    ],
)
def test_a_statement_that_gives_a_password_is_no_statement_to_remember(statement: str) -> None:
    assert states_secret(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "The wifi password is on the fridge",
        "Ann's password is in the vault of 1Password",
        "The staging password was rotated",
        "The password of the router is weak and has to be changed",
        "Prefers a password manager: Bitwarden",
        "The secret of her bread is patience",
        "Das Passwort ist abgelaufen",
        "The PIN of the card comes by mail",
    ],
)
def test_a_statement_about_a_password_may_be_remembered(statement: str) -> None:
    assert not states_secret(statement)


@given(st.text(alphabet="kKeystİß:\n -|密码", max_size=40))
def test_each_known_string_is_found_wherever_it_stands(text: str) -> None:
    small = lower_in_place(text)
    known = {"key", "sk", "keys", ":\n", "- ", "密码"}
    places = hint_places(small)
    expected = {hint: [at for at in range(len(small)) if small.startswith(hint, at)] for hint in known}
    assert len(small) == len(text)
    assert {hint: places[hint] for hint in known if hint in places} == {k: v for k, v in expected.items() if v}


def test_secrets_of_kubernetes_are_masked_and_what_stands_beside_them_stays() -> None:
    secret = "apiVersion: v1\ndata:\n  db: WnE3d1pxN3c=\nkind: Secret\nmetadata:\n  name: db\n"
    beside = "---\napiVersion: v1\ndata:\n  policy: strict2024\nkind: ConfigMap\n"
    assert mask(secret + beside, prose=False) == secret.replace("WnE3d1pxN3c=", "•••") + beside


STRONG = "Qm3Xk9Zt7Lw2Rv5Yb8"


@pytest.mark.parametrize(
    "result",
    [
        '{"out": "a\\nDB_PASSWORD=%s\\n"}',
        '{"out": "{\\"password\\": \\"%s\\"}"}',
        "     2→password: %s\n     3→port: 5432",
        "config.yml:12:password: %s\nconfig.yml:13:port: 5432",
        "@@ -1,2 +1,2 @@\n context\n+password: %s\n",
        "web_1  | requirepass %s\nweb_1  | port 6379",
        "password: %s\r\nport: 5432\r\n",
        "CREATE USER jo IDENTIFIED BY '%s';",
        "INSERT INTO users (id, name, password) VALUES (1, 'jo', '%s');",
        '"user","password"\n"jo","%s"',
        "id       | 1\npassword | %s",
        "<clientSecret><![CDATA[%s]]></clientSecret>",
        "<key>Password</key>\n<string>%s</string>",
        '<add value="%s" key="ApiPassword" />',
        '{"value": "%s", "name": "DB_PASSWORD"}',
        'variable "db_password" {\n  type = string\n  default = "%s"\n}',
        "passwords:\n  - %s",
        'api_key: str = "%s"',
        'const password: String = "%s";',
        "os.getenv('DB_PASSWORD', '%s')",
        "process.env.JWT_SECRET || '%s'",
        '#define WIFI_PASSWORD "%s"',
        "aws configure set aws_secret_access_key %s0000",
        "echo %s | docker login --password-stdin",
        "dsn: app:%s@tcp(db:3306)/app",
        'requests.get(url, auth=("jo", "%s"))',
        "Please use the following password to proceed:\n\n%s\n",
        "A temporary password is generated for root@localhost: %s",
        'password = """%s"""',
        "machine db.example.org\nlogin\njo\npassword\n%s\n",
        '"id","login","password"\n"1","ann, admin","%s"\n',
        "<table><tr><th>User</th><th>Password</th></tr>\n<tr><td>jo</td><td><code>%s</code></td></tr></table>",
        "const t = jwt.sign({ id: 7 }, '%s', { expiresIn: '1h' })",
        "client\n<key>\n%s\n</key>\n",
        "<auth-user-pass>\njo\n%s\n</auth-user-pass>",
        "snmp-server community %s RO",
        "rocommunity %s 10.0.0.0/8",
        "snmpwalk -v2c -c %s 10.0.0.1",
        "snmp-server user jo ops v3 auth sha Harbour77x priv aes 128 %s",
        "createUser jo SHA %s AES Harbour77x",
        "snmpget -v3 -u jo -l authPriv -a SHA -A %s host",
        '{"api_keys": {"x": 1, "%s": {"user": "jo"}}}',
        "PASS=${PASS:-%s}",
        "openssl enc -aes-256-cbc -pass pass:%s",
        "smtp:\n  user: jo\n  pass: %s\n  port: 25",
    ],
)
def test_a_result_holds_no_password_wherever_a_program_keeps_it(result: str) -> None:
    masked = mask(result % STRONG, prose=False)
    assert STRONG not in masked
    assert "•••" in masked


@pytest.mark.parametrize(
    "before", ["2026-05-07 08:00:01,257 ", "2026-05-07T08:00:01Z ", "    12\t", "app.log:12:", "> "]
)
def test_a_secret_of_several_lines_is_masked_whatever_stands_before_each(before: str) -> None:
    lines = ["kind: Secret", "data:", f"  db: {STRONG}", "metadata:", "$ pass show mail", STRONG]
    masked = mask("\n".join(before + line for line in lines), prose=False)
    assert masked == "\n".join(before + line.replace(STRONG, "•••") for line in lines)


LINE_BEGINNINGS = ["  12\t", "app.log:3:", "2026-05-07 08:00:01 ", "> ", "+", ""]


@given(st.lists(st.tuples(st.sampled_from(LINE_BEGINNINGS), st.text("sk-:|aeipwordnt \t12", max_size=12)), max_size=8))
def test_known_strings_are_where_they_were_once_the_beginnings_of_lines_are_left_out(
    lines: list[tuple[str, str]],
) -> None:
    first, *others = text_views("\n".join(before + line for before, line in lines))
    for view in others:
        if view.cuts is not None:
            assert shift_places(hint_places(lower_in_place(first.text)), view.cuts) == hint_places(
                lower_in_place(view.text)
            )


@pytest.mark.parametrize("codec", ["utf-8", "latin-1", "utf-16", "utf-16-le", "utf-32"])
def test_a_result_of_any_encoding_is_masked_and_read_back_in_it(codec: str) -> None:
    text = f"Grüße\nDB_PASSWORD={STRONG}\nPORT=5432\n"
    data, places = mask_result(text.encode(codec))
    assert STRONG.encode(codec)[-24:] not in data
    assert len(places) == 1
    shown = "•••".encode().decode("latin-1") if codec == "latin-1" else "•••"
    assert data.decode(codec) == text.replace(STRONG, shown)


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)) * 8 + b"DB_PASSWORD=" + STRONG.encode(), b"\xff\xfe" + bytes(range(32)) + GITHUB.encode()],
)
def test_bytes_that_are_a_program_or_a_picture_stay_as_they_are(data: bytes) -> None:
    assert mask_result(data) == (data, [])


@pytest.mark.parametrize(
    "result",
    [
        "00000ed0: 2600 0000 0000 0000 a502 0000",
        "1234 5678 9012 3452\n4539 1488 0343 6467",
        '"user_id": "4786589388409884"',
        "sk-ecdsa-sha2-nistp256@openssh.com sk-ssh-ed25519-cert-v01@openssh.com",
        'START = b"-----BEGIN OPENSSH PRIVATE KEY-----"\nEND = b"-----END OPENSSH PRIVATE KEY-----"',
        "self.passthrough_behavior = passthrough_behavior",
        "file_secret_settings: PydanticBaseSettingsSource,",
        "credentials = standard_b64encode(credentials)",
        "secret_code = COGNITO_TOTP_MFA_SECRET",
        'user, password = "wile", "coyote"',
        "'password' => 'required|string|min:12|confirmed'",
        "existingSecret: my-release-postgresql",
        "arn:aws:secretsmanager:eu-west-1:1234:secret:prodDatabase-1234f",
        '<label for="password" class="form-label">Password</label>',
        "token: Authentifizierungstoken",
        "jwt.verify(token, process.env.JWT_SECRET) || jwt.sign(payload, 'secret')",
        "snmp-server community public RO\nrocommunity public\nsnmpwalk -v2c -c public host",
        "user;password;comment\njo;rotated;yes\nann;required;no\n",
        "<table><tr><th>Field</th><th>Password</th></tr><tr><td>min</td><td>8 characters</td></tr></table>",
        '{"api_keys": {"production": {"id": 1}, "staging_2": {}}, "secrets": {"database-url": {}}}',
        '{"token": "color-background-primary-hover-dark-mode"}',
        "https://example.org/f?sv=1&sig=<signature>",
        "<key>\nsome words of an example here\n</key>",
        # data in base64, where any beginning comes up, and hashes in it
        "AIAAEEAQ/0D/AAAAQAAAAABAAP8A/wD/EID/EAAAEAAAEEAAAAAAQICAAEBAgAD/EIAAgBBAQAD/gBD/",
        "SIniSIPk8FBURTHAMclIjT0l/////xXHawAA9GYuDx+EAAAAAAAPH0AASI092W0AAEiNBdJtAABI",
        "wwYGDx8A" * 9 + "wwYG\nEAAAEAAAEEAAAAAAQICAAEBAgAD0EIAAgBBAQADwgBDw8PDw8A",
        "IAAAABkSIsEJSgAAABIiYQkqAAAADHATImsJIgAAABmDx+EAAAAAAABEiVQkGEyJXCQQTIkMJOg9z///i2wkcESL",
        "pkg/_core.py,sha256=qaN-fw_htIgKUVXoAuAEVgKxQu3tZ9qE2eiKkWIS7LA,959",
        "pkg/_api.pyi,sha256=r8_DrqAfn6QLwQnmXEggveiSU-UaIL2p2nuPINelfFc,14949",
        # code
        'MovedAttribute("HTTPPasswordMgr", "urllib2", "urllib.request"),',
        "mock.patch.object(pwd, 'getpwnam')",
        "self.assertEqual(splitpasswd('user+1:a+b'), ('user+1', 'a+b'))",
        "__all__ = ['ASPasswordCredential', 'ASPasswordCredentialIdentity']",
        r'#define TLS_MD_MASTER_SECRET_CONST "\x6d\x61\x73\x74\x65\x72"',
        "self = <TestPassword object at 0x7f29754138d0>, password = 'short'",
        # heads of tables, and what a listing calls secrets
        " rolname | rolpassword | rolvaliduntil\n---------+-------------+---------------\n ann     |             | \n",
        "usename | passwd | valuntil\n--+--+--\nann | ******** | \n",
        "user\tpassword\tlastlogintime1\n",
        "SECRET        VERSION    UPDATED\nprod-db-01a2    7          2h\n",
        # when a password was set, and tokens that open nothing
        '"PasswordLastUsed":"2026-01-01T00:00:00Z","password":"2026-01-01 10:22:33"',
        "pwdLastSet: 133480000000000000\nPasswordLastSet: 1700000000123\npwdHistory: 1700000000123",
        '{"nextPageToken": "zlolg3lcTc6XWt9skEMnhsBxOwavCqiC", "cancellationToken": "3f2b8c1e-8a44-4c0e"}',
        '{"NextContinuationToken": "lOH/G6eNF00rSTWz+r4cVXr5m4h2QrY7HkpaSt7xdc1BmOUzsSGrIM"}',
        '{"ClientToken": "3f2b8c1e-8a44-4c0e-9d2b-0a1f5e6b7c8d", "nextSyncToken": "CPDAlvWDx70CEPDAlvWDx70CGAU="}',
        "token_address=EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
        "secretary=1700000000123",
        "Set-Cookie: PART_NUMBER=ROCKET_LAUNCHER_0001; Path=/",
        "PASS: pkcs12dump\nPASS: ls-color256\npass: gcc11torture\nPASS: gnulib7x9z\nFAIL: test_user_login",
        "aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE",
        "authorization: AWS4-HMAC-SHA256 Credential=***",
    ],
)
def test_code_and_numbers_in_a_result_stay_as_they_came(result: str) -> None:
    assert mask(result, prose=False) == result


@pytest.mark.parametrize(
    "before",
    [
        "https://example.org/api/v2/keys/",
        "3f2b8c1e-8a44-4c0e-9d2b-0a1f5e6b7c8d-",
        "backup_2026_11_22_",
        "a3" * 32 + "\n",
        "+",
    ],
)
@pytest.mark.parametrize("key", [GITHUB, OPENAI, "AKIA" + "IOSFODNN7REALKEY"])
def test_a_key_is_masked_behind_whatever_is_no_data_in_base64(before: str, key: str) -> None:
    if not (before[-1] == "_" and key == OPENAI):  # nobody knows where a name ends and a short beginning begins
        assert key[-8:] not in mask(before + key, prose=False)


@given(st.integers(0, 1_000))
def test_nothing_is_lost_of_the_text_around_a_secret(seed: int) -> None:
    for secret, text in invented(random.Random(seed)).values():
        before, _, after = text.partition(secret)
        masked = mask(text)
        assert masked.startswith(before)
        assert masked.endswith(after)
        assert MASK in masked


@given(texts)
def test_masking_twice_changes_nothing(text: str) -> None:
    assert mask(mask(text)) == mask(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("pwd=", "token=a1", "sk-", "sk-a1", "://a:b7c@", "-----BEGIN PRIVATE KEY-----", "SG.a1"),
        *("pw=", "mysql -p", "Private-Lines: 1\n", "---- BEGIN SSH2 PRIVATE KEY ----", "a\u200b", "a\\\n"),
        *(
            "abandon ability ",
            "the code for the door is ",
            '{"kty":"d',
            "| password ",
            "&amp;",
            "%41",
            "<td>password<td>",
        ),
        *("5KkLc9" * 8, "$6$a", "authorization: bearer ", "net use ", " -u a", "my password is "),
        *("<table><td password ", '"secrets":{', "snmpget -A ", "jwt.sign({", "Login: a / "),
    ],
)
def test_a_long_run_of_names_is_read_in_time_that_grows_as_the_run_does(piece: str) -> None:
    mask(piece * 4_000)  # each to the end of the run would be many minutes


@given(texts)
def test_secrets_stand_in_order_and_apart(text: str) -> None:
    found = find_secrets(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@given(texts)
def test_the_bytes_of_a_text_are_masked_as_the_text_is_and_say_where(text: str) -> None:
    data, places = mask_result(text.encode("utf-8", "surrogatepass"))
    assert data.decode("utf-8", "surrogatepass") == mask(text, prose=False)
    assert all(data[place.start : place.end].decode() == MASK for place in places)


@pytest.mark.parametrize(
    ("codec", "head"),
    [
        ("cp1252", "prix 5 €"),
        ("cp1251", "Пароли"),
        ("koi8-r", "Настройки"),
        ("gbk", "设置"),
        ("big5", "設定"),
        ("euc-kr", "설정"),
        ("shift_jis", "設定"),
        ("utf-16-le", "設定の中身はこれだけです"),
        ("utf-16-le", "settings"),
        ("utf-16-be", "settings"),
        ("utf-16-be", "Größe"),
    ],
)
@pytest.mark.parametrize("room", [0, 1])
def test_bytes_of_any_encoding_and_length_hold_no_password(codec: str, head: str, room: int) -> None:
    text = f"{head}{'x' * room}\nDB_PASSWORD={STRONG}\nend\n"
    data, places = mask_result(text.encode(codec))
    mask_there = MASK.encode(codec if codec.startswith("utf") else "utf-8")
    assert data == mask_there.join(part.encode(codec) for part in text.split(STRONG))
    assert [data[one.start : one.end] for one in places] == [mask_there]


def test_a_wrong_byte_hides_no_name_in_letters_beyond_ascii() -> None:
    data, _ = mask_result(b"\xff\n" + f"contraseña: {STRONG}\nпароль: {STRONG}\n".encode())
    assert STRONG.encode() not in data


def test_a_key_behind_the_mark_of_another_encoding_is_masked() -> None:
    assert mask_result(b"\xff\xfe" + GITHUB.encode())[0] == b"\xff\xfeghp_" + MASK.encode()


@given(texts)
def test_a_masked_piece_has_as_many_lines(text: str) -> None:
    assert mask_lines(text).count("\n") == text.count("\n")


def test_arguments_are_masked_by_their_names_too() -> None:
    given = {"password": "hunter22", "env": [f"KEY={GITHUB}", 7], "note": "the night boat", "n": None}
    assert mask_values(given) == {"password": MASK, "env": ["KEY=ghp_•••", 7], "note": "the night boat", "n": None}


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        (["run", "--password", "Blauwal77", "-u", "ann:Blauwal77"], ["run", "--password", MASK, "-u", f"ann:{MASK}"]),
        ({"passwords": ["Blauwal77"], "n": [1, True]}, {"passwords": [MASK], "n": [1, True]}),
        ({"password": "Blauwal77 4012888888881881"}, {"password": MASK}),
        ({"password": "sunshine"}, {"password": MASK}),
        ({"name": "DB_PASSWORD", "value": "Blauwal77"}, {"name": "DB_PASSWORD", "value": MASK}),
        ({"env": [{"key": "DB_PASSWORD", "value": "Blauwal77"}]}, {"env": [{"key": "DB_PASSWORD", "value": MASK}]}),
        ({"key": "password", "value": "Passwort"}, {"key": "password", "value": "Passwort"}),
        ({"password": 'Blau"wal77', "user": "jo"}, {"password": MASK, "user": "jo"}),
        ({"password": "Blauwal77\\", "user": "jo"}, {"password": MASK, "user": "jo"}),
        (
            {"text": "machine h login jo password Blauwal77\nmachine g", "n": 1.5},
            {"text": f"machine h login jo password {MASK}\nmachine g", "n": 1.5},
        ),
        ({"command": "tool --password 'Blauwal77\tx'\n"}, {"command": f"tool --password '{MASK}\tx'\n"}),
        ({"auth_tokens": {"Qm3Xk9Zt7Lw2Rv5Yb8": "jo"}}, {"auth_tokens": {MASK: "jo"}}),
        (["run", "--password", "sunshine"], ["run", "--password", MASK]),
        ({"env": {"DB_PASSWORD": "tulip kazoo mango"}}, {"env": {"DB_PASSWORD": MASK}}),
        ({"password": "string", "query": "password reset"}, {"password": "string", "query": "password reset"}),
        (
            {"card": 4012888888881881, "order_id": 4012888888881881},
            {"card": f"{MASK}1881", "order_id": 4012888888881881},
        ),
    ],
)
def test_an_argument_is_read_behind_the_name_or_option_before_it(given: object, masked: object) -> None:
    assert mask_values(given) == masked


def shape(value: object) -> object:
    """Return a JSON value without what its strings and names say; a number that is masked is a string."""
    match value:
        case dict():
            return [shape(item) for item in cast("dict[object, object]", value).values()]
        case list():
            return [shape(item) for item in cast("list[object]", value)]
        case str() | int() if not isinstance(value, bool):
            return ""
        case _:
            return value


names = st.sampled_from(["password", "api_key", "name", "value", "key", "card", "text", "n\\", 'q"'])
strings = st.lists(
    st.sampled_from(
        [
            "password ",
            "Kx93mfQpw2Lz",
            "--token",
            "machine h login a ",
            "DB_PASSWORD=",
            '"',
            "\\",
            "\n",
            "'",
            "\t",
            "\ud800",
        ]
    )
).map("".join)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), strings, texts),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
        max_leaves=8,
    )
)
def test_any_json_value_is_masked_and_keeps_its_structure(value: object) -> None:
    assert shape(mask_values(value)) == shape(value)


def test_arguments_that_are_nested_without_end_are_masked_as_far_as_calls_go() -> None:
    nested: object = GITHUB
    for _ in range(900):
        nested = [nested]
    assert GITHUB not in str(mask_values({"a": nested, "b": GITHUB}))


@pytest.mark.parametrize("name", ["command", "query", "path", "other", "url"])
def test_a_call_is_masked_before_it_is_cut_to_a_line(name: str) -> None:
    for room in range(0, 160, 3):
        words = {name: f"look {'y' * room} postgres://app:Blauwal77@db.internal/app"}
        shown = call_line("run", words) + title_of("run", words) + subject_of(words)
        assert "Blauwal" not in shown
        assert "Blauwal" not in call_line("run", words[name]) + title_of("run", words[name])


def test_a_sample_of_a_long_result_is_masked_before_what_a_program_finds_in_it_is_cut() -> None:
    for room in range(0, 240, 16):
        line = f"Error: {'y ' * room}postgres://app:Blauwal77@db.internal/app"
        shown = sample(f"{line}\n{'x y z' * 30_000}\n".encode(), chars=2_000, tool="run")
        assert "Blauwal" not in shown.text
