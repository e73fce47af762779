"""Impulse responses: reading, preparing, editing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, TypedDict, Union

import numpy as np

from . import _core
from ._libraries import on_host
from ._modes import choose, real, whole
from ._notebook import figure, length_text, page, png

if TYPE_CHECKING:
    from typing_extensions import Unpack

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
PATHS = (str, bytes, os.PathLike)
LONGEST = 1 << 40  # frames


SETTINGS = {name: (kind, tuple(words.split("|"))) for name, kind, words in _core.settings()}


class Shape(TypedDict, total=False):
    """Steps that shape a response, named as the options of the command and applied in this order."""

    ir_layout: str  #: "auto", "source", "output", "packed", "stereo", "hesuvi": order of the channels
    ir_rate: float  #: sampling rate of a file that states none: a text of coefficients, or .npy
    ir_raw: str  #: "RATE,CHANNELS,ENCODING" of samples without a header, such as "48000,1,double"
    ir_start: float  #: seconds that are cut off at the beginning
    ir_length: float  #: seconds that are kept
    trim: float  #: dB relative to the peak: the end below it is cut off
    align: str  #: "none", "onset", "peak": time zero
    reverse: bool  #: reversed in time
    stretch: float  #: new / old length, 0.01..100
    minimum_phase: bool
    fade: float  #: seconds of fade-out at the end
    series: Union[Path, Sequence[Path]]  #: files of responses that are put in series
    predelay: float  #: seconds of silence before it
    normalize: str  #: "none", "peak", "l1", "energy", "loudness"
    ir_gain: float  #: dB


class Preparation(Shape, total=False):
    """Steps that prepare a response: those of Shape, levels, and directions of a SOFA file."""

    wet: float  #: gain of the response in dB
    dry: Optional[float]  #: gain of the signal itself in dB; None: without it
    direction: Union[str, Sequence[float]]  #: of a SOFA file: azimuth (to the left), elevation in degrees, distance in m
    layout: Path  #: of a SOFA file: "mono", "stereo", "5.1", "7.1", "5.1.4", "7.1.4", "ambisonic", or a file of directions
    yaw: float  #: of a SOFA file: degrees by which the head is turned to the left
    pitch: float  #: the same, up
    roll: float  #: the same, to the right
    interpolate: str  #: of a SOFA file: "nearest", "triangle" (the three measured directions around one), "auto": triangle
    by_distance: bool  #: of a SOFA file: gain of the measured distance divided by that of the direction
    decode: str  #: of a SOFA file with layout="ambisonic": "ls", "aligned", "magls" above order x 624 Hz; "auto": "magls"
    ambisonics: str  #: the same: "acn-sn3d", "acn-n3d", "fuma"
    diffuse_eq: bool  #: the same: every frequency gets the energy of the measurements over all directions


def path_of(name: str, path: Any) -> str:
    """Returns the name of a file as a string."""
    try:
        found = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"{name}={path!r}: use the name of a file, not {type(path).__name__}") from None
    try:
        encoded = os.fsencode(found)
    except UnicodeEncodeError:
        encoded = b""
    if not encoded or b"\0" in encoded:
        raise ValueError(f"{name}={found!r}: no name of a file")
    return found


def word_of(name: str, value: str) -> int:
    """Returns the number of a word of a setting, which is its value in the C library."""
    return choose(name, value, SETTINGS[name][1])


def text_of(name: str, value: Any) -> str:
    """Returns the text of a setting's value, as the command and manifests have it."""
    kind, words = SETTINGS[name]
    if kind == "word":
        choose(name, value, words)
    if kind == "flag":
        return str(int(bool(value)))
    if name in ("series", "layout", "path", "receiver_path", "head"):
        return path_of(name, value)
    if kind != "number" and isinstance(value, str):
        return value
    if name == "compression":
        return str(whole(name, value, 0, 8))
    if name == "direction":
        return ",".join(repr(real(name, number)) for number in value)
    return repr(real(name, value))


