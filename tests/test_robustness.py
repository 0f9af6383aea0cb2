"""Interrupts, errors, threads, generators, pickles, long chains: nothing is broken afterwards."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import math
import multiprocessing.pool
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from truth import close

import retrograde
from retrograde import (
    AlreadyUsedError,
    Buffer,
    Params,
    RetrogradeError,
    back,
    checkpointed,
    diaghessian,
    forwarddiff,
    grad,
    gradient,
    hessian,
    hook,
    hvp,
    ignore,
    istracked,
    jacobian,
    jvp,
    param,
    primitive,
    pullback,
    pushforward,
    value_and_grad,
    withgradient,
    withjacobian,
)

PACKAGE = str(Path(retrograde.__file__).parent)
X = np.array([0.5, 1.0, 2.0])


def is_ours(filename):
    return filename.startswith((PACKAGE, "<retrograde"))


ORIGINALS = {
    (m, n): getattr(m, n) for m, n in ((np, "array"), (np, "asarray"), (np, "zeros"), (math, "sin"), (math, "exp"))
}
THRESHOLD = gc.get_threshold()


def check_that_nothing_is_broken():
    """Everything works, and when it has, everything is as it was before the first transform."""
    w = param(2.0)
    assert istracked(w * w)
    back(checkpointed(lambda: w * w * w))
    close(w.grad, 12.0)
    assert gradient(lambda: w * w, Params([w]))[w] == 4.0
    assert gradient(lambda x: x * gradient(lambda y: x * y * y, 3.0)[0], 5.0) == (60.0,)
    assert gradient(lambda x: x * jvp(lambda y: x * y * y, (3.0,), (1.0,))[1], 5.0) == (60.0,)
    assert gradient(lambda x: math.sin(x) + np.sum(np.array([x, 2 * x])), 0.0) == (4.0,)
    assert gradient(lambda x: float(ignore(lambda: x * 2.0)) * x, 3.0) == (6.0,)
    with pytest.raises(RetrogradeError):
        w -= 1.0
    close(hessian(lambda x: np.sum(x**3), X), np.diag(6 * X))
    for (module, name), original in ORIGINALS.items():
        assert getattr(module, name) is original, name
    assert gc.get_threshold() == THRESHOLD
    assert gc.isenabled()


# --- Ctrl-C ------------------------------------------------------------------------------------------------------


def interrupts(work):
    """Run `work`, which must raise KeyboardInterrupt with a short traceback, and check that nothing is broken."""
    # Python may stop between a `with np.errstate(...)` and the end of what it guards: undone here for the other tests.
    with np.errstate(), pytest.raises(KeyboardInterrupt) as caught:
        work()
    frames = traceback.extract_tb(caught.value.__traceback__)
    ours = [frame for frame in frames if is_ours(frame.filename)]
    assert len(ours) <= 1, "\n".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in ours)
    # What is printed: no second traceback behind "During handling of the above exception".
    printed = "".join(traceback.format_exception(caught.value))
    assert sum(is_ours(line.split('"')[1]) for line in printed.splitlines() if line.startswith('  File "')) <= 1
    assert any(frame.filename == __file__ for frame in frames)
    check_that_nothing_is_broken()


def stop_forward(x):
    x * 2.0
    raise KeyboardInterrupt


def stop_backward(x):
    def stop(bar):
        raise KeyboardInterrupt

    return np.sum(hook(stop, x * 2.0) * 3.0)


@primitive
def stop_in_rule(x):
    return np.sum(x) * 1.0


@stop_in_rule.defpullback
def stop_in_pullback(out, x):
    def pull(y_bar):
        raise KeyboardInterrupt

    return pull


@stop_in_rule.defpushforward
def stop_in_pushforward(out, x):
    def push(x_dot):
        raise KeyboardInterrupt

    return push


ENTRIES = {
    "gradient": lambda f: gradient(f, X),
    "gradient, curried": lambda f: gradient(f)(X),
    "withgradient": lambda f: withgradient(f, X),
    "grad": lambda f: grad(f)(X),
    "value_and_grad": lambda f: value_and_grad(f)(X),
    "pullback": lambda f: pullback(f, X)[1](1.0),
    "jacobian": lambda f: jacobian(f, X),
    "withjacobian": lambda f: withjacobian(f, X),
    "hessian": lambda f: hessian(f, X),
    "hvp": lambda f: hvp(f, X, X),
    "hvp, curried": lambda f: hvp(f)(X, X),
    "diaghessian": lambda f: diaghessian(f, X),
    "nested gradient": lambda f: gradient(lambda x: np.sum(gradient(lambda y: f(y) * x[0], X)[0]), X),
    "gradient of parameters": lambda f: gradient(lambda: f(param(X) * 1.0) if f is stop_forward else f(W), Params([W])),
    "pullback of parameters": lambda f: pullback(lambda: f(W), Params([W]))[1](1.0),
}
W = param(X)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_an_interrupt_in_the_function_leaves_a_short_traceback_and_nothing_broken(entry):
    interrupts(lambda: entry(stop_forward))


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_an_interrupt_in_a_hook_leaves_a_short_traceback_and_nothing_broken(entry):
    interrupts(lambda: entry(stop_backward))


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_an_interrupt_in_a_rule_leaves_a_short_traceback_and_nothing_broken(entry):
    interrupts(lambda: entry(stop_in_rule))


@pytest.mark.parametrize("f", [stop_forward, stop_in_rule])
def test_an_interrupt_in_forward_mode_leaves_a_short_traceback_and_nothing_broken(f):
    interrupts(lambda: jvp(f, (X,), (X,)))
    interrupts(lambda: jvp(f)((X,), (X,)))
    interrupts(lambda: pushforward(f, X)[1](X))


def test_an_interrupt_in_back_leaves_a_short_traceback_and_nothing_broken():
    w = param(X)
    for f in (stop_backward, stop_in_rule):
        interrupts(lambda f=f: back(f(w)))
        close(w.grad, np.zeros(3))
    back(np.sum(w * w))
    close(w.grad, 2 * X)


def test_an_interrupt_inside_the_tools_leaves_a_short_traceback_and_nothing_broken():
    for f in (stop_forward, stop_in_rule):
        interrupts(lambda f=f: gradient(lambda x: checkpointed(f, x), X))
        interrupts(lambda f=f: gradient(lambda x: checkpointed(lambda x: checkpointed(f, x), x), X))
        interrupts(lambda f=f: gradient(lambda x: forwarddiff(f, x), X))
        interrupts(lambda f=f: gradient(lambda x: ignore(lambda: gradient(f, X)), X))
    runs = []

    def second_run(x):
        runs.append(1)
        if len(runs) % 2 == 0:
            raise KeyboardInterrupt
        return np.sum(x * 2.0)

    interrupts(lambda: gradient(lambda x: checkpointed(second_run, x), X))
    interrupts(lambda: gradient(lambda x: checkpointed(lambda x: checkpointed(second_run, x), x), X))


def test_an_interrupt_inside_ignore_ends_the_block():
    def f(x):
        with ignore():
            raise KeyboardInterrupt

    interrupts(lambda: gradient(f, 1.0))
    with pytest.raises(KeyboardInterrupt):
        ignore(stop_forward, X)
    check_that_nothing_is_broken()


@pytest.fixture
def interruptible():
    """A process that a shell started in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_signal_in_a_long_loop_is_an_interrupt():
    def f(x):
        for i in range(100_000):
            x = x * 1.0001
            if i == 300:
                signal.raise_signal(signal.SIGINT)
        return np.sum(x)

    interrupts(lambda: gradient(f, X))
    interrupts(lambda: jvp(f, (X,), (X,)))


