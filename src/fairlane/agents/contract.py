"""What an agent adapter takes and gives: the values between agents, executors and the daemon."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypedDict

from fairlane.agents.parsers import SHIPPED
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import SECOND
from fairlane.model.record import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from fairlane.agents.transcript import Entry
    from fairlane.model.instant import Instant, Micros
    from fairlane.model.project import Tokens
    from fairlane.model.task import Outcome, Task
    from fairlane.settings import AgentSettings, Settings

    #: (key, values): a JSON line that has one of these values at this key is the final record.
    FinalRecord = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent: a command line, and the parser that reads what it prints."""

    name: str
    argv: tuple[str, ...]  # with placeholders; the first is the program
    parser: str
    resume: tuple[str, ...] | None = None  # to go on with a session; None: argv does both
    pool: str | None = None  # whose limits it shares
    permissions: str = "edit"
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # for {permissions}
    model: str | None = None
    stop: tuple[float, float] = (10.0, 5.0)  # seconds after the interrupt, after the terminate
    grace: float = 30.0  # seconds after its final record
    stdin: bool = False  # the prompt is sent to standard input
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    passes: tuple[str, ...] = ()  # variables of this process that it gets
    config: tuple[tuple[str, str], ...] = ()  # its own folders: (variable, folder without it)
    sandboxed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # flags in a sandbox

    @property
    def resumes(self) -> bool:
        """Whether it can go on with a session."""
        words = self.resume if self.resume is not None else self.argv
        return any("{session}" in word for word in words)


@dataclass(frozen=True, slots=True)
class OutputLine:
    """What one line of output tells."""

    kind: str  # session, text, tool, usage, retry, limit, final, error, other
    text: str = ""
    tokens: Tokens | None = None  # totals so far, where the program says so
    usd: int | None = None  # micro-dollars so far
    session: str | None = None


