"""The record of a task: its attempts, what it says, its history, its log, and its form."""

from __future__ import annotations

from fairlane.engine.context import Context
from fairlane.executors.base import STREAMS
from fairlane.model.documents import tasks
from fairlane.model.instant import parse_instant
from fairlane.page.html import Attribute, Child, Html, div, join, span, tag
from fairlane.page.parts import badge, card, chip, empty, field, shortened, table
from fairlane.page.shell import dialog, form, line
from fairlane.page.words import (
    count,
    dollars,
    length,
    moment,
    sentence,
    short,
    task_address,
    task_link,
    ticking,
)

_WORDS = {
    "added": "was added", "leased": "was given to a worker", "parked": "was parked",
    "retry": "was put back", "cancel": "was canceled", "edited": "was changed",
    "throttled": "was throttled", "lost": "was lost", "released": "was given back",
    "launch_failed": "could not be launched",
}  # fmt: skip
_TONES = {
    "succeeded": "good", "failed": "bad", "check_failed": "bad", "launch_failed": "bad",
    "lost": "bad",
    "throttled": "warn", "environment": "warn", None: "live",
}  # fmt: skip
#: Keys of an event's data to leave out.
_INNER = frozenset({"fence", "lease", "expires_at"})
#: How many dependents are named, and how much of an event's data is shown.
NAMED = 20
DATA_LETTERS = 300


def attempts(task: tasks.FullTaskDocument, rows_of_task: list[tasks.AttemptDocument]) -> Html:
    """Every try, newest first."""
    if not rows_of_task:
        return card("attempts", "Attempts", empty("It has not been started."))
    head = ["#", "Outcome", "Started", "Took", "In", "Out", "Cost", "Worker", "How it went", "Read"]
    rows = [_attempt(attempt, task["id"], task["status"]) for attempt in reversed(rows_of_task)]
    body = table("Attempts, newest first", head, rows, (0, 3, 4, 5, 6))
    return card("attempts", "Attempts", body, count(len(rows_of_task), "attempt"))


def _attempt(attempt: tasks.AttemptDocument, name: str, status: str) -> list[Child]:
    start = parse_instant(attempt["started_at"] or attempt["leased_at"])
    end, tokens = attempt["ended_at"], attempt["tokens"]
    number = attempt["attempt"]
    link = tag(
        "a", "Transcript", href=f"{task_address(name)}?attempt={number}#transcript",
        aria_label=f"Transcript of attempt {number}",
    )  # fmt: skip
    return [
        number,
        badge(attempt["outcome"] or status, _TONES.get(attempt["outcome"], "")),
        moment(start),
        length(parse_instant(end) - start) if end else ticking(start),
        short(tokens["input"] + tokens["cache_write"]),
        short(tokens["output"]),
        dollars(attempt["usd"]),
        attempt["worker"] or "",
        span("detail", attempt["detail"] if end else attempt["note"]),
        link,
    ]


def says(answer: tasks.TaskAnswer) -> Html:
    """What was asked for."""
    task = answer["task"]
    title = task["title"] if shortened(task["title"]) != task["title"] else ""
    texts = (("Title", title), ("Prompt", task["prompt"]), ("Command", " ".join(task["command"])))
    body: list[Child] = []
    for name, words in texts:
        if words:
            box = {"class_": "prompt", "tabindex": "0", "role": "group", "aria_label": name}
            body += [tag("h3", name), tag("pre", words, **box)]
    rows = [div("", tag("dt", name), tag("dd", value)) for name, value in _facts(answer)]
    body.append(tag("dl", rows, class_="says"))
    return card("says", "What it says", join(*body))


def _facts(answer: tasks.TaskAnswer) -> list[tuple[str, Child]]:
    task = answer["task"]
    estimate, not_before = task["estimate_tokens"], task["not_before"]
    rows: list[tuple[str, Child]] = [
        ("Priority", task["priority"]),
        ("Agent", task["agent"]),
        ("Pool", task["pool"]),
        ("Group", task["group"]),
        ("Parent", task_link(task["parent"]) if task["parent"] else None),
        ("Workspace", task["workspace"]),
        ("Locks", ", ".join(task["locks"])),
        ("Labels", ", ".join(task["labels"])),
        ("Timeout", task["timeout"]),
        ("Most attempts", task["max_attempts"]),
        ("Estimate", f"{estimate:,} tokens" if estimate else None),
        ("Artifacts", ", ".join(task["artifacts"])),
        ("Environment", ", ".join(task["env"])),
        ("Not before", moment(parse_instant(not_before)) if not_before else None),
        ("Needs", _others(answer["needs"])),
        ("Needed by", _others(answer["dependents"][:NAMED])),
    ]
    return [(name, value) for name, value in rows if value not in (None, "")]