@contextlib.contextmanager
def interrupt_after(seconds):
    """Ctrl-C in that many seconds."""
    # The handler first: without one the signal ends the process.
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def endless(x):
    while True:
        x = np.sin(x) * 1.0


@pytest.mark.parametrize("seconds", [0.002, 0.01, 0.03])
@pytest.mark.parametrize(
    "work",
    [
        lambda: gradient(endless, 1.0),
        lambda: jvp(endless, (X,), (X,)),
        lambda: hessian(endless, X),
        lambda: gradient(lambda: endless(W), Params([W])),
        lambda: gradient(lambda x: checkpointed(endless, x), X),
    ],
)
def test_ctrl_c_at_any_moment_of_the_forward_run(work, seconds):
    def interrupted():
        with interrupt_after(seconds):
            work()

    interrupts(interrupted)


@pytest.mark.parametrize("part", [0.1, 0.3, 0.6, 0.9])
def test_ctrl_c_at_any_moment_of_the_reverse_run(part):
    def chain(x):
        for _ in range(30_000):
            x = x * 1.0001
        return x

    y, pull = pullback(chain, 1.0)
    start = time.perf_counter()
    want = pull(1.0)
    seconds = time.perf_counter() - start

    def interrupted():
        with interrupt_after(seconds * part):
            while True:
                pull(1.0)

    interrupts(interrupted)
    assert pull(1.0) == want
    w = param(1.0)
    y = chain(w)

    def interrupted_back():
        with interrupt_after(seconds * part):
            while True:
                w.zero_grad()
                back(y, once=False)

    interrupts(interrupted_back)
    assert w.grad in (0.0, pytest.approx(want[0]))
    w.zero_grad()
    back(y)
    close(w.grad, want[0], 1e-12)


