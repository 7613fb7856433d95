"""Programming languages as line patterns: what defines a name, what imports one, what their lines look like.

Patterns, not parsers: they must work on a piece from the middle of a file. A name is in the group `name`, or
`other` where a second form of definition or import has it elsewhere.

Source code: its language, what it imports, and its definitions with their line numbers.

The language is told by a path in the call, else by what the lines look like (see `languages`).

Diffs, from git, svn or `diff -u`: files with their added and removed lines, and the functions that changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip
from mcp_memory.shortterm.synopsis.preview import PreviewPart, SynopsisDraft, listed


@dataclass(frozen=True, slots=True)
class ProgrammingLanguage:
    name: str
    content_type: str
    endings: tuple[str, ...]
    defines: re.Pattern[str]
    imports: re.Pattern[str]
    typical: re.Pattern[str]


def _language(
    name: str, content_type: str, endings: str, *, defines: str, imports: str, typical: str
) -> ProgrammingLanguage:
    """`typical` matches after any indentation."""
    return ProgrammingLanguage(
        name,
        content_type,
        tuple(endings.split()),
        re.compile(defines),
        re.compile(imports),
        re.compile(rf"\s*(?:{typical})"),
    )


LANGUAGES = (
    _language(
        "Python",
        "text/x-python",
        "py pyi pyx",
        defines=r"\s*(?:async\s+)?(?:def|class)\s+(?P<name>\w+)",
        imports=r"\s*(?:from\s+(?P<name>[\w.]+)\s+import|import\s+(?P<other>[\w.]+))",
        typical=r"def \w+\(|class \w+.*:|from [\w.]+ import|import \w|@\w|self\.|return\b|if .*:$|for .* in .*:$"
        r"|elif |else:|try:|except|with .*:$|\w+ = |raise |\"\"\"|#|assert |yield ",
    ),
    _language(
        "TypeScript",
        "text/typescript",
        "ts tsx mts",
        defines=r"\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?"
        r"(?:function\*?|class|interface|type|enum|namespace)\s+(?P<name>\w+)"
        r"|\s*(?:export\s+)?const\s+(?P<other>\w+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\(|function)",
        imports=r"\s*import\b.*?['\"](?P<name>[^'\"]+)['\"]",
        typical=r"interface \w+|type \w+ =|export |import .* from|const \w+.*:|.*=> \{$|\}|//|\* |public "
        r"|private |readonly ",
    ),
    _language(
        "JavaScript",
        "text/javascript",
        "js jsx mjs cjs",
        defines=r"\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\*?|class)\s+(?P<name>\w+)"
        r"|\s*(?:export\s+)?(?:const|let|var)\s+(?P<other>\w+)\s*=\s*(?:async\s*)?(?:\(|function)",
        imports=r"\s*(?:import\b.*?['\"](?P<name>[^'\"]+)['\"]|.*\brequire\(['\"](?P<other>[^'\"]+)['\"]\))",
        typical=r"function\b|const |let |var |import .* from|export |.*=> \{$|\}|//|module\.exports|.*;$",
    ),
    _language(
        "Go",
        "text/x-go",
        "go",
        defines=r"(?:func|type)\s+(?:\([^)]*\)\s*)?(?P<name>\w+)",
        imports=r"(?:import\s+|\t)(?:\w+ )?\"(?P<name>[^\"]+)\"$",
        typical=r"package \w+|func |type \w+ |if err != nil|.*:= |\}|//|return\b|import |defer |go func",
    ),
    _language(
        "Rust",
        "text/x-rust",
        "rs",
        defines=r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?(?:unsafe\s+)?"
        r"(?:fn|struct|enum|trait|mod|type|impl(?:<[^>]*>)?)\s+(?P<name>\w+)",
        imports=r"\s*(?:pub\s+)?use\s+(?P<name>[\w:]+)",
        typical=r"pub |fn |let (?:mut )?|use |impl|match |\}|//|#\[|.*;$|struct |Some\(|Ok\(|Err\(",
    ),
    _language(
        "Java",
        "text/x-java",
        "java kt scala cs",
        defines=r"\s*(?:(?:public|private|protected|static|final|abstract|synchronized|override|internal|sealed|data)"
        r"\s+)*(?:(?:class|interface|enum|record|fun|object)\s+(?P<name>\w+)"
        r"|[\w<>\[\],.]+\s+(?P<other>\w+)\s*\([^;]*\)\s*(?:throws [\w, ]+)?\{)",
        imports=r"\s*(?:import|using)\s+(?:static\s+)?(?P<name>[\w.]+)",
        typical=r"package |import [\w.]+;|public |private |protected |@\w+|\}|//|\* |return |.*;$",
    ),
    _language(
        "C/C++",
        "text/x-c",
        "c h cc cpp cxx hpp hh m mm",
        defines=r"(?:struct|class|enum|union|namespace|#define)\s+(?P<name>\w+)"
        r"|(?:[\w:*&<>,]+\s+){1,6}\**(?P<other>[\w:~]+)\s*\([^;]*$",
        imports=r"\s*#\s*include\s+[<\"](?P<name>[^>\"]+)",
        typical=r"#include|#define|#if|#endif|\}|//|/\*|\* |return |.*;$|struct |static |void |int |\{",
    ),
    _language(
        "Ruby",
        "text/x-ruby",
        "rb rake",
        defines=r"\s*(?:def|class|module)\s+(?P<name>[\w.:?!]+)",
        imports=r"\s*require(?:_relative)?\s+['\"](?P<name>[^'\"]+)",
        typical=r"def |class |module |end$|require |attr_|if |unless |do \|",
    ),
    _language(
        "PHP",
        "text/x-php",
        "php",
        defines=r"\s*(?:(?:public|private|protected|static|abstract|final)\s+)*"
        r"(?:function|class|interface|trait)\s+(?P<name>\w+)",
        imports=r"\s*use\s+(?P<name>[\w\\]+)",
        typical=r"<\?php|\$\w+|namespace |use |public |\}|//|.*;$",
    ),
    _language(
        "shell",
        "text/x-shellscript",
        "sh bash zsh",
        defines=r"\s*(?:function\s+)?(?P<name>[\w-]+)\s*\(\)\s*\{",
        imports=r"\s*(?:source|\.)\s+(?P<name>\S+)",
        typical=r"#!/|if \[|fi$|then$|done$|for \w+ in|echo |export |set -|local |esac|\w+=\$",
    ),
    _language(
        "SQL",
        "text/x-sql",
        "sql",
        defines=r"\s*(?i:create)\s+(?i:(?:or replace|temp|temporary|unique|materialized)\s+)*"
        r"(?i:table|view|index|function|trigger|procedure|type)\s+(?i:if not exists\s+)?(?P<name>[\w.\"]+)",
        imports=r"(?!)",
        typical=r"(?i:select|from|where|insert|create|alter|drop|join|group by|order by|values|update|delete)\b|--",
    ),
    _language(
        "CSS",
        "text/css",
        "css scss less",
        defines=r"(?P<name>[.#@]?[\w-][^{};]{0,80}?)\s*\{",
        imports=r"\s*@(?:import|use)\s+['\"](?P<name>[^'\"]+)",
        typical=r"[\w-]+:\s[^;]+;|[.#@&]?[\w-][^;]*\{$|\}$",
    ),
)
BY_ENDING = {ending: language for language in LANGUAGES for ending in language.endings}


IMPORTS = 160
ENDING = re.compile(r"\.(\w{1,5})\b(?![\w/])")
TYPED = re.compile(r"\s*(?:export )?(?:interface|type) \w+|import type|.*\)\s*: [\w<>\[\]]+ (?:=>|\{)|\s*private ")
MARKDOWN = re.compile(r"#{2,6} \S|```|\s*[-*] \[|\[[^\]]+\]\(")


def describe_code(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Half of the lines look like one language; a third when the call names such a file."""
    language = _guess(page, focus)
    if language is None:
        return None
    defined = [(line, name) for line in page.lines if (name := _named(language.defines, line))]
    imported = list(dict.fromkeys(name for line in page.lines if (name := _named(language.imports, line))))
    names = focus.best(dict.fromkeys(name for _, name in defined if not name.startswith("__")), 5)
    title = f"{language.name} {_path(focus, language)}".strip() + _extent(page)
    if defined:
        summary = f"{title}: defines {listed(names, 5)}" + (f" of {len(defined)}" if len(defined) > len(names) else "")
    else:
        best = max(page.sample, key=lambda line: (focus.of(line.text), -line.number))
        summary = f"{title}, no definition: {clip(best.text.strip(), 100)}"
    facts = [clip(f"imports: {listed(imported, 14)}", IMPORTS)] if imported else []
    return SynopsisDraft(
        kind="code",
        content_type=language.content_type,
        summary=summary,
        use="names",
        edges=False,
        score=3 if len(page.lines) > 60 else 4,
        facts=tuple(facts),
        picks=_picks(page, [line for line, _ in defined], focus),
    )


