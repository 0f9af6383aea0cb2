"""What the user chose when he called `compile`."""

from __future__ import annotations

from dataclasses import dataclass

from retrograde.errors import InputError


@dataclass(frozen=True)
class Settings:
    """The keywords of `compile`; each is a part of what compiled code is known by.

    Attributes:
        fastmath: reorder and simplify floating-point arithmetic.
        parallel: run the iterations of `numba.prange` on several threads.
        vectormath: elementary functions and sums that a loop can vectorise, in derivative programs.
        cache: keep programs and numba's code of them on disk.
        checkpoint: the length of the segments of long loops (see segments.py); True for a root of the whole.
        boundscheck: compare every index with the length of its axis.
    """

    fastmath: bool = False
    parallel: bool = False
    vectormath: bool = True
    cache: bool = True
    checkpoint: bool | int = False
    boundscheck: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.checkpoint, int) or self.checkpoint < 0:
            raise InputError(
                f"checkpoint={self.checkpoint!r} is no length of a segment", "checkpoint=True", "a number of iterations"
            )


USUAL = Settings()