def calls_of_ours(work):
    """The names of our functions that `work` enters, in order."""
    names = []

    def watch(frame, event, arg):
        if event == "call" and is_ours(frame.f_code.co_filename):
            names.append(f"{os.path.basename(frame.f_code.co_filename)}: {frame.f_code.co_qualname}")

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return names


def interrupted_at(work, call):
    """Run `work` and raise KeyboardInterrupt as the call-th function of ours is entered, as a signal does."""
    count = 0

    def watch(frame, event, arg):
        nonlocal count
        if event == "call" and is_ours(frame.f_code.co_filename):
            count += 1
            if count == call:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def _work_gradient():
    gradient(lambda x: np.sum(np.sin(x) * np.array([x[0], 1.0, 2.0])), X)


def _work_nested():
    gradient(lambda x: x * jvp(lambda y: x * y * y, (3.0,), (1.0,))[1], 5.0)


def _work_params():
    gradient(lambda: np.sum(checkpointed(lambda: W * W)) + ignore(lambda: 2.0), Params([W]))


def _work_ignore():
    def f(x):
        with ignore():
            y = float(x)
        return x * y

    gradient(f, 2.0)


def _work_forwarddiff():
    gradient(lambda x: forwarddiff(lambda x: x**3, x), 2.0)


def _work_back():
    w = param(X)
    back(np.sum(checkpointed(lambda w: w * w, w)))


WORK = {
    "gradient": _work_gradient,
    "nested": _work_nested,
    "parameters": _work_params,
    "ignore": _work_ignore,
    "forwarddiff": _work_forwarddiff,
    "back": _work_back,
}


def broken_places(name):
    """At which of our function calls an interrupt breaks something; each is tried in a process of its own."""
    work = WORK[name]
    work()
    check_that_nothing_is_broken()
    places = []
    for call, place in enumerate(calls_of_ours(work), 1):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                interrupted_at(work, call)
                # Whatever was left behind is cleared away by the next transform at the latest.
                gradient(lambda x: x * x, 3.0)
                check_that_nothing_is_broken()
                W.zero_grad()
                back(np.sum(W * W))
                close(W.grad, 2 * X)
                status = 0
            finally:
                os._exit(status)
        if os.waitpid(child, 0)[1]:
            places.append(place)
    return places


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", WORK)
def test_an_interrupt_at_the_entry_of_any_function_of_ours_breaks_nothing(name):
    # CPython looks for signals as a function is entered, so these are the places where Ctrl-C arrives.
    here = os.path.dirname(__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(PACKAGE), here])}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    code = f"import test_robustness; print(test_robustness.broken_places({name!r}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True, text=True)
    assert run.stdout.strip() == "[]"


# --- other exceptions --------------------------------------------------------------------------------------------


class Mine(Exception):
    pass


@pytest.mark.parametrize("kind", [Mine, MemoryError, RecursionError, StopIteration, SystemExit, GeneratorExit])
def test_exceptions_of_every_kind_pass_unchanged_from_functions_hooks_and_rules(kind):
    error = kind("mine")

    def fail(*args):
        raise error

    @primitive
    def rule(x):
        return x * 1.0

    rule.defpullback(lambda out, x: fail)
    rule.defpushforward(lambda out, x: fail)
    for work in (
        lambda: gradient(fail, 1.0),
        lambda: gradient(lambda x: hook(fail, x) * 1.0, 1.0),
        lambda: gradient(rule, 1.0),
        lambda: jvp(rule, (1.0,), (1.0,)),
        lambda: back(rule(param(1.0))),
        lambda: back(hook(fail, param(1.0)) * 2.0),
        lambda: gradient(lambda x: checkpointed(fail, x), 1.0),
        lambda: gradient(lambda x: forwarddiff(fail, x), 1.0),
        lambda: ignore(fail, 1.0),
        lambda: hessian(fail, X),
        lambda: gradient(lambda: fail(), Params([W])),
    ):
        with pytest.raises(kind) as caught:
            work()
        assert caught.value is error
    check_that_nothing_is_broken()


