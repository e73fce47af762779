"""Impulse responses of shoebox rooms by image sources, through gpuconv_rooms.h."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _core as _binding
from ._host import thread_count
from ._libraries import library
from ._modes import choose, whole
from ._sofa import SofaSet

_core: Any = _binding  # builds without CUDA lack the classes of the device
BANDS = 9  # octaves from 62.5 Hz to 16 kHz
FORMULAS = ("images", "eyring", "sabine")
Options = tuple[tuple[int, int, int, int], tuple[float, ...], tuple[bool, bool, bool, bool]]  # as _core.simulate_rooms takes them
_plans: dict[Any, Any] = {}
MAX_PLANS = 64


class _Doubles:
    """Arrays of doubles in the memory of `like`: of NumPy, CuPy, or PyTorch."""

    def __init__(self, kind: str, like: Any) -> None:
        self.kind, self.like = kind, like
        if kind == "torch":
            import torch

            self.empty = lambda shape: like.new_empty(shape, dtype=torch.float64)
            self.array = lambda values: torch.as_tensor(values, dtype=torch.float64, device=like.device).detach()
        else:
            import importlib

            module = importlib.import_module(kind)
            self.empty = lambda shape: module.empty(shape, np.float64)
            self.array = lambda values: module.asarray(values, np.float64)

    def seeds(self, values: Any, rooms: int) -> Any:
        """Returns whole numbers, one for each room, contiguous, in 64 bits."""
        if tuple(values.shape) != (rooms,):
            raise ValueError(f"seed has the shape {tuple(values.shape)}; use a whole number, or ({rooms},)")
        return values.long().contiguous() if self.kind == "torch" else np.ascontiguousarray(values, np.uint64) if self.kind == "numpy" else values.astype("uint64")

    def finish(self, made: Any) -> Any:
        """Returns a result of NumPy as a tensor if there are tensors."""
        if self.kind != "numpy" or self.like is None:
            return made
        import torch

        return torch.from_numpy(made)

    def put(self, name: str, to: Any, values: Any) -> None:
        """Broadcasts values into an array."""
        array = values if isinstance(values, (int, float)) else self.array(values)
        try:
            to[...] = array
        except (ValueError, RuntimeError):
            raise ValueError(f"{name} has the shape {tuple(array.shape)}, which does not broadcast to {tuple(to.shape)}") from None

    def put_octaves(self, name: str, to: Any, values: Any) -> bool:
        """Broadcasts values of 1, 6 (125 to 4000 Hz) or 9 octaves in the last dimension. Returns whether it is 1."""
        array = self.array(values) if not isinstance(values, (int, float)) else np.float64(values)
        count = array.shape[-1] if array.ndim else 1
        if count not in (1, 6, BANDS):
            raise ValueError(f"{name} has {count} octaves in its last dimension; use 1, 6 (125 to 4000 Hz) or 9 (62.5 Hz to 16 kHz)")
        if count == 6:
            self.put(name, to[..., :1], array[..., :1])
            self.put(name, to[..., 1:7], array)
            self.put(name, to[..., 7:], array[..., 5:])
        else:
            self.put(name, to, array if array.ndim else float(array))
        return count == 1

    def points(self, name: str, at: Any, direction: Any, omni: Any, rooms: int) -> Any:
        """Returns the points of all rooms, (rooms, points, 6): place, azimuth, elevation and pattern."""
        places = self.array(at)
        if places.ndim == 0 or places.ndim > 3 or places.shape[-1] != 3:
            raise ValueError(f"{name} has the shape {tuple(places.shape)}; use (3,), (points, 3) or (rooms, points, 3)")
        made = self.empty((rooms, 1 if places.ndim == 1 else places.shape[-2], 6))
        self.put(name, made[..., :3], places)
        self.put(f"{name}_direction", made[..., 3:5], 0.0 if direction is None else direction)
        self.put(f"{name}_omni", made[..., 5], omni)
        return made


def _home(given: dict[str, Any]) -> tuple[_Doubles, dict[str, Any]]:
    """Finds where rooms are simulated: on the device of the first array on a GPU, or on the host, with arrays of NumPy."""
    found = {name: library(value, name) for name, value in given.items() if value is not None}
    tensors = [given[name] for name, kind in found.items() if kind == "torch"]
    arrays = [given[name] for name, kind in found.items() if kind == "cupy"]
    if tensors and arrays:
        raise TypeError("arrays of PyTorch and of CuPy; convert one of them")
    like = next((array for array in arrays or tensors if arrays or array.is_cuda), None)
    if like is not None:
        return _Doubles("cupy" if arrays else "torch", like), given
    host = {name: value if found.get(name) is None or isinstance(value, (int, float)) else np.asarray(value.detach() if found[name] == "torch" else value)
            for name, value in given.items()}
    return _Doubles("numpy", tensors[0] if tensors else None), host


def simulate_described(kind: str, room: Any, source: Any, receiver: Any, seeds: Any, seed: int, options: Options, frames: int,
                       threads: int, ears: Optional[SofaSet] = None) -> Any:
    """Simulates rooms as rows of doubles, contiguous. Returns (rooms, sources, receivers, channels, frames)."""
    channels = (options[0][1] + 1) ** 2 if ears is None else ears.receivers
    shape = (room.shape[0], source.shape[1], receiver.shape[1], channels, frames)
    if kind == "numpy":
        made = np.empty(shape, np.float32)
        _core.simulate_rooms((room, source, receiver), made, options, (seed, seeds), None if ears is None else ears._set, threads)
        return made
    from ._cuda import _device
    from ._cuda_libraries import F32, adapter

    on = adapter(kind)
    device = on.device(room)
    with on.current(device):
        key = (device, shape, options, ears)
        plan = _plans.get(key)
        if plan is None:
            if len(_plans) >= MAX_PLANS:
                _plans.clear()
            plan = _plans[key] = _core.CudaRooms(_device(device), (*shape[:3], frames), options, None if ears is None else ears._set)
        made, workspace = on.empty(room, shape, F32), on.bytes(room, plan.workspace)
        arrays = tuple(0 if array is None else on.pointer(array) for array in (room, source, receiver, seeds))
        plan.run(arrays, seed, on.pointer(made), on.pointer(workspace), on.stream(room))
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
    source_direction: Any = None,
    receiver_direction: Any = None,
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
    seed: Any = 1,
    ears: Optional[SofaSet] = None,
    threads: Optional[int] = None,
) -> Any:
    """Computes impulse responses of shoebox rooms by image sources, on the cores of the CPU, or on the GPU where its arrays are.

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
    highpass: Hz of a Butterworth filter of fourth order; 0: none. seed: of the noise; a whole number, or an array of one for
        each room. threads: as in convolve().
    ears: an open set at `rate`, SofaSet(path, rate): a receiver has a channel for each ear of its head, which looks in its
        direction; every image arrives through the response of the nearest measured direction.

    Returns (rooms, sources, receivers, frames) of float32, or (rooms, sources, receivers, channels, frames) with
    `ambisonic` or `ears`. 1.0 is the pressure at 1 m from the source. Raises ValueError for what no room can be.

    If an array is a tensor of PyTorch, so is the result; if one is a tensor or an array of CuPy on a GPU, the result is
    computed there, on the current stream, without waiting; graphs can capture it where all arrays are on the GPU. Their
    values are not checked there: an impossible room gives silence, and walls absorb at most 99 % for a decay time.
    """
    on, given = _home({"size": size, "source": source, "receiver": receiver, "rt60": rt60, "absorption": absorption, "seed": seed,
                       "source_direction": source_direction, "receiver_direction": receiver_direction,
                       "source_omni": source_omni, "receiver_omni": receiver_omni})  # fmt: skip
    if rt60 is None and absorption is None:
        raise ValueError("rt60 and absorption are missing; give one of them")
    ranks = (("size", 1), ("source", 2), ("receiver", 2))
    rooms = max([1] + [given[name].shape[0] for name, most in ranks if getattr(given[name], "ndim", 0) > most])
    described = on.empty((rooms, 3 + 7 * BANDS))
    described[...] = 0.0
    on.put("size", described[:, :3], given["size"])
    alike = True
    if absorption is not None:
        absorbed = on.empty((rooms, 6, BANDS))
        alike = on.put_octaves("absorption", absorbed, given["absorption"])
        described[:, 3:-BANDS] = absorbed.reshape(rooms, 6 * BANDS)
    if rt60 is not None:
        alike = on.put_octaves("rt60", described[:, -BANDS:], given["rt60"]) and alike
    sources, receivers = (on.points(name, given[name], given[f"{name}_direction"], given[f"{name}_omni"], rooms)
                          for name in ("source", "receiver"))  # fmt: skip
    frames = whole("frames", frames, 1, 1 << 27)
    order = whole("ambisonic", ambisonic, 0, 4)
    limit = -1 if images_order is None else whole("images_order", images_order, 0, 10**6)
    origin = whole("origin", origin, -(1 << 27), 1 << 27)
    seeds = None
    if getattr(given["seed"], "ndim", 0) > 0:
        seeds, seed = on.seeds(given["seed"], rooms), 1
    numbers = tuple(float(n) for n in (rate, temperature, humidity, images_seconds, images_level, highpass))
    options = ((origin, order, choose("formula", formula, FORMULAS), limit), numbers, (bool(air), bool(tail), bool(diffuse), alike))
    made = simulate_described(on.kind, described, sources, receivers, seeds, whole("seed", seed, 0, 2**63 - 1), options, frames,
                              thread_count(threads), ears)  # fmt: skip
    return on.finish(made if order or ears is not None else made[:, :, :, 0])
