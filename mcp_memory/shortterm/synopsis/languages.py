"""Programming languages as line patterns: what defines a name, what imports one, what their lines look like.

Patterns, not parsers: they must work on a piece from the middle of a file. A name is in the group `name`, or
`other` where a second form of definition or import has it elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["BY_ENDING", "LANGUAGES", "Language"]


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    content_type: str
    endings: tuple[str, ...]
    defines: re.Pattern[str]
    imports: re.Pattern[str]
    typical: re.Pattern[str]


def _language(name: str, content_type: str, endings: str, *, defines: str, imports: str, typical: str) -> Language:
    """`typical` matches after any indentation."""
    return Language(
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