def test_unbounded_recursion_of_the_function_is_a_recursion_error():
    def f(x):
        return f(x * 1.0)

    with pytest.raises(RecursionError):
        gradient(f, 1.0)
    check_that_nothing_is_broken()


# --- threads -----------------------------------------------------------------------------------------------------


def race(workers):
    """Run all workers at once, switching between them as often as Python can."""
    barrier = threading.Barrier(len(workers))
    errors = []

    def start(work):
        barrier.wait(10)
        try:
            work()
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=start, args=(work,)) for work in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def test_eight_racing_threads_do_not_disturb_each_other():
    shared = param(X)

    def work(k):
        w = param(X)

        def loss(x):
            total = 0.0
            for _ in range(10):
                total = total + np.sin(x * k) ** 2
            return np.sum(total)

        for _ in range(8):
            close(gradient(loss, X)[0], 10 * k * np.sin(2 * k * X))
            close(jvp(loss, (X,), (np.ones(3),))[1], np.sum(10 * k * np.sin(2 * k * X)))
            close(gradient(lambda: loss(shared), Params([shared]))[shared], 10 * k * np.sin(2 * k * X))
            close(gradient(lambda x: np.sum(checkpointed(np.sin, x * k)), X)[0], k * np.cos(k * X))
            close(hessian(lambda x: np.sum(np.exp(x * k)), X[:2]), np.diag(k * k * np.exp(k * X[:2])))
            assert gradient(lambda x: math.sin(x) * np.sum(np.array([x, k])), 0.5)[0] == pytest.approx(
                math.cos(0.5) * (0.5 + k) + math.sin(0.5)
            )
            with ignore():
                assert not istracked(shared * 2)
            assert gradient(lambda x: ignore(lambda: float(x)) * x, float(k)) == (float(k),)
            w.zero_grad()
            back(np.sum(w * w * k))
            close(w.grad, 2 * k * X)
            b = gradient(lambda x: _buffered(x, k), X)[0]
            close(b, np.full(3, float(k)))

    race([functools.partial(work, k) for k in range(1, 9)])
    check_that_nothing_is_broken()


def _buffered(x, k):
    b = Buffer(x)
    for i in range(3):
        b[i] = x[i] * k
    return np.sum(b.copy())


def test_four_concurrent_backs_on_one_graph_add_up():
    w, v = param(X), param(X * 2)
    y = w * v
    for _ in range(300):
        y = y * 1.0 + w * 0.0
    y = np.sum(np.sin(y))
    back(y, once=False)
    dw, dv = w.grad.copy(), v.grad.copy()
    w.zero_grad()
    v.zero_grad()
    race([lambda: [back(y, once=False) for _ in range(5)]] * 4)
    close(w.grad, 20 * dw)
    close(v.grad, 20 * dv)


def test_of_concurrent_backs_that_free_the_graph_each_counts_or_is_refused():
    for _ in range(20):
        w = param(2.0)
        y = w
        for _ in range(50):
            y = y * 1.0
        done = []

        def work(y=y, done=done):
            try:
                back(y)
            except AlreadyUsedError:
                pass
            else:
                done.append(1)

        race([work] * 4)
        assert len(done) >= 1
        close(w.grad, float(len(done)))


def test_a_pullback_may_be_called_from_several_threads_at_once():
    _, pull = pullback(lambda x: np.cumsum(checkpointed(np.sin, x)) * x[0], X)
    seeds = np.eye(3)
    want = [pull(seed)[0] for seed in seeds]

    def work(i):
        for _ in range(10):
            close(pull(seeds[i])[0], want[i])

    race([functools.partial(work, i) for i in (0, 1, 2, 0, 1, 2)])


