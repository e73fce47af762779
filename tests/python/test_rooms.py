"""simulate_rooms: shapes, values against a sum in double precision, and what it refuses. The C tests check the rest."""

import gpuconv
import numpy as np
import pytest

SIZE, SOURCE, RECEIVER = (5.0, 4.0, 3.0), (1.2, 2.3, 1.5), (3.7, 1.1, 1.4)


def kernel(frames, at):
    x = np.arange(frames) - at
    return np.where(np.abs(x) < 24, np.sinc(x) * (1 + np.cos(np.pi * x / 24)) / 2, 0)


def test_the_direct_sound_and_the_first_reflections_are_those_of_the_formula():
    absorption = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    made = gpuconv.simulate_rooms(SIZE, SOURCE, RECEIVER, absorption=absorption[:, None], frames=600, images_order=1)
    assert made.shape == (1, 1, 1, 600) and made.dtype == np.float32
    images = [(np.array(SOURCE), 1.0)]
    for wall in range(6):
        image = np.array(SOURCE)
        image[wall // 2] = (2 * SIZE[wall // 2] if wall % 2 else 0) - image[wall // 2]
        images.append((image, np.sqrt(1 - absorption[wall])))
    want = np.zeros(600)
    for image, gain in images:
        d = np.linalg.norm(image - RECEIVER)
        want += gain / d * kernel(600, d / 343.2 * 16000)
    assert np.sqrt(np.sum((made[0, 0, 0] - want) ** 2) / np.sum(want**2)) <= 1e-4


def test_shapes_broadcast():
    rng = np.random.default_rng(1)
    receivers = rng.uniform(0.5, 2.4, (3, 4, 3))
    times = rng.uniform(0.2, 0.5, (3, 1))
    made = gpuconv.simulate_rooms(SIZE, [SOURCE, (2, 2, 2)], receivers, rt60=times, frames=1000, tail=True, images_level=10)
    assert made.shape == (3, 2, 4, 1000)
    assert np.isfinite(made).all() and made.any(axis=-1).all()
    one = gpuconv.simulate_rooms(SIZE, [SOURCE, (2, 2, 2)], receivers[0], rt60=times[0], frames=1000, tail=True, images_level=10, threads=1)
    np.testing.assert_array_equal(made[:1], one)
    octaves = [0.5, 0.4, 0.3, 0.3, 0.3, 0.2]
    full = gpuconv.simulate_rooms(SIZE, SOURCE, RECEIVER, rt60=octaves, air=True, ambisonic=2, receiver_direction=(90, 0))
    assert full.shape == (1, 1, 1, 9, 8000)
    same = gpuconv.simulate_rooms(SIZE, SOURCE, RECEIVER, rt60=octaves[:1] + octaves + octaves[-1:] * 2, air=True)
    np.testing.assert_allclose(full[..., 0, :], same, atol=1e-6)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"receiver": (9, 1, 1)}, "receiver"),
        ({"size": (5, 0, 3)}, "size"),
        ({"absorption": 1.5}, "absorption"),
        ({"absorption": np.nan}, "absorption"),
        ({"absorption": [0.1, 0.2]}, "octaves"),
        ({"rt60": 0.01}, "rt60"),
        ({"frames": 0}, "frames"),
        ({"ambisonic": 5}, "ambisonic"),
        ({"formula": "fair"}, "formula"),
        ({"source": (1, 2)}, "source"),
        ({"source_omni": 2}, "omni"),
        ({"rate": np.inf}, "rate"),
        ({"absorption": None}, "missing"),
    ],
)
def test_impossible_rooms_are_refused(change, words):
    arguments = {"size": SIZE, "source": SOURCE, "receiver": RECEIVER, "absorption": 0.2} | change
    with pytest.raises(ValueError, match=words):
        gpuconv.simulate_rooms(**arguments)
