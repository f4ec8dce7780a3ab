"""Recheck: run the checks of a task again in its workspace; its status stays what it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.engine.checks import required, timeout_of
from fairlane.engine.context import Context, is_here
from fairlane.engine.lease_document import lease_documents, read_leases
from fairlane.executors.base import Ended, Exit, Handle
from fairlane.executors.runfiles import log_of
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.errors import NotFound, Refused, did_you_mean
from fairlane.model.names import SCHEMA
from fairlane.model.project import Project
from fairlane.model.task import Attempt, Check, Status, Task
from fairlane.runtime.checks import result_of
from fairlane.runtime.commands import command_orders
from fairlane.runtime.launch import Host, host_of
from fairlane.service.attempt_named import attempt_named, task_named
from fairlane.service.open_work import elsewhere
from fairlane.workspaces import git
from fairlane.workspaces.place import path_of

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import CheckedAnswer, CheckResultDocument


def check(context: Context, task: str, names: Sequence[str] = ()) -> CheckedAnswer:
    """Run its checks again in its workspace, all of them or those that are named."""
    lease, checks = _prepared(context, task, names)
    host, rows = host_of(context), []
    locks = context.home / "locks"
    locks.mkdir(mode=0o700, exist_ok=True)
    with git.locked(locks / f"check-{task}.lock"):
        for number, one in enumerate(checks):
            rows.append(_again(host, lease, number, one))
    passed = all(row["passed"] for row in rows)
    document: CheckedAnswer = {"schema": SCHEMA, "task": task, "passed": passed, "checks": rows}
    if not passed:
        names = ", ".join(str(row["name"]) for row in rows if not row["passed"])
        message, hint = f"{task}: failed: {names}", f"`fairlane diff {task}` shows its work."
        document["error"] = {"code": "check_failed", "message": message, "hint": hint}
    return document


def _prepared(
    context: Context, name: str, names: Sequence[str]
) -> tuple[LocalLeaseDocument, list[Check]]:
    """The last attempt of a task whose workspace nobody uses, and the checks to run."""
    with context.store.read() as reading:
        task, last = task_named(reading, name), attempt_named(reading, name, None)
        project = reading.table(Project)[task.project]
        _refuse_used(context, task, last, project, reading.open_attempts())
        leases = read_leases(reading, [(task, last)])
        policy = context.policy_for_reading(reading)
    return lease_documents(context, policy, leases)[0], _chosen(task, project, names)


def _chosen(task: Task, project: Project, names: Sequence[str]) -> list[Check]:
    checks = {one.name: one for one in required(task, project)}
    if not checks:
        hint = f'Give its project some: fairlane project set {task.project} --check "make test".'
        raise Refused(f"{task.id} has no checks", hint, code="no_checks")
    for name in names:
        if name not in checks:
            hint = did_you_mean(name, checks)
            raise NotFound(f"{task.id} has no check {name!r}", hint, code="unknown_check")
    return [one for one in checks.values() if not names or one.name in names]


def _refuse_used(
    context: Context, task: Task, last: Attempt, project: Project, others: Sequence[Attempt]
) -> None:
    if task.status.in_flight or task.status is Status.QUEUED:
        message = f"{task.id} is {task.status}: its checks run when its attempt has ended"
        raise Refused(message, f"`fairlane logs -f {task.id}` follows it.", code="in_flight")

    def folder(row: Attempt) -> Path:
        return path_of(context.home, context.settings, project, row.task, row.workspace)

    for row in others:
        if row.project == project.name and row.executor != "none" and folder(row) == folder(last):
            message = f"{row.task} works in {folder(row)} now"
            raise Refused(message, f"`fairlane logs -f {row.task}` follows it.", code="in_flight")
    if not folder(last).is_dir() and not is_here(last):
        raise elsewhere(task.id, last.host or last.worker or "another machine")
    if not folder(last).is_dir():
        hint = f"`fairlane show {task.id}` tells what it changed."
        raise Refused(f"{folder(last)} is not there any more", hint, code="no_work")


def _again(host: Host, lease: LocalLeaseDocument, number: int, check: Check) -> CheckResultDocument:
    """Run one, and wait for its end; an interrupt stops it."""
    run, executor = Path(lease["run"]), host.executor_of(lease)
    folder = run.with_name(f"{run.name}.again.{number}")
    timeout = timeout_of(host.settings, check.timeout)
    handle = executor.launch(command_orders(host, lease, folder, check.argv, timeout))
    try:
        exit = _waited(host, lease, handle)
    except BaseException:
        executor.stop(handle)
        raise
    row = result_of(executor, {}, folder, exit)
    code = row["exit"]
    return {
        "name": check.name,
        "argv": list(check.argv),
        "exit": code if isinstance(code, int) else None,
        "passed": bool(row["passed"]),
        "seconds": float(str(row["seconds"])),
        "attempt": lease["attempt"],
        "log": str(log_of(folder)),
        "problem": str(row["problem"]),
        "tail": str(row["tail"]),
    }


def _waited(host: Host, lease: LocalLeaseDocument, handle: Handle) -> Exit:
    executor = host.executor_of(lease)
    while (watch := executor.watch(handle)) is not None:
        try:
            host.clock.wait(None, watch)
        finally:
            watch.close()
    state = executor.poll(handle)
    return state.exit if isinstance(state, Ended) else Exit(launch_error="its runner is gone")
