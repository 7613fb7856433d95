"""Hooks of mkdocs: pages from outside docs/, links that work on the site and in the repository, and drawn diagrams.

The pages of docs/ link to other files of the repository by relative path, so that the links work where the repository
is read. On the site, such a link leads to the page made from that file, or else to the file in the repository.
Diagrams are drawn by the real Mermaid while the site is built: the theme would load it from another host.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

mermaidx: Any = import_module("mermaidx")  # it has no types


ROOT = Path(__file__).resolve().parent.parent
PAGES = {"SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md", "bench/RESULTS.md": "results.md"}
"""Files outside docs/ that are pages of the site, and their names there."""
REPOSITORY = "https://github.com/mcp-memory/mcp-memory/blob/main/"

_LINK = re.compile(r"\]\(([\w./-]+)(#[\w-]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have diagrams drawn."""
    fences = [{"name": "mermaid", "class": "mermaid", "format": _draw}]
    configs = cast("dict[str, Any]", config.mdx_configs)  # pyright: ignore[reportUnknownMemberType]
    configs["pymdownx.superfences"] = {"custom_fences": fences}
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for source, name in PAGES.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links of the site."""
    source = next((source for source, name in PAGES.items() if name == page.file.src_uri), f"docs/{page.file.src_uri}")

    def link(match: re.Match[str]) -> str:
        target = (ROOT / source).parent.joinpath(match[1]).resolve().relative_to(ROOT).as_posix()
        if target.startswith("docs/"):
            place = target.removeprefix("docs/")
        else:
            place = PAGES.get(target, f"{REPOSITORY}{target}")
        return f"]({place}{match[2] or ''})"

    return _LINK.sub(link, markdown)


def _draw(source: str, *_: Any, **__: Any) -> str:
    return f'<div class="diagram">{mermaidx.render(source).svg()}</div>'
