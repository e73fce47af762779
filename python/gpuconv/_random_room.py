"""Random rooms for PyTorch: the simulator as a custom operator, and the module RandomRoom."""

from __future__ import annotations

import functools
import math
import os
from typing import Any, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

from ._gates import convolve
from ._modes import real, whole
from ._rooms import BANDS, simulate_described
from ._sofa import SofaSet
from ._tensors import check
from ._torch import NAMESPACE

Range = Union[float, Tuple[float, float]]
SPEED = 343.2  # of sound at 20 degrees C, m/s
CANDIDATES = 32  # directions of a source, of which the first one inside of the room is taken


@functools.lru_cache(8)
def _opened(path: str, rate: float) -> Optional[SofaSet]:
    """Opens a set once in a process: operators and workers of a DataLoader know its name. None without a name."""
    return SofaSet(path, rate) if path else None


def _simulate(room: Tensor, source: Tensor, receiver: Tensor, seeds: Tensor, frames: int, numbers: Sequence[float], ears: str) -> Tensor:
    rate, level, highpass, air = numbers
    options = ((0, 0, 0, -1), (rate, 20.0, 50.0, 0.0, level, highpass), (air > 0, level > 0, False, True))
    heard = _opened(ears, rate)
    if room.is_cuda:
        made: Tensor = simulate_described("torch", room, source, receiver, seeds, 1, options, frames, 0, heard)
    else:
        arrays = room.numpy(), source.numpy(), receiver.numpy(), seeds.view(torch.uint64).numpy()
        made = torch.from_numpy(simulate_described("numpy", *arrays, 1, options, frames, torch.get_num_threads(), heard))
    return made[:, 0].flatten(1, 2)


def _shape(room: Tensor, source: Tensor, receiver: Tensor, seeds: Tensor, frames: int, numbers: Sequence[float], ears: str) -> Tensor:
    heard = _opened(ears, numbers[0])
    channels = receiver.shape[1] * (1 if heard is None else heard.receivers)
    return room.new_empty((room.shape[0], channels, frames), dtype=torch.float32)


