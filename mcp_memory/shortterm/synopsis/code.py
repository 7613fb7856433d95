"""Source code: its language, what it imports, and its definitions with their line numbers.

The language is told by a path in the call, else by what the lines look like. Patterns, not parsers: they work on
a piece from the middle of a file as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.draft import Draft, listed
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.page import Line, Page, clip

__all__ = ["describe_code"]


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    content_type: str
    endings: tuple[str, ...]
    defines: re.Pattern[str]
    imports: re.Pattern[str]
    typical: re.Pattern[str]


def _language(name: str, content_type: str, endings: str, defines: str, imports: str, typical: str) -> Language:
    return Language(
        name, content_type, tuple(endings.split()), re.compile(defines), re.compile(imports), re.compile(typical)
    )


LANGUAGES = (
    _language(
        "Python", "text/x-python", "py pyi pyx",
        r"\s*(?:async\s+)?(?P<what>def|class)\s+(?P<name>\w+)",
        r"\s*(?:from\s+(?P<from>[\w.]+)\s+import|import\s+(?P<name>[\w.]+))",
        r"\s*(?:def \w+\(|class \w+.*:|from [\w.]+ import|import \w|@\w|self\.|return\b|if .*:$|for .* in .*:$|elif |else:|try:|except|with .*:$|\w+ = |raise |\"\"\"|#|assert |yield )",
    ),
    _language(
        "TypeScript", "text/typescript", "ts tsx mts",
        r"\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?P<what>function\*?|class|interface|type|enum|namespace)\s+(?P<name>\w+)|\s*(?:export\s+)?const\s+(?P<arrow>\w+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\(|function)",
        r"\s*import\b.*?['\"](?P<name>[^'\"]+)['\"]",
        r"\s*(?:interface \w+|type \w+ =|export |import .* from|const \w+.*:|.*=> \{$|\}|//|\* |public |private |readonly )",
    ),
    _language(
        "JavaScript", "text/javascript", "js jsx mjs cjs",
        r"\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?P<what>function\*?|class)\s+(?P<name>\w+)|\s*(?:export\s+)?(?:const|let|var)\s+(?P<arrow>\w+)\s*=\s*(?:async\s*)?(?:\(|function)",
        r"\s*(?:import\b.*?['\"](?P<name>[^'\"]+)['\"]|.*\brequire\(['\"](?P<from>[^'\"]+)['\"]\))",
        r"\s*(?:function\b|const |let |var |import .* from|export |.*=> \{$|\}|//|module\.exports|.*;$)",
    ),
    _language(
        "Go", "text/x-go", "go",
        r"(?P<what>func|type)\s+(?:\([^)]*\)\s*)?(?P<name>\w+)",
        r"(?:import\s+|\t)(?:\w+ )?\"(?P<name>[^\"]+)\"$",
        r"\s*(?:package \w+|func |type \w+ |if err != nil|.*:= |\}|//|return\b|import |defer |go func)",
    ),
    _language(
        "Rust", "text/x-rust", "rs",
        r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?(?:unsafe\s+)?(?P<what>fn|struct|enum|trait|mod|type|impl(?:<[^>]*>)?)\s+(?P<name>\w+)",
        r"\s*(?:pub\s+)?use\s+(?P<name>[\w:]+)",
        r"\s*(?:pub |fn |let (?:mut )?|use |impl|match |\}|//|#\[|.*;$|struct |Some\(|Ok\(|Err\()",
    ),
    _language(
        "Java", "text/x-java", "java kt scala cs",
        r"\s*(?:(?:public|private|protected|static|final|abstract|synchronized|override|internal|sealed|data)\s+)*(?:(?P<what>class|interface|enum|record|fun|object)\s+(?P<name>\w+)|(?:[\w<>\[\],.]+\s+)(?P<arrow>\w+)\s*\([^;]*\)\s*(?:throws [\w, ]+)?\{)",
        r"\s*(?:import|using)\s+(?:static\s+)?(?P<name>[\w.]+)",
        r"\s*(?:package |import [\w.]+;|public |private |protected |@\w+|\}|//|\* |return |.*;$)",
    ),
    _language(
        "C/C++", "text/x-c", "c h cc cpp cxx hpp hh m mm",
        r"(?:(?P<what>struct|class|enum|union|namespace|#define)\s+(?P<name>\w+)|(?:[\w:*&<>,]+\s+){1,6}\**(?P<arrow>[\w:~]+)\s*\([^;]*$)",
        r"\s*#\s*include\s+[<\"](?P<name>[^>\"]+)",
        r"\s*(?:#include|#define|#if|#endif|\}|//|/\*|\* |return |.*;$|struct |static |void |int |\{)",
    ),
    _language(
        "Ruby", "text/x-ruby", "rb rake",
        r"\s*(?P<what>def|class|module)\s+(?P<name>[\w.:?!]+)",
        r"\s*require(?:_relative)?\s+['\"](?P<name>[^'\"]+)",
        r"\s*(?:def |class |module |end$|require |attr_|if |unless |do \|)",
    ),
    _language(
        "PHP", "text/x-php", "php",
        r"\s*(?:(?:public|private|protected|static|abstract|final)\s+)*(?P<what>function|class|interface|trait)\s+(?P<name>\w+)",
        r"\s*use\s+(?P<name>[\w\\]+)", r"\s*(?:<\?php|\$\w+|namespace |use |public |\}|//|.*;$)",
    ),
    _language(
        "shell", "text/x-shellscript", "sh bash zsh",
        r"\s*(?:function\s+)?(?P<name>[\w-]+)\s*\(\)\s*\{", r"\s*(?:source|\.)\s+(?P<name>\S+)",
        r"\s*(?:#!/|if \[|fi$|then$|done$|for \w+ in|echo |export |set -|local |esac|\w+=\$)",
    ),
    _language(
        "SQL", "text/x-sql", "sql",
        r"\s*(?i:create\s+(?:or replace\s+)?(?:temp(?:orary)?\s+)?(?:unique\s+)?(?P<what>table|view|index|function|trigger|procedure|type)\s+(?:if not exists\s+)?)(?P<name>[\w.\"]+)",
        r"(?!)", r"\s*(?i:select |from |where |insert into|create |alter |drop |join |group by|order by|values|--|update |delete )",
    ),
    _language(
        "CSS", "text/css", "css scss less",
        r"(?P<name>[.#@]?[\w-][^{};]{0,80}?)\s*\{", r"\s*@(?:import|use)\s+['\"](?P<name>[^'\"]+)",
        r"\s*(?:[\w-]+:\s[^;]+;|[.#@&]?[\w-][^;]*\{$|\}$)",
    ),
)  # fmt: skip
ENDING = re.compile(r"\.(\w{1,5})\b(?![\w/])")
MARKDOWN = re.compile(r"#{2,6} \S|```|\s*[-*] \[|\[[^\]]+\]\(")
BY_ENDING = {ending: language for language in LANGUAGES for ending in language.endings}


def describe_code(page: Page, focus: Focus) -> Draft | None:
    """Half of the lines look like one language; a third when the call names such a file."""
    language = _guess(page, focus)
    if language is None:
        return None
    found = [(line, m) for line in page.lines if (m := language.defines.match(line.text))]
    defined = [(line, _name(m), m) for line, m in found if _name(m)]
    named = list(dict.fromkeys(n for line in page.lines if (n := _imported(language, line))))
    names = focus.best(dict.fromkeys(name for _, name, _ in defined), 5)
    path = _path(focus, language)
    many = f"{language.name} {path}".strip() + f", {len(page.lines):,} lines"
    if page.first_file_line is not None:
        many = (
            f"{language.name} {path}".strip()
            + f", lines {page.first_file_line}–{page.first_file_line + len(page.lines) - 1}"
        )
    if defined:
        summary = f"{many}: defines {listed(names, 5)}" + (f" of {len(defined)}" if len(defined) > len(names) else "")
    else:
        best = max(page.sample, key=lambda line: (focus.of(line.text), -line.number))
        summary = f"{many}, no definition: {clip(best.text.strip(), 100)}"
    facts = [f"imports: {listed(named, 14)}"] if named else []
    return Draft(
        kind="code",
        content_type=language.content_type,
        summary=summary,
        score=3 if len(page.lines) > 60 else 4,
        facts=tuple(facts),
        picks=_picks(page, [line for line, _, _ in defined], focus),
    )


def _guess(page: Page, focus: Focus) -> Language | None:
    if len(page.sample) < 3:
        return None
    named = [BY_ENDING[e] for e in reversed(ENDING.findall(focus.call)) if e in BY_ENDING]
    for language in named:
        if page.share(language.typical) >= 0.3 or (
            page.share(language.typical) > 0.15 and page.share(language.defines)
        ):
            return language
    if sum(1 for line in page.sample if MARKDOWN.match(line.text)) > 1:
        return None
    scored = [
        (page.share(language.typical) + page.share(language.defines), -at, language)
        for at, language in enumerate(LANGUAGES)
        if page.share(language.typical) >= 0.5
        and (page.share(language.defines) > 0 or page.share(language.imports) > 0)
    ]
    return max(scored, key=lambda item: item[:2])[2] if scored else None


def _name(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return groups.get("name") or groups.get("arrow") or ""


def _imported(language: Language, line: Line) -> str:
    found = language.imports.match(line.text)
    groups = found.groupdict() if found else {}
    return groups.get("from") or groups.get("name") or ""


def _path(focus: Focus, language: Language) -> str:
    """The last file of that language that the call names."""
    paths = [
        p for p in re.findall(r"[\w./~@+-]{2,200}\.\w{1,5}\b", focus.call) if p.rsplit(".", 1)[1] in language.endings
    ]
    return clip(paths[-1], 80) if paths else ""


def _picks(page: Page, defined: list[Line], focus: Focus) -> dict[int, float]:
    """Definitions, the outer ones first, and the lines that follow what was asked for."""
    picks: dict[int, float] = {}
    for line in defined:
        indent = len(line.text) - len(line.text.lstrip())
        picks[line.number] = 2.0 / (1 + indent / 8)
    for before, line in zip(page.lines, page.lines[1:], strict=False):
        near = focus.of(before.text)
        if near > 1.0 and line.text.strip():
            picks[line.number] = max(picks.get(line.number, 0.0), min(1.0, near / 3))
    return picks
