"""Times gpuconv.convolve beside scipy.signal.oaconvolve and fftconvolve, in 32-bit floats on the CPU.

    python python/benchmarks/against_scipy.py [RUNS]

Prints medians of RUNS (default 7) alternating runs: wall time, processor time of all threads, and the error against
float64. On a machine with other load compare processor times: with C cores, C times the ratio of processor times is the
ratio of wall times on an idle machine, as SciPy uses one core.
"""

import os
import statistics
import sys
import time

import numpy as np
import scipy.signal

import gpuconv

CASES = [("2^23 x 512", (1, 1 << 23), 512), ("10 min x 1.5 s, stereo", (2, 28_800_000), 72_000),
         ("64 x (160 000 x 8 000)", (64, 160_000), 8_000)]


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def error_of(y, x, h):
    """Relative RMS error in dB of one row against float64."""
    want = scipy.signal.oaconvolve(x[-1].astype(np.float64), h[-1].astype(np.float64))
    return 10 * np.log10(np.sum((y[-1] - want) ** 2) / np.sum(want**2))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    cores = len(os.sched_getaffinity(0))
    rng = np.random.default_rng(0)
    print(f"gpuconv {gpuconv.__version__}, {cores} cores, load {os.getloadavg()[0]:.1f}, medians of {runs} runs")
    print("| case | | wall ms | processor ms | ratio of wall | of processor x cores | error dB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, shape, taps in CASES:
        x = rng.standard_normal(shape, dtype=np.float32)
        h = rng.standard_normal((shape[0], taps), dtype=np.float32)
        calls = {
            "gpuconv": lambda: gpuconv.convolve(x, h),
            "oaconvolve": lambda: scipy.signal.oaconvolve(x, h, axes=-1),
            "fftconvolve": lambda: scipy.signal.fftconvolve(x, h, axes=-1),
        }
        times, errors = {key: [] for key in calls}, {}
        for run in range(runs):
            for key, call in calls.items():
                result, wall, cpu = timed(call)
                times[key].append((wall, cpu))
                if run == 0:
                    errors[key] = error_of(result, x, h)
                del result
        wall = {key: statistics.median(t[0] for t in times[key]) for key in calls}
        cpu = {key: statistics.median(t[1] for t in times[key]) for key in calls}
        for key in calls:
            ratios = "" if key == "gpuconv" else f"{wall[key] / wall['gpuconv']:.1f}"
            of_cpu = "" if key == "gpuconv" else f"{cores * cpu[key] / cpu['gpuconv']:.1f}"
            print(f"| {name} | {key} | {1e3 * wall[key]:.1f} | {1e3 * cpu[key]:.1f} | {ratios} | {of_cpu} | {errors[key]:.0f} |")


if __name__ == "__main__":
    main()