torch.library.define(
    f"{NAMESPACE}::simulate_rooms",
    "(Tensor room, Tensor source, Tensor receiver, Tensor seeds, SymInt frames, float[] numbers, str ears) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,))
torch.library.impl(f"{NAMESPACE}::simulate_rooms", ("cpu", "cuda"), _simulate)
torch.library.register_fake(f"{NAMESPACE}::simulate_rooms", _shape)


def _range(name: str, value: Any, low: float, high: float) -> Tuple[float, float]:
    ends = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(ends) != 2 or not low <= real(name, ends[0]) <= real(name, ends[1]) <= high:
        raise ValueError(f"{name}={value}: use a number from {low:g} to {high:g}, or a range (low, high)")
    return float(ends[0]), float(ends[1])


class RandomRoom(nn.Module):  # type: ignore[misc]
    """Puts each example of a batch into a room of its own, which is simulated where the signal is: an augmentation that keeps
    length and time.

    rate: of the signals, Hz.
    size: metres of x, y and z; rt60: seconds; distance: metres from the source to the middle of the microphones. Each is a number or
        a range (low, high) of which each example draws one. A decay time for which the walls would absorb more than 99 % becomes
        the shortest that the room can have.
    microphones: (microphones, 3), metres from their middle; None: one.
    ears: an open set at `rate`, SofaSet(path, rate): instead of microphones a head, turned to a random azimuth, with a channel for each
        ear. Every process that simulates opens its file again.
    p: probability that an example is put into a room.
    early: seconds after the direct sound; the call also returns the signal with this part of the response, the target of
        dereverberation. None: it does not.
    details: the call also returns a dict of what was drawn: size, rt60, source, microphones, chosen, and with
        `ears` the azimuth of the head in degrees.
    frames: of a response; None: the longest decay time.
    images_level: dB of decay from which on noise replaces images; 0: images to the end. air, highpass: as in simulate_rooms().
    normalize: "direct": the direct sound at the first microphone, or in the place of the head, keeps the level of the signal; "none":
        1.0 is the level at 1 m.
    In evaluation mode (module.eval()) signals pass unchanged. Random numbers come from PyTorch's generator of the signal's device, or
    from generator=, so that workers of a DataLoader draw their own; a seed gives the same samples. On a GPU nothing waits for
    the GPU. The signal gets gradients; the drawn sizes, places and decay times get none.
    """

    offsets: Tensor

    def __init__(
        self,
        rate: float = 16000,
        *,
        size: Sequence[Range] = ((3.0, 10.0), (3.0, 8.0), (2.4, 4.0)),
        rt60: Range = (0.2, 1.0),
        distance: Range = (0.5, 3.0),
        microphones: Any = None,
        ears: Optional[SofaSet] = None,
        p: float = 1.0,
        early: Optional[float] = None,
        details: bool = False,
        frames: Optional[int] = None,
        images_level: float = 15.0,
        air: bool = False,
        highpass: float = 0.0,
        normalize: str = "direct",
    ) -> None:
        super().__init__()
        self.rate = _range("rate", rate, 1000, 1e6)[0]
        if not isinstance(size, (tuple, list)) or len(size) != 3:
            raise ValueError(f"size={size}: use three ranges, of x, y and z")
        self.size = [_range("size", side, 1, 1000) for side in size]
        self.rt60, self.distance = _range("rt60", rt60, 0.01, 100), _range("distance", distance, 0.01, 1000)
        self.p, self.images_level = _range("p", p, 0, 1)[0], _range("images_level", images_level, 0, 1000)[0]
        self.highpass = _range("highpass", highpass, 0, 0.45 * self.rate)[0]
        self.early = None if early is None else _range("early", early, 0, 100)[0]
        self.frames = math.ceil(self.rt60[1] * self.rate) if frames is None else whole("frames", frames, 1, 1 << 27)
        if normalize not in ("direct", "none"):
            raise ValueError(f"normalize={normalize!r}: use 'direct', 'none'")
        self.details, self.air, self.normalize = bool(details), bool(air), normalize
        offsets = torch.zeros(1, 3) if microphones is None else torch.as_tensor(microphones, dtype=torch.float32)
        if offsets.dim() != 2 or offsets.shape[1] != 3 or not offsets.isfinite().all() or offsets.norm(dim=1).max() > 0.4:
            raise ValueError(f"microphones of shape {tuple(offsets.shape)}: use (microphones, 3), at most 0.4 m from their middle")
        if ears is not None and (microphones is not None or ears.rate != self.rate):
            raise ValueError(f"ears at {ears.rate:g} Hz: use a set at {self.rate:g} Hz, SofaSet(path, rate), and no microphones")
        self.ears = "" if ears is None else os.path.abspath(ears._path)
        self.channels = len(offsets) if ears is None else ears.receivers
        self.register_buffer("offsets", offsets, persistent=False)

    def extra_repr(self) -> str:
        return f"rate={self.rate:g}, size={self.size}, rt60={self.rt60}, distance={self.distance}, channels={self.channels}, p={self.p}"

    def _draw(self, count: int, device: Any, generator: Optional[torch.Generator]) -> dict[str, Tensor]:
        u = torch.rand(count, 9 + 3 * CANDIDATES, device=device, generator=generator)

        def between(column: int, ends: Tuple[float, float]) -> Tensor:
            return ends[0] + (ends[1] - ends[0]) * u[:, column]

        size = torch.stack([between(k, ends) for k, ends in enumerate(self.size)], 1)
        edge = 0.02 * size  # of the room, where neither source nor microphone is
        middle = edge + 0.4 + u[:, 3:6] * (size - 2 * edge - 0.8).clamp_min(0.0)
        middle = torch.where(size > 2 * edge + 0.8, middle, size / 2)
        up, turn = 2 * u[:, 9 : 9 + CANDIDATES] - 1, 2 * math.pi * u[:, 9 + CANDIDATES : 9 + 2 * CANDIDATES]
        flat = (1 - up.square()).clamp_min(0.0).sqrt()
        away = torch.stack((flat * turn.cos(), flat * turn.sin(), up), -1) * between(7, self.distance)[:, None, None]
        places = middle[:, None] + away
        inside = ((places > edge[:, None]) & (places < (size - edge)[:, None])).all(-1)
        first = inside.to(torch.int32).argmax(1)
        source = places.gather(1, first[:, None, None].expand(-1, 1, 3))[:, 0]
        source = torch.minimum(torch.maximum(source, edge), size - edge)
        microphones = middle[:, None] + self.offsets.to(device)
        microphones = torch.minimum(torch.maximum(microphones, edge[:, None]), (size - edge)[:, None])
        drawn = {"size": size, "rt60": between(6, self.rt60), "source": source, "microphones": microphones, "chosen": u[:, 8] < self.p}
        if self.ears:
            drawn["azimuth"] = between(9 + 2 * CANDIDATES, (-180.0, 180.0))
        return drawn

    def _responses(self, drawn: dict[str, Tensor], seeds: Tensor) -> Tensor:
        size, microphones = drawn["size"], drawn["microphones"]
        count = len(size)
        room = torch.cat((size, size.new_zeros(count, 6 * BANDS), drawn["rt60"][:, None].expand(-1, BANDS)), 1).double()
        axes, omni = size.new_zeros(count, 1), size.new_ones(count, 1)
        source = torch.cat((drawn["source"], axes, axes, omni), 1).double()[:, None]
        turn = drawn["azimuth"][:, None] if self.ears else axes
        wide = [part[:, None].expand(-1, microphones.shape[1], -1) for part in (turn, axes, omni)]
        receiver = torch.cat((microphones, *wide), 2).double()
        h: Tensor = torch.ops.gpuconv.simulate_rooms(room, source, receiver, seeds, self.frames,
                                                     [self.rate, self.images_level, self.highpass, float(self.air)], self.ears)
        return h

    def forward(self, x: Tensor, generator: Optional[torch.Generator] = None) -> Any:
        """Returns x, (batch, frames) or (frames,), in rooms: of the same shape, with several microphones or ears (batch, channels, frames).
        With `early` and `details` it returns a tuple."""
        check("x", x)
        if x.dim() not in (1, 2):
            raise ValueError(f"x of shape {tuple(x.shape)}: use (batch, frames) or (frames,)")
        batch = x[None] if x.dim() == 1 else x
        drawn = self._draw(len(batch), x.device, generator)
        seeds = torch.randint(1 << 62, (len(batch),), device=x.device, generator=generator)
        dry = batch[:, None].expand(-1, self.channels, -1)
        made = [dry] * (1 + (self.early is not None))
        if self.training and self.p > 0:
            h = self._responses(drawn, seeds)
            far = (drawn["source"][:, None] - drawn["microphones"]).norm(dim=2, keepdim=True)
            if self.normalize == "direct":
                h = h * far[:, :1]
            responses = [h]
            if self.early is not None:  # the end is faded in a millisecond
                end = far * (self.rate / SPEED) + self.early * self.rate
                late = (torch.arange(self.frames, device=x.device) - end) * (1000 / self.rate)
                responses.append(h * (1 - late.clamp(0.0, 1.0)))
            chosen = drawn["chosen"][:, None, None]
            made = [torch.where(chosen, convolve(dry, taps, "causal").to(x.dtype), dry) for taps in responses]
        if self.channels == 1:
            made = [y[:, 0] for y in made]
        if x.dim() == 1:
            made = [y[0] for y in made]
        out = made + ([drawn] if self.details else [])
        return out[0] if len(out) == 1 else tuple(out)
