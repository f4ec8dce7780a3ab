"""The durable queue as one object: every operation is a method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from fairlane.app import answer_here, is_url, open_context, open_remote
from fairlane.model.errors import Invalid
from fairlane.model.instant import show_instant

if TYPE_CHECKING:
    from fairlane.clock import Clock
    from fairlane.engine.context import Context
    from fairlane.model.documents import admin, reports, simulation, sources, tasks, work
    from fairlane.model.documents.groups import GroupAnswer, GroupsAnswer
    from fairlane.model.instant import Instant

_Answer = TypeVar("_Answer")
#: Totals of an attempt so far, by counter; a bare number is output.
Used: TypeAlias = Mapping[str, int] | int | None
#: In dollars.
Cost: TypeAlias = float | None
#: What the work came to, as the holder writes it.
Result: TypeAlias = dict[str, object] | None
#: A length back such as `12h`, a time, or an instant.
When: TypeAlias = "str | Instant | None"


class Fairlane:
    """The durable queue as one object: every operation is a method with the same answer.

    `home` is a folder, which is made if it is missing, or the URL of a server; without one it is
    the user's own folder. A server wants a `token`: `FAIRLANE_TOKEN`, or the one of that folder.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        db: str | None = None,
        clock: Clock | None = None,
        token: str | None = None,
    ) -> None:
        self._context, self._remote = None, None
        if is_url(home):
            if db is not None or clock is not None:
                raise Invalid("db and clock are of a home folder", "Leave them out with a URL.")
            self._remote = open_remote(str(home), token)
        else:
            self._context = open_context(None if home is None else Path(home), db, clock)

    @property
    def context(self) -> Context:
        """What the verbs work with in a home folder."""
        if self._context is None:
            raise Invalid("a server has its context for itself", "Give a home folder.")
        return self._context

    def __enter__(self) -> Fairlane:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing more is asked of it."""
        if self._remote is not None:
            self._remote.close()
        else:
            self.context.store.close()

    def ask(self, name: str, /, **arguments: object) -> _Answer:  # type: ignore[type-var]
        """An operation by its name, here or at the server; the caller names the answer's type."""
        if self._remote is not None:
            return cast("_Answer", self._remote.ask(name, **arguments))
        return cast("_Answer", answer_here(self.context, name, **arguments))

    # Adding work.

    def add(
        self,
        work: str | Mapping[str, object] | Iterable[Mapping[str, object]],
        *,
        again: bool = False,
        force: bool = False,
        chain: bool = False,
        recipe: str | None = None,
        dry_run: bool = False,
        **values: object,
    ) -> tasks.AddedAnswer:
        """A prompt, a task, or many; `values` are the fields of tasks that do not give them."""
        records = [{"prompt": work}] if isinstance(work, str) else work
        many = [records] if isinstance(records, Mapping) else list(records)
        return self.ask(
            "add", tasks=many, defaults=values, again=again, force=force, chain=chain,
            recipe=recipe, dry_run=dry_run,
        )  # fmt: skip

    def import_from(
        self, source: str, path: str | Path, *ids: str, **wishes: Any
    ) -> sources.ImportAnswer:
        """What a source has becomes tasks: `project`, `group`, `force`, `dry_run`, `strict`.

        It reads files of this machine, so that a server cannot be asked.
        """
        from fairlane.intake.sources.base import Where
        from fairlane.service.sync.importing import ImportOptions, bring_in

        where = Where(Path(path), home=self.context.home)
        return bring_in(self.context, source, where, ImportOptions(ids, **wishes))

    def undo(self, number: int | None = None, *, dry_run: bool = False) -> sources.UndoAnswer:
        """Take back an import that has not started; by default the last one."""
        from fairlane.service.sync.close import undo

        return undo(self.context, number, dry_run)

    def edit(self, *ids: str, **changes: object) -> tasks.TasksAnswer:
        """Change tasks that have not started."""
        return self.ask("edit", ids=ids, changes=changes)

    def cancel(
        self, *ids: str, tree: bool = False, group: str | None = None, reason: str = ""
    ) -> tasks.ChangedAnswer:
        """Cancel tasks, their descendants, or a group."""
        return self.ask("cancel", ids=ids, tree=tree, group=group, reason=reason)

    def retry(self, *ids: str) -> tasks.ChangedAnswer:
        """Put parked tasks back; start those in backoff at once."""
        return self.ask("retry", ids=ids)

    def check(self, task: str, *names: str) -> tasks.CheckedAnswer:
        """Run its checks again, all of them or those that are named; its status stays."""
        return self.ask("check", task=task, names=names)

    # What there is, and why.

    def list(self, *, after: int = 0, **filters: object) -> tasks.TasksAnswer:
        """Tasks: `project`, `kind`, `status`, `group`, `held_by`, `after`, `limit`."""
        return self.ask("list", cursor=after, **filters)

    def show(self, task: str) -> tasks.TaskAnswer:
        """One task whole."""
        return self.ask("show", task=task)

    def logs(self, task: str, **which: object) -> tasks.LogAnswer:
        """What an attempt printed: `attempt`, `stream`, `offset`, `limit`."""
        return self.ask("logs", task=task, **which)

    def transcript(self, task: str, **which: object) -> tasks.TranscriptAnswer:
        """What an agent said and did: `attempt`, `cursor`, `limit`, `since`."""
        return self.ask("transcript", task=task, **which)

    def diff(self, task: str, *files: str, **which: object) -> work.DiffAnswer:
        """What an attempt changed, perhaps of some files: `attempt`, `carried`, `stat`."""
        return self.ask("diff", task=task, files=files, **which)

    def check_log(self, task: str, name: str, **which: object) -> tasks.LogAnswer:
        """What a check printed: `attempt`, `stream`, `offset`, `limit`."""
        return self.ask("check_log", task=task, name=name, **which)

    def plan(self) -> reports.PlanAnswer:
        """What a cycle would start now; changes nothing."""
        return self.ask("plan")

    def why(self, task: str) -> reports.WhyAnswer:
        """Why a task does not start, and what would start it."""
        return self.ask("why", task=task)

    def status(self) -> reports.StatusAnswer:
        """How things stand now."""
        return self.ask("status")

    def summary(self, since: When = None) -> reports.SummaryAnswer:
        """What happened since then."""
        return self.ask("summary", since=_when(since))

    def stats(self, since: When = None) -> reports.StatsAnswer:
        """Shares, waits, durations and estimates since then."""
        return self.ask("stats", since=_when(since))

    def events(
        self,
        after: int | None = None,
        *,
        task: str | None = None,
        limit: int = 1000,
        kind: str | None = None,
    ) -> tasks.EventsAnswer:
        """Events after a number, or the newest."""
        return self.ask("events", cursor=after, task=task, limit=limit, kind=kind)

    def follow(self, after: int = 0, *, task: str | None = None) -> Iterator[tasks.FollowedEvent]:
        """Every event after a number, and those that come, as long as somebody asks."""
        if self._remote is not None:
            return self._remote.events(after, task)
        from fairlane.service.reports import listing

        return listing.follow(self.context, after, task)

    def decisions(self, after: int = 0, *, limit: int = 100) -> reports.DecisionsAnswer:
        """Recorded plans in short."""
        return self.ask("decisions", cursor=after, limit=limit)

    def replay(self, number: int, *, planner: str = "lanes") -> reports.ReplayedAnswer:
        """Plan a recorded decision again; every difference is named."""
        return self.ask("replay", number=number, planner=planner)

    def simulate(
        self,
        workload: Mapping[str, object],
        policies: Sequence[str | Mapping[str, object]] | None = None,
        *,
        seed: int = 1,
        days: int | None = None,
        name: str = "workload",
    ) -> simulation.SimulateAnswer:
        """What policies would make of a workload: presets by name, or {"name", "policy"}."""
        return self.ask(
            "simulate", workload=workload, policies=policies, seed=seed, days=days, name=name
        )

    # The queue and its rules.

    def pause(self, scope: str = "all", reason: str = "") -> admin.PausedAnswer:
        """Nothing in the scope starts."""
        return self.ask("pause", scope=scope, reason=reason)

    def resume(self, scope: str = "all") -> admin.ResumedAnswer:
        """The scope may start again."""
        return self.ask("resume", scope=scope)

    def clear(self, scope: str = "all", *, dry_run: bool = False) -> admin.ClearedAnswer:
        """Cancel the queued tasks of a scope."""
        return self.ask("clear", scope=scope, dry_run=dry_run)

    def policy(self) -> admin.PolicyAnswer:
        """The policy in force, each key with where its value came from."""
        return self.ask("policy_show")

    def set_policy(self, changes: Mapping[str, object]) -> admin.PolicyChangedAnswer:
        """Change keys of the policy, such as {"caps.all": 8}; all of them, or none."""
        return self.ask("policy_set", changes=changes)

    # The pull protocol.

    def lease(
        self,
        limit: int | None = None,
        *,
        worker: str | None = None,
        labels: Sequence[str] = (),
        wait: str | float | None = None,
    ) -> tasks.LeasesAnswer:
        """Take what may start now, at most `limit`; with `wait`, until there is something."""
        return self.ask("lease", limit=limit, worker=worker, labels=labels, wait=wait)

    def heartbeat(self, lease: str) -> tasks.HeldAnswer:
        """Renew a lease."""
        return self.ask("heartbeat", lease=lease)

    def report(
        self, lease: str, *, tokens: Used = None, cost: Cost = None, note: str = ""
    ) -> tasks.HeldAnswer:
        """Tell what an attempt has used so far, and how far it is."""
        return self.ask("report", lease=lease, tokens=tokens, cost=cost, note=note)

    def complete(
        self, lease: str, *, tokens: Used = None, cost: Cost = None, result: Result = None
    ) -> tasks.HeldAnswer:
        """The work is done."""
        return self.ask("complete", lease=lease, tokens=tokens, cost=cost, result=result)

    def release(
        self,
        lease: str,
        outcome: str = "released",
        *,
        reason: str = "",
        tokens: Used = None,
        cost: Cost = None,
        retry_after: str | float | None = None,
        resets_at: When = None,
    ) -> tasks.HeldAnswer:
        """Give a lease back: untouched, failed, throttled, …"""
        return self.ask(
            "release", lease=lease, outcome=outcome, reason=reason, tokens=tokens, cost=cost,
            retry_after=retry_after, resets_at=_when(resets_at),
        )  # fmt: skip

    def reclaim(self) -> tasks.ReclaimedAnswer:
        """End what has expired."""
        return self.ask("reclaim")

    # Projects, groups, pools, workers.

    def projects(self) -> admin.ProjectsAnswer:
        """Every project."""
        return self.ask("project_list")

    def show_project(self, name: str) -> admin.ProjectAnswer:
        """One project."""
        return self.ask("project_show", name=name)

    def add_project(self, name: str, **values: object) -> admin.ProjectAnswer:
        """A new project."""
        return self.ask("project_add", name=name, values=values)

    def set_project(self, name: str, **values: object) -> admin.ProjectAnswer:
        """Change a project."""
        return self.ask("project_set", name=name, values=values)

    def remove_project(self, name: str) -> admin.RemovedAnswer:
        """Take a project away."""
        return self.ask("project_remove", name=name)

    def groups(self) -> GroupsAnswer:
        """Every group with its progress."""
        return self.ask("group_list")

    def show_group(self, name: str) -> GroupAnswer:
        """One group: how far it is, and what holds it up."""
        return self.ask("group_show", name=name)

    def add_group(self, name: str, **values: object) -> GroupAnswer:
        """A new group: `parent`, `priority`, `title`; with a `tree` its tasks and groups too."""
        return self.ask("group_add", name=name, **values)

    def set_group(self, name: str, **values: object) -> GroupAnswer:
        """Change a group's parent or priority."""
        return self.ask("group_set", name=name, values=values)

    def pools(self) -> admin.PoolsAnswer:
        """Every pool with its cooldown."""
        return self.ask("pool_list")

    def show_pool(self, name: str) -> admin.PoolAnswer:
        """One pool."""
        return self.ask("pool_show", name=name)

    def workers(self) -> admin.WorkersAnswer:
        """Every worker with its slots."""
        return self.ask("worker_list")

    def show_worker(self, name: str) -> admin.WorkerAnswer:
        """One worker."""
        return self.ask("worker_show", name=name)


def _when(when: When) -> str | None:
    """An instant as a server reads it."""
    return show_instant(when) if isinstance(when, int) else when
