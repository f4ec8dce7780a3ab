"""Dialogs: add a task, change a cap, confirm, and what the keys do."""

from __future__ import annotations

from fairlane.page.html import Attribute, Child, Html, div, join, tag
from fairlane.page.parts import field

_KEYS = (
    ("?", "these shortcuts"), ("a", "add a task"), ("/", "find a task by its id"),
    ("p", "pause or resume everything"), ("g o", "overview"), ("g t", "tasks"), ("g g", "groups"),
    ("j k", "down and up in a list"), ("Enter", "open what is chosen"), ("Esc", "close, leave"),
)  # fmt: skip


def dialogs() -> Html:
    """Every dialog that any view may open."""
    return join(_add(), _cap(), _confirm(), _keys(), div("", id="known", hidden=True))


def dialog(name: str, title: str, *body: Child, wide: bool = False) -> Html:
    """A dialog with its heading; Escape closes it."""
    heading = f"{name}-heading"
    kind = "wide" if wide else None
    head = tag("h2", title, id=heading)
    return tag("dialog", head, *body, id=f"dialog-{name}", aria_labelledby=heading, class_=kind)


def form(action: str, words: str, *fields: Child) -> Html:
    """A form that does something; what goes wrong is said in it."""
    error = tag("p", class_="error", role="alert", hidden=True)
    send = tag("button", words, type="submit", class_="button solid")
    buttons = div("buttons", _close("Close"), send)
    return tag("form", *fields, error, buttons, data_do=action, method="dialog", novalidate=True)


def line(name: str, **more: Attribute) -> Html:
    """A line to write in."""
    return tag("input", type="text", name=name, autocomplete="off", spellcheck="false", **more)


def _close(words: str, **more: Attribute) -> Html:
    return tag("button", words, type="button", class_="button", data_close=True, **more)


def _add() -> Html:
    prompt = tag("textarea", name="prompt", rows=5, required=True, autofocus=True)
    number = tag("input", type="number", name="priority", placeholder="100", step=1)
    agent = line("agent", placeholder="the project's", list="known-agents")
    columns = div(
        "columns",
        field("Project", line("project", placeholder="default", list="known-projects")),
        field("Kind", line("kind", placeholder="code", list="known-kinds")),
        field("Agent", agent),
        field("Priority", number, "A smaller number starts earlier.", "add"),
        field("Group", line("group", placeholder="none", list="known-groups")),
        field("Needs", line("needs", placeholder="none"), "Ids, with commas.", "add"),
    )
    asked = field("Prompt", prompt, "What the agent is asked to do.", "add")
    return dialog("add", "Add a task", form("add", "Add task", asked, columns), wide=True)


def _cap() -> Html:
    scope = line("scope", value="all", list="known-caps", required=True)
    value = tag("input", type="number", name="value", min=0, step=1, required=True, autofocus=True)
    about = tag(
        "p",
        "A cap is how many tasks may be in flight at once. Lowering one stops nothing: what runs "
        "goes on, and less starts. With 0 nothing starts.",
    )
    hint = "all, project:NAME, kind:NAME, pool:NAME; project:* means each of them."
    columns = div("columns", field("What", scope, hint, "cap"), field("At most", value))
    return dialog("cap", "Change a cap", form("cap", "Set cap", about, columns))


def _confirm() -> Html:
    text = tag("p", id="confirm-text")
    yes = tag("button", "Yes", type="button", class_="button danger", id="confirm-yes")
    buttons = div("buttons", _close("No", autofocus=True), yes)
    return dialog("confirm", "Are you sure?", text, buttons)


def _keys() -> Html:
    rows = []
    for keys, about in _KEYS:
        pressed = [tag("kbd", key) for key in keys.split()]
        rows.append(div("", tag("dt", pressed), tag("dd", about)))
    listed = tag("dl", rows, class_="keys")
    return dialog("keys", "Keyboard shortcuts", listed, div("buttons", _close("Close")))
