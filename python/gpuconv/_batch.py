"""Batches of files: gpuconv batch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Tuple, TypedDict, Union

from . import _core
from ._files import Progress, _meter, _warn
from ._modes import BACKENDS, choose
from ._response import Path

if TYPE_CHECKING:
    from typing_extensions import Unpack

Patterns = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], None]
Range = Union[float, Tuple[float, float]]


class BatchSettings(TypedDict, total=False):
    """Defaults of a manifest's columns: what the options of `gpuconv batch` with these names do. Decibels and seconds;
    a range (low, high) is drawn from for each file."""

    gain: Range  #: of the whole output
    wet: Range  #: of the convolved signal
    dry: Range  #: of the input that is added to it; not added by default
    snr: Range  #: power of the output over that of the noise
    level: str  #: of each output: "peak:DB", "rms:DB", "loudness:LUFS", "input"
    early_ms: float  #: also write the reflections up to so many milliseconds after the direct sound
    mode: str  #: "full", "same", "valid"
    tail: Union[float, str]  #: seconds kept behind the end of the input, "auto", "auto:DB"
    offset: Union[float, str]  #: first second of the input, or "random"
    length: float  #: seconds of the input
    noise_offset: Union[float, str]  #: first second of the noise, or "random"
    ir_layout: str  #: "auto", "source", "output", "packed"
    ir_start: float  #: seconds skipped at the beginning of each response
    ir_length: float  #: seconds used of each response
    trim: float  #: cut off the end that stays below this level
    align: str  #: "none", "onset", "peak"
    reverse: bool
    stretch: float
    minimum_phase: bool
    fade: float  #: last seconds that are faded out
    series: Sequence[str]  #: files convolved with each response
    predelay: float
    normalize: str  #: "none", "peak", "l1", "energy", "loudness"
    ir_gain: float
    format: str  #: container and extension of the outputs
    encoding: str
    dither: str  #: "none", "tpdf"


@dataclass(frozen=True)
class BatchResult:
    """Counts of a batch."""

    total: int  #: entries
    done: int  #: convolved in this call
    failed: int  #: see results.jsonl
    skipped: int  #: done by earlier calls, with resume
    clipped: int  #: samples
    seconds: float  #: elapsed
    audio_seconds: float  #: of input that was convolved
    results: str  #: path of results.jsonl


def _patterns(given: Patterns) -> list[str]:
    if given is None:
        return []
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)]
    return [os.fspath(pattern) for pattern in given]


def _column(name: str, value: Any) -> str:
    """Returns a setting as the text of a manifest's column."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value):
        return f"{value[0]!r}:{value[1]!r}"
    if isinstance(value, (list, tuple)):
        return "|".join(os.fspath(v) for v in value)
    if isinstance(value, (int, float)):
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise TypeError(f"{name}={value!r}: use a number, a text, or a range (low, high)")


def _columns(preset: Optional[str], settings: dict[str, Any]) -> list[tuple[str, str]]:
    names = list(BatchSettings.__annotations__)
    for name in settings:
        if name not in names:
            raise TypeError(f"batch() has no setting {name!r}; use {', '.join(names)}")
    if preset not in (None, "none", "speech"):
        raise ValueError(f"preset={preset!r}: use 'speech' or None")
    if preset == "speech":
        settings = {"align": "peak", **({} if "mode" in settings else {"tail": 0}), **settings}
    return [(name, _column(name, value)) for name, value in settings.items() if value is not None]


def batch(
    manifest: Optional[Path] = None,
    *,
    out: Path,
    inputs: Patterns = None,
    irs: Patterns = None,
    noises: Patterns = None,
    pick: str = "random",
    seed: int = 0,
    preset: Optional[str] = None,
    segments: Optional[Path] = None,
    shard_size: int = 0,
    resume: bool = False,
    fail_fast: bool = False,
    backend: str = "auto",
    devices: Sequence[int] = (),
    workers: int = 0,
    progress: Progress = True,
    note: Callable[[str], None] = _warn,
    **settings: "Unpack[BatchSettings]",
) -> BatchResult:
    """Convolves many files with many responses, as `gpuconv batch`: the same names, picks and bytes.

    manifest: a table (CSV, TSV, JSON Lines), a list of Kaldi or lhotse, or a folder with metadata; or
    inputs: patterns of files or tar shards, such as "corpus/**/*.flac".
    irs: patterns or lists of responses, for rows that name none; `pick` combines them: "random" (of `seed`), "all",
        "cycle". noises: the same for noise, which is added at `snr`. segments: of a Kaldi wav.scp.
    out: folder of the results; it also gets manifest.csv (what was picked), results.jsonl, one line for each file, and
        a list of the outputs of the same kind as the list of the inputs.
    preset: "speech": align="peak" and tail=0, so that each output is as long as its input and labels stay in place.
    settings: defaults of the manifest's columns, as the options of the command: see BatchSettings.
    shard_size: outputs in each tar file; 0: loose files. resume: skip entries that are done and unchanged.
    backend: "auto", "cpu", "cuda". devices: CUDA devices; empty: as many as pay off. workers: files at the same time;
        0: one per core.
    progress: True for a bar of tqdm (if it is installed and standard error is a terminal), or a function of
        (files, total). note: receives lines on the run and on failures by reason; warnings by default.
    A file that fails is counted and recorded, and the batch goes on, unless `fail_fast`.
    Raises TypeError (settings that do not exist), ValueError (values), OSError (no such files), RuntimeError (no GPU).
    """
    if (manifest is None) == (inputs is None) or (manifest is None and irs is None):
        raise TypeError("batch() needs either a manifest, or inputs and irs")
    if not 0 <= workers <= 1024:
        raise ValueError(f"workers={workers}: use 1 to 1024, or 0 for one per core")
    if seed < 0 or shard_size < 0:
        raise ValueError(f"seed={seed}, shard_size={shard_size}: use 0 or more")
    columns = _columns(preset, dict(settings))
    if noises is not None and "snr" not in dict(columns):
        raise ValueError("noises needs snr, such as snr=(5, 20)")
    options = {
        "pick": choose("pick", pick, ("random", "all", "cycle")),
        "seed": seed,
        "shard_size": shard_size,
        "backend": choose("backend", backend, BACKENDS),
        "workers": workers,
        "resume": int(resume),
        "fail_fast": int(fail_fast),
    }
    sources = [None if path is None else os.fspath(path) for path in (manifest, segments)]
    patterns = [_patterns(inputs), _patterns(irs), _patterns(noises)]
    show, end = _meter(progress, "files")
    try:
        counts = _core.batch(sources, patterns, os.fspath(out), columns, list(devices), options, show, note)
    finally:
        end()
    return BatchResult(results=os.path.join(os.fspath(out), "results.jsonl"), **counts)
