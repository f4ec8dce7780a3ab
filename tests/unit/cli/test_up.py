"""`fairlane up`: which messages of the daemon are written."""

from __future__ import annotations

import pytest

from fairlane.cli.work.daemon import _at_level


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("debug", "adopted: a\nwarning: no room\n"),
        ("info", "adopted: a\nwarning: no room\n"),
        ("warning", "warning: no room\n"),
        ("error", ""),
    ],
)
def test_log_level_selects_what_is_written(level, written, capfd):
    say = _at_level(level)
    say("adopted: a")
    say("warning: no room")
    assert capfd.readouterr().err == written
