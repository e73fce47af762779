"""The operators of gpuconv in PyTorch, with their gradients, and convolve(), which calls them where it is needed."""

from __future__ import annotations

import os
from typing import Any, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from . import _core
from . import _host
from ._batches import CONVOLVE, GRADIENT_RESPONSE, GRADIENT_SIGNAL, broadcast_batch
from ._cuda import Prepared, convolve_arrays, run
from ._host import thread_count
from ._libraries import check_frames, warn_of_axis
from ._modes import Mode, window
from ._tensors import check, host

NAMESPACE = "gpuconv"


def _threads() -> int:
    """Returns PyTorch's number of threads, which is 1 in a worker of a DataLoader, unless GPUCONV_THREADS says more."""
    return thread_count(None) if os.environ.get("GPUCONV_THREADS") else torch.get_num_threads()


def _as(made: np.ndarray, a: Tensor, b: Tensor) -> Tensor:
    """Returns a result as a tensor of the promoted type of its operands."""
    tensor = torch.from_numpy(made)
    return tensor if a.dtype == b.dtype == torch.float32 else tensor.to(torch.promote_types(a.dtype, b.dtype))


def _sum_to(tensor: Tensor, batch: Sequence[int]) -> Tensor:
    """Sums over the dimensions that broadcasting has added."""
    return tensor if tensor.shape[:-1] == tuple(batch) else tensor.sum_to_size(tuple(batch) + tensor.shape[-1:])