def texts_of(given: Mapping[str, Any], known: Iterable[str] = SETTINGS) -> list[tuple[str, str]]:
    """Returns the names and texts of settings; None stands for the default."""
    for name in given:
        if name not in known:
            raise TypeError(f"no step {name!r}; the steps are {', '.join(known)}")
    texts = []
    for name, value in given.items():
        several = name == "series" and value is not None and not isinstance(value, PATHS)
        texts += [(name, text_of(name, one)) for one in (value if several else [value]) if one is not None]
    return texts


class ImpulseResponse:
    """An impulse response: routes from inputs to outputs, each with its taps, at a rate. Immutable.

    ImpulseResponse(taps, rate): taps of shape (frames,) or (channels, frames). ImpulseResponse.matrix(routes, rate): a
    matrix of routes. Files: load_ir(), prepare_ir().
    Every edit returns a new response, and `history` tells what was done.
    """

    __slots__ = ("_ir", "routed")

    def __init__(self, taps: Any, rate: float) -> None:
        array = on_host("taps", taps)
        if array.ndim == 1:
            array = array[np.newaxis]
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"taps of shape {array.shape}: use (frames,) or (channels, frames), with at least one frame")
        if array.shape[0] > 1024:
            raise ValueError(f"taps of shape {array.shape}: {array.shape[0]} channels; use (channels, frames), such as taps.T")
        self._ir = _core.Response.from_taps(np.ascontiguousarray(array), real("rate", rate))
        self.routed = False

    @classmethod
    def matrix(
        cls, routes: Any, rate: float, *, inputs: Optional[int] = None, outputs: Optional[int] = None
    ) -> "ImpulseResponse":
        """Makes a routed response from the taps of its routes: several loudspeakers to two ears, a room of microphones.

        routes: {(input, output): taps}, with numbers from 0 and taps of any lengths, zeros after them; absent routes
            cost nothing. Or an array (inputs, outputs, frames).
        inputs, outputs: None: as many as the routes name.
        """
        made = routes if isinstance(routes, Mapping) else _routes_of(on_host("routes", routes))
        if not made:
            raise ValueError("routes: at least one is needed")
        for place in made:
            if not (isinstance(place, tuple) and len(place) == 2 and all(isinstance(n, (int, np.integer)) for n in place)):
                raise TypeError(f"routes: the key {place!r} is no pair (input, output)")
        sizes = [max(place[side] for place in made) + 1 for side in (0, 1)]
        for side, (name, wish) in enumerate((("inputs", inputs), ("outputs", outputs))):
            if wish is not None and whole(name, wish, 1, 1024) < sizes[side]:
                raise ValueError(f"{name}={wish}: a route names number {sizes[side] - 1}, counted from 0")
            sizes[side] = sizes[side] if wish is None else whole(name, wish, 1, 1024)
            if min(place[side] for place in made) < 0 or sizes[side] > 1024:
                raise ValueError(f"routes: {name} must be 1 to 1024, numbered from 0")
        taps = {place: on_host(f"route {place}", one) for place, one in made.items()}
        for place, one in taps.items():
            if one.ndim != 1 or not one.size:
                raise ValueError(f"route {place} has taps of shape {one.shape}: use (frames,), with at least one frame")
        padded = np.zeros((len(taps), max(len(one) for one in taps.values())), np.float32)
        for row, one in zip(padded, taps.values()):
            row[: len(one)] = one
        places = [(int(i), int(o)) for i, o in taps]
        return cls._of(_core.Response.from_matrix(padded, places, sizes[0], sizes[1], real("rate", rate)), True)

    @classmethod
    def _of(cls, ir: Any, routed: bool) -> "ImpulseResponse":
        made = cls.__new__(cls)
        made._ir = ir
        made.routed = routed
        return made

    def __repr__(self) -> str:
        return (
            f"<gpuconv.ImpulseResponse {self.inputs} to {self.outputs}, {length_text(self.frames, self.rate)}>"
        )

    def plot(self) -> Any:
        """Returns a figure of matplotlib: the level of each route over time and over frequency. A notebook shows it, with a
        player, for a response at the end of a cell.

        Raises ModuleNotFoundError without matplotlib.
        """
        named = [(f"{i + 1} to {o + 1}" if self.routed else f"channel {o + 1}", taps) for (i, o), taps in self._all_taps().items()]
        return figure(repr(self)[1:-1], named, self.rate)

    def _repr_png_(self) -> Optional[bytes]:
        try:
            return png(self.plot())
        except ModuleNotFoundError:
            return None

    def _repr_html_(self) -> str:
        return page(repr(self)[1:-1], self.numpy().reshape(-1, self.frames), self.rate, self._repr_png_())

    def __reduce__(self) -> Any:
        return _restore, (self._all_taps(), self.inputs, self.outputs, self.rate, self.routed, self.lead, self.history)

    @property
    def inputs(self) -> int:
        """Number of inputs; 1 before route()."""
        return int(self._ir.inputs)

    @property
    def outputs(self) -> int:
        """Number of outputs; before route(), the channels of the file."""
        return int(self._ir.outputs)

    @property
    def routes(self) -> int:
        """Number of routes; absent ones do not count."""
        return int(self._ir.routes)

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
        if not (0 <= input < self.inputs and 0 <= output < self.outputs):
            raise IndexError(f"route ({input}, {output}): the response has {self.inputs} inputs and {self.outputs} outputs")
        found: Any = self._ir.taps(input, output)
        return found if found is None else np.asarray(found)

    def _all_taps(self) -> dict[tuple[int, int], np.ndarray]:
        """Returns the taps of all routes by their inputs and outputs."""
        places = ((i, o) for i in range(self.inputs) for o in range(self.outputs))
        return {place: taps for place in places if (taps := self.taps(*place)) is not None}

    def numpy(self) -> np.ndarray:
        """Returns the taps as (outputs, frames), or (inputs, outputs, frames) if there are several inputs."""
        full = np.zeros((self.inputs, self.outputs, self.frames), np.float32)
        for place, taps in self._all_taps().items():
            full[place] = taps
        return full[0] if self.inputs == 1 else full

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return self.numpy().astype(dtype or np.float32)

    def onset(self, decibels: float = -60.0) -> int:
        """Returns the frames before the response first reaches a level relative to its peak."""
        return int(self._ir.onset(real("decibels", decibels)))

    def peak(self) -> tuple[int, float]:
        """Returns the first frame with the largest magnitude of all channels, and that magnitude."""
        at, magnitude = self._ir.peak()
        return int(at), float(magnitude)

    def route(self, inputs: int, layout: str = "auto") -> "ImpulseResponse":
        """Routes the channels for signals of `inputs` channels: one for all, one each, or true stereo (LL LR RL RR).

        layout: "packed" is for a response that was not edited.
        """
        return self._of(self._ir.route(whole("inputs", inputs, 1, 1024), word_of("ir_layout", layout)), True)

    def resample(self, rate: float) -> "ImpulseResponse":
        """Resamples (soxr, very high quality); the level is scaled so that convolutions keep theirs."""
        return self._of(self._ir.resample(real("rate", rate)), self.routed)

    def cut(self, start: int, frames: int = -1) -> "ImpulseResponse":
        """Keeps `frames` frames (-1: all) from frame `start` on."""
        return self._of(self._ir.cut(whole("start", start, 0, LONGEST), whole("frames", frames, -1, LONGEST)), self.routed)

    def trim(self, decibels: float) -> "ImpulseResponse":
        """Cuts off the end that stays below a level relative to the peak, such as -60."""
        return self._of(self._ir.trim(real("decibels", decibels)), self.routed)

    def align(self, how: str) -> "ImpulseResponse":
        """Removes the delay at the beginning: "onset" cuts it off, "peak" makes the peak time zero."""
        return self._of(self._ir.align(word_of("align", how)), self.routed)

    def fade(self, fade_in: int = 0, fade_out: int = 0) -> "ImpulseResponse":
        """Fades in and out over frames, with half a cosine each."""
        return self._of(self._ir.fade(whole("fade_in", fade_in, 0, LONGEST), whole("fade_out", fade_out, 0, LONGEST)), self.routed)

    def reverse(self) -> "ImpulseResponse":
        """Reverses in time."""
        return self._of(self._ir.reverse(), self.routed)

    def delay(self, frames: int) -> "ImpulseResponse":
        """Puts silence before the response."""
        return self._of(self._ir.delay(whole("frames", frames, 0, LONGEST)), self.routed)

    def stretch(self, factor: float) -> "ImpulseResponse":
        """Makes the response longer by a factor, which moves its spectrum down."""
        return self._of(self._ir.stretch(real("factor", factor)), self.routed)

    def minimum_phase(self) -> "ImpulseResponse":
        """Replaces every channel by the minimum-phase response with the same magnitudes."""
        return self._of(self._ir.minimum_phase(), self.routed)

    def series(self, other: "ImpulseResponse") -> "ImpulseResponse":
        """Puts another response of the same rate in series."""
        if not isinstance(other, ImpulseResponse):
            raise TypeError(f"other is {type(other).__name__}: use an ImpulseResponse, such as load_ir(path)")
        return self._of(self._ir.series(other._ir), self.routed)

    def gain(self, decibels: float) -> "ImpulseResponse":
        """Changes the level."""
        return self._of(self._ir.gain(real("decibels", decibels)), self.routed)

    def normalize(self, how: str) -> "ImpulseResponse":
        """Applies one gain: the largest tap becomes 1 ("peak"), no input can clip ("l1"), white noise ("energy") or pink
        noise ("loudness") keeps its level. Needs a routed response; an unrouted one is routed for one input."""
        ir = self._ir if self.routed else self._ir.route(1, 0)
        return self._of(ir.normalize(word_of("normalize", how)), True)

    def mix(self, wet: float = 0.0, dry: float = float("-inf")) -> "ImpulseResponse":
        """Mixes the input into a routed response; levels in dB."""
        return self._of(self._ir.mix(real("wet", wet), real("dry", dry)), True)


