"""Chats that programs and browser extensions write down as text: Markdown, or what their button "copy all" gives.

    # <title>                                   and lines about the chat, among them the link to it
    ## Prompt: | ## 👤 User | #### You: | **User** | ## Message From You:
    <time>
    <words>
    ---                                         in some
    ## Response: | ## 🤖 Claude | #### ChatGPT: | **Cursor** | ## Message From ChatGPT:

    # <time>    conversation: <id> id: <id>     llm logs, before each ## Prompt and ## Response
    <user>: <words>                             VS Code's "Copy All"; and `GitHub Copilot: <words>`
    > <words>, ⏺ <words>, ⎿ <output>            Claude Code's /export; other lines of a message are indented
    # <question> … ⁂                            Perplexity, after its logo; an answer ends with its sources

All headers have the shape of the first one; only a title and lines about the chat may precede it. A line like a header
in a fence of code is text. Only the first line of a question to Perplexity is recognised, because no mark separates its
other lines from the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.parts import CALL, COMMANDS, RESULT, split_text

_SOURCES = "lists of sources"
_USERS = ("user", "you", "human", "me", "prompt", "message from you")
_MODELS = (
    r"assistant|agent|ai|bot|claude|chatgpt|gpt(?:-[\w.]+)?|gemini|copilot|github copilot|cursor|deepseek|grok|model"
    r"|perplexity|response|message from (?:chatgpt|ai)"
)
_HEADER = re.compile(
    rf"(?P<mark>\#{{1,6}} |\*\*)(?:[^\w\s#*\"'`(\[<]{{1,6}} )?(?P<who>{'|'.join(_USERS)}|{_MODELS})(?P<colon>:?)"
    r"(?P<end>\*\*:?)?(?P<rest> .*)?$",
    re.IGNORECASE,
)
_LINKED = re.compile(r"^\*\*Link:\*\* \[\S+?/(?:c|chat|app|a/chat/s)/([\w-]{8,})\]", re.MULTILINE)
_SESSION = re.compile(r"^Session ID: (\S+)$", re.MULTILINE)
_BEGAN = re.compile(r"^(?:\*\*Created:\*\*|Date:) (.+?)\s*$", re.MULTILINE)
_TITLE = re.compile(r"# (?!Claude Conversation Log$)(.+)$", re.MULTILINE)
_ABOUT = re.compile(r"\s*$|# |---$|_.*_$|\*\*[\w ]+:\*\* |[\w ]+: \S|<!--")
"""Lines before the first header."""
_TIME = re.compile(
    r'(?:<time datetime="(?P<iso>[^"]+)"[^\n]*</time>|(?P<shown>\d[\d./-]{5,9}\d,? \d{1,2}:\d\d:\d\d(?: [AP]M)?))\s*\n'
)
_FOOTER = re.compile(r"\n+---\nPowered by \[[^\]\n]+\]\([^)\n]+\)\s*\Z")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_TOOL = re.compile(r"^🔧 Using tool: (?P<name>\S+)\nInput: \{(?:\n[ \t][^\n]*)*\n?\}$", re.MULTILINE)

_LOGGED = re.compile(r"^# (\d{4}-\d\d-\d\dT[\d:.+Z-]+)    conversation: (\S+) id: (\S+)$", re.MULTILINE)
_COPILOT = re.compile(r"^GitHub Copilot: ", re.MULTILINE)
_EXPORTED = re.compile(r"^⏺ ", re.MULTILINE)
_COMMAND = re.compile(r"/(?:exit|quit|clear|compact|export|help|model|cost|status|resume|login|logout)\b[^\n]*")
_PERPLEXITY = re.compile(r'\A<img src="[^"]*perplexity[^"]*"[^>]*>\s*')
_HIDDEN = re.compile(r'<span style="display:none">.*?</span>\n?', re.DOTALL)


def _plain(text: str) -> str:
    """Return a text without the indentation of its first line, as of a chat that was pasted below a bullet."""
    text = text.replace("\r\n", "\n").lstrip("\n")
    indent = len(text) - len(text.lstrip(" "))
    return re.sub(rf"^ {{1,{indent}}}", "", text, flags=re.MULTILINE) if indent else text


def _is_transcript(value: str) -> bool:
    text = _plain(value)
    if _PERPLEXITY.match(text):
        return True
    if _EXPORTED.search(text) and re.search(r"^> \S", text, re.MULTILINE):
        return True
    if _COPILOT.search(text) and re.match(r"[^\s:][^:\n]{0,38}: ", text):
        return True
    return bool(_LOGGED.match(text)) or (_has_headers(text) and not _is_prompt_library(text))


def _is_prompt_library(text: str) -> bool:
    """Return whether the headers name texts, `Prompt` and `Response`, and no speaker.

    Of the programs that write chats, only ChatGPT Exporter uses these names, as `## Prompt:`, and `llm logs`.
    """
    headers = [header for _, header in _headers(text.splitlines())]
    return all(header["who"].lower() in ("prompt", "response") for header in headers) and not all(
        header["mark"] == "## " and header["colon"] for header in headers
    )


def _has_headers(text: str) -> bool:
    headers = _headers(text.splitlines())
    before = text.splitlines()[: headers[0][0]] if headers else []
    return bool(headers) and len(before) < 20 and all(map(_ABOUT.match, before))


def _conversations(value: Any) -> Iterator[Any]:
    text = _plain(str(value))
    if logo := _PERPLEXITY.match(text):
        yield {"messages": list(_answers(text[logo.end() :]))}
    elif _LOGGED.match(text):
        yield from _logged(text)
    elif _has_headers(text):
        head = text[: text.find("\n## ")] if "\n## " in text else text[:2000]
        id, began, title = (_LINKED.search(head) or _SESSION.search(head)), _BEGAN.search(head), _TITLE.match(text)
        yield {
            "id": id and id[1],
            "title": title and title[1],
            "began": began and shown_time(began[1]),
            "messages": list(_headed(_FOOTER.sub("", text))),
        }
    elif _EXPORTED.search(text):
        yield {"messages": list(_exported(text))}
    else:
        user = text.partition(":")[0]
        speaker = re.compile(rf"^({re.escape(user)}|GitHub Copilot): ", re.MULTILINE)
        _, *pieces = speaker.split(text)
        yield {
            "messages": [
                {"role": "assistant" if who == "GitHub Copilot" else "user", "text": words.strip()}
                for who, words in zip(pieces[::2], pieces[1::2], strict=True)
            ]
        }


_Header = tuple[int, re.Match[str]]


def _is_user(header: re.Match[str]) -> bool:
    return header["who"].lower() in _USERS


def _headers(lines: list[str]) -> list[_Header]:
    """Return the lines that begin a message: those with the first shape that both speakers have.

    Lines in fences of code are ignored, unless a fence is never closed.
    """
    every: list[_Header] = []
    outside: list[_Header] = []
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and line.strip().startswith(fence) and not line.strip("`~ ") else fence
        elif mark:
            fence = mark[1]
        header = _HEADER.match(line.rstrip())
        if header is not None and _is_header(header):
            every.append((number, header))
            outside += [] if fence else [(number, header)]
    shapes: dict[tuple[str, str], list[_Header]] = {}
    for number, header in every if fence else outside:
        shapes.setdefault((header["mark"], header["colon"]), []).append((number, header))
    complete = (each for each in shapes.values() if len({_is_user(header) for _, header in each}) == 2)
    return next(complete, list[_Header]())


def _is_header(header: re.Match[str]) -> bool:
    """Return whether a line is only a header, or one in bold with a colon, which words may follow."""
    if header["mark"] == "**":
        return header["end"] is not None and (header["rest"] is None or ":" in (header["colon"] + header["end"]))
    return header["end"] is None and header["rest"] is None


def _headed(text: str) -> Iterator[dict[str, Any]]:
    lines = text.splitlines()
    headers = _headers(lines)
    ends = [*(number for number, _ in headers[1:]), len(lines)]
    for (start, header), end in zip(headers, ends, strict=True):
        body = "\n".join([(header["rest"] or "").strip(), *lines[start + 1 : end]]).strip() + "\n"
        time = _TIME.match(body)
        words = (body[time.end() :] if time else body).strip()
        yield {
            "role": "user" if _is_user(header) else "assistant",
            "ts": time and (time["iso"] or shown_time(time["shown"])),
            "text": words.removesuffix("---").rstrip() if words.endswith(("\n---", "---")) else words,
        }


def shown_time(shown: str) -> str | None:
    """Return a time as browsers show it in ISO 8601, local: 8.11.2025, 2025/11/8, 11/8/2025 (US), 08/11/2025 (GB)."""
    time = re.fullmatch(r"(\d+)([./-])(\d+)[./-](\d+),? (\d+):(\d\d):(\d\d)(?: ([AP])M)?", shown.strip())
    if time is None:
        return None
    first, mark, second, third, hour, minute, second_of_minute, half = time.groups()
    is_by_day = mark == "." or (mark == "/" and half is None and first.startswith("0")) or int(first) > 12
    year, month, day = (
        (first, second, third) if len(first) == 4 else (third, second, first) if is_by_day else (third, first, second)
    )
    clock = int(hour) % 12 + 12 * (half == "P") if half else int(hour)
    try:
        return datetime(int(year), int(month), int(day), clock, int(minute), int(second_of_minute)).isoformat()
    except ValueError:
        return None


def _logged(text: str) -> Iterator[dict[str, Any]]:
    """Yield the conversations in the output of `llm logs`."""
    _, *fields = _LOGGED.split(text)
    talks: dict[str, list[dict[str, Any]]] = {}
    for time, talk, id, body in zip(*(fields[nth::4] for nth in range(4)), strict=True):
        talks.setdefault(talk, []).extend(
            {**message, "ts": time, "id": f"{id}/{message['role']}"} for message in _headed(body)
        )
    for talk, messages in talks.items():
        yield {"id": talk, "messages": messages}


def _exported(text: str) -> Iterator[dict[str, Any]]:
    """Yield the messages of Claude Code's /export; a line without a mark continues the message before it."""
    messages: list[dict[str, Any]] = []
    for line in text.splitlines():
        if line.startswith(("> ", "❯ ", "⏺ ")):
            messages.append({"role": "assistant" if line[0] == "⏺" else "user", "text": line[2:]})
        elif messages:
            messages[-1]["text"] += "\n" + line.removeprefix("  ")
    for message in messages:
        yield {**message, "text": message["text"].strip()}


