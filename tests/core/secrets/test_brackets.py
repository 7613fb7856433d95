"""Secrets in brackets, in the next sentence or on the next line, and behind abbreviations of "password"."""

from __future__ import annotations

import pytest

from mcp_memory.core.secrets.masking import mask
from tests.core.secrets.masked import stored, stored_result

PASSWORDS = ["Tr4vel#Mugs", "x9Kq2LmVp7", "Kiwi_7731!aZ"]


@pytest.mark.parametrize("value", PASSWORDS)
@pytest.mark.parametrize(
    "text",
    [
        # in brackets behind its name
        "My password ({}) leaked",
        "my wifi password [{}] is on the fridge",
        'My password ("{}") leaked',
        "My password (currently {}) leaked",
        "I wrote the password ({}) on paper.",
        "Mein Passwort ({}) ist alt",
        "Mein Passwort (es lautet {}) ist alt",
        "Mon mot de passe ({}) est vieux",
        "Mi contraseña ({}) es vieja",
        "La mia password ({}) è scaduta",
        "Minha senha ({}) vazou",
        "Moje hasło ({}) wyciekło",
        "Мой пароль ({}) утёк",
        "Şifrem ({}) sızdı",
        "我的密码（{}）泄露了",
        "パスワード({})が漏れた",
        # in the next sentence or line
        "I changed my password. The new one is {}.",
        "I changed my password. Now it's {}.",
        "Ich habe mein Passwort geändert. Das neue ist {}.",
        "J'ai changé mon mot de passe. Le nouveau est {}.",
        "He cambiado mi contraseña. La nueva es {}.",
        "Ho cambiato la password. Quella nuova è {}.",
        "Я сменил пароль. Новый — {}.",
        "What is my wifi password?\n{}",
        "What's the password?\nA: {}",
        "Wie lautet das Passwort?\nAntwort: {}",
        "Quel est mon mot de passe ?\nR: {}",
        "My wifi password is\n{}",
        # behind an abbreviation, or the key of a network
        "my github pw {}",
        "the root pw on pi is {}",
        "my pw on github is {}",
        "my pw ({}) leaked",
        "pswd: {}",
        "psw: {}",
        "mdp : {}",
        "le mdp du wifi c'est {}",
        "Kennw.: {}",
        "The WPA2 key is {}",
        "Network key {}",
        "der WPA2-Schlüssel ist {}",
    ],
)
def test_a_password_is_masked_in_brackets_in_the_next_line_and_behind_an_abbreviation(text: str, value: str) -> None:
    assert mask(text.format(value)) == text.format("•••")


def test_a_result_keeps_a_value_in_brackets_that_reads_as_words() -> None:
    assert stored_result("my password (x9Kq2LmVp7) leaked") == "my password (•••) leaked"
    assert stored_result("my password (Tr4vel#Mugs) leaked") == "my password (Tr4vel#Mugs) leaked"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("The API key (Kx8vQ2mzPdR4nW7cLs37) is new", "The API key (•••) is new"),
        ("The API key [Kx8vQ2mzPdR4nW7cLs37] is new", "The API key [•••] is new"),
        ("my password (Walnut48) is easy", "my password (•••) is easy"),
        ("log in as ann (password Tr4vel#Mugs)", "log in as ann (password •••)"),
        ("my credentials (ann / Tr4vel#Mugs) leaked", "my credentials (ann / •••) leaked"),
        ("Wifi Lakeview (key Tr4vel#Mugs)", "Wifi Lakeview (key •••)"),
        ("My PIN (4821) leaked", "My PIN (•••) leaked"),
        ("Meine PIN (4821) ist bekannt", "Meine PIN (•••) ist bekannt"),
        ("The PIN of my card [4821] leaked", "The PIN of my card [•••] leaked"),
        ("My alarm code (4821) leaked", "My alarm code (•••) leaked"),
    ],
)
def test_a_key_or_number_in_brackets_is_masked_up_to_the_closing_one(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "my password (the old one) works",
        "password (required)",
        "password (8-12 characters)",
        "my password (for the bank) is old",
        "my password (AES-256) is encrypted",
        "my password (SHA256) is hashed",
        "the password (PBKDF2WithHmacSHA256) is hashed",
        "the password (NTLMv2) is weak",
        "the password (Keycloak26) page",
        "my password (1Password) is safe",
        "the password (config/db2.yml) is empty",
        "the API key (OPENAI_API_KEY) is missing",
        "check_password(x9Kq2LmVp7)",
        "password [default: none]",
        "the password [42] of the list",
        "PIN (optional)",
        "my PIN (4 digits)",
        "pin (GPIO17) is high",
        "my alarm code (1234 events)",
        "error code (5003)",
    ],
)
def test_a_remark_in_brackets_behind_the_name_of_a_secret_stays(text: str) -> None:
    assert stored(text) == {text}


@pytest.mark.parametrize(
    "text",
    [
        "I changed my password. The new one is longer.",
        "I changed my password. The new one has 16 characters.",
        "I changed my phone. The new one is iPhone15Pro.",
        "I forgot my password. The new phone is iPhone15Pro.",
        "What is my wifi password?\nI forgot it.",
        "What's the password?\nA: see wiki/Page42",
        "What is the password?\nUbuntu22.04",
        "the pw command of FreeBSD14 adds users",
        "the MDP is gridworld2",
        "an MDP (GridWorld5x5) is solved",
        "PSW: 0x00AF3c",
        "Network key features: mesh2",
        "The WPA2 key is in the drawer",
        "WPA2 key exchange uses KRACK2017",
    ],
)
def test_the_next_sentence_and_other_things_with_such_names_stay(text: str) -> None:
    assert mask(text) == text
