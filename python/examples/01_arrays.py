# %% [markdown]
# # Arrays
# Convolve signals with responses: one for all, one for each, along any axis.

# %%
import numpy as np

import gpuconv

rng = np.random.default_rng(0)
x = rng.standard_normal((4, 48000), dtype=np.float32)  # four signals of one second
h = rng.standard_normal(4800, dtype=np.float32)  # one response for all

y = gpuconv.convolve(x, h)
print(y.shape)  # (4, 52799): N + M - 1 frames

# %% The same length as the signal
print(gpuconv.convolve(x, h, "same").shape, gpuconv.convolve(x, h, "causal").shape)

# %% A response for each signal, and frames along the first axis
own = rng.standard_normal((4, 4800), dtype=np.float32)
print(gpuconv.convolve(x, own).shape)
print(gpuconv.convolve(x.T, h, axis=0).shape)

# %% A response that is used often is prepared once
convolver = gpuconv.Convolver(h)
assert np.array_equal(convolver(x), y)

# %% How exact is it? Compare with 64-bit arithmetic
want = np.convolve(x[0].astype(float), h.astype(float))
error = 10 * np.log10(np.sum((y[0] - want) ** 2) / np.sum(want**2))
print(f"error {error:.0f} dB")
assert error < -118