def test_a_thread_pool_inside_the_function_is_part_of_it():
    def f(x):
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(lambda i: np.sin(x[i]) * x[(i + 1) % 3], range(3)))
            future = pool.submit(lambda: x[0] * 5)
            return sum(parts) + future.result()

    want = np.cos(X) * np.roll(X, -1) + np.sin(np.roll(X, 1)) + [5.0, 0.0, 0.0]
    for _ in range(5):
        close(gradient(f, X)[0], want)
        close(jvp(f, (X,), (X,))[1], want @ X)


def test_a_thread_pool_inside_a_function_of_parameters_knows_them():
    w, v = param(X), param(2.0)

    def f():
        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(lambda i: np.sum(w[i] * w) * v, range(3)))

    for _ in range(5):
        grads = gradient(f, Params([w, v]))
        close(grads[w], 4 * np.full(3, np.sum(X)))
        assert grads[v] == pytest.approx(np.sum(X) ** 2)
        assert not w.grad.any()
    back(f())
    close(w.grad, 4 * np.full(3, np.sum(X)))


def test_a_thread_pool_made_outside_is_used_inside():
    w = param(X)
    with ThreadPoolExecutor(2) as pool:
        pool.submit(lambda: None).result()
        f = lambda: sum(pool.map(lambda i: w[i] ** 2, range(3)))
        close(gradient(f, Params([w]))[w], 2 * X)
        close(gradient(lambda x: sum(pool.map(lambda i: math.sin(x[i]), range(3))), X)[0], np.cos(X))
        assert pool.submit(lambda: istracked(w * w)).result()


def _in_a_thread(work):
    result = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    thread.join()
    return result[0]


def _in_a_pool_of_multiprocessing(work):
    with multiprocessing.pool.ThreadPool(1) as pool:
        return pool.apply(work)


def _in_asyncio(work):
    async def main():
        return await asyncio.to_thread(work)

    return asyncio.run(main())


@pytest.mark.parametrize("elsewhere", [_in_a_thread, _in_a_pool_of_multiprocessing, _in_asyncio])
def test_a_thread_of_any_kind_inside_a_function_is_right_or_raises_and_never_a_silent_none(elsewhere):
    w = param(X)
    assert gradient(lambda x: elsewhere(lambda: x * x) * 1.0, 3.0) == (6.0,)
    try:
        grads = gradient(lambda: elsewhere(lambda: np.sum(w * w)), Params([w]))
    except RetrogradeError:
        pass
    else:
        assert grads[w] is not None
        close(grads[w], 2 * X)


def test_ignore_holds_in_the_threads_of_a_pool():
    def f(x):
        with ignore(), ThreadPoolExecutor(2) as pool:
            kept = list(pool.map(lambda i: istracked(x[i] * 2), range(3)))
        assert kept == [False] * 3
        return np.sum(x * x)

    close(gradient(f, X)[0], 2 * X)


def test_a_thread_that_outlives_the_transform_raises_and_disturbs_nobody():
    started, ended = threading.Event(), threading.Event()
    errors = []

    def later(x):
        started.set()
        ended.wait(10)
        try:
            x * 2
        except RetrogradeError as error:
            errors.append(error)

    threads = []

    def f(x):
        thread = threading.Thread(target=later, args=(x,))
        threads.append(thread)
        thread.start()
        started.wait(10)
        return x * x

    assert gradient(f, 3.0) == (6.0,)
    ended.set()
    threads[0].join()
    assert len(errors) == 1
    assert "ended" in str(errors[0])


# --- generators and asyncio --------------------------------------------------------------------------------------


def test_a_generator_may_feed_a_function():
    def squares(x):
        for v in x:
            yield v * v

    def f(x):
        return sum(squares(x)) + sum(v * w for v, w in zip(squares(x), squares(x[::-1]), strict=True))

    close(gradient(f, X)[0], 2 * X + 4 * X * X[::-1] ** 2)


def test_generators_that_take_gradients_may_be_interleaved():
    def descend(x, target):
        while True:
            (slope,) = gradient(lambda x: (x - target) ** 2, x)
            x = x - 0.25 * slope
            yield x

    first, second = descend(0.0, 1.0), descend(0.0, -2.0)
    for _ in range(30):
        a, b = next(first), next(second)
    assert (a, b) == (pytest.approx(1.0), pytest.approx(-2.0))


