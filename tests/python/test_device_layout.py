"""The planning of jobs for the GPU, without one: rows, strides, shared responses, copies and types, with a stand-in for
the kernels that computes in host memory by the formulas of gpuconv_cuda.h."""

import ctypes

import numpy as np
import pytest
from conftest import assert_close, oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuconv import _cuda


class HostLibrary:
    """Arrays of NumPy in the role of arrays on the device."""

    def layout(self, name, x):
        return _cuda.Layout(x.shape, tuple(step // x.itemsize for step in x.strides), 0 if x.itemsize == 4 else 1)

    device = staticmethod(lambda x: 0)
    pointer = staticmethod(lambda x: x.ctypes.data)
    stream = staticmethod(lambda x: 0)
    empty = staticmethod(lambda like, shape, kind: np.full(shape, np.nan, np.float32 if kind == 0 else np.float16))
    bytes = staticmethod(lambda like, count: np.empty(count, np.uint8))
    contiguous = staticmethod(lambda x, batch: np.ascontiguousarray(np.broadcast_to(x, batch + x.shape[-1:])))
    move = staticmethod(np.moveaxis)
    is_current = staticmethod(lambda device: True)


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

        def __init__(self, cuda, operation, signal, response, output, group, offset, prepared):
            self.layouts, self.operation = (signal, response, output), operation
            self.group, self.offset = group, offset
            assert signal[1] == output[1]

        def run(self, first, second, made, workspace, stream):
            pointers = {0: (first, second, made), 1: (made, second, first), 2: (second, made, first)}[self.operation]
            x, h, y = (rows(layout, pointer) for layout, pointer in zip(self.layouts, pointers))
            n, m, count, o = x.shape[1], h.shape[1], y.shape[1], self.offset
            if self.operation == 2:
                h[:] = 0
            for i in range(len(x)):
                r = i // self.group % len(h)
                if self.operation == 0:
                    full = np.zeros(max(o + count, n + m - 1))
                    full[: n + m - 1] = np.convolve(x[i].astype(float), h[r].astype(float))
                    y[i] = full[o : o + count]
                elif self.operation == 1:
                    x[i] = [sum(h[r, k] * y[i, t + k - o] for k in range(m) if 0 <= t + k - o < count) for t in range(n)]
                else:
                    h[r] += [sum(x[i, t] * y[i, t + k - o] for t in range(n) if 0 <= t + k - o < count) for k in range(m)]


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(_cuda, "_core", StandIn)
    monkeypatch.setitem(_cuda._adapters, "host", HostLibrary())
    monkeypatch.setattr(_cuda, "_jobs", {})
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
    _cuda._jobs.clear()
    total = x.shape[-1] + h.shape[-1] - 1
    for _ in range(2):  # the second time with the planned job
        assert_close(_cuda.run("host", _cuda.CONVOLVE, x, h, 0, total), oracle(x, h), bound=-100)


@settings(deadline=None, max_examples=80)
@given(arrays(), st.integers(0, 4))
def test_gradients_are_adjoint(pair, offset):
    x, h = pair
    _cuda._jobs.clear()
    batch = np.broadcast_shapes(x.shape[:-1], h.shape[:-1])
    g = np.random.default_rng(1).standard_normal(batch + (x.shape[-1],)).astype(np.float32)
    y = _cuda.run("host", _cuda.CONVOLVE, x, h, offset, x.shape[-1])
    by_x = _cuda.run("host", _cuda.GRADIENT_SIGNAL, g, h, offset, x.shape[-1])
    by_h = _cuda.run("host", _cuda.GRADIENT_RESPONSE, g, x, offset, h.shape[-1], h.shape[:-1])
    want = (y.astype(float) * g).sum()
    assert by_x.shape == batch + x.shape[-1:]
    assert (by_x * np.broadcast_to(x, by_x.shape)).sum() == pytest.approx(want, rel=1e-4, abs=1e-3)
    assert (by_h * np.broadcast_to(h, by_h.shape)).sum() == pytest.approx(want, rel=1e-4, abs=1e-3)


def test_shared_responses_are_not_copied():
    assert _cuda.share((8, 2), ()) == (1, 1)
    assert _cuda.share((8, 2), (2,)) == (2, 1)
    assert _cuda.share((8, 2), (8, 1)) == (8, 2)
    assert _cuda.share((8, 2), (8, 2)) == (16, 1)
    assert _cuda.share((8, 3, 2), (3, 1)) == (3, 2)
    assert _cuda.share((8, 3, 2), (8, 1, 2)) is None


def test_halves_stay_halves():
    x, h = np.ones((2, 8), np.float16), np.ones(3, np.float16)
    assert _cuda.run("host", _cuda.CONVOLVE, x, h, 0, 10).dtype == np.float16
    assert _cuda.run("host", _cuda.CONVOLVE, x, h.astype(np.float32), 0, 10).dtype == np.float32


def test_an_axis_and_bad_shapes():
    x, h = np.ones((8, 2), np.float32), np.ones(3, np.float32)
    assert _cuda.convolve_arrays("host", x, h, "full", 0, 0).shape == (10, 2)
    with pytest.raises(ValueError, match="x has no frames"):
        _cuda.convolve_arrays("host", x[:0], h, "full", 0, 0)
    with pytest.raises(ValueError, match="do not broadcast"):
        _cuda.convolve_arrays("host", x, np.ones((3, 2), np.float32), "full", -1, 0)
