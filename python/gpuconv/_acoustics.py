"""Room-acoustic figures of impulse responses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Union

from . import _core
from ._modes import choose
from ._response import PATHS, ImpulseResponse, Path, load_ir, path_of

BANDS = ("none", "octave", "third-octave")


@dataclass(frozen=True)
class Acoustics:
    """Room-acoustic figures of one channel in one band after ISO 3382-1; NaN where the response does not determine them."""

    channel: int  #: from 0
    band: float  #: nominal frequency in Hz; 0: the whole spectrum
    edt: float  #: early decay time in seconds
    t20: float  #: reverberation time from -5 to -25 dB, in seconds
    t30: float  #: reverberation time from -5 to -35 dB, in seconds
    c50: float  #: clarity of speech in dB
    c80: float  #: clarity of music in dB
    d50: float  #: definition, 0..1
    centre: float  #: centre time in seconds
    noise: float  #: noise floor in dB relative to the highest energy
    inr: float  #: impulse-to-noise ratio in dB
    onset: float  #: seconds until the direct sound
    strength: float  #: sound strength G in dB; needs `reference`
    lateral: float  #: lateral energy fraction LF; needs `lateral`
    iacc: float  #: interaural cross-correlation of two channels
    iacc_early: float  #: that of the first 80 ms
    iacc_late: float  #: that of the rest
    sti: float  #: speech transmission index (IEC 60268-16) of the channel; with the whole spectrum only
    doubt: str  #: what decides other than the room, such as "noise T30; curved"; "": nothing


def acoustics(
    ir: Any,
    rate: Optional[float] = None,
    *,
    band: float = 0.0,
    bands: str = "none",
    reference: Union[Path, float, None] = None,
    reference_distance: float = 10.0,
    lateral: Optional[int] = None,
    speech_level: Optional[float] = None,
    noise_levels: Union[float, Sequence[float], None] = None,
) -> list[Acoustics]:
    """Computes the figures of every channel, and of its bands: those of `gpuconv ir info`.

    ir: a file, an ImpulseResponse, or an array (frames,) or (channels, frames), which needs `rate`.
    bands: "octave" or "third-octave": besides the whole spectrum, which comes first.
    band: nominal frequency in Hz of one octave, of which alone the figures are returned; 0: the whole spectrum.
    reference: for the strength G: the response of the same source and gains in a free field, a file, or the level of its
        energy in dB; reference_distance: metres at which it was measured.
    lateral: channel, from 0, of a figure-eight microphone whose null points to the source.
    speech_level, noise_levels: for STI with masking: dBA of the speech at the listener (60 where only noise is given);
        dB of the noise in the seven octaves from 125 Hz to 8 kHz, or one for all.
    """
    if isinstance(ir, PATHS):
        ir = load_ir(path_of("ir", ir))
    elif not isinstance(ir, ImpulseResponse):
        if rate is None:
            raise TypeError("an array needs its rate: acoustics(array, rate)")
        ir = ImpulseResponse(ir, rate)
    if lateral is not None and not 0 <= lateral < ir.outputs:
        raise ValueError(f"lateral={lateral}: the response has the channels 0 to {ir.outputs - 1}")
    if band and bands != "none":
        raise ValueError(f"band={band} and bands={bands!r} exclude each other")
    noise = [] if noise_levels is None else [noise_levels] * 7 if isinstance(noise_levels, (int, float)) else list(noise_levels)
    if len(noise) not in (0, 7) or not all(-100 <= level <= 200 for level in noise):
        raise ValueError(f"noise_levels={noise_levels!r}: use the levels of the seven octaves from 125 Hz to 8 kHz in dB, or one")
    if not 0 < reference_distance < math.inf:
        raise ValueError(f"reference_distance={reference_distance}: use metres, more than 0")
    is_file = isinstance(reference, PATHS)
    options = {
        "per_octave": 1 if band else (0, 1, 3)[choose("bands", bands, BANDS)],
        "lateral": 0 if lateral is None else lateral + 1,
        "reference": path_of("reference", reference) if is_file else None,
        "reference_level": math.nan if is_file or reference is None else float(reference),  # type: ignore[arg-type]
        "reference_distance": float(reference_distance),
        "speech_level": float(speech_level) if speech_level is not None else 60.0 if noise else math.nan,
        "noise_levels": [float(level) for level in noise],
    }
    rows = _core.acoustics(ir._ir, options)
    made = []
    for row, doubt in rows:
        values: dict[str, Any] = dict(zip(Acoustics.__annotations__, row))
        made.append(Acoustics(**{**values, "channel": int(row[0]), "doubt": doubt}))
    if band:
        found = [figures for figures in made if figures.band == band]
        if not found:
            there = ", ".join(f"{figures.band:g}" for figures in made if figures.channel == 0 and figures.band)
            raise ValueError(f"band={band}: use 0, or the octave of {there} Hz")
        return found
    return made
