"""`python -m benchmarks [names] [--quick] [--no-save]`: run benchmarks, print tables and verdicts, save the figures.

Without names, all of them. `--quick` is for trying a benchmark out: few rounds, small sizes, nothing saved.
The exit status is the number of targets that were missed; one that could not be measured is named, not counted.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from .harness import Report, Row, Table

NAMES = (
    "eager_overhead",
    "read_loop",
    "fill_loop",
    "primal_ratio",
    "rule_speed",
    "coverage",
    "memory_per_op",
    "sparse",
    "taylor",
    "nested_derivatives",
    "jacobians",
    "compiled",
    "parallel",
    "import_time",
)
RESULTS = Path(__file__).with_name("results")
LIBRARIES = ("retrograde", "numpy", "autograd", "mygrad", "torch", "jax", "numba", "scipy")


def version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def threads() -> dict[str, int] | str:
    """What each library says of its own threads, once they are loaded."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "1 (asked for through the environment)"
    return {
        f"{pool['internal_api']} {pool['version'] or ''}".strip(): pool["num_threads"] for pool in threadpool_info()
    }


def commit() -> str | None:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=RESULTS.parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def machine() -> dict[str, Any]:
    return {
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "threads": threads(),
        "versions": {library: found for library in LIBRARIES if (found := version(library))},
    }


HEADER = ("race", "who", "best", "median", "unit", "÷ ours", "rounds")
NUMBERS = (2, 3, 5, 6)


def figure(value: float) -> str:
    """Three digits that count, and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cells(report: Report, row: Row) -> tuple[str, ...]:
    if row.best is None:
        return row.race, row.name, "–", "–", "", "", ""
    ratio = report.ratio_to_ours(row)
    compared = f"{ratio:.2f}" if ratio else "–"
    return row.race, row.name, figure(row.best), figure(row.median), row.unit, compared, str(row.rounds or "")


def show_table(title: str, table: Table) -> None:
    """With rich where it is installed, in plain text where it is not."""
    try:
        import rich.table
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        widths = [max(map(len, column)) for column in zip(table.header, *table.lines, strict=True)]
        print(title)
        for line in [table.header, *table.lines]:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        return
    # A Text is not searched for markup, which x[i] would be taken for.
    shown = rich.table.Table(title=Text(title), title_justify="left")
    for i, head in enumerate(table.header):
        shown.add_column(head, justify="right" if i in table.numbers else "left", no_wrap=True)
    several = len({line[0] for line in table.lines}) < len(table.lines)
    before = ""
    for race, *rest in table.lines:
        if several and race != before:
            shown.add_section()
        shown.add_row(*map(Text, (race if race != before else "", *rest)))
        before = race
    # Where there is no terminal to ask, rich assumes 80 columns and cuts the figures.
    Console(width=None if sys.stdout.isatty() else 160).print(shown)


def show(report: Report) -> None:
    print()
    show_table(report.title, report.table or Table(HEADER, [cells(report, row) for row in report.rows], NUMBERS))
    absent: dict[tuple[str, str], list[str]] = {}
    for row in report.rows:
        if row.note:
            absent.setdefault((row.name, row.note), []).append(row.race)
    for (name, note), races in absent.items():
        print(f"  {name} {note}  ({'; '.join(races)})")
    for note in report.notes:
        print(f"  {note}")
    for verdict in report.verdicts():
        word = {True: "reached", False: "MISSED", None: "not measured"}[verdict.reached]
        value = "" if verdict.value is None else f"{verdict.value:.2f}"
        print(f"  {word:12}  {value:>6} {verdict.target.bound:6}  {verdict.target.text}")


def save(name: str, report: Report) -> None:
    RESULTS.mkdir(exist_ok=True)
    verdicts = [
        {"target": v.target.text, "bound": v.target.bound, "value": v.value, "reached": v.reached}
        for v in report.verdicts()
    ]
    content = {
        "benchmark": name,
        "title": report.title,
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": machine(),
        "rows": [asdict(row) for row in report.rows],
        "targets": verdicts,
        "notes": report.notes,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"  saved as {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="few rounds, small sizes, nothing saved")
    parser.add_argument("--no-save", action="store_true", help="leave benchmarks/results as it is")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    missed = 0
    for name in options.names or NAMES:
        report = importlib.import_module(f"benchmarks.{name}").run(options.quick)
        show(report)
        if not (options.quick or options.no_save):
            save(name, report)
        missed += sum(verdict.reached is False for verdict in report.verdicts())
    return missed


if __name__ == "__main__":
    sys.exit(main())
