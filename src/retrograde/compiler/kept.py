"""What outlives the process: finished programs, and (kept_code.py) numba's code of them, in a folder of the user's.

Nothing here raises: a folder that cannot be written, or a file that cannot be read, means that the work is done again.
Several processes may read and write at once, as files are written under another name and then renamed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
from contextlib import suppress
from typing import Any


def folder() -> str:
    """Where things are kept: below NUMBA_CACHE_DIR, or where the platform keeps a user's caches."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return os.path.join(given, "retrograde")
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "retrograde")


def key_of(*parts: Any) -> str:
    """A digest of texts, numbers, and tuples and sets of these."""
    return hashlib.sha256(repr(_ordered(parts)).encode()).hexdigest()[:40]


def _ordered(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(map(_ordered, part))
    return sorted(map(_ordered, part)) if isinstance(part, frozenset) else part


def load(key: str) -> Any:
    """What was kept under a key; None if nothing was, or if it cannot be read."""
    try:
        with open(os.path.join(folder(), key), "rb") as file:
            return pickle.load(file)
    except Exception:  # whatever a damaged file makes of it
        return None


def save(key: str, value: Any) -> None:
    """Keep something under a key, if that is possible."""
    try:
        data = pickle.dumps(value)
        target = folder()
        os.makedirs(target, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target)
    except Exception:  # what cannot be pickled, and folders that cannot be written
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, os.path.join(target, key))
    except OSError:
        with suppress(OSError):
            os.unlink(name)
