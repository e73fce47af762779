"""Times gpuconv in PyTorch and CuPy on an NVIDIA GPU beside torchaudio's formula and CuPy, in one run.

    python python/benchmarks/on_gpu.py [RUNS]

Responses are fresh in every call. Times are medians of RUNS (default 20) calls between CUDA events, warm; outputs are
checked against float64 in the same run. torchaudio.functional.fftconvolve is used where torchaudio is installed, else its
formula: rfft, product, irfft over N + M - 1 points.
"""

import statistics
import sys
import time

import torch

import gpuconv
import gpuconv.torch as gt

CASES = [(1024, 160_000, 8_000, False), (1024, 160_000, 8_000, True), (64, 64_000, 16_000, False), (32, 480_000, 96_000, False),
         (8, 3_600_000, 48_000, False)]


def reference(x, h):
    n = x.shape[-1] + h.shape[-1] - 1
    return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(h, n), n)


try:
    from torchaudio.functional import fftconvolve as theirs
except ImportError:
    theirs = reference


def median_ms(call, runs):
    """Returns the median time of a call on the device, in milliseconds, after warming up."""
    for _ in range(3):
        call()
    times = []
    for _ in range(runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def error_db(y, want):
    return float(10 * torch.log10((y.double() - want).square().sum() / want.square().sum()))


def step(convolve, x, h, backward):
    if not backward:
        with torch.no_grad():
            return lambda: convolve(x, h)
    x, h = x.requires_grad_(), h.requires_grad_()
    g = torch.randn(*x.shape[:-1], x.shape[-1] + h.shape[-1] - 1, device="cuda")
    return lambda: torch.autograd.grad(convolve(x, h), (x, h), g)


def host_us(call, runs=2000):
    """Returns the time that a call takes on the host, in microseconds."""
    for _ in range(50):
        call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(runs):
        call()
    elapsed = time.perf_counter() - begin
    torch.cuda.synchronize()
    return 1e6 * elapsed / runs


def small():
    """A small call: the time of the Python call, and of a graph that holds it."""
    x, h = torch.randn(16_000, device="cuda"), torch.randn(2_000, device="cuda")
    with torch.no_grad():
        print(f"| 16 000 x 2 000, Python call, us | {host_us(lambda: gpuconv.convolve(x, h)):.1f} | {host_us(lambda: theirs(x, h)):.1f} |")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            gpuconv.convolve(x, h)
        print(f"| the same in a CUDA graph, us on the device | {1e3 * median_ms(graph.replay, 200):.1f} | |")


def training(runs):
    """The share of RandomReverb in the step of a small model, beside the same with torchaudio's formula."""
    model = torch.nn.Sequential(torch.nn.Conv1d(1, 64, 64, 16), torch.nn.ReLU(), torch.nn.Conv1d(64, 64, 9, 4), torch.nn.ReLU(),
                                torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)).cuda()
    reverb = gt.RandomReverb(torch.randn(200, 8_000), p=1.0).cuda()
    x, target = torch.randn(128, 1, 64_000, device="cuda"), torch.zeros(128, dtype=torch.long, device="cuda")

    def old(signal):
        pick = torch.randint(200, (128,), device="cuda")
        return theirs(signal, reverb.bank[pick][:, None])[..., :64_000]

    times = [median_ms(lambda: torch.nn.functional.cross_entropy(model(augment(x)), target).backward(), runs)
             for augment in (lambda s: s, reverb, old)]
    print(f"| training step, 128 x 64 000, ms: alone {times[0]:.2f} | {times[1]:.2f} | {times[2]:.2f} |")


def kept_in_cupy(runs):
    """Ten minutes of stereo with a response that is kept."""
    try:
        import cupy
        from cupyx.scipy.signal import oaconvolve
    except ImportError:
        print("| response kept, in CuPy: CuPy is not installed | | |")
        return
    x, h = cupy.random.standard_normal((2, 28_800_000), dtype="f4"), cupy.random.standard_normal((2, 72_000), dtype="f4")
    convolver = gpuconv.Convolver(h)
    stream = torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr)
    with torch.cuda.stream(stream):
        print(f"| 10 min stereo x 1.5 s, response kept, CuPy, ms | {median_ms(lambda: convolver(x), runs):.3f} | "
              f"{median_ms(lambda: oaconvolve(x, h, axes=-1), runs):.3f} |")


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"gpuconv {gpuconv.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}, medians of {runs} calls")
    print("| case | gpuconv | torchaudio | error dB |\n| --- | --- | --- | --- |")
    for batch, frames, taps, backward in CASES:
        x, h = torch.randn(batch, frames, device="cuda"), torch.randn(batch, taps, device="cuda")
        error = error_db(gpuconv.convolve(x[:1], h[:1]), reference(x[:1].double(), h[:1].double()))
        times = [median_ms(step(convolve, x, h, backward), runs) for convolve in (gt.convolve, theirs)]
        what = "forward and backward" if backward else "forward"
        print(f"| {batch} x {frames} with own {taps}: {what}, ms | {times[0]:.3f} | {times[1]:.3f} | {error:.0f} |")
        del x, h
    small()
    training(runs)
    kept_in_cupy(runs)


if __name__ == "__main__":
    main()
