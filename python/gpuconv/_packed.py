"""Packed rows: sequences of different lengths that follow one another in each channel, convolved each for itself, without padding.

Row (s, c) of a job is sequence s of channel c: it begins at cu_seqlens[s] of the channel and has the frames up to the next
offset. Sequences of similar lengths make a class, and each class is a job, whose transform fits its longest sequence. A mode
that keeps the length needs of the response only the taps that frames of such a sequence reach,

    y[n] = sum over k of h[k] x[n + offset - k],    0 <= n, n + offset - k < N:    offset - N < k < offset + N,

so that the jobs of short sequences are short in both. Offsets in host memory are checked and sorted. Those on a GPU stay
there: each class then has all rows, and those of other classes have no frames.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import numpy as np

from . import _core as _binding
from ._batches import GRADIENT_RESPONSE, share
from ._cuda import _device
from ._cuda_libraries import F32, adapter

_core: Any = _binding
SHORTEST = 128  # frames of the first class
SMALL = 1 << 20  # points below which a class is computed with the next one: a launch takes longer
MODES = ("causal", "same")


class Part(NamedTuple):
    """Sequences that are computed together: how many, the frames of the longest, and the addresses of the first frame and the
    length of each row, and of the first tap of each response if these do not simply follow one another, else 0."""

    sequences: int
    frames: int
    starts: int
    lengths: int
    responses: int


def check_offsets(offsets: np.ndarray, frames: int, longest: int) -> np.ndarray:
    """Returns offsets as 64-bit integers. Raises TypeError and ValueError unless they ascend from 0 to the frames of x, in steps
    of at most `longest` frames, if that is not 0."""
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
        raise TypeError(f"cu_seqlens has the shape {offsets.shape} and the type {offsets.dtype}; use whole numbers, one more than "
                        "there are sequences: 0, the end of the first one, ..., the frames of x")
    offsets = offsets.astype(np.int64)
    steps = np.diff(offsets)
    if offsets[0] != 0:
        raise ValueError(f"cu_seqlens[0]={offsets[0]}: use 0")
    if (steps < 0).any():
        at = int(np.argmax(steps < 0))
        raise ValueError(f"cu_seqlens[{at + 1}]={offsets[at + 1]} is less than cu_seqlens[{at}]={offsets[at]}; use offsets that ascend")
    if offsets[-1] != frames:
        raise ValueError(f"cu_seqlens[-1]={offsets[-1]}, and x has {frames} frames; use sequences of as many frames in all")
    if longest and steps.max() > longest:
        at = int(np.argmax(steps))
        raise ValueError(f"sequence {at} has {steps[at]} frames, more than max_seqlen={longest}")
    return offsets


def check_packed(x: tuple[int, ...], h: tuple[int, ...], mode: str, axis: int, sequences: int) -> None:
    """Raises ValueError unless x and h have shapes that packed rows can have."""
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}: packed sequences keep their length; use {' or '.join(map(repr, MODES))}")
    if axis not in (-1, len(x) - 1):
        raise ValueError(f"axis={axis}: frames of packed sequences are the last dimension")
    if len(x) not in (1, 2) or len(h) not in (1, 2, 3) or x[-1] == 0 or h[-1] == 0:
        raise ValueError(f"x of shape {x} and h of shape {h}: packed sequences need x (frames,) or (channels, frames), and h (taps,), "
                         "(channels, taps) or (sequences, channels, taps)")
    batch = (sequences, x[0] if len(x) == 2 else 1)
    for size, full in zip(reversed(h[:-1]), reversed(batch)):
        if size not in (1, full):
            raise ValueError(f"h of shape {h} does not fit {batch[0]} sequences of {batch[1]} channels")


class Host:
    """Arrays of NumPy."""

    upload = staticmethod(lambda array: array)
    ramp = staticmethod(lambda count, step: np.arange(count) * step)
    repeat = staticmethod(np.repeat)
    contiguous = staticmethod(np.ascontiguousarray)
    address = staticmethod(lambda array: array.ctypes.data)
    kind = staticmethod(lambda array: F32)

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def result(self, a: np.ndarray, b: np.ndarray, shape: tuple[int, ...], gradient: bool, whole: bool) -> np.ndarray:
        return np.zeros(shape, np.float32) if gradient else np.empty(shape, np.float32)

    def run(self, operation: int, rows: Any, group: int, offset: int, gradient: bool) -> None:
        _core.compute_ragged(operation, rows, group, offset, gradient, self.threads)


class Gpu:
    """Tensors of PyTorch on the device of `like`, which is current."""

    def __init__(self, like: Any) -> None:
        self.library, self.like = adapter("torch"), like
        self.torch, self.device = self.library.torch, _device(like.get_device())
        self.address, self.repeat, self.contiguous = self.library.pointer, self.torch.repeat_interleave, self.torch.Tensor.contiguous

    def upload(self, array: np.ndarray) -> Any:
        return self.torch.from_numpy(array).to(self.like.device)

    def ramp(self, count: int, step: int) -> Any:
        return self.torch.arange(0, count * step, step, device=self.like.device)

    def kind(self, array: Any) -> int:
        return int(self.library.types[array.dtype])

    def result(self, a: Any, b: Any, shape: tuple[int, ...], gradient: bool, whole: bool) -> Any:
        """gradient: the sums of several jobs, in 32 bits; whole: every frame is written."""
        dtype = self.torch.float32 if gradient or a.dtype is not b.dtype else a.dtype
        return (self.torch.empty if whole and not gradient else self.torch.zeros)(shape, dtype=dtype, device=a.device)

    def run(self, operation: int, rows: Any, group: int, offset: int, gradient: bool) -> None:
        kept = []  # until the kernels are queued

        def allocate(count: int) -> int:
            kept.append(self.torch.empty(count, dtype=self.torch.uint8, device=self.like.device))
            return int(kept[0].data_ptr())

        _core.queue_ragged(self.device, operation, rows, group, offset, gradient, allocate, self.library.stream(self.like))


def sorted_parts(space: Any, offsets: np.ndarray, channels: int, own: int, taps: int) -> Iterator[Part]:
    """Yields classes of the sequences that have a frame, by offsets in host memory. own: responses of each sequence, or 0."""
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")
    order = order[np.searchsorted(lengths[order], 1) :]
    lengths = lengths[order]
    begins, counts, numbers = space.upload(np.stack((offsets[order], lengths, order * (own * taps))))
    starts = (begins[:, None] + space.ramp(channels, int(offsets[-1]))).reshape(-1)
    rows = space.repeat(counts, channels)
    responses = (numbers[:, None] + space.ramp(own, taps)).reshape(-1) if own else None
    first, bound = 0, SHORTEST
    while first < len(order):
        last = int(np.searchsorted(lengths, bound, "right"))
        if last == len(order) or (last - first) * channels * bound >= SMALL:
            at = 8 * first * channels
            yield Part(last - first, int(lengths[last - 1]), space.address(starts) + at, space.address(rows) + at,
                       space.address(responses) + 8 * first * own if own else 0)
            first = last
        bound *= 2


def masked_parts(space: Gpu, offsets: Any, frames: int, longest: int, channels: int, own: int, taps: int) -> Iterator[Part]:
    """Yields classes of all sequences, by offsets on the device, whatever these are: they are made to ascend from 0 to the
    frames of x, and longer sequences are cut, so that no row leaves the arrays and none meets another. Sorted, the rows of a
    class are the same number for every block."""
    torch = space.torch
    ends = offsets.long().clamp(0, frames).cummax(0)[0]
    ends[:1].fill_(0)
    ends[-1:].fill_(frames)
    lengths, order = (ends[1:] - ends[:-1]).clamp(max=longest).sort()
    starts = (ends[:-1][order][:, None] + space.ramp(channels, frames)).reshape(-1)
    responses = (order[:, None] * (own * taps) + space.ramp(own, taps)).reshape(-1) if own else None
    steps = (-(-longest // SHORTEST) - 1).bit_length()
    numbers = space.ramp(steps + 1, 1)
    number = (lengths > (SHORTEST << numbers[:-1, None])).sum(0)
    rows = torch.where(number == numbers[:, None], lengths, 0)[:, :, None].expand(-1, -1, channels).contiguous()
    for step in range(steps + 1):
        yield Part(len(lengths), min(longest, SHORTEST << step), space.address(starts), space.address(rows[step]),
                   space.address(responses) if own else 0)


def compute(space: Any, operation: int, a: Any, b: Any, offset: int, taps: int, offsets: Any, longest: int, batch: tuple[int, ...]) -> Any:
    """Computes an operation, (x, h) -> y, (g, h) -> x or (g, x) -> h, on packed rows. taps, batch: of the responses.
    offsets: in host memory, where they are checked, or on the device with the frames of the longest sequence."""
    gradient, at_host = operation == GRADIENT_RESPONSE, isinstance(offsets, np.ndarray)
    a, b = space.contiguous(a), space.contiguous(b)
    frames = a.shape[-1]
    if at_host:
        offsets = check_offsets(offsets, frames, longest)
    channels, sequences = a.size // frames if isinstance(space, Host) else a.numel() // frames, len(offsets) - 1
    own = batch[-1] if len(batch) == 2 and batch[0] != 1 else 0
    made = space.result(a, b, batch + (taps,) if gradient else tuple(a.shape), gradient, at_host)
    layout = channels, own, taps
    parts = sorted_parts(space, offsets, *layout) if at_host else masked_parts(space, offsets, frames, longest, *layout)
    for part in parts:
        low = min(max(offset - part.frames + 1, 0), taps - 1)
        high = max(min(offset + part.frames, taps), low + 1)
        responses, group = share((part.sequences, channels), (part.sequences, own) if own else batch[-1:]) or (1, 1)
        arrays = []
        for array, is_response in zip((a, b, made), (False, not gradient, gradient)):
            kind, address = space.kind(array), space.address(array)
            arrays.append((kind, address + low * (4 if kind == F32 else 2), responses, high - low, taps, part.responses, 0)
                          if is_response else
                          (kind, address, part.sequences * channels, part.frames, part.frames, part.starts, part.lengths))
        space.run(operation, tuple(arrays), group, offset - low, gradient)
    return made
