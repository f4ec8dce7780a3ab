"""Metrics: what stands and what has happened, by labels that hold no text of users' prompts."""

from __future__ import annotations

import re

import pytest

from tests.http.served import Server, serving

SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (-?[\d.e+-]+)$')
SECRET = "the prompt of nobody else"


def samples(server: Server) -> dict[str, float]:
    """Every sample by its name and labels; each line must be good."""
    reply = server.call("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    found, typed = {}, set()
    for line in reply.body.decode().splitlines():
        if line.startswith("# TYPE "):
            assert line.split()[2] not in typed, "a family stands in one place"
            typed.add(line.split()[2])
        if not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, line
            name = re.sub("_(bucket|sum|count)$", "", match[1])
            assert name in typed or match[1] in typed, line
            found[f"{match[1]}{{{match[2] or ''}}}"] = float(match[3])
    assert SECRET not in reply.body.decode()
    return found


@pytest.fixture(scope="module")
def told(server: Server) -> dict[str, float]:
    """After one done, one failed, one in flight, one ready, one waiting."""
    server.ask("POST", "/projects", {"name": "web"})
    tasks = [{"id": f"t{n}", "prompt": SECRET, "title": SECRET, "project": "web"} for n in "1234"]
    tasks.append({"id": "t5", "prompt": SECRET, "project": "web", "needs": "t4"})
    tasks[-1]["needs"] = ["t4"]  # type: ignore[assignment]
    server.ask("POST", "/tasks", {"tasks": tasks})
    server.ask("POST", "/leases", {"limit": 3, "worker": "box1"})
    tokens = {"input": 100, "output": 20}
    server.ask("POST", "/leases/L1/complete", {"tokens": tokens, "cost": 0.5})
    server.ask("POST", "/leases/L2/release", {"outcome": "failed", "reason": SECRET})
    server.ask("POST", "/pause", {"scope": "pool:anthropic"})
    return samples(server)


def test_the_queue(told: dict[str, float]):
    assert told['fairlane_tasks{status="done",project="web"}'] == 1
    assert told['fairlane_tasks{status="leased",project="web"}'] == 1
    assert told['fairlane_tasks{status="queued",project="web"}'] == 3
    assert told['fairlane_held{hold="needs"}'] == 1
    assert told['fairlane_held{hold="backoff"}'] == 1
    assert told["fairlane_in_flight{}"] == told["fairlane_leases{}"] == 1
    assert told['fairlane_lag_seconds{project="web"}'] > 0
    assert told['fairlane_cooldown_seconds{pool="anthropic"}'] == 0
    assert told["fairlane_pauses{}"] == 1


def test_what_has_ended(told: dict[str, float]):
    ended = 'fairlane_attempts_ended_total{project="web",kind="code",agent="claude",outcome="%s"}'
    assert (told[ended % "succeeded"], told[ended % "failed"]) == (1, 1)
    assert told['fairlane_duration_seconds_count{project="web"}'] == 2
    assert told['fairlane_duration_seconds_bucket{project="web",le="+Inf"}'] == 2
    assert told['fairlane_wait_seconds_count{project="web"}'] == 1
    tokens = 'fairlane_tokens_total{project="web",kind="code",agent="claude",counter="%s"}'
    assert (told[tokens % "input"], told[tokens % "output"]) == (100, 20)
    assert told['fairlane_cost_dollars_total{project="web",kind="code",agent="claude"}'] == 0.5


def test_requests_by_route_and_status(server: Server, told: dict[str, float]):
    server.call("GET", "/api/v1/tasks/nobody")
    server.call("GET", "/api/v1/tasks/../../etc/passwd", token=None)
    now = samples(server)
    name = 'fairlane_http_requests_total{method="%s",route="%s",status="%s"}'
    assert now[name % ("GET", "/api/v1/tasks/{task}", 404)] == 1
    assert now[name % ("POST", "/api/v1/leases/{lease}/complete", 200)] == 1
    assert now[name % ("GET", "other", 401)] == 1
    assert now["fairlane_event_streams{}"] == 0


def test_no_counter_goes_back(server: Server, told: dict[str, float]):
    """Whatever is taken away from the store, what was counted stays counted."""
    server.ask("POST", "/leases/L3/complete", {"tokens": 7})
    server.ask("POST", "/clear", {"scope": "project:web"})
    now = samples(server)
    for name, value in told.items():
        if re.search(r"_(total|count|bucket|sum)\{", name):
            assert now[name] >= value, name


@pytest.mark.slow
def test_only_what_ends_from_the_start_on_is_counted(tmp_path):
    with serving(tmp_path) as server:
        server.ask("POST", "/tasks", {"tasks": [{"prompt": "x"}, {"prompt": "y"}]})
        server.ask("POST", "/leases", {"limit": 2})
        server.ask("POST", "/leases/L1/complete")
        assert sum(v for k, v in samples(server).items() if "attempts_ended" in k) == 1
        server.stop()
        server.start()
        assert sum(v for k, v in samples(server).items() if "attempts_ended" in k) == 0
        server.ask("POST", "/leases/L2/complete")
        assert sum(v for k, v in samples(server).items() if "attempts_ended" in k) == 1
