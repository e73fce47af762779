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


def test_a_reset_is_exact_and_ends_a_crossfade(rng):
    h, other = (rng.standard_normal(20000).astype(np.float32) for _ in range(2))
    x = rng.standard_normal(30000).astype(np.float32)
    stream = gpuconv.StreamingConvolver(h, block=256)
    made = stream._stream
    stream(x)
    stream.swap(other, seconds=1)
    stream(x[:5000])
    stream.reset()
    assert stream._stream is made  # cleared, not made again
    assert np.array_equal(stream(x), gpuconv.StreamingConvolver(other, block=256)(x))


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


def test_single_routes_are_exchanged(rng):
    taps = {(0, 0): rng.standard_normal(500), (0, 1): rng.standard_normal(400), (1, 1): rng.standard_normal(300)}
    taps = {place: one.astype(np.float32) for place, one in taps.items()}
    moved = {(0, 0): rng.standard_normal(900).astype(np.float32), (1, 0): rng.standard_normal(50).astype(np.float32)}
    response = gpuconv.ImpulseResponse.matrix(taps, 48000)
    assert (response.inputs, response.outputs, response.routes, response.frames) == (2, 2, 3, 500)
    stream = gpuconv.StreamingConvolver(response, block=256)
    quiet = gpuconv.StreamingConvolver(response, block=256)
    x = rng.standard_normal((2, 8192)).astype(np.float32)
    for at in range(0, 4096, 256):
        assert np.array_equal(stream(x[:, at : at + 256]), quiet(x[:, at : at + 256]))
    stream.swap_routes(moved, seconds=0)
    y, still = [], []
    for at in range(4096, 8192, 256):
        y.append(stream(x[:, at : at + 256]))
        still.append(quiet(x[:, at : at + 256]))
    y, still = np.concatenate(y, 1), np.concatenate(still, 1)
    assert_close(y[1], still[1].astype(float), bound=-120)
    now = {**taps, **moved}
    before, after = x.copy(), x.copy()
    before[:, 4096:], after[:, :4096] = 0, 0
    want = oracle(before[0], taps[0, 0])[4096:8192]
    want[: 8192 - 4096] += (oracle(after[0], now[0, 0])[:8192] + oracle(after[1], now[1, 0])[:8192])[4096:]
    assert_close(y[0], want, bound=-110)
    tail = stream.flush()
    assert tail.shape == (2, 899)
    assert np.abs(stream(np.zeros((2, 512), np.float32))).max() < 1e-4  # rounding of transforms
    stream.reset()  # with the present routes
    y = stream(x[:, :2000])
    assert_close(y[0], (oracle(x[0], now[0, 0])[:2000] + oracle(x[1], now[1, 0])[:2000]), bound=-110)
    assert_close(y[1], (oracle(x[0], now[0, 1])[:2000] + oracle(x[1], now[1, 1])[:2000]), bound=-110)


def test_a_swapped_response_is_flushed_until_it_has_decayed(rng):
    h, x = rng.standard_normal(3000).astype(np.float32), rng.standard_normal(512).astype(np.float32)
    stream = gpuconv.StreamingConvolver(h, block=256)
    y = stream(x)
    stream.swap(np.ones(1, np.float32), seconds=0)
    tail = stream.flush()
    assert tail.shape == (1, 2999)
    assert_close(np.concatenate([y, tail[0]]), oracle(x, h), bound=-110)
    assert stream.flush().shape == (1, 0)


def test_latency_and_what_the_stream_says(rng):
    h, x = rng.standard_normal(2000).astype(np.float32), rng.standard_normal(1024).astype(np.float32)
    stream = gpuconv.StreamingConvolver(h, latency=128, block=256)
    assert stream.latency == 128 and stream.backend == "cpu" and "frames directly" in stream.plan
    y = np.concatenate([stream(x), stream.flush()[0]])
    assert_close(y[128:], oracle(x, h), bound=-110)
    assert not stream.realtime
    stream.realtime = True
    assert stream.realtime


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda s: s.swap_routes({}), ValueError, "at least one"),
        (lambda s: s.swap_routes({(2, 0): [1.0]}), ValueError, "inputs=2: a route names number 2, counted from 0"),
        (lambda s: s.swap_routes({(0, -1): [1.0]}), ValueError, "outputs must be 1 to 1024, numbered from 0"),
        (lambda s: s.swap_routes({0: [1.0]}), TypeError, r"the key 0 is no pair \(input, output\)"),
        (lambda s: s.swap_routes({(0, 0): np.ones((2, 3), np.float32)}), ValueError, r"route \(0, 0\) has taps of shape \(2, 3\)"),
        (lambda s: s.swap_routes({(0, 0): [np.nan]}), ValueError, "not finite"),
        (lambda s: s.swap_routes({(0, 0): [1.0]}, seconds=99), ValueError, "60"),
        (lambda s: s.swap_routes(gpuconv.ImpulseResponse([1.0], 48000)), ValueError, "not routed; use ImpulseResponse.matrix"),
        (lambda s: s.swap(np.ones((3, 2), np.float32)), ValueError, "3 channels of response do not fit 2"),
        (lambda s: gpuconv.StreamingConvolver([1.0], block=0), ValueError, "block=0: use 1 to 65536"),
        (lambda s: gpuconv.StreamingConvolver([1.0], latency=-1), ValueError, "latency=-1"),
        (lambda s: gpuconv.StreamingConvolver([1.0], threads=0), ValueError, "threads=0"),
    ],
)
def test_bad_exchanges_say_what_fits(call, kind, text):
    with pytest.raises(kind, match=text):
        call(gpuconv.StreamingConvolver(np.ones((2, 5), np.float32)))


def test_bad_blocks_say_what_fits():
    stream = gpuconv.StreamingConvolver(np.ones((2, 5), np.float32))
    with pytest.raises(ValueError, match=r"use \(2, frames\)"):
        stream(np.ones((3, 10), np.float32))
    with pytest.raises(TypeError, match="float64"):
        stream(np.ones((2, 10)))
