"""The planning of jobs for the GPU, without one: rows, strides, shared responses, copies and types, kept responses and
streams, with a stand-in for the kernels that computes in host memory by the formulas of gpuconv_arrays.h."""

import contextlib
import ctypes

import numpy as np
import pytest
from conftest import assert_close, oracle
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuconv
from gpuconv import _batches, _cuda, _cuda_libraries, _device_stream, _stream


class HostLibrary:
    """Arrays of NumPy in the role of arrays on the device."""

    def layout(self, name, x):
        return _cuda_libraries.Layout(x.shape, tuple(step // x.itemsize for step in x.strides), 0 if x.itemsize == 4 else 1)

    device = staticmethod(lambda x: 0)
    pointer = staticmethod(lambda x: x.ctypes.data)
    stream = staticmethod(lambda x: 0)
    empty = staticmethod(lambda like, shape, kind: np.full(shape, np.nan, np.float32 if kind == 0 else np.float16))
    bytes = spare_bytes = staticmethod(lambda like, count: np.empty(count, np.uint8))
    contiguous = staticmethod(lambda x, batch: np.ascontiguousarray(np.broadcast_to(x, batch + x.shape[-1:])))
    move = staticmethod(np.moveaxis)
    key = staticmethod(lambda x: (x.shape, x.strides, x.dtype))
    resolve = staticmethod(lambda x: x)
    is_current = staticmethod(lambda device: True)
    current = staticmethod(lambda device: contextlib.nullcontext())
    zeros = staticmethod(lambda like, shape: np.zeros(shape, np.float32))
    ramp = staticmethod(lambda like, first, frames, length: np.clip((np.arange(first, first + frames) + 0.5) / length, 0, 1).astype("f4"))
    cast = staticmethod(lambda x, like: x.astype(like.dtype))
    join = staticmethod(lambda parts: np.concatenate(parts, -1))


def rows(layout, pointer):
    kind, count, frames, stride = layout
    item = 4 if kind == 0 else 2
    size = ((count - 1) * stride + frames) * item
    memory = np.frombuffer((ctypes.c_char * size).from_address(pointer), np.float32 if kind == 0 else np.float16)
    return np.lib.stride_tricks.as_strided(memory, (count, frames), (stride * item, item), writeable=True)


class StandIn:
    has_cuda = True

    class Cuda:
        def __init__(self, number):
            pass

    class CudaJob:
        workspace = 8
        transforms = 0

        def __init__(self, cuda, options, arrays, prepared, gates):
            self.operation, self.group, self.offset, hop, linear = options
            self.roles = [(0, 1, 2), (2, 1, 0), (1, 2, 0)][self.operation]  # where signal, response and output stand
            self.layouts = signal, response, output = [arrays[i] for i in self.roles]
            self.prepared, self.hop = prepared, hop or signal[2]
            self.gates = (*gates[:2], gates[2] and (0, signal[1], 1, 1))
            assert signal[1] == output[1] and not linear

        def run(self, arrays, workspace, stream, transforms=0, gates=(0, 0, 0)):
            self.left = transforms
            x, h, y = (rows(layout, arrays[i]) for layout, i in zip(self.layouts, self.roles))
            if self.prepared is not None:
                assert h.shape == self.prepared.taps.shape
                h = self.prepared.taps
            assert [bool(layout) for layout in self.gates] == [bool(pointer) for pointer in gates]
            pre, post, skip = (rows(*gate) if gate[0] else None for gate in zip(self.gates, gates))
            if pre is not None:
                x = x * pre  # of a convolution
            n, count, o, hop = x.shape[1], y.shape[1], self.offset, self.hop
            blocks = -(-n // hop)
            m = h.shape[1] // blocks
            if self.operation == 2:
                h[:] = 0
            for i in range(len(x)):
                taps = h[i // self.group % len(h)].reshape(blocks, m)  # a view
                if self.operation == 0:
                    full = np.zeros(max(o + count, n + m - 1))
                    for b in range(blocks):
                        part = np.convolve(x[i, b * hop : (b + 1) * hop].astype(float), taps[b].astype(float))
                        full[b * hop : b * hop + len(part)] += part
                    y[i] = full[o : o + count] if post is None else post[i] * (full[o : o + count] + skip[i] * rows(self.layouts[0], arrays[0])[i])
                elif self.operation == 1:
                    x[i] = [sum(taps[t // hop, k] * y[i, t + k - o] for k in range(m) if 0 <= t + k - o < count) for t in range(n)]
                else:
                    for t in range(n):
                        taps[t // hop] += [x[i, t] * y[i, t + k - o] if 0 <= t + k - o < count else 0 for k in range(m)]

    class CudaResponses:
        def __init__(self, cuda, layout, pointer, frames, stream):
            self.update(layout, pointer, stream)

        def update(self, layout, pointer, stream):
            self.taps = rows(layout, pointer).astype(np.float32)

    class CudaStreamer:
        def __init__(self, cuda, layout, pointer, channels, block, stream):
            taps = rows(layout, pointer).astype(float)
            self.taps = [taps[c % len(taps)] for c in range(channels)]
            self.reset(stream)

        def reset(self, stream):
            self.past = np.zeros((len(self.taps), len(self.taps[0]) - 1))

        def process(self, layout, data, out, made, stream):
            x, y = rows(layout, data), rows(out, made)
            whole = np.concatenate([self.past, x], 1)
            for c, taps in enumerate(self.taps):
                y[c] = np.convolve(whole[c], taps)[len(taps) - 1 : len(taps) - 1 + x.shape[1]]
            self.past = whole[:, whole.shape[1] - len(self.taps[0]) + 1 :]


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    for module in (_cuda, _device_stream):
        monkeypatch.setattr(module, "_core", StandIn)
    monkeypatch.setitem(_cuda_libraries.adapters, "host", HostLibrary())
    monkeypatch.setattr(_cuda, "_plans", {})
    monkeypatch.setattr(_cuda, "_devices", {})


@st.composite
def arrays(draw):
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))

    def operand(frames):
        shape = tuple(size if draw(st.booleans()) else 1 for size in batch)[draw(st.integers(0, len(batch))) :]
        made = rng.standard_normal(shape + (frames * 2,)).astype(np.float32)
        made = made[..., :frames] if draw(st.booleans()) else made[..., ::2]
        return np.swapaxes(made, 0, 1) if len(shape) > 1 and draw(st.booleans()) and shape[0] == shape[1] else made

    return operand(draw(st.integers(1, 9))), operand(draw(st.integers(1, 6)))


@settings(deadline=None, max_examples=150)
@given(arrays())
def test_any_batches_and_strides(pair):
    x, h = pair
    _cuda._plans.clear()
    total = x.shape[-1] + h.shape[-1] - 1
    for _ in range(2):  # the second time with the planned job
        assert_close(_cuda.run("host", _cuda.CONVOLVE, x, h, 0, total), oracle(x, h), bound=-100)


@settings(deadline=None, max_examples=80)
@given(arrays(), st.integers(0, 4))
def test_gradients_are_adjoint(pair, offset):
    x, h = pair
    _cuda._plans.clear()
    batch = np.broadcast_shapes(x.shape[:-1], h.shape[:-1])
    g = np.random.default_rng(1).standard_normal(batch + (x.shape[-1],)).astype(np.float32)
    y = _cuda.run("host", _cuda.CONVOLVE, x, h, offset, x.shape[-1])
    by_x = _cuda.run("host", _batches.GRADIENT_SIGNAL, g, h, offset, x.shape[-1])
    by_h = _cuda.run("host", _cuda.GRADIENT_RESPONSE, g, x, offset, h.shape[-1], h.shape[:-1])
    want = (y.astype(float) * g).sum()
    assert by_x.shape == batch + x.shape[-1:]
    assert (by_x * np.broadcast_to(x, by_x.shape)).sum() == pytest.approx(want, rel=1e-4, abs=1e-3)
    assert (by_h * np.broadcast_to(h, by_h.shape)).sum() == pytest.approx(want, rel=1e-4, abs=1e-3)


def test_shared_responses_are_not_copied():
    assert _batches.share((8, 2), ()) == (1, 1)
    assert _batches.share((8, 2), (2,)) == (2, 1)
    assert _batches.share((8, 2), (8, 1)) == (8, 2)
    assert _batches.share((8, 2), (8, 2)) == (16, 1)
    assert _batches.share((8, 3, 2), (3, 1)) == (3, 2)
    assert _batches.share((8, 3, 2), (8, 1, 2)) is None


def test_transforms_are_left_where_there_is_memory(monkeypatch):
    monkeypatch.setattr(StandIn.CudaJob, "transforms", 64)
    x, h = np.ones((2, 8), np.float32), np.ones((2, 3), np.float32)
    y, kept = _cuda.run("host", _cuda.CONVOLVE, x, h, 0, 10, keep=True)
    (plan,) = _cuda._plans.values()
    assert kept.nbytes == 64 and plan.job.left == kept.ctypes.data
    assert np.array_equal(y, _cuda.run("host", _cuda.CONVOLVE, x, h, 0, 10)) and plan.job.left == 0
    assert _cuda.run("host", _cuda.CONVOLVE, x[:, ::2], h, 0, 6, keep=True)[1] is None  # a copy of x has them
    monkeypatch.setattr(HostLibrary, "spare_bytes", staticmethod(lambda like, count: None))
    assert _cuda.run("host", _cuda.CONVOLVE, x, h, 0, 10, keep=True)[1] is None


def test_halves_stay_halves():
    x, h = np.ones((2, 8), np.float16), np.ones(3, np.float16)
    assert _cuda.run("host", _cuda.CONVOLVE, x, h, 0, 10).dtype == np.float16
    assert _cuda.run("host", _cuda.CONVOLVE, x, h.astype(np.float32), 0, 10).dtype == np.float32


def test_no_rows():
    x, h = np.ones((0, 2, 8), np.float32), np.ones((2, 3), np.float32)
    assert _cuda.convolve_arrays("host", x, h, "full", -1, 0).shape == (0, 2, 10)
    assert _cuda.run("host", _batches.GRADIENT_SIGNAL, x, h, 0, 6).shape == (0, 2, 6)
    assert np.array_equal(_cuda.run("host", _cuda.GRADIENT_RESPONSE, x, x[..., :6], 0, 3, (2,)), np.zeros((2, 3)))


def test_an_axis_and_bad_shapes():
    x, h = np.ones((8, 2), np.float32), np.ones(3, np.float32)
    assert _cuda.convolve_arrays("host", x, h, "full", 0, 0).shape == (10, 2)
    with pytest.raises(ValueError, match="x has no frames"):
        _cuda.convolve_arrays("host", x[:0], h, "full", 0, 0)
    with pytest.raises(ValueError, match="do not broadcast"):
        _cuda.convolve_arrays("host", x, np.ones((3, 2), np.float32), "full", -1, 0)


@settings(deadline=None, max_examples=60)
@given(arrays())
def test_kept_responses_of_any_batch_and_their_update(pair):
    x, h = pair
    kept = _cuda.Prepared("host", h)
    for _ in range(3):
        assert_close(kept(x, "full"), oracle(x, h), bound=-100)
        assert_close(_cuda.convolve_arrays("host", x, h, "full", -1, 0), oracle(x, h), bound=-100)
    _cuda._plans.clear()
    kept(x, "full")
    other = np.random.default_rng(9).standard_normal(h.shape).astype(np.float32)
    kept.update(other)
    assert_close(kept(x, "full"), oracle(x, other), bound=-100)
    assert not _cuda._plans  # plans are freed with the responses that they hold


@pytest.mark.parametrize("taps", [1, 7, 40])
def test_a_stream_with_exchanges_and_its_tail(taps, rng):
    x, block = rng.standard_normal((2, 120)).astype(np.float32), 10
    h = [rng.standard_normal((2, taps)).astype(np.float32) for _ in range(3)]
    stream = _device_stream.DeviceStream("host", h[0], None, block)
    whole = np.concatenate([stream.process(x[:, n : n + block]) for n in range(0, 120, block)] + [stream.flush()], 1)
    assert_close(whole, oracle(x, h[0]), bound=-100)
    # Two exchanges, the second before the first has ended. The shares of the input sum to it.
    made = []
    for n in range(0, 120, block):
        if n in (30, 50):
            stream.swap(h[1 if n == 30 else 2], 35)
        made.append(stream.process(x[:, n : n + block]))
    made = np.concatenate(made + [stream.flush()], 1)
    first, second = (np.clip((np.arange(120) - n + 0.5) / 35, 0, 1) for n in (30, 50))
    shares = [(1 - first) * (1 - second), first * (1 - second), second]
    want = sum(oracle(x * share, taps) for share, taps in zip(shares, h))
    assert_close(made, want[:, : made.shape[1]], bound=-100)
    assert len(stream.voices) == 1
    with pytest.raises(ValueError, match=r"block of shape \(2, 9\): use \(2, 10\)"):
        stream.process(x[:, :9])
    with pytest.raises(ValueError, match="does not fit 2 channels"):
        stream.swap(np.ones((3, 5), np.float32), 10)


def test_a_stream_on_the_gpu_says_what_it_lacks(monkeypatch):
    """Arrays of NumPy in the role of those of CuPy."""
    monkeypatch.setattr(_stream, "library", lambda array, name="x": "cupy" if isinstance(array, np.ndarray) else "numpy")
    monkeypatch.setitem(_cuda_libraries.adapters, "cupy", HostLibrary())
    h, x = np.ones(3, np.float32), np.arange(8, dtype=np.float32)
    stream = gpuconv.StreamingConvolver(h, block=8)
    assert (stream.channels, stream.outputs, stream.latency, stream.late_blocks) == (1, 1, 0, 0)
    assert stream.backend == "cuda" and not stream.realtime
    assert_close(stream(x), oracle(x, h)[:8], bound=-100)
    stream.swap(2 * h, seconds=0)
    stream.realtime = False
    assert_close(np.concatenate([stream(x), stream.flush()[0]]), (oracle(np.tile(x, 2), h) + oracle(np.pad(x, (8, 0)), h))[8:], bound=-100)
    for call, kind, text in [
        (lambda: stream.plan, TypeError, "a stream of arrays on a GPU has no plan"),
        (lambda: stream.swap_routes({(0, 0): h}), TypeError, r"a stream of arrays on a GPU has no routes; use swap\(\)"),
        (lambda: setattr(stream, "realtime", True), ValueError, "realtime=True: a stream of arrays on a GPU leaves nothing out"),
        (lambda: gpuconv.StreamingConvolver(h, realtime=True), ValueError, "realtime=True"),
        (lambda: gpuconv.StreamingConvolver(h, latency=64), ValueError, "latency=64: a stream on the GPU has none"),
        (lambda: stream.swap(h, seconds=61), ValueError, "0 to 60 seconds, not 61"),
        (lambda: stream.swap([1.0]), TypeError, "h is an array of numpy, and the stream is of cupy on a GPU"),
        (lambda: stream([0.0] * 8), TypeError, "x is an array of numpy, and the stream is of cupy on a GPU"),
    ]:
        with pytest.raises(kind, match=text):
            call()


@pytest.mark.parametrize("kept", [False, True])
def test_tensors_by_plans_found_again(kept, monkeypatch):
    """The functions of PyTorch's adapter, with tensors in host memory in the role of those on a device."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not hasattr(torch._C, "_cuda_getCurrentRawStream"):
        pytest.skip("PyTorch is built without CUDA")
    library = _cuda_libraries._Torch()
    monkeypatch.setattr(library, "stream", lambda x: 0)
    monkeypatch.setattr(library, "now", lambda: -1)
    monkeypatch.setattr(library, "current", lambda device: contextlib.nullcontext())
    monkeypatch.setitem(_cuda_libraries.adapters, "torch", library)

    def convolve(x, h, *rest):
        return _cuda.Prepared("torch", h)(x, *rest) if kept else _cuda.convolve_arrays("torch", x, h, *rest, 0)

    for shape, taps in (((3, 40), (9,)), ((2, 3, 40), (3, 9)), ((8, 3, 2, 20), (8, 1, 2, 5)), ((0, 7), (3,))):
        x, h = torch.randn(*shape), torch.randn(*taps)
        for _ in range(3):
            x = torch.randn(*shape)
            assert_close(convolve(x, h, "full", -1), oracle(x, h), bound=-100)
        if shape[0]:
            moved = x.movedim(-1, 0).contiguous()
            assert_close(convolve(moved, h if kept or h.dim() == 1 else h.expand(*x.shape[:-1], -1).movedim(-1, 0), "same", 0).movedim(0, -1),
                         oracle(x, h, "same"), bound=-100)
    x, h = torch.randn(2, 50, dtype=torch.complex64).conj().imag, torch.randn(7)
    for _ in range(2):
        assert_close(convolve(x, h, "full", -1), oracle(x.resolve_neg(), h), bound=-100)
    half = convolve(torch.randn(4, 30).half(), torch.randn(5).half(), "causal", -1)
    assert half.dtype == torch.float16 and half.shape == (4, 30)
    with pytest.raises(TypeError, match=r"x has dtype torch.float64.*x.float\(\)"):
        convolve(torch.randn(4).double(), torch.randn(3), "full", -1)


@pytest.mark.parametrize("batch", [(2, 3), (3,), (1,)])
def test_a_filter_that_changes_with_time_has_a_row_for_each_block(stand_in, batch):
    r = np.random.default_rng(5)
    x = r.standard_normal((2, 3, 25)).astype(np.float32)
    h = r.standard_normal(batch + (3, 2 * 7)).astype(np.float32)[..., ::2]  # taps that are not adjacent
    flat = h.reshape(batch + (21,))
    for taps in (flat, np.repeat(flat, 2, -1)[..., ::2]):  # adjacent, and not
        made = _cuda.run_library("host", _cuda.CONVOLVE, x, taps, 0, 31, 10, False)
        assert_close(made, gpuconv.time_varying(x, h, 10), bound=-100)


def test_gates_reach_the_job_with_the_rows_that_they_belong_to():
    r = np.random.default_rng(9)
    x, pre, post = (r.standard_normal((2, 3, 40)).astype(np.float32) for _ in range(3))
    h, skip = r.standard_normal((3, 40)).astype(np.float32), r.standard_normal((2, 3)).astype(np.float32)
    y = _cuda.run("host", _batches.CONVOLVE, x, h, 0, 40, (), None, 0, False, (pre, post, skip))
    assert_close(y, post * (oracle(pre * x, h, "causal") + skip[..., None] * x))
