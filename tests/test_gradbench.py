"""The tool for the GradBench suite: a conversation with its harness, against derivatives by hand and differences.

The programs run eagerly here, as compiling all of them takes minutes; with RETROGRADE_LONG set they are compiled.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
import retrograde as rg
from benchmarks.workloads import ba, gmm, ht, kmeans, lstm

from .truth import close, differences


@pytest.fixture(scope="module")
def tool():
    """The module that answers."""
    with pytest.MonkeyPatch.context() as patch:
        if "RETROGRADE_LONG" not in os.environ:
            patch.setattr(rg, "compile", lambda f: f)
        for name in [n for n in sys.modules if n.startswith("benchmarks.gradbench")]:
            del sys.modules[name]
        yield importlib.import_module("benchmarks.gradbench.__main__")


@pytest.fixture
def ask(tool):
    def ask(module: str, function: str, given: Any) -> Any:
        messages = [
            {"kind": "start", "eval": module},
            {"kind": "define", "module": module},
            {"kind": "evaluate", "module": module, "function": function, "input": given},
            {"kind": "end"},
        ]
        lines = [json.dumps({"id": i} | message) for i, message in enumerate(messages)]
        replies = [json.loads(reply) for reply in tool.answers(lines)]
        assert replies[0] == {"id": 0, "tool": "retrograde"}
        assert replies[1] == {"id": 1, "success": True}
        assert replies[3] == {"id": 3}
        assert replies[2]["success"], replies[2].get("error")
        return replies[2]["output"]

    return ask


def test_hello(ask):
    assert ask("hello", "square", 3) == 9
    assert ask("hello", "double", 3) == 6


def test_runs_are_as_many_as_asked_for_and_failures_are_told(tool):
    def told(**parts: Any) -> Any:
        return tool.answer({"kind": "evaluate", "module": "lse", "function": "primal"} | parts)

    timings = told(input={"x": [0.0, 0.0], "min_runs": 3})["timings"]
    assert [t["name"] for t in timings] == ["compile", "evaluate", "evaluate", "evaluate"]
    assert all(t["nanoseconds"] > 0 for t in timings)
    assert sum(t["nanoseconds"] for t in told(input={"x": [0.0], "min_seconds": 0.01})["timings"]) > 1e7
    failed = told(input={"y": [1.0]})
    assert failed["success"] is False
    assert "KeyError" in failed["error"]
    assert tool.answer({"kind": "define", "module": "unknown"}) == {"success": False}


def test_vectors_and_matrices(ask):
    x = [0.5, -1.0, 2.0]
    weights = np.exp(x) / np.sum(np.exp(x))
    close(ask("lse", "primal", {"x": x}), math.log(np.sum(np.exp(x))))
    close(np.array(ask("lse", "gradient", {"x": x})), weights)
    close(np.array(ask("ode", "primal", {"x": [1.0, 2.0, 3.0], "s": 4})), [2, 4, 8])
    close(np.array(ask("ode", "gradient", {"x": [1.0, 2.0, 3.0], "s": 4})), [8, 4, 8 / 3])
    matrix = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 1.0], [2.0, 0.0, 1.5]])
    given = {"A": matrix.ravel().tolist(), "ell": 3}
    close(ask("det", "primal", given), np.linalg.det(matrix))
    close(np.array(ask("det", "gradient", given)), (np.linalg.det(matrix) * np.linalg.inv(matrix).T).ravel())

    def squares(x):
        t = np.linspace(-1, 1, 6)
        return np.sum((np.sign(t) - x[0] - x[1] * t) ** 2) / 2

    close(ask("llsq", "primal", {"x": x[:2], "n": 6}), squares(x))
    close(np.array(ask("llsq", "gradient", {"x": x[:2], "n": 6})), differences(squares, x[:2]), rtol=1e-8)


def test_gaussian_mixtures(ask):
    alpha, mu, q, lower, x, gamma, m = args = gmm.inputs("tiny")
    given = {"d": 2, "k": len(alpha), "n": len(x), "gamma": gamma, "m": m}
    given |= {
        name: a.tolist() for name, a in zip(("alpha", "mu", "q", "l", "x"), (alpha, mu, q, lower, x), strict=True)
    }
    close(ask("gmm", "objective", given), gmm.program(*args))
    gradient = ask("gmm", "jacobian", given)
    for name, want in zip(("alpha", "mu", "q", "l"), gmm.by_hand.py_func(*args), strict=True):
        close(np.array(gradient[name]), want, rtol=1e-8)


def test_bundle_adjustment(ask):
    cameras, points, weights, features = (a[:1] for a in ba.inputs("tiny"))
    n, m, p = 2, 3, 12
    given = {"n": n, "m": m, "p": p, "cam": cameras[0].tolist(), "x": points[0].tolist()}
    given |= {"w": float(weights[0]), "feat": features[0].tolist()}
    objective = ask("ba", "objective", given)
    close(np.array(objective["reproj_error"]["elements"]), ba.program(cameras, points, weights, features)[0])
    assert objective["reproj_error"]["repeated"] == p
    assert objective["w_err"] == {"element": 1 - given["w"] ** 2, "repeated": p}
    found = ask("ba", "jacobian", given)
    close(np.array(found["vals"][:30]), ba.by_hand.py_func(cameras, points, weights, features)[0].ravel(), rtol=1e-8)
    close(found["vals"][30], -2 * given["w"])
    assert found["cols"] == [*range(11), 22, 23, 24, 31] * 2 + [11 * n + 3 * m + p - 1]
    assert found["rows"] == [*range(0, 15 * 24, 15), *range(360, 366), 30 * p + p]


def test_recurrent_networks(ask):
    layers, ends, state, sequence = args = lstm.inputs("tiny")
    given = {"main_params": layers.reshape(2 * len(layers), -1).tolist(), "extra_params": ends.tolist()}
    given |= {"state": state.reshape(2 * len(layers), -1).tolist(), "sequence": sequence.tolist()}
    close(ask("lstm", "objective", given), lstm.program(*args))
    want = np.concatenate([bar.ravel() for bar in lstm.by_hand.py_func(*args)])
    close(np.array(ask("lstm", "jacobian", given)), want, rtol=1e-8)


@pytest.mark.parametrize("with_us", [True, False])
def test_hands(ask, with_us):
    theta, us, parents, base, inverse, positions, weights, triangles, owners, points = ht.inputs("tiny")
    model = {
        "bone_count": len(parents),
        "parents": parents.tolist(),
        "base_relatives": base.tolist(),
        "inverse_base_absolutes": inverse.tolist(),
        "base_positions": positions.T.tolist(),
        "weights": weights.T.tolist(),
        "triangles": triangles.tolist(),
        "is_mirrored": False,
    }
    correspondences = owners if with_us else np.arange(len(owners))
    data = {"model": model, "correspondences": correspondences.tolist(), "points": points.tolist()}
    given = {"theta": theta.tolist(), "us": us.tolist() if with_us else [], "data": data}

    def errors(theta: Any, us: Any = us) -> Any:
        if with_us:
            corners = triangles, owners
        else:  # the vertex itself is the first corner, and has all the weight
            us, corners = np.tile([1.0, 0.0], (4, 1)), (np.tile(np.arange(6)[:, None], 3), correspondences)
        return ht.program(theta, us, parents, base, inverse, positions, weights, *corners, points).ravel()

    close(np.array(ask("ht", "objective", given)), errors(theta))
    jacobian = np.array(ask("ht", "jacobian", given))
    columns = 2 * with_us
    close(jacobian[:, columns:], differences(errors, theta), rtol=1e-6, atol=1e-8)
    if with_us:
        of_us = differences(lambda us: errors(theta, us), us)
        for row in range(12):
            close(jacobian[row, :2], of_us[row, row // 3], rtol=1e-6, atol=1e-8)


def test_clusters(ask):
    points, centroids = args = kmeans.inputs("tiny")
    given = {"points": points.tolist(), "centroids": centroids.tolist()}
    close(ask("kmeans", "cost", given), kmeans.program(*args))
    first, second = kmeans.by_hand.py_func(*args)
    close(np.array(ask("kmeans", "dir", given)), first / second)


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_derivatives_in_derivatives(ask, modes, monkeypatch):
    # Where the descent of the paper ends; it begins there, too, as it takes thousands of steps.
    close(ask("particle", modes, {"w": 0.2071918746486118}), 0.2071918746486118, rtol=1e-4)
    monkeypatch.setattr(sys.modules["benchmarks.gradbench.descents"], "CLOSE", 0.01)
    assert np.max(np.abs(ask("saddle", modes, {"start": [1.0, 0.5]}))) < 0.05


def test_the_tool_reads_and_writes_lines():
    lines = '{"id": 0, "kind": "start", "eval": "hello"}\n{"id": 1, "kind": "end"}\n'
    command = [sys.executable, "-m", "benchmarks.gradbench"]
    environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == '{"id": 0, "tool": "retrograde"}\n{"id": 1}\n'
