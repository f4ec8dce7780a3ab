"""A simulated agent that needs no account: random time, random tokens, sometimes a failure.

Everything is drawn from FAIRLANE_DEMO_SEED, the task's id and the attempt's number, so that a
run is reproducible. It uses the standard library alone and starts in milliseconds. Knobs:

    FAIRLANE_DEMO_SECONDS      the longest work; drawn from a quarter of it on (4)
    FAIRLANE_DEMO_TOKENS       the most tokens (40000)
    FAIRLANE_DEMO_FAIL         how likely it fails, 0 to 1 (0.05); `first`: at the first attempt
    FAIRLANE_DEMO_THROTTLE     how likely it is throttled (0.03)
    FAIRLANE_DEMO_LOST         how likely it dies without a word (0)
    FAIRLANE_DEMO_RETRY_AFTER  the seconds that a throttle asks to wait (5)
    FAIRLANE_DEMO_FILE         a file to write into its folder; {task} is the task's id
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

TYPE_CHECKING = False  # `typing` itself would take longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Steps of work: a record of progress follows each.
STEPS = 4
USD_PER_TOKEN = 0.000_004


class Work:
    """One attempt as drawn: how long it works, what it uses, how it ends, and at which step."""

    def __init__(self, env: Mapping[str, str]) -> None:
        task, attempt = env.get("FAIRLANE_TASK", "t0"), env.get("FAIRLANE_ATTEMPT", "1")
        draw = random.Random(f"{env.get('FAIRLANE_DEMO_SEED', '0')}/{task}/{attempt}")
        self.task, self.attempt = task, attempt
        self.seconds = _knob(env, "SECONDS", 4.0) * draw.uniform(0.25, 1.0)
        self.tokens = int(_knob(env, "TOKENS", 40_000.0) * draw.uniform(0.1, 1.0))
        self.ending, self.step = _ending(env, draw.random()), draw.randint(1, STEPS)
        self.retry_after = _knob(env, "RETRY_AFTER", 5.0)
        self.file = env.get("FAIRLANE_DEMO_FILE", "").replace("{task}", task)

    def used(self, steps: int) -> dict[str, object]:
        """What it has used after some steps."""
        so_far = self.tokens * steps // STEPS
        tokens = {"input": so_far * 7 // 10, "output": so_far - so_far * 7 // 10}
        tokens |= {"cache_read": so_far * 5, "cache_write": 0}
        return {"tokens": tokens, "usd": round(so_far * USD_PER_TOKEN, 6)}


def main() -> int:
    """Work, tell, end as drawn."""
    signal.signal(signal.SIGINT, _interrupted)
    work = Work(os.environ)
    _tell({"type": "start", "session": f"demo-{work.task}-{work.attempt}", "model": "demo-1"})
    for step in range(1, STEPS + 1):
        if work.ending == "throttled" and step == work.step:
            used = work.used(step - 1)
            return _end(work.ending, "429 from the stand-in", used, work.retry_after)
        time.sleep(work.seconds / STEPS)
        if work.ending == "lost" and step == work.step:
            os.kill(os.getpid(), signal.SIGKILL)
        _tell({"type": "progress", "text": f"step {step} of {STEPS}", **work.used(step)})
    if work.ending == "failed":
        return _end(work.ending, "the stand-in failed, as drawn", work.used(STEPS))
    _write_file(work)
    return _end("succeeded", "", work.used(STEPS))


def _ending(env: Mapping[str, str], drawn: float) -> str:
    """How it ends: each way has its part of the line from 0 to 1."""
    for name, knob, usual in (
        ("failed", "FAIL", 0.05),
        ("throttled", "THROTTLE", 0.03),
        ("lost", "LOST", 0.0),
    ):
        drawn -= _knob(env, knob, usual)
        if drawn < 0:
            return name
    return "succeeded"


def _end(outcome: str, detail: str, used: dict[str, object], wait: float | None = None) -> int:
    record = {"type": "result", "outcome": outcome, "detail": detail, **used}
    if wait is not None:
        record["retry_after"] = wait
    record["text"] = "It is done." if outcome == "succeeded" else detail
    _tell(record)
    return 0 if outcome == "succeeded" else 1


def _write_file(work: Work) -> None:
    if work.file:
        with open(work.file, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"{work.task}, attempt {work.attempt}\n")


def _knob(env: Mapping[str, str], name: str, usual: float) -> float:
    value = env.get(f"FAIRLANE_DEMO_{name}")
    if value == "first":
        return float(env.get("FAIRLANE_ATTEMPT") == "1")
    try:
        return max(0.0, float(value or usual))
    except ValueError:
        return usual


def _tell(what: dict[str, object]) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())  # no buffer: a signal may interrupt


def _interrupted(*_: object) -> None:
    _tell({"type": "result", "outcome": "failed", "detail": "interrupted"})
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
