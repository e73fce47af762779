"""Sound files: read, write, from file to file."""

from __future__ import annotations

import json
import sys
import warnings
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Union

import numpy as np

from . import _core
from ._libraries import on_host
from ._modes import ALGORITHMS, BACKENDS, choose, whole
from ._notebook import length_text, page
from ._response import Path, Preparation, path_of, texts_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

Progress = Union[bool, Callable[[int, int], None], None]


class Audio(NamedTuple):
    """Samples of a file, (channels, frames), and their rate."""

    samples: np.ndarray
    rate: int

    def __repr__(self) -> str:
        return f"<gpuconv.Audio {len(self.samples)} x {length_text(self.samples.shape[1], self.rate)}>"

    def _repr_html_(self) -> str:
        return page(repr(self)[1:-1], self.samples, self.rate)


def read(path: Path, *, start: int = 0, frames: int = -1, raw: Optional[str] = None) -> Audio:
    """Reads a sound file as float32 of shape (channels, frames), full scale being 1.0.

    start, frames: the part to read; -1: to the end. A part that is not there is refused. raw: "RATE,CHANNELS,ENCODING" of samples without a header.
    Every format of libsndfile; NaN and infinities become 0, with a warning.
    """
    name = path_of("path", path)
    start = whole("start", start, 0, 1 << 62)
    frames = whole("frames", frames, -1, 1 << 62, "; -1 stands for all")
    samples, rate, spoilt, note = _core.read(name, start, frames, raw)
    if spoilt:
        warnings.warn(f"{name}: {spoilt} samples are NaN or infinite and count as 0", stacklevel=2)
    if note:
        warnings.warn(f"{name}: {note}", stacklevel=2)
    return Audio(samples, rate)


def write(path: Path, samples: Any, rate: int, *, encoding: Optional[str] = None, format: Optional[str] = None) -> int:
    """Writes samples, (frames,) or (channels, frames), to a sound file that appears only when it is complete.

    encoding: such as "s16", "s24", "float" or "vorbis"; None: 32-bit floats, or the nearest that the container has.
    format: container, such as "flac"; None: by the extension.
    Returns the number of samples that were clipped to the range of an integer encoding, and warns if there are any.
    """
    name, array = path_of("path", path), on_host("samples", samples)
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"samples of shape {array.shape}: use (frames,) or (channels, frames), with at least one frame")
    if array.shape[0] > 1024:
        raise ValueError(f"samples of shape {array.shape}: {array.shape[0]} channels; use (channels, frames), such as samples.T")
    if not np.isfinite(array).all():
        warnings.warn(f"{name}: some samples are NaN or infinite", stacklevel=2)
    if not isinstance(rate, (int, float, np.number)):
        raise TypeError(f"rate={rate!r}: use a number of frames per second")
    if not 1 <= rate <= 10_000_000 or int(rate) != rate:
        raise ValueError(f"rate={rate}: a file has a whole number of frames per second, 1 to 10000000")
    clipped = int(_core.write(name, np.ascontiguousarray(array), int(rate), encoding, format))
    if clipped:
        peak = float(np.abs(array).max())
        warnings.warn(
            f"{name}: {clipped} samples clipped; a gain of {-20 * np.log10(peak):.1f} dB avoids it", stacklevel=2
        )
    return clipped


def meter(progress: Progress, unit: str) -> tuple[Optional[Callable[[int, int], None]], Callable[[], None]]:
    """Returns a progress function and what ends it. True: tqdm, if it is installed, on a terminal or in a notebook."""
    if callable(progress):
        return progress, lambda: None
    if not progress or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None, lambda: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None, lambda: None
    bar = tqdm(unit=f" {unit}", unit_scale=unit == "frames")

    def show(done: int, total: int) -> None:
        if total > 0:
            bar.total = total
        bar.update(done - bar.n)

    return show, bar.close


def warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


def convolve_file(
    input: Path,
    response: Path,
    output: Path,
    *,
    mode: str = "full",
    tail: Union[float, str, None] = None,
    gain: float = 0.0,
    format: Optional[str] = None,
    encoding: Optional[str] = None,
    compression: Optional[int] = None,
    dither: bool = False,
    raw: Optional[str] = None,
    plot: Optional[Path] = None,
    force: bool = False,
    backend: str = "auto",
    algorithm: str = "auto",
    device: int = -1,
    threads: int = 0,
    path: Optional[Path] = None,
    receiver_path: Optional[Path] = None,
    head: Optional[Path] = None,
    interval: float = 0.005,
    doppler: bool = False,
    progress: Progress = False,
    note: Callable[[str], None] = warn,
    **steps: "Unpack[Preparation]",
) -> dict[str, Any]:
    """Convolves a file with a response into a file, as `gpuconv IN IR OUT`, in constant memory. The same bytes.

    mode: "full", "same", "valid". tail: with "full", seconds kept behind the input's end, or "auto" (down to -90 dBFS), or "auto:DB";
    None: all. gain: of the result in dB. format, encoding, compression, dither, raw, plot, backend, algorithm, device,
    threads: as the command's options. force: replace the output even if the response is read from it, or if response and
    output have changed places. steps: as in prepare_ir(); ir_layout is "stereo" as in the command: 4 channels are true
    stereo for a mono input too.
    path, head, interval, doppler: of a SOFA file: the channels of the input move along the rows of a file, and the head
    turns as in a file, as in SofaSet.move(). path, receiver_path, head, interval of a room, a response such as
    "room:size=5x4x3 rt60=0.5 receiver=2,2,1.5": sources and receivers move in it, as in move_in_room().
    progress: True for a bar of tqdm, or a function of (frames, total). note: receives lines on resampling, clipping, a
    missing GPU; warnings by default.
    Returns the report of `gpuconv --report json` as a dictionary.
    """
    steps = {"ir_layout": "stereo", **steps}  # the command's
    settings = texts_of(steps, Preparation.__annotations__) + texts_of({
        "mode": mode,
        "tail": tail,
        "gain": gain,
        "format": format,
        "encoding": encoding,
        "compression": compression,
        "dither": "tpdf" if dither else "none",
        "path": path,
        "receiver_path": receiver_path,
        "head": head,
        "interval": interval,
        "doppler": doppler,
    })
    options = {
        "force": bool(force),
        "backend": choose("backend", backend, BACKENDS),
        "algorithm": choose("algorithm", algorithm, ALGORITHMS),
        "device": whole("device", device, -1, 1023),
        "threads": whole("threads", threads, 0, 1024, "; 0 stands for all cores"),
    }
    show, end = meter(progress, "frames")
    paths = [path_of(*pair) for pair in (("input", input), ("response", response), ("output", output))]
    plotted = None if plot is None else path_of("plot", plot)
    try:
        report = _core.convolve_file(paths, settings, options, [raw, plotted], show, note)
    finally:
        end()
    made: dict[str, Any] = json.loads(report)
    made["files"].update(zip(("input", "response", "output"), paths))  # JSON has no bytes that are not UTF-8
    return made
