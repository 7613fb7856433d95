"""Secrets that only their place tells: arguments of commands, structures of programs, sentences; with drawn values."""

from __future__ import annotations

import pytest

from mcp_memory.core.secrets.masking import mask
from tests.core.secrets.masked import stored

# What may be drawn: mixed, letters of one case, digits, hexadecimal digits, words.
VALUES = (
    "Qm3Xk9Zt7Lw2Rv5Yb8",
    "qkzvbtrwmxplhdnsgjfc",
    "WRNZQGXTVBKDMPHJCLSF",
    "839201746550918273",
    "9c4e07b1d85f3a62e7708bd4c1f59a36",
    "otter-lamp-frost-marble-canyon-velvet",
)
SPACED = "otter lamp frost marble canyon velvet"


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "command",
    [
        "docker login -u ann -p {} registry.example.org",
        "az login --service-principal -u app -p {} --tenant t",
        "mongosh -u ann -p '{}' --authenticationDatabase admin",
        "zip -r -P {} a.zip folder",
        "xfreerdp /u:ann /p:{} /v:host",
        "PsExec64.exe \\\\host -u ann -p {} cmd",
        "mc alias set mine https://s3.example.org ann {}",
        "htpasswd -cbB .htpasswd ann {}",
        "keytool -list -keystore a.jks -storepass {}",
        "gh secret set API_NAME --body {}",
        "sqlcmd -S db -U sa -P {} -Q 'select 1'",
        "mysql -u root -p{} shop",
        "sshpass -p '{}' ssh ann@db",
    ],
)
def test_the_password_that_a_command_takes_is_masked(command: str, value: str) -> None:
    assert stored(command.format(value)) == {command.format("•••")}


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("cio", "a1B2" * 8),
        ("1//0", "gA-1_bC2" * 11),
        ("sl.", "u.AFx1-b_C" + "AFx1-b_C" * 17),
        ("dp.st.", "dev." + "a1B2" * 10 + "xyz"),
        ("sk_", "0f1e2d3c" * 6),
        ("re_", "aB3dE9xZ_" + "Kq7v" * 6),
        ("sdk-", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"),
        ("vcp_", "aB3dE9xZ" * 7),
        ("napi_", "a1b2c3d4" * 8),
    ],
)
def test_keys_that_stand_alone_are_known_by_the_form_of_their_makers(head: str, tail: str) -> None:
    for text in ("{}", "use {}, then go", '"{}"', "密钥{}是"):
        assert stored(text.format(head + tail)) == {text.format(head + "•••")}


@pytest.mark.parametrize(
    "key",
    [
        "9c4e07b1d85f3a62e7708bd4c1f59a36-us21",
        "MT" + "a1B2" * 6 + ".Gx1y2z." + "Kq7v" * 9,
        "EAAA" + "lK3x" * 15,
        "pat" + "aB3dE9xZ7k2Lm4" + "." + "0f1e2d3c" * 8,
        "EGr8Q~" + "aB3d~E9x" * 4 + "Zk",
        "EAAC" + "a1B2" * 30,
        "v1.0-" + "0f1e" * 6 + "-" + "0f1e2d3c4b" * 14 + "0f1e2d",
        "ABSK" + "a1B2" * 30,
        "xkeysib-" + "0f1e2d3c" * 8 + "-" + "aB3d" * 4,
        "sk.eyJ1" + "a1B2" * 12 + "." + "Kq7v" * 5 + "aB",
        "pnu_" + "a1B2" * 9,
    ],
)
def test_a_key_between_letters_of_chinese_is_masked_as_between_spaces(key: str) -> None:
    assert all(key[-12:] not in text for text in stored(f"key {key} ok"))
    assert all(key[-12:] not in text for text in stored(f"密钥{key}是"))


def test_words_that_begin_as_keys_do_stay() -> None:
    for text in (
        "ciodeterminedbytheboardofdirectorsx",
        "re_compiled_regularexpressionpattern",
        "napi_get_value_string_utf8_with_a_long_tail_of_words",
        "sdk-3.2.1 sk_learn_model sl.u.short dp.st.dev",
        "https://cdn.example.org/1//0/abc",
    ):
        assert stored(text) == {text}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "structure",
    [
        '--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n{}\r\n--b--',
        "{{&quot;user&quot;:&quot;ann&quot;,&quot;password&quot;:&quot;{}&quot;}}",
        "payload=%7B%22password%22%3A%22{}%22%7D",
        "<AdministratorPassword><Value>{}</Value><PlainText>true</PlainText></AdministratorPassword>",
        "benutzer;kennwort\nann;{}\n",
        "usuario,contraseña\nann,{}\n",
        "用户名,密码\nann,{}\n",
        "A1 LOGIN ann {}\r\n",
        "USER ann\r\n331 Password required\r\nPASS {}\r\n",
        'expect "*assword:"\nsend -- "{}\\r"',
        "child.expect('password:')\nchild.sendline('{}')",
        '[{{"key":"api_token","value":"{}"}}]',
        '{{"name":"DB_TOKEN","value":"{}"}}',
        "db:\n  password: !!str {}\n",
        "db:\n  password: &pw {}\n",
        "Password: ``{}``",
        "SET PASSWORD FOR 'ann'@'host' = '{}';",
        "enable password {}",
        "[Note] A temporary password is generated for root@localhost: {}",
        'dotnet user-secrets set "Db:Password" "{}"',
    ],
)
def test_a_value_is_masked_in_each_structure_that_names_it(structure: str, value: str) -> None:
    assert stored(structure.format(value)) == {structure.format("•••")}