def test_a_generator_that_is_suspended_inside_an_outer_function_is_right():
    def values(x):
        y = x * 1.0
        while True:
            y = y * x
            yield y

    def f(x):
        g, h = values(x), values(x)
        a = next(g) * next(h)
        b = next(g) + next(h)
        return a + b

    assert gradient(f, 2.0) == (4 * 8.0 + 2 * 3 * 4.0,)


def test_a_generator_that_leaks_values_raises_after_the_end():
    kept = []

    def f(x):
        def values():
            while True:
                yield x * 2

        kept.append(values())
        return next(kept[0])

    gradient(f, 1.0)
    with pytest.raises(RetrogradeError, match="ended"):
        next(kept[0])


def test_tasks_of_asyncio_do_not_disturb_each_other():
    w = param(2.0)

    async def descends(k):
        slopes = []
        for _ in range(5):
            slopes.append(gradient(lambda x: x**k, 2.0)[0])
            assert istracked(w * k)
            await asyncio.sleep(0)
        return slopes

    async def ignores():
        for _ in range(5):
            with ignore():
                await asyncio.sleep(0)
                assert not istracked(w * 2)
                await asyncio.sleep(0)
            assert istracked(w * 2)
        return "done"

    async def main():
        return await asyncio.gather(descends(2), ignores(), descends(3), ignores())

    results = asyncio.run(main())
    assert results == [[4.0] * 5, "done", [12.0] * 5, "done"]
    check_that_nothing_is_broken()


def test_an_event_loop_may_run_inside_a_function():
    w = param(3.0)

    async def product(x):
        async def factor(v):
            await asyncio.sleep(0)
            return v * w

        a, b = await asyncio.gather(factor(x), factor(x + 1))
        return a * b

    f = lambda x: asyncio.run(product(x))
    # (3x)(3x + 3) = 9x² + 9x
    close(np.asarray(retrograde.data(gradient(f, 2.0)[0])), 45.0)
    assert gradient(lambda: asyncio.run(product(2.0)), Params([w]))[w] == pytest.approx(2 * 3 * 2 * 3.0)


# --- pickling ----------------------------------------------------------------------------------------------------


def rosenbrock(x):
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


@pytest.mark.parametrize(
    "make",
    [
        lambda: functools.partial(gradient, rosenbrock),
        lambda: gradient(rosenbrock),
        lambda: withgradient(rosenbrock),
        lambda: grad(rosenbrock),
        lambda: value_and_grad(rosenbrock),
        lambda: grad(rosenbrock, argnums=(0,)),
        lambda: jacobian(rosenbrock),
        lambda: hessian(rosenbrock),
        lambda: diaghessian(rosenbrock),
        lambda: withjacobian(rosenbrock),
        lambda: grad(grad(np.sin)),
    ],
)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_gradients_of_module_level_functions_pickle(make, protocol):
    f = make()
    again = pickle.loads(pickle.dumps(f, protocol))
    x = 0.3 if "sin" in repr(f) and "rosenbrock" not in repr(f) else np.array([1.0, 1.5, 0.5])
    got, want = again(x), f(x)
    np.testing.assert_equal(np.asarray(got, dtype=object).tolist(), np.asarray(want, dtype=object).tolist())


def test_transforms_themselves_pickle():
    for transform in (gradient, withgradient, pullback, jvp, pushforward, jacobian, hessian, hvp, back, checkpointed):
        assert pickle.loads(pickle.dumps(transform)) is transform


def test_results_and_parameters_pickle():
    w = param(X)
    result = withgradient(lambda: np.sum(w * w), Params([w]))
    again = pickle.loads(pickle.dumps((w, result)))
    assert again[1].val == result.val
    close(again[1].grad[again[0]], 2 * X)
    named = pickle.loads(pickle.dumps(withgradient(rosenbrock, X)))
    assert type(named).__name__ == "WithGradient"
    assert named.val == rosenbrock(X)


def test_gradients_run_in_another_process():
    code = "import pickle, sys; f, x = pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(pickle.dumps(f(x)))"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE)}
    for f in (grad(np.linalg.norm), hessian(np.prod)):
        run = subprocess.run(
            [sys.executable, "-c", code], input=pickle.dumps((f, X)), capture_output=True, env=environment, check=True
        )
        close(pickle.loads(run.stdout), f(X))


def test_an_error_of_a_worker_keeps_its_text():
    with pytest.raises(RetrogradeError) as caught:
        gradient(lambda x: x, X)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


