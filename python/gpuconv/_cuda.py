"""Convolution of arrays on an NVIDIA GPU, for PyTorch and CuPy, through gpuconv_arrays.h.

A job is planned once for the shapes, strides and types of its arrays and kept. A call then allocates the result and the
workspace with the caller's library, whose allocators know the current stream, and queues the kernels on that stream.
Arrays of JAX go through CuPy or PyTorch by DLPack, which orders the streams.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, NamedTuple, Optional

from . import _core as _binding
from ._batches import CONVOLVE, GRADIENT_BOTH, GRADIENT_RESPONSE, broadcast_batch, share
from ._cuda_libraries import F32, Layout, adapter
from ._cuda_libraries import adapters as _adapters
from ._libraries import check_frames, warn_of_axis
from ._modes import Mode, window

_core: Any = _binding  # builds without CUDA lack the classes of the device
_devices: dict[int, Any] = {}
_plans: dict[Any, "_Plan"] = {}  # by layouts and operation, and by the keys of the arguments of convolve_arrays()
_held: deque[tuple[Callable[[], bool], Any]] = deque()  # arrays of JAX that a stream may still read
MAX_PLANS = 1024
Gates = tuple[Any, Any, Any]  # pre, post, skip; None: none
NO_GATES: Gates = (None, None, None)


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


class _Plan(NamedTuple):
    job: Any  # None: there are no rows to read
    workspace: int
    shape: tuple[int, ...]
    type: int
    device: int
    copy_x: Optional[tuple[int, ...]] = None
    copy_h: Optional[tuple[int, ...]] = None
    transforms: int = 0  # bytes of the transforms that the job can write, or read for both gradients; 0: none


def _plan(device: int, operation: int, x: Layout, h: Layout, offset: int, frames: int, target: tuple[int, ...],
          prepared: Optional["Prepared"], hop: int = 0, linear: bool = False, gates: Gates = NO_GATES) -> _Plan:
    """Plans a job. The roles are those of the operation: (x, h) -> y; (g, h) -> x; (g, x) -> h, of the batch `target`."""
    batch = broadcast_batch(x.shape, h.shape)
    gradient = operation == GRADIENT_RESPONSE
    rows = 1
    for size in batch:
        rows *= size
    kind = x.type if x.type == h.type else F32
    shared = share(batch, target if gradient else h.shape[:-1])
    result = (target if shared is not None else batch) if gradient else batch
    if rows == 0 or 0 in result or frames == 0:
        return _Plan(None, 0, result + (frames,), kind, device)
    copy_x = copy_h = None
    x_stride = row_stride(x, batch)
    if x_stride is None:
        copy_x, x_stride = batch, x.shape[-1]
    first = (x.type, rows, x.shape[-1], x_stride)
    made_rows, group = shared if shared is not None else (rows, 1)
    h_batch = h.shape[:-1] if shared is not None and not gradient else batch
    h_rows = rows if gradient else made_rows
    h_stride = row_stride(h, h_batch) if gradient or shared is not None else None
    if h_stride is None or (hop and not gradient and h_stride != h.shape[-1]):
        copy_h, h_stride = h_batch, h.shape[-1]
    second = (h.type, h_rows, h.shape[-1], h_stride)
    third = (kind, made_rows if gradient else rows, frames, frames)
    # Prepared responses that do not repeat in this way are transformed anew.
    kept = prepared.responses if prepared is not None and shared is not None else None
    # A filter that changes with time has the responses of all blocks in a row.
    pre, post = (g and (g.type, rows, g.shape[-1], g.shape[-1]) for g in gates[:2])
    job = _core.CudaJob(_device(device), (operation, group, offset, hop, linear), [first, second, third], kept, (pre, post, gates[2] is not None))
    return _Plan(job, job.workspace, result + (frames,), kind, device, copy_x, copy_h, 0 if copy_x or copy_h else job.transforms)


def _keep(plans: dict[Any, _Plan], key: Any, plan: _Plan) -> _Plan:
    if len(plans) >= MAX_PLANS:
        plans.clear()
    plans[key] = plan
    return plan


def execute(library: Any, plan: _Plan, x: Any, h: Any, gates: Gates = NO_GATES, keep: bool = False) -> Any:
    """Queues a job on the current stream of the library and returns its result. keep: and the transforms for run_both(), or None."""
    if plan.copy_x is not None:
        x = library.contiguous(x, plan.copy_x)
    if plan.copy_h is not None:
        h = library.contiguous(h, plan.copy_h)
    y = library.empty(x, plan.shape, plan.type)
    if plan.job is None:
        y[...] = 0
        return (y, None) if keep else y
    pointer, kept = library.pointer, None
    if gates is not NO_GATES or (keep and plan.transforms):
        workspace = library.bytes(x, max(1, plan.workspace))
        kept = library.spare_bytes(x, plan.transforms) if keep else None
        plan.job.run((pointer(x), pointer(h), pointer(y), 0, 0), pointer(workspace), library.stream(x), 0 if kept is None else pointer(kept),
                     tuple(0 if g is None else pointer(g) for g in gates))
    elif plan.workspace:
        workspace = library.bytes(x, plan.workspace)
        plan.job.run((pointer(x), pointer(h), pointer(y), 0, 0), pointer(workspace), library.stream(x))
    else:
        plan.job.run((pointer(x), pointer(h), pointer(y), 0, 0), 0, library.stream(x))
    return (y, kept) if keep else y


def run(kind: str, operation: int, x: Any, h: Any, offset: int, frames: int, target: tuple[int, ...] = (),
        prepared: Optional["Prepared"] = None, hop: int = 0, linear: bool = False, gates: Gates = NO_GATES, keep: bool = False) -> Any:
    """Queues a job on the current stream of the library `kind` and returns its result, with the frames last. gates: of the
    whole batch, contiguous. keep: of a convolution of tensors; returns what execute() then returns."""
    library = _adapters.get(kind) or adapter(kind)
    plans = _plans if prepared is None else prepared.plans  # plans of kept responses live as long as these
    kinds = NO_GATES if gates is NO_GATES else [gate if gate is None else gate.dtype for gate in gates]
    key = (operation, library.key(x), library.key(h), offset, frames, target, hop, linear, *kinds)
    plan = plans.get(key)
    if plan is not None and library.is_current(plan.device):
        return execute(library, plan, x, h, gates, keep)
    device, own_x, own_h = library.device(x), library.resolve(x), library.resolve(h)
    if library.device(h) != device:
        raise ValueError(f"x is on CUDA device {device} and h on {library.device(h)}; move one of them")
    if own_x is not x or own_h is not h:
        return run(kind, operation, own_x, own_h, offset, frames, target, prepared, hop, linear, gates, keep)
    with library.current(device):
        if plan is None:
            pre, post, skip = (gate if gate is None else library.layout("gate", gate) for gate in gates)
            plan = _keep(plans, key, _plan(device, operation, library.layout("x", x), library.layout("h", h), offset, frames, target,
                                           prepared, hop, linear, (pre, post, skip)))
        return execute(library, plan, x, h, gates, keep)


def run_both(g: Any, x: Any, h: Any, offset: int, kept: Any = None) -> Optional[tuple[Any, Any]]:
    """Queues both gradients, of tensors of one type, on the current stream of PyTorch. Returns None where rows of x have no
    single distance, or those of g and x do not repeat h as those of a job can. kept: the transforms of the convolution, or None."""
    library = _adapters.get("torch") or adapter("torch")
    key = (GRADIENT_BOTH, library.key(g), library.key(x), library.key(h), offset)
    plan = _plans.get(key)
    if plan is None or not library.is_current(plan.device):
        with library.current(library.device(g)):
            if plan is None:
                _keep(_plans, key, _plan_both(library.device(g), library.layout("g", g), library.layout("x", x), library.layout("h", h), offset))
            return run_both(g, x, h, offset, kept)
    if plan.job is None:
        return None
    gx, gh, pointer = library.empty(x, x.shape, plan.type), library.empty(h, h.shape, plan.type), library.pointer
    workspace = library.bytes(x, plan.workspace) if plan.workspace else None
    transforms = 0 if kept is None or kept.numel() * kept.element_size() < plan.transforms else pointer(kept)
    plan.job.run((pointer(g), pointer(x), pointer(h), pointer(gx), pointer(gh)), 0 if workspace is None else pointer(workspace),
                 library.stream(x), transforms)
    return gx, gh


def _plan_both(device: int, g: Layout, x: Layout, h: Layout, offset: int) -> _Plan:
    batch, strides, shared = g.shape[:-1], [row_stride(a, g.shape[:-1]) for a in (x, g)], share(g.shape[:-1], h.shape[:-1])
    stride = None if shared is None else row_stride(h, h.shape[:-1])
    rows = 1
    for size in batch:
        rows *= size
    if shared is None or x.shape[:-1] != batch or None in strides or stride is None or rows == 0:
        return _Plan(None, 0, (), x.type, device)
    signal, output = ((a.type, rows, a.shape[-1], s) for a, s in zip((x, g), strides))
    response = h.type, shared[0], h.shape[-1], stride
    made = [(a.type, a_rows, a.shape[-1], a.shape[-1]) for a, a_rows in ((x, rows), (h, shared[0]))]
    job = _core.CudaJob(_device(device), (GRADIENT_BOTH, shared[1], offset, 0, False), [output, signal, response, *made], None)
    return _Plan(job, job.workspace, (), x.type, device, transforms=job.transforms)


def convolve_arrays(kind: str, x: Any, h: Any, mode: Mode, axis: int, delay: int, prepared: Optional["Prepared"] = None) -> Any:
    """Convolves along an axis, for CuPy and JAX, and for PyTorch without gradients. A call like an earlier one finds its
    plan by shapes, strides and types, without any other check."""
    if kind == "jax":
        return _convolve_jax(x, h, mode, axis, delay, prepared)
    library = _adapters.get(kind) or adapter(kind)
    plans = _plans if prepared is None else prepared.plans
    key = (library.key(x), library.key(h), mode, axis, delay)
    plan = plans.get(key)
    if plan is not None and library.is_current(plan.device):
        return execute(library, plan, x, h)
    check_frames("x", tuple(x.shape), axis)
    one = len(h.shape) == 1 or prepared is not None  # those of a Convolver have their frames last
    check_frames("h", tuple(h.shape), -1 if one else axis)
    last = axis in (-1, len(x.shape) - 1)
    if not last:
        if not one and len(h.shape) != len(x.shape):
            raise ValueError(f"with axis={axis} h must have 1 or, as x, {len(x.shape)} dimensions, not {len(h.shape)}")
        x = library.move(x, axis, -1)
        h = h if one else library.move(h, axis, -1)
    offset, frames = window(mode, x.shape[-1], h.shape[-1], delay)
    if prepared is None:
        warn_of_axis(tuple(x.shape), h.shape[-1], 2)
    y = run(kind, CONVOLVE, x, h, offset, frames, (), prepared)
    plan = plans.get((CONVOLVE, *key[:2], offset, frames, (), 0, False, None, None, None))
    if last and plan is not None:
        _keep(plans, key, plan)
    return y if last else library.move(y, -1, axis)


def run_library(kind: str, operation: int, x: Any, h: Any, offset: int, frames: int, hop: int, linear: bool) -> Any:
    """Does what run() does for CuPy and JAX, with arrays of any strides."""
    if kind == "jax":
        import jax

        through, library = bridge()
        made = run(through, operation, library.from_dlpack(x), library.from_dlpack(h), offset, frames, (), None, hop, linear)
        hold(adapter(through), (x, h))
        return jax.dlpack.from_dlpack(made)
    return run(kind, operation, x, h, offset, frames, (), None, hop, linear)


def bridge() -> tuple[str, Any]:
    """Returns the library through which arrays of JAX pass, and its name."""
    try:
        import cupy

        return "cupy", cupy
    except ImportError:
        pass
    try:
        import torch

        return "torch", torch
    except ImportError:
        raise RuntimeError("arrays of JAX on a GPU need CuPy or PyTorch, which are not installed") from None


def hold(library: Any, arrays: Any) -> None:
    """Keeps arrays of JAX until the current stream has done the work that reads them: JAX does not know that stream."""
    while _held and _held[0][0]():
        _held.popleft()
    _held.append((library.done(), arrays))


def _convolve_jax(x: Any, h: Any, mode: Mode, axis: int, delay: int, prepared: Optional["Prepared"]) -> Any:
    import jax

    kind, library = bridge()
    taps = h if prepared is not None else library.from_dlpack(h)
    made = convolve_arrays(kind, library.from_dlpack(x), taps, mode, axis, delay, prepared)
    hold(adapter(kind), (x, h))
    return jax.dlpack.from_dlpack(made)


class Prepared:
    """Responses whose transforms are kept on the device, for signals of any length."""

    def __init__(self, kind: str, h: Any, frames: int = 1 << 20) -> None:
        self.kind = kind  # of the signals
        if kind == "jax":
            kind, library = bridge()
            self.source, h = h, library.from_dlpack(h)
        self.through = kind
        library = adapter(kind)
        self.h, layout = self._rows(h)
        self.plans: dict[Any, _Plan] = {}
        device = library.device(self.h)
        with library.current(device):
            self.responses = _core.CudaResponses(_device(device), layout, library.pointer(self.h), frames, library.stream(self.h))

    def _rows(self, h: Any) -> tuple[Any, tuple[int, int, int, int]]:
        """Returns the responses as rows of a single stride, and their layout in memory."""
        library = adapter(self.through)
        layout = library.layout("h", h)
        check_frames("h", layout.shape, -1)
        rows, stride = 1, row_stride(layout, layout.shape[:-1])
        if stride is None:
            h, stride = library.contiguous(h, layout.shape[:-1]), layout.shape[-1]
        for size in layout.shape[:-1]:
            rows *= size
        return h, (layout.type, rows, layout.shape[-1], stride)

    def update(self, h: Any) -> None:
        """Replaces the responses, on the current stream."""
        if self.kind == "jax":
            self.source, h = h, bridge()[1].from_dlpack(h)
        library = adapter(self.through)
        device = library.device(self.h)
        if library.device(h) != device:
            raise ValueError(f"h is on CUDA device {library.device(h)} and the responses on {device}; move it")
        h, layout = self._rows(h)
        with library.current(device):
            self.responses.update(layout, library.pointer(h), library.stream(h))
            if self.kind == "jax":
                hold(library, self.source)
        self.h = h
        self.plans.clear()

    def plan(self, rows: int, frames: int, threads: Any = None) -> tuple[str, str, str]:
        """Returns the backend, the device, and a sentence on how `rows` signals of `frames` frames are convolved."""
        library = adapter(self.through)
        device, taps = library.device(self.h), library.layout("h", self.h)
        with library.current(device):
            made = _plan(device, CONVOLVE, Layout((rows, frames), (frames, 1), F32), taps, 0, frames + taps.shape[-1] - 1, (), self)
        return "cuda", f"CUDA device {device}", made.job.plan

    def __call__(self, x: Any, mode: Mode, axis: int = -1, *, delay: int = 0, threads: Any = None) -> Any:
        return convolve_arrays(self.kind, x, self.h, mode, axis, delay, self)
