"""Impulse responses of shoebox rooms by image sources, through gpuconv_rooms.h."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _core
from ._host import thread_count
from ._modes import choose, whole

BANDS = 9  # octaves from 62.5 Hz to 16 kHz
FORMULAS = ("images", "eyring", "sabine")


def octaves(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Returns values of 1, 6 (125 to 4000 Hz) or 9 octaves in the last dimension, broadcast to `shape` + (9,)."""
    array = np.asarray(values, np.float64)
    array = array.reshape(1) if array.ndim == 0 else array
    if array.shape[-1] == 6:
        array = np.concatenate((array[..., :1], array, array[..., -1:], array[..., -1:]), axis=-1)
    if array.shape[-1] not in (1, BANDS):
        raise ValueError(f"{name} has {array.shape[-1]} octaves in its last dimension; use 1, 6 (125 to 4000 Hz) or 9 (62.5 Hz to 16 kHz)")
    return spread(name, array, shape + (BANDS,))


def spread(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(values, np.float64)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} has the shape {array.shape}, which does not broadcast to {shape}") from None


def points(name: str, at: Any, direction: Any, omni: Any, rooms: int) -> np.ndarray:
    """Returns the points of all rooms, (rooms, points, 6): place, azimuth, elevation and pattern."""
    places = np.asarray(at, np.float64)
    if places.ndim == 0 or places.ndim > 3 or places.shape[-1] != 3:
        raise ValueError(f"{name} has the shape {places.shape}; use (3,), (points, 3) or (rooms, points, 3)")
    count = 1 if places.ndim == 1 else places.shape[-2]
    made = np.empty((rooms, count, 6))
    made[..., :3] = spread(name, places, (rooms, count, 3))
    made[..., 3:5] = spread(f"{name}_direction", direction, (rooms, count, 2))
    made[..., 5] = spread(f"{name}_omni", omni, (rooms, count))
    return made


def simulate_rooms(
    size: Any,
    source: Any,
    receiver: Any,
    *,
    rt60: Any = None,
    absorption: Any = None,
    rate: float = 16000,
    frames: int = 8000,
    origin: int = 0,
    ambisonic: int = 0,
    source_direction: Any = (0.0, 0.0),
    receiver_direction: Any = (0.0, 0.0),
    source_omni: Any = 1.0,
    receiver_omni: Any = 1.0,
    formula: str = "images",
    air: bool = False,
    temperature: float = 20.0,
    humidity: float = 50.0,
    images_seconds: float = 0.0,
    images_order: Optional[int] = None,
    images_level: float = 0.0,
    tail: bool = False,
    diffuse: bool = False,
    highpass: float = 0.0,
    seed: int = 1,
    threads: Optional[int] = None,
) -> np.ndarray:
    """Computes impulse responses of shoebox rooms by image sources, on the cores of the CPU.

    size: (3,) or (rooms, 3), metres; a room is the box from 0 to its size. source, receiver: (3,), (points, 3) or
        (rooms, points, 3), metres.
    rt60: seconds in which the walls let a band decay by 60 dB; a number, or an array that broadcasts to (rooms, octaves).
    absorption: part of the energy that each wall absorbs, 0 to 1; a number, or an array that broadcasts to
        (rooms, 6, octaves), the walls being x low, x high, y low, y high, floor, ceiling. With `rt60` only their
        proportions count. Octaves are 1, 6 (125 to 4000 Hz) or 9 (62.5 Hz to 16 kHz).
    origin: frame at which the source sounds; negative values leave out the time of flight.
    ambisonic: order 1 to 4 of the receivers, in ACN and SN3D; 0: a receiver has one channel and a pattern.
    source_direction, receiver_direction: azimuth and elevation in degrees, broadcast to (rooms, points, 2). source_omni,
        receiver_omni: the pattern, omni + (1 - omni) cos(angle): 1 omnidirectional, 0.5 cardioid, 0 figure eight.
    formula: "images", "eyring" or "sabine": how the absorption follows from rt60.
    air: the absorption of air by ISO 9613-1, at `temperature` degrees C and `humidity` per cent.
    images_seconds, images_order, images_level: leave out images that arrive after this time in seconds, that have more
        reflections, or that arrive after the energy has fallen by this many dB; 0, None and 0: none are left out.
    tail: noise of the same energy in their place; diffuse: this noise decays alike in all directions.
    highpass: Hz of a Butterworth filter of fourth order; 0: none. seed: of the noise. threads: as in convolve().

    Returns (rooms, sources, receivers, frames) of float32, or (rooms, sources, receivers, channels, frames) with
    `ambisonic`. 1.0 is the pressure at 1 m from the source. Raises ValueError for what no room can be.
    """
    sizes = np.asarray(size, np.float64)
    rooms = max([1] + [array.shape[0] for array, most in ((sizes, 1), (np.asarray(source), 2), (np.asarray(receiver), 2)) if array.ndim > most])
    described = np.zeros((rooms, 3 + 7 * BANDS))
    described[:, :3] = spread("size", sizes, (rooms, 3))
    if rt60 is None and absorption is None:
        raise ValueError("rt60 and absorption are missing; give one of them")
    if absorption is not None:
        described[:, 3:-BANDS] = octaves("absorption", absorption, (rooms, 6)).reshape(rooms, -1)
    if rt60 is not None:
        described[:, -BANDS:] = octaves("rt60", rt60, (rooms,))
    sources = points("source", source, source_direction, source_omni, rooms)
    receivers = points("receiver", receiver, receiver_direction, receiver_omni, rooms)
    frames = whole("frames", frames, 1, 1 << 27)
    order = whole("ambisonic", ambisonic, 0, 4)
    limit = -1 if images_order is None else whole("images_order", images_order, 0, 10**6)
    origin = whole("origin", origin, -(1 << 27), 1 << 27)
    seed = whole("seed", seed, 0, 2**63 - 1)
    made = np.empty((rooms, sources.shape[1], receivers.shape[1], (order + 1) ** 2, frames), np.float32)
    numbers = (rate, temperature, humidity, images_seconds, images_level, highpass)
    _core.simulate_rooms(
        described, sources, receivers, made, origin, order, choose("formula", formula, FORMULAS), limit,
        [float(n) for n in numbers], bool(air), bool(tail), bool(diffuse), seed, thread_count(threads),
    )  # fmt: skip
    return made if order else made[:, :, :, 0]