# --- long chains and memory --------------------------------------------------------------------------------------


def long_chain(x, n=1_000_000):
    for _ in range(n):
        x = x * 1.000001
    return x


def test_a_chain_of_a_million_operations_is_swept_and_freed_without_recursion():
    want = 1.000001**1_000_000
    limit = sys.getrecursionlimit()
    (x_bar,) = gradient(long_chain, 1.0)
    assert x_bar == pytest.approx(want, rel=1e-9)
    w = param(1.0)
    y = long_chain(w)
    back(y)
    close(w.grad, want, 1e-9)
    y = long_chain(w)
    # Dropped without a sweep.
    del y
    assert sys.getrecursionlimit() == limit


def test_a_long_chain_frees_its_memory_when_it_is_dropped():
    gc.collect()
    gc.disable()
    try:
        w = param(1.0)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        y = long_chain(w, 100_000)
        held = tracemalloc.get_traced_memory()[0] - before
        del y
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    assert held > 1_000_000
    # What is left are the tuples that CPython keeps for the next ones.
    assert left < held / 20


@pytest.mark.parametrize(
    "make",
    [
        lambda x: long_chain(x, 50_000),
        lambda x: gradient(lambda y: long_chain(y * x, 20_000), 1.0)[0],
        lambda x: jvp(lambda y: long_chain(y * x, 20_000), (1.0,), (1.0,))[1],
        lambda x: functools.reduce(lambda y, i: np.concatenate([y[1:], y[:1]]), range(5_000), x * np.ones(3))[0],
        lambda x: functools.reduce(lambda y, i: checkpointed(np.sin, y), range(5_000), x),
        lambda x: functools.reduce(lambda y, i: hook(lambda bar: None, y), range(20_000), x) * 1.0,
    ],
    ids=["chain", "reverse over reverse", "forward over reverse", "general rules", "checkpoints", "hooks"],
)
def test_deep_graphs_of_every_kind_are_swept_and_dropped(make):
    (x_bar,) = gradient(make, 0.9)
    assert np.isfinite(x_bar)
    w = param(0.9)
    y = make(w)
    back(y, once=False)
    assert w.grad == pytest.approx(x_bar, rel=1e-9)
    del y


def test_a_deep_graph_of_buffer_writes_is_swept_and_dropped():
    def f(x):
        b = Buffer([1.0], 2)
        b[0] = 1.0
        for _ in range(20_000):
            b[0] = b[0] * x
            b[1] = b[0]
        return b.copy()[1]

    assert gradient(f, 1.0) == (20_000.0,)
    w = param(1.0)
    y = f(w)
    del y


def _memory(work, n):
    """What n more calls of `work` leave behind, with the collector off."""
    for _ in range(3):
        work()
    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        work()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(n):
            work()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()


LARGE = np.ones(2_000)
PARAMETER = param(LARGE)


def _failing():
    with contextlib.suppress(Mine):

        def f(x):
            x = np.sin(x) * x
            raise Mine

        gradient(f, LARGE)


def _swept():
    PARAMETER.zero_grad()
    back(np.sum(np.sin(PARAMETER) * PARAMETER))


def _swept_and_kept():
    y = np.sum(np.sin(PARAMETER) * PARAMETER)
    back(y, once=False)
    back(y, once=False)


def _buffer_call():
    def f(x):
        b = Buffer(x)
        b[:] = x * 2
        b[:100] *= x[:100]
        return np.sum(b.copy() * x)

    gradient(f, LARGE)


