# %% [markdown]
# # Space
# A voice that moves, a bed of loudspeakers and ambisonics before a head that turns, to two ears. Run it in the folder of the
# repository.

# %%
from pathlib import Path

import numpy as np

import gpuconv

root = Path(__file__).resolve().parents[2]
head = gpuconv.SofaSet(root / "tests/sofa/head.sofa")  # a spherical head, 47 directions
rate = int(head.rate)
noise = np.random.default_rng(1).standard_normal(4 * rate).astype(np.float32)


def difference(ears, second):
    """Returns by how many dB the left ear is louder, in the tenth of a second around a time."""
    part = ears[:, int((second - 0.05) * rate) : int((second + 0.05) * rate)].astype(np.float64)
    return 10 * np.log10(np.square(part[0]).sum() / np.square(part[1]).sum())


# %% A voice goes around the head in 4 s: it is at the left ear after 1 s, at the right one after 3 s
turn = ([0, 4], [(0, 0, 1.5), (360, 0, 1.5)])
around = head.move(noise, turn)
print("left - right:", ", ".join(f"{difference(around, second):.1f} dB at {90 * second} degrees" for second in (0.1, 1, 2, 3)))
assert difference(around, 1) > 8 and difference(around, 3) < -8 and abs(difference(around, 2)) < 2

# %% The head turns with it: the voice stays in front
turning = ([0, 4], [(0, 0, 0), (360, 0, 0)])
front = head.move(noise, turn, head=turning)
print(f"with the head: {difference(front, 1):.2f} dB")
assert abs(difference(front, 1)) < 0.1

# %% A bed of 5.1: its left channel alone (30 degrees), before a head that turns to the left by 120 degrees and then hears it at
# its right ear
bed = np.zeros((6, 2 * rate), np.float32)
bed[0] = noise[: 2 * rate]
ears = head.move(bed, layout="5.1", head=([0, 1], [(0, 0, 0), (120, 0, 0)]))
print(f"the left loudspeaker: {difference(ears, 0.1):.1f} dB, after the turn {difference(ears, 1.5):.1f} dB")
assert difference(ears, 0.1) > 4 and difference(ears, 1.5) < -8

# %% Ambisonics of order 1, a plane wave from 90 degrees to the left: before the same head it ends at 30 degrees to the right
wave = np.array([[1], [1], [0], [0]], np.float32) * noise[: 2 * rate]
ears = head.move(wave, layout="ambisonic", head=([0, 1], [(0, 0, 0), (120, 0, 0)]))
print(f"a plane wave: {difference(ears, 0.05):.1f} dB, after the turn {difference(ears, 1.5):.1f} dB")
assert difference(ears, 0.05) > 4 and difference(ears, 1.5) < -2
