"""Times training steps of tiny tensors, which take the time of the host: forward, and backward by all tensors.

    python python/benchmarks/steps.py [--device cuda]

Each row is the median and the least of 60 loops of 25 steps, in microseconds a step, the queue of the GPU empty at the end of each;
the threads of autograd make the times vary. The gradients of every step are compared with those of float64, by PyTorch's own transforms.
"""

import argparse
import statistics
import time

import torch

import gpuconv
import gpuconv.torch as gt

FRAMES, TAPS, HOP = 64, 16, 16


def loops(call, device):
    times = []
    for _ in range(64):
        begin = time.perf_counter()
        for _ in range(25):
            call()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 4e4)
    return statistics.median(times[4:]), min(times[4:])


def varying(x, h):
    """The time-varying convolution of float64, block after block."""
    parts = [gt.convolve(torch.nn.functional.pad(part, (at, FRAMES - at - HOP)), taps, "causal")
             for at, part, taps in zip(range(0, FRAMES, HOP), x.split(HOP, -1), h.unbind(-2))]
    return sum(parts)


def steps(device, dtype):
    """Yields name, function, tensors, and the function of float64 or None."""
    make = lambda *shape: torch.randn(*shape, device=device, dtype=dtype, requires_grad=True)  # noqa: E731
    x, h, taps, rest = make(2, FRAMES), make(2, TAPS), make(2, FRAMES // HOP, TAPS), (make(2, FRAMES), make(2, FRAMES), make(2))
    weight = make(2, 1, TAPS)
    module = gt.Convolution(torch.randn(2, TAPS), "causal", learn=True).to(device)
    reverb = gt.RandomReverb([torch.randn(TAPS) for _ in range(5)], p=1.0).to(device)
    plain = lambda x, h: gt.convolve(x, h, "causal")  # noqa: E731
    gated = lambda x, h, pre, post, skip: gt.convolve(x, h, "causal", pre=pre, post=post, skip=skip)  # noqa: E731
    yield "PyTorch's depthwise conv1d", lambda x, w: torch.nn.functional.conv1d(x[None], w, padding=TAPS - 1, groups=2)[..., :FRAMES], (x, weight), None
    yield "convolve", plain, (x, h), plain
    yield "convolve with pre, post and skip", gated, (x, h, *rest), gated
    yield "time_varying", lambda x, h: gt.time_varying(x, h, HOP, mode="causal"), (x, taps), varying
    if dtype is torch.float32:
        yield "Convolution", lambda x, _: module(x), (x, module.h), plain
        yield "RandomReverb", reverb, (x,), None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() and gpuconv.built_with_cuda else "cpu")
    device = parser.parse_args().device
    name = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"gpuconv {gpuconv.__version__}, torch {torch.__version__}, {name}; us a step, median (least)")
    for dtype, bound in ((torch.float32, -100), (torch.float16, -50)):
        for name, call, tensors, exact in steps(device, dtype):
            y = call(*tensors)
            g = torch.randn_like(y)
            made = torch.autograd.grad(y, tensors, g)
            if exact:
                wide = [tensor.detach().double().requires_grad_() for tensor in tensors]
                for got, want in zip(made, torch.autograd.grad(exact(*wide), wide, g.double())):
                    error = 10 * torch.log10((got - want).square().sum() / want.square().sum())
                    assert error < bound, (name, float(error))
            step = loops(lambda: torch.autograd.grad(call(*tensors), tensors, g), device)
            with torch.no_grad():
                forward = loops(lambda: call(*tensors), device)
            print(f"{name}, {str(dtype)[6:]}: {step[0]:.0f} ({step[1]:.0f}); without gradients {forward[0]:.1f} ({forward[1]:.1f})", flush=True)


if __name__ == "__main__":
    main()
