"""convolve() and time_varying() where JAX traces: values, derivatives of any order, vmap, through XLA's custom call and through the host."""

import subprocess
import sys
import threading

import gpuconv
import numpy as np
import pytest
from conftest import assert_close, oracle
from test_varying import definition

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

SHAPES = [((40,), (9,)), ((2, 3, 30), (8,)), ((2, 3, 30), (2, 1, 8)), ((5, 3, 20), (3, 7)), ((3, 1, 20), (2, 20)), ((1, 10), (4, 3))]


def arrays(rng, *shapes):
    return [jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in shapes]


@pytest.fixture(params=["as built", "through the host"], autouse=True)
def path(request, monkeypatch):
    """Runs each test as this build calls on the CPU, and as one without XLA's headers."""
    if request.param == "through the host":
        from gpuconv import _jax

        def register(direct):
            for primitive, through in (_jax._rows_p, _jax._through_host), (_jax._both_p, _jax._both):
                rule = _jax._call_of_xla if direct else mlir.lower_fun(through, multiple_results=primitive.multiple_results)
                mlir.register_lowering(primitive, rule, platform="cpu")
            jax.clear_caches()

        mlir = jax.interpreters.mlir
        register(False)
        yield request.param
        register(hasattr(gpuconv._core, "xla_rows"))
    else:
        yield request.param


REFUSED = """
import jax, numpy as np, gpuconv
from jax._src import xla_bridge

def refuse(*arguments, **keywords):
    print("with a backend" if xla_bridge.backends_are_initialized() else "too early")
    raise ValueError("newer than this XLA")

jax.ffi.register_ffi_target = refuse
gpuconv._core.xla_rows = getattr(gpuconv._core, "xla_rows", lambda gradients, gpu: None)
y = jax.jit(lambda x, h: gpuconv.convolve(x, h))(np.ones(300, "f"), np.ones(30, "f"))
print(float(y[100]))
"""


def test_an_xla_that_refuses_the_call_leaves_jax_working():
    """A target that is refused before there is a backend would end its making, and with it all of JAX."""
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=300)
    assert done.stdout.split("\n")[:2] == ["with a backend", "30.0"], done.stderr


def test_the_compiled_call_is_that_of_the_build(path, rng):
    text = jax.jit(gpuconv.convolve).lower(*arrays(rng, (2, 30), (5,))).as_text()
    direct = path == "as built" and hasattr(gpuconv._core, "xla_rows")
    assert ("gpuconv_rows" in text) == direct and ("callback" in text) != direct


def test_both_gradients_are_one_call(path, rng):
    """Where both are wanted, and not where one is, nor of filters that change with time."""
    loss = lambda a, b: (gpuconv.convolve(a, b) ** 2).sum()  # noqa: E731
    varying = lambda a, b: (gpuconv.time_varying(a, b, 10) ** 2).sum()  # noqa: E731
    x, h, blocks = arrays(rng, (2, 30), (5,), (2, 3, 5))
    text = [jax.jit(call).lower(x, b).as_text() for call, b in
            [(jax.grad(loss, (0, 1)), h), (jax.grad(loss, 0), h), (jax.grad(loss, 1), h), (jax.grad(varying, (0, 1)), blocks)]]
    direct = path == "as built" and hasattr(gpuconv._core, "xla_rows")
    assert ["gpuconv_both" in t for t in text] == [direct, False, False, False]
    if direct:
        assert text[0].count("custom_call @gpuconv_rows") == 1


OLDER = """
import jax, numpy as np
def refuse(*arguments, **keywords):
    raise RuntimeError("API version mismatch")
jax.ffi.register_ffi_target = refuse
import gpuconv
assert np.allclose(jax.jit(gpuconv.convolve)(np.ones(5, "f"), np.ones(3, "f")), [1, 2, 3, 3, 3, 2, 1])
"""


def test_an_xla_that_is_older_than_the_headers_calls_through_the_host():
    subprocess.run([sys.executable, "-c", OLDER], check=True)


