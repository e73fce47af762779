"""StreamingConvolver: any blocks give the convolution, the tail comes from flush(), and responses are exchanged."""

import gpuconv
import numpy as np
import pytest
from conftest import assert_close, oracle, power
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 9000), st.lists(st.integers(0, 3000), min_size=1, max_size=8), st.sampled_from([64, 256, 1024]))
def test_any_blocks_give_the_convolution(taps, blocks, block):
    rng = np.random.default_rng(taps)
    h = rng.standard_normal(taps).astype(np.float32)
    x = rng.standard_normal((2, sum(blocks))).astype(np.float32)
    stream = gpuconv.StreamingConvolver(h, channels=2, block=block)
    parts, at = [], 0
    for size in blocks:
        parts.append(stream.process(x[:, at : at + size]))
        assert parts[-1].shape == (2, size)
        at += size
    parts.append(stream.flush())
    if x.size:
        assert_close(np.concatenate(parts, 1), oracle(x, h), bound=-110, power=power(x, h))
    assert stream.latency == 0 and stream.late_blocks == 0


def test_one_channel_and_reset(rng):
    h, x = rng.standard_normal(500).astype(np.float32), rng.standard_normal(1000).astype(np.float32)
    stream = gpuconv.StreamingConvolver(h)
    first = stream(x)
    assert first.shape == (1000,)
    stream.reset()
    assert np.array_equal(stream(x), first)
    assert_close(first, oracle(x, h)[:1000], bound=-110)


def test_a_matrix_and_a_swap(rng):
    taps = rng.standard_normal((4, 300)).astype(np.float32)
    stream = gpuconv.StreamingConvolver(gpuconv.ImpulseResponse(taps, 48000), channels=2)
    x = rng.standard_normal((2, 4096)).astype(np.float32)
    y = stream(x)
    assert_close(y[0], (oracle(x[0], taps[0]) + oracle(x[1], taps[2]))[:4096], bound=-110)
    stream.swap(gpuconv.ImpulseResponse(taps[:, :1] * 0, 48000), seconds=0)
    assert (stream.channels, stream.outputs) == (2, 2)
    last = stream(np.zeros((2, 8192), np.float32))
    assert np.abs(last[:, 4096:]).max() == 0


def test_bad_blocks_say_what_fits():
    stream = gpuconv.StreamingConvolver(np.ones((2, 5), np.float32))
    with pytest.raises(ValueError, match=r"use \(2, frames\)"):
        stream(np.ones((3, 10), np.float32))
    with pytest.raises(TypeError, match="float64"):
        stream(np.ones((2, 10)))
