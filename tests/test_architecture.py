"""The shape of the code: imports point down, each vendor library and all SQL have one place, starting is cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "mcp_memory"
SOURCES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}

# From the floor up. A unit imports from the layers below it and from itself; two units of one layer do not
# know each other. Layers above the store import the modules of `store.sql` (`turn_rows`, `atom_rows` …) and pass their
# functions to `Store.read` and `Store.write`, but no module of an engine, and they contain no SQL.
LAYERS: list[set[str]] = [
    {"core"},
    {"language"},
    {"store", "models"},
    {"suspicion"},  # asks the bundled encoder for a second opinion
    {"longterm", "shortterm"},
    {"service"},
    {"ui"},
    {"server", "integrations", "testing"},
    {"daemon"},
    {"cli"},
    {"__main__"},
]
LAYER_OF = {unit: height for height, units in enumerate(LAYERS) for unit in units}

# Where each vendor library may be imported; pydantic and anyio are everywhere's.
VENDORS = {
    "apsw": "store/sqlite/",
    "simsimd": "store/sqlite/index/nearest_rows.py",
    "psycopg": "store/postgres/",
    "obstore": "store/postgres/objects.py",
    "tiktoken": "core/token_counts.py",
    "litellm": "models/llm.py",
    "threadpoolctl": "models/embed/",
    "mcp": "server/|service/jsonrpc.py|cli/demo/|integrations/proxy/http_server.py|integrations/clients/server_check.py",
    "httpx2": "integrations/proxy/http_server.py|server/oauth.py",
    "jwt": "server/oauth.py",
    "uvicorn": "service/http_server.py",
    "starlette": "server/|ui/|service/http_server.py",
    "click": "cli/",
    "mermaidx": "cli/|service/render.py",
    "numpy": "store/|models/embed/|longterm/|service/indexing.py|ui/pictures/placing.py|testing.py|cli/evaluation/",
    "Stemmer": "language/words.py",
    "ahocorasick": "core/substrings.py",
    "marisa_trie": "core/tries.py",
    "regex": "shortterm/",
    "jsonpath": "shortterm/",
    "yaml": "shortterm/synopsis/parsed.py|integrations/clients/yaml_text.py",
    "opentelemetry": "core/telemetry.py",
    "pydantic": "",
    "pydantic_core": "",
    "anyio": "",
}

HEAVY = ["litellm", "numpy", "simsimd", "tiktoken", "tokenizers", "model2vec", "fastembed", "mermaidx", "hypothesis"]

SQL = re.compile(
    r"\b(SELECT\b.+\bFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM"
    r"|(CREATE|DROP|ALTER)\s+(VIRTUAL\s+)?(TABLE|INDEX)|PRAGMA\s+\w+|BEGIN\s+IMMEDIATE)\b",
    re.DOTALL,
)


def imports_of(source: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in the file: `from a import b` counts as `a` and `a.b`."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=0):
                yield str(module)
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom(level=level):
                yield "." * level
            case _:
                pass


@cache
def imports() -> dict[str, set[str]]:
    """What each file of the package imports, by its path in the package."""
    return {file: set(imports_of(source)) for file, source in SOURCES.items()}


def unit_of(dotted: str) -> str | None:
    """`mcp_memory.store.sqlite` → `store`; None for other packages and for `mcp_memory` itself."""
    package, _, rest = dotted.partition(".")
    unit = rest.partition(".")[0]
    is_unit = package == "mcp_memory" and ((PACKAGE / unit).is_dir() or (PACKAGE / f"{unit}.py").is_file())
    return unit if unit and is_unit else None


def strings_of(source: Path) -> Iterator[str]:
    """Every string literal but the docstrings."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def own_unit(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


def test_every_module_has_a_layer() -> None:
    assert {own_unit(file) for file in SOURCES} - {"__init__"} - set(LAYER_OF) == set()


def test_imports_point_down() -> None:
    upward = {
        (file, str(unit))
        for file, imported in imports().items()
        for unit in {unit_of(dotted) for dotted in imported} - {None, own_unit(file)}
        if file != "__init__.py" and LAYER_OF[str(unit)] >= LAYER_OF[own_unit(file)]
    }
    assert upward == set()


