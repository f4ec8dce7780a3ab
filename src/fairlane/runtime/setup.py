"""Setup: a project's command that runs once in a new workspace, before the agent starts.

It runs as checks do, under the attempt's lease, with network. It is a row among the checks of its
attempt, so that a crash finds it again and its output can be read.
"""

from __future__ import annotations

from pathlib import Path

from fairlane.engine.checks import why_failed
from fairlane.engine.context import folder_of
from fairlane.engine.end_attempt import Ending, Report
from fairlane.executors.base import Handle
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.errors import FairlaneError, Shortage
from fairlane.model.event import Happening
from fairlane.model.instant import SECOND, show_duration, show_instant
from fairlane.model.task import SETUP
from fairlane.model.visible import last_lines
from fairlane.runtime.checks import STARTS_MAX, result_of, state_of
from fairlane.runtime.commands import command_orders
from fairlane.runtime.ending import stopped
from fairlane.runtime.launch import Host, LaunchFailed, launch, launch_failure, place_for
from fairlane.runtime.watch import RunningAttempt
from fairlane.workspaces import Place, setups


def begin(host: Host, lease: LocalLeaseDocument, place: Place) -> Handle | None:
    """Start the setup of a workspace, if it is due; the store knows of it first."""
    if not setups.is_due(place, lease["setup"], lease["setup_files"]):
        return None
    return _start(host, lease)


def is_open(lease: LocalLeaseDocument) -> bool:
    """Whether the setup of an attempt has begun, and its agent has not."""
    return (at := _place_in(lease)) is not None and lease["checked"][at].get("passed") is None


def next_step(host: Host, running: RunningAttempt) -> Handle | Ending | None:
    """What follows while the setup is open: it runs, its agent starts, or the attempt ends."""
    lease, executor = running.lease, running.executor
    if not is_open(lease):
        return None
    number = _place_in(lease)
    assert number is not None
    row = lease["checked"][number]
    folder = folder_of(running.run, number, row)
    state = state_of(running, folder)
    if isinstance(state, Handle):
        return state
    try:
        if state is None:
            return Ending(*_stopped(running)) if running.stopping else _start(host, lease)
        row = lease["checked"][number] = result_of(executor, row, folder, state.exit)
        host.port.checked(running.id, lease["checked"])
        if state.exit.stopped == "stop" or running.stopping:
            return Ending(*_stopped(running))
        if state.exit.environment:
            return Ending(Happening.ENVIRONMENT, Report(detail=f"setup: {row['problem']}"))
        if not row["passed"]:
            return Ending(Happening.LAUNCH_FAILED, Report(detail=_detail(row)))
        setups.note_done(place_for(host, lease), lease["setup"], lease["setup_files"])
        return launch(host, lease, is_set_up=True)
    except (FairlaneError, OSError) as error:
        return launch_failure(error, lease).ending


def _start(host: Host, lease: LocalLeaseDocument) -> Handle:
    rows = lease["checked"]
    number = _place_in(lease)
    if number is None:
        number = len(rows)
        timeout = show_duration(host.settings.workspaces.setup_timeout)
        rows.append({"name": SETUP, "argv": list(lease["setup"]), "timeout": timeout})
    row = rows[number]
    starts = int(str(row.get("starts", 0))) + 1
    if starts > STARTS_MAX:
        message = f"setup: its runner was killed {STARTS_MAX} times"
        raise LaunchFailed(message, code=Shortage.code)
    now = show_instant(host.clock.now())
    rows[number] = row = {**row, "started_at": now, "starts": starts, "passed": None}
    folder = folder_of(Path(lease["run"]), number, row)
    seconds = host.settings.workspaces.setup_timeout / SECOND
    orders = command_orders(host, lease, folder, lease["setup"], seconds, network=True)
    if host.port.checked(lease["lease"], rows).lost:
        raise LaunchFailed("its lease ended before its setup ran", code="taken")
    return host.executor.launch(orders)


def _place_in(lease: LocalLeaseDocument) -> int | None:
    """Which row of the checks it is."""
    names = [row["name"] for row in lease["checked"]]
    return names.index(SETUP) if SETUP in names else None


def _stopped(running: RunningAttempt) -> tuple[Happening, Report]:
    happening, detail = stopped(running, "stop", "")
    return happening, Report(detail=detail)


def _detail(row: dict[str, object]) -> str:
    why, said = why_failed(row), last_lines(str(row.get("tail") or ""))
    return f"setup: {why}: {said}" if said else f"setup: {why}"
