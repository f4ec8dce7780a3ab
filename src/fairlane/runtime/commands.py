"""Commands that run as an agent does: in its workspace and sandbox, with none of its secrets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fairlane.agents.contract import passed_only
from fairlane.engine.checks import TAIL_BYTES
from fairlane.executors import sandbox
from fairlane.executors.base import Orders, patterns
from fairlane.executors.runfiles import make_anew
from fairlane.executors.sandbox.view import Visible
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.record import changed
from fairlane.model.sandbox import NO_SANDBOX, SandboxSettings
from fairlane.runtime.launch import Host, place_for, store_file

#: The variables that such a command gets besides those of `checks.env`.
VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR")


def command_orders(
    host: Host,
    lease: LocalLeaseDocument,
    folder: Path,
    argv: Sequence[str],
    timeout: float,
    network: bool | None = None,
) -> Orders:
    """What it takes to run a command in the workspace of an attempt; `folder`: for its traces.

    `network`: whether it may use the network; None: as the settings of checks say.
    """
    rules, agent = host.settings.checks, host.agents.get(lease["agent"])
    place = place_for(host, lease)
    make_anew(folder)
    env = passed_only(os.environ, (*VARIABLES, *rules.env))
    orders = Orders(
        folder=folder,
        argv=tuple(argv),
        cwd=place.path,
        env=env,
        stop=(agent or host.agents["shell"]).stop,
        timeout=timeout,
        max_bytes=rules.log_bytes,
        tail_bytes=TAIL_BYTES,  # it says what failed
        joined=True,
        mask=patterns(host.settings.log.mask, os.environ),
        after=host.after,
    )
    box = _sandbox(host, lease, network)
    if box == NO_SANDBOX:
        return orders
    own = Visible(tuple(str(path) for path in place.reads), ())
    return sandbox.confined(orders, box, host.home, own, store_file(host))


def _sandbox(host: Host, lease: LocalLeaseDocument, network: bool | None) -> SandboxSettings:
    """The agent's, with what the settings say of checks."""
    rules = host.settings.checks
    box = host.settings.sandbox_for(lease["agent"], lease["project"])
    if rules.sandbox is not None:
        box = box.over(rules.sandbox)
    if box.kind != "bwrap":
        return box  # nothing else can take the network away
    wanted = network if network is not None else bool(rules.network)
    return changed(box, network=wanted and box.network is not False)
