"""Parts of a convolution, words and numbers of options, and the messages that refuse others."""

from __future__ import annotations

import operator
from typing import Any, Literal, Sequence

from . import _core

Mode = Literal["full", "same", "valid", "causal"]
MODES = ("full", "same", "valid", "causal")
MAX_DELAY = 1 << 40
BACKENDS = ("auto", "cpu", "cuda")
ALGORITHMS = tuple(_core.algorithm_names())


def choose(name: str, value: str, words: Sequence[str]) -> int:
    """Returns the number of a word, which is its value in the C library."""
    if value not in words:
        raise ValueError(f"{name}={value!r}: use {', '.join(repr(word) for word in words)}")
    return list(words).index(value)


def whole(name: str, value: Any, low: int, high: int, note: str = "") -> int:
    """Returns a whole number from `low` to `high`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: use a whole number") from None
    if not low <= number <= high:
        fits = f"{low} to {high}" if high < 1 << 50 else f"{low} or more"
        raise ValueError(f"{name}={number}: use {fits}{note}")
    return number


def real(name: str, value: Any) -> float:
    """Returns a number."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r}: use a number") from None


def window(mode: str, frames: int, taps: int, delay: int = 0) -> tuple[int, int]:
    """Returns the first frame of the full convolution that a mode keeps, and the number of frames."""
    if delay != 0:
        delay = whole("delay", delay, 0, MAX_DELAY, " frames")
        if mode != "causal":
            raise ValueError(f"delay={delay} needs mode='causal'")
    if mode == "full":
        return 0, frames + taps - 1
    if mode == "causal":
        return delay, frames
    if mode == "same":
        return (taps - 1) // 2, frames
    if mode == "valid":
        if frames < taps:
            raise ValueError(
                f"mode='valid': a signal of {frames} frames has no part without zeros for a response of {taps}; "
                "use a shorter response, or mode='same'"
            )
        return taps - 1, frames - taps + 1
    raise ValueError(f"mode={mode!r}: use {', '.join(repr(word) for word in MODES)}")
