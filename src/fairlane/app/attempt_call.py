"""One call that came through an attempt's socket: `python -m fairlane.app.attempt_call`.

The command line has the home folder, the lease and perhaps the store; standard input has the
operation and its arguments, which the attempt wrote. One JSON document is the answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.app import ADDING, open_context
from fairlane.model.errors import FairlaneError, Invalid, did_you_mean
from fairlane.model.values import wrong
from fairlane.service.attempt_rights import answer_attempt
from fairlane.service.operations.table import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlane.service.operations.call import Document


def answer_call(home: Path, lease: str, db: str | None, text: str) -> Document:
    """The answer to the attempt that holds this lease."""
    name, arguments = _call(text)
    if "lease" in OPERATIONS[name].takes:
        arguments = {"lease": lease, **arguments}  # another one is refused
    context = open_context(home, db)
    try:
        document = answer_attempt(context, lease, name, arguments)
        if name in ADDING:
            from fairlane.runtime.direct import start_added

            start_added(context, document)
        return document
    finally:
        context.store.close()


def _call(text: str) -> tuple[str, Mapping[str, object]]:
    try:
        call = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid("the call is not JSON", "Send one JSON object in one line.") from error
    if not isinstance(call, dict) or call.keys() - {"operation", "arguments"}:
        raise wrong("a call", call, 'Write {"operation": "report", "arguments": {"note": "…"}}.')
    name, arguments = call.get("operation"), call.get("arguments", {})
    if not isinstance(name, str) or name not in OPERATIONS:
        raise Invalid(f"there is no operation {name!r:.60}", did_you_mean(str(name), OPERATIONS))
    if not isinstance(arguments, dict):
        raise wrong("an object", arguments, 'Write {"name": "value"}.').within("arguments")
    return name, arguments


def main() -> int:
    """Answer one call."""
    home, lease, *db = sys.argv[1:]
    code = 0
    document: Mapping[str, object]
    try:
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
        document = answer_call(Path(home), lease, db[0] if db else None, text)
    except FairlaneError as error:
        document, code = error.document(), error.exit_code
    except OSError as error:
        document, code = FairlaneError(str(error), "Ask again.", "system").document(), 1
    json.dump({"exit_code": code, "document": document}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
