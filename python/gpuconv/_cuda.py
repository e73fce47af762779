"""Convolution of arrays on an NVIDIA GPU, for PyTorch and CuPy, through gpuconv_cuda.h.

A job is planned once for the shapes, strides and types of its arrays and kept. A call then allocates the result and the
workspace with the caller's library, whose allocators know the current stream, and queues the kernels on that stream.
Arrays of JAX go through CuPy or PyTorch by DLPack, which orders the streams.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

from . import _core as _binding
from ._libraries import check_frames
from ._modes import Mode, window

_core: Any = _binding  # builds without CUDA lack the classes of the device
CONVOLVE, GRADIENT_SIGNAL, GRADIENT_RESPONSE = 0, 1, 2
_F32, _F16, _BF16 = 0, 1, 2
_devices: dict[int, Any] = {}
_jobs: dict[Any, "_Plan"] = {}
MAX_JOBS = 1024


class Layout(NamedTuple):
    """Shape, strides in elements, and type of an array."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: int


class _Torch:
    """Arrays of PyTorch."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.types = {torch.float32: _F32, torch.float16: _F16, torch.bfloat16: _BF16}
        self.raw_stream: Callable[[int], int] = torch._C._cuda_getCurrentRawStream

    def layout(self, name: str, x: Any) -> Layout:
        kind = self.types.get(x.dtype)
        if kind is None:
            raise TypeError(f"{name} has dtype {x.dtype}; float32, float16 and bfloat16 fit: use {name}.float()")
        return Layout(tuple(x.shape), x.stride(), kind)

    def device(self, x: Any) -> int:
        return int(x.device.index)

    def pointer(self, x: Any) -> int:
        return int(x.data_ptr())

    def stream(self, x: Any) -> int:
        return self.raw_stream(x.device.index)

    def empty(self, like: Any, shape: tuple[int, ...], kind: int) -> Any:
        dtype = (self.torch.float32, self.torch.float16, self.torch.bfloat16)[kind]
        return self.torch.empty(shape, dtype=dtype, device=like.device)

    def bytes(self, like: Any, count: int) -> Any:
        return self.torch.empty(count, dtype=self.torch.uint8, device=like.device)

    def contiguous(self, x: Any, batch: tuple[int, ...]) -> Any:
        return x.expand(batch + tuple(x.shape[-1:])).contiguous()

    def move(self, x: Any, source: int, target: int) -> Any:
        return x.movedim(source, target)

    def current(self, device: int) -> Any:
        return self.torch.cuda.device(device)

    def is_current(self, device: int) -> bool:
        return bool(self.torch.cuda.current_device() == device)


class _CuPy:
    """Arrays of CuPy."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.types = {"float32": _F32, "float16": _F16}

    def layout(self, name: str, x: Any) -> Layout:
        kind = self.types.get(x.dtype.name)
        if kind is None:
            raise TypeError(f"{name} has dtype {x.dtype}; float32 and float16 fit: use {name}.astype(cupy.float32)")
        size = x.dtype.itemsize
        return Layout(x.shape, tuple(step // size for step in x.strides), kind)

    def device(self, x: Any) -> int:
        return int(x.device.id)

    def pointer(self, x: Any) -> int:
        return int(x.data.ptr)

    def stream(self, x: Any) -> int:
        return int(self.cupy.cuda.get_current_stream().ptr)

    def empty(self, like: Any, shape: tuple[int, ...], kind: int) -> Any:
        return self.cupy.empty(shape, ("float32", "float16")[kind])

    def bytes(self, like: Any, count: int) -> Any:
        return self.cupy.empty(count, "uint8")

    def contiguous(self, x: Any, batch: tuple[int, ...]) -> Any:
        return self.cupy.ascontiguousarray(self.cupy.broadcast_to(x, batch + x.shape[-1:]))

    def move(self, x: Any, source: int, target: int) -> Any:
        return self.cupy.moveaxis(x, source, target)

    def current(self, device: int) -> Any:
        return self.cupy.cuda.Device(device)

    def is_current(self, device: int) -> bool:
        return bool(self.cupy.cuda.runtime.getDevice() == device)


_adapters: dict[str, Any] = {}


def adapter(kind: str) -> Any:
    """Returns the functions of a library."""
    found = _adapters.get(kind)
    if found is None:
        if not _core.has_cuda:
            raise RuntimeError(
                "this build of gpuconv has no CUDA; build it where nvcc is found, or move the arrays to the host"
            )
        found = _adapters[kind] = {"torch": _Torch, "cupy": _CuPy}[kind]()
    return found


def _device(number: int) -> Any:
    found = _devices.get(number)
    if found is None:
        found = _devices[number] = _core.Cuda(number)
    return found


def row_stride(layout: Layout, batch: tuple[int, ...]) -> Optional[int]:
    """Returns the elements from one row of the batch to the next; None: the rows have no single distance, or their
    frames are not contiguous."""
    frames = layout.shape[-1]
    if frames > 1 and layout.strides[-1] != 1:
        return None
    if all(size == 1 for size in layout.shape[:-1]):
        return 0 if any(size != 1 for size in batch) else frames
    if layout.shape[:-1] != batch:
        return None
    stride: Optional[int] = None
    for size, step in zip(reversed(layout.shape[:-1]), reversed(layout.strides[:-1])):
        if size == 1:
            continue
        if stride is None:
            stride, expected = step, step * size
        elif step != expected:
            return None
        else:
            expected *= size
    return stride if stride is not None and stride >= 0 else None


def share(batch: tuple[int, ...], responses: tuple[int, ...]) -> Optional[tuple[int, int]]:
    """Returns the rows of the responses, and how many rows of the batch in succession share one, where row i of the
    batch has response (i // group) % rows. None: the responses do not repeat in this way."""
    padded = (1,) * (len(batch) - len(responses)) + responses
    varied = [d for d, size in enumerate(padded) if size != 1]
    if not varied:
        return 1, 1
    first, last = varied[0], varied[-1]
    if padded[first : last + 1] != batch[first : last + 1]:
        return None
    rows = group = 1
    for size in batch[first : last + 1]:
        rows *= size
    for size in batch[last + 1 :]:
        group *= size
    return rows, group


class _Plan(NamedTuple):
    job: Any
    workspace: int
    shape: tuple[int, ...]
    type: int
    copy_x: Optional[tuple[int, ...]]
    copy_h: Optional[tuple[int, ...]]


def _plan(device: int, operation: int, x: Layout, h: Layout, offset: int, frames: int, target: tuple[int, ...],
          prepared: Any) -> _Plan:
    """Plans a job. The roles are those of the operation: (x, h) -> y; (g, h) -> x; (g, x) -> h, of the batch `target`."""
    batch = _broadcast(x.shape[:-1], h.shape[:-1])
    rows = 1
    for size in batch:
        rows *= size
    kind = x.type if x.type == h.type else _F32
    copy_x = copy_h = None
    x_stride = row_stride(x, batch)
    if x_stride is None:
        copy_x, x_stride = batch, x.shape[-1]
    first = (x.type, rows, x.shape[-1], x_stride)
    if operation == GRADIENT_RESPONSE:  # h is the signal, the responses are the result
        h_stride = row_stride(h, batch)
        if h_stride is None:
            copy_h, h_stride = batch, h.shape[-1]
        second = (h.type, rows, h.shape[-1], h_stride)
        shared = share(batch, target)
        made = target if shared is not None else batch
        made_rows, group = shared if shared is not None else (rows, 1)
        third = (kind, made_rows, frames, frames)
        job = _core.CudaJob(_device(device), operation, second, third, first, group, offset, None)
        return _Plan(job, job.workspace, made + (frames,), kind, copy_x, copy_h)
    shared = share(batch, h.shape[:-1])
    h_rows, group = shared if shared is not None else (rows, 1)
    h_stride = row_stride(h, h.shape[:-1]) if shared is not None else None
    if h_stride is None:
        copy_h, h_stride = (batch if shared is None else h.shape[:-1]), h.shape[-1]
    second = (h.type, h_rows, h.shape[-1], h_stride)
    third = (kind, rows, frames, frames)
    signal, output = (first, third) if operation == CONVOLVE else (third, first)
    job = _core.CudaJob(_device(device), operation, signal, second, output, group, offset, prepared)
    return _Plan(job, job.workspace, batch + (frames,), kind, copy_x, copy_h)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if a == b or not b:
        return a
    import numpy as np

    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ValueError(f"the batch {a} of x and the batch {b} of h do not broadcast: dimensions must be equal, or 1") from None


def run(kind: str, operation: int, x: Any, h: Any, offset: int, frames: int, target: tuple[int, ...] = (),
        prepared: Any = None) -> Any:
    """Queues a job on the current stream of the library `kind` and returns its result, with the frames last."""
    library = _adapters.get(kind) or adapter(kind)
    device = library.device(x)
    if library.device(h) != device:
        raise ValueError(f"x is on CUDA device {device} and h on {library.device(h)}; move one of them")
    x_layout, h_layout = library.layout("x", x), library.layout("h", h)
    key = (device, operation, x_layout, h_layout, offset, frames, target, None if prepared is None else id(prepared))
    plan = _jobs.get(key)
    if not library.is_current(device):
        with library.current(device):
            return run(kind, operation, x, h, offset, frames, target, prepared)
    if plan is None:
        if len(_jobs) >= MAX_JOBS:
            _jobs.clear()
        plan = _jobs[key] = _plan(device, operation, x_layout, h_layout, offset, frames, target, prepared)
    if plan.copy_x is not None:
        x = library.contiguous(x, plan.copy_x)
    if plan.copy_h is not None:
        h = library.contiguous(h, plan.copy_h)
    y = library.empty(x, plan.shape, plan.type)
    if 0 in plan.shape:
        return y
    workspace = library.bytes(x, plan.workspace) if plan.workspace else None
    plan.job.run(library.pointer(x), library.pointer(h), library.pointer(y),
                 0 if workspace is None else library.pointer(workspace), library.stream(x))
    return y


def convolve_arrays(kind: str, x: Any, h: Any, mode: Mode, axis: int, delay: int, prepared: Any = None) -> Any:
    """Convolves along an axis, for CuPy and JAX (and PyTorch without gradients)."""
    if kind == "jax":
        return _convolve_jax(x, h, mode, axis, delay)
    library = adapter(kind)
    check_frames("x", tuple(x.shape), axis)
    one = len(h.shape) == 1
    check_frames("h", tuple(h.shape), -1 if one else axis)
    last = axis in (-1, len(x.shape) - 1)
    if not last:
        x = library.move(x, axis, -1)
        h = h if one else library.move(h, axis, -1)
    offset, frames = window(mode, x.shape[-1], h.shape[-1], delay)
    y = run(kind, CONVOLVE, x, h, offset, frames, (), prepared)
    return y if last else library.move(y, -1, axis)


def _convolve_jax(x: Any, h: Any, mode: Mode, axis: int, delay: int) -> Any:
    import jax

    try:
        import cupy as bridge

        kind = "cupy"
    except ImportError:
        try:
            import torch as bridge

            kind = "torch"
        except ImportError:
            raise RuntimeError("arrays of JAX on a GPU need CuPy or PyTorch, which are not installed") from None
    made = convolve_arrays(kind, bridge.from_dlpack(x), bridge.from_dlpack(h), mode, axis, delay)
    return jax.dlpack.from_dlpack(made)


class Prepared:
    """Responses whose transforms are kept on the device, for signals of any length."""

    def __init__(self, kind: str, h: Any, frames: int = 1 << 20) -> None:
        library = adapter(kind)
        layout = library.layout("h", h)
        check_frames("h", layout.shape, -1)
        stride = row_stride(layout, layout.shape[:-1])
        if stride is None:
            h = library.contiguous(h, layout.shape[:-1])
            stride = layout.shape[-1]
        rows = 1
        for size in layout.shape[:-1]:
            rows *= size
        device = library.device(h)
        self.kind, self.h = kind, h
        with library.current(device):
            self.responses = _core.CudaResponses(
                _device(device), (layout.type, rows, layout.shape[-1], stride), library.pointer(h), frames, library.stream(h)
            )

    def __call__(self, x: Any, mode: Mode, axis: int = -1, *, delay: int = 0, threads: Any = None) -> Any:
        return convolve_arrays(self.kind, x, self.h, mode, axis, delay, self.responses)


class DeviceStream:
    """A stream of blocks on the device; all blocks but the last have the same length."""

    def __init__(self, kind: str, h: Any, channels: Optional[int], block: int) -> None:
        self.library = adapter(kind)
        layout = self.library.layout("h", h)
        check_frames("h", layout.shape, -1)
        if len(layout.shape) > 2:
            raise ValueError(f"h of shape {layout.shape}: use (frames,) or (channels, frames)")
        stride = row_stride(layout, layout.shape[:-1])
        if stride is None:
            h, stride = self.library.contiguous(h, layout.shape[:-1]), layout.shape[-1]
        rows = layout.shape[0] if len(layout.shape) == 2 else 1
        self.channels = rows if channels is None else channels
        self.block, self.taps, self.h = block, layout.shape[-1], h
        self.device = self.library.device(h)
        with self.library.current(self.device):
            self.streamer = _core.CudaStreamer(
                _device(self.device), (layout.type, rows, layout.shape[-1], stride), self.library.pointer(h), self.channels,
                block, self.library.stream(h),
            )

    def reset(self) -> None:
        self.streamer.reset(self.library.stream(self.h))

    def process(self, x: Any) -> Any:
        one = len(x.shape) == 1
        layout = self.library.layout("x", x)
        shape = (1,) + layout.shape if one else layout.shape
        if shape != (self.channels, self.block):
            raise ValueError(f"a block of shape {tuple(x.shape)}: use ({self.channels}, {self.block})")
        if row_stride(layout, layout.shape[:-1]) is None:
            x = self.library.contiguous(x, layout.shape[:-1])
            layout = self.library.layout("x", x)
        y = self.library.empty(x, layout.shape, layout.type)
        stride = self.block if one else layout.strides[0]
        self.streamer.process(
            (layout.type, self.channels, self.block, stride), self.library.pointer(x),
            (layout.type, self.channels, self.block, self.block), self.library.pointer(y), self.library.stream(x),
        )
        return y

    def flush(self) -> Any:
        raise NotImplementedError("a stream on the GPU has no flush(): process blocks of zeros")
