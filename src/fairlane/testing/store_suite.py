"""What every store must do. A plug-in's test needs no more than its own fixture:

pytest.register_assert_rewrite("fairlane.testing")

class TestMyStore(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        return MyStore(tmp_path)      # new and empty
"""

from __future__ import annotations

from fairlane.testing.stores.attempts import AttemptCases
from fairlane.testing.stores.compact import CompactCases
from fairlane.testing.stores.compact_parts import CompactPartsCases
from fairlane.testing.stores.lanes import LaneCases
from fairlane.testing.stores.lookups import LookupCases
from fairlane.testing.stores.news import NewsCases
from fairlane.testing.stores.small_tables import SmallTableCases
from fairlane.testing.stores.tasks import TaskCases
from fairlane.testing.stores.transactions import TransactionCases
from fairlane.testing.stores.usage import UsageCases


class StoreSuite(
    TaskCases,
    LaneCases,
    LookupCases,
    AttemptCases,
    UsageCases,
    SmallTableCases,
    CompactCases,
    CompactPartsCases,
    NewsCases,
    TransactionCases,
):
    """All cases; each takes a fixture `store` that gives a new, empty store."""
