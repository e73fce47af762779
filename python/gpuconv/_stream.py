"""StreamingConvolver: blocks in, blocks out, without latency."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Union, overload

import numpy as np

from . import _core
from ._convolve import Array, Numbers
from ._libraries import library, through_host
from ._modes import BACKENDS, choose, real, whole
from ._notebook import length_text
from ._response import ImpulseResponse

REALTIME = ("realtime=True: a stream of arrays on a GPU leaves nothing out; make it of an ImpulseResponse, with backend='cuda' "
            "for a tail on the GPU")


class StreamingConvolver:
    """Convolves a signal block by block: process() returns as many frames as it gets, frame n with input frame n.

    h: taps, (frames,) or (channels, frames), or an ImpulseResponse (routed for more than one input, or any that
        route(channels) accepts). Tensors of PyTorch and arrays of CuPy on a GPU are convolved there.
    channels: of the signal; None: the inputs of a routed response, or the channels of an array.
    block: the most frames of a call that are computed at their best; calls may have any length. With arrays on a GPU
        every call has so many frames.
    rate: frames per second of an array; the choice of the partitions and the length of crossfades depend on it.
    realtime: True for an audio callback: a tail that is late is left out and counted in `late_blocks`, instead of
        waited for.
    latency: frames of added latency, which lower the load.
    threads: for the tail of the response.
    A stream of arrays on a GPU has no latency, `realtime`, plan or swap_routes().
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
        latency: int = 0,
    ) -> None:
        block = whole("block", block, 1, 65536, " frames")
        threads = whole("threads", threads, 1, 64)
        latency = whole("latency", latency, 0, 1 << 20, " frames")
        device = whole("device", device, -1, 1023)
        self._device_stream: Any = None
        self._rate = real("rate", rate)
        if not isinstance(h, ImpulseResponse) and library(h, "h") in ("torch", "cupy") and _on_gpu(h):
            from ._device_stream import DeviceStream

            if latency:
                raise ValueError(f"latency={latency}: a stream on the GPU has none; use 0")
            if realtime:
                raise ValueError(REALTIME)
            self._realtime = False
            self._kind = library(h)
            self._device_stream = DeviceStream(self._kind, h, channels, block)
            return
        response = h if isinstance(h, ImpulseResponse) else ImpulseResponse(h, rate)
        if not response.routed:
            response = response.route(response.outputs if channels is None else channels)
        elif channels is not None and channels != response.inputs:
            raise ValueError(f"channels={channels}, and the response is routed for {response.inputs}")
        self._response = response
        self._realtime = bool(realtime)
        if isinstance(h, ImpulseResponse):
            self._rate = response.rate
        self._options = (self._rate, block, threads)
        self._others = (choose("backend", backend, BACKENDS), device, latency)
        self._exchanged: dict[tuple[int, int], np.ndarray] = {}
        self._begin()

    def __repr__(self) -> str:
        if self._device_stream is not None:
            return f"<gpuconv.StreamingConvolver of {self.channels} channels, on a GPU>"
        size = length_text(self._frames, self._rate)
        return f"<gpuconv.StreamingConvolver {self.channels} to {self.outputs}, {size}: {self.plan}>"

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
        """Frames by which the output is late: `latency`, and the frames of the response before its time zero, mostly 0."""
        return int(self._stream.latency) if self._device_stream is None else 0

    @property
    def late_blocks(self) -> int:
        """Blocks of the tail that were left out because they were late; always 0 unless `realtime`."""
        return int(self._stream.late_blocks) if self._device_stream is None else 0

    @property
    def backend(self) -> str:
        """Where the tail is computed now: "cpu" or "cuda"."""
        return str(self._stream.backend) if self._device_stream is None else "cuda"

    @property
    def plan(self) -> str:
        """One sentence on the partitions of the first response and their predicted load."""
        if self._device_stream is not None:
            raise TypeError("a stream of arrays on a GPU has no plan; make it of an ImpulseResponse")
        return str(self._stream.plan)

    @property
    def realtime(self) -> bool:
        """Whether a late tail is left out instead of waited for; may be changed at any time."""
        return self._realtime

    @realtime.setter
    def realtime(self, value: bool) -> None:
        if value and self._device_stream is not None:
            raise ValueError(REALTIME)
        self._realtime = bool(value)
        if self._device_stream is None:
            self._stream.set_freewheel(not self._realtime)

    def reset(self) -> None:
        """Returns to silence, with the present response."""
        if self._device_stream is not None:
            self._device_stream.reset()
        elif os.getpid() == self._pid:
            self._stream.reset()
            self._decaying = 0
        else:
            self._begin()

    def _begin(self) -> None:
        """Makes the stream in this process, with the present response."""
        if self._exchanged:
            self._response = self._present()
        self._stream = _core.Stream(self._response._ir, self._options, not self._realtime, self._others)
        self._pid = os.getpid()
        self._frames = self._response.frames
        self._exchanged = {}
        self._decaying = 0

    @overload
    def process(self, x: Numbers) -> np.ndarray: ...

    @overload
    def process(self, x: Array) -> Array: ...

    def process(self, x: Any) -> Any:
        """Convolves one block: (frames,) for one channel, or (channels, frames). Returns (outputs, frames), or (frames,)
        where both have one channel and x has one dimension. On the CPU NaN and infinite samples count as 0."""
        kind = library(x, "x")
        if kind == "torch" and x.requires_grad:
            import torch

            if torch.is_grad_enabled():
                raise TypeError("a stream gives no gradients; use x.detach(), or gpuconv.torch.convolve")
            x = x.detach()
        if self._device_stream is not None:
            self._check_kind("x", kind)
            return self._device_stream.process(x)
        self._check_process()
        host, finish = through_host("x", x)
        one = host.ndim == 1
        host = np.ascontiguousarray(host[np.newaxis] if one else host)
        if host.ndim != 2 or host.shape[0] != self.channels:
            raise ValueError(f"a block of shape {tuple(x.shape)}: use ({self.channels}, frames)")
        y = np.empty((self.outputs, host.shape[1]), np.float32)
        if y.size:
            self._stream.process(host, y)
            self._decaying = max(0, self._decaying - y.shape[1])
        return finish(y[0] if one and self.outputs == 1 else y)

    __call__ = process

    def flush(self) -> Any:
        """Returns the tail, (outputs, frames): the M - 1 frames after the input's end, or as many as a response that was
        exchanged needs to decay, and those of `latency`. Then the stream is silent."""
        if self._device_stream is not None:
            return self._device_stream.flush()
        left = max(self._frames - 1, self._decaying) + self._others[2]
        return self.process(np.zeros((self.channels, left), np.float32))

    def swap(self, h: Any, seconds: float = 0.02) -> None:
        """Exchanges the response, with a crossfade of the input; the old one decays. The next block begins it.

        h: as for the constructor, with the same numbers of inputs and outputs; with arrays on a GPU another such array.
        seconds: 0 to 60.
        """
        if self._device_stream is not None:
            if not 0 <= real("seconds", seconds) <= 60:
                raise ValueError(f"a crossfade takes 0 to 60 seconds, not {seconds:g}")
            self._check_kind("h", library(h, "h"))
            self._device_stream.swap(h, round(seconds * self._rate))
            return
        self._check_process()
        response = h if isinstance(h, ImpulseResponse) else ImpulseResponse(h, self._rate)
        if not response.routed:
            response = response.route(self.channels)
        self._stream.swap(response._ir, real("seconds", seconds))
        self._decay(seconds)
        self._response, self._frames, self._exchanged = response, response.frames, {}

    def swap_routes(
        self, routes: Union[ImpulseResponse, Mapping[tuple[int, int], Any]], seconds: float = 0.02
    ) -> None:
        """Exchanges single routes with a crossfade of their input, such as those of one source that moves, or is heard by
        a moving head. Every other route goes on unchanged, and is not computed again. The next block begins it.

        routes: {(input, output): taps}, numbered from 0, or an ImpulseResponse.matrix() that has only these routes. They
            replace those between the same channels, or are added. seconds: 0 to 60.
        """
        if self._device_stream is not None:
            raise TypeError("a stream of arrays on a GPU has no routes; use swap(), or make it of an ImpulseResponse")
        self._check_process()
        if not isinstance(routes, ImpulseResponse):
            routes = ImpulseResponse.matrix(routes, self._rate, inputs=self.channels, outputs=self.outputs)
        elif not routes.routed:
            raise ValueError("routes: an ImpulseResponse that is not routed; use ImpulseResponse.matrix({(input, output): taps}, rate)")
        self._stream.swap_routes(routes._ir, real("seconds", seconds))
        self._decay(seconds)
        self._frames = max(self._frames, routes.frames)
        self._exchanged.update(routes._all_taps())

    def _check_kind(self, name: str, kind: str) -> None:
        if kind != self._kind:
            raise TypeError(f"{name} is an array of {kind}, and the stream is of {self._kind} on a GPU; convert it")

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("the stream belongs to the parent process; call reset() after a fork")

    def _decay(self, seconds: float) -> None:
        """Notes that the present response is heard until it has decayed."""
        self._decaying = max(self._decaying, self._frames - 1 + int(np.ceil(seconds * self._rate)))

    def _present(self) -> ImpulseResponse:
        """Returns the response with the routes that were exchanged."""
        return ImpulseResponse.matrix({**self._response._all_taps(), **self._exchanged}, self._response.rate, inputs=self.channels, outputs=self.outputs)


def _on_gpu(array: Any) -> bool:
    return library(array) == "cupy" or bool(array.is_cuda)
