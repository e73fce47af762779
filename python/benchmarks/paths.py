"""Compares moving sources with a response for every frame, in double precision, and measures the spurs of a tone; prints
the tables of docs/experiments/directions.md.

    python3 paths.py        needs numpy and scipy, libmysofa's set, and what interpolation.py needs

The reference: frame j of the input adds x[j] h[n - j] to frame n, with the response h, by SofaSet.responses(), of the
place at which the source is when the direct sound of that frame arrives at the ear. The dense set is a rigid sphere with
2702 directions.
"""

import os
import tempfile
import time

import numpy as np
from interpolation import KEMAR, sphere, spiral, write

import gpuconv


ELEVATION = 5


def arrivals(opened, azimuth):
    """Returns the delays of the direct sound at both ears in frames: the lags of the highest correlation of the responses
    with their minimum-phase versions below 3 kHz, as the library measures them."""
    responses = opened.responses(np.stack([azimuth, ELEVATION + 0 * azimuth], -1)).astype(np.float64)
    points, fine = 4 * responses.shape[-1], 16
    spectra = np.fft.fft(responses, points, axis=-1)
    cepstrum = np.fft.ifft(np.log(np.maximum(np.abs(spectra), 1e-8 * np.abs(spectra).max(-1, keepdims=True))), axis=-1).real
    cepstrum[..., 1 : points // 2] *= 2
    cepstrum[..., points // 2 + 1 :] = 0
    low = np.exp(-((np.fft.rfftfreq(points, 1 / opened.rate) / 3000) ** 4))
    product = spectra * np.conj(np.exp(np.fft.fft(cepstrum, axis=-1)))
    found = np.fft.irfft(product[..., : points // 2 + 1] * low, points * fine, axis=-1)
    return found[..., : points * fine // 2].argmax(-1) / fine - opened.lead


def reference(opened, x, start, speed):
    """`speed`: degrees for each frame."""
    taps, lead, made = opened.frames, opened.lead, np.zeros((2, len(x) + opened.frames))
    grid = np.linspace(start - 1, start + speed * len(x) + 1, 2000)
    late = arrivals(opened, grid)
    for ear in (0, 1):
        time = np.arange(len(x), dtype=float)
        for _ in range(5):
            azimuth = start + speed * np.clip(time, 0, len(x) - 1)
            time = np.arange(len(x)) + np.interp(azimuth, grid, late[:, ear])
        for begin in range(0, len(x), 4096):
            at = azimuth[begin : begin + 4096]
            rows = opened.responses(np.stack([at, ELEVATION + 0 * at], -1))[:, ear].astype(np.float64)
            for k in range(taps):
                made[ear, begin + k : begin + k + len(at)] += rows[:, k] * x[begin : begin + len(at)]
    return made[:, lead : lead + len(x)]


def decibels(got, want):
    inside = slice(2000, -2000)
    return 10 * np.log10(np.square(got[:, inside] - want[:, inside]).sum() / np.square(want[:, inside]).sum())


def compare(name, opened):
    rate, seconds = opened.rate, 1.0
    n = np.arange(int(rate * seconds))
    rng = np.random.default_rng(1)
    spectrum = rng.standard_normal(len(n) // 2 + 1) + 1j * rng.standard_normal(len(n) // 2 + 1)
    spectrum[np.fft.rfftfreq(len(n), 1 / rate) > 16000] = 0
    noise = (20 * np.fft.irfft(spectrum, len(n))).astype(np.float32)
    tone = np.sin(2 * np.pi * 1000 * n / rate).astype(np.float32)
    for speed in (0, 30, 90, 360):
        path = ([0, seconds], [(20, ELEVATION), (20 + speed * seconds, ELEVATION)])
        made = [decibels(opened.move(x, path, interval=interval)[:, : len(x)], reference(opened, x, 20, speed / rate))
                for x in (noise, tone) for interval in (0.005, 0.001)]
        print(f"| {name} | {speed} | " + " | ".join(f"{value:.1f}" for value in made) + " |")


def crossed(opened, x):
    """Returns the same turn by whole responses, with their delays in them, which cross over every 5 ms."""
    hop = int(0.005 * opened.rate)
    at = np.arange(-(-len(x) // hop)) * hop / len(x) * 360
    rows = np.ascontiguousarray(opened.responses(np.stack([at, 0 * at], -1)).swapaxes(0, 1))
    return gpuconv.time_varying(x, rows, hop, interpolate="linear")


def spurs(name, opened):
    """Prints the highest line farther than 60 Hz from a tone whose source turns by 360 degrees in 2 s."""
    rate, length = int(opened.rate), 1 << 16
    found = []
    for frequency in (1000, 4000):
        x = np.sin(2 * np.pi * frequency * np.arange(2 * rate) / rate).astype(np.float32)
        path = ([0, 2], [(0, 0), (360, 0)])
        for turned in (opened.move(x, path), opened.move(x, path, interpolate="nearest"), crossed(opened, x)):
            spectrum = np.abs(np.fft.rfft(turned[:, 8192 : 8192 + length] * np.blackman(length), axis=-1)) ** 2
            far = np.abs(np.fft.rfftfreq(length, 1 / rate) - frequency) > 60
            found.append(10 * np.log10(spectrum[:, far].max() / spectrum.max()))
    print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in found) + " |")


def measure_rate(opened):
    x = np.random.default_rng(2).standard_normal((16, 10 * int(opened.rate))).astype(np.float32)
    path = ([0, 10], np.stack([np.stack([np.arange(16) * 20, np.zeros(16)], -1)] * 2) + np.array([[[0, 0]], [[360, 10]]]))
    took = []
    for _ in range(5):
        start = time.perf_counter()
        opened.move(x, path, threads=1)
        took.append(time.perf_counter() - start)
    print(f"16 sources, 10 s, one thread: {np.median(took):.2f} s, {160 / np.median(took):.0f} sources in real time")


def main():
    with tempfile.TemporaryDirectory() as folder:
        dense = os.path.join(folder, "dense.sofa")
        write(dense, *sphere(spiral(2702), 48000, 0.0875, 100, 0))
        sets = [("KEMAR", gpuconv.SofaSet(KEMAR)), ("sphere, 2702", gpuconv.SofaSet(dense))]
        print("| set | degrees/s | noise to 16 kHz: 5 ms, dB | 1 ms | 1 kHz: 5 ms | 1 ms |")
        for name, opened in sets:
            compare(name, opened)
        print("| set | 1 kHz, dB | nearest | whole responses | 4 kHz | nearest | whole responses |")
        for name, opened in sets:
            spurs(name, opened)
        measure_rate(sets[1][1])


if __name__ == "__main__":
    main()