def run_at_import(body: Sequence[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import that runs when a module is loaded: none of a function, and none for types alone."""
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
                yield from run_at_import(orelse)
            case _:
                inner = [getattr(node, field, []) for field in ("body", "orelse", "handlers", "finalbody")]
                yield from run_at_import(list(chain.from_iterable(inner)))


def loaded_before(module: str, source: Path) -> set[str]:
    """The modules of the package that are loaded before a module is: its package, and what it imports."""
    before = {module.rpartition(".")[0]}
    for node in run_at_import(ast.parse(source.read_text(encoding="utf-8")).body):
        match node:
            case ast.ImportFrom(module=str(package), names=names):
                before |= {package, *(f"{package}.{alias.name}" for alias in names)}
            case _:
                before |= {alias.name for alias in node.names}
    return before - {module}


def test_threads_may_import_any_modules_at_once() -> None:
    """A module waits for its package. If the package imports the module, two threads may wait for each other, and
    Python raises an error in one of them (CPython issue 83065): an internal error in one of the first calls.
    """
    modules = {".".join(("mcp_memory", *Path(file).with_suffix("").parts)): file for file in SOURCES}
    names = {module.removesuffix(".__init__"): SOURCES[file] for module, file in modules.items()}
    graph = {module: loaded_before(module, source) & names.keys() for module, source in names.items()}
    assert graph["mcp_memory.longterm.search.pages"] >= {"mcp_memory.longterm.search", "mcp_memory.core.errors"}
    TopologicalSorter(graph).prepare()  # CycleError names the modules of a circle


def test_files_import_each_other_in_no_circle() -> None:
    """Neither when they are loaded, nor later in a function, nor for types alone."""
    modules = {".".join(("mcp_memory", *Path(file).with_suffix("").parts)): file for file in SOURCES}
    names = {module.removesuffix(".__init__"): file for module, file in modules.items() if file != "__init__.py"}
    graph: dict[str, set[str]] = {}
    for module, file in names.items():
        packages = {dotted.rpartition(".")[0] for dotted in imports()[file] & names.keys()}
        graph[module] = (imports()[file] & names.keys()) - packages - {module}
    assert graph["mcp_memory.longterm.extraction"] >= {"mcp_memory.longterm.grounding", "mcp_memory.core.errors"}
    TopologicalSorter(graph).prepare()  # CycleError names the files of a circle


def test_imports_name_their_module_in_full() -> None:
    relative = {file for file, imported in imports().items() if any(dotted.startswith(".") for dotted in imported)}
    assert relative == set()


def test_only_memory_recall_by_words_and_upkeep_know_which_store_it_is() -> None:
    knowing = {
        file
        for file, imported in imports().items()
        if any(dotted.startswith("mcp_memory.store.sqlite") for dotted in imported)
    }
    outside = {file for file in knowing if not file.startswith(("store/", "service/upkeep/"))}
    assert outside == {"service/memory.py", "service/word_recall.py"}


def test_each_vendor_library_is_imported_in_its_place() -> None:
    misplaced = {
        (file, vendor)
        for file, imported in imports().items()
        for vendor in {dotted.partition(".")[0] for dotted in imported} - sys.stdlib_module_names - {"mcp_memory"}
        if vendor not in VENDORS or not re.match(VENDORS[vendor], file)
    }
    assert misplaced == set()


def test_sql_lives_under_store_and_nowhere_else() -> None:
    elsewhere = ("store/", "integrations/importers/sqlite_file.py")  # the second reads databases of other programs
    outside = {file: source for file, source in SOURCES.items() if not file.startswith(elsewhere)}
    assert {
        (file, text) for file, source in outside.items() for text in strings_of(source) if SQL.search(text)
    } == set()


@pytest.mark.parametrize("module", ["mcp_memory", "mcp_memory.server.mcp_server", "mcp_memory.cli.main"])
def test_starting_loads_no_heavy_library(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == ("[]", "")


def test_opening_a_memory_loads_no_heavy_library(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from mcp_memory.store.sqlite.store import open_store\n"
        f"open_store(Path(sys.argv[1])).close(); print([name for name in {HEAVY} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == ("[]", "")
