"""Every source does the same, and each has a sample to show it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from fairlane.intake import sources
from fairlane.testing.source_suite import Sample, SourceSuite

SAMPLES = Path(__file__).parent / "samples"
#: Source -> its file.
SHIPPED = dict(sources._shipped())


def suite(name: str, file: str) -> type[SourceSuite]:
    """The cases for one source."""

    @pytest.fixture
    def sample(self: SourceSuite, tmp_path: Path) -> Sample:
        if not (SAMPLES / f"{file}.py").exists():
            pytest.fail(f"source {name} has no tests/conformance/samples/{file}.py")
        made: Sample = import_module(f"tests.conformance.samples.{file}").make(tmp_path)
        return made

    return type(f"Test_{file}", (SourceSuite,), {"source": name, "sample": sample})


for _name, _file in SHIPPED.items():
    globals()[f"Test_{_file}"] = suite(_name, _file)


def test_every_sample_is_of_a_source():
    made = {file.stem for file in SAMPLES.glob("*.py")} - {"__init__"}
    assert made <= set(SHIPPED.values())
    assert {"jsonl", "queue.json"} <= set(SHIPPED)
