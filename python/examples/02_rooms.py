# %% [markdown]
# # Rooms
# Put speech into a hall, look at the hall's figures, and play block by block. Run it in the folder of the repository.

# %%
import tempfile
from pathlib import Path

import numpy as np

import gpuconv

root = Path(__file__).resolve().parents[2]
out = Path(tempfile.mkdtemp())

x, rate = gpuconv.read(root / "samples/speech.flac")
hall = gpuconv.prepare_ir(root / "impulses/hall.flac", inputs=len(x), rate=rate, trim=-60, normalize="loudness")
print(hall, "|", hall.history)

wet = gpuconv.Convolver(hall)(x)
gpuconv.write(out / "wet.wav", wet, rate)

# %% The figures of ISO 3382
for figures in gpuconv.acoustics(hall):
    print(f"T30 {figures.t30:.2f} s, C80 {figures.c80:.1f} dB, D50 {100 * figures.d50:.0f} %")

# %% Block by block, without latency
stream = gpuconv.StreamingConvolver(hall, block=512)
blocks = [stream(x[:, at : at + 512]) for at in range(0, x.shape[1], 512)]
streamed = np.concatenate(blocks + [stream.flush()], axis=1)
assert np.abs(streamed - wet).max() < 1e-5

# %% From file to file, in constant memory, as the command does it
report = gpuconv.convolve_file(root / "samples/drums.flac", root / "impulses/plate.flac", out / "drums.wav", wet=-6, dry=0)
print(report["convolution"]["algorithm"])

# %% A whole folder: each file with a random response, the same picks for the same seed
result = gpuconv.batch(inputs=str(root / "samples/*.flac"), irs=str(root / "impulses/*.flac"), seed=1, out=out / "wet")
print(f"{result.done} files, {result.failed} failed")
assert result.failed == 0
