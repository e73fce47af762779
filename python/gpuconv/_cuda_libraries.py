"""What the GPU path needs of PyTorch and CuPy: layouts, pointers, streams, and memory of their allocators."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from . import _core as _binding

_core: Any = _binding  # builds without CUDA lack the classes of the device
F32, F16, BF16 = 0, 1, 2


class Layout(NamedTuple):
    """Shape, strides in elements, and type of an array."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: int


class _Torch:
    """Arrays of PyTorch."""

    spare = 0.25  # of a device's memory: as keep_transforms() of gpuconv.torch says

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.types = {torch.float32: F32, torch.float16: F16, torch.bfloat16: BF16}
        self.dtypes = (torch.float32, torch.float16, torch.bfloat16)
        self.raw_stream: Callable[[int], int] = torch._C._cuda_getCurrentRawStream
        self.now: Callable[[], int] = torch._C._cuda_getDevice
        # Methods of the tensor themselves: a small call takes a few microseconds, and each function of Python 0.1.
        self.pointer: Callable[[Any], int] = torch.Tensor.data_ptr
        self.device: Callable[[Any], int] = torch.Tensor.get_device  # quicker than x.device.index; -1 on the CPU

    def layout(self, name: str, x: Any) -> Layout:
        if x.dtype not in self.types:
            from ._tensors import check

            check(name, x)  # raises
        return Layout(tuple(x.shape), x.stride(), self.types[x.dtype])

    def stream(self, x: Any) -> int:
        return self.raw_stream(x.get_device())

    def empty(self, like: Any, shape: tuple[int, ...], kind: int) -> Any:
        dtype = self.dtypes[kind]
        return like.new_empty(shape) if like.dtype is dtype else like.new_empty(shape, dtype=dtype)

    def bytes(self, like: Any, count: int) -> Any:
        return like.new_empty(-(-count // like.element_size()))  # quicker than with a dtype

    def spare_bytes(self, like: Any, count: int) -> Any:
        """Returns memory for transforms that a convolution leaves; None: more than `spare` of the device's memory would be in use."""
        cuda, device = self.torch.cuda, like.get_device()
        try:
            if cuda.memory_allocated(device) + count > self.spare * cuda.get_device_properties(device).total_memory:
                return None
            return self.bytes(like, count)
        except cuda.OutOfMemoryError:
            return None

    def key(self, x: Any) -> Any:
        """Returns what a plan depends on."""
        return x.shape, x.stride(), x.dtype, x.get_device(), x.is_neg()

    def resolve(self, x: Any) -> Any:
        """Returns the tensor without a pending negation, which its memory does not have."""
        return x.resolve_neg()

    def contiguous(self, x: Any, batch: tuple[int, ...]) -> Any:
        return x.expand(batch + tuple(x.shape[-1:])).contiguous()

    def move(self, x: Any, source: int, target: int) -> Any:
        return x.movedim(source, target)

    def zeros(self, like: Any, shape: tuple[int, ...]) -> Any:
        return self.torch.zeros(shape, device=like.device)

    def ramp(self, like: Any, first: int, frames: int, length: int) -> Any:
        """Returns the gains of `frames` frames of a fade of `length` frames from 0 to 1, from frame `first` on."""
        return ((self.torch.arange(first, first + frames, device=like.device) + 0.5) / length).clamp(0, 1)

    def cast(self, x: Any, like: Any) -> Any:
        return x.to(like.dtype)

    def join(self, parts: Sequence[Any]) -> Any:
        return self.torch.cat(tuple(parts), -1)

    def done(self) -> Callable[[], bool]:
        """Returns a function that tells whether the current stream has done the work queued so far."""
        event = self.torch.cuda.Event()
        event.record()
        query: Callable[[], bool] = event.query
        return query

    def current(self, device: int) -> Any:
        return self.torch.cuda.device(device)

    def is_current(self, device: int) -> bool:
        return self.now() == device


class _CuPy:
    """Arrays of CuPy."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.types = {"float32": F32, "float16": F16}

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

    def key(self, x: Any) -> Any:
        return x.shape, x.strides, x.dtype, x.data.device_id

    def resolve(self, x: Any) -> Any:
        return x

    def contiguous(self, x: Any, batch: tuple[int, ...]) -> Any:
        return self.cupy.ascontiguousarray(self.cupy.broadcast_to(x, batch + x.shape[-1:]))

    def move(self, x: Any, source: int, target: int) -> Any:
        return self.cupy.moveaxis(x, source, target)

    def zeros(self, like: Any, shape: tuple[int, ...]) -> Any:
        return self.cupy.zeros(shape, "float32")

    def ramp(self, like: Any, first: int, frames: int, length: int) -> Any:
        steps = self.cupy.arange(first, first + frames, dtype="float32")
        return self.cupy.clip((steps + 0.5) / length, 0, 1).astype("float32")

    def cast(self, x: Any, like: Any) -> Any:
        return x.astype(like.dtype, copy=False)

    def join(self, parts: Sequence[Any]) -> Any:
        return self.cupy.concatenate(tuple(parts), -1)

    def done(self) -> Callable[[], bool]:
        event = self.cupy.cuda.Event(disable_timing=True)
        event.record()
        return lambda: bool(event.done)

    def current(self, device: int) -> Any:
        return self.cupy.cuda.Device(device)

    def is_current(self, device: int) -> bool:
        return bool(self.cupy.cuda.runtime.getDevice() == device)


adapters: dict[str, Any] = {}


def spare_memory(share: float) -> None:
    _Torch.spare = share


def adapter(kind: str) -> Any:
    """Returns the functions of a library."""
    found = adapters.get(kind)
    if found is None:
        if not _core.has_cuda:
            raise RuntimeError(
                "gpuconv has no CUDA backend: install gpuconv-cuda, build gpuconv where nvcc is found, or move the arrays to the host"
            )
        found = adapters[kind] = {"torch": _Torch, "cupy": _CuPy}[kind]()
    return found
