"""Secrets that people tell in sentences, in many languages: numbers of cards and phones, and passwords."""

from __future__ import annotations

import pytest

from mcp_memory.core.secrets.masking import mask
from tests.core.secrets.masked import stored, stored_result

RANDOM, CHOSEN = "Rk7vTq2mWz", "Walnut!ferry48"


@pytest.mark.parametrize(
    "text",
    [
        "The PIN of my old phone is {8842}",
        "PIN for the safe: {55203}",
        "What is the PIN? It's {6638}",
        "Die PIN meiner Kreditkarte lautet {904217}",
        "Die Geheimzahl ist {9042}",
        "Le code PIN de la carte, c'est {7391}",
        "El PIN del móvil es {8350}",
        "O PIN do cartão é {6190}",
        "Il PIN della SIM è {5528}",
        "Mijn pincode is {7742}",
        "Min pinkod är {6681}",
        "PIN mojej karty to {5928}",
        "Пин-код моей карты {7482}",
        "PUK der SIM-Karte: {93710426}",
        "The CVV of my card is {739}",
        "the security code on the back of my card is {482}",
        "我的PIN码是{6620}",
        "スマホのPINは{7729}です",
        "Portkoden er {6039}",
    ],
)
def test_the_number_of_a_card_or_phone_is_masked_whatever_says_whose_it_is(text: str) -> None:
    start, end = text.index("{"), text.index("}") + 1
    assert mask(text.replace("{", "").replace("}", "")) == f"{text[:start]}•••{text[end:]}"


