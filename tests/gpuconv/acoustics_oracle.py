"""Room acoustic figures by an independent implementation, compared with those of gpuconv ir info.

Written from the standards in NumPy and SciPy; it shares no line with src/ and takes other ways where there are some: the
band filters are recursive, windows are cut before the filter, STI comes from the squared output of a causal filter.

    acoustics_oracle.py CSV octave|third-octave FILE.wav [FILE.wav ...]

CSV is the output of gpuconv ir info --csv --bands ... for the files. Prints the largest differences of each file as a
table, and exits with 1 if one exceeds its limit.
"""
import csv
import math
import sys

import numpy as np
from scipy import signal
from scipy.io import wavfile

MODULATIONS = [0.63, 0.8, 1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8, 10, 12.5]
ALPHA = [0.085, 0.127, 0.230, 0.233, 0.309, 0.224, 0.173]
BETA = [0.085, 0.078, 0.065, 0.011, 0.047, 0.095]


def band_filter(nominal, per_octave, rate, order=3):
    """Butterworth bandpass between the edges of IEC 61260-1, as second-order sections."""
    steps = 3 // per_octave
    x = round(math.log10(nominal / 1000) * 10 / steps)
    centre, half = 1000 * 10 ** (x * steps / 10), 10 ** (0.3 / (2 * per_octave))
    return signal.butter(order, [centre / half, centre * half], "bandpass", fs=rate, output="sos")


def forward(sos, x, rate):
    return signal.sosfilt(sos, np.concatenate([x, np.zeros(int(rate))]))


def reverse(sos, x, rate):
    """Filters reversed in time; one second of negative times comes first."""
    return signal.sosfilt(sos, np.concatenate([x[::-1], np.zeros(int(rate))]))[::-1]


def slope(level, start, top, bottom, rate):
    """Decay time from the least squares line between two levels below the start."""
    below = np.flatnonzero(level < start + bottom)
    first = np.flatnonzero(level <= start + top)
    if not len(below) or not len(first):
        return math.nan
    part = level[first[0]:below[0]]
    if len(part) < 3:
        return math.nan
    return -60 / np.polyfit(np.arange(len(part)) / rate, part, 1)[0]


def clarity(early, late):
    return 10 * math.log10(early / late) if early > 0 and late > 1e-12 * early else math.nan


def late_window(n, cut, width):
    """A step at a frame, or a raised cosine of some width whose energy is that of the step."""
    if not width:
        return np.arange(n) >= math.ceil(cut - 1e-6)
    place = np.clip((np.arange(n) - cut) / width + 5 / 8, 0, 1)
    return np.sin(math.pi / 2 * place) ** 2


def band_figures(x, onset, rate, sos):
    lead = int(rate)
    y = x ** 2 if sos is None else reverse(sos, x, rate) ** 2
    at = onset if sos is None else onset + lead
    remaining = np.cumsum(y[::-1])[::-1]
    start = 10 * math.log10(remaining[at] if sos is None else remaining[0])
    level = 10 * np.log10(np.maximum(remaining[at:], 1e-300))
    energy = (lambda part: np.sum(part ** 2)) if sos is None else (lambda part: np.sum(forward(sos, part, rate) ** 2))
    figures = {"EDT s": slope(level, start, 0, -10, rate), "T20 s": slope(level, start, -5, -25, rate),
               "T30 s": slope(level, start, -5, -35, rate)}
    total = energy(x[onset:] if sos is None else x)
    for limit in (50, 80):
        late = energy(x * late_window(len(x), onset + limit * rate / 1000, 0 if sos is None else 0.005 * rate))
        figures[f"C{limit} dB"] = clarity(total - late, late)
        if limit == 50:
            figures["D50 %"] = 100 * (1 - late / total)
    return figures


