"""What the tests of the Python package share: an oracle in double precision that uses nothing of gpuconv."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).resolve().parents[2]
# Shapes that the tests of C have too: frames, taps, first frame and frames of the result. A bundle has the file here.
here = Path(__file__).resolve().parent
SHAPES = [
    tuple(map(int, shape))
    for path in (here.parent / "array_shapes.h", here / "array_shapes.h")
    if path.is_file()
    for shape in re.findall(r"\{(\d+), (\d+), (-?\d+), (\d+)\}", path.read_text())
]
BOUND = -118.0  # dB, relative RMS error of 32-bit floats against the oracle


def convolve_exactly(x, h):
    """Convolves two rows in double precision: by the sum, or where it is long by NumPy's transforms."""
    if x.size * h.size < 1 << 24:
        return np.convolve(x, h)
    frames = x.size + h.size - 1
    points = 1 << (frames - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(x, points) * np.fft.rfft(h, points), points)[:frames]


def oracle(x, h, mode="full", delay=0):
    """Convolves along the last dimension in double precision; the batches broadcast."""
    x, h = np.asarray(x, np.float64), np.asarray(h, np.float64)
    n, m = x.shape[-1], h.shape[-1]
    batch = np.broadcast_shapes(x.shape[:-1], h.shape[:-1])
    xs, hs = np.broadcast_to(x, batch + (n,)), np.broadcast_to(h, batch + (m,))
    y = np.zeros(batch + (n + m - 1,))
    for index in np.ndindex(*batch):
        y[index] = convolve_exactly(xs[index], hs[index])
    if mode == "full":
        return y
    first, count = {"same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1), "causal": (delay, n)}[mode]
    kept = np.zeros(batch + (count,))
    part = y[..., first : first + count]
    kept[..., : part.shape[-1]] = part
    return kept


def power(x, h):
    """Returns the mean power of the full convolution, to which the error of a few quiet frames of it is relative."""
    return np.square(oracle(x, h)).mean()


def assert_close(got, want, bound=BOUND, power=0.0):
    """Compares shapes, then NaN, then the RMS error in dB relative to the expected signal, of at least a given power."""
    got = np.asarray(got)
    assert got.shape == want.shape
    assert np.isfinite(got).all()
    error, size = np.square(got - want).sum(), max(np.square(want).sum(), power * want.size)
    assert error <= size * 10 ** (bound / 10) + 1e-30


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@pytest.fixture(scope="session")
def command():
    """The command gpuconv of this build."""
    found = os.environ.get("GPUCONV") or shutil.which("gpuconv")
    if not found:
        pytest.skip("the command is not built: set GPUCONV to its path")
    return found


@pytest.fixture(scope="session")
def samples():
    return SOURCE / "samples"


@pytest.fixture(scope="session")
def impulses():
    return SOURCE / "impulses"
