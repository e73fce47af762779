"""Packed rows: sequences of different lengths that follow one another in each channel, convolved each for itself, without padding.

Row (s, c) of a job is sequence s of channel c: it begins at cu_seqlens[s] of the channel and has the frames up to the next
offset. Sequences of similar lengths make a class, and each class is a job, whose transform fits its longest sequence. A mode
that keeps the length needs of the response only the taps that frames of such a sequence reach,

    y[n] = sum over k of h[k] x[n + offset - k],    0 <= n, n + offset - k < N:    offset - N < k < offset + N,

so that the jobs of short sequences are short in both. Offsets in host memory are checked. On a GPU the library sorts offsets
of either memory (gpuconv_sequences_sort). Each class then has as many rows as its sequences may be; those of its sequences come
first, the others have a negative length and take no time.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

from . import _core as _binding
from ._batches import GRADIENT_BOTH, GRADIENT_RESPONSE, share
from ._cuda import _device
from ._cuda_libraries import F32, adapter

_core: Any = _binding
SHORTEST = 128  # frames of the first class
SMALL = 1 << 20  # points below which a class is computed with the next one: a launch takes longer
MODES = ("causal", "same")


class Part(NamedTuple):
    """Sequences that are computed together: how many, the frames of the longest, and the addresses of the first frame and the
    length of each row, and of the first tap and the length of each response; 0: these simply follow one another, all taps long."""

    sequences: int
    frames: int
    starts: int
    lengths: int
    responses: int
    taps: int


class Layout(NamedTuple):
    """Frames of a channel, channels, and responses that each sequence has for itself, or 0, with their taps."""

    frames: int
    channels: int
    own: int
    taps: int


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

    contiguous = staticmethod(np.ascontiguousarray)
    address = staticmethod(lambda array: array.ctypes.data)
    kind = staticmethod(lambda array: F32)

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def result(self, a: np.ndarray, b: np.ndarray, shape: tuple[int, ...], gradient: bool) -> np.ndarray:
        return (np.zeros if gradient else np.empty)(shape, np.float32)

    def parts(self, offsets: np.ndarray, longest: int, layout: Layout, output: Any) -> Iterator[Part]:
        """Yields the classes of the sequences that have a frame."""
        lengths, (frames, channels, own, taps) = np.diff(offsets), layout
        order = np.argsort(lengths, kind="stable")
        order = order[np.searchsorted(lengths[order], 1) :]
        starts = (offsets[order, None] + np.arange(channels) * frames).reshape(-1)
        rows = np.repeat(lengths[order], channels)
        responses = (order[:, None] * (own * taps) + np.arange(own) * taps).reshape(-1)
        first = 0
        for count, bound in classes(lengths[order], channels):
            at = 8 * first * channels
            yield Part(count, bound, self.address(starts) + at, self.address(rows) + at,
                       self.address(responses) + 8 * first * own if own else 0, 0)
            first += count

    def run(self, operation: int, rows: Any, group: int, offset: int, accumulate: bool) -> None:
        _core.compute_ragged((operation, group, offset, accumulate), rows, self.threads)


class Gpu:
    """Tensors of PyTorch on the device of `like`, which is current."""

    def __init__(self, like: Any) -> None:
        self.library, self.like = adapter("torch"), like
        self.torch, self.device = self.library.torch, _device(like.get_device())
        self.address, self.contiguous = self.library.pointer, self.torch.Tensor.contiguous
        self.stream = self.library.stream(like)

    def kind(self, array: Any) -> int:
        return int(self.library.types[array.dtype])

    def result(self, a: Any, b: Any, shape: tuple[int, ...], gradient: bool) -> Any:
        """gradient: the sums of several jobs, in 32 bits."""
        dtype = self.torch.float32 if gradient or a.dtype is not b.dtype else a.dtype
        return (self.torch.zeros if gradient else self.torch.empty)(shape, dtype=dtype, device=a.device)

    def parts(self, offsets: Any, longest: int, layout: Layout, output: Any) -> Iterator[Part]:
        """Yields classes that the device sorts, from the longest on: the host is then ahead of it. Offsets in host memory tell
        which there are; of those on the device `longest` is known, and that all sequences of a class have at most the frames of
        x. output: cleared where no row is, or None."""
        sequences, (frames, channels, own, taps) = len(offsets) - 1, layout
        if isinstance(offsets, np.ndarray):
            lengths = np.sort(np.diff(offsets))
            made = list(classes(lengths[np.searchsorted(lengths, 1) :], channels))
            offsets = self.torch.from_numpy(offsets).to(self.like.device)
        else:
            ends = [min(longest, SHORTEST << step) for step in range((-(-longest // SHORTEST) - 1).bit_length() + 1)]
            made = [(min(sequences, frames // (below + 1)), bound) for below, bound in zip([0, *ends], ends)]
        if not made:
            return
        bounds = [bound for _, bound in made]
        rows, each = sequences * channels, 2 * sequences * (channels + own)
        table, offsets = self.torch.empty(len(bounds) * each, dtype=self.torch.int64, device=self.like.device), offsets.long()
        written = None if output is None else (self.kind(output), self.address(output), channels, frames, frames, 0, 0)
        _core.sort_sequences(self.device, self.address(offsets), (sequences, channels, frames, own, taps), bounds, written,
                             self.address(table), self.stream)
        for number, (count, bound) in reversed(list(enumerate(made))):
            at = self.address(table) + 8 * number * each
            responses = at + 16 * rows if own else 0
            if count:
                yield Part(count, bound, at, at + 8 * rows, responses, responses + 8 * sequences * own)

    def run(self, operation: int, rows: Any, group: int, offset: int, accumulate: bool) -> None:
        kept = []  # until the kernels are queued

        def allocate(count: int) -> int:
            kept.append(self.torch.empty(count, dtype=self.torch.uint8, device=self.like.device))
            return int(kept[0].data_ptr())

        _core.queue_ragged(self.device, (operation, group, offset, accumulate), rows, allocate, self.stream)


def classes(lengths: np.ndarray, channels: int) -> Iterator[tuple[int, int]]:
    """Yields how many sequences a class has and the frames of its longest. lengths: ascending, none of them 0."""
    first, bound = 0, SHORTEST
    while first < len(lengths):
        last = int(np.searchsorted(lengths, bound, "right"))
        if last == len(lengths) or (last - first) * channels * bound >= SMALL:
            if last > first:
                yield last - first, int(lengths[last - 1])
            first = last
        bound *= 2


class Packing(NamedTuple):
    """Offsets of packed sequences, and the frames of the longest one. Offsets in host memory are checked, and `longest` may be 0;
    offsets on the device are not read."""

    offsets: Any
    longest: int


def run_classes(space: Any, operation: int, arrays: Sequence[tuple[Any, bool]], offset: int, batch: tuple[int, ...], packing: Packing) -> None:
    """Runs the jobs of an operation. arrays: those that are read, then those that are written, each with whether its rows are the
    responses; sums for responses are added to what the array holds. batch: of the responses."""
    frames, channels = arrays[0][0].shape[-1], arrays[0][0].shape[0] if len(arrays[0][0].shape) == 2 else 1
    taps = next(array.shape[-1] for array, is_response in arrays if is_response)
    offsets, longest = packing
    at_host = isinstance(offsets, np.ndarray)
    if at_host:
        offsets = check_offsets(offsets, frames, longest)
    own = batch[-1] if len(batch) == 2 and batch[0] != 1 else 0
    cleared = None if at_host or operation == GRADIENT_RESPONSE else [array for array, is_response in arrays if not is_response][-1]
    placed = [(space.kind(array), space.address(array), is_response) for array, is_response in arrays]
    for part in space.parts(offsets, longest, Layout(frames, channels, own, taps), cleared):
        low = min(max(offset - part.frames + 1, 0), taps - 1)
        high = max(min(offset + part.frames, taps), low + 1)
        responses, group = share((part.sequences, channels), (part.sequences, own) if own else batch[-1:]) or (1, 1)
        rows = [(kind, address + low * (4 if kind == F32 else 2), responses, high - low, taps, part.responses, part.taps)
                if is_response else
                (kind, address, part.sequences * channels, part.frames, part.frames, part.starts, part.lengths)
                for kind, address, is_response in placed]
        space.run(operation, rows, group, offset - low, operation in (GRADIENT_RESPONSE, GRADIENT_BOTH))


def compute(space: Any, operation: int, a: Any, b: Any, offset: int, taps: int, batch: tuple[int, ...], packing: Packing) -> Any:
    """Computes an operation, (x, h) -> y, (g, h) -> x or (g, x) -> h, on packed rows. taps, batch: of the responses."""
    gradient = operation == GRADIENT_RESPONSE
    a, b = space.contiguous(a), space.contiguous(b)
    made = space.result(a, b, batch + (taps,) if gradient else tuple(a.shape), gradient)
    run_classes(space, operation, ((a, False), (b, not gradient), (made, gradient)), offset, batch, packing)
    return made


def compute_both(space: Any, g: Any, x: Any, h: Any, offset: int, packing: Packing) -> tuple[Any, Any]:
    """Computes both gradients, (g, x, h) -> gx, gh."""
    g, x, h = space.contiguous(g), space.contiguous(x), space.contiguous(h)
    gx, gh = space.result(g, h, tuple(x.shape), False), space.result(g, x, tuple(h.shape), True)
    arrays = ((g, False), (x, False), (h, True), (gx, False), (gh, True))
    run_classes(space, GRADIENT_BOTH, arrays, offset, tuple(h.shape[:-1]), packing)
    return gx, gh