def _guess(page: ResultPage, focus: Focus) -> ProgrammingLanguage | None:
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
    best = max(scored, key=lambda item: item[:2])[2] if scored else None
    typed = best is BY_ENDING["js"] and any(TYPED.match(line.text) for line in page.sample)
    return BY_ENDING["ts"] if typed else best


def _named(pattern: re.Pattern[str], line: PageLine) -> str:
    """What a line defines or imports."""
    found = pattern.match(line.text)
    groups = found.groupdict() if found else {}
    return groups.get("name") or groups.get("other") or ""


def _extent(page: ResultPage) -> str:
    if page.first_file_line is None:
        return f", {len(page.lines):,} lines"
    return f", lines {page.first_file_line}–{page.first_file_line + len(page.lines) - 1}"


def _path(focus: Focus, language: ProgrammingLanguage) -> str:
    """The last file of that language that the call names."""
    paths = [
        p for p in re.findall(r"[\w./~@+-]{2,200}\.\w{1,5}\b", focus.call) if p.rsplit(".", 1)[1] in language.endings
    ]
    return clip(paths[-1], 80) if paths else ""


def _picks(page: ResultPage, defined: list[PageLine], focus: Focus) -> dict[int, float]:
    """Definitions, the outer ones first, and the lines that follow what was asked for."""
    picks: dict[int, float] = {}
    for line in defined:
        indent = len(line.text) - len(line.text.lstrip())
        picks[line.number] = 2.0 / (1 + indent / 8)
    for before, line in pairwise(page.lines):
        near = focus.of(before.text)
        if near > 1.0 and line.text.strip():
            picks[line.number] = max(picks.get(line.number, 0.0), min(1.0, near / 3))
    return picks


