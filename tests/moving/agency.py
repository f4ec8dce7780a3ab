"""Agency boards for tests, and what Agency itself would start next, written from its document.

One difference is on purpose. Agency reserves the serial lock of a phase and flow when a card is
queued, which would keep every second serial card out of the queue, and asks at dispatch whether
another *running* card holds it. The oracle follows the second rule, as Fairlane does: any number of
serial cards may be queued, the lock is held by what runs, and a card that waits after a failure
holds nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

FLOWS = ("implement", "review", "research")
COLUMNS = ("backlog", "in-progress", "backlog", "backlog")
PHASES = ("phase-1-core", "phase-2-Überblick", "phase-3.5-api v2", "phase-10-ui", "phase-11-登录")
WORDS = ("project-loader", "Login form", "größe prüfen", "修正する", "emoji 🙂", "a.b.c", "x" * 90)
#: The base, the multiplier, the most, how many retries; without jitter, to be the same each time.
BASE, MULTIPLIER, MOST, RETRIES = 10, 2, 30, 2


@dataclass(frozen=True)
class Card:
    """One card that Agency would run."""

    id: str  # phase and name
    phase: str
    flow: str
    parallel: bool
    path: Path


@dataclass
class Board:
    """What one project holds."""

    folder: Path
    most: int = 1
    per_flow: dict[str, int] = field(default_factory=dict)
    cards: list[Card] = field(default_factory=list)  # those that are open, as they lie there
    closed: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)  # cards that cannot be read

    def write_config(self, queue: str = "queue: {softLimit: 500, hardLimit: 1000}") -> Path:
        """`config.yaml` with the document's keys."""
        flows = "".join(f"    {flow}: {most}\n" for flow, most in self.per_flow.items())
        text = (
            f"agents:\n  maxConcurrent: {self.most}\n  perFlow:\n{flows}{queue}\n"
            f"retry: {{base: {BASE}s, multiplier: {MULTIPLIER}, jitter: 0, cap: {MOST}s, "
            f"maxRetries: {RETRIES}}}\nstaleLockTimeout: 10m\n"
        )
        path = self.folder / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path


def made(folder: Path, seed: int, size: int = 30) -> Board:
    """A board with odd names and line ends, old cards, and some that are broken."""
    random = Random(seed)
    board = Board(folder, random.randrange(1, 6))
    board.per_flow = {flow: random.randrange(1, 4) for flow in FLOWS if random.random() < 0.8}
    board.write_config()
    (folder / "README.md").write_text("# About this board\n", "utf-8")
    phases = PHASES[: random.randrange(1, len(PHASES) + 1)]
    found: list[Card] = []
    for number in range(size):
        phase, column = random.choice(phases), random.choice(COLUMNS)
        name = f"{number // 10}.{number % 10}-{random.choice(WORDS)}"
        path = folder / phase / column / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        card = Card(f"{phase}/{name}", phase, random.choice(FLOWS), random.random() < 0.4, path)
        _write(board, card, random, found)
    place = {path: at for at, path in enumerate(_walk(folder))}
    board.cards = sorted(found, key=lambda card: place[card.path])
    return board


def _write(board: Board, card: Card, random: Random, found: list[Card]) -> None:
    """One card as a file; what becomes of it is noted."""
    fate = random.choices(
        ["open", "closed", "broken", "idle"], weights=[80, 8, 8, 4]
    )[0]  # fmt: skip
    lines = text_of(card, random.choice(["idle", "", "null"])).splitlines()
    if fate == "closed":
        status = random.choice(["succeeded", "failed", "canceled"])
        lines = text_of(card, status).splitlines()
        board.closed.add(card.id)
    elif fate == "idle":
        lines = [line.replace(card.flow, "null") for line in lines]
    elif fate == "open":
        found.append(card)
    end = random.choice(["\n", "\n", "\r\n"])
    content = (random.choice(["", "", "\ufeff"]) + end.join(lines) + end).encode()
    if fate == "broken":
        board.broken.add(card.id)
        content = random.choice(
            [content[:25], b"", b"# No front matter\n", b"---\nagent_flow: two words\n---\n",
             b"---\na: [\n---\n", b"---\nagent_flow: review\n---\n\xff", content.replace(
                 b"agent_status:", b"agent_status: paused #")]
        )  # fmt: skip
    card.path.write_bytes(content)


