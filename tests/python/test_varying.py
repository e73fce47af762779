"""Filters that change with time, on the CPU: values beside a sum by definition, gradients beside PyTorch's, and refusals."""

import runpy

import gpuconv
import numpy as np
import pytest
from conftest import SOURCE

SHAPES = [  # of x, the batch of h, hop, taps
    ((2, 3, 1000), (2, 3), 64, 32),
    ((2, 3, 1000), (3,), 100, 7),
    ((4, 50), (1,), 60, 90),
    ((2, 5000), (2,), 480, 1024),
    ((3, 300), (3,), 1, 5),
    ((257,), (), 16, 40),
]


def definition(x, h, hop, linear):
    """Returns the full result for arrays of NumPy or tensors: tap by tap, with the taps that each frame of x has."""
    frames, (blocks, taps) = x.shape[-1], h.shape[-2:]
    block = np.arange(frames) // hop
    rise = np.where(block + 1 < blocks, np.arange(frames) % hop / hop, 0) if linear else np.zeros(frames)
    following = np.minimum(block + 1, blocks - 1)
    if not isinstance(x, np.ndarray):
        from torch.nn.functional import pad
    total = None
    for k in range(taps):
        fall, up = (1 - rise, rise) if isinstance(x, np.ndarray) else (x.new_tensor(1 - rise), x.new_tensor(rise))
        term = x * (h[..., block, k] * fall + h[..., following, k] * up)
        ends = [(0, 0)] * (term.ndim - 1) + [(k, taps - 1 - k)]
        term = np.pad(term, ends) if isinstance(x, np.ndarray) else pad(term, ends[-1])
        total = term if total is None else total + term
    return total


@pytest.mark.parametrize("interpolate", ["hold", "linear"])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_those_of_the_definition(shape, interpolate):
    (x_shape, batch, hop, taps), r = shape, np.random.default_rng(1)
    x = r.standard_normal(x_shape).astype(np.float32)
    h = r.standard_normal(batch + (-(-x_shape[-1] // hop), taps)).astype(np.float32)
    want = definition(x.astype(float), h.astype(float), hop, interpolate == "linear")
    got = gpuconv.time_varying(x, h, hop, interpolate=interpolate)
    assert got.dtype == np.float32 and got.shape == want.shape
    assert np.linalg.norm(got - want) < 1e-6 * np.linalg.norm(want)
    kept = gpuconv.time_varying(x, h, hop, interpolate=interpolate, mode="causal", delay=3)
    assert np.linalg.norm(kept - np.pad(want, [(0, 0)] * (want.ndim - 1) + [(0, 3)])[..., 3 : 3 + x_shape[-1]]) < 1e-6 * np.linalg.norm(want)


def test_one_response_for_all_blocks_is_a_convolution():
    r = np.random.default_rng(2)
    x, h = r.standard_normal((3, 700)).astype(np.float32), r.standard_normal(60).astype(np.float32)
    same = np.broadcast_to(h, (11, 60))
    for interpolate in ("hold", "linear"):
        got = gpuconv.time_varying(x, same, 64, interpolate=interpolate)
        assert np.abs(got - gpuconv.convolve(x, h)).max() < 1e-4


def test_halves_are_rounded_once():
    r = np.random.default_rng(3)
    x, h = r.standard_normal((2, 640)).astype(np.float16), r.standard_normal((2, 10, 200)).astype(np.float16)
    got, want = gpuconv.time_varying(x, h, 64), definition(x.astype(float), h.astype(float), 64, False)
    assert got.dtype == np.float16
    assert np.linalg.norm(got - want) < 4e-4 * np.linalg.norm(want)


def test_refusals_name_the_argument():
    x, h = np.zeros((2, 100), np.float32), np.zeros((2, 4, 9), np.float32)
    for arguments, words in [((x, h, 64), "hop=64 use 2"), ((x, h[0, 0], 25), "blocks, taps"), ((x, h, 0), "hop=0")]:
        with pytest.raises(ValueError, match=words):
            gpuconv.time_varying(*arguments)
    with pytest.raises(ValueError, match="interpolate"):
        gpuconv.time_varying(x, h, 25, interpolate="cubic")
    h[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        gpuconv.time_varying(x, h, 25)


@pytest.mark.parametrize("interpolate", ["hold", "linear"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_the_definition(shape, interpolate):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import gpuconv.torch as gt

    torch.manual_seed(1)
    x_shape, batch, hop, taps = shape
    x, h = torch.randn(x_shape, requires_grad=True), torch.randn(batch + (-(-x_shape[-1] // hop), taps), requires_grad=True)
    y = gt.time_varying(x, h, hop, interpolate=interpolate)
    g = torch.randn_like(y)
    want = torch.autograd.grad(definition(x.double(), h.double(), hop, interpolate == "linear"), (x, h), g.double())
    for a, b in zip(torch.autograd.grad(y, (x, h), g), want):
        assert torch.linalg.norm(a - b) < 1e-6 * torch.linalg.norm(b)


def test_filters_from_magnitudes_of_bands_are_learned():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    losses = runpy.run_path(str(SOURCE / "python" / "examples" / "04_filtered_noise.py"))["learn"]()
    assert losses[-1] < 0.02 * losses[0]
