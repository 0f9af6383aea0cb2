"""Derivatives written by hand in C++, `workloads/cpp/NAME.cpp`, called through ctypes.

What is compiled is kept in a temporary folder under its content. Without a compiler, ImportError says so.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SOURCES = Path(__file__).parent / "workloads" / "cpp"
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


def compiler() -> str:
    """$CXX, or g++."""
    found = shutil.which(os.environ.get("CXX", "g++"))
    if found is None:
        raise ImportError("there is no C++ compiler", name="a C++ compiler")
    return found


@functools.cache
def derivative(name: str, result: Any = None) -> Callable[..., Any]:
    """The function `derivative` of a source; arrays (C-contiguous) go as pointers, numbers as int64_t or double.

    Raises: ImportError without a compiler; subprocess.CalledProcessError where the source is wrong.
    """
    source = SOURCES / f"{name}.cpp"
    found = compiler()
    version = subprocess.run([found, "--version"], check=True, capture_output=True).stdout
    key = hashlib.sha256(b"\0".join([source.read_bytes(), " ".join(FLAGS).encode(), version, cpu()])).hexdigest()[:20]
    folder = Path(tempfile.gettempdir()) / f"retrograde-benchmarks-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"{name}-{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as made:
            whole = Path(made) / library.name
            subprocess.run([found, *FLAGS, "-o", whole, source], check=True)
            whole.replace(library)
    function = ctypes.CDLL(str(library)).derivative
    function.restype = result
    return lambda *args: function(*map(passed, args))


def cpu() -> bytes:
    """What `-march=native` depends on, where the system says so."""
    try:
        return b"".join(line for line in Path("/proc/cpuinfo").read_bytes().splitlines() if line.startswith(b"flags"))
    except OSError:
        return b""


def passed(arg: Any) -> Any:
    if isinstance(arg, np.ndarray):
        if not arg.flags.c_contiguous or arg.dtype not in (np.float64, np.int64):
            raise TypeError(f"a C-contiguous array of float64 or int64 is needed, not {arg.dtype} {arg.strides}")
        return ctypes.c_void_p(arg.ctypes.data)
    return ctypes.c_double(arg) if isinstance(arg, float) else ctypes.c_int64(arg)
