"""Import: what a source has becomes tasks, by its ids; what has started is left as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane.intake.fields import defaults
from fairlane.intake.records import Records
from fairlane.intake.routing import Router
from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Found, Item, LeftOut, Standing, Where
from fairlane.intake.submit import submit
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.model.frozen import changed
from fairlane.model.instant import Instant
from fairlane.model.names import check_name
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.journal import Journal
from fairlane.service.sourcing import drafting
from fairlane.service.sourcing.choosing import choose, once, refuse_bad, row
from fairlane.service.sourcing.drafting import Draft
from fairlane.service.sourcing.edges import Kin, connect
from fairlane.service.sourcing.ending import CLOSED_IN, cancel, in_doubt, let_go, over
from fairlane.service.sourcing.merging import Merge, anew, changes, digests, merge, untouched
from fairlane.service.sourcing.naming import task_ids
from fairlane.service.sourcing.remembered import (
    Entry,
    entries,
    keep_import,
    remember,
    seen,
    source_key,
)
from fairlane.service.tasks import Undone, edited, enter, router_for
from fairlane.store.base import Placed, Writing

#: What a source can make a task wait for; it is ready only since that is over.
_WAITS = ("needs", "source", "upstream")
__all__ = ["Wish", "apply", "bring_in", "gather", "seen", "source_key"]


@dataclass(frozen=True)
class Wish:
    """What is asked of an import."""

    ids: tuple[str, ...] = ()  # only these, by the source's ids; none: all that is open
    project: str | None = None  # for items that name none
    group: str | None = None  # for items that have none
    force: bool = False  # also what the source calls taken, or another project's prefix
    dry_run: bool = False
    strict: bool = False  # one bad record refuses all
    sync: bool = False  # what is closed or gone cancels what has not started


def bring_in(desk: Desk, source: str, where: Where, wish: Wish) -> dict[str, Any]:
    """Read a source and import what it has."""
    return apply(desk, source, where, gather(source, where), wish)


def gather(source: str, where: Where) -> Found:
    """What a source has now. It may take long: no transaction is open."""
    return source_named(source).read(where)


def apply(desk: Desk, source: str, where: Where, found: Found, wish: Wish) -> dict[str, Any]:
    """Make tasks of what was found, in one transaction; a dry run leaves no trace."""
    try:
        with desk.store.write() as tx:
            turn = _Turn(desk, tx, source, where, found, wish)
            document = turn.carry_out()
            if wish.dry_run:
                raise Undone(document | {"dry_run": True, "import": None})
    except Undone as undone:
        return undone.document
    return document


@dataclass(slots=True)
class _Answer:
    """What came of it; the ids are those of tasks, of what is skipped the source's."""

    created: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    canceled: list[dict[str, Any]] = field(default_factory=list)
    held: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[LeftOut] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)

    def clash(self, task: str, reason: str) -> None:
        """The source and Fairlane do not agree; nothing was changed."""
        self.conflicts.append({"id": task, "reason": reason})


