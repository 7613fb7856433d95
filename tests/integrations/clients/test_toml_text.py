"""Tables of a TOML document come, change and go; every other byte stays."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.clients.json_text import same_value
from mcp_memory.integrations.clients.toml_text import BadToml, read_toml, rewrite_toml, toml_table

MEMORY = {"command": "/x/mcp-memory", "args": ["serve"], "env": {"KEY": 'quo"te\\ \x7f é'}}
BLOCK = (
    '[mcp_servers.memory]\ncommand = "/x/mcp-memory"\nargs = ["serve"]\n\n'
    '[mcp_servers.memory.env]\nKEY = "quo\\"te\\\\ \\u007f é"\n'
)

DOCUMENTS = [
    "",
    "a = 1",
    "# c\n\n[x]\ny = 1 # k\n\n# the end\n",
    "[mcp_servers.other]\ncommand = 'a'\n\n[mcp_servers.other.env]\nB = 'c'\n\n# about z\n[z]\nq = 1\n",
    "[mcp_servers]\n\n[z]\na = 1\n",
    "[mcp_servers.a]\ncommand='1'\n[z]\nq=1\n[mcp_servers.b]\ncommand='2'\n# tail\n",
    "mcp_servers.other.command = 'x'\nm = 1\n[k]\n",
    "[a]\r\nb = 1\r\n\r\n[mcp_servers.q]\r\ncommand = '1'\r\n",
    "[profiles.x.mcp_servers.memory]\ncommand = 'z'\n",
    '\ufeffa = """\n[mcp_servers.memory]\n"""\n',
    "a = [\n  [1, 2],\n  # ]\n]\nb = '''\n[x]'''\n[[list]]\nn = nan\n[[list]]\n",
    "[ \"a.b\" . 'c]' ] # [no]\nwhen = 2026-10-25T01:02:03Z\n",
]


def with_memory(text: str, entry: dict[str, Any] = MEMORY) -> dict[str, Any]:
    document = read_toml(text)
    return {**document, "mcp_servers": {**document.get("mcp_servers", {}), "memory": entry}}


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_new_table_goes_to_the_end_once_and_away_again(text: str) -> None:
    assert rewrite_toml(text, read_toml(text)) == text
    added = rewrite_toml(text, with_memory(text))
    assert added.startswith(text)
    assert rewrite_toml(added, with_memory(text)) == added
    assert added.replace("\r\n", "\n").endswith(BLOCK)
    assert same_value(read_toml(added), with_memory(text))
    assert added.count("\r\n") in (0, added.count("\n"))
    assert rewrite_toml(added, read_toml(text)) in (text, text + "\n")  # a last line gets its end


def test_a_table_that_changes_keeps_its_place() -> None:
    text = f"# top\n{BLOCK}\n# about z\n[z]\nq = 1\n"
    assert rewrite_toml(text, with_memory(text, {"command": "y", "startup_timeout_sec": 9.5, "on": True})) == (
        '# top\n[mcp_servers.memory]\ncommand = "y"\nstartup_timeout_sec = 9.5\non = true\n\n# about z\n[z]\nq = 1\n'
    )


def test_a_table_whose_parts_are_scattered_goes_whole() -> None:
    text = '[mcp_servers.memory]\ncommand = "x"\n\n[z]\nq = 1\n\n[mcp_servers.memory.env]\nA = "b"\n# tail\n'
    document = read_toml(text)
    del document["mcp_servers"]
    assert rewrite_toml(text, document) == "[z]\nq = 1\n\n# tail\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = \n", "Invalid value (at line 1, column 5)"),
        ("[x\n", "Expected ']' at the end of a table declaration (at line 1, column 3)"),
        ("a = " + "[" * 5000, "it holds a number or a nesting that is too large to read"),
    ],
)
def test_what_is_no_toml_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(BadToml) as caught:
        read_toml(text)
    assert str(caught.value) == said


def test_tables_in_braces_are_refused_not_mangled() -> None:
    text = "mcp_servers = { other = { command = 'a' } }\n"
    with pytest.raises(BadToml, match="braces"):
        rewrite_toml(text, with_memory(text))
    text = "[mcp_servers]\nmemory = { command = 'mcp-memory', args = ['serve'] }\n"
    with pytest.raises(BadToml, match=r"no|not a table of its own, with a line \[mcp_servers.memory\]"):
        rewrite_toml(text, {"mcp_servers": {}})


PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    PLAIN | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN, st.dictionaries(PLAIN, VALUES, max_size=4))
def test_a_table_is_written_as_toml_reads_it(name: str, values: dict[str, Any]) -> None:
    written = toml_table(("servers", name), values)
    assert same_value(tomllib.loads(written), {"servers": {name: values}})
