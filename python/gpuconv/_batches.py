"""Operations on rows, and how the batches of their arrays fit together: the same in host memory and on a GPU."""

from __future__ import annotations

from typing import Optional

import numpy as np

from ._libraries import axis_hint

# (x, h) -> y; (g, h) -> x; (g, x) -> h; (g, x, h) -> x, h
CONVOLVE, GRADIENT_SIGNAL, GRADIENT_RESPONSE, GRADIENT_BOTH = 0, 1, 2, 3


def broadcast_batch(x: tuple[int, ...], h: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the batch of a result: those of arrays of the shapes x and h, broadcast."""
    a, b = x[:-1], h[:-1]
    if not b or a == b:
        return a
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ValueError(
            f"the batch {a} of x and the batch {b} of h do not broadcast: dimensions must be equal, or 1{axis_hint(x)}"
        ) from None


def share(batch: tuple[int, ...], responses: tuple[int, ...]) -> Optional[tuple[int, int]]:
    """Returns the rows of the responses, and how many rows of the batch in succession share one, where row i of the
    batch has response (i // group) % rows. None: the responses do not repeat in this way."""
    if not responses:
        return 1, 1
    padded = (1,) * (len(batch) - len(responses)) + responses
    varied = [d for d, size in enumerate(padded) if size != 1]
    if not varied:
        return 1, 1
    first, last = varied[0], varied[-1]
    if padded[first : last + 1] != batch[first : last + 1]:
        return None
    rows = group = 1
    for size in batch[first : last + 1]:
        rows *= size
    for size in batch[last + 1 :]:
        group *= size
    return rows, group
