"""Hashes of passwords without a salt, recovery codes in a line, and passwords of proxies."""

from __future__ import annotations

import pytest

from tests.core.secrets.masked import stored

MD5 = "9c4e07b1d85f3a62e7708bd4c1f59a36"
SHA1 = MD5 + "0a1b2c3d"
SHA256 = MD5 * 2


@pytest.mark.parametrize("value", [MD5, SHA1, SHA256, "pmWkWSBCL51Bfkhn79xPuKBKHz//H6B+mY6G9/eieuM="])
@pytest.mark.parametrize(
    "text",
    [
        "password_hash: {}",
        '{{"password_hash": "{}"}}',
        "passwordHash={}",
        "PASSWORD_HASH={}",
        "user.password_hash: {}",
        "hashed_password: {}",
        "pwhash {}",
        "Passwort-Hash: {}",
        "hash: x\npasswd_md5: {}",
    ],
)
def test_the_hash_of_a_password_is_masked_behind_its_name(text: str, value: str) -> None:
    assert stored(text.format(value)) == {text.format("•••")}


def test_a_hash_of_mysql_is_masked_wherever_it_is() -> None:
    digest = SHA1.upper()
    text = "| root | localhost | *{} |"
    assert stored(text.format(digest)) == {text.format("•••")}


@pytest.mark.parametrize(
    "text",
    [
        # hashes of other things, and names of algorithms
        f"sha256: {SHA256}",
        f"git hash {SHA1}",
        f"content_hash: {SHA256}",
        f"file hash {SHA256}",
        f'"etag": "{MD5}"',
        f"password hash fixed in {SHA1}",
        f"the image of the password hash service is {SHA256[:40]}",
        "password_hash: argon2id",
        "password_hash: bcrypt-with-twelve-rounds",
        "password_hash = hash_password(password)",
        "passwordHash: user.passwordHash",
        '"password_hash": "PBKDF2WithHmacSHA256"',
        '"password_hash_algorithm": "sha256"',
        f"rm -r build/*{SHA1}",
        # what stands for a password of a proxy or a cipher
        "curl -U $USER:$PASS https://example.org",
        "curl --proxy-user user:password https://example.org",
        "openssl enc -aes-256-cbc -kfile /etc/key2 -in f",
        "openssl enc -k password -in f",
        "pip install -U package:extra1",
        # code that recovers something
        "Recovery code: see runbook-2024",
        "Recovery code: auto-restart",
        "Recovery code: src/recovery/handler2.rs",
        "recovery codes: 10 left",
    ],
)
def test_other_hashes_names_and_codes_stay(text: str) -> None:
    assert stored(text) == {text}


@pytest.mark.parametrize(
    "text",
    [
        "curl -U ann:{} https://example.org",
        "curl -sS -x http://p:8080 -U 'ann:{}' https://example.org",
        "curl --proxy-user ann:{} https://example.org",
        "curl --proxy-user=ann:{} https://example.org",
        '["curl", "-U", "ann:{}"]',
        '["curl", "--proxy-user", "ann:{}"]',
        "wget --http-password {} http://example.org",
        "wget --proxy-password={} http://example.org",
        "openssl enc -aes-256-cbc -k {} -in f",
        "openssl aes-256-cbc -d -k '{}' -in f",
        "db.local:5432:shop:ann:{}",
    ],
)
def test_a_password_of_a_proxy_or_a_cipher_is_masked(text: str) -> None:
    assert stored(text.format("Tr4vel#Mugs")) == {text.format("•••")}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Recovery code: jhhgw-p7cgy", "Recovery code: •••"),
        ("2FA backup codes: 6656-4361", "2FA backup codes: •••"),
        ("My backup codes: 6656-4361, 8873-1120, 2290-7714.", "My backup codes: •••."),
        ("Wiederherstellungscode: A7K2-9QXM-44TZ", "Wiederherstellungscode: •••"),
    ],
)
def test_recovery_codes_in_a_line_are_masked_to_the_last_one(text: str, masked: str) -> None:
    assert stored(text) == {masked}
