"""Import: what a source has becomes tasks, by its ids; what has started is left as it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from fairlane.engine.context import Context, slots_of
from fairlane.engine.task_changes import TaskChanges
from fairlane.intake.fields import Records, defaults
from fairlane.intake.queue_depth import measure
from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Found, Item, LeftOut, Standing, Where
from fairlane.model.documents import sources
from fairlane.model.errors import FairlaneError, NotFound
from fairlane.model.record import changed
from fairlane.model.task import Status, Task
from fairlane.model.values import check_name
from fairlane.service.sync import answer, mapping, parking, restart, write_back
from fairlane.service.sync.admit import latecomers
from fairlane.service.sync.close import CLOSED_IN, cancel, in_doubt, let_go, over
from fairlane.service.sync.draft import (
    Draft,
    Kin,
    Unroutable,
    closed_and_over,
    connect,
    draft_of,
    group_names,
    make_groups,
    route,
    task_ids,
)
from fairlane.service.sync.kinds import kinds_for, with_kinds
from fairlane.service.sync.select import choose, once, refuse_bad
from fairlane.service.tasks import Intake, RollBack, edited
from fairlane.store.base import Placed, Writing

#: What a source can make a task wait for; it is ready only since that is over.
_WAITS = ("needs", "source", "upstream")


@dataclass(frozen=True)
class ImportOptions:
    """What is asked of an import."""

    ids: tuple[str, ...] = ()  # only these, by the source's ids; none: all that is open
    project: str | None = None  # for items that name none
    group: str | None = None  # for items that have none
    force: bool = False  # also what the source calls taken, or another project's prefix
    dry_run: bool = False
    strict: bool = False  # one bad record refuses all
    sync: bool = False  # what is closed or gone cancels what has not started


def bring_in(
    context: Context, source: str, where: Where, options: ImportOptions
) -> sources.ImportAnswer:
    """Read a source, which may take long, and import what it has."""
    content = with_kinds(source_named(source).read(where), kinds_for(context, source, where))
    return apply(context, source, where, content, options)


def apply(
    context: Context, source: str, where: Where, content: Found, options: ImportOptions
) -> sources.ImportAnswer:
    """Make tasks of what was found, in one transaction; a dry run leaves no trace."""
    with suppress(RollBack), context.store.write() as tx:
        turn = _Turn(context, tx, source, where, content, options)
        document = turn.carry_out()
        if not options.sync:
            answer.refuse_deferred(document)
        answer.note_direct(document, context.policy(), options.dry_run)
        if options.dry_run:
            document["dry_run"], document["import"] = True, None
            raise RollBack
    return document


class _Turn(Intake):
    """One import within one transaction."""

    def __init__(
        self,
        context: Context,
        tx: Writing,
        source: str,
        where: Where,
        content: Found,
        options: ImportOptions,
    ) -> None:
        super().__init__(context, tx, options.force)
        self.source, self.where, self.options = source, where, options
        self.task_changes = TaskChanges(tx, self.policy, self.now, context.actor)
        self.key = mapping.source_key(source, where)
        ours = partial(write_back.is_told_leased, tx, self.key)
        self.content = parking.with_expired(once(content), self.policy, self.now, ours)
        self.entries: dict[str, mapping.Entry] = mapping.entries(tx, self.key)
        self.skipped: list[LeftOut] = []
        self.answer = answer.empty(source, where.name, self.content.notes)
        self.names: dict[str, str] = {}  # item -> task
        self.tasks: dict[str, Task] = {}  # those that are known, as they are now

    def carry_out(self) -> sources.ImportAnswer:
        """Choose, check, cancel, enter, change, remember."""
        options = self.options
        if options.project is not None:
            self.router.project(options.project)
        if options.group is not None:
            check_name("group", options.group)
        chosen, self.skipped = choose(self.content, options.ids, options.force, self.entries)
        self.names = task_ids(chosen, self.entries)
        self.tasks = self.tx.tasks(set(self.names.values()))
        drafts = self._drafts(chosen) | self._followers(chosen)
        if options.sync:
            self._follow_closed()
        kin = Kin(self.tx, self.names, self.tasks, *closed_and_over(self.content, self.entries))
        for draft, reason in connect(kin, drafts):
            self.skip(draft.item, reason)
        self._refuse_bad()
        self._defer(kin, drafts)
        new = {name: draft for name, draft in drafts.items() if self._is_new(draft)}
        back = [name for name, draft in drafts.items() if draft.returns]
        self._enter(drafts, new, back)
        for name, draft in drafts.items():
            if name not in new:
                self._follow(draft)
            self._note_force(draft.item)
        self._refuse_bad()
        self._tell_held(drafts)
        followed = {draft.item.id for draft in drafts.values()}
        restart.note(self.entries, self.content.items, followed)
        return self._finish([*new, *(name for name in back if not drafts[name].again)])

    def _clash(self, task: str, reason: str) -> None:
        """The source and Fairlane do not agree; nothing was changed."""
        self.answer["conflicts"].append({"id": task, "reason": reason})

    def _refuse_bad(self) -> None:
        if self.options.strict:
            refuse_bad(dict.fromkeys((*self.content.left_out, *self.skipped)))

    def _is_new(self, draft: Draft) -> bool:
        return draft.task not in self.tasks and draft.item.id not in self.entries

    def _joins_queue(self, draft: Draft) -> bool:
        return draft.returns or (self._is_new(draft) and not draft.item.parked)

    def _comes_back(self, draft: Draft) -> bool:
        """It was canceled because its item was over, or by undo; now it is open."""
        entry = self.entries.get(draft.item.id)
        away = entry is not None and "away" in entry
        return away and self.tasks[draft.task].status is Status.CANCELED

    def _drafts(self, chosen: list[Item]) -> dict[str, Draft]:
        """Item by item what its task would be; bad ones and those of others are named."""
        drafts: dict[str, Draft] = {}
        groups = group_names(self.content)
        for item in chosen:
            name = self.names[item.id]
            if name in self.tasks and item.id not in self.entries:
                self._clash(name, answer.not_ours(self.tasks[name], self.source))
                continue
            try:
                draft = draft_of(item, self.names, self.source, groups)
                if self._is_new(draft):
                    route(draft, self.router, self.options.project, self.options.group)
                draft.taken = self._taken(item)
                draft.again = restart.is_due(self.entries.get(item.id), item, self.tasks.get(name))
                draft.returns = draft.again or self._comes_back(draft)
                drafts[name] = draft
            except Unroutable as error:
                self.skip(item, str(error), bad=False)
            except NotFound as error:
                self.skip(item, f"{error.message}. {error.hint}".rstrip())
            except FairlaneError as error:
                self.skip(item, answer.why_not(error))
        return drafts

    def _followers(self, chosen: list[Item]) -> dict[str, Draft]:
        """Held tasks of items that were not asked for: what holds them may be here now."""
        asked = {item.id for item in chosen}
        drafts: dict[str, Draft] = {}
        for item in self.content.items if self.options.ids else ():
            task = self.tasks.get(self.names.get(item.id, ""))
            if item.id not in asked and task and task.source_hold and mapping.untouched(task):
                taken = self._taken(item)
                drafts[task.id] = Draft(item, task.id, {}, taken=taken, follows=True)
        return drafts

    def _taken(self, item: Item) -> str:
        """Somebody else works on it: its task waits, unless it was forced for this while."""
        if item.standing is not Standing.TAKEN or self.options.force:
            return ""
        entry = self.entries.get(item.id)
        forced = entry is not None and "forced" in entry
        return "" if forced else item.why or "somebody works on it"

    def _note_force(self, item: Item) -> None:
        entry = self.entries[item.id]
        if item.standing is not Standing.TAKEN:
            entry.pop("forced", None)
        elif self.options.force:
            entry["forced"] = True

    def skip(self, item: Item, reason: str, bad: bool = True) -> None:
        """Leave an item out, by name."""
        self.skipped.append(LeftOut(item.id, reason, item.where, bad))

    def _follow_closed(self) -> None:
        """What is over in its source is canceled, if nothing has been done for it."""
        for name, why in over(self.content, self.entries).items():
            entry = self.entries[name]
            task = self.tasks[entry["task"]]
            if task.status.final:
                continue
            reason = f"{why} {self.source}"
            if not mapping.untouched(task):
                self._clash(task.id, f"{reason}, but it has started (it is {task.status})")
                continue
            entry["away"] = "closed"
            if why == CLOSED_IN and self.policy.readiness.upstream == "cancel":
                let_go(self.task_changes, task, self.tasks)
            cancel(self.task_changes, task, reason)
            self.answer["canceled"].append({"id": task.id, "reason": reason})
        for name, broken in in_doubt(self.content, self.entries).items():
            task = self.tasks[self.entries[name]["task"]]
            if mapping.untouched(task):
                reason = f"not in {self.source}, unless {broken} is it: mend that"
                self._clash(task.id, reason)
        self.task_changes.close()
        self.tasks |= self.tx.tasks(self.tasks)

    def _defer(self, kin: Kin, drafts: dict[str, Draft]) -> None:
        """Leave out what the queue has no room for; what needs one of those is held by name."""
        pressure = measure(
            self.tx, self.policy, slots_of(self.context.settings, self.policy), self.now
        )
        coming = [draft for draft in drafts.values() if self._joins_queue(draft)]
        late = latecomers(coming, self.tasks, pressure, self.policy) if pressure else []
        if pressure is None or not late:
            return
        rows = self.answer["deferred"]
        for draft in late:
            del drafts[draft.task]
            rows.append({"id": draft.item.id, "reason": pressure.full()})
        rows += [{"id": draft.item.id, "reason": why} for draft, why in connect(kin, drafts)]

    def _enter(
        self, drafts: Mapping[str, Draft], new: Mapping[str, Draft], back: list[str]
    ) -> None:
        """Add new tasks and those that return: there is room for all of them."""
        joining = [draft for draft in drafts.values() if not self._started(draft)]
        make_groups(self.router, self.content, joining, self.options.group)
        places = [draft.item.where or draft.item.id for draft in new.values()]
        records = Records([draft.row() for draft in new.values()], lambda at: places[at])
        beside = {name: draft.beside() for name, draft in new.items()}
        batch = self.submit(records, beside=beside)
        batch.known.update({name: self.tasks[name].status for name in back})
        done = self.enter(batch, True, {"source": self.source})
        assert not done["deferred"]
        answer.note_unknown_agents(self.answer, self.unknown_agents(batch))
        restart.clear_counters(self.task_changes, drafts.values(), self.tasks)
        self.answer["groups"] = [group.name for group in self.router.new_groups]
        self.router.new_groups.clear()
        for name, draft in new.items():
            self.entries[draft.item.id] = mapping.entry_of(draft.item, name, draft.values)
        for name in back:
            self.entries[drafts[name].item.id].pop("parked", None)
        self.tasks |= self.tx.tasks([*new, *back])
        for name, draft in new.items():
            if draft.item.parked:
                write_back.note_told(self.tx, self.key, draft.item.id, self.tasks[name])
                self.answer["parked"].append({"id": name, "reason": draft.item.parked})
        for name, draft in drafts.items():
            task = self.tasks[name]
            if draft.again:
                write_back.forget_told(self.tx, self.key, draft.item.id)
                reason = f"put back in {self.source}"
                self.answer["restarted"].append({"id": name, "reason": reason})
            elif name in new or draft.returns:
                self.answer["created"].append(
                    {"id": name, "project": task.project, "group": task.group}
                )

    def _started(self, draft: Draft) -> bool:
        task = self.tasks.get(draft.task)
        return task is not None and not mapping.untouched(task)

    def _follow(self, draft: Draft) -> None:
        """A task that is known: what the source changed is changed, if nothing has started."""
        entry = self.entries[draft.item.id]
        entry.pop("away", None)
        task = self._parked_or_freed(draft, entry)
        if not draft.returns and (not mapping.untouched(task) or task.status is Status.PARKED):
            self._leave(draft, entry, task)
            return
        merged = mapping.Merge(said=entry["fields"])
        try:
            if draft.returns:
                merged = mapping.anew(task, entry["fields"], draft.values)
            elif not draft.follows:
                merged = mapping.merge(task, entry["fields"], draft.values, self.router)
            fields = self._rewrite(draft, entry, task, merged)
        except FairlaneError as error:
            self.skip(draft.item, error.message)
            return
        entry["fields"] = merged.said
        if merged.clashes:
            clashes = ", ".join(merged.clashes)
            self._clash(task.id, f"{clashes} changed here and in {self.source}; ours stays")
        if fields and not draft.returns:
            answer.note_changed(self.answer, task.id, fields)
        elif not (fields or merged.clashes or draft.follows or draft.returns):
            self.answer["unchanged"].append(task.id)

    def _parked_or_freed(self, draft: Draft, entry: mapping.Entry) -> Task:
        """The task as it is after its source has parked it, or taken it back."""
        task = self.tasks[draft.task]
        if parking.follow(self.task_changes, entry, draft.item, task):
            self.task_changes.close()
            task = self.tasks[task.id] = self.tx.tasks([task.id])[task.id]
            answer.note_changed(self.answer, task.id, ["status"])
        return task

    def _leave(self, draft: Draft, entry: mapping.Entry, task: Task) -> None:
        """What has started, or is over, stays as it is."""
        said = ", ".join(mapping.late_changes(entry["fields"], draft.values))
        if said and task.attempts:
            reason = f"{said} changed in {self.source}, but it has started (it is {task.status})"
            self._clash(task.id, reason)
        elif not draft.follows:
            self.answer["unchanged"].append(task.id)

    def _rewrite(
        self, draft: Draft, entry: mapping.Entry, task: Task, merged: mapping.Merge
    ) -> list[str]:
        """Put the changes into a task; the fields that are others now."""
        names = sorted({*merged.values, *merged.empty})
        after = task
        if names:
            empty = defaults(merged.empty)
            after = edited(self.router, task, merged.values, empty, self.now)
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
        placed = self.task_changes.settle(after)
        since = placed.task.ready_since if after.ready_since else self.now
        since = None if placed.wait in _WAITS else since
        if not placed.wait or since is None:
            placed = Placed(changed(placed.task, ready_since=since), placed.wait, placed.due_at)
        for group in self.router.new_groups:
            self.tx.put(group)
        self.router.new_groups.clear()
        self.tx.save([placed], content=True)
        self.task_changes.note("edited", placed.task, fields=names, source=self.source)
        return names

    def _tell_held(self, drafts: Mapping[str, Draft]) -> None:
        for name, draft in drafts.items():
            task = self.tasks.get(name)  # as it was before, if it was not created just now
            if task is None or not draft.hold or self._started(draft):
                continue
            if not draft.follows or draft.hold != task.source_hold:
                self.answer["held"].append({"id": name, "reason": draft.hold})

    def _finish(self, created: list[str]) -> sources.ImportAnswer:
        """Number, remember and log the import, unless it changed nothing."""
        document = self.answer
        if created and not self.options.sync:
            items = {task: item for item, task in self.names.items()}
            made = {items[task]: task for task in created}
            document["import"] = mapping.keep_import(
                self.tx, self.source, self.where, self.key, made
            )
        if created or document["changed"] or document["canceled"] or document["restarted"]:
            self.task_changes.note(
                "imported",
                source=self.source,
                path=self.where.name,
                created=len(document["created"]),
                changed=len(document["changed"]),
                canceled=len(document["canceled"]),
            )
        self.task_changes.close()
        mapping.remember(self.tx, self.key, self.entries)
        document["skipped"] = [answer.skipped(item) for item in self.skipped]
        return document
