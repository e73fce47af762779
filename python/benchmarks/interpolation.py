"""Compares interpolated responses of SOFA sets with measured ones that were left out, and prints a table for
docs/experiments/directions.md: every second direction of four sets is left out and made again from the others, by
gpuconv.SofaSet ("nearest", "triangle") and by libmysofa's own interpolation. Then it prints rates.

    python3 interpolation.py        needs numpy, scipy, h5py and sofar, and libmysofa with its set

The sets: MIT KEMAR, which libmysofa ships, and three rigid spheres (Duda & Martens, JASA 104 (1998), 3048) with ears,
radius, rate and directions of their own. Errors of a response of one ear, from 200 Hz to 16 kHz: the energy of the
difference of the magnitudes, relative to that of the measured response. Errors of the interaural delay: that of the
highest correlation of both ears below 1.5 kHz.
"""

import ctypes
import ctypes.util
import os
import tempfile
import time

import h5py
import numpy as np
import sofar
from scipy.special import eval_legendre, spherical_jn, spherical_yn

import gpuconv

KEMAR = "/usr/share/libmysofa/default.sofa"
TAPS = 256


def unit(azimuth, elevation):
    a, e = np.radians(azimuth), np.radians(elevation)
    return np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], -1)


def to_degrees(xyz):
    return np.degrees(np.stack([np.arctan2(xyz[:, 1], xyz[:, 0]), np.arcsin(np.clip(xyz[:, 2], -1, 1))], -1))


def sphere_response(cosine, rate, radius, distance=1.5):
    """Responses at points of a rigid sphere, `cosine` of the angle to the source, 40 frames late."""
    frequency = np.fft.rfftfreq(TAPS, 1 / rate)
    k = 2 * np.pi * frequency[1:] / 343.0
    mu, rho = k * radius, k * distance
    total = np.zeros((len(cosine), len(k)), complex)
    for m in range(70):
        with np.errstate(all="ignore"):
            slope = spherical_jn(m, mu, True) - 1j * spherical_yn(m, mu, True)
            term = (2 * m + 1) * (spherical_jn(m, rho) - 1j * spherical_yn(m, rho)) / slope
        total += eval_legendre(m, cosine)[:, None] * np.where(np.isfinite(term), term, 0)
    pressure = -distance / radius / mu * total * np.exp(1j * rho)
    pressure = np.concatenate([np.ones((len(cosine), 1)), pressure], 1) * np.exp(-2j * np.pi * frequency * 40 / rate)
    pressure[:, -1] = pressure[:, -1].real
    return np.fft.irfft(pressure, TAPS)


def spiral(count):
    z = 1 - (2 * np.arange(count) + 1) / count
    around = np.arange(count) * np.pi * (3 - np.sqrt(5))
    return np.stack([np.sqrt(1 - z * z) * np.cos(around), np.sqrt(1 - z * z) * np.sin(around), z], 1)


def rings(step):
    places = [(0, 90)]
    for elevation in range(-60, 90, step):
        count = round(360 / step * np.cos(np.radians(elevation)))
        places += [(360 * i / count, elevation) for i in range(count)]
    return unit(*np.array(places, float).T)


def sphere(directions, rate, radius, ear, height):
    ears = [unit(ear, height), unit(-ear, height)]
    return directions, np.stack([sphere_response(directions @ e, rate, radius) for e in ears], 1), rate


def kemar():
    with h5py.File(KEMAR) as f:
        at = f["SourcePosition"][:]
        return unit(at[:, 0], at[:, 1]), f["Data.IR"][:], float(f["Data.SamplingRate"][0])


def write(path, directions, responses, rate):
    made = sofar.Sofa("SimpleFreeFieldHRIR")
    azimuth, elevation = to_degrees(directions).T
    made.SourcePosition = np.stack([azimuth % 360, elevation, np.full(len(directions), 1.5)], 1)
    made.Data_SamplingRate = rate
    made.Data_Delay = np.zeros((1, 2))
    made.Data_IR = responses
    sofar.write_sofa(path, made, compression=0)


