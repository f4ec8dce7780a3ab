"""The switch: pause everything, or go on, from every view."""

from __future__ import annotations

from fairlane.page.html import Html, tag
from fairlane.page.parts import act
from fairlane.service.desk import Desk


def switch(desk: Desk) -> Html:
    """One button; it says what it will do."""
    with desk.store.read() as reading:
        paused = any(each.scope == "all" for each in reading.pauses())
    scope = {"scope": "all"}
    if paused:
        button = act("resume", "Resume", "play", scope, label="Resume everything")
    else:
        button = act("pause", "Pause", "pause", scope, label="Pause everything")
    return tag("div", button, id="switch")