def test_the_id_of_a_session_in_a_recorded_cookie_is_masked() -> None:
    cookie = '{{"name":"sessionid","value":"{}","domain":"x"}}'
    assert all(stored(cookie.format(value)) == {cookie.format("•••")} for value in VALUES[:-1])
    assert stored(cookie.format("my-session-of-today")) == {cookie.format("my-session-of-today")}


@pytest.mark.parametrize(
    "structure",
    [
        "user,password\nann,{}\n",
        "user\tpassword\nann\t{}\n",
        "| user | password |\n|---|---|\n| ann | {} |\n",
        "<db><user>ann</user><password>{}</password></db>",
        "sshpass -p '{}' ssh ann@db",
        '["tool", "--password", "{}"]',
        "tool --password '{}' --user ann",
        '{{"name": "DB_PASSWORD", "value": "{}"}}',
    ],
)
def test_words_in_a_row_are_masked_whole_in_a_place_of_passwords(structure: str) -> None:
    assert stored(structure.format(SPACED)) == {structure.format("•••")}


@pytest.mark.parametrize("value", ["/cDmMfOme1", "/xkq83920175", "pa ss 12 word9"])
def test_a_quoted_password_may_begin_as_a_path_or_hold_spaces(value: str) -> None:
    for text in ('{{"password":"{}"}}', "tool --password '{}'"):
        assert stored(text.format(value)) == {text.format("•••")}


@pytest.mark.parametrize(
    "text",
    [
        # in a structure
        '{"password": "/run/secrets/db1"}',
        '{"password": "/secrets1", "pwd": "/etc/db1"}',
        "tool --password '/run/abc839201758'",
        '{"password": "min 8 chars"}',
        '{"password": "at least 8 chars and 1 digit"}',
        '{"key": "password", "value": "Passwort"}',
        '{"key": "secret", "value": "true"}',
        '{"key": "token", "value": "Your API token"}',
        "{&quot;password&quot;: &quot;string&quot;, &quot;title&quot;: &quot;Forgot password&quot;}",
        "filter=%7B%22password%22%3A%22required%22%7D",
        "<PasswordPolicy><Value>enabled</Value></PasswordPolicy>",
        "A1 OK LOGIN completed\nPASS tests/auth_token2.test.js",
        'expect "Password:"\nsend "$password1\\r"',
        "fn f(password: &mut String, token: &Token)",
        "password: !Ref DBPassword1",
        "``password``: ``str``, optional",
        "enable password encryption",
        "user,password\nann,must hold eight characters and a number\n",
        "<password>the password of the user as plain text</password>",
        # in a command
        "docker login -u username -p password && docker login -p $TOKEN1",
        "docker login, then docker run -p 8080:80 nginx; docker login --password-stdin",
        "mongosh -u admin -p --authenticationDatabase admin",
        "az login --service-principal -u http://app -p ~/cert2024.pem",
        "mc alias set mine http://localhost:9000 minioadmin minioadmin",
        "gzip -P x1y2z3w4; zip -P password a.zip",
        "keytool -genkey -storepass changeit -keypass changeit",
        "htpasswd -b .htpasswd user password",
        'gh secret set NAME --body "$VALUE1"',
        "mysql -port-of-the-server db",
        # a path, a variable, ordered numbers
        "secret = /etc/ssl/private/db2024.pem",
        "token: /run/secrets/token_v2",
        "echo $PASSWORD1 | sudo -S ls",
        "echo done\n-----END PRIVATE KEY-----",
        "recovery codes:\nkeep them\nprint them\nhide them\n",
        f"[{', '.join(map(str, range(64)))}]",
    ],
)
def test_what_stands_for_a_secret_in_its_place_stays(text: str) -> None:
    assert stored(text) == {text}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "sentence",
    [
        "Log in as ann with password {}",
        "user ann, pw {}",
        "user ann, pw: {}",
        "The password, by the way, is {}",
        "Le mot de passe du wifi : {}",
        "รหัสผ่านคือ {}",
        "รหัสผ่านคือ{}",
        "here's the secret key: {}",
    ],
)
def test_a_value_that_is_no_word_is_masked_in_what_people_tell(sentence: str, value: str) -> None:
    assert mask(sentence.format(value)) == sentence.format("•••")


