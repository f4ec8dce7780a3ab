"""Where the work of a task is, what became of it, and which checks it passed."""

from __future__ import annotations

from fairlane.model.documents.tasks import FullTaskDocument, TaskAnswer
from fairlane.model.documents.work import AttemptCheckDocument, MergeStateDocument, WorkDocument
from fairlane.model.instant import parse_instant
from fairlane.page.html import Child, Html, div, join, span, tag
from fairlane.page.parts import act, badge, card, table
from fairlane.page.words import count, moment, raw_address, sentence, task_link

#: Most commits, and most files of a merge, that are named.
COMMITS, FILES = 10, 20
_TONES = {
    "merged": "good", "offered": "good", "conflict": "bad", "failed": "bad", "rejected": "bad",
    "waiting": "warn", "queued": "live", "merging": "live",
}  # fmt: skip
_MODES = {
    "keep": "is kept on its branch", "merge": "is merged by itself", "pr": "is offered for review",
    "queue": "goes through the merge queue",
}  # fmt: skip


def work(answer: TaskAnswer) -> Html:
    """The branch, the folder, the commits, and the merge; hidden where there is no repository."""
    found = answer["work"]
    if found is None:
        return tag("section", id="work", hidden=True)
    rows = _places(found, answer["merge_state"])
    session = answer["session"]
    if session is not None:
        goes_on = "can be resumed" if session["resumable"] else "cannot be resumed"
        rows.append(("Session", join(span("mono", session["id"]), span("aside", f" {goes_on}"))))
    facts = [div("", tag("dt", name), tag("dd", value)) for name, value in rows]
    return card("work", "Its work", join(tag("dl", facts, class_="says"), _commits(found)))


def _places(found: WorkDocument, merge: MergeStateDocument) -> list[tuple[str, Child]]:
    added, removed = (sum(row[name] for row in found["files"]) for name in ("added", "removed"))
    named, more = len(found["files"]), found["more_files"]
    files = f"{count(named + more, 'file')}, +{added:,} −{removed:,}"
    files += f" in the first {named:,}" if more else ""
    dirty = span("aside", " with changes that are not committed") if found["dirty"] else None
    rows: list[tuple[str, Child]] = [
        ("Merge", _merge(merge)),
        ("Branch", join(span("mono", found["branch"]), dirty)),
        ("Base", span("mono", found["base"])),
    ]
    if found["head"]:
        span_of = f"{(found['start'] or '')[:12]}..{found['head'][:12]}"
        rows.append(
            ("Changed", join(tag("a", files, href="#changes"), span("mono aside", f" {span_of}")))
        )
    rows.append(("Folder", span("mono", found["path"])))
    if found["worker"]:
        rows.append(("Worker", found["worker"]))
    return rows


def _merge(merge: MergeStateDocument) -> Html:
    """The state and its reason; what it waits for is named."""
    state, hold = merge["state"], merge["hold"]
    if state == "none":
        return join(f"What comes of it {_MODES.get(merge['mode'], merge['mode'])}.")
    parts: list[Child] = [badge(state, _TONES.get(state, "")), " "]
    if state == "merged" and merge["commit"]:
        parts.append(join(f"into {merge['base']} as ", span("mono", merge["commit"][:12])))
    if merge["url"] and merge["url"].startswith(("https://", "http://")):
        parts.append(tag("a", merge["url"], href=merge["url"], rel="noopener noreferrer"))
    reason = (hold["reason"] if hold else "") or merge["detail"]
    if reason and state != "merged":
        parts.append(span("", sentence(reason)))
    if merge["carries"]:
        links = [task_link(name, class_="mono") for name in merge["carries"][:FILES]]
        carried = [Html(f" {link}") for link in links]
        parts.append(div("", "It carries the work of", carried, ", which must land first."))
    unnamed = [name for name in merge["files"][:FILES] if name not in reason]
    if unnamed:
        parts.append(tag("ul", [tag("li", name, class_="mono") for name in unnamed]))
    if hold and hold["code"] == "approval":
        parts.append(div("aside", "A person must look at them before it is merged."))
    return join(*parts)


def _commits(found: WorkDocument) -> Html | None:
    rows = [
        tag(
            "li", span("mono", row["id"][:12]), span("subject", row["subject"]),
            span("aside", row["author"], " ", moment(parse_instant(row["at"]))),
        )
        for row in found["commits"][:COMMITS]
    ]  # fmt: skip
    if not rows:
        return None
    more = len(found["commits"]) - COMMITS
    rest = tag("p", f"and {more} more", class_="quiet-text") if more > 0 else None
    return join(tag("h3", "Commits"), tag("ol", rows, class_="commits"), rest)


def checks(answer: TaskAnswer) -> Html:
    """Every check of the newest attempt that has some, and those before that failed."""
    rows = answer["checks"]
    if not rows:
        return tag("section", id="checks", hidden=True)
    newest = rows[-1]["attempt"]
    shown = [row for row in rows if row["attempt"] == newest or row["passed"] is False]
    head = ["Check", "Result", "Took", "Exit", "Attempt", "Log"]
    live = answer["task"]["status"] in ("leased", "running")
    in_turn = sorted(shown, key=lambda row: -row["attempt"])  # of an attempt as they run
    body = [_check(answer["task"]["id"], row, live) for row in in_turn]
    passed = sum(bool(row["passed"]) for row in rows if row["attempt"] == newest)
    of = sum(row["attempt"] == newest for row in rows)
    listed = table("Checks, newest attempt first", head, body, (2, 3, 4))
    about = f"{passed} of {of} passed in attempt {newest}"
    return card("checks", "Checks", listed, about, _again(answer["task"]))


def _again(task: FullTaskDocument) -> Html | None:
    """The button that runs them again, once nobody works there any more."""
    if task["status"] in ("queued", "leased", "running"):
        return None
    return act("check", "Run again", "retry", {"task": task["id"]})


def _check(task: str, row: AttemptCheckDocument, live: bool) -> list[Child]:
    tone = {True: ("passed", "good"), False: ("failed", "bad")}
    result = tone.get(bool(row["passed"])) if row["passed"] is not None else None
    waits = ("running", "live") if row["log"] else ("not yet", "")
    words, kind = result or (waits if live else ("not run", ""))
    seconds = "" if row["seconds"] is None else f"{row['seconds']:.1f}s"
    address = raw_address(task, row["attempt"], check=row["name"])
    label = f"Log of {row['name']}, attempt {row['attempt']}"
    link = tag("a", "Log", href=address, aria_label=label) if row["log"] else None
    name = span("", row["name"], title=" ".join(row["argv"]))
    code = "" if row["exit"] is None else row["exit"]
    return [name, badge(words, kind), seconds, code, row["attempt"], link]
