"""Arrays of JAX, CuPy and any other library that speaks DLPack, where they are installed."""

import gpuconv
import numpy as np
import pytest
from conftest import assert_close, oracle


class Exported:
    """An array of a library of which only DLPack is known."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_any_array_that_speaks_dlpack(rng):
    x, h = rng.standard_normal((2, 300)).astype(np.float32), rng.standard_normal(40).astype(np.float32)
    assert_close(gpuconv.convolve(Exported(x), Exported(h)), oracle(x, h))
    with pytest.raises(TypeError, match="x is an array of dlpack and h of numpy"):
        gpuconv.convolve(Exported(x), h)


def test_jax(rng):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x, h = rng.standard_normal((2, 3000)).astype(np.float32), rng.standard_normal((2, 400)).astype(np.float32)
    jx, jh = jax.numpy.asarray(x), jax.numpy.asarray(h)
    y = gpuconv.convolve(jx, jh, "same")
    assert isinstance(y, jax.Array) and y.devices() == jx.devices()
    assert_close(y, oracle(x, h, "same"))
    assert_close(gpuconv.Convolver(jh)(jx), oracle(x, h))
    assert gpuconv.convolve(jx.astype("float16"), jh.astype("float16")).dtype == "float16"
    with pytest.raises(TypeError, match="traced by JAX: call gpuconv outside of jax.jit, or through jax.pure_callback"):
        jax.jit(gpuconv.convolve)(jx, jh)
    with pytest.raises(ValueError, match="no frames"):
        gpuconv.convolve(jx[:, :0], jh)

    def inside(a, b):
        return jax.pure_callback(lambda p, q: np.asarray(gpuconv.convolve(p, q)), jax.ShapeDtypeStruct((2, 3399), "float32"), a, b)

    assert_close(jax.jit(inside)(jx, jh), oracle(x, h))


def test_cupy(rng):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not gpuconv.built_with_cuda:
        pytest.skip("gpuconv is built without CUDA")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no GPU: {error}")
    x, h = rng.standard_normal((2, 3000)).astype(np.float32), rng.standard_normal((2, 400)).astype(np.float32)
    gx, gh = cupy.asarray(x), cupy.asarray(h)
    with cupy.cuda.Stream(non_blocking=True):
        y = gpuconv.convolve(gx, gh, "same")
        assert isinstance(y, cupy.ndarray)
        assert_close(y.get(), oracle(x, h, "same"))
        assert_close(gpuconv.Convolver(gh)(gx).get(), oracle(x, h))
        stream = gpuconv.StreamingConvolver(gh, block=256)
        assert_close(stream(gx[:, :256]).get(), oracle(x, h)[:, :256], bound=-110)


def test_a_gpu_of_torch(rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not gpuconv.built_with_cuda:
        pytest.skip("gpuconv is built without CUDA")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    import gpuconv.torch as gt

    x = torch.randn(8, 2, 5000, device="cuda", requires_grad=True)
    for shape in ((300,), (2, 300), (8, 1, 300), (8, 2, 300)):
        h = torch.randn(*shape, device="cuda", requires_grad=True)
        y = gpuconv.convolve(x, h, "same")
        assert_close(y.detach().cpu(), oracle(x.detach().cpu(), h.detach().cpu(), "same"))
        gx, gh = torch.autograd.grad(y.square().sum(), (x, h))
        cx, ch = x.detach().cpu().requires_grad_(), h.detach().cpu().requires_grad_()
        wx, wh = torch.autograd.grad(gt.convolve(cx, ch, "same").square().sum(), (cx, ch))
        assert_close(gx.cpu(), wx.double().numpy(), bound=-100)
        assert_close(gh.cpu(), wh.double().numpy(), bound=-100)
    half = gt.convolve(x.detach().half(), h.detach().half(), "causal", delay=5)
    assert half.dtype == torch.float16
    module = gt.Convolution(h.detach(), "causal").cuda()
    assert_close(module(x.detach()).cpu(), oracle(x.detach().cpu(), h.detach().cpu(), "causal"))
    reverb = gt.RandomReverb([torch.randn(400), torch.randn(300)], p=1.0).cuda()
    assert reverb(x.detach()).shape == x.shape
    graph = torch.cuda.CUDAGraph()
    fixed, taps = x.detach(), h.detach()
    gt.convolve(fixed, taps)
    with torch.cuda.graph(graph):
        y = gt.convolve(fixed, taps)
    graph.replay()
    assert_close(y.cpu(), oracle(fixed.cpu(), taps.cpu()))
    with pytest.raises(ValueError, match="x is on cuda:0 and h on cpu"):
        gpuconv.convolve(fixed, taps.cpu())
