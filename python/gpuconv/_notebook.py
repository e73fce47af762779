"""Drawings and players that notebooks show for responses and sounds."""

from __future__ import annotations

import base64
import html
import io
import wave
from typing import Any, Optional, Sequence

import numpy as np

MOST_CURVES = 8
MOST_SECONDS = 30  # of a player
POINTS = 800  # of a curve in time


def length_text(frames: int, rate: float) -> str:
    """Returns "48000 frames, 1 s at 48000 Hz"."""
    return f"{frames} frames, {frames / rate:.3g} s at {rate:g} Hz"


def player(samples: np.ndarray, rate: float) -> str:
    """Returns an HTML player of the first two channels of (channels, frames), the loudest sample at -1 dBFS."""
    heard = samples[:2, : int(MOST_SECONDS * rate)]
    peak = float(np.abs(heard).max(initial=0))
    pcm = np.round(heard * (10 ** (-1 / 20) * 32767 / (peak or 1))).astype("<i2")
    store = io.BytesIO()
    with wave.open(store, "wb") as file:
        file.setnchannels(len(heard))
        file.setsampwidth(2)
        file.setframerate(round(rate))
        file.writeframes(pcm.T.tobytes())
    data = base64.b64encode(store.getvalue()).decode()
    return f'<audio controls preload="metadata" src="data:audio/wav;base64,{data}"></audio>'


def page(title: str, samples: np.ndarray, rate: float, picture: Optional[bytes] = None) -> str:
    """Returns a title, a picture and a player as HTML."""
    shown = ""
    if picture is not None:
        shown = f'<img style="max-width:100%" alt="" src="data:image/png;base64,{base64.b64encode(picture).decode()}"><br>'
    return f"<div>{html.escape(title)}</div>{shown}{player(samples, rate)}"


def _envelope(taps: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns times in seconds and the largest magnitude in each of at most POINTS parts."""
    step = -(-len(taps) // POINTS)
    padded = np.zeros(-(-len(taps) // step) * step)
    padded[: len(taps)] = np.abs(taps)
    return np.arange(0, len(padded), step) / rate, padded.reshape(-1, step).max(1)


def _spectrum(taps: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns frequencies and the mean power around each in sixths of an octave, from 20 Hz up, or
    from 1/1000 of the highest."""
    size = max(1 << 14, 1 << (len(taps) - 1).bit_length())
    total = np.concatenate([[0], np.cumsum(np.square(np.abs(np.fft.rfft(taps, size))))])
    lowest = min(20, rate / 2000)
    centres = lowest * 2 ** np.arange(0, np.log2(rate / 2 / lowest) - 1 / 12, 1 / 12)
    low = np.floor(centres * 2 ** (-1 / 12) * size / rate).astype(int)
    high = np.minimum(np.ceil(centres * 2 ** (1 / 12) * size / rate).astype(int) + 1, len(total) - 1)
    return centres, (total[high] - total[low]) / (high - low)


def figure(title: str, curves: Sequence[tuple[str, np.ndarray]], rate: float) -> Any:
    """Returns a figure of matplotlib: each curve's level over time and over frequency, in one colour.

    Raises ModuleNotFoundError without matplotlib.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(9.6, 3), layout="constrained", facecolor="white")
    FigureCanvasAgg(made)
    time, frequency = made.subplots(1, 2)
    unit = 1000 if all(len(taps) < 0.2 * rate for _, taps in curves) else 1
    peak = max(float(np.abs(taps).max(initial=0)) for _, taps in curves) or 1.0
    for name, taps in curves[:MOST_CURVES]:
        at, level = _envelope(taps, rate)
        time.plot(unit * at, 20 * np.log10(np.maximum(level / peak, 1e-5)), linewidth=0.8, label=name)
        at, power = _spectrum(taps, rate)
        frequency.semilogx(at, 10 * np.log10(np.maximum(power, 1e-20)), linewidth=1)
    top = max(float(line.get_ydata().max()) for line in frequency.lines)
    time.set(xlabel="time in ms" if unit > 1 else "time in s", ylabel="level in dB of the peak", ylim=(-100, 3))
    frequency.set(xlabel="frequency in Hz", ylabel="gain in dB", xlim=(min(20, rate / 2000), rate / 2), ylim=(top - 60, top + 3))
    frequency.xaxis.set_major_formatter("{x:g}")
    for axes in (time, frequency):
        axes.grid(alpha=0.3)
    if len(curves) > 1:
        made.legend(loc="outside right upper", fontsize="small")
    left_out = f" ({MOST_CURVES} of {len(curves)} routes)" if len(curves) > MOST_CURVES else ""
    made.suptitle(title + left_out, fontsize="medium")
    return made


def png(drawing: Any) -> bytes:
    """Returns a figure as PNG."""
    store = io.BytesIO()
    drawing.savefig(store, format="png", dpi=96)
    return store.getvalue()
