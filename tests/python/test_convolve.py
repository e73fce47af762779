"""convolve() and Convolver on arrays of NumPy: properties over random shapes, strides, modes and types."""

import multiprocessing
import pickle
import threading

import gpuconv
import numpy as np
import pytest
from conftest import SHAPES, assert_close, oracle, power
from hypothesis import given, settings
from hypothesis import strategies as st

MODES = ("full", "same", "valid", "causal")
LENGTHS = st.one_of(st.integers(1, 40), st.integers(1, 3000), st.sampled_from([511, 512, 513, 4096, 20000]))


@st.composite
def cases(draw):
    """A signal, a response and a mode; arrays with gaps, reversed, transposed, or of halves."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(LENGTHS), draw(LENGTHS)
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    own = batch[draw(st.integers(0, len(batch))) :]
    own = tuple(size if draw(st.booleans()) else 1 for size in own)
    step = draw(st.sampled_from([1, 1, 2, -1, -3]))
    x = rng.standard_normal(batch + (n * abs(step),)).astype(np.float32)[..., ::step][..., :n]
    h = rng.standard_normal(own + (m,)).astype(np.float32)
    if draw(st.booleans()):
        h = np.asfortranarray(h)
    mode = draw(st.sampled_from(MODES if n >= m else ("full", "same", "causal")))
    return x, h, mode


@settings(deadline=None, max_examples=80)
@given(cases())
def test_matches_the_oracle(case):
    x, h, mode = case
    y = gpuconv.convolve(x, h, mode)
    assert y.dtype == np.float32
    assert_close(y, oracle(x, h, mode), power=power(x, h))


@settings(deadline=None, max_examples=30)
@given(cases())
def test_a_prepared_response_gives_the_same(case):
    x, h, mode = case
    assert_close(gpuconv.Convolver(h)(x, mode), oracle(x, h, mode), power=power(x, h))


@settings(deadline=None, max_examples=25)
@given(cases(), st.integers(0, 2))
def test_any_axis(case, place):
    x, h, mode = case
    axis = min(place, x.ndim - 1)
    if h.ndim > 1:
        h = np.broadcast_to(h, (1,) * (x.ndim - h.ndim) + h.shape)
    moved = np.moveaxis(x, -1, axis)
    y = gpuconv.convolve(moved, np.moveaxis(h, -1, axis) if h.ndim > 1 else h, mode, axis=axis)
    assert y.flags.c_contiguous
    assert_close(np.moveaxis(y, axis, -1), oracle(x, h, mode), power=power(x, h))
    if h.ndim == 1:
        y = gpuconv.Convolver(h)(moved, mode, axis=axis)
        assert_close(np.moveaxis(y, axis, -1), oracle(x, h, mode), power=power(x, h))


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 2000), st.integers(1, 2000), st.integers(0, 5000))
def test_delay_is_compensated(n, m, delay):
    rng = np.random.default_rng(n)
    x, h = rng.standard_normal(n).astype(np.float32), rng.standard_normal(m).astype(np.float32)
    assert_close(gpuconv.convolve(x, h, "causal", delay=delay), oracle(x, h, "causal", delay), power=power(x, h))


@pytest.mark.parametrize("frames, taps, offset, output", SHAPES)
def test_the_shapes_of_the_library(rng, frames, taps, offset, output):
    x, h = rng.standard_normal(frames).astype(np.float32), rng.standard_normal(taps).astype(np.float32)
    assert_close(gpuconv.convolve(x, h), oracle(x, h))
    if offset >= 0:
        assert_close(gpuconv.convolve(x, h, "causal", delay=offset), oracle(x, h, "causal", offset), power=power(x, h))


def test_halves_come_back_as_halves(rng):
    x, h = rng.standard_normal(2000).astype(np.float16), rng.standard_normal(100).astype(np.float16)
    y = gpuconv.convolve(x, h)
    assert y.dtype == np.float16
    assert_close(y, oracle(x, h), bound=-60)
    assert gpuconv.convolve(x.astype(np.float32), h).dtype == np.float32


def test_an_empty_batch_is_empty():
    assert gpuconv.convolve(np.zeros((0, 2, 10), np.float32), np.ones(3, np.float32)).shape == (0, 2, 12)


def test_lists_are_arrays():
    assert gpuconv.convolve([1, 2, 3], [1, 1]).tolist() == [1, 3, 5, 3]


def test_arrays_are_not_changed_and_may_be_read_only(rng):
    x, h = rng.standard_normal(5000).astype(np.float32), rng.standard_normal(300).astype(np.float32)
    x.flags.writeable = h.flags.writeable = False
    before = x.copy(), h.copy()
    gpuconv.convolve(x, h)
    gpuconv.Convolver(h)(x)
    assert np.array_equal(x, before[0]) and np.array_equal(h, before[1])


def test_unaligned_samples(rng):
    memory = np.zeros(4 * 1000 + 1, np.uint8)
    x = memory[1:].view(np.float32)
    x[:] = rng.standard_normal(1000)
    h = rng.standard_normal(100).astype(np.float32)
    assert_close(gpuconv.convolve(x, h), oracle(x, h))


def test_a_convolver_is_pickled_and_says_what_it_is(rng):
    h = rng.standard_normal((2, 30)).astype(np.float32)
    convolver = gpuconv.Convolver(h)
    x = rng.standard_normal((2, 100)).astype(np.float32)
    assert np.array_equal(pickle.loads(pickle.dumps(convolver))(x), convolver(x))
    assert repr(convolver) == "<gpuconv.Convolver of a numpy array of shape (2, 30): direct on CPU>"
    assert convolver.frames == 30


def test_threads_share_a_convolver(rng):
    convolver = gpuconv.Convolver(rng.standard_normal(2000).astype(np.float32))
    xs = rng.standard_normal((8, 30000)).astype(np.float32)
    want, got = [convolver(x) for x in xs], [None] * len(xs)

    def work(number):
        for _ in range(5):
            got[number] = convolver(xs[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(xs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(a, b) for a, b in zip(got, want))


def _in_child(queue, convolver, x):
    queue.put(convolver(x))


def test_a_forked_child_has_threads_of_its_own(rng):
    convolver = gpuconv.Convolver(rng.standard_normal(2000).astype(np.float32))
    x = rng.standard_normal((4, 60000)).astype(np.float32)
    want = convolver(x)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue, convolver, x))
    child.start()
    assert np.array_equal(queue.get(timeout=60), want)
    child.join()


def test_the_number_of_threads_comes_from_the_environment(rng, monkeypatch):
    x, h = np.ones(100, np.float32), np.ones(3, np.float32)
    monkeypatch.setenv("GPUCONV_THREADS", "2")
    gpuconv.convolve(x, h)
    monkeypatch.setenv("GPUCONV_THREADS", "many")
    with pytest.raises(ValueError, match="GPUCONV_THREADS='many': use 1 to 1024"):
        gpuconv.convolve(x, h)


GOOD = np.ones(8, np.float32)


@pytest.mark.parametrize(
    "x, h, keywords, kind, text",
    [
        (GOOD[:0], GOOD, {}, ValueError, r"x has no frames \(shape \(0,\)\): at least one is needed"),
        (GOOD, GOOD[:0], {}, ValueError, r"h has no frames"),
        (np.zeros((3, 0), np.float32), GOOD, {}, ValueError, r"x has no frames \(shape \(3, 0\)\)"),
        (np.float32(1), GOOD, {}, (ValueError, TypeError), r"x is a number"),
        (GOOD.astype(np.float64), GOOD, {}, TypeError, r"x has dtype float64.*x.astype\(numpy.float32\)"),
        (GOOD, GOOD.astype(np.int16), {}, TypeError, r"h has dtype int16.*/ 32768 for audio"),
        (GOOD.astype(np.complex64), GOOD, {}, TypeError, r"x.real and x.imag"),
        (np.ma.masked_array(GOOD), GOOD, {}, TypeError, r"masked"),
        (GOOD.astype(">f4"), GOOD, {}, TypeError, r"dtype >f4"),
        (GOOD, GOOD, {"threads": 1.5}, TypeError, r"threads=1.5: use a whole number"),
        (GOOD, GOOD, {"axis": "last"}, TypeError, r"axis='last': use a whole number"),
        (GOOD, GOOD, {"mode": "causal", "delay": 1.5}, TypeError, r"delay=1.5: use a whole number"),
        (GOOD, GOOD, {"mode": "causal", "delay": 10**30}, ValueError, r"delay=10{30}: use 0 to"),
        ([[1, 2], [3]], GOOD, {}, ValueError, r"x is a list of lists of different lengths"),
        (np.array([1, None]), GOOD, {}, TypeError, r"x has dtype object"),
        (None, GOOD, {}, TypeError, r"x is None, no array"),
        (GOOD, "hall.wav", {}, TypeError, r"h is str, no array; .* by gpuconv.load_ir"),
        (GOOD, gpuconv.ImpulseResponse(GOOD, 48000), {}, TypeError, r"use gpuconv.Convolver\(h\)\(x\)"),
        (np.ones((2000, 2), np.float32), np.ones((900, 2), np.float32), {}, ValueError, r"frames are the last axis: .* axis=-2"),
        ("text", GOOD, {}, TypeError, r"x is str, no array; a sound file is read by gpuconv.read"),
        (GOOD, GOOD * np.nan, {}, ValueError, r"h has NaN or infinite taps"),
        (GOOD, GOOD * np.inf, {}, ValueError, r"h has NaN or infinite taps"),
        (GOOD[:3], GOOD, {"mode": "valid"}, ValueError, r"mode='valid': a signal of 3 frames"),
        (GOOD, GOOD, {"mode": "tail"}, ValueError, r"mode='tail': use 'full', 'same', 'valid', 'causal'"),
        (GOOD, GOOD, {"delay": 3}, ValueError, r"delay=3 needs mode='causal'"),
        (GOOD, GOOD, {"mode": "causal", "delay": -1}, ValueError, r"delay=-1"),
        (GOOD, GOOD, {"axis": 1}, ValueError, r"axis=1: x has 1 dimensions"),
        (GOOD, GOOD, {"threads": 5000}, ValueError, r"threads=5000"),
        (np.ones((3, 8), np.float32), np.ones((2, 8), np.float32), {}, ValueError, r"batch \(3,\) of x and .* \(2,\) of h"),
    ],
)
def test_bad_input_says_what_fits(x, h, keywords, kind, text):
    with pytest.raises(kind, match=text):
        gpuconv.convolve(x, h, **keywords)


def test_a_batch_that_looks_like_channels_is_told():
    with pytest.warns(UserWarning, match=r"x of shape \(2000, 2\) is 2000 signals of 2 frames; .* use axis=-2"):
        gpuconv.convolve(np.ones((2000, 2), np.float32), np.ones(50, np.float32))


def test_a_convolver_refuses_bad_responses():
    with pytest.raises(ValueError, match="NaN or infinite"):
        gpuconv.Convolver(GOOD * np.nan)
    with pytest.raises(ValueError, match="h has no frames"):
        gpuconv.Convolver(GOOD[:0])
    with pytest.raises(ValueError, match="backend='tpu': use 'auto', 'cpu', 'cuda'"):
        gpuconv.Convolver(GOOD, backend="tpu")
    with pytest.raises(ValueError, match="frames=0: use 1 to"):
        gpuconv.Convolver(GOOD, frames=0)
    for option in ({"backend": "cuda"}, {"algorithm": "direct"}, {"device": 0}):
        with pytest.raises(ValueError, match="need an ImpulseResponse; an array is convolved where it is"):
            gpuconv.Convolver(GOOD, **option)


def test_the_response_of_a_convolver_is_replaced(rng):
    x, h, other = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 900), (3, 40), (3, 40)))
    convolver = gpuconv.Convolver(h)
    convolver(x)
    convolver.update(other)
    assert_close(convolver(x), oracle(x, other))
    with pytest.raises(ValueError, match=r"h of shape \(3, 39\): use \(3, 40\), as before"):
        convolver.update(h[:, 1:])
    with pytest.raises(TypeError, match="the response was an array of numpy, and h is an ImpulseResponse"):
        convolver.update(gpuconv.ImpulseResponse(h, 48000))
    assert_close(convolver(x), oracle(x, other))
    hall = gpuconv.Convolver(gpuconv.ImpulseResponse(h[0], 48000))
    hall(x[0])
    hall.update(gpuconv.ImpulseResponse(other[0], 48000))
    assert_close(hall(x[0]), oracle(x[0], other[0]))
    with pytest.raises(ValueError, match="use one of the same rate"):
        hall.update(gpuconv.ImpulseResponse(other[0], 44100))


def test_a_plan_of_an_array_names_its_algorithm():
    plan = gpuconv.Convolver(np.ones(3000, np.float32), threads=2).plan(100_000, 4)
    assert (plan.backend, plan.algorithm, plan.threads) == ("cpu", "overlap-save", 2)
    assert plan.reason.startswith("overlap-save: 4 convolutions with 3000 taps")
    assert gpuconv.Convolver(np.ones(20, np.float32)).plan(1000).algorithm == "direct"


def test_a_prepared_matrix_of_responses_convolves_every_batch():
    rng = np.random.default_rng(4)
    x, h = rng.standard_normal((3, 2, 4, 500)).astype("f4"), rng.standard_normal((3, 1, 4, 60)).astype("f4")
    kept = gpuconv.Convolver(h)
    want = gpuconv.convolve(x, h)
    h[:] = 0  # the Convolver has copied it
    assert_close(kept(x), want, bound=-110)
