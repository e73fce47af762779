"""Times gpuconv.convolve beside SciPy and, if it is installed, PyTorch's FFT, in 32-bit floats on the CPU.

    python python/benchmarks/against_scipy.py [RUNS [PART]]

Prints medians of RUNS (default 7) alternating runs, of the cases whose name contains PART: wall time, the ratios of wall
times, the ratio of processor times, and the error against float64. SciPy is the fastest of fftconvolve, oaconvolve and
scipy.fft with its workers on all cores, PyTorch the faster one of FFTs of a power of two and of the next fast length.
On a machine with other load compare processor times.
"""

import os
import statistics
import sys
import time

import numpy as np
import scipy.fft
import scipy.signal

import gpuconv

try:
    import torch
except ImportError:
    torch = None

CORES = len(os.sched_getaffinity(0))
# name, shape of the signals, shape of the responses, mode
CASES = [("2^23 x 512", (1, 1 << 23), (1, 512), "full"),
         ("10 min x 1.5 s, stereo", (2, 28_800_000), (2, 72_000), "full"),
         ("64 x (160 000 x 8 000)", (64, 160_000), (64, 8_000), "full")]
CASES += [(f"rows: {1 << max(0, 16 - max(10, n.bit_length() - 1))} x 768 x {n}, 768 of {n}",
           (1 << max(0, 16 - max(10, n.bit_length() - 1)), 768, n), (768, n), "causal")
          for n in (64, 128, 256, 512, 1024, 2048, 4096)]
CASES += [("rows: 65 536 x 128, own 128", (65_536, 128), (65_536, 128), "full"),
          ("rows: 4096 x 512, own 256", (4096, 512), (4096, 256), "full"),
          ("rows: 1024 x 48 000, one of 64", (1024, 48_000), (64,), "full")]
CASES += [(f"few rows: {rows} x {n}, own {taps}", (rows, n), (rows, taps), "full")
          for rows in (1, 16, 256) for n, taps in ((128, 128), (512, 256), (1024, 64), (1024, 1024), (4096, 4096))]


def spectra(fft, x, h, points):
    return fft.irfft(fft.rfft(x, points) * fft.rfft(h, points), points)


def calls_of(x, h, mode):
    """Returns what to time, by name; the part before a blank is the column."""
    total = x.shape[-1] + h.shape[-1] - 1
    kept = total if mode == "full" else x.shape[-1]
    wide = h.reshape((1,) * (x.ndim - h.ndim) + h.shape)
    fast = scipy.fft.next_fast_len(total, True)
    calls = {"gpuconv": lambda: gpuconv.convolve(x, h, mode),
             "SciPy fftconvolve": lambda: scipy.signal.fftconvolve(x, wide, axes=-1)[..., :kept],
             "SciPy oaconvolve": lambda: scipy.signal.oaconvolve(x, wide, axes=-1)[..., :kept],
             "SciPy fft": lambda: spectra(scipy.fft, x, h, fast)[..., :kept]}
    if torch:
        tx, th = torch.from_numpy(x), torch.from_numpy(h)
        calls["PyTorch 2^k"] = lambda: spectra(torch.fft, tx, th, 1 << (total - 1).bit_length())[..., :kept]
        calls["PyTorch fast"] = lambda: spectra(torch.fft, tx, th, fast)[..., :kept]
    return calls


def timed(call, loops):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(loops):
        result = call()
    return result, (time.perf_counter() - wall) / loops, (time.process_time() - cpu) / loops


def error_of(y, x, h):
    """Relative RMS error in dB of the last row against float64."""
    x, h, y = (a.reshape(-1, a.shape[-1])[-1].astype(np.float64) for a in (x, h, y))
    want = scipy.signal.oaconvolve(x, h)[: len(y)]
    return 10 * np.log10(np.sum((y - want) ** 2) / np.sum(want**2))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    rng = np.random.default_rng(0)
    print(f"gpuconv {gpuconv.__version__}, {CORES} cores, load {os.getloadavg()[0]:.1f}, medians of {runs} runs")
    print("| case | gpuconv ms | SciPy ms | PyTorch ms | SciPy / gpuconv | PyTorch / gpuconv | processor time | error dB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, signals, responses, mode in CASES:
        if part not in name:
            continue
        x = rng.standard_normal(signals, dtype=np.float32)
        h = rng.standard_normal(responses, dtype=np.float32)
        calls = calls_of(x, h, mode)
        loops = max(1, (1 << 18) // x.size)
        times = {key: [] for key in calls}
        for run in range(runs + 1):
            for key, call in calls.items():
                result, wall, cpu = timed(call, loops)
                if run == 0 and key == "gpuconv":
                    error = error_of(result, x, h)
                elif run > 0:  # the first run warms up
                    times[key].append((wall, cpu))
                del result
        best = {}  # by column: wall and processor seconds of the fastest call
        for key in calls:
            median = tuple(statistics.median(t[i] for t in times[key]) for i in (0, 1))
            best[key.split()[0]] = min(best.get(key.split()[0], median), median)
        own, scipys, torchs = best["gpuconv"], best["SciPy"], best.get("PyTorch", (float("nan"), float("nan")))
        print(f"| {name} | {1e3 * own[0]:.3g} | {1e3 * scipys[0]:.3g} | {1e3 * torchs[0]:.3g} | {scipys[0] / own[0]:.1f} "
              f"| {torchs[0] / own[0]:.1f} | {scipys[1] / own[1]:.1f}, {torchs[1] / own[1]:.1f} | {error:.0f} |", flush=True)


if __name__ == "__main__":
    with scipy.fft.set_workers(CORES):
        main()
