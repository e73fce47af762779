"""Arrays on an NVIDIA GPU: PyTorch, CuPy and JAX. Skipped where one is missing; GPUCONV_GPU_TESTS=1, which scripts/gpu-check
sets, makes that a failure, except for a library that is not installed."""

import importlib.util
import os
import threading
from pathlib import Path

import gpuconv
import numpy as np
import pytest
from conftest import SHAPES, assert_close, oracle

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX leaves memory to the others
NEEDED = os.environ.get("GPUCONV_GPU_TESTS") == "1"


def library(name):
    """Imports a library and returns it if it has a GPU that this build can use; else skips."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    module = pytest.importorskip(name)
    if not gpuconv.built_with_cuda:
        reason = "gpuconv is built without CUDA"
    elif name == "torch":
        reason = None if module.cuda.is_available() else "PyTorch finds no GPU"
    elif name == "cupy":
        reason = None if module.cuda.is_available() else "CuPy finds no GPU"
    else:
        reason = None if any(device.platform in ("gpu", "cuda") for device in module.devices()) else "JAX finds no GPU"
    if reason:
        assert not NEEDED, reason
        pytest.skip(reason)
    return module


@pytest.fixture
def torch():
    module = library("torch")
    module.manual_seed(5)
    return module


def host(tensor):
    return tensor.detach().double().cpu().numpy()


# ---- PyTorch ----


@pytest.mark.parametrize("shape", [(300,), (2, 300), (8, 1, 300), (8, 2, 300)])
@pytest.mark.parametrize("mode", ["full", "same", "valid", "causal"])
def test_torch_values_and_gradients(torch, shape, mode):
    import gpuconv.torch as gt

    x = torch.randn(8, 2, 5000, device="cuda", requires_grad=True)
    h = torch.randn(*shape, device="cuda", requires_grad=True)
    y = gpuconv.convolve(x, h, mode)
    assert y.is_cuda
    assert_close(y.detach().cpu(), oracle(host(x), host(h), mode))
    weight = torch.randn_like(y)
    gx, gh = torch.autograd.grad((y * weight).sum(), (x, h))
    cx, ch = x.detach().cpu().requires_grad_(), h.detach().cpu().requires_grad_()
    wx, wh = torch.autograd.grad((gt.convolve(cx, ch, mode) * weight.cpu()).sum(), (cx, ch))
    assert_close(gx.cpu(), wx.double().numpy(), bound=-105)
    assert_close(gh.cpu(), wh.double().numpy(), bound=-105)


@pytest.mark.parametrize("frames, taps", sorted({shape[:2] for shape in SHAPES}))
def test_torch_sizes(torch, frames, taps):
    x, h = torch.randn(3, frames, device="cuda"), torch.randn(3, taps, device="cuda")
    assert_close(gpuconv.convolve(x, h).cpu(), oracle(host(x), host(h)))


@pytest.mark.parametrize("kind, batch, frames, shared", [("float32", 32, 32768, True), ("float32", 32, 32768, False),
                                                         ("float16", 32, 32768, True), ("float32", 256, 8000, True),
                                                         ("bfloat16", 256, 8000, True)])
def test_both_gradients_take_the_transforms_of_the_forward(torch, monkeypatch, kind, batch, frames, shared):
    import gpuconv.torch as gt
    from gpuconv import _cuda_libraries, _torch

    x, g = (torch.randn(batch, 3, frames, device="cuda", dtype=getattr(torch, kind)) for _ in range(2))
    taps = frames if frames > 16384 else 6000  # one transform holds a row
    h = torch.randn(*([] if shared else [batch]), 3, taps, device="cuda", dtype=x.dtype) / 100
    want = _torch._gradient_both(g, x, h, 0)
    x.requires_grad_(), h.requires_grad_()
    y = gpuconv.convolve(x, h, "causal")
    assert len(y.grad_fn.saved_tensors) == 3, "no transforms are kept"
    assert torch.equal(y, gpuconv.convolve(x.detach(), h.detach(), "causal"))
    for _ in range(2):  # the graph stays, and with it the transforms
        made = torch.autograd.grad(y, (x, h), g, retain_graph=True)
        assert torch.equal(made[0], want[0]) and torch.equal(made[1], want[1])
    again = torch.autograd.grad(y, (x, h), g, create_graph=True)
    assert torch.equal(again[1], want[1])
    torch.autograd.grad(again[1].float().square().sum(), x)

    monkeypatch.setattr(_cuda_libraries._Torch, "spare", 0.25)
    gt.keep_transforms(0)
    y = gpuconv.convolve(x, h, "causal")
    assert len(y.grad_fn.saved_tensors) == 2, "transforms are kept"
    made = torch.autograd.grad(y, (x, h), g)
    assert torch.equal(made[0], want[0]) and torch.equal(made[1], want[1])


def test_gradcheck_on_the_gpu(torch):
    import gpuconv.torch as gt

    x, h = torch.randn(2, 3, 20, device="cuda", requires_grad=True), torch.randn(3, 7, device="cuda", requires_grad=True)
    with pytest.warns(UserWarning):
        assert torch.autograd.gradcheck(lambda a, b: gt.convolve(a, b, "same"), (x, h), eps=0.1, atol=2e-2, rtol=1e-3)
        assert torch.autograd.gradgradcheck(lambda a, b: gt.convolve(a, b), (x, h), eps=0.1, atol=3e-2, rtol=1e-2)


def test_torch_strides_types_and_axes(torch):
    x, h = torch.randn(4, 3, 2000, device="cuda"), torch.randn(3, 60, device="cuda")
    want = oracle(host(x), host(h))
    assert_close(gpuconv.convolve(x.transpose(1, 2).contiguous().transpose(1, 2), h).cpu(), want)
    assert_close(gpuconv.convolve(x.movedim(-1, 0), h.movedim(-1, 0)[:, None], axis=0).movedim(0, -1).cpu(), want)
    assert_close(gpuconv.convolve(x[:, ::2, 1::2], h[::2]).cpu(), oracle(host(x[:, ::2, 1::2]), host(h[::2])))
    assert_close(gpuconv.convolve(x[:, :1].expand(4, 3, 2000), h.flip(-1)).cpu(), oracle(host(x[:, :1]), host(h.flip(-1))))
    for dtype, bound in ((torch.float16, -60), (torch.bfloat16, -40)):
        y = gpuconv.convolve(x.to(dtype), h.to(dtype))
        assert y.dtype == dtype
        assert_close(y.float().cpu(), want, bound)
    assert gpuconv.convolve(x.half(), h).dtype == torch.float32


def test_the_convolver_of_a_tensor_and_its_update(torch):
    h, x = torch.randn(8, 1, 2, 900, device="cuda"), torch.randn(8, 3, 2, 7000, device="cuda")
    convolver = gpuconv.Convolver(h)
    assert_close(convolver(x, "same").cpu(), oracle(host(x), host(h), "same"))  # rows that share in no simple way
    h = torch.randn(2, 900, device="cuda")
    convolver = gpuconv.Convolver(h)
    assert_close(convolver(x).cpu(), oracle(host(x), host(h)))
    used = torch.cuda.memory_allocated()
    other = torch.randn(2, 900, device="cuda").half()
    convolver.update(other)
    assert_close(convolver(x).cpu(), oracle(host(x), host(other)))
    assert torch.cuda.memory_allocated() <= used + 2 * 900 * 4 + 1024
    # In a graph, the response that it reads may change between launches.
    taps, graph = torch.randn(2, 900, device="cuda"), torch.cuda.CUDAGraph()
    convolver.update(taps)
    convolver(x)
    with torch.cuda.graph(graph):
        convolver.update(taps)
        y = convolver(x)
    for _ in range(2):
        taps.copy_(torch.randn(2, 900, device="cuda"))
        graph.replay()
        assert_close(y.cpu(), oracle(host(x), host(taps)))


def test_modules_on_the_gpu(torch):
    import gpuconv.torch as gt

    x, h = torch.randn(5, 2, 6000, device="cuda"), torch.randn(2, 300, device="cuda")
    module = gt.Convolution(h, "causal").cuda()
    for _ in range(2):
        assert_close(module(x).cpu(), oracle(host(x), host(module.h), "causal"))
        module.h.mul_(2)
    reverb = gt.RandomReverb([torch.randn(400), torch.randn(300)], p=1.0, wet=(0.2, 0.9)).cuda()
    assert reverb(x).shape == x.shape and torch.isfinite(reverb(x)).all()
    with torch.autocast("cuda", dtype=torch.float16):
        low = torch.nn.Linear(6000, 6000).cuda()(x)
        y = gt.convolve(low, h.requires_grad_())
        y.float().square().mean().backward()
    assert low.dtype == torch.float16 and torch.isfinite(h.grad).all()


def test_torch_compile_on_the_gpu(torch):
    import gpuconv.torch as gt

    x, h = torch.randn(2, 300, device="cuda", requires_grad=True), torch.randn(40, device="cuda", requires_grad=True)
    compiled = torch.compile(lambda a, b: gt.convolve(a * 2, b, "causal").relu().sum(), backend="aot_eager", fullgraph=True)
    compiled(x, h).backward()
    got = x.grad.clone()
    x.grad = None
    gt.convolve(x * 2, h, "causal").relu().sum().backward()
    assert torch.allclose(got, x.grad)


def test_streams_graphs_and_threads(torch):
    x, h = torch.randn(4, 50_000, device="cuda"), torch.randn(4, 3000, device="cuda")
    want = oracle(host(x), host(h))
    alone = gpuconv.convolve(x, h)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = gpuconv.convolve(x, h)
    y.fill_(float("nan"))
    graph.replay()
    assert torch.equal(y, alone)
    results = {}

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
            for _ in range(20):
                result = gpuconv.convolve(x, h)
            torch.cuda.current_stream().synchronize()
            results[number] = result

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(torch.equal(result, alone) for result in results.values())
    assert_close(alone.cpu(), want)


@pytest.mark.parametrize("block", [256, 300])
def test_a_stream_on_the_gpu(torch, block):
    h, x = torch.randn(2, 1500, device="cuda"), torch.randn(2, 12 * block, device="cuda")
    stream = gpuconv.StreamingConvolver(h, block=block)
    for _ in range(2):
        made = torch.cat([stream(part) for part in x.split(block, 1)] + [stream.flush()], 1)
        assert_close(made.cpu(), oracle(host(x), host(h)), bound=-110)
    # After an exchange: x fades out of h and into the other response.
    other = torch.randn(2, 700, device="cuda")
    blocks = list(x.split(block, 1))
    made = [stream(part) for part in blocks[:3]]
    stream.swap(other, 500 / 48000)
    made = torch.cat(made + [stream(part) for part in blocks[3:]] + [stream.flush()], 1)
    ramp = np.clip((np.arange(12 * block) - 3 * block + 0.5) / 500, 0, 1)
    a, b = oracle(host(x) * (1 - ramp), host(h)), oracle(host(x) * ramp, host(other))
    want = a
    want[:, : b.shape[1]] += b
    count = made.shape[1]
    assert count >= 12 * block + 699
    assert_close(made.cpu(), want[:, :count], bound=-105)


def test_bad_tensors_on_the_gpu_say_what_fits(torch):
    x, h = torch.ones(2, 50, device="cuda"), torch.ones(7, device="cuda")
    for call, kind, text in [
        (lambda: gpuconv.convolve(x, h.cpu()), ValueError, "x is on cuda:0 and h on cpu; move one"),
        (lambda: gpuconv.convolve(x.cpu(), h), ValueError, "x is on cpu and h on cuda:0"),
        (lambda: gpuconv.Convolver(h)(x.cpu()), ValueError, "h on"),
        (lambda: gpuconv.convolve(x.double(), h), TypeError, r"float64.*use x.float\(\)"),
        (lambda: gpuconv.convolve(x.int(), h), TypeError, "int32"),
        (lambda: gpuconv.convolve(x[:, :0], h), ValueError, "x has no frames"),
        (lambda: gpuconv.convolve(x, h[:0]), ValueError, "h has no frames"),
        (lambda: gpuconv.convolve(x, torch.ones(3, 7, device="cuda")), ValueError, "do not broadcast"),
        (lambda: gpuconv.StreamingConvolver(h, block=32)(x), ValueError, r"block of shape \(2, 50\): use \(1, 32\)"),
        (lambda: gpuconv.StreamingConvolver(h)(np.ones(1024, np.float32)), TypeError, "x is an array of numpy, and the stream is of torch"),
        (lambda: gpuconv.StreamingConvolver(h).swap_routes({(0, 0): h}), TypeError, r"has no routes; use swap\(\)"),
        (lambda: gpuconv.convolve(x.short(), h), TypeError, r"x.float\(\) / 32768 for audio"),
        (lambda: gpuconv.Convolver(h).update(h[:3]), ValueError, r"use \(7,\), as before"),
        (lambda: gpuconv.Convolver(h).update(h.cpu()), ValueError, "h is on cpu"),
    ]:
        with pytest.raises(kind, match=text):
            call()
    assert gpuconv.convolve(x[:0], h).shape == (0, 56)


# ---- CuPy and JAX ----


def test_cupy(rng):
    cupy = library("cupy")
    x, h = rng.standard_normal((2, 3000)).astype(np.float32), rng.standard_normal((2, 400)).astype(np.float32)
    gx, gh = cupy.asarray(x), cupy.asarray(h)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.wait_event(cupy.cuda.Stream.null.record())
        y = gpuconv.convolve(gx, gh, "same")
        assert isinstance(y, cupy.ndarray)
        assert_close(y.get(), oracle(x, h, "same"))
        assert_close(gpuconv.convolve(gx[:, ::2], gh[0]).get(), oracle(x[:, ::2], h[0]))
        assert_close(gpuconv.convolve(gx.T, gh.T, axis=0).T.get(), oracle(x, h))
        assert gpuconv.convolve(gx.astype("f2"), gh.astype("f2")).dtype == "float16"
        convolver = gpuconv.Convolver(gh)
        assert_close(convolver(gx).get(), oracle(x, h))
        convolver.update(2 * gh)
        assert_close(convolver(gx, "causal", delay=3).get(), oracle(x, 2 * h, "causal", 3))
        blocks = gpuconv.StreamingConvolver(gh, block=256)
        assert_close(blocks(gx[:, :256]).get(), oracle(x, h)[:, :256], bound=-110)
        assert blocks.flush().shape == (2, 399)
    with pytest.raises(TypeError, match="float64.*astype"):
        gpuconv.convolve(gx.astype("f8"), gh)
    with pytest.raises(TypeError, match="x is an array of numpy and h of cupy"):
        gpuconv.convolve(x, gh)


def test_jax_on_the_gpu(rng):
    jax = library("jax")
    x, h = rng.standard_normal((2, 3000)).astype(np.float32), rng.standard_normal((2, 400)).astype(np.float32)
    jx, jh = jax.numpy.asarray(x), jax.numpy.asarray(h)
    y = gpuconv.convolve(jx * 1, jh * 1, "same")
    assert isinstance(y, jax.Array) and y.devices() == jx.devices()
    assert_close(np.asarray(y), oracle(x, h, "same"))
    assert_close(np.asarray(jax.jit(lambda a: a + 1)(y)) - 1, oracle(x, h, "same"), bound=-100)
    convolver = gpuconv.Convolver(jh)
    assert_close(np.asarray(convolver(jx)), oracle(x, h))
    convolver.update(jh * 2)
    assert_close(np.asarray(convolver(jx)), oracle(x, 2 * h))
    for _ in range(50):  # arrays that are freed while the stream still reads them
        y = gpuconv.convolve(jx + 0, jh + 0)
    assert_close(np.asarray(y), oracle(x, h))


@pytest.mark.parametrize("interpolate", ["hold", "linear"])
def test_jax_traces_filters_that_change_with_time_on_the_gpu(rng, interpolate):
    """Compiled values and gradients, beside those of NumPy and of the GPU's own linearity."""
    jax = library("jax")
    x, h = rng.standard_normal((2, 3000)).astype(np.float32), rng.standard_normal((2, 7, 60)).astype(np.float32)
    call = jax.jit(lambda a, b: gpuconv.time_varying(a, b, 480, interpolate=interpolate))
    want = gpuconv.time_varying(x, h, 480, interpolate=interpolate).astype(float)
    assert_close(np.asarray(call(x, h)), want, bound=-110)
    gx, gh = jax.jit(lambda a, b: jax.vjp(call, a, b)[1](want.astype(np.float32)))(x, h)
    for found, given in ((gx, x), (gh, h)):
        assert np.vdot(found, given) == pytest.approx((want**2).sum(), rel=1e-4)


