"""The live log of a task: the browser is told how much there is, and asks for what is new."""

from __future__ import annotations

from typing import Any

from fairlane.executors.runfiles import size
from fairlane.page.html import Html, div, join, span, tag
from fairlane.page.parts import card
from fairlane.service.desk import Desk
from fairlane.service.logs import STREAMS


def panel() -> Html:
    """Where the text goes; it comes apart, as text."""
    streams = [_chip("radio", each, checked=each == STREAMS[0]) for each in STREAMS]
    follow = tag("input", type="checkbox", id="log-follow", checked=True)
    choice = tag("fieldset", tag("legend", "Stream", class_="sr"), streams)
    tools = div("log-tools", choice, tag("label", follow, span("", "Follow"), class_="chip"))
    text = tag("pre", id="log-text", tabindex=0, role="log", aria_label="Log", aria_live="off")
    about = tag("p", id="log-about", class_="quiet-text num")
    return card("log", "Log", join(about, text), "", tools)


def _chip(kind: str, name: str, checked: bool) -> Html:
    button = tag("input", type=kind, name="stream", value=name, checked=checked)
    return tag("label", button, span("", name), class_="chip")


def mark(desk: Desk, task: dict[str, Any], attempts: list[dict[str, Any]]) -> Html:
    """How much the last attempt has printed."""
    last = attempts[-1]["attempt"] if attempts else 0
    folder = desk.home / "runs" / task["id"] / str(last)
    # 0: nothing printed yet, or it runs on another machine
    sizes = {f"data_{name}": size(folder / f"{name}.log") for name in STREAMS}
    return div("", id="logmark", hidden=True, data_task=task["id"], data_attempt=last, **sizes)