class Mysofa:
    """libmysofa's interpolation, without its normalisation."""

    def __init__(self, path, rate):
        self.library = ctypes.CDLL(ctypes.util.find_library("mysofa"))
        opened, length, error = self.library.mysofa_open_no_norm, ctypes.c_int(), ctypes.c_int()
        opened.restype = ctypes.c_void_p
        self.set = ctypes.c_void_p(opened(path.encode(), ctypes.c_float(rate), ctypes.byref(length), ctypes.byref(error)))
        assert self.set.value, error.value
        self.frames = length.value

    def responses(self, at):
        made = np.zeros((len(at), 2, self.frames), np.float32)
        delays, floats = (ctypes.c_float * 2)(), ctypes.POINTER(ctypes.c_float)
        for row, (x, y, z) in zip(made, at):
            self.library.mysofa_getfilter_float(
                self.set, *(ctypes.c_float(v) for v in (x, y, z)), *(ear.ctypes.data_as(floats) for ear in row),
                ctypes.byref(delays, 0), ctypes.byref(delays, 4))
            assert delays[0] == delays[1] == 0  # the sets have their delays in the responses
        return made


def spectral_errors(got, want, rate):
    frequency = np.fft.rfftfreq(1024, 1 / rate)
    inside = (frequency >= 200) & (frequency <= 16000)
    a, b = (np.abs(np.fft.rfft(x, 1024, axis=-1))[..., inside] for x in (got, want))
    return 10 * np.log10(np.square(a - b).sum(-1) / np.square(b).sum(-1)).ravel()


def interaural_delays(responses, rate):
    """Returns microseconds."""
    points, fine, reach = 2048, 16, int(0.0015 * rate * 16)
    spectra = np.fft.rfft(responses, points, axis=-1)
    low = np.exp(-((np.fft.rfftfreq(points, 1 / rate) / 1500) ** 4))
    r = np.fft.irfft(spectra[:, 0] * np.conj(spectra[:, 1]) * low, points * fine, axis=-1)
    r = np.concatenate([r[:, -reach:], r[:, :reach]], 1)
    at, rows = np.clip(r.argmax(1), 1, r.shape[1] - 2), np.arange(len(r))
    before, peak, after = (r[rows, at + k] for k in (-1, 0, 1))
    return (at + 0.5 * (before - after) / (before - 2 * peak + after) - reach) / fine / rate * 1e6


def compare(folder, name, directions, responses, rate):
    path = os.path.join(folder, "half.sofa")
    write(path, directions[::2], responses[::2], rate)
    left_out, want = directions[1::2], responses[1::2]
    opened, delays = gpuconv.SofaSet(path), interaural_delays(want, rate)
    # a place within the nearest direction gives libmysofa what it finds to interpolate between
    made = {how: opened.responses(to_degrees(left_out), interpolate=how) for how in ("nearest", "triangle")}
    made["libmysofa"] = Mysofa(path, rate).responses(1.5 * left_out)
    for how, got in made.items():
        decibels = spectral_errors(got, want, rate)
        late = np.abs(interaural_delays(got, rate) - delays)
        print(f"| {name} | {how} | {np.median(decibels):.1f} | {np.percentile(decibels, 95):.1f} "
              f"| {np.median(late):.1f} | {np.percentile(late, 95):.1f} |")


def measure_rates(folder):
    path = os.path.join(folder, "dense.sofa")
    directions, responses, rate = sphere(spiral(2702), 48000, 0.0875, 100, 0)
    write(path, directions, responses, rate)
    at = np.random.default_rng(1).uniform([-180, -90], [180, 90], (20000, 2))
    for other in (None, 44100):
        start = time.perf_counter()
        opened = gpuconv.SofaSet(path, other)
        print(f"opened at {opened.rate:g} Hz: {1e3 * (time.perf_counter() - start):.0f} ms")
    for how in ("triangle", "nearest"):
        took = []
        for _ in range(6):
            start = time.perf_counter()
            opened.responses(at, interpolate=how)
            took.append(time.perf_counter() - start)
        print(f"{how}: {len(at) / took[0]:.0f} directions/s at first, then {len(at) / np.median(took[1:]):.0f}")
    start = time.perf_counter()
    for direction in at.tolist():
        opened.nearest(direction)
    print(f"nearest(): {1e6 * (time.perf_counter() - start) / len(at):.1f} us, that of Python included")


def main():
    print("| set | responses by | spectrum, median dB | 95 % | interaural delay, median us | 95 % |")
    print("| --- | --- | --: | --: | --: | --: |")
    with tempfile.TemporaryDirectory() as folder:
        compare(folder, "KEMAR, 710", *kemar())
        compare(folder, "sphere of 8.75 cm, rings of 5 degrees, 1552", *sphere(rings(5), 48000, 0.0875, 100, 0))
        compare(folder, "sphere of 8 cm, spiral of 800", *sphere(spiral(800), 44100, 0.08, 95, -5))
        compare(folder, "sphere of 9.5 cm, spiral of 2702", *sphere(spiral(2702), 48000, 0.095, 100, 0))
        measure_rates(folder)


if __name__ == "__main__":
    main()