@pytest.mark.parametrize("shapes", [((2, 3000), (2, 400)), ((3, 2, 70000), (9000,)), ((40, 500), (40, 30))])
def test_jax_traces_on_the_gpu(rng, shapes):
    """Compiled values, both gradients and tangents, and vmap, which queue their work on XLA's stream."""
    jax = library("jax")
    x, h = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    call = jax.jit(lambda a, b: gpuconv.convolve(a, b, "causal"))
    if hasattr(gpuconv._core, "xla_rows"):
        assert "callback" not in call.lower(x, h).as_text()
    want = oracle(x, h, "causal")
    for _ in range(10):  # workspaces that are reused while the stream still works
        assert_close(np.asarray(call(x + 0, h + 0)), want)
    weight = rng.standard_normal(want.shape).astype(np.float32)
    gx, gh = jax.jit(lambda a, b: jax.vjp(call, a, b)[1](weight))(x, h)
    y, tangent = jax.jit(lambda a, b: jax.jvp(call, (a, b), (gx, gh)))(x, h)
    change = oracle(gx, h, "causal") + oracle(x, gh, "causal")
    assert_close(np.asarray(tangent), change, bound=-105)
    assert np.vdot(gx, gx) + np.vdot(gh, gh) == pytest.approx((weight * change).sum(), rel=1e-3)
    many = jax.jit(jax.vmap(gpuconv.convolve, (0, None)))(np.stack([x, -x]), h)
    assert_close(np.asarray(many), np.stack([oracle(x, h), -oracle(x, h)]))


# ---- Sounds that move ----


@pytest.mark.parametrize("keywords", [{}, {"doppler": True, "by_distance": True}, {"head": ([0, 1], [(0, 0, 0), (90, 10, -5)])}])
def test_moving_sources_are_those_of_the_cpu(torch, rng, keywords):
    head = gpuconv.SofaSet(Path(__file__).resolve().parents[1] / "sofa/head.sofa")
    x = rng.standard_normal((3, 9001)).astype(np.float32)
    path = ([0, 0.5], [[(0, 0, 1), (90, 30, 2), (-45, -10, 1.5)], [(360, 0, 1), (-90, 30, 0.5), (-45, 40, 3)]])
    want = head.move(x, path, **keywords)
    assert_close(head.move(x, path, backend="cuda", **keywords), want, bound=-110)
    assert np.array_equal(head.move(x, path, backend="cuda", **keywords), head.move(x, path, backend="cuda", **keywords))