def _to_sum(a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """Returns `a` in 32 bits if the result of a and b is summed to the batch of `like`, because sums of values that were rounded
    to 16 bits are wrong where they cancel."""
    return a if like.shape[:-1] == torch.broadcast_shapes(a.shape[:-1], b.shape[:-1]) else a.float()


# ---- The operators: y = x * h from `offset` on, and its two adjoints. Each one's gradients are the other two. ----


# hop 0: a response is that of a whole row. Else a row of h has those of all blocks of `hop` frames of x, one after the other,
# and `linear` crosses from one to the next.


def _compute(operation: int, a: Tensor, b: Tensor, offset: int, frames: int, hop: int, linear: bool) -> Tensor:
    if a.is_cuda:
        made: Tensor = run("torch", operation, a, b, offset, frames, (), None, hop, linear)
        return made
    return _as(_host.compute(operation, host(a), host(b), offset, frames, _threads(), (), hop, linear), a, b)


def _convolve(x: Tensor, h: Tensor, offset: int, frames: int, hop: int = 0, linear: bool = False) -> Tensor:
    return _compute(CONVOLVE, x, h, offset, frames, hop, linear)


def _gradient_signal(g: Tensor, h: Tensor, offset: int, frames: int, hop: int = 0, linear: bool = False) -> Tensor:
    """gx[n] = sum over k of h[k] g[n + k - offset]."""
    return _compute(GRADIENT_SIGNAL, g, h, offset, frames, hop, linear)


def _gradient_response(
    g: Tensor, x: Tensor, offset: int, taps: int, batch: Sequence[int], hop: int = 0, linear: bool = False
) -> Tensor:
    """gh[k] = sum over n of x[n] g[n + k - offset], summed over the rows that share a response."""
    target = tuple(batch)
    if g.is_cuda:
        return _sum_to(run("torch", GRADIENT_RESPONSE, g, x, offset, taps, target, None, hop, linear), batch)
    made = torch.from_numpy(
        _host.compute(GRADIENT_RESPONSE, host(g), host(x), offset, taps, _threads(), target, hop, linear)
    )
    return _sum_to(made, batch).to(torch.promote_types(g.dtype, x.dtype))


def _fake(x: Tensor, h: Tensor, offset: int, frames: int, hop: int = 0, linear: bool = False) -> Tensor:
    batch = torch.broadcast_shapes(x.shape[:-1], h.shape[:-1])
    return x.new_empty(tuple(batch) + (frames,), dtype=torch.promote_types(x.dtype, h.dtype))


def _fake_response(
    g: Tensor, x: Tensor, offset: int, taps: int, batch: Sequence[int], hop: int = 0, linear: bool = False
) -> Tensor:
    return g.new_empty(tuple(batch) + (taps,), dtype=torch.promote_types(g.dtype, x.dtype))


def _setup(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.save_for_forward(inputs[0], inputs[1])
    ctx.offset, ctx.rest, ctx.varying = inputs[2], inputs[2:], inputs[-2:]


def _convolve_backward(ctx: Any, g: Tensor) -> Tuple[Optional[Tensor], ...]:
    x, h = ctx.saved_tensors
    gx = gh = None
    if ctx.needs_input_grad[0]:
        gx = _sum_to(_call("gradient_signal", _to_sum(g, h, x), h, ctx.offset, x.shape[-1], *ctx.varying), x.shape[:-1]).to(x.dtype)
    if ctx.needs_input_grad[1]:
        gh = _call("gradient_response", g, x, ctx.offset, h.shape[-1], h.shape[:-1], *ctx.varying).to(h.dtype)
    return gx, gh, None, None, None, None


def _gradient_signal_backward(ctx: Any, u: Tensor) -> Tuple[Optional[Tensor], ...]:
    g, h = ctx.saved_tensors
    gg = gh = None
    if ctx.needs_input_grad[0]:
        gg = _sum_to(_call("convolve", _to_sum(u, h, g), h, ctx.offset, g.shape[-1], *ctx.varying), g.shape[:-1]).to(g.dtype)
    if ctx.needs_input_grad[1]:
        gh = _call("gradient_response", g, u, ctx.offset, h.shape[-1], h.shape[:-1], *ctx.varying).to(h.dtype)
    return gg, gh, None, None, None, None


def _gradient_response_backward(ctx: Any, v: Tensor) -> Tuple[Optional[Tensor], ...]:
    g, x = ctx.saved_tensors
    gg = gx = None
    if ctx.needs_input_grad[0]:
        gg = _sum_to(_call("convolve", _to_sum(x, v, g), v, ctx.offset, g.shape[-1], *ctx.varying), g.shape[:-1]).to(g.dtype)
    if ctx.needs_input_grad[1]:
        gx = _sum_to(_call("gradient_signal", _to_sum(g, v, x), v, ctx.offset, x.shape[-1], *ctx.varying), x.shape[:-1]).to(x.dtype)
    return gg, gx, None, None, None, None, None


def _transformed() -> bool:
    """Returns whether torch.func (grad, vmap, ...) transforms the call, or forward-mode differentiation looks at it."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def _call(name: str, *arguments: Any) -> Tensor:
    """Calls an operator. Where gradients of operators are not known, it is an autograd function."""
    if not torch.compiler.is_compiling() and _transformed():
        made: Tensor = _functions[name].apply(*arguments)
        return made
    found: Tensor = getattr(_op, name)(*arguments)
    return found


def _batched(operator: Any) -> Any:
    """Returns the rule for vmap of (x, h, ...): the mapped dimension becomes the first of the batch."""

    def rule(info: Any, dims: Tuple[Any, ...], *arguments: Any) -> Tuple[Tensor, int]:
        operands = []
        ranks = [a.dim() - (d is not None) for a, d in zip(arguments[:2], dims[:2])]
        for tensor, dim, rank in zip(arguments[:2], dims[:2], ranks):
            if dim is not None:
                tensor = tensor.movedim(dim, 0)
                tensor = tensor.reshape(tensor.shape[:1] + (1,) * (max(ranks) - rank) + tensor.shape[1:])
            operands.append(tensor)
        rest = list(arguments[2:])
        if len(rest) == 5:  # the batch of gradient_response
            rest[2] = [info.batch_size] + [1] * (max(ranks) - 1 - len(rest[2])) + list(rest[2])
        made: Tensor = operator(*operands, *rest)
        if len(rest) == 5:
            made = made.reshape([info.batch_size] + list(arguments[4]) + [made.shape[-1]])
        return made, 0

    return rule


def _register() -> Any:
    """Defines the operators gpuconv::convolve, gpuconv::gradient_signal and gpuconv::gradient_response."""
    varying = "SymInt hop=0, bool linear=False) -> Tensor"
    pair = "(Tensor {0}, Tensor {1}, SymInt offset, SymInt frames, " + varying
    schemas = {
        "convolve": (pair.format("x", "h"), _convolve, _fake, _convolve_backward),
        "gradient_signal": (pair.format("g", "h"), _gradient_signal, _fake, _gradient_signal_backward),
        "gradient_response": (
            "(Tensor g, Tensor x, SymInt offset, SymInt taps, SymInt[] batch, " + varying,
            _gradient_response,
            _fake_response,
            _gradient_response_backward,
        ),
    }
    for name, (schema, call, fake, backward) in schemas.items():
        full = f"{NAMESPACE}::{name}"
        torch.library.define(full, schema, tags=(torch.Tag.pt2_compliant_tag,))
        torch.library.impl(full, ("cpu", "cuda"), call)
        torch.library.register_fake(full, fake)
        torch.library.register_autograd(full, backward, setup_context=_setup)
        if hasattr(torch.library, "register_vmap"):
            torch.library.register_vmap(full, _batched(getattr(torch.ops.gpuconv, name)))
    return torch.ops.gpuconv


_op = _register()


def _function(name: str, gradients: Any) -> Any:
    """Returns the autograd function of an operator, which is linear in each of its two tensors."""
    operator = getattr(_op, name)

    def tangent(ctx: Any, da: Optional[Tensor], db: Optional[Tensor], *_: Any) -> Optional[Tensor]:
        a, b = ctx.saved_tensors
        first = None if da is None else _call(name, da, b, *ctx.rest)
        second = None if db is None else _call(name, a, db, *ctx.rest)
        return second if first is None else first if second is None else first + second

    members = {
        "forward": staticmethod(lambda *arguments: operator(*arguments)),
        "setup_context": staticmethod(_setup),
        "backward": staticmethod(gradients),
        "jvp": staticmethod(tangent),
        "vmap": staticmethod(_batched(lambda *arguments: _call(name, *arguments))),
    }
    return type(f"gpuconv_{name}", (torch.autograd.Function,), members)


_functions = {
    "convolve": _function("convolve", _convolve_backward),
    "gradient_signal": _function("gradient_signal", _gradient_signal_backward),
    "gradient_response": _function("gradient_response", _gradient_response_backward),
}


def _frames_last(x: Tensor, h: Tensor, axis: int) -> Tuple[Tensor, Tensor]:
    """Returns the operands with their frames last, after the checks of their shapes and devices."""
    if x.device != h.device:
        raise ValueError(f"x is on {x.device} and h on {h.device}; move one of them")
    one = h.dim() == 1
    check_frames("x", tuple(x.shape), axis)
    check_frames("h", tuple(h.shape), -1 if one else axis)
    if axis in (-1, x.dim() - 1):
        return x, h
    if not one and h.dim() != x.dim():
        raise ValueError(f"with axis={axis} h must have 1 or, as x, {x.dim()} dimensions, not {h.dim()}")
    return x.movedim(axis, -1), h if one else h.movedim(axis, -1)


def convolve_wide(x: Tensor, h: Tensor, mode: Mode, axis: int, delay: int) -> Tensor:
    """Convolves float64 by PyTorch's own transforms, whose derivatives PyTorch knows."""
    last = axis in (-1, x.dim() - 1)
    x, h = _frames_last(x, h, axis)
    broadcast_batch(tuple(x.shape), tuple(h.shape))
    check_taps(x, h)
    offset, frames = window(mode, x.shape[-1], h.shape[-1], delay)
    whole = x.shape[-1] + h.shape[-1] - 1
    size = 1 << (whole - 1).bit_length()
    y = torch.fft.irfft(torch.fft.rfft(x, size) * torch.fft.rfft(h, size), size)[..., offset : min(offset + frames, whole)]
    made = nn.functional.pad(y, (0, frames - y.shape[-1]))  # a delay may reach behind the result
    return made if last else made.movedim(-1, axis)


def convolve(
    x: Tensor, h: Tensor, mode: Mode = "full", axis: int = -1, *, delay: int = 0, threads: Optional[int] = None
) -> Tensor:
    """Convolves tensors, as gpuconv.convolve, with gradients by x and h of any order.

    The result has the promoted type of x and h; halves and bfloat16 are computed in 32-bit floats, and two float64 tensors in
    64 bits, more slowly, by PyTorch's transforms. On a GPU the work is queued on the current stream. threads: ignored where gradients are recorded; None: torch.get_num_threads().
    """
    if isinstance(x, Tensor) and isinstance(h, Tensor) and x.dtype == h.dtype == torch.float64:
        return convolve_wide(x, h, mode, axis, delay)
    plain = is_plain(x, h)
    if plain and x.is_cuda and h.is_cuda and x.layout == h.layout == torch.strided:
        return convolve_arrays("torch", x, h, mode, axis, delay)
    check("x", x)
    check("h", h)
    last = axis in (-1, x.dim() - 1)
    x, h = _frames_last(x, h, axis)
    batch = broadcast_batch(tuple(x.shape), tuple(h.shape))
    offset, frames = window(mode, x.shape[-1], h.shape[-1], delay)
    if plain:
        warn_of_axis(tuple(x.shape), h.shape[-1])
        check_taps(x, h)
        count = _threads() if threads is None else thread_count(threads)
        made = np.empty(batch + (frames,), np.float32)
        _host.convolve_into(host(x), host(h), made, offset, count)
        y = _as(made, x, h)
    else:
        check_taps(x, h)
        y = _call("convolve", x, h, offset, frames, 0, False)
    return y if last else y.movedim(-1, axis)


def convolve_blocks(x: Tensor, h: Tensor, hop: int, linear: bool, offset: int, frames: int) -> Tensor:
    """Convolves blocks of `hop` frames of x with responses of their own, h (..., blocks x taps), with gradients."""
    check("x", x)
    check("h", h)
    if x.device != h.device:
        raise ValueError(f"x is on {x.device} and h on {h.device}; move one of them")
    broadcast_batch(tuple(x.shape), tuple(h.shape))
    check_taps(x, h)
    if is_plain(x, h):
        return _convolve(x, h, offset, frames, hop, linear)
    return _call("convolve", x, h, offset, frames, hop, linear)


_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()))


