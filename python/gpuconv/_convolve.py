"""Convolution of arrays: convolve(), and Convolver, which prepares the response once."""

from __future__ import annotations

import atexit
import os
from typing import Any, Callable, NamedTuple, Optional, Sequence, TypeVar, Union, overload

import numpy as np

from . import _core
from ._batches import CONVOLVE, broadcast_batch
from ._host import HostPrepared, check_taps, convolve_into, thread_count
from ._libraries import check_frames, from_host, host_view, is_traced, library, same_library, through_host, to_host, warn_of_axis
from ._modes import ALGORITHMS, BACKENDS, Mode, choose, whole, window
from ._response import ImpulseResponse

Array = TypeVar("Array")
Numbers = Union[np.ndarray, Sequence[Any]]  # gives an array of NumPy

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_core.forget_threads)
atexit.register(_core.end_calls)


def _last(name: str, array: np.ndarray, axis: int) -> np.ndarray:
    check_frames(name, array.shape, axis)
    return array if axis in (-1, array.ndim - 1) else np.moveaxis(array, axis, -1)


def _result(batch: tuple[int, ...], frames: int, axis: int, ndim: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns a new array with the frames at `axis`, and a view of it with the frames last."""
    place = axis % ndim + len(batch) + 1 - ndim if axis >= 0 or ndim <= len(batch) + 1 else axis
    if axis in (-1, ndim - 1):
        made = np.empty(batch + (frames,), np.float32)
        return made, made
    shape = list(batch)
    shape.insert(place, frames)
    made = np.empty(shape, np.float32)
    return made, np.moveaxis(made, place, -1)


_torch_convolve: Optional[Callable[..., Any]] = None


def _load_torch() -> Callable[..., Any]:
    """Returns the convolution of tensors; PyTorch is not imported before it is needed."""
    global _torch_convolve
    from ._torch import convolve as found

    _torch_convolve = found
    return found


@overload
def convolve(
    x: Numbers, h: Any, mode: Mode = ..., axis: int = ..., *, delay: int = ..., threads: Optional[int] = ..., lengths: Any = ...
) -> np.ndarray: ...


@overload
def convolve(
    x: Array, h: Any, mode: Mode = ..., axis: int = ..., *, delay: int = ..., threads: Optional[int] = ..., lengths: Any = ...
) -> Array: ...


def convolve(
    x: Any, h: Any, mode: Mode = "full", axis: int = -1, *, delay: int = 0, threads: Optional[int] = None, lengths: Any = None
) -> Any:
    """Convolves signals with responses: y[n] = sum over k of h[k] x[n - k], exactly, in 32-bit floats.

    x: array with frames along `axis`; every other dimension is a batch. NumPy, PyTorch, CuPy, JAX, or any array in
        host memory that speaks DLPack; float32, float16, or bfloat16 where the library has it.
    h: array of the same library with taps along `axis`; one dimension for one response, or a batch that broadcasts
        with that of x (one response for each signal, for each channel, ...). It must be finite; on a GPU this is not
        checked, because that would wait for the GPU.
    mode: with N frames and M taps,
        "full": all N + M - 1 frames; "same": N frames from (M - 1) // 2 on, as numpy.convolve gives for N >= M;
        "valid": N - M + 1 frames that need no zeros around x; "causal": the first N frames, for reverberation that
        keeps the length and the time of the signal.
    delay: with "causal", frames of the response's own delay that are compensated: the N frames from `delay` on.
    threads: CPU threads; None: the environment's GPUCONV_THREADS, else one per core.
    lengths: frames of sequences that follow one another in x, (channels, frames) or (frames,), each convolved for itself,
        without padding, in the modes "causal" and "same"; h then is (taps,), (channels, taps), or (sequences, channels, taps)
        with 1 for what shares a response. Not for CuPy, nor where JAX traces.

    Returns an array of the same library on the same device, computed in the order of its current stream. Tensors of
    PyTorch that need gradients get them, and so do arrays of JAX in jax.grad, jax.jvp, jax.vmap and jax.jit. On the CPU a signal gives the same bytes alone and in any batch; on a GPU small
    batches are computed in other ways than large ones, with the same precision.
    Samples above about 1e34 can overflow and give NaN or infinities; only files get a warning.
    Raises TypeError (a type that does not fit), ValueError (no frames, shapes that do not broadcast, NaN in h).
    """
    if is_traced(x) or is_traced(h):
        if lengths is not None:
            raise TypeError("lengths: where JAX traces, sequences cannot be packed; pad them")
        from ._jax import convolve as traced

        return traced(x, h, mode, axis, delay, threads)
    kind = same_library(x, h)
    if lengths is not None:
        return _convolve_packed(kind, x, h, mode, axis, delay, threads, lengths)
    if kind == "torch":
        return (_torch_convolve or _load_torch())(x, h, mode, axis, delay=delay, threads=threads)
    if kind == "cupy" or (kind == "jax" and is_on_gpu(x)):
        from ._cuda import convolve_arrays

        return convolve_arrays(kind, x, h, mode, axis, delay)
    finish = from_host(x)
    x, h = to_host("x", x), to_host("h", h)
    dtype = np.result_type(x.dtype, h.dtype)
    ndim, one = x.ndim, h.ndim == 1
    x = _last("x", host_view("x", x), axis)
    h = _last("h", host_view("h", h), -1 if one else axis)
    if not one and axis not in (-1, ndim - 1) and h.ndim != ndim:
        raise ValueError(f"with axis={axis} h must have 1 or, as x, {ndim} dimensions, not {h.ndim}")
    check_taps(h)
    offset, frames = window(mode, x.shape[-1], h.shape[-1], delay)
    batch = broadcast_batch(x.shape, h.shape)
    warn_of_axis(x.shape, h.shape[-1])
    y, view = _result(batch, frames, axis, ndim)
    convolve_into(x, h, view, offset, thread_count(threads))
    return finish(y if dtype == np.float32 else y.astype(dtype))


def _convolve_packed(kind: str, x: Any, h: Any, mode: Mode, axis: int, delay: int, threads: Optional[int], lengths: Any) -> Any:
    """Convolves sequences of given lengths that follow one another."""
    from . import _packed

    if kind == "cupy" or (kind == "jax" and is_on_gpu(x)):
        raise TypeError(f"lengths: packed arrays of {kind} on a GPU are not computed; use PyTorch: torch.from_dlpack(x)")
    counts = lengths.detach().cpu().numpy() if library(lengths, "lengths") == "torch" else np.asarray(lengths)
    if counts.ndim != 1 or len(counts) == 0 or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise ValueError(f"lengths={lengths!r}: use the frames of each sequence, 0 or more")
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    finish = from_host(x)
    if kind != "torch":
        x, h = to_host("x", x), to_host("h", h)
    _packed.check_packed(tuple(x.shape), tuple(h.shape), mode, axis, len(counts))
    if offsets[-1] != x.shape[-1]:
        raise ValueError(f"lengths add up to {offsets[-1]}, and x has {x.shape[-1]} frames; use sequences of as many frames in all")
    if kind == "torch":
        import torch

        return (_torch_convolve or _load_torch())(x, h, mode, axis, delay=delay, threads=threads, cu_seqlens=torch.from_numpy(offsets))
    dtype = np.result_type(x.dtype, h.dtype)
    x, h = host_view("x", x), host_view("h", h)
    check_taps(h)
    offset, _ = window(mode, x.shape[-1], h.shape[-1], delay)
    y = _packed.compute(_packed.Host(thread_count(threads)), CONVOLVE, x, h, offset, h.shape[-1], h.shape[:-1], _packed.Packing(offsets, 0))
    return finish(y if dtype == np.float32 else y.astype(dtype))


def is_on_gpu(array: Any) -> bool:
    """Returns whether an array of JAX is on a GPU."""
    devices = getattr(array, "devices", None)
    return callable(devices) and any(device.platform in ("gpu", "cuda") for device in devices())


class Plan(NamedTuple):
    """How an engine convolves."""

    backend: str  #: "cpu", "cuda"
    algorithm: str  #: "direct", "overlap-save", "partitioned", "matrix"
    device: str  #: name of the processor or GPU
    threads: int  #: of the CPU
    reason: str  #: one sentence on the choice
    note: str  #: one sentence on a fallback, or ""


class Convolver:
    """A response that is prepared once and convolved with many signals.

    h: an array, as in convolve(), or an ImpulseResponse with its routes (mono, stereo, true stereo, a matrix), which is
        then convolved as the command does it: x has the shape (..., inputs, frames), or (frames,) for one input, and
        the result has the outputs of the response; the same samples as `gpuconv IN IR OUT` writes.
    backend, algorithm, device: for an ImpulseResponse, as the options of the command ("auto", "cpu", "cuda"; "auto",
        "direct", "overlap-save", "partitioned", "matrix"; number of a CUDA device, -1: the largest). An array is convolved where
        it is, and none of these three may be given with it (ValueError).
    threads: as in convolve().
    frames: on a GPU, the frames of the signals that the transform of an array is chosen for; signals may have any other
        number. For whole songs give their length: ten minutes of stereo then take some 8 % less time.

    Only update() changes a Convolver. It may be shared by threads, and is usable after fork() and pickle.
    """

    def __init__(
        self,
        h: Any,
        *,
        backend: str = "auto",
        algorithm: str = "auto",
        device: int = -1,
        threads: Optional[int] = None,
        frames: int = 1 << 20,
    ) -> None:
        self._threads = threads
        self._frames = whole("frames", frames, 1, 1 << 40)
        self._engines: dict[tuple[int, int, int], tuple[Any, ImpulseResponse]] = {}
        device = whole("device", device, -1, 1023)
        self._options = (choose("backend", backend, BACKENDS), choose("algorithm", algorithm, ALGORITHMS), device)
        self._array: Any = None
        self._prepared: Any = None
        self._prepare(h)

    def _prepare(self, h: Any) -> None:
        if isinstance(h, ImpulseResponse):
            self._kind, self._response = "response", h
            return
        if self._options != (0, 0, -1):  # "auto", "auto", the largest
            raise ValueError("backend=, algorithm= and device= need an ImpulseResponse; an array is convolved where it is")
        self._kind = library(h, "h")
        self._array = h
        if self._kind == "torch":
            from ._torch import prepare

            self._prepared = prepare(h, self._frames)
        elif self._kind == "cupy" or (self._kind == "jax" and is_on_gpu(h)):
            from ._cuda import Prepared

            self._prepared = Prepared(self._kind, h, self._frames)
        else:
            host = host_view("h", to_host("h", h))
            check_frames("h", host.shape, -1)
            self._dtype = to_host("h", h).dtype
            self._prepared = HostPrepared(host)

    def update(self, h: Any) -> None:
        """Replaces the response by another of the same kind and shape.

        On a GPU the transforms are written into the same memory: the call neither allocates device memory nor waits,
        and is queued on the current stream, so that calls made before use the old response and later ones the new;
        calls on other streams must be ordered by the caller. A CUDA graph can capture it. No other thread may use the
        Convolver meanwhile.
        Raises TypeError (another library), ValueError (another shape, NaN in h on the CPU); the response then stays.
        """
        kind = "response" if isinstance(h, ImpulseResponse) else library(h, "h")
        if kind != self._kind:
            raise TypeError(f"the response was {_article(self._kind)}, and h is {_article(kind)}; make a new Convolver")
        if kind == "response":
            same = (h.routed, h.inputs, h.outputs, h.frames, h.rate) == (
                self._response.routed, self._response.inputs, self._response.outputs, self._response.frames, self._response.rate)
            if not same:
                raise ValueError(f"{h!r} replaces {self._response!r}; use one of the same rate, length and routes, or make a new Convolver")
            self._engines.clear()
        elif tuple(h.shape) != tuple(self._array.shape):
            raise ValueError(f"h of shape {tuple(h.shape)}: use {tuple(self._array.shape)}, as before, or make a new Convolver")
        elif kind == "torch" and h.device != self._array.device:
            raise ValueError(f"h is on {h.device} and the response on {self._array.device}; move it, or make a new Convolver")
        if hasattr(self._prepared, "update"):
            self._prepared.update(h.detach() if kind == "torch" else h)
            self._array = h
        else:
            self._prepare(h)

    def __reduce__(self) -> Any:
        backend, algorithm, device = self._options
        options = {"backend": BACKENDS[backend], "algorithm": ALGORITHMS[algorithm], "device": device,
                   "threads": self._threads, "frames": self._frames}
        return _rebuild, (self._response if self._kind == "response" else self._array, options)

    def __repr__(self) -> str:
        if self._kind != "response":
            _, device, reason = self._prepared.plan(1, self._frames, thread_count(self._threads))
            what = f"{self._kind} array of shape {tuple(self._array.shape)}"
            return f"<gpuconv.Convolver of a {what}: {reason.split(':')[0]} on {device}>"
        how = "plan(frames) tells how"
        if self._engines:
            engine, _ = list(self._engines.values())[-1]
            how = f"{engine.algorithm} on {engine.device}"
        return f"<gpuconv.Convolver of {repr(self._response)[9:-1]}: {how}>"

    @property
    def frames(self) -> int:
        """Taps of the response."""
        return self._response.frames if self._kind == "response" else int(self._array.shape[-1])

    def plan(self, frames: int, inputs: int = 1) -> Plan:
        """Returns how a signal of `frames` frames and `inputs` channels is convolved, and why. With a Convolver of an array,
        `inputs` is the number of signals, and the plan is that of the mode "full"."""
        inputs, frames = whole("inputs", inputs, 1, 1024), whole("frames", frames, 1, 1 << 40)
        if self._kind != "response":
            threads = thread_count(self._threads)
            backend, device, reason = self._prepared.plan(inputs, frames, threads)
            return Plan(backend, reason.split(":")[0], device, threads or os.cpu_count() or 1, reason, "")
        engine, _ = self._engine(inputs, frames)
        return Plan(engine.backend, engine.algorithm, engine.device, engine.threads, engine.reason, engine.note)

    @overload
    def __call__(self, x: Numbers, mode: Mode = ..., axis: int = ..., *, delay: int = ...) -> np.ndarray: ...

    @overload
    def __call__(self, x: Array, mode: Mode = ..., axis: int = ..., *, delay: int = ...) -> Array: ...

    def __call__(self, x: Any, mode: Mode = "full", axis: int = -1, *, delay: int = 0) -> Any:
        """Convolves x along `axis`, as convolve(x, h, mode, axis, delay=delay)."""
        if self._kind == "response":
            return self._convolve_response(x, mode, axis, delay)
        if self._kind == "jax" and is_traced(x):
            return convolve(x, self._array, mode, axis, delay=delay, threads=self._threads)
        if library(x, "x") != self._kind:
            raise TypeError(f"x is an array of {library(x)} and h of {self._kind}; convert one of them")
        if self._kind == "torch":
            from ._torch import convolve as differentiable
            from ._torch import is_plain

            if not is_plain(x, self._array):  # the kept transforms give no gradients
                return differentiable(x, self._array, mode, axis, delay=delay, threads=self._threads)
        if not isinstance(self._prepared, HostPrepared):
            return self._prepared(x, mode, axis, delay=delay, threads=self._threads)
        finish = from_host(x)
        host = to_host("x", x)
        dtype = np.result_type(host.dtype, self._dtype)
        ndim = host.ndim
        host = _last("x", host_view("x", host), axis)
        offset, frames = window(mode, host.shape[-1], self._prepared.shape[-1], delay)
        batch = broadcast_batch(host.shape, self._prepared.shape)
        y, view = _result(batch, frames, axis, ndim)
        self._prepared.convolve(host, view, offset, thread_count(self._threads))
        return finish(y if dtype == np.float32 else y.astype(dtype))

    def _engine(self, inputs: int, frames: int) -> tuple[Any, ImpulseResponse]:
        """Returns an engine for signals of this length; after a fork, a new one."""
        key = (os.getpid(), inputs, frames)
        found = self._engines.get(key)
        if found is None:
            routed = self._response if self._response.routed else self._response.route(inputs)
            backend, algorithm, device = self._options
            engine = _core.Engine(routed._ir, backend, algorithm, device, thread_count(self._threads), frames)
            found = (engine, routed)
            if len(self._engines) >= 4:
                self._engines.clear()
            self._engines[key] = found
        return found

    def _convolve_response(self, x: Any, mode: Mode, axis: int, delay: int) -> Any:
        kind = library(x, "x")
        if kind == "torch":
            import torch

            if x.requires_grad and torch.is_grad_enabled():
                raise TypeError("a Convolver of an ImpulseResponse gives no gradients; use gpuconv.torch.Convolution")
        host, finish = through_host("x", x)
        one = host.ndim == 1
        host = _last("x", host, axis)
        if one:
            host = host[np.newaxis]
        host = np.ascontiguousarray(host)
        engine, routed = self._engine(host.shape[-2], host.shape[-1])
        if host.shape[-2] != routed.inputs:
            raise ValueError(f"x of shape {host.shape} has {host.shape[-2]} channels, and the response {routed.inputs} inputs")
        lead = routed.lead if mode in ("full", "causal") else 0
        if mode == "full":
            offset, frames = lead, host.shape[-1] + routed.frames - 1 - lead
        else:
            offset, frames = window(mode, host.shape[-1], routed.frames, delay)
            offset += lead
        batch, total = host.shape[:-2], host.shape[-1] + routed.frames - 1
        y = np.zeros(batch + (routed.outputs, frames), np.float32)
        whole = np.empty((routed.outputs, total), np.float32)
        for index in np.ndindex(*batch):
            direct = offset == 0 and frames == total
            engine.convolve(host[index], y[index] if direct else whole)
            if not direct:
                part = whole[:, offset : offset + frames]
                y[index][:, : part.shape[1]] = part
        if one and routed.outputs == 1:
            y = y[0]
        elif axis not in (-1, host.ndim - 1) and not one:
            y = np.ascontiguousarray(np.moveaxis(y, -1, axis))
        return finish(y)


def _article(kind: str) -> str:
    return "an ImpulseResponse" if kind == "response" else f"an array of {kind}"


def _rebuild(h: Any, options: dict[str, Any]) -> Convolver:
    return Convolver(h, **options)
