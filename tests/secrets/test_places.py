"""Secrets that only their place tells: arguments of commands, structures of programs, sentences; with drawn values."""

from __future__ import annotations

import pytest

from mcp_memory.secrets import mask, mask_bytes

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


def stored(text: str) -> set[str]:
    """Return what is stored of a text: as a message, and as a tool's result."""
    return {mask(text), mask_bytes(text.encode())[0].decode()}


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
    "command",
    [
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
    ],
)
def test_what_stands_for_a_password_in_a_command_stays(command: str) -> None:
    assert stored(command) == {command}


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
