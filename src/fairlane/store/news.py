"""News: what has changed in a store since somebody looked, so that nobody reads the rest again."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.model.project import Small, SmallRow
from fairlane.model.record import NamedTuple, dataclass, field
from fairlane.model.task import LaneKey

#: The name of named values among the small tables.
VALUES = "values"


class Mark(NamedTuple):
    """What a view saw: everything up to this version. Of another life no version is compared."""

    version: int  # of the last transaction that wrote
    life: int  # another number when what was seen may never have happened


#: The mark of a view that saw nothing.
NEVER = Mark(-1, -1)


@dataclass(slots=True)
class News:
    """What has changed since a mark. Named is what may differ; what is not named is the same."""

    mark: Mark = NEVER  # ask for news since this one next
    flights: set[str] = field(default_factory=set)  # tasks whose open attempt changed, or its task
    lanes: set[LaneKey] = field(default_factory=set)  # also those that have ended
    scopes: set[str] = field(default_factory=set)  # in which something was booked
    tables: dict[str, set[str]] = field(default_factory=dict)  # keys of rows of small tables
    waits: bool = False  # what tasks wait for, or a timer
    anything: bool = False  # too much has changed, or nobody knows what: read all of it again

    def change_row(self, kind: type[SmallRow], key: str) -> None:
        """A row of a small table was written or dropped."""
        self.tables.setdefault(kind.__name__, set()).add(key)

    def change_value(self, name: str) -> None:
        """A named value was written or dropped."""
        self.tables.setdefault(VALUES, set()).add(name)

    def rows(self, kind: type[Small]) -> set[str]:
        """The keys of the rows of a small table that changed."""
        return self.tables.get(kind.__name__, set())

    def include(self, other: News) -> None:
        """Whatever has changed there has changed here."""
        self.flights |= other.flights
        self.lanes |= other.lanes
        self.scopes |= other.scopes
        for table, keys in other.tables.items():
            self.tables.setdefault(table, set()).update(keys)
        self.waits = self.waits or other.waits
        self.anything = self.anything or other.anything

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed."""
        named = self.flights or self.lanes or self.scopes or self.tables
        return not (named or self.waits or self.anything)


def gather(mark: Mark, parts: Iterable[News]) -> News:
    """The news of several transactions as one."""
    news = News(mark)
    for part in parts:
        news.include(part)
    return news
