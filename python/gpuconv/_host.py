"""Convolution of arrays of NumPy along their last dimension, and the number of threads for it."""

from __future__ import annotations

import os
from typing import Optional

import numpy as np

from . import _core
from ._libraries import axis_hint
from ._modes import whole


def thread_count(threads: Optional[int]) -> int:
    """Returns the threads to use: an argument, GPUCONV_THREADS, or 0 for one per core."""
    if threads is None:
        text = os.environ.get("GPUCONV_THREADS", "")
        if not text:
            return 0
        if not text.isdigit() or not 1 <= int(text) <= 1024:
            raise ValueError(f"GPUCONV_THREADS={text!r}: use 1 to 1024")
        return int(text)
    return whole("threads", threads, 0, 1024, "; 0 stands for all cores")


def broadcast_batch(x: np.ndarray, h_batch: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the batch of a result: that of x and `h_batch`, broadcast."""
    if not h_batch or x.shape[:-1] == h_batch:
        return x.shape[:-1]
    try:
        return np.broadcast_shapes(x.shape[:-1], h_batch)
    except ValueError:
        raise ValueError(
            f"the batch {x.shape[:-1]} of x and the batch {h_batch} of h do not broadcast: "
            f"dimensions must be equal, or 1{axis_hint(x.shape)}"
        ) from None


def expand(array: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """Returns a view of the array with this batch."""
    return array if array.shape[:-1] == batch else np.broadcast_to(array, batch + array.shape[-1:])


def convolve_host(x: np.ndarray, h: np.ndarray, offset: int, frames: int, reverse: bool, threads: int) -> np.ndarray:
    """Convolves along the last dimension and keeps `frames` frames from `offset` on. `reverse`: h is read backwards."""
    batch = broadcast_batch(x, h.shape[:-1])
    y = np.empty(batch + (frames,), np.float32)
    if y.size:
        _core.convolve(expand(x, batch), expand(h, batch), y, offset, reverse, threads)
    return y