def text_of(card: Card, status: str) -> str:
    """A card as people write it: with keys that are missing, and more than are known."""
    parallel = "parallelizable: true\n" if card.parallel else ""
    if not card.parallel and len(card.id) % 2:
        parallel = "parallelizable: false\n"
    name = card.path.stem
    return (
        f"---\nowner: ann  # keeps it\nagent_flow: {card.flow}\nagent_status: {status}\n"
        f"branch: agent/{card.flow}\nrisk: low\nreview: required\n{parallel}points: 3\n---\n"
        f"# {name}\n\nSummary:\nDo {name}.\n\nAcceptance Criteria:\n- [ ] it works\n\n"
        "Notes:\nNone.\n\nHistory:\n- 2026-01-29 - Created by ann\n"
    )


def _walk(folder: Path) -> list[Path]:
    """Files in the order in which people see them: numbers as numbers."""

    def place(name: str) -> list[tuple[int, str]]:
        digits, parts = "", list[tuple[int, str]]()
        text = ""
        for letter in name:
            if letter.isdecimal():
                if text or not parts:
                    parts.append((-1, text))
                    text = ""
                digits += letter
            else:
                if digits:
                    parts.append((int(digits), ""))
                    digits = ""
                text += letter
        parts.append((int(digits), "") if digits else (-1, text))
        if digits:
            parts.append((-1, ""))
        return parts

    files: list[Path] = []
    here = sorted(folder.iterdir(), key=lambda path: place(path.name))
    files += [path for path in here if path.is_file()]
    for path in here:
        files += _walk(path) if path.is_dir() else []
    return files


class Scheduler:
    """The global actor: queues by flow, caps, serial locks, backoff."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.queues: dict[str, list[tuple[float, int, Card]]] = {}  # since when, place, card
        self.running: dict[str, Card] = {}
        self.failures: Counter[str] = Counter()
        self.waiting: dict[str, tuple[float, Card]] = {}  # card -> until when
        self.failed: set[str] = set()
        self.now = 0.0
        for card in board.cards:
            self.enqueue(card)

    def enqueue(self, card: Card) -> None:
        """The end of its flow's queue. Of two at one instant the document says nothing: the place
        on the board decides, as here."""
        place = self.board.cards.index(card)
        self.queues.setdefault(card.flow, []).append((self.now, place, card))

    def drain(self) -> list[Card]:
        """`drainQueues`: the oldest that no cap and no lock of a running card keeps, and on."""
        started = []
        while len(self.running) < self.board.most and (card := self._next()):
            queue = self.queues[card.flow]
            queue[:] = [row for row in queue if row[2] is not card]
            self.running[card.id] = card
            started.append(card)
        return started

    def _next(self) -> Card | None:
        flows = Counter(card.flow for card in self.running.values())
        open_flows = [
            queue for flow, queue in self.queues.items()
            if flows[flow] < self.board.per_flow.get(flow, 1)
        ]  # fmt: skip
        rows = sorted(row for queue in open_flows for row in queue)
        return next((card for _, _, card in rows if not self._locked(card)), None)

    def _locked(self, card: Card) -> bool:
        """`parallelizable: false`: one of a phase and flow at a time."""
        return not card.parallel and any(
            (other.phase, other.flow, other.parallel) == (card.phase, card.flow, False)
            for other in self.running.values()
        )

    def succeed(self, name: str) -> None:
        """A worker has finished: its locks are free."""
        del self.running[name]

    def fail(self, name: str) -> None:
        """One failure more: it is queued again after a wait, or left out."""
        card = self.running.pop(name)
        self.failures[name] += 1
        if self.failures[name] > RETRIES:
            self.failed.add(name)
            return
        wait = min(MOST, BASE * MULTIPLIER ** (self.failures[name] - 1))
        self.waiting[name] = (self.now + wait, card)

    def cancel(self, name: str) -> None:
        """Out of its queue."""
        for queue in self.queues.values():
            queue[:] = [row for row in queue if row[2].id != name]

    def rerun(self, name: str, card: Card) -> None:
        """A person asks for it: the counter is cleared, and it is queued afresh."""
        self.failures.pop(name, None)
        self.failed.discard(name)
        self.enqueue(card)

    def wait(self, seconds: float) -> None:
        """Time passes; timers put cards back, each at its time."""
        until = self.now + seconds
        for name, (due, card) in sorted(self.waiting.items(), key=lambda row: row[1][0]):
            if due <= until:
                self.now = due
                del self.waiting[name]
                self.enqueue(card)
        self.now = until
