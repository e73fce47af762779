"""Streams of blocks on a GPU: the device part of StreamingConvolver."""

from __future__ import annotations

from typing import Any, Optional

from ._cuda import _core, _device, row_stride
from ._cuda_libraries import adapter
from ._libraries import check_frames


class _Voice:
    """A response in a stream: its state on the device, and the fade of its input. Replaced ones ring until they end."""

    def __init__(self, library: Any, h: Any, channels: Optional[int], block: int, fade: int = 0) -> None:
        layout = library.layout("h", h)
        check_frames("h", layout.shape, -1)
        if len(layout.shape) > 2:
            raise ValueError(f"h of shape {layout.shape}: use (frames,) or (channels, frames)")
        rows = layout.shape[0] if len(layout.shape) == 2 else 1
        self.channels = rows if channels is None else channels
        if rows not in (1, self.channels):
            raise ValueError(f"h of shape {layout.shape} does not fit {self.channels} channels; use one response, or one for each")
        stride = row_stride(layout, layout.shape[:-1])
        if stride is None:
            h, stride = library.contiguous(h, layout.shape[:-1]), layout.shape[-1]
        self.taps, self.fade, self.faded = layout.shape[-1], fade, 0
        self.left = -1  # frames until silence; -1: it does not end
        self.streamer = _core.CudaStreamer(
            _device(library.device(h)), (layout.type, rows, layout.shape[-1], stride), library.pointer(h), self.channels, block,
            library.stream(h),
        )


class DeviceStream:
    """A stream of blocks of one length. After swap() it has two voices, until the old one has ended."""

    def __init__(self, kind: str, h: Any, channels: Optional[int], block: int) -> None:
        self.library, self.block, self.h = adapter(kind), block, h
        self.device = self.library.device(h)
        with self.library.current(self.device):
            self.voices = [_Voice(self.library, h, channels, block)]
        self.channels = self.voices[0].channels

    def reset(self) -> None:
        self.voices = self.voices[-1:]
        self.voices[0].fade = 0
        with self.library.current(self.device):
            self.voices[0].streamer.reset(self.library.stream(self.h))

    def swap(self, h: Any, frames: int) -> None:
        """Exchanges the response; the input is faded over from the next block on, in `frames` frames."""
        if self.library.device(h) != self.device:
            raise ValueError(f"h is on CUDA device {self.library.device(h)} and the stream on {self.device}; move it")
        with self.library.current(self.device):
            voice = _Voice(self.library, h, self.channels, self.block, frames)
        for old in self.voices:
            if old.left < 0:
                old.left = frames + old.taps - 1
        self.voices.append(voice)
        self.h = h

    def process(self, x: Any) -> Any:
        one = len(x.shape) == 1
        if ((1,) if one else ()) + tuple(x.shape) != (self.channels, self.block):
            raise ValueError(f"a block of shape {tuple(x.shape)}: use ({self.channels}, {self.block}), the same in every call")
        if self.library.device(x) != self.device:
            raise ValueError(f"x is on CUDA device {self.library.device(x)} and the stream on {self.device}; move it")
        with self.library.current(self.device):
            return self._convolve(self.voices[0], x) if len(self.voices) == 1 else self._mix(x)

    def _convolve(self, voice: _Voice, x: Any) -> Any:
        layout = self.library.layout("x", x)
        if row_stride(layout, layout.shape[:-1]) is None:
            x = self.library.contiguous(x, layout.shape[:-1])
            layout = self.library.layout("x", x)
        y = self.library.empty(x, layout.shape, layout.type)
        stride = self.block if len(layout.shape) == 1 or self.channels == 1 else layout.strides[0]
        voice.streamer.process(
            (layout.type, self.channels, self.block, stride), self.library.pointer(x),
            (layout.type, self.channels, self.block, self.block), self.library.pointer(y), self.library.stream(x),
        )
        return y

    def _mix(self, x: Any) -> Any:
        """Gives each voice its share of the input, from the newest to the oldest; the shares sum to the input."""
        y: Any = None
        rest, shape = x, tuple(x.shape)
        for voice in reversed(self.voices):
            if voice.faded >= voice.fade:  # it takes all that is left
                share, rest = rest, self.library.zeros(x, shape)
            else:
                gain = self.library.ramp(x, voice.faded, self.block, voice.fade)
                share, rest = rest * gain, rest * (1 - gain)
            made = self._convolve(voice, share)
            y = made if y is None else y + made
            voice.faded += self.block
            voice.left -= self.block if voice.left > 0 else 0
        self.voices = [voice for voice in self.voices[:-1] if voice.left > 0] + self.voices[-1:]
        return self.library.cast(y, x)

    def flush(self) -> Any:
        """Returns the tail, and returns to silence."""
        frames = max([self.voices[-1].taps - 1] + [voice.left for voice in self.voices[:-1]])
        with self.library.current(self.device):
            silence = self.library.zeros(self.h, (self.channels, self.block))
            parts = [self.process(silence) for _ in range(-(-frames // self.block))]
            tail = self.library.join(parts)[:, :frames] if parts else silence[:, :0]
        self.reset()
        return tail