#: Most letters of the last words that are kept beside the answer.
SUMMARY_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt ended, as its program tells it."""

    outcome: Outcome
    detail: str = ""  # one line for people
    tokens: Tokens | None = None  # None: the program did not say
    usd: int | None = None  # micro-dollars
    session: str | None = None
    model: str | None = None
    retry_after: Micros | None = None  # a short throttle: how long the provider asked to wait
    resets_at: Instant | None = None  # a used-up window: when it opens again
    pause: str = ""  # not empty: nobody can work; the pool is paused with this reason
    summary: str = ""  # the agent's last words
    answer: str = ""  # its last message, whole; empty: the program has none

    @property
    def result(self) -> dict[str, object] | None:
        """What is kept of what the agent said; None: nothing."""
        said = {"summary": self.summary[:SUMMARY_KEPT], "answer": self.answer}
        return {name: words for name, words in said.items() if words} or None


class Facts(TypedDict, total=False):
    """What a verdict says in addition to its outcome."""

    tokens: Tokens | None
    usd: int | None
    session: str | None
    model: str | None
    summary: str
    answer: str


class Parser(Protocol):
    """Reads the output of one attempt, line by line; no line makes it raise."""

    FINAL: ClassVar[tuple[FinalRecord, ...]]  # what its final record looks like; empty: none

    def __init__(self, baseline: Tokens | None = None) -> None:
        """`baseline`: what its session had used before this attempt."""

    def line(self, line: str) -> Iterator[OutputLine]:
        """What a line of standard output tells."""

    def entries(self, line: str) -> Iterator[Entry]:
        """What a line says in a transcript, whatever the lines before it said."""

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """How it ended: by the final record if there was one, else by the exit code."""


#: Placeholders of the prompt: a program gets it once, here or on standard input.
_TAKES_PROMPT = ("{prompt}", "{command}")


def agents(settings: Settings) -> dict[str, Agent]:
    """Every agent by its name."""
    by_name = dict(shipped())
    for name, own in settings.agents.items():
        changed = _changed(_base(name, own), own)
        by_name[name] = _checked(replace(changed, pool=settings.agent_pool(name)))
    return by_name


@cache
def shipped() -> Mapping[str, Agent]:
    """The agents that Fairlane ships, unchanged."""
    text = files("fairlane.agents").joinpath("shipped.toml").read_text(encoding="utf-8")
    by_name: dict[str, Agent] = {}
    for name, table in tomllib.loads(text).items():
        table |= {key: tuple(table[key]) for key in ("argv", "resume", "stop") if key in table}
        table["passes"] = tuple(table.pop("pass", ()))
        for key in ("flags", "sandboxed"):
            table[key] = {name: tuple(words) for name, words in table.get(key, {}).items()}
        table["config"] = tuple((variable, folder) for variable, folder in table.get("config", ()))
        by_name[name] = Agent(name=name, **table)
    return by_name


def _base(name: str, own: AgentSettings) -> Agent:
    """What an entry changes: the shipped agent of its name, else that of its parser."""
    known = shipped()
    if name in known:
        return known[name]
    parser = own.parser or "plain"
    like = next((agent for agent in known.values() if agent.parser == parser), None)
    if own.argv is None and (like is None or own.parser is None or parser == "plain"):
        hint = f'Add argv = ["program", "{{prompt}}"] below [agents.{name}].'
        raise Invalid(f"agent {name} has no argv", hint, code="invalid_settings")
    if like is None or own.argv is None:
        return replace(like, name=name) if like else Agent(name, own.argv or (), parser)
    return Agent(
        name, own.argv, parser, flags=like.flags, stop=like.stop, env=like.env, passes=like.passes,
        config=like.config, sandboxed=like.sandboxed,
    )  # fmt: skip


def _changed(base: Agent, own: AgentSettings) -> Agent:
    changed = replace(
        base,
        parser=base.parser if own.parser is None else own.parser,
        permissions=base.permissions if own.permissions is None else own.permissions,
        model=base.model if own.model is None else own.model,
        stop=(own.stop[0] / SECOND, own.stop[1] / SECOND) if own.stop else base.stop,
        grace=base.grace if own.grace is None else own.grace / SECOND,
        env={**base.env, **own.env},
        passes=(*base.passes, *own.passes),
    )
    if own.argv is None:
        return changed
    stdin = not any(mark in word for word in own.argv for mark in _TAKES_PROMPT)
    return replace(changed, argv=own.argv, resume=None, stdin=stdin)


def _checked(agent: Agent) -> Agent:
    if agent.parser not in SHIPPED:
        raise Invalid(
            f"agent {agent.name}: there is no parser {agent.parser!r}",
            did_you_mean(agent.parser, SHIPPED),
            code="invalid_settings",
        )
    return agent


FOLDER = str(Path(__file__).parent)
#: The kernel takes no longer argument; standard input takes more.
ARGUMENT_BYTES_MAX = 131_000

PLACEHOLDER = re.compile(r"\{(prompt|model|session|task|title|project|kind|python|folder)\}")
_OF_TASK = re.compile(r"\{(prompt|task|title|project|kind|command)\}")
#: What a model or session may look like; nothing that a program would take for an option.
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,255}")


def argv_of(
    agent: Agent, task: Task, prompt: str, session: str | None = None, model: str | None = None
) -> tuple[str, ...]:
    """The command line of an attempt; `session`: the one to resume, or its file."""
    values = {
        "prompt": clean(prompt),
        "model": _word("model", model or agent.model),
        "session": session if session and can_resume(session) else None,
        "task": task.id,
        "title": clean(task.title),
        "project": task.project,
        "kind": task.kind,
        "python": sys.executable,
        "folder": FOLDER,
    }
    resumed = values["session"] is not None and agent.resume is not None
    template = agent.resume if resumed and agent.resume is not None else agent.argv
    argv = tuple(_filled(agent, task, template, values))
    return (home_path(argv[0]), *argv[1:])


def can_resume(session: str) -> bool:
    """Whether a program takes this for a session: a word, or a file of sessions."""
    is_file = session.startswith("/") and session.endswith(".jsonl") and session.isprintable()
    return is_file or _WORD.fullmatch(session) is not None


def in_sandbox(agent: Agent) -> Agent:
    """The agent as it is called inside a sandbox: its own sandbox would not work there."""
    return replace(agent, flags={**agent.flags, **agent.sandboxed})


def starts_alike(agent: Agent) -> bool:
    """Whether its command line is the same for every task, where no session is resumed."""
    return not any(_OF_TASK.search(word) for word in agent.argv)


def expanded(env: Mapping[str, str]) -> dict[str, str]:
    """Variables in which a leading `~` is the user's home folder, as people write paths."""
    return {name: home_path(value) for name, value in env.items()}


