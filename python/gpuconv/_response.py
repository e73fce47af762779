"""Impulse responses: reading, preparing, editing, and their room-acoustic figures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Sequence, TypedDict, Union

import numpy as np

from . import _core
from ._libraries import host_view, to_host
from ._modes import choose

if TYPE_CHECKING:
    from typing_extensions import Unpack

Path = Union[str, "os.PathLike[str]"]
LAYOUTS = ("auto", "source", "output", "packed", "stereo")
ALIGNMENTS = ("none", "onset", "peak")
NORMALIZATIONS = ("none", "peak", "l1", "energy", "loudness")
MATRICES = (".conf", ".txt", ".matrix")


class Preparation(TypedDict, total=False):
    """Steps that prepare a response, named as the options of the command and applied in this order."""

    ir_layout: str  #: "auto", "source", "output", "packed", "stereo": order of the channels
    ir_start: float  #: seconds that are cut off at the beginning
    ir_length: float  #: seconds that are kept
    trim: float  #: dB relative to the peak: the end below it is cut off
    align: str  #: "none", "onset", "peak": time zero
    reverse: bool  #: reversed in time
    stretch: float  #: new / old length, 0.01..100
    minimum_phase: bool
    fade: float  #: seconds of fade-out at the end
    series: Sequence[Path]  #: files of responses that are put in series
    predelay: float  #: seconds of silence before it
    normalize: str  #: "none", "peak", "l1", "energy", "loudness"
    ir_gain: float  #: dB
    wet: float  #: gain of the response in dB
    dry: Optional[float]  #: gain of the signal itself in dB; None: without it


def steps_of(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the steps with the names and numbers of the C library."""
    words = {"ir_layout": LAYOUTS, "align": ALIGNMENTS, "normalize": NORMALIZATIONS}
    steps: dict[str, Any] = {}
    for name, value in given.items():
        if name not in Preparation.__annotations__:
            raise TypeError(f"no step {name!r}; the steps are {', '.join(Preparation.__annotations__)}")
        key = name.removeprefix("ir_")
        if name in words:
            steps[key] = choose(name, value, words[name])
        elif name == "series":
            if isinstance(value, (str, os.PathLike)):
                value = [value]
            steps[key] = [os.fspath(path) for path in value]
        elif value is not None:
            steps[key] = float(value)
    return steps


class ImpulseResponse:
    """An impulse response: routes from inputs to outputs, each with its taps, at a rate. Immutable.

    ImpulseResponse(taps, rate): taps of shape (frames,) or (channels, frames). Files: load_ir(), prepare_ir().
    Every edit returns a new response, and `history` tells what was done.
    """

    __slots__ = ("_ir", "routed")

    def __init__(self, taps: Any, rate: float) -> None:
        array = host_view("taps", to_host("taps", taps))
        if array.ndim == 1:
            array = array[np.newaxis]
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"taps of shape {array.shape}: use (frames,) or (channels, frames), with at least one frame")
        self._ir = _core.Response.from_taps(np.ascontiguousarray(array), rate)
        self.routed = False

    @classmethod
    def _of(cls, ir: Any, routed: bool) -> "ImpulseResponse":
        made = cls.__new__(cls)
        made._ir = ir
        made.routed = routed
        return made

    def __repr__(self) -> str:
        return (
            f"<gpuconv.ImpulseResponse {self.inputs} to {self.outputs}, {self.frames} frames, "
            f"{self.frames / self.rate:.3g} s at {self.rate:g} Hz>"
        )

    @property
    def inputs(self) -> int:
        """Number of inputs; 1 before route()."""
        return int(self._ir.inputs)

    @property
    def outputs(self) -> int:
        """Number of outputs; before route(), the channels of the file."""
        return int(self._ir.outputs)

    @property
    def frames(self) -> int:
        """Length of every route."""
        return int(self._ir.frames)

    @property
    def rate(self) -> float:
        """Frames per second."""
        return float(self._ir.rate)

    @property
    def lead(self) -> int:
        """Frames before the response's time zero."""
        return int(self._ir.lead)

    @property
    def history(self) -> str:
        """Changes since the response was read, such as "trimmed to 1.2 s; reversed"."""
        return str(self._ir.history)

    def taps(self, input: int = 0, output: int = 0) -> Optional[np.ndarray]:
        """Returns the taps of a route, read-only and without a copy; None if there is no such route."""
        found: Any = self._ir.taps(input, output)
        return found if found is None else np.asarray(found)

    def numpy(self) -> np.ndarray:
        """Returns the taps as (outputs, frames), or (inputs, outputs, frames) if there are several inputs."""
        full = np.zeros((self.inputs, self.outputs, self.frames), np.float32)
        for i in range(self.inputs):
            for o in range(self.outputs):
                taps = self.taps(i, o)
                if taps is not None:
                    full[i, o] = taps
        return full[0] if self.inputs == 1 else full

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return self.numpy().astype(dtype or np.float32)

    def onset(self, decibels: float = -60.0) -> int:
        """Returns the frames before the response first reaches a level relative to its peak."""
        return int(self._ir.onset(decibels))

    def peak(self) -> tuple[int, float]:
        """Returns the first frame with the largest magnitude of all channels, and that magnitude."""
        at, magnitude = self._ir.peak()
        return int(at), float(magnitude)

    def route(self, inputs: int, layout: str = "auto") -> "ImpulseResponse":
        """Routes the channels for signals of `inputs` channels: one for all, one each, or true stereo (LL LR RL RR)."""
        return self._of(self._ir.route(inputs, choose("layout", layout, LAYOUTS)), True)

    def resample(self, rate: float) -> "ImpulseResponse":
        """Resamples (soxr, very high quality); the level is scaled so that convolutions keep theirs."""
        return self._of(self._ir.resample(rate), self.routed)

    def cut(self, start: int, frames: int = -1) -> "ImpulseResponse":
        """Keeps `frames` frames (-1: all) from frame `start` on."""
        return self._of(self._ir.cut(start, frames), self.routed)

    def trim(self, decibels: float) -> "ImpulseResponse":
        """Cuts off the end that stays below a level relative to the peak, such as -60."""
        return self._of(self._ir.trim(decibels), self.routed)

    def align(self, how: str) -> "ImpulseResponse":
        """Removes the delay at the beginning: "onset" cuts it off, "peak" makes the peak time zero."""
        return self._of(self._ir.align(choose("align", how, ALIGNMENTS)), self.routed)

    def fade(self, fade_in: int = 0, fade_out: int = 0) -> "ImpulseResponse":
        """Fades in and out over frames, with half a cosine each."""
        return self._of(self._ir.fade(fade_in, fade_out), self.routed)

    def reverse(self) -> "ImpulseResponse":
        """Reverses in time."""
        return self._of(self._ir.reverse(), self.routed)

    def delay(self, frames: int) -> "ImpulseResponse":
        """Puts silence before the response."""
        return self._of(self._ir.delay(frames), self.routed)

    def stretch(self, factor: float) -> "ImpulseResponse":
        """Makes the response longer by a factor, which moves its spectrum down."""
        return self._of(self._ir.stretch(factor), self.routed)

    def minimum_phase(self) -> "ImpulseResponse":
        """Replaces every channel by the minimum-phase response with the same magnitudes."""
        return self._of(self._ir.minimum_phase(), self.routed)

    def series(self, other: "ImpulseResponse") -> "ImpulseResponse":
        """Puts another response of the same rate in series."""
        return self._of(self._ir.series(other._ir), self.routed)

    def gain(self, decibels: float) -> "ImpulseResponse":
        """Changes the level."""
        return self._of(self._ir.gain(decibels), self.routed)

    def normalize(self, how: str) -> "ImpulseResponse":
        """Applies one gain: the largest tap becomes 1 ("peak"), no input can clip ("l1"), white noise ("energy") or pink
        noise ("loudness") keeps its level. Needs a routed response; an unrouted one is routed for one input."""
        ir = self._ir if self.routed else self._ir.route(1, 0)
        return self._of(ir.normalize(choose("normalize", how, NORMALIZATIONS)), True)

    def mix(self, wet: float = 0.0, dry: float = float("-inf")) -> "ImpulseResponse":
        """Mixes the input into a routed response; levels in dB."""
        return self._of(self._ir.mix(wet, dry), True)


