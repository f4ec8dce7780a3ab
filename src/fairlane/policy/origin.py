"""Where each value of a policy came from: the layer that said it last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlane.policy import load, schema
from fairlane.policy.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlane.policy.load import Layer


class Origin(NamedTuple):
    """One key as it is in force."""

    key: str  # as written in TOML
    value: Any  # canonical, "none" where it is absent
    origin: str  # `preset balanced`, `policy.toml:12`, `override`


def sources(path: str | Path, overrides: Mapping[str, object] | None = None) -> list[Layer]:
    """The layers of a policy file, the preset first, overrides on top."""
    layers = load.file_layers(Path(path))
    return [*layers, load.override_layer(overrides)] if overrides else layers


def explain(policy_sources: Sequence[Layer]) -> list[Origin]:
    """Every key of the policy in force, in the order of the language, with who set it."""
    policy = Policy.of_layers(policy_sources)
    shown = policy.shown()
    removed = {key for layer in policy_sources for key in layer.values} - shown.keys()
    shown.update(dict.fromkeys(sorted(removed), schema.NONE))
    return [
        Origin(schema.show_key(key), value, _said_by(key, policy_sources))
        for key, value in shown.items()
    ]


def _said_by(key: str, layers: Sequence[Layer]) -> str:
    """The top layer that names the key; the preset stands for what nobody names."""
    for layer in reversed(layers):
        if key in layer.values:
            return f"{Path(layer.origin).name}{layer.place(key)[len(layer.origin) :]}"
    return layers[0].origin
