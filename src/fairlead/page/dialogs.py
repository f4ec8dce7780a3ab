"""Dialogs: add a task, change a cap, confirm, and what the keys do."""

from __future__ import annotations

from fairlead.page.html import Child, Html, join, tag
from fairlead.page.parts import field

_KEYS = (
    ("?", "these shortcuts"), ("a", "add a task"), ("/", "find a task by its id"),
    ("p", "pause or resume everything"), ("g o", "overview"), ("g t", "tasks"), ("g g", "groups"),
    ("j k", "down and up in a list"), ("Enter", "open what is chosen"), ("Esc", "close, leave"),
)  # fmt: skip


def dialogs() -> Html:
    """Every dialog that any view may open."""
    return join(_add(), _cap(), _confirm(), _keys())


def dialog(name: str, title: str, *body: Child, wide: bool = False) -> Html:
    """A dialog with its heading; Escape closes it."""
    head = tag("h2", title, id=f"{name}-heading")
    return tag(
        "dialog",
        head,
        *body,
        id=f"dialog-{name}",
        aria_labelledby=f"{name}-heading",
        class_="wide" if wide else None,
    )


def form(action: str, words: str, *fields: Child) -> Html:
    """A form that does something; what goes wrong is said in it."""
    error = tag("p", class_="error", role="alert", hidden=True)
    buttons = tag(
        "div", tag("button", "Close", type="button", class_="button", data_close=True),
        tag("button", words, type="submit", class_="button solid"), class_="buttons",
    )  # fmt: skip
    return tag("form", *fields, error, buttons, data_do=action, method="dialog", novalidate=True)


def _text(name: str, **more: str | bool | int) -> Html:
    return tag("input", type="text", name=name, autocomplete="off", spellcheck="false", **more)


def _add() -> Html:
    prompt = tag("textarea", name="prompt", rows=5, required=True, autofocus=True)
    fields = [
        field("Prompt", prompt, "What the agent is asked to do."),
        tag(
            "div",
            field("Project", _text("project", placeholder="default", list="known-projects")),
            field("Kind", _text("kind", placeholder="code", list="known-kinds")),
            field("Agent", _text("agent", placeholder="the project's", list="known-agents")),
            field(
                "Priority", tag("input", type="number", name="priority", placeholder="0", step=1)
            ),
            field("Group", _text("group", placeholder="none", list="known-groups")),
            field("Needs", _text("needs", placeholder="ids, with commas")),
            class_="columns",
        ),
        tag("div", id="known", hidden=True),
    ]
    return dialog("add", "Add a task", form("add", "Add task", *fields), wide=True)


def _cap() -> Html:
    scope = _text("scope", value="all", list="known-caps", required=True)
    value = tag("input", type="number", name="value", min=0, step=1, required=True, autofocus=True)
    about = tag(
        "p",
        "A cap is how many tasks may be in flight at once. Lowering it stops nothing: what runs goes on, and less starts. 0 starts nothing.",
    )
    hint = "all, project:NAME, kind:NAME, pool:NAME or project:* for each of them."
    fields = [
        about,
        tag(
            "div",
            field("What", scope, hint),
            field("At most", value, "Tasks in flight."),
            class_="columns two",
        ),
    ]
    return dialog("cap", "Change a cap", form("cap", "Set cap", *fields))


def _confirm() -> Html:
    text = tag("p", id="confirm-text")
    buttons = tag(
        "div", tag("button", "No", type="button", class_="button", data_close=True, autofocus=True),
        tag("button", "Yes", type="button", class_="button danger", id="confirm-yes"), class_="buttons",
    )  # fmt: skip
    return dialog("confirm", "Are you sure?", text, buttons)


def _keys() -> Html:
    rows = []
    for keys, about in _KEYS:
        pressed = [tag("kbd", key) for key in keys.split()]
        rows.append(tag("div", tag("dt", pressed), tag("dd", about)))
    close = tag(
        "div",
        tag("button", "Close", type="button", class_="button", data_close=True),
        class_="buttons",
    )
    return dialog("keys", "Keyboard shortcuts", tag("dl", rows, class_="keys"), close)