def load_ir(path: Path, *, rate: float = 48000.0) -> ImpulseResponse:
    """Reads a response: any file of libsndfile, one channel for each output; or a matrix (.conf, .txt, .matrix).

    rate: of a matrix whose lines name no file.
    """
    name = os.fspath(path)
    if name.lower().endswith(MATRICES):
        return ImpulseResponse._of(_core.Response.load_matrix(name, rate), True)
    return ImpulseResponse._of(_core.Response.load(name), False)


def prepare_ir(path: Path, *, inputs: int, rate: float, **steps: "Unpack[Preparation]") -> ImpulseResponse:
    """Reads a response, resamples it to `rate`, applies the steps, and routes it for `inputs` channels.

    The steps are the options of the command, with underscores: prepare_ir("hall.flac", inputs=2, rate=48000,
    trim=-60, normalize="loudness", predelay=0.02). See Preparation.
    """
    return ImpulseResponse._of(_core.prepare(os.fspath(path), steps_of(dict(steps)), inputs, rate), True)


@dataclass(frozen=True)
class Acoustics:
    """Room-acoustic figures of one channel after ISO 3382-1; NaN where the decay does not determine them."""

    edt: float  #: early decay time in seconds
    t20: float  #: reverberation time from -5 to -25 dB, in seconds
    t30: float  #: reverberation time from -5 to -35 dB, in seconds
    c80: float  #: clarity in dB
    d50: float  #: definition, 0..1
    centre: float  #: centre time in seconds
    noise: float  #: noise floor in dB relative to the highest energy
    onset: float  #: seconds until the direct sound


def acoustics(ir: Any, rate: Optional[float] = None, *, band: float = 0.0) -> list[Acoustics]:
    """Computes the figures of every channel.

    ir: a file, an ImpulseResponse, or an array (frames,) or (channels, frames), which needs `rate`.
    band: centre of an octave in Hz; 0: the whole spectrum.
    """
    if isinstance(ir, (str, os.PathLike)):
        ir = load_ir(ir)
    if isinstance(ir, ImpulseResponse):
        taps, rate = ir.numpy().reshape(-1, ir.frames), ir.rate
    elif rate is None:
        raise TypeError("an array needs its rate: acoustics(array, rate)")
    else:
        taps = ImpulseResponse(ir, rate).numpy()
    if not band >= 0 or (band > 0 and band * 2**0.5 >= rate / 2):
        raise ValueError(f"band={band}: use 0, or the centre of an octave below {rate / 8**0.5:.0f} Hz")
    return [Acoustics(*_core.acoustics(taps, channel, rate, band)) for channel in range(len(taps))]
