"""No key in an imported file is stored: not in names, ids, titles, nor in the name of the file."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from click.testing import CliRunner

from mcp_memory.cli.main import program


def test_no_field_of_another_memorys_statements_stores_a_key(tmp_path: Path) -> None:
    keys: dict[str, str] = {}

    def key(where: str) -> str:
        made = sha256(where.encode()).hexdigest()[:36]
        keys[made] = where
        return f"ghp_{made}"

    name, other = f"E {key('entity')}", f"Al {key('other')}"
    graph = [
        {"type": "entity", "name": name, "entityType": f"tool {key('type')}", "observations": [f"is {key('seen')}"]},
        {"type": "entity", "name": other, "entityType": "person", "observations": ["tall"]},
        {"type": "relation", "from": other, "to": name, "relationType": f"knows {key('relation')}"},
    ]
    note = (
        f"---\ntitle: T {key('title')}\npermalink: t\n---\n# T\n\n- [fact] b {key('b')}\n- uses [[O {key('link')}]]\n"
    )
    chat = {"role": "user", "content": "Hi", "session": f"s {key('session')}", "id": key("message"), "name": "Al"}
    mem0 = {"results": [{"id": key("id"), "memory": f"Likes {key('memory')}", "user_id": "u"}]}
    files = {
        f"graph {key('file')}.jsonl": "\n".join(map(json.dumps, graph)),
        "chat.jsonl": json.dumps(chat),
        "mem0.json": json.dumps(mem0),
        f"note {key('note')}.md": note,
    }
    for file, text in files.items():
        (tmp_path / file).write_text(text)
        done = CliRunner().invoke(
            program, ["--home", str(tmp_path / "h"), "import", str(tmp_path / file)], prog_name="mcp-memory"
        )
        assert done.exit_code == 0, done.output
    files = [path for path in (tmp_path / "h").rglob("*") if path.is_file()]
    assert sorted({keys[key] for key in keys for path in files if key.encode() in path.read_bytes()}) == []
