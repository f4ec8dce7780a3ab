"""Setup: a home folder with settings, policy and token; what is there is never overwritten."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.careful_files import make_home
from fairlane.executors.sandbox import machine
from fairlane.model.errors import Refused
from fairlane.model.names import SCHEMA
from fairlane.settings import FILE

if TYPE_CHECKING:
    from fairlane.model.documents.admin import InitAnswer, ProgramDocument

#: The programs that are looked for, the one that is used first first.
AGENTS = ("claude", "codex", "gemini", "opencode")
POLICY_FILE = "policy.toml"


def init(home: Path) -> InitAnswer:
    """Make what is missing, and say what there is."""
    make_home(home)
    agents = installed()
    agent = f'agent = "{agents[0]["name"]}"' if agents else '# agent = "claude"'
    lead = f"{agent:28} # for tasks whose project names none"
    kind = f'# kind = "{machine.proposal() or "none"}"'
    sandbox = f"{kind:28} # works here; without it agents can do what you can"
    page = _page(FILE).replace("{agent}", lead).replace("{sandbox}", sandbox)
    texts = {FILE: page, POLICY_FILE: _page(POLICY_FILE)}
    made = [str(home / name) for name, text in texts.items() if _write(home / name, text)]
    home_token(home)
    kept = [str(home / name) for name in texts if str(home / name) not in made]
    return {"schema": SCHEMA, "home": str(home), "made": made, "kept": kept, "agents": agents}


def installed() -> list[ProgramDocument]:
    """The agents whose program is on the path."""
    return [{"name": name, "path": path} for name in AGENTS if (path := shutil.which(name))]


def _page(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> bool:
    """A new file, readable by the owner only; one that is there stays."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return True


TOKEN_FILE, KEY_FILE = "token", "attempts.key"
#: Random bytes of a token.
BYTES = 32


def home_token(home: Path) -> str:
    """The token of a home folder, made if there is none; one that others can read is refused."""
    _write(home / TOKEN_FILE, secrets.token_urlsafe(BYTES) + "\n")
    return _read(home / TOKEN_FILE)


def attempt_key(home: Path) -> str:
    """The secret that makes the tokens of attempts; a new owner's token leaves these alone."""
    _write(home / KEY_FILE, secrets.token_urlsafe(BYTES) + "\n")
    return _read(home / KEY_FILE)


def lease_token(key: str, lease: str) -> str:
    """The token of an attempt: its lease, and a proof that this home gave it out."""
    import hmac
    from base64 import urlsafe_b64encode

    proof = hmac.digest(key.encode(), b"lease:" + lease.encode(), "sha256")
    return f"{lease}.{urlsafe_b64encode(proof).decode().rstrip('=')}"


def known_token(home: Path) -> str | None:
    """The token of a home folder, if it has one."""
    return _read(home / TOKEN_FILE) if (home / TOKEN_FILE).exists() else None


def _read(path: Path) -> str:
    if path.stat().st_mode & 0o077:
        hint = f"Make a new one: rm {path}. The old one must count as known."
        raise Refused(f"{path}: others can read this token", hint, code="open_token")
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if len(text) < BYTES:
        hint = f"Remove it, and a new one is made: rm {path}"
        raise Refused(f"{path}: this is no token", hint, code="bad_token")
    return text
