"""What every test stands on: no display, no deadline, and drawn examples that CI draws the same every time."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

# Before anything imports matplotlib, here or in a subprocess.
os.environ["MPLBACKEND"] = "Agg"

# A shared machine makes any deadline a matter of luck.
hypothesis.settings.register_profile("retrograde", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("retrograde")


@pytest.fixture(scope="session", autouse=True)
def kept_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What compiled functions keep on disk does not outlive the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path_factory.mktemp("kept")))
        yield