@pytest.mark.parametrize(
    "sentence",
    [
        "Log in as ann with password authentication disabled.",
        "Sign in with password managers such as Bitwarden across devices every day.",
        "You can log in with password reset links that expire.",
        "email and password validation, user, password combination is invalid",
        "Users can authenticate via login, password recovery, or SSO.",
        "The password, by the way, is stored in the vault.",
        "The token, however, is invalid; the secret key, by the way, is generated at startup.",
        "here's the secret key: generate it with openssl",
        "ssh with password prompts disabled, the user, pw reset and account pages",
        "the password hash algorithm is argon2id",
    ],
)
def test_talk_about_passwords_of_accounts_stays(sentence: str) -> None:
    assert mask(sentence) == sentence


@pytest.mark.parametrize(
    "place",
    [
        "JWT_SECRET={}",
        "SECRET_KEY={}\nDEBUG=1\n",
        '{{"api_key": "{}"}}',
        "X-API-Key: {}",
        'const token = "{}";',
        "client_secret: {}",
    ],
)
def test_letters_of_one_case_that_hold_no_word_are_a_key(place: str) -> None:
    for value in ("hqevutaxoydnibokzumw", "GYUXATORIBEWQOLVUKAJ", "wzoyeqavuhcnotikxulebamr"):
        assert stored(place.format(value)) == {place.format("•••")}
    for value in ("guictrlcreatetreeview", "lebensversicherungsgesellschaft", "beveiligingsteamleider"):
        assert stored(place.format(value)) == {place.format(value)}


def test_a_long_value_is_masked_to_its_end_where_a_sentence_would_end_in_it() -> None:
    text = "the password of the new box, as Ann says: " + VALUES[0] * 5
    assert mask(text) == "the password of the new box, as Ann says: •••"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("aws_secret_access_key = /HaxZ0q7Lw2Rv/5Yb8kT3mPd9cJf6sNu1gVe4iWo", None),
        ("SECRET_KEY=/Zk39dLq0vB8sNx2YpT7uWm4c", None),
        ("echo Dulcimer610 | sudo -S systemctl restart nginx", "Dulcimer610"),
        ("printf 'Qm3Xk9Zt7\\nQm3Xk9Zt7\\n' | sudo passwd ann", "Qm3Xk9Zt7"),
        (
            "====  ====  ===========\nhost  user  password\n====  ====  ===========\nnas   ann   Dulcimer172\n"
            "====  ====  ===========",
            "Dulcimer172",
        ),
        ("kind: Secret\napiVersion: v1\ntype: Opaque\ndata:\n  conf: c2VjcmV0OmE5Zjg3\n", "c2VjcmV0OmE5Zjg3"),
        (f"tail -3 id\n{'Ab3dE' * 12}\nq7Lw2Rv5Yb8kT3==\n-----END OPENSSH PRIVATE KEY-----", "q7Lw2Rv5Yb8kT3"),
        ("GitHub recovery codes:\na1b2c-d3e4f\n9k8j7-h6g5f\nq2w3e-r4t5y\n", "9k8j7-h6g5f"),
        (f"[{', '.join(str(byte * 37 % 256) for byte in range(3, 67))}]", "111, 148, 185"),
    ],
)
def test_a_secret_of_a_place_is_masked_in_messages_and_results(text: str, value: str | None) -> None:
    value = value or text.split("=", 1)[1].strip()
    assert value in text
    assert all(value not in kept for kept in stored(text))


@pytest.mark.parametrize("value", ["Tangerine239!", "Papillon663#", "Qm3Xk9Zt7Lw"])
@pytest.mark.parametrize(
    "sentence",
    [
        "Het wachtwoord van de wifi is {}.",
        "Heslo k wifi je {}.",
        "Lösenordet till routern är {}.",
        "Wifi şifresi {}, unutma.",
        "мой пароль теперь {}",
        "Пароль до роутера — {}",
        "वाईफाई का पासवर्ड {} है",
        "Ο κωδικός του wifi είναι {}",
        "I changed my Netflix password from something to {} yesterday",
    ],
)
def test_a_password_that_a_sentence_gives_is_masked_in_any_language(sentence: str, value: str) -> None:
    assert value[:-1] not in mask(sentence.format(value))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("PIN der EC-Karte: 167716", "167716"),
        ("Koden til døra er 3611", "3611"),
        ("the key box code is 6713", "6713"),
        ("Le code du portail est 48A21", "48A21"),
        ("I changed my password from Tangerine239! to Papillon663# today", "Tangerine239! to Papillon663#"),
    ],
)
def test_the_code_of_a_card_or_a_door_and_an_old_password_are_masked(text: str, code: str) -> None:
    assert mask(text) == text.replace(code, "•••")


def test_a_seed_phrase_is_masked_between_lines_of_its_words() -> None:
    phrase = "legal winner thank year wave sausage worth useful legal winner thank yellow"
    phrase = phrase.replace("legal winner thank yellow", "absorb canyon title yellow")
    assert phrase not in mask(f"tail\ntail\n{phrase}\n\ntail\ntail")
