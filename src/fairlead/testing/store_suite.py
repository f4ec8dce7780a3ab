"""What every store must do. A plug-in's test needs no more than its own fixture:

pytest.register_assert_rewrite("fairlead.testing")

class TestMyStore(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        return MyStore(tmp_path)      # new and empty
"""

from __future__ import annotations

from fairlead.testing.stores.attempts import AttemptCases
from fairlead.testing.stores.compact import CompactCases
from fairlead.testing.stores.kept import KeptCases
from fairlead.testing.stores.lanes import LaneCases
from fairlead.testing.stores.lookups import LookupCases
from fairlead.testing.stores.tasks import TaskCases
from fairlead.testing.stores.transactions import TransactionCases
from fairlead.testing.stores.usage import UsageCases


class StoreSuite(
    TaskCases,
    LaneCases,
    LookupCases,
    AttemptCases,
    UsageCases,
    KeptCases,
    CompactCases,
    TransactionCases,
):
    """All cases; each takes a fixture `store` that gives a new, empty store."""
