"""The shell: the document around every view, with navigation, dialogs and announcements."""

from __future__ import annotations

from fairlane.engine.context import Context
from fairlane.model.project import Pause
from fairlane.page.html import Attribute, Child, Html, div, icon, join, mark, span, tag
from fairlane.page.live import View
from fairlane.page.parts import field, pause_button

_KEYS = (
    ("?", "these shortcuts"), ("a", "add a task"), ("/", "find a task by its id"),
    ("p", "pause or resume everything"), ("g o", "overview"), ("g t", "tasks"), ("g g", "groups"),
    ("j k", "down and up in a list"), ("f", "filter the transcript of a task"),
    ("c", "what a task changed"), ("Enter", "open what is chosen"), ("Esc", "close, leave"),
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
    """A form of an action, with room for its error."""
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


def switch(context: Context) -> Html:
    """One button; it says what it will do."""
    with context.store.read() as reading:
        paused = any(pause.scope == "all" for pause in reading.table(Pause).values())
    return tag("div", pause_button("all", paused, "everything"), id="switch")


_PLACES = (
    ("overview", "Overview", "/", "g o"),
    ("tasks", "Tasks", "/tasks", "g t"),
    ("groups", "Groups", "/groups", "g g"),
)


def document(view: View, body: Html, switch: Html | None, version: str, now_ms: int) -> str:
    """A whole document; it loads from this server alone."""
    main = tag("main", body, id="main", tabindex=-1)
    page = tag(
        "body",
        tag("a", "Skip to content", href="#main", class_="skip"),
        _header(view.place, switch),
        main,
        dialogs(),
        div("sr", id="said", role="status", aria_live="polite"),
        div("", id="toasts", role="region", aria_label="Messages"),
        div("", id="tip", hidden=True, aria_hidden="true"),
        data_view=view.address,
        data_version=version,
        data_now=now_ms,
    )
    return "<!doctype html>" + tag("html", _head(view.title, version), page, lang="en")


def _head(title: str, version: str) -> Html:
    def static(name: str) -> str:
        return f"/page/static/{name}?{version}"

    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Fairlane"),
        tag("link", rel="icon", href=static("icon.svg"), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=static("page.css")),
        tag("link", rel="stylesheet", href=static("task.css")),
        tag("script", src=static("theme.js")),
        tag("script", src=static("page.js"), type="module"),
    )


def _header(place: str, switch: Html | None) -> Html:
    """The bar above everything."""
    name = span("", "Fairlane")
    brand = tag("a", mark(), name, href="/", class_="brand", aria_label="Fairlane, overview")
    links = [
        tag(
            "a", icon(place_name), span("", words), href=href, title=f"{words} ({keys})",
            aria_current="page" if place_name == place else None,
        )
        for place_name, words, href, keys in _PLACES
    ]  # fmt: skip
    nav = tag("nav", links, aria_label="Main")
    dot = span("dot", aria_hidden="true")
    live = span("live", dot, span("", "Connecting", id="live-words"), id="live", role="status")
    return tag("header", brand, nav, _find(), live, div("tools", _tools(switch)), class_="top")


def _find() -> Html:
    box = tag(
        "input", type="search", name="find", id="find", placeholder="Find a task by id",
        aria_label="Find a task by id", autocomplete="off", spellcheck="false",
    )  # fmt: skip
    key = tag("kbd", "/", aria_hidden="true")
    return tag("form", icon("find"), box, key, action="/tasks", class_="find", role="search")


def _tools(switch: Html | None) -> Html:
    keys = tag(
        "button", icon("keys"), type="button", class_="bare", data_open="keys",
        aria_label="Keyboard shortcuts", title="Keyboard shortcuts (?)",
    )  # fmt: skip
    theme = tag(
        "button", icon("theme"), type="button", class_="bare", id="theme",
        aria_label="Theme: system", title="Theme",
    )  # fmt: skip
    add = tag(
        "button", icon("add"), span("", "Add task"), type="button", class_="button solid",
        data_open="add", title="Add a task (a)", aria_label="Add task",
    )  # fmt: skip
    return join(keys, theme, switch, add)
