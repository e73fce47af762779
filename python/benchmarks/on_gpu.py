"""Times gpuconv in PyTorch and CuPy on an NVIDIA GPU beside torchaudio and CuPy, in one run.

    python python/benchmarks/on_gpu.py [--training] [--runs N] [--figures FILE]

Responses are fresh in every call unless a row says "kept". Times are medians of N (default 15) warm calls. "ms" is time on
the device: between CUDA events, with the queue filled beforehand, so that the host is not part of it. "us on the host" is
the time of the Python call. Every output is compared as a whole with float64, and the memory that it is written to was
filled with NaN before. torchaudio.functional.fftconvolve stands for its formula where torchaudio is not installed.
--training instead times rows of models of sequences, forward and with both gradients, beside NVIDIA's fft_causal_conv1d
(the package subquadratic-ops-torch-cu13) where it is installed: three sets of arrays are used in turn where one would stay in the cache.
--figures writes name, value, unit and error in dB of each row, parted by tabs.
Fails with 77 where there is no GPU, and with 1 if an output is wrong.
"""

import argparse
import itertools
import statistics
import sys
import time

import torch

import gpuconv
import gpuconv.torch as gt

CASES = [("1024 x 160 000 with own 8 000", 1024, 160_000, 8_000), ("64 x 64 000 with own 16 000", 64, 64_000, 16_000),
         ("32 x 480 000 with own 96 000", 32, 480_000, 96_000), ("8 x 3 600 000 with own 48 000", 8, 3_600_000, 48_000)]
# Rows of sequences: batch, channels with a filter each, frames and taps.
SEQUENCES = [(64, 768, n, n) for n in (128, 256, 512, 1024, 2048, 4096, 8192)] + [
    (32, 768, 16_384, 16_384), (4, 768, 65_536, 65_536), (1, 64, 1 << 20, 1 << 20), (16, 768, 8192, 128)]
BOUND, HALF_BOUND = -100.0, -60.0  # dB
rows, wrong = [], []


def by_formula(x, h):
    n = x.shape[-1] + h.shape[-1] - 1
    return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(h, n), n)


try:
    from torchaudio.functional import fftconvolve as torchaudio_convolve
except Exception:  # torchaudio raises more than ImportError where it does not fit PyTorch
    torchaudio_convolve = by_formula

try:
    import cupy
    from cupyx.scipy.signal import fftconvolve, oaconvolve
except Exception:
    cupy = None


try:
    from subquadratic_ops_torch.fft_causal_conv1d import fft_causal_conv1d
    from subquadratic_ops_torch.fft_causal_conv1d_packed import fft_causal_conv1d_packed
except Exception:  # its libraries may be missing, too
    fft_causal_conv1d = fft_causal_conv1d_packed = None


