"""Times simulated rooms, and pyroomacoustics beside them where it is installed (pip install pyroomacoustics).

    python python/benchmarks/rooms.py [--threads N] [--gpu]

A room of 5 x 4 x 3 m with T60 0.5 s, 8000 frames at 16 kHz and sources and receivers at random: milliseconds a response, the median
of 10 batches of 64. Delays and levels of thirty other rooms are compared with pyroomacoustics, with the same images (at most 12
reflections), each with its own interpolation, from 320 to 6400 Hz. --gpu: batches of 1024 on the GPU, by PyTorch.
"""

import argparse
import statistics
import time

import numpy as np

import gpuconv

CASES = {
    "all 352 000 images": {},
    "cardioids": {"source_omni": 0.5, "receiver_omni": 0.5},
    "octaves": {"rt60": [[0.6, 0.55, 0.5, 0.5, 0.45, 0.4]]},
    "octaves and air": {"rt60": [[0.6, 0.55, 0.5, 0.5, 0.45, 0.4]], "air": True},
    "images for 15 dB, noise": {"images_level": 15, "tail": True},
    "ambisonic, order 1": {"ambisonic": 1},
}


def median(call, runs):
    times = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[1:])


def by_pyroomacoustics(pra, size, source, receiver, absorption, order):
    room = pra.ShoeBox(size, fs=16000, materials=pra.Material(absorption), max_order=order, air_absorption=False)
    room.add_source(source)
    room.add_microphone(receiver)
    room.compute_rir()
    return room.rir[0][0]


def compare(pra, rng):
    """Returns the largest difference in delay (frames) and level (dB) of thirty rooms."""
    pra.constants.set("c", 343.2)
    late = pra.constants.get("frac_delay_length") // 2
    delays, levels = [], []
    for _ in range(30):
        size = rng.uniform([3, 3, 2.4], [8, 7, 4])
        source, receiver, absorption = rng.uniform(0.1, 0.9, 3) * size, rng.uniform(0.1, 0.9, 3) * size, rng.uniform(0.1, 0.6)
        own = np.fft.rfft(gpuconv.simulate_rooms(size, source, receiver, absorption=absorption, images_order=12)[0, 0, 0], 1 << 15)
        other = np.fft.rfft(by_pyroomacoustics(pra, size, source, receiver, absorption, 12)[late : late + 8000], 1 << 15)
        radians = 2 * np.pi * np.arange(own.size) / (1 << 15)
        kept = (radians > 0.04 * np.pi) & (radians < 0.8 * np.pi)
        own, other, radians = own[kept], other[kept], radians[kept]
        weight = np.abs(other) ** 2
        delays.append(-np.sum(weight * np.angle(own * other.conj()) * radians) / np.sum(weight * radians**2))
        levels.append(10 * np.log10(np.sum(np.abs(own) ** 2) / np.sum(weight)))
    return np.abs(delays).max(), np.abs(levels).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=0, help="0: one for each core")
    parser.add_argument("--gpu", action="store_true")
    arguments = parser.parse_args()
    count = 1024 if arguments.gpu else 64
    rng = np.random.default_rng(46)
    size, sources, receivers = (5, 4, 3), *(rng.uniform(0.5, [4.5, 3.5, 2.5], (count, 1, 3)) for _ in range(2))
    wait = lambda: None
    if arguments.gpu:
        import torch

        size, sources, receivers = (torch.tensor(array, dtype=torch.float64, device="cuda") for array in (size, sources, receivers))
        wait = torch.cuda.synchronize
    for name, options in CASES.items():
        options = {"rt60": 0.5, "threads": arguments.threads} | options
        spent = median(lambda: (gpuconv.simulate_rooms(size, sources, receivers, **options), wait()), 10) / count
        print(f"{name:<26} {spent:8.4f} ms, {1000 / spent:.0f} a second")
    if arguments.gpu:
        return
    try:
        import pyroomacoustics as pra
    except ImportError:
        print("pyroomacoustics is not installed")
        return
    absorption, order = pra.inverse_sabine(0.5, [5, 4, 3])
    spent = median(lambda: by_pyroomacoustics(pra, [5, 4, 3], sources[0, 0], receivers[0, 0], absorption, order), 5)
    print(f"pyroomacoustics {pra.__version__:<10} {spent:8.1f} ms, {order} reflections")
    delay, level = compare(pra, rng)
    print(f"thirty rooms beside it: delays within {delay:.4f} frames, levels within {level:.3f} dB")


if __name__ == "__main__":
    main()
