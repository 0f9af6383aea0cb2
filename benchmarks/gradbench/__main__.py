"""Answers the messages of the suite's harness, a line each."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.gradbench.evals import EVALS, Task


def answers(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        message = json.loads(line)
        yield json.dumps({"id": message["id"], **answer(message)})
        if message["kind"] == "end":
            return


def answer(message: dict[str, Any]) -> dict[str, Any]:
    kind = message["kind"]
    if kind == "start":
        return {"tool": "retrograde"}
    if kind == "define":
        return {"success": message["module"] in EVALS}
    if kind == "evaluate":
        try:
            return evaluated(EVALS[message["module"]][message["function"]], message["input"])
        except Exception:
            return {"success": False, "error": traceback.format_exc()}
    return {}


def evaluated(task: Task, given: Any) -> dict[str, Any]:
    """The output of a task, and the times of its runs: as many, and as long, as is asked for.

    The first run, which compiles, is timed under a name of its own.
    """
    args = task.prepare(given)
    least = given if isinstance(given, dict) else {}
    runs, seconds = least.get("min_runs", 1), least.get("min_seconds", 0)
    timings = []
    if task.compiles:
        _, elapsed = _timed(task, args)
        timings.append({"name": "compile", "nanoseconds": elapsed})
    output: Any = None
    total, count = 0, 0
    while count < max(runs, 1) or total < seconds * 1e9:
        output, elapsed = _timed(task, args)
        timings.append({"name": "evaluate", "nanoseconds": elapsed})
        total, count = total + elapsed, count + 1
    return {"success": True, "output": task.report(output), "timings": timings}


def _timed(task: Task, args: Any) -> tuple[Any, int]:
    start = time.perf_counter_ns()
    output = task.run(*args)
    return output, time.perf_counter_ns() - start


if __name__ == "__main__":
    for text in answers(sys.stdin):
        print(text, flush=True)
