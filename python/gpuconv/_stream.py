"""StreamingConvolver: blocks in, blocks out, without latency."""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np

from . import _core
from ._libraries import from_host, host_view, library, to_host
from ._modes import BACKENDS, choose
from ._response import ImpulseResponse


class StreamingConvolver:
    """Convolves a signal block by block: process() returns as many frames as it gets, frame n with input frame n.

    h: taps, (frames,) or (channels, frames), or an ImpulseResponse (routed for more than one input, or any that
        route(channels) accepts). Tensors of PyTorch and arrays of CuPy on a GPU are convolved there.
    channels: of the signal; None: the inputs of a routed response, or the channels of an array.
    block: the most frames of a call that are computed at their best; calls may have any length.
    rate: frames per second; only the choice of the partitions depends on it.
    realtime: True for an audio callback: a tail that is late is left out and counted in `late_blocks`, instead of
        waited for.
    threads: for the tail of the response.
    """

    def __init__(
        self,
        h: Any,
        *,
        channels: Optional[int] = None,
        block: int = 1024,
        rate: float = 48000.0,
        realtime: bool = False,
        backend: str = "cpu",
        device: int = 0,
        threads: int = 1,
    ) -> None:
        if not 1 <= block <= 65536:
            raise ValueError(f"block={block}: use 1 to 65536 frames")
        self._device_stream: Any = None
        self._rate = rate
        if not isinstance(h, ImpulseResponse) and library(h) in ("torch", "cupy") and _on_gpu(h):
            from ._device_stream import DeviceStream

            self._device_stream = DeviceStream(library(h), h, channels, block)
            return
        response = h if isinstance(h, ImpulseResponse) else ImpulseResponse(_on_host(h), rate)
        if not response.routed:
            response = response.route(response.outputs if channels is None else channels)
        elif channels is not None and channels != response.inputs:
            raise ValueError(f"channels={channels}, and the response is routed for {response.inputs}")
        self._response = response
        self._options = (rate, block, threads, not realtime, choose("backend", backend, BACKENDS), device)
        self.reset()

    @property
    def channels(self) -> int:
        """Channels of the input."""
        return self._response.inputs if self._device_stream is None else int(self._device_stream.channels)

    @property
    def outputs(self) -> int:
        """Channels of the output."""
        return self._response.outputs if self._device_stream is None else int(self._device_stream.channels)

    @property
    def latency(self) -> int:
        """Frames by which the output is late: the frames of the response before its time zero, mostly 0."""
        return int(self._stream.latency) if self._device_stream is None else 0

    @property
    def late_blocks(self) -> int:
        """Blocks of the tail that were left out because they were late; always 0 unless `realtime`."""
        return int(self._stream.late_blocks) if self._device_stream is None else 0

    def reset(self) -> None:
        """Returns to silence."""
        if self._device_stream is not None:
            self._device_stream.reset()
            return
        self._stream = _core.Stream(self._response._ir, *self._options)
        self._pid = os.getpid()

    def process(self, x: Any) -> Any:
        """Convolves one block: (frames,) for one channel, or (channels, frames). Returns (outputs, frames), or (frames,)
        where both have one channel and x has one dimension."""
        if self._device_stream is not None:
            return self._device_stream.process(x)
        if os.getpid() != self._pid:
            raise RuntimeError("the stream belongs to the parent process; call reset() after a fork")
        kind = library(x)
        if kind == "torch":
            import torch

            return torch.from_numpy(self.process(x.detach().cpu().numpy())).to(x.device)
        finish, host = from_host(x), to_host("x", x)
        one = host.ndim == 1
        host = host_view("x", host)
        host = np.ascontiguousarray(host[np.newaxis] if one else host)
        if host.ndim != 2 or host.shape[0] != self.channels:
            raise ValueError(f"a block of shape {tuple(x.shape)}: use ({self.channels}, frames)")
        y = np.empty((self.outputs, host.shape[1]), np.float32)
        if y.size:
            self._stream.process(host, y)
        return finish(y[0] if one and self.outputs == 1 else y)

    __call__ = process

    def flush(self) -> Any:
        """Returns the tail: the M - 1 frames after the input's end, (outputs, frames). Then the stream is silent."""
        if self._device_stream is not None:
            return self._device_stream.flush()
        return self.process(np.zeros((self.channels, self._response.frames - 1), np.float32))

    def swap(self, h: Any, seconds: float = 0.02) -> None:
        """Exchanges the response, with a crossfade of the input; the old one decays. The next block begins it."""
        if self._device_stream is not None:
            self._device_stream.swap(h, round(seconds * self._rate))
            return
        response = h if isinstance(h, ImpulseResponse) else ImpulseResponse(_on_host(h), self._response.rate)
        if not response.routed:
            response = response.route(self.channels)
        self._stream.swap(response._ir, seconds)
        self._response = response


def _on_gpu(array: Any) -> bool:
    return library(array) == "cupy" or bool(array.is_cuda)


def _on_host(array: Any) -> Any:
    return array.detach().numpy() if library(array) == "torch" else array
