"""A server without the SDK that can misbehave: `python raw_server.py HOW`. It speaks as little MCP as it must."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

TEXT = "".join(f"{n} GET /item/{n}\n" for n in range(1000))


def say(message: Any) -> None:
    sys.stdout.buffer.write(message if isinstance(message, bytes) else json.dumps(message).encode())
    sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()


def answer(how: str, message: dict[str, Any]) -> None:
    def reply(result: Any) -> None:
        say({"jsonrpc": "2.0", "id": message["id"], "result": result})

    match message.get("method"):
        case "initialize":
            if how == "dies-at-once":
                sys.exit(7)
            reply(
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": how, "version": "1"},
                }
            )
            if how == "dies-early":
                sys.exit(8)
        case "tools/call" if how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "tools/call" if how == "big":
            reply({"content": [{"type": "text", "text": "0123456789abcde\n" * (50 * 2**20 // 16)}]})
        case "tools/call" if how == "floods":
            for n in range(5_000):
                say(
                    {
                        "jsonrpc": "2.0",
                        "method": "notifications/message",
                        "params": {"level": "info", "data": f"{n} " * 50},
                    }
                )
            reply({"content": []})
        case "tools/call" if how == "says-who":
            reply({"content": [{"type": "text", "text": json.dumps([os.getpid(), dict(os.environ)])}]})
        case "tools/call":
            reply({"content": [{"type": "text", "text": TEXT}]})
        case _:
            pass


def main(how: str) -> None:
    print(f"stderr of {how}", file=sys.stderr, flush=True)
    if how == "hangs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if how == "counts-signals":

        def close_input(signum: int, _: Any) -> None:
            print(f"signal {signum}", file=sys.stderr, flush=True)
            sys.exit(5)

        signal.signal(signal.SIGINT, close_input)
        signal.signal(signal.SIGTERM, close_input)
    for line in sys.stdin:
        answer(how, json.loads(line))
    while how == "hangs":
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