def index(h, rate):
    """Speech transmission index of a noiseless room, without levels."""
    mti = []
    for k in range(7):
        e = forward(band_filter(125 * 2 ** k, 1, rate, 7), h, rate) ** 2
        t = np.arange(len(e)) / rate
        ti = []
        for f in MODULATIONS:
            m = min(abs(np.sum(e * np.exp(-2j * math.pi * f * t))) / np.sum(e), 1 - 1e-12)
            ti.append((min(max(10 * math.log10(m / (1 - m)), -15), 15) + 15) / 30)
        mti.append(np.mean(ti))
    return sum(a * m for a, m in zip(ALPHA, mti)) - sum(b * math.sqrt(mti[k] * mti[k + 1]) for k, b in enumerate(BETA))


def interaural(left, right, onset, rate, sos):
    cut = onset + math.ceil(0.08 * rate)
    result = {}
    for name, window in (("IACC", slice(onset, None)), ("IACC early", slice(onset, cut)), ("IACC late", slice(cut, None))):
        a, b = (forward(sos, x[window], rate) if sos is not None else x[window] for x in (left, right))
        full = signal.correlate(b, a, method="fft")
        middle, lags = len(a) - 1, int(0.001 * rate)
        unit = math.sqrt(np.sum(a ** 2) * np.sum(b ** 2))
        result[name] = np.max(np.abs(full[middle - lags:middle + lags + 1])) / unit if unit > 0 else math.nan
    return result


def onset_of(x):
    return int(np.flatnonzero(np.abs(x) >= 0.1 * np.max(np.abs(x)))[0])


# The greatest accepted difference: relative for decay times (to at least 0.05 s), in
# units for the others.
LIMITS = {"EDT s": 0.03, "T20 s": 0.01, "T30 s": 0.01, "C50 dB": 0.1, "C80 dB": 0.1, "D50 %": 0.5, "STI": 0.01, "IACC": 0.02,
          "IACC early": 0.02, "IACC late": 0.02}


def compare(path, rows, per_octave):
    rate, samples = wavfile.read(path)
    samples = samples.astype(float).reshape(len(samples), -1).T
    worst = dict.fromkeys(LIMITS, math.nan)
    for row in rows:
        c, band = int(row["channel"]) - 1, float(row["band"] or 0)
        if band > 9000 or "filter" in row["doubt"]:
            continue
        if per_octave == 3 and "nonlinear" in row["doubt"]:
            continue  # the impulse response of a loudspeaker or a telephone, which is no decay
        # At twice the rate the recursive filter comes close to its model in the upper bands too.
        twice = 2 if band > 3000 else 1
        x = signal.resample_poly(samples, twice, 1, axis=1, window=("kaiser", 12)) if twice > 1 else samples
        sos = band_filter(band, per_octave, twice * rate) if band else None
        own = band_figures(x[c], twice * onset_of(samples[c]), twice * rate, sos)
        if not band:
            own["STI"] = index(samples[c][onset_of(samples[c]):], rate)
        if len(samples) == 2:
            ears = band_filter(band, per_octave, rate) if band else None
            own.update(interaural(*samples, min(map(onset_of, samples)), rate, ears))
        for name, value in own.items():
            if not row[name] or math.isnan(value):
                continue
            got = float(row[name])
            off = abs(got - value) / (max(value, 0.05) if name in ("EDT s", "T20 s", "T30 s") else 1)
            worst[name] = off if math.isnan(worst[name]) else max(worst[name], off)
            if not off <= LIMITS[name]:
                print(f"FAILED: {path} channel {c + 1}, {band:g} Hz: {name} {got:.5g}, not {value:.5g}", file=sys.stderr)
    return worst


def main():
    rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
    failed = False
    print(f"{'':24}" + "".join(f"{name:>12}" for name in LIMITS))
    for path in sys.argv[3:]:
        worst = compare(path, [row for row in rows if row["file"] == path], 3 if sys.argv[2] == "third-octave" else 1)
        failed |= any(value > LIMITS[name] for name, value in worst.items())
        print(f"{path.split('/')[-1]:24}" + "".join(f"{value:12.5f}" for value in worst.values()))
    print(f"{'limit':24}" + "".join(f"{value:12.5f}" for value in LIMITS.values()))
    sys.exit(failed)


main()
