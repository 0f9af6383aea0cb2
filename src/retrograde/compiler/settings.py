"""What the user chose when he called `compile`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The keywords of `compile`; each is a part of what compiled code is known by.

    Attributes:
        fastmath: reorder and simplify floating-point arithmetic.
        parallel: run the iterations of `numba.prange` on several threads.
        vectormath: elementary functions that a loop can vectorise, in derivative programs.
        cache: keep programs and numba's code of them on disk.
    """

    fastmath: bool = False
    parallel: bool = False
    vectormath: bool = True
    cache: bool = True


USUAL = Settings()