class _Turn:
    """One import within one transaction."""

    def __init__(
        self, desk: Desk, tx: Writing, source: str, where: Where, found: Found, wish: Wish
    ) -> None:
        self.desk, self.tx, self.source, self.where, self.wish = desk, tx, source, where, wish
        self.found = once(found)
        self.policy: Policy = desk.policy()  # as of the turn, not of the wait for it
        self.now: Instant = desk.now()
        self.router: Router = router_for(desk, tx, wish.force)
        self.journal = Journal(tx, self.policy, self.now, desk.actor)
        self.key = source_key(source, where)
        self.entries: dict[str, Entry] = entries(tx, self.key)
        self.answer = _Answer()
        self.names: dict[str, str] = {}  # item -> task
        self.tasks: dict[str, Task] = {}  # those that are known, as they are now

    def carry_out(self) -> dict[str, Any]:
        """Choose, check, cancel, enter, change, remember."""
        wish, answer = self.wish, self.answer
        if wish.project is not None:
            self.router.project(wish.project)
        if wish.group is not None:
            check_name("group", wish.group)
        chosen, answer.skipped = choose(self.found, wish.ids, wish.force, self.entries)
        self.names = task_ids(chosen, self.entries)
        self.tasks = self.tx.tasks(set(self.names.values()))
        drafts = self._drafts(chosen) | self._followers(chosen)
        if wish.sync:
            self._follow_closed()
        for draft, reason in connect(self._kin(), drafts):
            self.skip(draft.item, reason)
        self._refuse_bad()
        new = {name: draft for name, draft in drafts.items() if self._is_new(draft)}
        back = [name for name, draft in drafts.items() if draft.returns]
        groups = self._enter(drafts, new, back)
        for name, draft in drafts.items():
            if name not in new:
                self._follow(draft)
            self._note_force(draft.item)
        self._refuse_bad()
        self._tell_held(drafts)
        return self._finish(groups, [*new, *back])

    def _refuse_bad(self) -> None:
        if self.wish.strict:
            refuse_bad(dict.fromkeys((*self.found.left_out, *self.answer.skipped)))

    def _is_new(self, draft: Draft) -> bool:
        return draft.task not in self.tasks and draft.item.id not in self.entries

    def _comes_back(self, draft: Draft) -> bool:
        """It was canceled because its item was over, or by undo; now it is open."""
        away = "away" in self.entries.get(draft.item.id, {})
        return away and self.tasks[draft.task].status is Status.CANCELED

    def _drafts(self, chosen: list[Item]) -> dict[str, Draft]:
        """Item by item what its task would be; bad ones and those of others are named."""
        drafts: dict[str, Draft] = {}
        groups = drafting.group_names(self.found)
        for item in chosen:
            name = self.names[item.id]
            if name in self.tasks and item.id not in self.entries:
                self.answer.clash(name, f"there is a task {name} that did not come from here")
                continue
            try:
                draft = drafting.draft(item, self.names, self.source, groups)
                if self._is_new(draft):
                    drafting.route(draft, self.router, self.wish.project, self.wish.group)
                draft.returns, draft.taken = self._comes_back(draft), self._taken(item)
                drafts[name] = draft
            except drafting.Unroutable as error:
                self.skip(item, str(error), bad=False)
            except FairlaneError as error:
                self.skip(item, error.message)
        return drafts

    def _followers(self, chosen: list[Item]) -> dict[str, Draft]:
        """Held tasks of items that were not asked for: what holds them may be here now."""
        asked = {item.id for item in chosen}
        found: dict[str, Draft] = {}
        for item in self.found.items if self.wish.ids else ():
            task = self.tasks.get(self.names.get(item.id, ""))
            if item.id not in asked and task and task.source_hold and untouched(task):
                taken = self._taken(item)
                found[task.id] = Draft(item, task.id, {}, taken=taken, follows=True)
        return found

    def _taken(self, item: Item) -> str:
        """Somebody else works on it: its task waits, unless it was forced for this while."""
        if item.standing is not Standing.TAKEN or self.wish.force:
            return ""
        forced = "forced" in self.entries.get(item.id, {})
        return "" if forced else item.why or "somebody works on it"

    def _note_force(self, item: Item) -> None:
        entry = self.entries[item.id]
        if item.standing is not Standing.TAKEN:
            entry.pop("forced", None)
        elif self.wish.force:
            entry["forced"] = True

    def skip(self, item: Item, reason: str, bad: bool = True) -> None:
        """Leave an item out, by name."""
        self.answer.skipped.append(LeftOut(item.id, reason, item.where, bad))

    def _kin(self) -> Kin:
        closed = (item.id for item in self.found.items if item.standing is Standing.CLOSED)
        return Kin(self.tx, self.names, self.tasks, frozenset(closed))

    def _follow_closed(self) -> None:
        """What is over in its source is canceled, if nothing has been done for it."""
        for name, why in over(self.found, self.entries).items():
            entry = self.entries[name]
            task = self.tasks[entry["task"]]
            if task.status.final:
                continue
            reason = f"{why} {self.source}"
            if not untouched(task):
                self.answer.clash(task.id, f"{reason}, but it has started (it is {task.status})")
                continue
            entry["away"] = "closed"
            if why == CLOSED_IN and self.policy.readiness.upstream == "cancel":
                let_go(self.journal, task, self.tasks)
            cancel(self.journal, task, reason)
            self.answer.canceled.append({"id": task.id, "reason": reason})
        for name, broken in in_doubt(self.found, self.entries).items():
            task = self.tasks[self.entries[name]["task"]]
            if untouched(task):
                reason = f"not in {self.source}, unless {broken} is it: mend that"
                self.answer.clash(task.id, reason)
        self.journal.close()
        self.tasks |= self.tx.tasks(self.tasks)

    def _enter(
        self, drafts: Mapping[str, Draft], new: Mapping[str, Draft], back: list[str]
    ) -> list[str]:
        """New tasks, and those that come back; all of them or, if the queue is too deep, none."""
        joining = [draft for draft in drafts.values() if not self._started(draft)]
        drafting.make_groups(self.router, self.found, joining, self.wish.group)
        places = [draft.item.where or draft.item.id for draft in new.values()]
        records = Records([draft.row() for draft in new.values()], lambda at: f"{places[at]}: ")
        beside = {name: draft.beside() for name, draft in new.items()}
        desk, tx, router, policy, now = self.desk, self.tx, self.router, self.policy, self.now
        batch = submit(tx, router, policy, now, records, beside=beside)
        batch.known.update({name: self.tasks[name].status for name in back})
        done = enter(desk, tx, router, policy, now, batch, True, {"source": self.source})
        if done["deferred"]:
            hint = done["hint"].replace("added", "imported").replace("add fewer", "import fewer")
            raise TryLater(done["message"], hint, code="deferred")
        made = [group.name for group in router.new_groups]
        router.new_groups.clear()
        for name, draft in new.items():
            self.entries[draft.item.id] = {
                "task": name,
                "fields": digests(draft.values),
                "failures": draft.item.failures,
            }
        self.tasks |= tx.tasks([*new, *back])
        for task in (self.tasks[name] for name in drafts if name in new or name in back):
            row = {"id": task.id, "project": task.project, "group": task.group}
            self.answer.created.append(row)
        return made

    def _started(self, draft: Draft) -> bool:
        task = self.tasks.get(draft.task)
        return task is not None and not untouched(task)

    def _follow(self, draft: Draft) -> None:
        """A task that is known: what the source changed is changed, if nothing has started."""
        entry, task = self.entries[draft.item.id], self.tasks[draft.task]
        entry.pop("away", None)
        if not untouched(task):
            self._leave(draft, entry, task)
            return
        found = Merge(said=entry["fields"])
        try:
            if draft.returns:
                found = anew(task, entry["fields"], draft.values)
            elif not draft.follows:
                found = merge(task, entry["fields"], draft.values, self.router)
            fields = self._rewrite(draft, entry, task, found)
        except FairlaneError as error:
            self.skip(draft.item, error.message)
            return
        entry["fields"] = found.said
        if found.clashes:
            clashes = ", ".join(found.clashes)
            self.answer.clash(task.id, f"{clashes} changed here and in {self.source}; ours stays")
        if fields and not draft.returns:
            self.answer.changed.append({"id": task.id, "fields": fields})
        elif not (fields or found.clashes or draft.follows or draft.returns):
            self.answer.unchanged.append(task.id)

    def _leave(self, draft: Draft, entry: Entry, task: Task) -> None:
        """What has started, or is over, stays as it is."""
        said = ", ".join(changes(entry["fields"], draft.values))
        if said:
            reason = f"{said} changed in {self.source}, but it has started (it is {task.status})"
            self.answer.clash(task.id, reason)
        else:
            self.answer.unchanged.append(task.id)

    def _rewrite(self, draft: Draft, entry: Entry, task: Task, found: Merge) -> list[str]:
        """Put the changes into a task; the fields that are others now."""
        names = sorted({*found.values, *found.empty})
        after = task
        if names:
            empty = defaults(found.empty)
            after = edited(self.router, task, found.values, empty, self.now)
        if after.needs != draft.needs:
            names.append("needs")
        if after.source_hold != draft.hold:
            names.append("source_hold")
        failures = task.failures
        if entry["failures"] != draft.item.failures:
            names.append("failures")
            failures = entry["failures"] = draft.item.failures
        if not names:
            return []
        after = changed(after, needs=draft.needs, source_hold=draft.hold, failures=failures)
        placed = self.journal.settle(after)
        since = placed.task.ready_since if after.ready_since else self.now
        since = None if placed.wait in _WAITS else since
        if not placed.wait or since is None:
            placed = Placed(changed(placed.task, ready_since=since), placed.wait, placed.due_at)
        for group in self.router.new_groups:
            self.tx.put_group(group)
        self.router.new_groups.clear()
        self.tx.rewrite([placed])
        self.journal.note("edited", placed.task, fields=names, source=self.source)
        return names

    def _tell_held(self, drafts: Mapping[str, Draft]) -> None:
        for name, draft in drafts.items():
            task = self.tasks.get(name)  # as it was before, if it was not created just now
            if task is None or not draft.hold or self._started(draft):
                continue
            if not draft.follows or draft.hold != task.source_hold:
                self.answer.held.append({"id": name, "reason": draft.hold})

    def _finish(self, groups: list[str], created: list[str]) -> dict[str, Any]:
        """Number it, remember it, log it, unless nothing has come of it."""
        answer = self.answer
        number = None
        if created and not self.wish.sync:
            number = keep_import(self.tx, self.source, self.where, self.key, self._made(created))
        if created or answer.changed or answer.canceled:
            self.journal.note(
                "imported",
                source=self.source,
                path=self.where.name,
                created=len(answer.created),
                changed=len(answer.changed),
                canceled=len(answer.canceled),
            )
        self.journal.close()
        remember(self.tx, self.key, self.entries)
        return {
            "schema": SCHEMA,
            "source": self.source,
            "path": self.where.name,
            "dry_run": False,
            "import": number,
            "created": answer.created,
            "changed": answer.changed,
            "unchanged": answer.unchanged,
            "canceled": answer.canceled,
            "held": answer.held,
            "skipped": [row(each) for each in answer.skipped],
            "conflicts": answer.conflicts,
            "groups": groups,
            "notes": list(self.found.notes),
        }

    def _made(self, created: list[str]) -> dict[str, str]:
        """Item -> task, of what this import created."""
        items = {task: item for item, task in self.names.items()}
        return {items[task]: task for task in created}
