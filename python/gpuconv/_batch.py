"""Batches of files, as `gpuconv batch`: the same options, names, picks and bytes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, TypedDict, Union

from . import _core
from ._files import Progress, meter, warn
from ._modes import BACKENDS, choose, whole
from ._response import PATHS, SETTINGS, Path, Shape, path_of, text_of, texts_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

Patterns = Union[Path, Sequence[Path]]
Level = Union[float, "tuple[float, float]"]


class BatchOptions(Shape, total=False):
    """Options of a batch: the steps of Shape, and values for the columns that the rows of a manifest leave empty. Levels are in dB."""

    preset: str  #: "speech": align="peak", length="input": outputs are as long as inputs, and labels keep their time
    length: str  #: "full", "input": each output is as long as its input
    mode: str  #: "full", "same", "valid"
    tail: Union[float, str]  #: seconds kept behind the input's end, "auto" or "auto:DB"
    gain: Level  #: of the output, or a range (low, high) to draw from
    level: str  #: level of each output: "peak:DB", "rms:DB", "loudness:LUFS", or "input": the RMS of the input
    offset: Union[float, str]  #: first second of the input that is used, or "random", which needs input_length
    input_length: float  #: seconds of the input that are used
    noise_offset: Union[float, str]  #: first second of the noise that is used, or "random"
    early: float  #: also write the reflections up to so many ms after the direct sound, to NAME.early.EXT
    snr: Level  #: power of the output over that of the noise, or a range to draw from
    wet: Level  #: gain of the convolved signal, or a range
    dry: Optional[Level]  #: gain at which the input itself is added, or a range; None: not added
    format: str  #: container and extension of the outputs, such as "flac"
    encoding: str  #: sample format of the outputs, such as "s16"
    dither: str  #: "none", "tpdf"
    compression: int  #: level of FLAC, 0 (fastest) to 8 (smallest); None: 5


WORDS = {"preset": ("none", "speech"), "length": ("full", "input")}
RANGES = ("gain", "wet", "dry", "snr")
COLUMNS = {"early": "early_ms", "input_length": "length"}  # whose names differ


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


def _text(name: str, value: Any) -> str:
    """Returns a value as a manifest has it."""
    if name in WORDS:
        choose(name, value, WORDS[name])
        return str(value)
    if name == "series":
        return "|".join(path for _, path in texts_of({name: value}))
    if name in RANGES and isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(f"{name}={value!r}: use a number, or a range (low, high)")
        low, high = (_text(name, part) for part in value)
        if not float(low) <= float(high):
            raise ValueError(f"{name}={value!r}: the lower end of a range comes first")
        return f"{low}:{high}"
    if isinstance(value, str) and SETTINGS.get(name, ("",))[0] != "word":
        return value
    if name in SETTINGS and name not in RANGES:
        return text_of(name, value)
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r}: use a number" + (", or a range (low, high)" if name in RANGES else "")) from None


def _columns(given: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the columns of a manifest that the options stand for."""
    for name in given:
        if name not in BatchOptions.__annotations__:
            raise TypeError(f"batch() has no option {name!r}; the options are {', '.join(BatchOptions.__annotations__)}")
    texts = {name: _text(name, value) for name, value in given.items() if value is not None}
    preset, length = texts.pop("preset", "none"), texts.pop("length", None)
    if length and "tail" in texts:
        raise ValueError(f"tail={texts['tail']} and length={length!r} exclude each other")
    if length == "input":
        texts["tail"] = "0"
    if preset == "speech":
        texts.setdefault("align", "peak")
        if "mode" not in texts and length != "full":
            texts.setdefault("tail", "0")
    for name, column in COLUMNS.items():
        if name in texts:
            texts[column] = texts.pop(name)
    return list(texts.items())


def _list(name: str, patterns: Optional[Patterns]) -> list[str]:
    if patterns is None:
        return []
    if isinstance(patterns, PATHS):
        patterns = [patterns]
    return [path_of(name, pattern) for pattern in patterns]


