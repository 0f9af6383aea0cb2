"""Keys that name a place more than once, held against NumPy's own indexing."""

from __future__ import annotations

import random

import numpy as np
import pytest

from retrograde.trace.places import places_of


def some_key(rng: random.Random, shape: tuple[int, ...]) -> tuple:
    """Integers, slices, masks and integer arrays of one shape, at least one of the last."""
    members = rng.choice([(2,), (3,), (2, 2), (1,), (0,)])
    count = int(np.prod(members))
    entries: list = []
    for n in shape:
        form = rng.randrange(7)
        if form == 0 or not entries:
            entries.append(np.array([rng.randrange(-n, n) for _ in range(count)], int).reshape(members))
        elif form == 1:
            entries.append(rng.randrange(-n, n))
        elif form == 2:
            entries.append(slice(None, None, rng.choice([1, -1, 2])))
        elif form == 3:
            entries.append(np.array(rng.randrange(-n, n)))
        elif form == 4 and members == (2,) and n >= 2:
            mask = np.zeros(n, bool)
            mask[rng.sample(range(n), 2)] = True
            entries.append(mask)
        elif form == 5:
            entries.append(...)
            break
        else:
            entries.append(slice(0, 2))
        if rng.random() < 0.15:
            entries.append(None)
    if rng.random() < 0.5:
        rng.shuffle(entries)
    return (True, *entries) if rng.random() < 0.05 else tuple(entries)


@pytest.mark.parametrize("seed", range(4))
def test_the_places_of_a_key_are_those_that_numpy_finds(seed):
    rng = random.Random(seed)
    checked = 0
    while checked < 150:
        shape = rng.choice([(3,), (2, 3), (3, 4, 2), (4, 1, 3, 2)])
        key = some_key(rng, shape)
        x = np.arange(np.prod(shape)).reshape(shape)
        try:
            part = x[key]
        except IndexError:
            continue
        checked += 1
        places = places_of(key, shape)
        row = places.drawn_out(part)
        assert np.array_equal(x[places.key(slice(None))], row)
        first, number = places.once()
        assert np.array_equal(places.chosen(x[places.key(first)], number), row)
        seen = []
        for turn in places.rounds():
            assert len(set(places.codes[turn].tolist())) == len(turn)
            assert np.array_equal(x[places.key(turn)], places.chosen(row, turn))
            seen += turn.tolist()
        assert sorted(seen) == list(range(places.codes.size))
        # What NumPy leaves in the array of values that are written to one place is the last.
        written = np.full(shape, -1)
        order = np.arange(part.size).reshape(part.shape)
        written[key] = order
        is_last = places.is_last(part.ndim)
        assert np.array_equal(np.ones(part.shape) * (1.0 if is_last is None else is_last), written[key] == order)


def test_the_turns_keep_the_order_in_which_a_place_is_named():
    places = places_of(np.array([4, 1, 4, 4, 1]), (5,))
    assert [turn.tolist() for turn in places.rounds()] == [[1, 0], [4, 2], [3]]