def _others(rows: list[tasks.LinkedDocument]) -> Html:
    return join([div("", task_link(row["id"], class_="mono"), f" {row['status']}") for row in rows])


def history(events: list[tasks.EventDocument]) -> Html:
    """What happened, newest first."""
    rows = []
    for event in reversed(events):
        words = _WORDS.get(event["kind"], event["kind"].replace("_", " "))
        data = [
            f"{key.replace('_', ' ')} {_words_of(value)}"
            for key, value in event["data"].items()
            if key not in _INNER and value not in (None, "", [], {})
        ]
        summary = ", ".join(data)[:DATA_LETTERS]
        text = div("", tag("p", sentence(words)), tag("p", summary, class_="quiet-text"))
        at = moment(parse_instant(event["at"]))
        rows.append(tag("li", at, text, data_key=str(event["number"])))
    return card("history", "History", tag("ol", rows, class_="history"), "newest first")


def _words_of(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def edit(task: tasks.FullTaskDocument) -> Html:
    """The dialog that changes what it says; only what differs is sent."""
    not_before = parse_instant(task["not_before"]) // 1000 if task["not_before"] else ""
    number = tag("input", type="number", name="priority", value=task["priority"], step=1)
    when = tag("input", type="datetime-local", name="not_before", step=1, data_instant=not_before)
    project = line("project", value=task["project"], list="known-projects")
    group = line("group", value=task["group"] or "", list="known-groups")
    fields = (
        tag("input", type="hidden", name="task", value=task["id"]),
        field("Title", line("title", value=task["title"])),
        field("Prompt", tag("textarea", task["prompt"], name="prompt", rows=6)),
        div(
            "columns",
            field("Priority", number, "A smaller number starts earlier.", "edit"),
            field("Not before", when, "In your own time.", "edit"),
            field("Project", project),
            field("Group", group),
        ),
    )
    return dialog("edit", f"Edit {task['id']}", form("edit", "Save", *fields), wide=True)


def final_answer(answer: tasks.TaskAnswer) -> Html:
    """What its last attempt said in the end, set apart; nothing while there is none."""
    words = answer["answer"]
    if not words:
        return tag("section", id="answer", hidden=True)
    box = {"class_": "answer-text", "tabindex": "0", "role": "group", "aria_label": "Answer"}
    return card("answer", "Its answer", tag("pre", words, **box))


def log_panel() -> Html:
    """Where the text goes; it comes apart, as text, when somebody opens it."""
    streams = [chip("radio", "stream", name, checked=name == STREAMS[0]) for name in STREAMS]
    follow = tag("input", type="checkbox", id="log-follow", checked=True)
    choice = tag("fieldset", tag("legend", "Stream", class_="sr"), streams)
    tools = div("log-tools", choice, tag("label", follow, span("", "Follow"), class_="chip"))
    text = tag("pre", id="log-text", tabindex=0, role="log", aria_label="Log", aria_live="off")
    about = tag("p", id="log-about", class_="quiet-text num")
    summary = tag("summary", tag("h2", "Raw output"))
    box = tag("details", summary, tools, about, text, id="log-open")
    return tag("section", box, id="log", class_="card needs-script", aria_label="Raw output")


def log_mark(
    context: Context, answer: tasks.TaskAnswer, attempt: tasks.AttemptDocument | None
) -> Html:
    """How much the attempt has printed that is read, and whether it goes on."""
    task, number = answer["task"]["id"], attempt["attempt"] if attempt else 0
    head = answer["work"]["head"] if answer["work"] else None
    folder = context.home / "runs" / task / str(number)
    # 0: nothing printed yet, or it runs on another machine
    executor = context.executor()
    sizes = {f"data_{name}": executor.output_size(folder, name) for name in STREAMS}
    goes_on = attempt is not None and attempt["ended_at"] is None
    told: dict[str, Attribute] = {"data_task": task, "data_attempt": number, "data_open": goes_on}
    told["data_head"] = head
    return div("", id="logmark", hidden=True, **told, **sizes)