GIT = re.compile(r"diff --git a/(?P<old>.+?) b/(?P<new>.+)$")
NEW = re.compile(r"\+\+\+ (?:b/)?(?P<path>[^\t\n]+)")
OLD = re.compile(r"--- (?:a/)?(?P<path>[^\t\n]+)")
HUNK = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+(?P<start>\d+)(?:,(?P<new>\d+))? @@ ?(?P<inside>.*)")
NAMED = re.compile(r"(?:def|class|func|fn|function|interface|struct|impl)\s+([\w.]+)|([\w.]+)\s*\(")
COMMIT = re.compile(r"commit ([0-9a-f]{7,40})\b")


@dataclass(slots=True)
class Changed:
    path: str
    at: int
    added: int = 0
    removed: int = 0
    what: str = ""
    inside: list[str] = field(default_factory=list[str])


def describe_diff(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Two hunks are proof enough, or one below a header."""
    if not any(HUNK.match(line.text) or GIT.match(line.text) for line in page.sample):
        return None
    files, picks = _read(page)
    if not files:
        return None
    added, removed = sum(f.added for f in files), sum(f.removed for f in files)
    named = [f.path.rsplit("/", 1)[-1] if len(files) > 3 else f.path for f in focus_first(files, focus)]
    inside = [name for f in files for name in f.inside]
    summary = f"diff of {len(files)} file{'s' * (len(files) != 1)}, +{added} −{removed}: {listed(named, 4)}"
    if inside:
        summary += f"; in {listed(list(dict.fromkeys(inside)), 3)}"
    commits = [m[1][:10] for line in page.sample if (m := COMMIT.match(line.text))]
    facts = [f"commit {listed(commits, 3)}"] if commits else []
    for f in focus_first(files, focus)[:25]:
        told = f"{f.path} +{f.added} −{f.removed}{f.what} (line {f.at})"
        facts.append(told + (f": {listed(f.inside, 6)}" if f.inside else ""))
    if len(files) > 25:
        facts.append("and " + listed([f.path for f in files[25:]], 40))
    return SynopsisDraft(
        kind="diff",
        content_type="text/x-diff",
        summary=summary,
        score=4,
        facts=tuple(facts),
        picks=picks,
        pieces=tuple(
            PreviewPart(line.number, line.text, str(line.number))
            for line in page.lines
            if line.number in picks and not HUNK.match(line.text)
        ),
    )


def focus_first(files: list[Changed], focus: Focus) -> list[Changed]:
    """Those that the call asked for, then the largest changes."""
    return sorted(files, key=lambda f: (-focus.of(f.path), -(f.added + f.removed)))


def _read(page: ResultPage) -> tuple[list[Changed], dict[int, float]]:
    files: list[Changed] = []
    picks: dict[int, float] = {}
    left_old = left_new = 0
    for line in page.lines:
        text = line.text
        if (left_old > 0 or left_new > 0) and not text.startswith(("diff --git ", "@@ ")):
            mark = text[:1]
            left_old -= mark in ("-", " ", "")
            left_new -= mark in ("+", " ", "")
            if mark in "+-" and mark and files:
                files[-1].added += mark == "+"
                files[-1].removed += mark == "-"
                if text[1:].strip():
                    picks[line.number] = 1.0 if mark == "+" else 0.8
            continue
        if found := GIT.match(text):
            files.append(Changed(found["new"], line.number))
        elif (found := NEW.match(text)) and found["path"] != "/dev/null":
            if not files or files[-1].path != found["path"]:
                files.append(Changed(found["path"], line.number))
        elif text.startswith(("new file", "deleted file", "rename to", "Binary files")) and files:
            files[-1].what = f", {text.split(' mode')[0]}"
        elif (hunk := HUNK.match(text)) and files:
            left_old, left_new = int((hunk["old"] or "1")[:9]), int((hunk["new"] or "1")[:9])
            picks[line.number] = 0.9
            name = NAMED.search(hunk["inside"])
            if name and (given := name[1] or name[2]) not in files[-1].inside:
                files[-1].inside.append(given)
    return files, picks
