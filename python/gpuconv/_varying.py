"""Filters that change with time: a response for each block of a signal."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ._batches import CONVOLVE, broadcast_batch
from ._convolve import is_on_gpu
from ._host import check_taps, compute, thread_count
from ._libraries import check_frames, from_host, host_view, is_traced, same_library, to_host
from ._modes import Mode, choose, whole, window

INTERPOLATION = ("hold", "linear")


def check_blocks(x: tuple[int, ...], h: tuple[int, ...], hop: int) -> None:
    """Raises ValueError unless h, (..., blocks, taps), has a response for each block of `hop` frames of x."""
    if len(h) < 2:
        raise ValueError(f"h has the shape {h}; use (..., blocks, taps)")
    check_frames("x", x, -1)
    check_frames("h", h, -1)
    blocks = -(-x[-1] // hop)
    if h[-2] != blocks:
        raise ValueError(f"h has {h[-2]} responses for {x[-1]} frames; with hop={hop} use {blocks}, h of shape (..., {blocks}, {h[-1]})")


def time_varying(
    x: Any, h: Any, hop: int, *, interpolate: str = "hold", mode: Mode = "full", delay: int = 0, threads: Optional[int] = None
) -> Any:
    """Convolves each block of `hop` frames of x with a filter of its own, and adds the results where they overlap:
    y[n] = sum over m of h[m // hop][n - m] x[m], in 32-bit floats.

    x: (..., frames). h: (..., blocks, taps), blocks = ceil(frames / hop); its batch broadcasts with that of x. Arrays of the
        libraries that convolve() takes.
    hop: frames from one filter to the next, 1 or more. On a GPU filters of up to some hundred taps need no more memory
        than x, h and the result.
    interpolate: "hold": a filter serves its block; "linear": frame m of a block counts 1 - m / hop with the filter of the
        block and m / hop with the next one, so that the filter crosses over; the last block keeps its own.
    mode, delay, threads: as in convolve(), with the number of taps of h.

    Returns an array of the same library, (..., frames of the mode). Tensors of PyTorch that need gradients by x and h get
    them, and so do arrays of JAX that are traced. Raises TypeError and ValueError as convolve().
    """
    hop = whole("hop", hop, 1, 1 << 30)
    linear = choose("interpolate", interpolate, INTERPOLATION) == 1
    traced = is_traced(x) or is_traced(h)
    kind = "jax" if traced else same_library(x, h)
    x, h = (np.asarray(array) if isinstance(array, (list, tuple, float, int)) else array for array in (x, h))
    check_blocks(tuple(x.shape), tuple(h.shape), hop)
    offset, frames = window(mode, x.shape[-1], h.shape[-1], delay)
    flat = h.reshape(tuple(h.shape[:-2]) + (h.shape[-2] * h.shape[-1],))
    if kind == "torch":
        from ._torch import convolve_blocks

        return convolve_blocks(x, flat, hop, linear, offset, frames)
    if traced:
        from ._jax import convolve_blocks as blocks_of_jax

        return blocks_of_jax(x, flat, hop, linear, offset, frames, threads)
    if kind == "cupy" or (kind == "jax" and is_on_gpu(x)):
        from ._cuda import run_library

        return run_library(kind, CONVOLVE, x, flat, offset, frames, hop, linear)
    finish = from_host(x)
    x, flat = to_host("x", x), to_host("h", flat)
    dtype = np.result_type(x.dtype, flat.dtype)
    x, flat = host_view("x", x), host_view("h", flat)
    check_taps(flat)
    broadcast_batch(x.shape, flat.shape)
    y = compute(CONVOLVE, x, flat, offset, frames, thread_count(threads), (), hop, linear)
    return finish(y if dtype == np.float32 else y.astype(dtype))