REPEATED = {
    "gradient": lambda: gradient(lambda x: np.sum(np.sin(x) * np.exp(-x) + x**2), LARGE),
    "indexing": lambda: gradient(lambda x: sum(x[i] * x[i + 1] for i in range(20)), LARGE),
    "arrays of traced values": lambda: gradient(lambda x: np.sum(np.array([x, x * 2, np.sin(x)])), LARGE),
    "jvp": lambda: jvp(lambda x: np.sum(np.sin(x) * x), (LARGE,), (LARGE,)),
    "pullback": lambda: pullback(lambda x: np.sin(x) * x, LARGE)[1](LARGE),
    "pullback not called": lambda: pullback(lambda x: np.sin(x) * x, LARGE),
    "hvp": lambda: hvp(lambda x: np.sum(np.sin(x) * x), LARGE, LARGE),
    "nested": lambda: gradient(lambda x: np.sum(gradient(lambda y: np.sum(y**3 * x), LARGE)[0]), LARGE),
    "parameters": lambda: gradient(lambda: np.sum(np.sin(PARAMETER)), Params([PARAMETER])),
    "back": _swept,
    "back, kept": _swept_and_kept,
    "dropped graph": lambda: np.sum(np.sin(PARAMETER) * PARAMETER),
    "checkpoint": lambda: gradient(lambda x: np.sum(checkpointed(lambda x: np.sin(x) * x, x)), LARGE),
    "checkpoint of parameters": lambda: np.sum(checkpointed(lambda: np.sin(PARAMETER))),
    "hook": lambda: gradient(lambda x: np.sum(hook(lambda bar: bar * 2, x) * x), LARGE),
    "hook of parameters": lambda: hook(lambda bar: None, np.exp(PARAMETER) * PARAMETER),
    "showgrad of parameters": lambda: retrograde.showgrad(np.exp(PARAMETER) * PARAMETER),
    "buffer": _buffer_call,
    "ignore": lambda: gradient(lambda x: np.sum(ignore(lambda: np.sin(x)) * x), LARGE),
    "failing": _failing,
    "closures": lambda: gradient(lambda x: np.sum((lambda: x * x)()), LARGE),
    "fresh functions": lambda: gradient(eval("lambda x: np.sum(x * x)", {"np": np}), LARGE),
}


@pytest.mark.parametrize("work", REPEATED.values(), ids=REPEATED.keys())
def test_repeated_calls_keep_no_memory_though_the_collector_is_off(work):
    kept = _memory(work, 30)
    # Less than three of the arrays, of the 30 and more that a leak of one array a call would leave.
    assert kept < 3 * LARGE.nbytes, f"{kept / LARGE.nbytes:.1f} arrays kept after 30 calls"


def test_what_a_transform_used_is_freed_at_its_end():
    alive = []

    def f(x):
        kept = np.full(1000, 2.0)
        alive.append(weakref.ref(kept))
        return np.sum(np.sin(x * kept) * kept)

    gc.collect()
    gc.disable()
    try:
        gradient(f, np.ones(1000))
        jvp(f, (np.ones(1000),), (np.ones(1000),))
        assert not any(ref() is not None for ref in alive)
    finally:
        gc.enable()


def test_the_collector_runs_as_before_after_a_transform_and_finds_nothing():
    gc.collect()
    gradient(lambda x: np.sum(np.sin(x) * x), X)
    assert gc.collect() < 50
    assert gc.get_threshold() == THRESHOLD


def test_a_collector_that_the_user_switched_off_stays_off():
    gc.disable()
    try:
        gradient(lambda x: np.sum(np.sin(x) * x), X)
        assert not gc.isenabled()
    finally:
        gc.enable()
    gc.set_threshold(123, 4, 5)
    try:
        gradient(lambda x: np.sum(np.sin(x) * x), X)
        assert gc.get_threshold() == (123, 4, 5)
    finally:
        gc.set_threshold(*THRESHOLD)


def test_a_sum_over_the_elements_of_an_array_costs_time_in_proportion_to_their_number():
    def run(n):
        x = np.linspace(0, 1, n)

        def f(x):
            s = 0.0
            for i in range(n - 1):
                s = s + x[i] * x[i + 1]
            return s

        start = time.process_time()
        gradient(f, x)
        return time.process_time() - start

    run(300)
    short, long = min(run(2_000) for _ in range(3)), min(run(16_000) for _ in range(2))
    assert long < 8 * 2.5 * short + 0.05


def test_twenty_thousand_dependent_steps_through_forward_over_reverse():
    f = lambda x: long_chain(x, 5_000) ** 2
    assert hvp(f, 1.0, 1.0) == pytest.approx(2 * 1.000001**10_000, rel=1e-9)


def test_futures_that_fail_inside_a_function_pass_their_exception():
    def f(x):
        with ThreadPoolExecutor(2) as pool:
            future = pool.submit(lambda: 1 / 0)
            concurrent.futures.wait([future])
            with pytest.raises(ZeroDivisionError):
                future.result()
        return x * x

    assert gradient(f, 3.0) == (6.0,)
    check_that_nothing_is_broken()