@pytest.mark.parametrize("mode", ["full", "same", "valid", "causal"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_values_and_derivatives(rng, mode, shapes):
    """Against the oracle, which is linear in each operand: its derivatives are its values for the tangents."""
    x, h, dx, dh = arrays(rng, *shapes, *shapes)
    delay = 4 if mode == "causal" else 0
    call = jax.jit(lambda a, b: gpuconv.convolve(a, b, mode, delay=delay))
    want = oracle(x, h, mode, delay)
    assert_close(call(x, h), want)
    y, tangent = jax.jvp(call, (x, h), (dx, dh))
    change = oracle(dx, h, mode, delay) + oracle(x, dh, mode, delay)
    assert_close(y, want)
    assert_close(tangent, change, bound=-110)
    weight = rng.standard_normal(want.shape)
    gx, gh = jax.vjp(call, x, h)[1](jnp.asarray(weight, jnp.float32))
    assert gx.shape == x.shape and gh.shape == h.shape
    assert float(jnp.vdot(gx, dx) + jnp.vdot(gh, dh)) == pytest.approx((weight * change).sum(), rel=1e-4, abs=1e-3)


def test_derivatives_of_higher_order(rng):
    from jax.test_util import check_grads

    x, h = arrays(rng, (2, 1, 12), (3, 5))
    check_grads(lambda a, b: gpuconv.convolve(a, b, "same"), (x, h), order=2, modes=["fwd", "rev"], rtol=2e-2, atol=2e-2, eps=0.1)
    loss = lambda a, b: (gpuconv.convolve(a, b, "causal") ** 3).sum()  # noqa: E731
    for argument in (0, 1):
        for forward, reverse in zip(jax.jacfwd(jax.grad(loss, argument), (0, 1))(x, h), jax.jacrev(jax.grad(loss, argument), (0, 1))(x, h)):
            assert_close(forward, np.asarray(reverse, np.float64), bound=-90)


@pytest.mark.parametrize("shapes", [SHAPES[0], SHAPES[3], SHAPES[4]])
@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0), (-1, 1)])
def test_vmap(rng, shapes, dims):
    """Of values and of each gradient, beside a loop."""
    x, h, weight = arrays(rng, *shapes, oracle(*(np.zeros(shape) for shape in shapes)).shape)
    operands = [array if dim is None else jnp.stack([array, 2 * array, -array[..., ::-1]], dim) for array, dim in zip((x, h), dims)]
    loss = lambda a, b: (gpuconv.convolve(a, b) ** 2 * weight).sum()  # noqa: E731
    for call in (gpuconv.convolve, jax.grad(loss), jax.grad(loss, 1)):
        made = jax.jit(jax.vmap(call, dims))(*operands)
        for i in range(3):
            each = [array if dim is None else jnp.take(array, i, dim) for array, dim in zip(operands, dims)]
            assert_close(made[i], np.asarray(call(*each), np.float64), bound=-100)


VARYING = [((2, 3, 50), (2, 3), 16, 7), ((2, 3, 50), (3,), 60, 9), ((1, 40), (4,), 8, 30), ((21,), (), 1, 5)]  # of x, of h, hop, taps


