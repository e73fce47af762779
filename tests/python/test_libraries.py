"""Arrays of JAX and of any other library that speaks DLPack, in host memory."""

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
    low = jx.astype("bfloat16"), jh.astype("bfloat16")
    for y in (gpuconv.convolve(*low), gpuconv.Convolver(low[1])(low[0]),
              gpuconv.Convolver(gpuconv.ImpulseResponse(jh, 48000))(low[0])):
        assert y.dtype == "bfloat16"
        assert_close(np.asarray(y, np.float32), oracle(x, h), bound=-40)
    with pytest.raises(ValueError, match="no frames"):
        gpuconv.convolve(jx[:, :0], jh)