def device_ms(call, runs):
    """Returns the median time of a call on the device."""
    times = []
    for run in range(3 + runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(2_000_000)  # a millisecond, in which the host queues the call
        begin.record()
        call()
        end.record()
        end.synchronize()
        if run >= 3:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def host_us(call, runs=1000):
    """Returns the time that a call takes on the host, the median of ten loops."""
    times = []
    for _ in range(11):
        begin = time.perf_counter()
        for _ in range(runs // 10):
            call()
        times.append((time.perf_counter() - begin) / (runs // 10))
        torch.cuda.synchronize()
    return 1e6 * statistics.median(times[1:])


def poisoned(call, shapes):
    """Calls after filling the memory that the allocator will hand out with NaN."""
    made = [torch.full(shape, float("nan"), device="cuda") for shape in shapes]
    del made
    return call()


def error_db(got, want):
    """Returns the relative RMS error of tensors against the function want(first, last) of their rows, in float64."""
    off = power = 0.0
    step = max(1, (1 << 24) // got.shape[-1])
    for first in range(0, len(got), step):
        right = want(first, min(first + step, len(got)))
        part = got[first : first + len(right)].double()
        assert part.shape == right.shape, (part.shape, right.shape)
        off += (part - right).square().sum()
        power += right.square().sum()
    return float(10 * torch.log10(off / power))


def product(x, h, frames, conjugate=False):
    """Returns the convolution or correlation of rows in float64."""
    n = x.shape[-1] + h.shape[-1]
    n += n % 2
    spectrum = torch.fft.rfft(h.double(), n)
    return torch.fft.irfft(torch.fft.rfft(x.double(), n) * (spectrum.conj() if conjugate else spectrum), n)[:, :frames]


def report(name, unit, ours, peers, error=None):
    """Prints a row: ours, and the times of others."""
    worst = "" if error is None else f"{error:.0f}"
    beside = " | ".join("" if peer is None else f"{peer:.4g} ({peer / ours:.1f} x)" for peer in peers)
    print(f"| {name}, {unit} | {ours:.4g} | {beside} | {worst} |", flush=True)
    rows.append((name, ours, unit, error))
    for label, peer in zip(("torchaudio", "CuPy"), peers):
        if peer is not None:
            rows.append((f"{name}: {label}", peer, unit, None))
    if error is not None and not error <= BOUND:
        wrong.append(name)


def on_stream(call):
    """Returns the call on the current stream of PyTorch."""
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        return call()


def forward(name, x, h, runs):
    total = x.shape[1] + h.shape[1] - 1
    with torch.no_grad():
        y = poisoned(lambda: gpuconv.convolve(x, h), [(len(x), total)])
        error = error_db(y, lambda a, b: product(x[a:b], h[a:b], total))
        del y
        times = [device_ms(lambda: call(x, h), runs) for call in (gpuconv.convolve, torchaudio_convolve)]
    peer = None
    if cupy:
        cx, ch = cupy.from_dlpack(x), cupy.from_dlpack(h)
        peer = on_stream(lambda: min(device_ms(lambda: call(cx, ch, axes=-1), runs // 3) for call in (fftconvolve, oaconvolve)))
        cupy.get_default_memory_pool().free_all_blocks()
    report(f"{name}: forward", "ms", times[0], [times[1], peer], error)


def backward(name, x, h, runs):
    x, h = x.clone().requires_grad_(), h.clone().requires_grad_()
    g = torch.randn(len(x), x.shape[1] + h.shape[1] - 1, device="cuda")

    def step(convolve):
        return torch.autograd.grad(convolve(x, h), (x, h), g)

    gx, gh = poisoned(lambda: step(gt.convolve), [g.shape, x.shape, h.shape])
    error = max(error_db(gx, lambda a, b: product(g[a:b], h[a:b].detach(), x.shape[1], True)),
                error_db(gh, lambda a, b: product(g[a:b], x[a:b].detach(), h.shape[1], True)))
    del gx, gh
    times = [device_ms(lambda: step(convolve), runs) for convolve in (gt.convolve, torchaudio_convolve)]
    report(f"{name}: forward and backward by both", "ms", times[0], [times[1], None], error)


def small():
    """A small call: the time of the Python call, and of a graph that holds it."""
    x, h = torch.randn(16_000, device="cuda"), torch.randn(2_000, device="cuda")
    with torch.no_grad():
        error = error_db(gpuconv.convolve(x, h)[None], lambda a, b: product(x[None], h[None], 17_999))
        peer = None
        if cupy:
            cx, ch = cupy.asarray(x), cupy.asarray(h)
            peer = host_us(lambda: fftconvolve(cx, ch))
            report("16 000 x 2 000 in CuPy: the Python call", "us on the host", host_us(lambda: gpuconv.convolve(cx, ch)), [None, peer])
        report("16 000 x 2 000: the Python call", "us on the host", host_us(lambda: gpuconv.convolve(x, h)),
               [host_us(lambda: torchaudio_convolve(x, h)), peer], error)
        kept = gpuconv.Convolver(h)
        report("16 000 x 2 000 with a Convolver: the Python call", "us on the host", host_us(lambda: kept(x)), [None, None])
        for calls, name in ((1, "in a CUDA graph"), (20, "a call in a CUDA graph of 20")):
            replays = []
            for call in (gpuconv.convolve, torchaudio_convolve):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    for _ in range(calls):
                        y = call(x, h)
                replays.append(1e3 * device_ms(graph.replay, 100) / calls)
            report(f"16 000 x 2 000 {name}", "us", replays[0], [replays[1], None])


def training(runs):
    """The share of RandomReverb in the step of a small model, beside the same with torchaudio."""
    layers = torch.nn
    model = layers.Sequential(layers.Conv1d(1, 64, 64, 16), layers.ReLU(), layers.Conv1d(64, 128, 9, 4), layers.ReLU(),
                              layers.Conv1d(128, 128, 9, 4), layers.ReLU(), layers.AdaptiveAvgPool1d(1), layers.Flatten(),
                              layers.Linear(128, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    reverb = gt.RandomReverb(torch.randn(200, 8_000) * torch.exp(-torch.arange(8_000) / 1_500), p=1.0).cuda()
    x, target = torch.randn(128, 1, 64_000, device="cuda"), torch.zeros(128, dtype=torch.long, device="cuda")

    def peer(signal):
        pick = torch.randint(200, (128,), device="cuda")
        return torchaudio_convolve(signal, reverb.bank[pick][:, None])[..., :64_000]

    def step(augment):
        optimizer.zero_grad(set_to_none=True)
        loss = layers.functional.cross_entropy(model(augment(x)), target)
        loss.backward()
        optimizer.step()

    alone, ours, theirs = (device_ms(lambda: step(augment), runs) for augment in (lambda s: s, reverb, peer))
    report("training step, 128 x 64 000 with reverberation", "ms", ours, [theirs, None])
    print(f"the step alone takes {alone:.3f} ms; reverberation is {100 * (1 - alone / ours):.0f} % of the step with gpuconv and "
          f"{100 * (1 - alone / theirs):.0f} % with torchaudio")
    rows.append(("training step, 128 x 64 000 without reverberation", alone, "ms", None))


def kept(runs):
    """Ten minutes of stereo with a response that is kept, as in gpuconv bench, in CuPy; and its replacement in place."""
    if not cupy:
        print("CuPy is not installed: no rows of it")
        return
    x, h = (torch.randn(2, frames, device="cuda") for frames in (26_460_000, 66_150))
    cx, ch = cupy.from_dlpack(x), cupy.from_dlpack(h)

    def measure():
        convolver = gpuconv.Convolver(ch, frames=x.shape[1])
        y = torch.from_dlpack(convolver(cx))
        error = error_db(y, lambda a, b: product(x[a:b], h[a:b], y.shape[1]))
        times = device_ms(lambda: convolver(cx), runs), device_ms(lambda: oaconvolve(cx, ch, axes=-1), 5)
        report("10 min stereo x 1.5 s, response kept, in CuPy", "ms", times[0], [None, times[1]], error)
        report("the same: the Python call", "us on the host", host_us(lambda: convolver(cx), 100), [None, None])
        report("the same: update of the response in place", "us", 1e3 * device_ms(lambda: convolver.update(ch), runs), [None, None])

    on_stream(measure)


def sequence_errors(made, x, h, g, lengths=None):
    """Returns the errors in dB of y and of the gradients of x and h, as many as were made. x, g: (batch, channels, frames); with
    `lengths` (channels, frames), the sequences one after another."""
    off, power = [0.0] * 3, [0.0] * 3
    pieces = [(x[b], g[b], [t[b] for t in made[:2]]) for b in range(len(x))] if lengths is None else list(
        zip(x.split(lengths, -1), g.split(lengths, -1), zip(*(t.split(lengths, -1) for t in made[:2]))))
    step = max(1, (1 << 24) // (x.shape[-1] if lengths is None else max(lengths)))
    for first in range(0, len(h), step):
        part = slice(first, first + step)
        taps, gh = h[part], 0
        for signal, gradient, got in pieces:
            signal, gradient, frames = signal[part], gradient[part], signal.shape[-1]
            wants = [product(signal, taps, frames), product(gradient, taps, frames, True)]
            for i, (a, want) in enumerate(zip(got, wants)):
                off[i] += (a[part].double() - want).square().sum()
                power[i] += want.square().sum()
            if len(made) == 3:
                own = product(gradient, signal, min(frames, taps.shape[-1]), True)
                gh = gh + torch.nn.functional.pad(own, (0, taps.shape[-1] - own.shape[-1]))
        if len(made) == 3:
            off[2] += (made[2][part].double() - gh).square().sum()
            power[2] += gh.square().sum()
    return [float(10 * torch.log10(off[i] / power[i])) for i in range(len(made))]


def sequences(name, dtype, shape, taps, lengths, calls, runs):
    """Times calls of (x, h), the first of gpuconv, forward and with both gradients."""
    count = 3 if 2 * torch.Size(shape).numel() * dtype.itemsize < 400e6 else 1
    make = lambda *shape: torch.randn(*shape, device="cuda", dtype=dtype)  # noqa: E731
    sets = [(make(*shape).requires_grad_(), make(shape[-2], taps).requires_grad_(), make(*shape)) for _ in range(count)]
    times, errors = [], []
    for call in calls:
        def step(x, h, g):
            y = call(x, h)
            return (y, *torch.autograd.grad(y, (x, h), g))

        x, h, g = sets[0]
        made = poisoned(lambda: [t.detach() for t in step(x, h, g)], [x.shape, x.shape, h.shape])
        errors.append(sequence_errors(made, x.detach(), h.detach(), g, lengths))
        del made
        turn = itertools.cycle(sets)
        with torch.no_grad():
            forward = device_ms(lambda: call(*next(turn)[:2]), runs)
        times.append((forward, device_ms(lambda: step(*next(turn)), runs)))
    bound = BOUND if dtype is torch.float32 else HALF_BOUND
    for i, what in enumerate(("forward", "forward and both gradients")):
        label = f"{name}{', half' if dtype is torch.float16 else ''}: {what}"
        ours, *peers = ((t[i], max(e[:1] if i == 0 else e)) for t, e in zip(times, errors))
        beside = "".join(f"{t:.4g} ({t / ours[0]:.2f} x), {e:.0f} dB" for t, e in peers)
        print(f"| {label} | {ours[0]:.4g} | {beside} | {ours[1]:.0f} |", flush=True)
        rows.append((label, ours[0], "ms", ours[1]))
        rows.extend((f"{label}: NVIDIA", *peer[:1], "ms", peer[1]) for peer in peers)
        if not ours[1] <= bound:
            wrong.append(label)


def train(runs):
    """All sequences, and packed ones of 50 to 8000 frames."""
    print("| batch x channels x frames * taps, ms | gpuconv | NVIDIA's fft_causal_conv1d | error dB |\n| --- | --- | --- | --- |")
    lengths = [round(50 * 160 ** (i / 255)) for i in range(256)]
    lengths = [lengths[i * 77 % 256] for i in range(256)]
    starts = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device="cuda")
    for dtype in (torch.float32, torch.float16):
        for batch, channels, frames, taps in SEQUENCES:
            calls = [lambda x, h: gt.convolve(x, h, "causal"), fft_causal_conv1d]
            sequences(f"{batch} x {channels} x {frames} * {taps}", dtype, (batch, channels, frames), taps, None, list(filter(None, calls)), runs)
            torch.cuda.empty_cache()
        calls = [lambda x, h: gt.convolve(x, h, "causal", cu_seqlens=starts, max_seqlen=8000),
                 fft_causal_conv1d_packed and (lambda x, h: fft_causal_conv1d_packed(x, h, starts, 8000, 50))]
        sequences("256 packed rows of 50 to 8000 frames x 256 channels * 8000", dtype, (256, sum(lengths)), 8000, lengths, list(filter(None, calls)), runs)


def others(runs):
    """The cases beside torchaudio and CuPy."""
    print("| case | gpuconv | torchaudio | CuPy | error dB |\n| --- | --- | --- | --- | --- |")
    for number, (name, batch, frames, taps) in enumerate(CASES):
        x, h = torch.randn(batch, frames, device="cuda"), torch.randn(batch, taps, device="cuda")
        forward(name, x, h, runs)
        if number == 0:
            backward(name, x, h, runs)
        del x, h
        torch.cuda.empty_cache()
    small()
    training(runs)
    kept(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--figures")
    parser.add_argument("--training", action="store_true")
    given = parser.parse_args()
    if not torch.cuda.is_available() or not gpuconv.built_with_cuda:
        print("there is no GPU, or gpuconv is built without CUDA", file=sys.stderr)
        sys.exit(77)
    theirs = "its formula" if torchaudio_convolve is by_formula else "installed"
    print(f"gpuconv {gpuconv.__version__}, torch {torch.__version__}, torchaudio: {theirs}, CuPy "
          f"{cupy.__version__ if cupy else 'missing'}, {torch.cuda.get_device_name()}, medians of {given.runs} calls")
    if given.training:
        train(given.runs)
    else:
        others(given.runs)
    if given.figures:
        with open(given.figures, "w") as file:
            for name, value, unit, error in rows:
                file.write(f"{name}\t{value:.5g}\t{unit}\t{'' if error is None else f'{error:.1f}'}\n")
    if wrong:
        sys.exit(f"wrong outputs: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
