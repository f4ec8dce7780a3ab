"""Loading a policy, which every command does, against the parser of TOML alone."""

from __future__ import annotations

import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import fairlane.policy
from bench.measure import Row, median_pair, show_seconds
from bench.sizes import Sizes
from fairlane.policy import Policy

PRESET = Path(fairlane.policy.__file__).parent / "presets" / "fair-share.toml"


def rows(sizes: Sizes) -> list[Row]:
    """One file that changes one rule of a preset."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.toml"
        path.write_text('preset = "fair-share"\ncaps.all = 8\n', encoding="utf-8")

        def parse() -> None:
            for file in (path, PRESET):
                tomllib.loads(file.read_text(encoding="utf-8"))

        ours, parser = median_pair(lambda: Policy.load(path), parse, sizes.turns)
    against = f"tomllib, the file and its preset {show_seconds(parser)} (nothing is checked)"
    return [Row("a policy is loaded", show_seconds(ours), against, ours / parser, "<= 3")]
