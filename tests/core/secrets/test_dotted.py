"""Passwords with dots in them, which must not be taken for attributes such as `form.password`."""

from __future__ import annotations

import random
import string

import pytest

from mcp_memory.core.secrets.masking import mask

TEMPLATES = (
    "DB_PASSWORD={}",
    '{{"user": "ann", "password": "{}"}}',
    "database:\n  user: ann\n  password: {}\n",
    "MYSQL_ROOT_PASSWORD: {}",
    "postgresql://ann:{}@db.example.org/shop",
    "[mail]\nuser = ann\npassword = {}\n",
    "<user>ann</user><password>{}</password>",
    "sshpass -p '{}' ssh ann@db",
    "wget --user=ann --password={} https://example.org",
    "machine example.org login ann password {}",
    "host,user,password\ndb,ann,{}\n",
)


def drawn(seed: int) -> str:
    """Return a password of eight to twenty letters and digits of all kinds, with a dot among them."""
    chance = random.Random(seed)
    while True:
        value = "".join(chance.choices(string.ascii_letters + string.digits, k=chance.randint(8, 20)))
        dot = chance.randrange(2, len(value) - 1)
        value = f"{value[:dot]}.{value[dot + 1 :]}"
        inside = value[1:-1]  # an identifier may end with a digit
        if any(map(str.isdigit, inside)) and any(map(str.islower, value)) and any(map(str.isupper, value)):
            return value


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_drawn_password_is_masked_with_a_dot_in_it(template: str) -> None:
    values = [drawn(seed) for seed in range(200)]
    for prose in (True, False):
        assert [value for value in values if value in mask(template.format(value), prose=prose)] == []


@pytest.mark.parametrize("value", ["Winter2024.Oslo", "nEK76a.ST2Dr", "rAFkF.uvs8Qy"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_chosen_password_is_masked_with_a_dot_in_it(template: str, value: str) -> None:
    assert value not in mask(template.format(value))


@pytest.mark.parametrize(
    "code",
    [
        "password = form.password.data",
        "password = record.pw",
        "token: config.api.token",
        "secret = k8s.secrets.get",
        "    password=self.cfg.pw2,",
        "login(user.name, user.password)",
        "const password = req.body.dbPassword;",
        "  adminPassword: values.postgres.adminSecret",
        'password: "auth.login.password"',
    ],
)
def test_an_attribute_of_an_object_is_no_password(code: str) -> None:
    assert mask(code) == code
    assert mask(code, prose=False) == code