def home_path(text: str) -> str:
    """A text that begins with `~/`, or is `~`, as a path below the user's home folder."""
    return str(Path(text).expanduser()) if text == "~" or text.startswith("~/") else text


def installed(agent: Agent, env: Mapping[str, str] | None = None) -> str | None:
    """Where the program of an agent is; None: not on the PATH."""
    program = {"{python}": sys.executable}.get(agent.argv[0], home_path(agent.argv[0]))
    if program == "{command}":
        return program
    path = (env or {}).get("PATH") or agent.env.get("PATH") or os.environ.get("PATH")
    return shutil.which(program, path=path)


def clean(text: str) -> str:
    """Text that can be an argument: no NUL, nothing that UTF-8 cannot say."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _filled(
    agent: Agent, task: Task, template: tuple[str, ...], values: Mapping[str, str | None]
) -> Iterator[str]:
    """Fill every element; drop one whose value is missing, together with the option before it."""
    words: list[str] = []
    positional = False  # after `--`, where nothing is an option
    for element in template:
        positional = positional or element == "--"
        if element == "{permissions}":
            words += agent.flags.get(agent.permissions, ())
        elif element == "{command}":
            words += _command(task)
        elif "{" not in element:
            words.append(element)
        elif any(values[name] is None for name in PLACEHOLDER.findall(element)):
            if words and words[-1].startswith("-") and words[-1] != "--":
                words.pop()
        else:
            words.append(_fill(element, values, positional))
    for element in words:
        if len(element.encode()) > ARGUMENT_BYTES_MAX:
            hint = f"Leave {{prompt}} out of argv of agent {agent.name}: standard input takes it."
            raise Invalid(f"the prompt of {task.id} is too long for a command line", hint)
        yield element


def _fill(element: str, values: Mapping[str, str | None], positional: bool) -> str:
    filled = PLACEHOLDER.sub(lambda match: values[match[1]] or "", element)
    if filled.startswith("-") and not element.startswith("-") and not positional:
        return f" {filled}"  # a text that begins with a dash is no option
    return filled


def _command(task: Task) -> tuple[str, ...]:
    if not task.command:
        hint = f"Give it one: fairlane edit {task.id} --command …, or choose another agent."
        raise Invalid(f"task {task.id} has no command", hint)
    return tuple(clean(word) for word in task.command)


def _word(what: str, value: str | None) -> str | None:
    if value is None or _WORD.fullmatch(value):
        return value
    raise Invalid(f"not the name of a {what}: {value!r}", f"Change {what} in the settings.")


#: What every program expects; locale variables hold no secrets.
_PLACE = ("PATH", "HOME", "USER", "SHELL", "LANG", "LC_*", "TERM", "TMPDIR", "TZ")
#: How to reach the network; many programs read the lower case alone.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip
#: Passed to every agent; a name that ends in `*` stands for all that begin so.
ALWAYS = (*_PLACE, *_PROXIES, *(name.lower() for name in _PROXIES), *_CERTIFICATES, "TRACEPARENT")


def passed(variables: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """The variables that every agent gets, and those that are named."""
    return passed_only(variables, (*ALWAYS, *named))


def passed_only(variables: Mapping[str, str], named: Iterable[str]) -> dict[str, str]:
    """The variables that are named, and no others."""
    names = set(named)
    starts = tuple(name[:-1] for name in names if name.endswith("*"))
    return {name: text for name, text in variables.items() if _fits(name, names, starts)}


def given_environment(settings: Settings, agent: Agent, pool: str | None) -> dict[str, str]:
    """What an agent gets of this process's environment, and what its entry and its pool set."""
    own = settings.pools.get(pool or "")
    chosen = passed(os.environ, (*agent.passes, *(own.passes if own is not None else ())))
    return {**chosen, **expanded(agent.env), **expanded(own.env if own is not None else {})}


def _fits(name: str, names: Collection[str], starts: tuple[str, ...]) -> bool:
    return name in names or name.startswith(starts)