def _answers(text: str) -> Iterator[dict[str, Any]]:
    """Yield the questions and answers of a thread of Perplexity."""
    for block in re.split(r"\n---\n+(?=# )", "\n" + text):
        question, _, answer = block.strip().partition("\n")
        answer, mark, _ = answer.partition("⁂")
        answer = re.sub(r"<div [^>]*>\s*\Z", "", answer) if mark else answer
        yield {"role": "user", "text": question.removeprefix("# ")}
        yield {"role": "assistant", "text": _HIDDEN.sub("", answer).strip(), "sources": bool(mark)}


_OUTPUT = re.compile(r"\A([\w:. -]{1,80})\((.*?)\)?\n⎿ (.*)\Z", re.DOTALL)


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    text = str(message.get("text"))
    if output := _OUTPUT.match(text):
        yield {"type": RESULT, "name": output[1], "args": {"call": output[2]}, "output": output[3].strip()}
        return
    yield from split_text(text, _TOOL, lambda tool: [{"type": CALL, "name": tool["name"]}])
    if message.get("sources"):
        yield {"type": _SOURCES}


def _left_out(message: Message) -> str | None:
    is_command = message.get("role") == "user" and _COMMAND.fullmatch(str(message.get("text")))
    return COMMANDS if is_command else None


FORMAT = Format(
    title="a chat that was written down as text",
    location="what Cursor, Zed, Cherry Studio, NextChat, Perplexity, `llm logs`, Claude Code's `/export`, VS Code's "
    "Copy All, and extensions such as ChatGPT Exporter write",
    unit="text",
    path=r"\.(?:md|markdown|txt)$",
    matches=_is_transcript,
    before=("basic-memory", "mempalace", "agent-notes", "instructions"),
    records=Chat(
        client="transcript",
        expected="chat with its messages",
        conversations=_conversations,
        began=("began",),
        time=("ts",),
        split=_parts,
        left_out=_left_out,
        parts={_SOURCES: _SOURCES},
        joined="\n\n",
    ).records,
)