def _is_eager(x: Tensor, h: Tensor) -> bool:
    """Returns whether neither a compiler nor a transformation looks at the call, so that samples can be read."""
    if torch.compiler.is_compiling() or type(x) is not Tensor or type(h) not in (Tensor, nn.Parameter):
        return False
    return not x.is_meta and not _transformed() and not _modes() and not torch.jit.is_tracing()


def is_plain(x: Tensor, h: Tensor) -> bool:
    """Returns whether neither autograd nor a compiler nor a transformation looks at the call."""
    return _is_eager(x, h) and not ((x.requires_grad or h.requires_grad) and torch.is_grad_enabled())


def check_taps(x: Tensor, h: Tensor) -> None:
    """Raises ValueError if h has NaN or infinite taps. Not checked on a GPU, where it would wait for the result, and where a
    compiler or a transformation looks at the call."""
    if h.is_cuda or not _is_eager(x, h):
        return
    if not (torch.isfinite(h).all() if h.dtype == torch.float64 else _core.all_finite(host(h))):
        raise ValueError("h has NaN or infinite taps; a response must be finite")


class _HostPrepared:
    """Responses in host memory whose transforms are kept."""

    def __init__(self, h: Tensor) -> None:
        self.h = h
        self.prepared = _host.HostPrepared(host(h))
        self.plan = self.prepared.plan

    def __call__(self, x: Tensor, mode: Mode, axis: int = -1, *, delay: int = 0, threads: Optional[int] = None) -> Tensor:
        check("x", x)
        if x.device != self.h.device:
            raise ValueError(f"x is on {x.device} and h on {self.h.device}; move one of them")
        check_frames("x", tuple(x.shape), axis)
        last = axis in (-1, x.dim() - 1)
        moved = x if last else x.movedim(axis, -1)
        batch = broadcast_batch(tuple(moved.shape), self.prepared.shape)
        offset, frames = window(mode, moved.shape[-1], self.prepared.shape[-1], delay)
        made = np.empty(batch + (frames,), np.float32)
        self.prepared.convolve(host(moved), made, offset, _threads() if threads is None else thread_count(threads))
        y = _as(made, x, self.h)
        return y if last else y.movedim(-1, axis)


def prepare(h: Tensor, frames: int = 1 << 20) -> Any:
    """Transforms responses, (..., taps), and keeps the transforms, on their device, for signals of `frames` frames."""
    check("h", h)
    h = h.detach()
    check_frames("h", tuple(h.shape), -1)
    return Prepared("torch", h, frames) if h.is_cuda else _HostPrepared(h)
