"""The layout of an export. Pure.

    README.md                                 explains all of it
    manifest.json                             {format, version, home, spaces: {name: counts},
                                               members: {path: {bytes, sha256}}}
    spaces/<space>/persona.md
                   scenes/<slug>.md
                   sessions/<session>.md      conversations, for people
                   canvases/NNN-<label>.mmd
                   refs/<file>.md             results of tools: front matter, then their bytes
                   data/<kind>.jsonl          one row per line, for import

Members are sorted by name, the manifest last.
"""

from __future__ import annotations

from mcp_memory.store import export_model as model

__all__ = ["FORMAT", "KINDS", "MANIFEST", "README", "README_NAME", "VERSION", "data_name", "kind_of"]

FORMAT = "mcp-memory export"
VERSION = 1
MANIFEST = "manifest.json"
README_NAME = "README.md"

KINDS: dict[str, type[model.ExportedRow]] = {
    "refs": model.ExportedRef,
    "turns": model.ExportedTurn,
    "entities": model.ExportedEntity,
    "atoms": model.ExportedAtom,
    "held": model.ExportedReview,
    "records": model.ExportedRecord,
    "canvases": model.ExportedCanvas,
    "scenes": model.ExportedScene,
    "persona": model.ExportedPersona,
    "citations": model.ExportedCitation,
    "sessions": model.ExportedSession,
    "progress": model.ExportedProgress,
    "tombstones": model.ExportedTombstone,
}
"""What `data/` has a file of, in the order in which a store takes it in; one without rows is left out."""

_KIND_OF = {row: kind for kind, row in KINDS.items()}


def kind_of(row: model.ExportedRow) -> str:
    return _KIND_OF[type(row)]


def data_name(space: str, kind: str) -> str:
    return f"spaces/{space}/data/{kind}.jsonl"


README = """\
# A memory, exported by mcp-memory

Everything here is plain text. The Markdown is for you; what a program reads back is under `data/`.

| in `spaces/<space>/` | is |
|---|---|
| `persona.md`, `scenes/` | what is known, told in pages |
| `sessions/` | what was said, a page for each conversation |
| `canvases/` | tasks as flowcharts, in Mermaid |
| `refs/` | results of tools: a few lines about each, then its bytes unchanged |
| `data/turns.jsonl` | every message, verbatim, with the SHA-256 by which it is known to be unchanged |
| `data/atoms.jsonl` | statements: the words of which turns they rest on (`evidence`), from when until when they hold, \
when and from whom they were learned (`learned_at`, `source`), the fact they state, and what replaced them |
| `data/entities.jsonl` | names of people, places and things, with their other names |
| `data/records.jsonl`, `data/canvases.jsonl`, `data/refs.jsonl` | steps of tasks, how their canvases came about, \
and what each result is |
| `data/scenes.jsonl`, `data/persona.jsonl` | the pages, with their versions |
| `data/citations.jsonl` | which turns and statements name which results |
| `data/held.jsonl` | what waits for review before it is recalled |
| `data/sessions.jsonl`, `data/progress.jsonl` | how far each conversation was read for statements, and those told |
| `data/tombstones.jsonl` | what was forgotten: when, why and which rows, without a word of them |

Rows are named as they were at home: turn `t12`, statement `a5`, result `r-9f2c1a7b3d4e`, step `003-N4`. Together with
the home in `manifest.json` and the time of learning that makes a row known anywhere, so `mcp-memory import` stores each
once, however often and by whatever way it comes. `origins` says where a row had come from itself.

What was forgotten is not in here, and an import of this takes it out on the other side too; `forget` can undo that
there. Not in here either: indexes and vectors, which are made anew, what models cost, tokens, and logs of programs.

`manifest.json` has the size and SHA-256 of every file, and `unzip -t` and `sha256sum` agree with it. The same memory
gives the same bytes, whenever it is exported.
"""