def batch(
    manifest: Optional[Path] = None,
    *,
    out: Path,
    inputs: Optional[Patterns] = None,
    irs: Optional[Patterns] = None,
    noises: Optional[Patterns] = None,
    rooms: Optional[str] = None,
    pick: str = "random",
    seed: int = 0,
    segments: Optional[Path] = None,
    shard_size: int = 0,
    id_suffix: str = "_rvb",
    absolute: bool = False,
    resume: bool = False,
    fail_fast: bool = False,
    backend: str = "auto",
    devices: Sequence[int] = (),
    workers: int = 0,
    progress: Progress = True,
    note: Callable[[str], None] = warn,
    **options: "Unpack[BatchOptions]",
) -> BatchResult:
    """Convolves many files with many responses, as `gpuconv batch`: the same names, picks and bytes.

    manifest: CSV, TSV or JSON Lines with the columns input, response, output, gain, wet, dry, offset, length, seed, ...
        (`gpuconv help batch`); or, with `irs`, a wav.scp or data folder of Kaldi, a RecordingSet or CutSet of lhotse, or
        a folder with metadata.csv: `out` then gets a list of the outputs of the same kind.
    inputs: instead of a manifest: files, patterns such as "corpus/**/*.flac", or tar shards.
    irs, noises: files, patterns or lists, of which `pick` takes for each input: "random" (of `seed`), "all", "cycle".
        noises need the option `snr`.
    rooms: instead of irs: a room for each input, drawn from ranges and simulated, "size=3:10x3:8x2.4:4 rt60=0.2:1.0 distance=0.5:3";
        keys as the options of `gpuconv ir synth room`. Noises sound from a place of their own.
    out: folder of the results, in which no file that is read may lie; it also gets results.jsonl, one line for each file, and manifest.csv of what was picked.
    segments: Kaldi segments of a wav.scp. shard_size: pack the outputs into tar files of so many entries; 0: loose files.
    id_suffix: follows the identifiers of recordings, cuts and supervisions in a list of outputs for lhotse; "": nothing does.
    absolute: paths in a list of outputs begin with /, instead of with `out`.
    resume: skip entries that are done and unchanged. workers: files at the same time; 0: one per core. devices: numbers
    of CUDA devices; (): as many as pay off.
    options: see BatchOptions: batch(inputs="speech/*.wav", irs="rooms/*.flac", out="wet", preset="speech", wet=(-6, 0)).
    progress: True for a bar of tqdm (if it is installed, on a terminal or in a notebook), or a function of
    (files, total). note: receives lines on failures and fallbacks; warnings by default.
    A file that fails is counted and recorded, and the batch goes on, unless `fail_fast`.
    """
    lists = [_list("inputs", inputs), _list("irs", irs), _list("noises", noises)]
    if (manifest is None) == (not lists[0]) or (manifest is None and not lists[1] and rooms is None):
        raise TypeError("batch() needs either a manifest, or inputs and irs or rooms")
    if rooms is not None and (lists[1] or pick != "random"):
        raise ValueError(f"rooms={rooms!r} and irs or pick exclude each other")
    numbers = {
        "seed": whole("seed", seed, 0, (1 << 63) - 1),
        "shard_size": whole("shard_size", shard_size, 0, (1 << 63) - 1, "; 0 stands for loose files"),
        "workers": whole("workers", workers, 0, 1024, "; 0 stands for one per core"),
    }
    if len(devices) > 64:
        raise ValueError(f"devices: {len(devices)} numbers; use up to 64")
    columns = _columns(dict(options))
    if lists[2] and "snr" not in dict(columns):
        raise ValueError("noises need snr, such as snr=(5, 20)")
    settings = {
        "backend": choose("backend", backend, BACKENDS),
        "pick": choose("pick", pick, ("random", "all", "cycle")),
        **numbers,
        "segments": None if segments is None else path_of("segments", segments),
        "rooms": None if rooms is None else str(rooms),
        "id_suffix": str(id_suffix),
        "devices": [whole("devices", device, 0, 1023) for device in devices],
        "absolute": int(absolute),
        "resume": int(resume),
        "fail_fast": int(fail_fast),
    }
    name, folder = None if manifest is None else path_of("manifest", manifest), path_of("out", out)
    show, end = meter(progress, "files")
    try:
        counts = _core.batch(name, lists, folder, columns, settings, show, note)
    finally:
        end()
    return BatchResult(results=os.path.join(folder, "results.jsonl"), **counts)
