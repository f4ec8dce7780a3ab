"""One server a file of tests."""

from __future__ import annotations

import pytest

from tests.http.served import serving

pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of a new home folder."""
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found
