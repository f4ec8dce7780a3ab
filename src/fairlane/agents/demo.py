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

#: Steps of work: a record of progress follows each.
STEPS = 4
USD_PER_TOKEN = 0.000_004


def main() -> int:
    """Work, tell, end as drawn."""
    signal.signal(signal.SIGINT, _interrupted)
    task = os.environ.get("FAIRLANE_TASK", "t0")
    attempt = os.environ.get("FAIRLANE_ATTEMPT", "1")
    seed = os.environ.get("FAIRLANE_DEMO_SEED", "0")
    draw = random.Random(f"{seed}/{task}/{attempt}")
    seconds = _knob("SECONDS", 4.0) * draw.uniform(0.25, 1.0)
    total = int(_knob("TOKENS", 40_000.0) * draw.uniform(0.1, 1.0))
    ending, when = _ending(draw.random()), draw.randint(1, STEPS)
    _tell({"type": "start", "session": f"demo-{task}-{attempt}", "model": "demo-1"})
    for step in range(1, STEPS + 1):
        if ending == "throttled" and step == when:
            wait = _knob("RETRY_AFTER", 5.0)
            return _end(ending, "429 from the stand-in", _used(total, step - 1), wait)
        time.sleep(seconds / STEPS)
        if ending == "lost" and step == when:
            os.kill(os.getpid(), signal.SIGKILL)
        used = _used(total, step)
        _tell({"type": "progress", "text": f"step {step} of {STEPS}", **used})
    if ending == "failed":
        return _end(ending, "the stand-in failed, as drawn", _used(total, STEPS))
    _write_file(task, attempt)
    return _end("succeeded", "", _used(total, STEPS))


def _ending(drawn: float) -> str:
    """How it ends: each way has its part of the line from 0 to 1."""
    for name, knob, usual in (
        ("failed", "FAIL", 0.05),
        ("throttled", "THROTTLE", 0.03),
        ("lost", "LOST", 0.0),
    ):
        drawn -= _knob(knob, usual)
        if drawn < 0:
            return name
    return "succeeded"


def _used(total: int, steps: int) -> dict[str, object]:
    so_far = total * steps // STEPS
    tokens = {"input": so_far * 7 // 10, "output": so_far - so_far * 7 // 10}
    tokens |= {"cache_read": so_far * 5, "cache_write": 0}
    return {"tokens": tokens, "usd": round(so_far * USD_PER_TOKEN, 6)}


def _end(outcome: str, detail: str, used: dict[str, object], wait: float | None = None) -> int:
    record = {"type": "result", "outcome": outcome, "detail": detail, **used}
    if wait is not None:
        record["retry_after"] = wait
    record["text"] = "It is done." if outcome == "succeeded" else detail
    _tell(record)
    return 0 if outcome == "succeeded" else 1


def _write_file(task: str, attempt: str) -> None:
    name = os.environ.get("FAIRLANE_DEMO_FILE", "").replace("{task}", task)
    if name:
        with open(name, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"{task}, attempt {attempt}\n")


def _knob(name: str, usual: float) -> float:
    value = os.environ.get(f"FAIRLANE_DEMO_{name}")
    if value == "first":
        return float(os.environ.get("FAIRLANE_ATTEMPT") == "1")
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