@pytest.mark.parametrize(
    "text",
    [
        "The PIN was changed in 2024",
        "PIN must have 4 digits, the pad has 12 keys",
        "pin 2304 of the FPGA package is ground",
        "pin my notes to 2025 first",
        "The PIN code of Mumbai is 400001",
        "PIN check takes 1500 ms",
        "my PIN was blocked at counter 2417",
        "CVV check failed with code 402",
        "El código de error es 5003",
        "the code of my flight is LH4735",
        "locker number 4711",
    ],
)
def test_other_numbers_behind_such_words_stay(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize("value", [RANDOM, CHOSEN])
@pytest.mark.parametrize(
    "text",
    [
        "The password? It's {}",
        "I forgot to tell you the password. It's {}.",
        "The passphrase, if I remember well, {}",
        "My new passcode would be {} from Monday",
        "I set {} as the new VPN password",
        "ich habe das Passwort gestern auf {} geändert",
        "J'ai remplacé mon mot de passe par {}",
        "cambié la contraseña a {}",
        "A minha palavra-passe é {}",
        "Ho cambiato la password in {}",
        "A wifi jelszava {}.",
        "Пароль от почты {}",
        "Паролата ми е {}",
        "Moje geslo je {}",
        "Mano slaptažodis yra {}",
        "Mana parole ir {}",
        "Minu uus parool on {}",
        "Nenosiri langu ni {}",
        "رمز عبور من {} است",
        "WiFi密码改成了{}",
        "パスワードを{}に変えました",
        "비밀번호를 {}로 바꿨어요",
        "my creds are otto / {}",
        "the login credentials are otto:{}",
        "Wi-Fi: Lakeview, key {}",
    ],
)
def test_a_password_is_masked_whatever_stands_between_it_and_its_name(text: str, value: str) -> None:
    assert mask(text.format(value)) == text.format("•••")


@pytest.mark.parametrize(
    "text",
    [
        # names in sentences about passwords
        "We hash the password with PBKDF2WithHmacSHA256",
        "the password was fixed in 3e7a1f0b2c4d5e6f708192a3b4c5d6e7f8091a2b",
        "The password dialog in LoginFormV2 breaks on iPhone15Pro",
        "password input has the class md:w-1/2 or btn-Primary2X",
        "password for the box with serial C02XK1ZZJGH5 is unknown",
        "Das Passwort für die Fritzbox7590 ist vergessen",
        "The password table moved to PostgreSQL17.2",
        "see issue octo/vault#4711 about the password, and RFC8265",
        "password by mail to anna.k+test1@example.org",
        "Is the password in us-east-1? Ask on 2026-11-28T14:02:32Z",
        "passwd/apr1-*.pl; s#passwd.1#passwd.5#",
        "Sign in with Google / GitHub2",
        "Wifi: 5GHz, key features: mesh2 and WPA3",
        "released on parole in 2021 from block B12",
        "пароль должен быть не короче 12 символов",
        # functions, ports and types
        "verify_token(Kx8vQ2mzPdR4nW7c)",
        "reset_token = create_token(user)",
        '"next_token": "Kx8vQ2mzPdR4nW7cLs37"',
        "kpasswd         464/tcp\nkpasswd         464/udp",
        '"AWS::Redshift::EndpointAuthorization": RedshiftEndpointAuthorizationType',
        "vault login -method=github",
        "enable secret scanning2024",
        "fc-barcelona-2024-season-report-final and jina_embeddings_v3_base_en",
    ],
)
def test_names_in_sentences_about_passwords_functions_ports_and_types_stay(text: str) -> None:
    assert stored(text) == {text}


@pytest.mark.parametrize("name", ["reset_token", "verify_token", "createToken", "password_reset_token", "check-token"])
@pytest.mark.parametrize("text", ["/c?a=1&{}=%s", "{}=%s", '{{"{}": "%s"}}', "{}: %s"])
def test_a_token_is_masked_when_its_name_says_what_it_does(name: str, text: str) -> None:
    text = text.format(name)
    assert stored_result(text % "Kx8vQ2mzPdR4nW7cLs37") == text % "•••"


HEX = "9c4e07b1d85f3a62e7708bd4c1f59a36"
LETTERS = "Kx8vQ2mzPdR4nW7cLs37" * 8


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("oy2" + "a1b2c" * 8 + "d3e", "oy2•••"),
        (f"access_token$production$a1b2c3d4e5f6g7h8${HEX}", "access_token$production$•••"),
        ("access-sandbox-9c4e07b1-d85f-3a62-e770-8bd4c1f59a36", "access-sandbox-•••"),
        (f"FLWSECK-{HEX}-X", "FLWSECK-•••"),
        (f"AAAA1b2c3d4:APA91b{LETTERS[:134]}", "•••"),
        ("AQVN" + LETTERS[:36], "AQVN•••"),
        ("csk-" + "a1b2c3" * 8, "csk-•••"),
        (f"jina_{HEX}{LETTERS[:28]}", "jina_•••"),
        (f"fc-{HEX}", "fc-•••"),
        ("eyJhbGciOiJkaXIifQ.." + ".".join([LETTERS[:16], LETTERS[:60], LETTERS[:22]]), "eyJ•••"),
        (f"SCRAM-SHA-256$4096:{LETTERS[:22]}==${LETTERS[:43]}=:{LETTERS[:43]}=", "SCRAM-SHA-256$•••"),
        (f"/IncomingWebhook/{HEX}", "/IncomingWebhook/•••"),
        ('"SigningKey": "Kx8vQ2mzPdR4"', '"SigningKey": "•••"'),
        ("    Key Content            : Kx8vQ2mz", "    Key Content            : •••"),
        ("<keyMaterial>Kx8vQ2mz</keyMaterial>", "<keyMaterial>•••</keyMaterial>"),
        ("hydra -l ann -p Kx8vQ2mz ssh://h", "hydra -l ann -p ••• ssh://h"),
        ("isql -U sa -P Kx8vQ2mz -S srv", "isql -U sa -P ••• -S srv"),
        ("vault login Kx8vQ2mz", "vault login •••"),
        ("enable secret Kx8vQ2mzPd", "enable secret •••"),
    ],
)
def test_keys_of_more_makers_and_passwords_of_more_commands_are_masked(text: str, masked: str) -> None:
    assert stored(text) == {masked}
