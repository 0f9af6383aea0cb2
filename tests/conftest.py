"""What every test stands on: no display, no deadline, and drawn examples that CI draws the same every time."""

from __future__ import annotations

import os

import hypothesis

# Before anything imports matplotlib, here or in a subprocess.
os.environ["MPLBACKEND"] = "Agg"

# A shared machine makes any deadline a matter of luck.
hypothesis.settings.register_profile("retrograde", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("retrograde")
