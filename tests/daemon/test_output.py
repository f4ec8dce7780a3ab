"""However much an agent prints, and whatever it claims, its end and its cost are taken in."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import pytest

from tests.daemon.world import World, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MEGABYTE = 1_000_000
#: An agent of one's own: a program that prints records.
PRINTER = '[agents.printer]\nargv = ["{command}"]\nparser = "demo"\n'
RESULT = {"type": "result", "outcome": "succeeded", "tokens": {"input": 7, "output": 5}, "usd": 0.5}
LINE = {"type": "progress", "text": "y" * 900, "tokens": {"input": 3}}


@pytest.fixture
def printing(world: World) -> World:
    world.settings(f"[worker]\nslots = 10\n{PRINTER}")
    world.policy("retry.max_attempts = 1\n")
    return world


def printer(name: str, program: str) -> dict[str, Any]:
    """A task whose agent runs this program; `say` prints one record."""
    head = (
        "import json, os, sys, time\n"
        f"result, line = {RESULT!r}, {LINE!r}\n"
        "say = lambda record: print(json.dumps(record))\n"
    )
    return {"id": name, "agent": "printer", "command": [sys.executable, "-c", head + program]}


def assert_booked(world: World, *names: str) -> None:
    for name in names:
        (attempt,) = world.attempts(name)
        assert (attempt.outcome, attempt.detail) == ("succeeded", "")
        assert (attempt.tokens, attempt.usd) == ((7, 5, 0, 0), 500_000), name


def test_large_records_and_much_output_hide_no_end_and_no_cost(printing: World) -> None:
    programs = {
        "before": f"say(line | dict(text='x' * {5 * MEGABYTE})); say(result)",
        "itself": f"say(result | dict(text='x' * {5 * MEGABYTE}))",
        "much": f"[say(line) for _ in range({20 * MEGABYTE // 1000})]; say(result)",
        "endless": f"print('x' * {20 * MEGABYTE}); say(result)",
        "quoted": f"print('{{' + 'x' * {9 * MEGABYTE}); say(result)",
    }
    printing.add(*(printer(name, program) for name, program in programs.items()))
    printing.run()
    assert_booked(printing, *programs)


def test_a_final_record_beyond_the_log_limit_is_kept_however_long(printing: World) -> None:
    printing.settings(f"[worker]\nslots = 10\n[log]\nmax_bytes = 100000\n{PRINTER}")
    program = f"[say(line) for _ in range(300)]; say(result | dict(text='x' * {5 * MEGABYTE}))"
    printing.add(printer("a", program))
    printing.run()
    assert_booked(printing, "a")


@pytest.mark.parametrize("ends", ["before", "after"])
def test_what_was_printed_while_nobody_looked_is_read(printing: World, ends: str) -> None:
    wait = f"while not os.path.exists({str(printing.marks / 'go')!r}): time.sleep(0.02)\n"
    mark = f"open({str(printing.marks / 'a')!r}, 'w').close()\n"
    lines = f"[say(line) for _ in range({12 * MEGABYTE // 1000})]\nsay(result)\n"
    again = wait.replace("go", "end") if ends == "after" else ""
    written = f"sys.stdout.flush()\nopen({str(printing.marks / 'said')!r}, 'w').close()\n"
    printing.add(printer("a", mark + wait + lines + written + again))
    pid = printing.up()
    printing.started("a")
    runner = printing.runner("a")
    printing.kill(pid)
    (printing.marks / "go").touch()
    printing.started("said")
    if ends == "before":
        until((printing.home / "runs" / "a" / "1" / "exit.json").exists)
        printing.run()
    else:
        printing.up()
        (printing.marks / "end").touch()
        until(lambda: printing.statuses()["a"] == "done")
    assert_booked(printing, "a")
    assert runner["pid"]


def test_a_killed_runner_still_costs_what_its_agent_had_used(printing: World) -> None:
    progress = LINE | {"tokens": {"input": 40}, "usd": 0.25}
    lines = f"[say({progress!r}) for _ in range({6 * MEGABYTE // 900})]\nsys.stdout.flush()\n"
    mark = f"open({str(printing.marks / 'a')!r}, 'w').close()\ntime.sleep(60)"
    printing.add(printer("a", lines + mark))
    printing.up()
    printing.started("a")
    log = printing.home / "runs" / "a" / "1" / "stdout.log"
    until(lambda: log.stat().st_size >= 6 * MEGABYTE)
    os.kill(printing.runner("a")["pid"], signal.SIGKILL)
    until(lambda: printing.statuses()["a"] == "parked")
    (attempt,) = printing.attempts("a")
    assert (attempt.outcome, attempt.tokens[0], attempt.usd) == ("lost", 40, 250_000)


def test_absurd_numbers_end_no_daemon_and_block_no_project(printing: World) -> None:
    printing.policy("retry.max_attempts = 1\ncaps.all = 1\n")
    huge = RESULT | {"tokens": {"input": 999_999_999_999_999, "output": 1}, "usd": 1e300}
    deep = '{"type": "result", "outcome": "succeeded", "x": ' + "[" * 100_000
    records = [json.dumps(huge), json.dumps(RESULT | {"tokens": {"input": -1, "output": "1"}})]
    tasks = [printer(f"t{at}", f"print({each!r})") for at, each in enumerate(records)]
    nested = printer("nested", f"print({deep!r}); say(result)")
    printing.add(*tasks, nested, printer("last", "say(result)"))
    printing.up()
    until(lambda: set(printing.statuses().values()) == {"done"})
    assert printing.attempts("t0")[0].tokens == (0, 1, 0, 0)
    assert printing.attempts("t0")[0].usd is None
    assert_booked(printing, "nested", "last")
    printing.fairlane("down")


def test_a_home_in_which_absurd_numbers_lie_comes_up(printing: World) -> None:
    huge = RESULT | {"tokens": {"input": 999_999_999_999_999, "output": 1}}
    mark = f"open({str(printing.marks / 'a')!r}, 'w').close()\n"
    wait = f"while not os.path.exists({str(printing.marks / 'go')!r}): time.sleep(0.02)\n"
    printing.add(printer("a", mark + wait + f"say({huge!r})"))
    pid = printing.up()
    printing.started("a")
    printing.kill(pid)
    (printing.marks / "go").touch()
    until((printing.home / "runs" / "a" / "1" / "exit.json").exists)
    printing.add(printer("b", "say(result)"))
    printing.run()
    assert printing.statuses() == {"a": "done", "b": "done"}


def test_a_daemon_comes_up_though_an_agent_has_left_the_settings(printing: World) -> None:
    go = printing.marks / "go"
    wait = f"import pathlib\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)"
    printing.add(printer("a", wait))
    pid = printing.up()
    printing.runner("a")
    printing.kill(pid)
    printing.settings("[worker]\nslots = 10\n")
    printing.up()
    go.touch()
    until(lambda: printing.statuses() == {"a": "done"})