def _restore(
    routes: dict[tuple[int, int], np.ndarray], inputs: int, outputs: int, rate: float, routed: bool, lead: int, history: str
) -> ImpulseResponse:
    if routed:
        made = ImpulseResponse.matrix(routes, rate, inputs=inputs, outputs=outputs)
    else:
        made = ImpulseResponse(np.stack([routes[0, o] for o in range(outputs)]), rate)
    made._ir.restore(lead, history)
    return made


def _routes_of(array: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"routes of shape {array.shape}: use (inputs, outputs, frames), or {{(input, output): taps}}")
    return {(i, o): array[i, o] for i in range(array.shape[0]) for o in range(array.shape[1])}


def load_ir(path: Path, *, rate: Optional[float] = None, raw: Optional[str] = None) -> ImpulseResponse:
    """Reads a response: any file of libsndfile, one channel for each output; a matrix (.conf, .matrix, .txt); a text of
    coefficients (.txt, .csv, .tsv, .dat, .asc) with a column for each channel; or an array of NumPy (.npy), whose longer
    dimension is time.

    rate: of a file that states none, and of a matrix whose lines name no file (None: 48000).
    raw: "RATE,CHANNELS,ENCODING" of samples without a header, such as "48000,1,double".
    """
    name = path_of("path", path)
    if name.lower().endswith(".sofa"):
        raise ValueError(f"{name}: a SOFA file has a response for each direction; use prepare_ir(path, direction=(30, 0), ...)")
    response, routed = _core.Response.load(name, 0.0 if rate is None else real("rate", rate), raw)
    return ImpulseResponse._of(response, routed)


def prepare_ir(path: Path, *, inputs: int, rate: float, **steps: "Unpack[Preparation]") -> ImpulseResponse:
    """Reads a response, resamples it to `rate`, applies the steps, and routes it for `inputs` channels.

    The steps are the options of the command, with underscores: prepare_ir("hall.flac", inputs=2, rate=48000,
    trim=-60, normalize="loudness", predelay=0.02). See Preparation. A SOFA file, such as head-related responses, gives
    those of directions: prepare_ir("head.sofa", inputs=6, rate=48000, layout="5.1", yaw=20). For many of them, open it
    once with SofaSet.
    """
    made = _core.prepare(path_of("path", path), texts_of(steps, Preparation.__annotations__), whole("inputs", inputs, 1, 1024), real("rate", rate))
    return ImpulseResponse._of(made, True)
