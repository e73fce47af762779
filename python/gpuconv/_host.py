"""Operations on arrays of NumPy along their last dimension, and the number of threads for them."""

from __future__ import annotations

import os
from typing import Optional, Tuple

import numpy as np

from . import _core
from ._batches import CONVOLVE, GRADIENT_RESPONSE, broadcast_batch, share
from ._modes import whole


Gates = Tuple[Optional[np.ndarray], Optional[np.ndarray], Optional[np.ndarray]]


def check_taps(h: np.ndarray) -> None:
    """Raises ValueError if h has NaN or infinite taps."""
    if not _core.all_finite(h):
        raise ValueError("h has NaN or infinite taps; a response must be finite")


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


def expand(array: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """Returns a view of the array with this batch."""
    return array if array.shape[:-1] == batch else np.broadcast_to(array, batch + array.shape[-1:])


def convolve_into(x: np.ndarray, h: np.ndarray, y: np.ndarray, offset: int, threads: int) -> None:
    """Convolves along the last dimension; writes y, of the batch of both, from frame `offset` on."""
    batch = y.shape[:-1]
    shared = share(batch, h.shape[:-1])
    if y.size:
        group = shared[1] if shared is not None else 1
        second = h if shared is not None else expand(h, batch)
        _core.compute((CONVOLVE, group, offset, 0, False), expand(x, batch), second, y, (None, None, None), threads)


def compute(operation: int, a: np.ndarray, b: np.ndarray, offset: int, frames: int, threads: int,
            target: tuple[int, ...] = (), hop: int = 0, linear: bool = False, gates: Gates = (None, None, None)) -> np.ndarray:
    """Computes one of the operations along the last dimension. A gradient by the responses is summed to the batch `target`
    where its rows repeat as those of a job can; else it has one row for each of the batch. With `hop` a row of responses
    has those of all blocks of the signal. gates: pre, post and skip of the whole batch, contiguous."""
    batch = broadcast_batch(a.shape, b.shape)
    gradient = operation == GRADIENT_RESPONSE
    shared = share(batch, target if gradient else b.shape[:-1])
    shape = (target if gradient and shared is not None else batch) + (frames,)
    if 0 in batch:
        return np.zeros(shape, np.float32)
    made = np.empty(shape, np.float32)
    if made.size:
        second = expand(b, batch) if gradient or shared is None else b
        if hop and not gradient:
            second = np.ascontiguousarray(second)
        group = shared[1] if shared is not None else 1
        _core.compute((operation, group, offset, hop, linear), expand(a, batch), second, made, gates, threads)
    return made


class HostPrepared:
    """Responses whose transforms are kept."""

    def __init__(self, h: np.ndarray) -> None:
        self.shape = h.shape
        self.kept = _core.Prepared(h) if h.size else None
        self.h = h.copy() if h.ndim > 2 else h  # for batches in which the rows do not repeat as those of a job can

    def convolve(self, x: np.ndarray, y: np.ndarray, offset: int, threads: int) -> None:
        """Writes y, of the batch of x and the responses, from frame `offset` on."""
        batch = y.shape[:-1]
        shared = share(batch, self.shape[:-1])
        if shared is None:
            convolve_into(x, self.h, y, offset, threads)
        elif y.size and self.kept is not None:
            self.kept.convolve(expand(x, batch), y, shared[1], offset, threads)

    def plan(self, rows: int, frames: int, threads: int) -> tuple[str, str, str]:
        """Returns the backend, the device, and a sentence on how `rows` signals of `frames` frames are convolved."""
        return "cpu", "CPU", _core.plan(rows, frames, self.shape[-1], threads)
