"""What every source must do. A plug-in's test needs no more than a sample of its source:

pytest.register_assert_rewrite("fairlead.testing")

class TestMySource(SourceSuite):
    source = "my-source"              # as `fairlead import` names it

    @pytest.fixture
    def sample(self, tmp_path):
        return make(tmp_path)         # a `Sample`, in that folder and nowhere else

Sources of this repository have their sample in `tests/conformance/samples/FILE.py`, where FILE is
the name of the source's file (`queue_json.py`), with one function `make(folder: Path) -> Sample`.
A source that asks a program gets `Where(command=…)` with a small script in the same folder that
prints what the program would; its data lies in the folder too, so that `change` can change it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairlead.intake.sources.base import Where


@dataclass(frozen=True, slots=True)
class Sample:
    """A source with known items, made in a folder of the test's own.

    At least three items are open, wait for nothing and name no project but `default`. Beside them
    there may be others, such as closed, taken, blocked or broken ones, and collections.
    """

    where: Where
    #: Every item that is open and waits for nothing, by the source's ids, in its order.
    ids: tuple[str, ...]
    #: Gives an item another title, in the source.
    retitle: Callable[[str, str], None]
    #: The item is over, in the source: closed, checked, removed.
    close: Callable[[str], None]
    #: Adds one more record, which is broken, and returns its id or a word of its place by which
    #: `skipped` names it. None: nothing in this source can be broken alone; then say why.
    spoil: Callable[[], str] | None = None
    never_broken: str = ""
    #: Of a source that can be told: all its text but for what telling changes.
    kept: Callable[[], bytes] | None = None
