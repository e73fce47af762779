"""gpuconv for PyTorch: convolution with gradients, as custom operators, and modules.

convolve() works on the CPU and on an NVIDIA GPU, under torch.compile, autocast and torch.func, and can be differentiated
any number of times. Results are computed in 32-bit floats; those of two float64 tensors in 64 bits, by PyTorch's transforms.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

try:
    import torch
    from torch import Tensor, nn
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("gpuconv.torch needs PyTorch: pip install torch", name=error.name) from error

from ._gates import convolve
from ._cuda_libraries import spare_memory
from ._libraries import check_frames, on_host
from ._modes import Mode, real, whole, window
from ._random_room import RandomRoom
from ._response import PATHS, ImpulseResponse, load_ir, path_of
from ._tensors import check
from ._varying import time_varying

__all__ = ["Convolution", "RandomReverb", "RandomRoom", "convolve", "keep_transforms", "time_varying"]


def keep_transforms(share: float) -> None:
    """Sets how long convolutions on GPUs keep transforms of x and h for the backward pass, which then takes a tenth to a fifth less time:
    while tensors take at most this share of the device's memory, 0..1, at the beginning 0.25. 0: never.

    Rows with more than 2048 frames of x and h together have such transforms, but for 8193 to 16 384 of each. They take two to
    eight times the memory of x. No result depends on them.
    """
    if not 0 <= real("share", share) <= 1:
        raise ValueError(f"share={share}: use a share of the memory, 0 to 1")
    spare_memory(share)


def _taps(name: str, h: Any, rate: Optional[float]) -> Tuple[Tensor, int]:
    """Returns taps of any kind as a float tensor, at the rate of the signals, and their number before time zero."""
    lead = 0
    if isinstance(h, PATHS):
        name, h = path_of(name, h), load_ir(h)
    if isinstance(h, ImpulseResponse):
        if rate is None:
            raise TypeError(f"{name} has a rate, {h.rate:g} Hz, and that of the signals is not given; use rate={h.rate:g} for signals "
                            "of this rate; for another one the response is resampled")
        h = h if h.rate == real("rate", rate) else h.resample(rate)
        h, lead = h.numpy(), h.lead
    tensor = h if isinstance(h, Tensor) else torch.from_numpy(on_host(name, h).copy())
    check(name, tensor)
    return tensor.detach().clone(), lead


class Convolution(nn.Module):  # type: ignore[misc]
    """Convolves with a response that belongs to the module.

    h: tensor, array, ImpulseResponse or file, (frames,) or a batch that broadcasts with that of the signals.
    mode, delay: as in convolve(). learn: the taps are a parameter instead of a buffer.
    rate: of the signals. A file or ImpulseResponse needs it, and is resampled to it with its level rescaled.
    Each call transforms the response, whose taps may change; gpuconv.Convolver keeps the transforms of a fixed one.
    """

    h: Tensor

    def __init__(
        self, h: Any, mode: Mode = "full", *, delay: int = 0, learn: bool = False, rate: Optional[float] = None
    ) -> None:
        super().__init__()
        taps, self._lead = _taps("h", h, rate)
        check_frames("h", tuple(taps.shape), -1)
        if not torch.isfinite(taps).all():
            raise ValueError("h has NaN or infinite taps; a response must be finite")
        window(mode, taps.shape[-1], taps.shape[-1], delay)  # checks the words
        if learn:
            self.h = nn.Parameter(taps)
        else:
            self.register_buffer("h", taps)
        self.mode: Mode = mode
        self.delay = delay

    def extra_repr(self) -> str:
        return f"{tuple(self.h.shape)}, mode={self.mode!r}, delay={self.delay}"

    def forward(self, x: Tensor) -> Tensor:
        """Returns x, (..., frames), convolved."""
        y = convolve(x, self.h, self.mode, delay=self.delay + self._lead if self.mode == "causal" else self.delay)
        return y[..., self._lead :] if self._lead and self.mode == "full" else y


Range = Union[float, Tuple[float, float]]


class RandomReverb(nn.Module):  # type: ignore[misc]
    """Convolves each example of a batch with a random response: an augmentation that keeps length and time.

    irs: responses: a sequence of tensors, arrays, ImpulseResponses or files, each (frames,) or (channels, frames), of any
        lengths; or one tensor (responses, [channels,] frames).
    p: probability that an example is convolved.
    wet: share of the convolved signal, 0..1, the rest is the signal itself; or a range of which each example draws one.
    normalize: "energy" (white noise keeps its level), "peak" (the largest tap becomes 1), or "none": of each response.
    align: the direct sound keeps its time: the delay of each response up to its peak is compensated.
    rate: of the signals. Files and ImpulseResponses are resampled to it, with their level rescaled; tensors and arrays are taken
        as they are. None: files and ImpulseResponses must have one rate, and each call says that it is that of the signals:
        reverb(x, sample_rate=48000).
    channels: what serves signals of another number of channels: "mix", the mean of a response's channels, or the number of
        one, from 0; None: nothing. A response of one channel serves every channel of a signal.
    save_rooms: state_dict() has the responses, and load_state_dict() brings them back; otherwise they are no part of it.
    In evaluation mode (module.eval()) signals pass unchanged. Random numbers come from PyTorch's generator of the signal's
    device, so that workers of a DataLoader draw their own. On a GPU nothing waits for the GPU.
    """

    bank: Tensor

    def __init__(
        self,
        irs: Any,
        p: float = 0.5,
        wet: Range = 1.0,
        normalize: str = "energy",
        *,
        align: bool = True,
        rate: Optional[float] = None,
        channels: Union[int, str, None] = None,
        save_rooms: bool = False,
    ) -> None:
        super().__init__()
        ends = tuple(wet) if isinstance(wet, (tuple, list)) else (wet, wet)
        if len(ends) != 2:
            raise ValueError(f"wet={wet}: use a share from 0 to 1, or a range (low, high) of it")
        p, low, high = real("p", p), real("wet", ends[0]), real("wet", ends[1])
        if not 0 <= p <= 1:
            raise ValueError(f"p={p}: use a probability, 0 to 1")
        if not 0 <= low <= high <= 1:
            raise ValueError(f"wet={wet}: use a share from 0 to 1, or a range (low, high) of it")
        if normalize not in ("energy", "peak", "none"):
            raise ValueError(f"normalize={normalize!r}: use 'energy', 'peak', 'none'")
        self.p, self.wet = p, (low, high)
        self.normalize, self.align = normalize, align
        if isinstance(irs, (*PATHS, ImpulseResponse)) or getattr(irs, "ndim", 2) < 2:
            raise ValueError("irs is one response; use a sequence of them: [irs]")
        rooms = [load_ir(ir) if isinstance(ir, PATHS) else ir for ir in irs]
        self.rate = _common_rate(rooms) if rate is None else real("rate", rate)
        self._needs_rate = rate is None and self.rate is not None
        taps = [_taps(f"response {number}", ir, self.rate) for number, ir in enumerate(rooms)]
        bank, self.delay = _bank([(_pick(ir, channels), lead) for ir, lead in taps], normalize, align)
        self._save_rooms = bool(save_rooms)
        self.register_buffer("bank", bank, persistent=self._save_rooms)
        if save_rooms:
            self.register_buffer("bank_delay", torch.tensor(self.delay))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        saved = state_dict.get(prefix + "bank")
        if not self._save_rooms:  # of a checkpoint that has the responses
            state_dict.pop(prefix + "bank", None)
            state_dict.pop(prefix + "bank_delay", None)
        elif saved is not None:  # other responses than those of the constructor
            self.bank = self.bank.new_empty(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *arguments)
        if self._save_rooms:
            self.delay = int(self.bank_delay)

    def extra_repr(self) -> str:
        bank, rate = self.bank.shape, "" if self.rate is None else f" at {self.rate:g} Hz"
        channels = f"{bank[1]} channels of " if len(bank) == 3 else ""
        return f"{bank[0]} responses of {channels}{bank[-1]} frames{rate}, p={self.p}, wet={self.wet}"

    def _check_rate(self, sample_rate: Optional[float]) -> None:
        if sample_rate is None and self._needs_rate:
            raise TypeError(f"the responses have a rate, {self.rate:g} Hz, and that of the signals is not given; call with "
                            f"sample_rate={self.rate:g} if it is the same, or resample: RandomReverb(..., rate=...)")
        if sample_rate is not None and self.rate is not None and sample_rate != self.rate:
            raise ValueError(f"sample_rate={sample_rate}: the responses are at {self.rate:g} Hz; resample: RandomReverb(..., "
                             f"rate={sample_rate})")

    def forward(self, x: Tensor, sample_rate: Optional[float] = None) -> Tensor:
        """Returns x, (batch, [channels,] frames) or (frames,), with as many frames. sample_rate: of x; see `rate`."""
        if not (self.bank.dtype == torch.float64 and isinstance(x, Tensor) and x.dtype == torch.float64):
            check("x", x)
        self._check_rate(sample_rate)
        if not self.training or self.p == 0:
            return x
        if x.dim() == 1:
            made: Tensor = self.forward(x[None], sample_rate)[0]
            return made
        if x.dim() not in (2, 3) or (self.bank.dim() == 3 and (x.dim() == 2 or x.shape[1] != self.bank.shape[1])):
            if self.bank.dim() == 2:
                raise ValueError(f"x of shape {tuple(x.shape)}: use (batch, [channels,] frames)")
            count = self.bank.shape[1]
            raise ValueError(f"x of shape {tuple(x.shape)}: the responses have {count} channels; use signals (batch, {count}, frames), "
                             "or RandomReverb(..., channels='mix') for the mean of a response's channels, channels=0 for its first")
        count = x.shape[0]
        pick = torch.randint(len(self.bank), (count,), device=x.device)
        low, high = self.wet
        wet = torch.empty(count, device=x.device).uniform_(low, high)
        chosen = torch.rand(count, device=x.device) < self.p
        if not _is_whole(x):  # convolve only the chosen rows
            rows = chosen.nonzero()[:, 0]
            if len(rows) == 0:
                return x
            if len(rows) < count:
                return x.index_copy(0, rows, self._mix(x[rows], pick[rows], wet[rows]))
            return self._mix(x, pick, wet)
        return self._mix(x, pick, wet * chosen)

    def _mix(self, x: Tensor, pick: Tensor, wet: Tensor) -> Tensor:
        h = self.bank[pick]
        if x.dim() == 3 and h.dim() == 2:
            h = h[:, None]
        y = convolve(x, h, "causal", delay=self.delay).to(x.dtype)
        if self.wet == (1.0, 1.0) and not _is_whole(x):
            return y
        mixed: Tensor = torch.lerp(x, y, wet.reshape((-1,) + (1,) * (x.dim() - 1)).to(x.dtype))
        return mixed


def _common_rate(irs: Sequence[Any]) -> Optional[float]:
    """Returns the one rate of all responses that have one; None: none has."""
    rates = sorted({ir.rate for ir in irs if isinstance(ir, ImpulseResponse)})
    if len(rates) > 1:
        raise TypeError(f"the responses have the rates {', '.join(f'{rate:g}' for rate in rates)} Hz, and that of the signals is not "
                        "given; use RandomReverb(..., rate=...)")
    return rates[0] if rates else None


def _is_whole(x: Tensor) -> bool:
    """Returns whether all rows are convolved, so that nothing waits for the GPU, and a compiler finds no branch."""
    return bool(x.is_cuda or torch.compiler.is_compiling() or torch.jit.is_tracing())


def _pick(ir: Tensor, channels: Union[int, str, None]) -> Tensor:
    """Returns one channel of a response, the mean of its channels, or all of them."""
    number = None if channels in (None, "mix") else whole("channels", channels, 0, 1023, "; the number of a channel, or 'mix'")
    if ir.dim() != 2 or len(ir) == 0:
        return ir
    if number is not None and number >= len(ir):
        raise ValueError(f"channels={number}: a response has the channels 0 to {len(ir) - 1}")
    if channels == "mix":
        return ir.float().mean(0)
    return ir[number or 0] if number is not None or len(ir) == 1 else ir


def _bank(irs: Sequence[Tuple[Tensor, int]], normalize: str, align: bool) -> Tuple[Tensor, int]:
    """Returns all responses in one tensor, with their peaks, or their time zero, at the same frame, and that frame."""
    if not irs:
        raise ValueError("no response: at least one is needed")
    shapes = sorted({tuple(ir.shape) for ir, _ in irs})
    if len({shape[:-1] for shape in shapes}) != 1 or len(shapes[0]) not in (1, 2):
        raise ValueError(f"responses of shapes {shapes}: use (frames,) or (channels, frames), with as many channels in each; "
                         "channels='mix' takes the mean of a response's channels, channels=0 its first")
    ready, peaks = [], []
    for number, (ir, lead) in enumerate(irs):
        check_frames(f"response {number}", tuple(ir.shape), -1)
        ir = ir.float().cpu()
        if not torch.isfinite(ir).all():
            raise ValueError(f"response {number} has NaN or infinite taps; a response must be finite")
        size = {"energy": ir.square().sum(-1).max().sqrt(), "peak": ir.abs().max(), "none": torch.ones(())}[normalize]
        if size == 0:
            raise ValueError(f"response {number} is silent")
        ready.append(ir / size)
        peaks.append(int(ir.abs().reshape(-1, ir.shape[-1]).amax(0).argmax()) if align else lead)
    delay = max(peaks)
    length = max(delay - peak + ir.shape[-1] for ir, peak in zip(ready, peaks))
    bank = ready[0].new_zeros((len(ready),) + tuple(ready[0].shape[:-1]) + (length,))
    for row, ir, peak in zip(bank, ready, peaks):
        row[..., delay - peak : delay - peak + ir.shape[-1]] = ir
    return bank, delay