@pytest.mark.parametrize("interpolate", ["hold", "linear"])
@pytest.mark.parametrize("shape", VARYING)
def test_filters_that_change_with_time(rng, shape, interpolate):
    """Values, derivatives and vmap over both operands, beside the sum by definition."""
    x_shape, batch, hop, taps = shape
    h_shape = batch + (-(-x_shape[-1] // hop), taps)
    x, h, dx, dh = arrays(rng, x_shape, h_shape, x_shape, h_shape)
    call = jax.jit(lambda a, b: gpuconv.time_varying(a, b, hop, interpolate=interpolate, mode="causal", delay=2))

    def want(a, b):
        full = definition(np.asarray(a, float), np.asarray(b, float), hop, interpolate == "linear")
        return np.pad(full, [(0, 0)] * (full.ndim - 1) + [(0, 2)])[..., 2 : 2 + x_shape[-1]]

    y, tangent = jax.jvp(call, (x, h), (dx, dh))
    change = want(dx, h) + want(x, dh)
    assert_close(y, want(x, h))
    assert_close(tangent, change, bound=-110)
    weight = rng.standard_normal(y.shape)
    gx, gh = jax.vjp(call, x, h)[1](jnp.asarray(weight, jnp.float32))
    assert gx.shape == x.shape and gh.shape == h.shape
    assert float(jnp.vdot(gx, dx) + jnp.vdot(gh, dh)) == pytest.approx((weight * change).sum(), rel=1e-4, abs=1e-3)
    loss = lambda a, b: (call(a, b) ** 2).sum()  # noqa: E731
    for f in (call, jax.grad(loss), jax.grad(loss, 1)):
        for dims in ((0, None), (None, 0), (0, 0)):
            made = jax.jit(jax.vmap(f, dims))(*(jnp.stack([a, -2 * a]) if dim == 0 else a for a, dim in zip((x, h), dims)))
            for i, factor in enumerate((1, -2)):
                alone = f(*(factor * a if dim == 0 else a for a, dim in zip((x, h), dims)))
                assert_close(made[i], np.asarray(alone, np.float64), bound=-100)


def test_filters_that_change_with_time_have_derivatives_of_higher_order(rng):
    x, h = arrays(rng, (2, 20), (3, 5))
    loss = lambda a, b: (gpuconv.time_varying(a, b, 8, interpolate="linear") ** 3).sum()  # noqa: E731
    for argument in (0, 1):
        for forward, reverse in zip(jax.jacfwd(jax.grad(loss, argument), (0, 1))(x, h), jax.jacrev(jax.grad(loss, argument), (0, 1))(x, h)):
            assert_close(forward, np.asarray(reverse, np.float64), bound=-90)
    taps = np.asarray(h)  # a constant of NumPy
    assert jax.grad(lambda a: loss(a, taps))(x).shape == x.shape


def test_types_axes_and_constants(rng):
    x, h = arrays(rng, (50, 2, 3), (7, 2, 1))
    want = np.moveaxis(oracle(np.moveaxis(x, 0, -1), np.moveaxis(h, 0, -1)), -1, 0)
    assert_close(jax.jit(lambda a, b: gpuconv.convolve(a, b, axis=0))(x, h), want)
    taps = np.asarray(h[:, 0, 0])
    assert_close(jax.jit(lambda a: gpuconv.convolve(a, taps, axis=0))(x), np.moveaxis(oracle(np.moveaxis(x, 0, -1), taps), -1, 0))
    low = jax.jit(gpuconv.convolve)(x.astype("bfloat16"), h[0, 0].astype("float16"))
    assert low.dtype == jnp.promote_types("bfloat16", "float16")
    assert jax.jit(gpuconv.convolve)(x[:0], h[0, 0]).shape == (0, 2, 3)
    gradient = jax.grad(lambda a: gpuconv.convolve(a, taps[:1]).astype("float32").sum())(x.astype("float16"))
    assert gradient.dtype == "float16"


def test_a_convolver_of_an_array_is_traced(rng):
    x, h = arrays(rng, (2, 300), (2, 40))
    convolver = gpuconv.Convolver(h)
    assert_close(jax.jit(lambda a: convolver(a, "causal"))(x), oracle(x, h, "causal"))
    assert jax.grad(lambda a: convolver(a).sum())(x).shape == x.shape


def test_compiled_calls_of_several_threads(rng):
    x, h = arrays(rng, (4, 20000), (4, 3000))
    call = jax.jit(jax.value_and_grad(lambda a, b: (gpuconv.convolve(a, b, "causal") ** 2).sum(), (0, 1)))
    want, found = call(x, h), [None] * 6

    def work(i):
        found[i] = [call(x, h) for _ in range(5)][-1]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for value, (gx, gh) in found:
        assert value == want[0] and (gx == want[1][0]).all() and (gh == want[1][1]).all()


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: gpuconv.convolve(x, np.ones((3, 5), np.float32)), ValueError, "do not broadcast"),
        (lambda x: gpuconv.convolve(x, np.ones(400, np.float32), "valid"), ValueError, "mode='valid'"),
        (lambda x: gpuconv.convolve(x[:, :0], np.ones(5, np.float32)), ValueError, "x has no frames"),
        (lambda x: gpuconv.convolve(x.astype(int), np.ones(5, np.float32)), TypeError, "x has dtype int32"),
        (lambda x: gpuconv.convolve(x, x * 1j), TypeError, "h has dtype complex64; .* h.real and h.imag"),
        (lambda x: gpuconv.StreamingConvolver(np.ones(5, np.float32), channels=2)(x), TypeError, "traced by JAX.* use gpuconv.convolve"),
        (lambda x: gpuconv.Convolver(x), TypeError, "traced by JAX.* use gpuconv.convolve"),
        (lambda x: gpuconv.ImpulseResponse(x, 48000), TypeError, "traced by JAX.* use gpuconv.convolve"),
        (lambda x: gpuconv.Convolver(gpuconv.ImpulseResponse(np.ones(5), 48000))(x), TypeError, "x is traced|taps has dtype"),
        (lambda x: gpuconv.time_varying(x, x[:, None], 100), ValueError, "with hop=100 use 3"),
        (lambda x: gpuconv.time_varying(x, x[:, None] * 1j, 300), TypeError, "h has dtype complex64"),
        (lambda x: gpuconv.time_varying(x, np.ones((3, 1, 5), np.float32), 300), ValueError, "do not broadcast"),
    ],
)
def test_what_cannot_be_traced_says_what_fits(rng, call, kind, text):
    with pytest.raises(kind, match=text):
        jax.jit(call)(*arrays(rng, (2, 300)))
