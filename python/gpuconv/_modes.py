"""Parts of a convolution, words of options, and the messages that refuse others."""

from __future__ import annotations

from typing import Literal, Sequence

Mode = Literal["full", "same", "valid", "causal"]
MODES = ("full", "same", "valid", "causal")
BACKENDS = ("auto", "cpu", "cuda")
ALGORITHMS = ("auto", "direct", "overlap-save", "partitioned")


def choose(name: str, value: str, words: Sequence[str]) -> int:
    """Returns the number of a word, which is its value in the C library."""
    if value not in words:
        raise ValueError(f"{name}={value!r}: use {', '.join(repr(word) for word in words)}")
    return list(words).index(value)


def window(mode: str, frames: int, taps: int, delay: int = 0) -> tuple[int, int]:
    """Returns the first frame of the full convolution that a mode keeps, and the number of frames."""
    if not hasattr(delay, "__index__"):
        raise TypeError(f"delay={delay!r}: use a whole number of frames")
    if mode != "causal" and delay != 0:
        raise ValueError(f"delay={delay} needs mode='causal'")
    if mode == "full":
        return 0, frames + taps - 1
    if mode == "causal":
        if delay < 0:
            raise ValueError(f"delay={delay}: use 0 or more frames")
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
