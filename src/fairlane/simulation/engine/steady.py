"""The context of a simulation: its rules are in memory, and its home folder is nowhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from fairlane.engine.context import Context
from fairlane.model.errors import FairlaneError
from fairlane.model.record import dataclass, field
from fairlane.policy.policy import Policy
from fairlane.service.operations.call import answer, fitting
from fairlane.service.operations.table import OPERATIONS
from fairlane.simulation.world import Act

#: A home folder in which no file can be: a simulation that is killed leaves nothing behind.
NOWHERE = Path(os.devnull)


@dataclass(slots=True)
class Rules:
    """The policy in force; shared by all contexts of one simulation."""

    policy: Policy


@dataclass(slots=True)
class SteadyContext(Context):
    """One of a simulation."""

    rules: Rules = field(kw_only=True)

    def policy(self) -> Policy:
        """The policy in force."""
        return self.rules.policy


def perform(context: SteadyContext, act: Act) -> str:
    """Do what a person does; why it was refused, where that makes no sense here; empty: done."""
    try:
        arguments = fitting(OPERATIONS[act.operation], act.arguments)
        if act.operation == "policy_set":
            changes = arguments["changes"]
            assert isinstance(changes, Mapping)
            context.rules.policy = context.rules.policy.with_overrides(changes)
        else:
            answer(context, act.operation, **arguments)
    except FairlaneError as error:
        return error.message
    return ""
