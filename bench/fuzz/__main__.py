"""`python -m bench.fuzz parsers|tools …`"""

from __future__ import annotations

import sys

_USAGE = "python -m bench.fuzz parsers|tools [--minutes N] [--seed N]; --help after either tells the rest"


def main() -> int:
    match sys.argv[1:]:
        case ["parsers", *rest]:
            from bench.fuzz import parsers

            return parsers.main(rest)
        case ["tools", *rest]:
            from bench.fuzz import protocol

            return protocol.main(rest)
        case _:
            print(_USAGE, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
