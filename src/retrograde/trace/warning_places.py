"""Warnings that NumPy gives inside of our code belong to the user's line.

NumPy names the innermost Python frame, which is ours where a traced value is computed: `log(0)` would be reported at a
line of generated code, and once for all lines of a program. C code asks nobody for the place; so the function by which
`warnings` shows a message is taken over when the first such code is generated.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from retrograde.errors import is_ours_file, user_frame

_show: Any = getattr(warnings, "_showwarnmsg", None)

# The registry of code that warns whenever there is cause: how often is a question of the user's line.
EVERY_TIME = {"__warningregistry__": None}


@functools.cache
def install() -> None:
    """Show warnings at the places that they belong to, from now on."""
    if callable(_show):
        setattr(warnings, "_showwarnmsg", _at_the_users_line)


def _at_the_users_line(message: Any) -> None:
    frame = user_frame() if is_ours_file(message.filename) else None
    if frame is None:
        _show(message)
        return
    # Once more from the start, since filters and the registry go by the place.
    scope = frame.f_globals
    warnings.warn_explicit(
        message.message,
        message.category,
        frame.f_code.co_filename,
        frame.f_lineno,
        scope.get("__name__", "<unknown>"),
        scope.setdefault("__warningregistry__", {}),
    )
