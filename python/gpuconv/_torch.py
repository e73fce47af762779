"""The operators of gpuconv in PyTorch, with their gradients, and convolve(), which calls them where it is needed.

An operator is there three times, with the same bytes: its function, for calls that only compute; an autograd function, whose
calls take a third of the time on the host, for eager calls that record gradients, and for torch.func; and an operator of
torch.library, for torch.compile, export, torch.jit, tensors of other types, and modes of PyTorch that look at calls.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from . import _core, _host, _packed
from ._batches import CONVOLVE, GRADIENT_RESPONSE, GRADIENT_SIGNAL, broadcast_batch
from ._cuda import Prepared, convolve_arrays, run, run_both
from ._host import thread_count
from ._libraries import check_frames, warn_of_axis
from ._modes import Mode, whole, window
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


def to_sum(a: Tensor, like: Tensor, frames: int, *others: Tensor) -> Tensor:
    """Returns `a` in 32 bits if its result with the others, of `frames` frames, is summed to the shape of `like`, because sums
    of values that were rounded to 16 bits are wrong where they cancel."""
    if a.dtype is torch.float32:
        return a
    batch = a.shape[:-1]
    for other in others:
        if other.shape[:-1] != batch:
            batch = torch.broadcast_shapes(batch, other.shape[:-1])
    return a if like.shape == batch + (frames,) else a.float()


def sum_like(made: Tensor, like: Tensor) -> Tensor:
    """Sums over the dimensions that broadcasting has added to the shape of `like`."""
    made = made if made.shape == like.shape else made.sum_to_size(like.shape)
    return made if made.dtype is like.dtype else made.to(like.dtype)


# ---- The operators: y = x * h from `offset` on, and its two adjoints. Each one's gradients are the other two. ----


# hop 0: a response is that of a whole row. Else a row of h has those of all blocks of `hop` frames of x, one after the other,
# and `linear` crosses from one to the next. cu_seqlens: sequences are packed; on a GPU max_seqlen is given with it.


def _compute(operation: int, a: Tensor, b: Tensor, offset: int, frames: int, hop: int = 0, linear: bool = False,
             cu_seqlens: Optional[Tensor] = None, max_seqlen: int = 0, target: Tuple[int, ...] = ()) -> Tensor:
    if cu_seqlens is not None:
        taps, batch = (frames, target) if operation == GRADIENT_RESPONSE else (b.shape[-1], tuple(b.shape[:-1]))
        return _compute_packed(operation, a, b, offset, taps, batch, cu_seqlens, max_seqlen)
    gradient = operation == GRADIENT_RESPONSE
    if a.is_cuda:
        made: Tensor = run("torch", operation, a, b, offset, frames, target, None, hop, linear)
        return _sum_to(made, target) if gradient else made
    own = _host.compute(operation, host(a), host(b), offset, frames, _threads(), target, hop, linear)
    return _as(own if not gradient else _sum_to(torch.from_numpy(own), target).numpy(), a, b)


def _compute_packed(operation: int, a: Tensor, b: Tensor, offset: int, taps: int, batch: Tuple[int, ...], cu_seqlens: Tensor,
                    max_seqlen: int) -> Tensor:
    packing = _packing(a, cu_seqlens, max_seqlen)
    if not a.is_cuda:
        return _as(_packed.compute(_packed.Host(_threads()), operation, host(a), host(b), offset, taps, batch, packing), a, b)
    with torch.cuda.device(a.device):
        made: Tensor = _packed.compute(_packed.Gpu(a), operation, a, b, offset, taps, batch, packing)
    return made.to(torch.promote_types(a.dtype, b.dtype))


def _packing(a: Tensor, cu_seqlens: Tensor, max_seqlen: int) -> _packed.Packing:
    """Leaves the offsets on the device of `a` where the longest sequence is given."""
    return _packed.Packing(cu_seqlens if cu_seqlens.is_cuda and a.is_cuda and max_seqlen else cu_seqlens.cpu().numpy(), max_seqlen)


_convolve = functools.partial(_compute, CONVOLVE)
_gradient_signal = functools.partial(_compute, GRADIENT_SIGNAL)  # gx[n] = sum over k of h[k] g[n + k - offset]


def _gradient_response(g: Tensor, x: Tensor, offset: int, taps: int, batch: Sequence[int], hop: int = 0, linear: bool = False,
                       cu_seqlens: Optional[Tensor] = None, max_seqlen: int = 0) -> Tensor:
    """gh[k] = sum over n of x[n] g[n + k - offset], summed over the rows that share a response."""
    return _compute(GRADIENT_RESPONSE, g, x, offset, taps, hop, linear, cu_seqlens, max_seqlen, tuple(batch))


def _gradient_both(g: Tensor, x: Tensor, h: Tensor, offset: int, cu_seqlens: Optional[Tensor] = None, max_seqlen: int = 0,
                   kept: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """Both gradients of a convolution, with g read and transformed once where a GPU computes them. kept: as in run_both()."""
    if cu_seqlens is not None:
        return _gradient_both_packed(g, x, h, offset, _packing(g, cu_seqlens, max_seqlen))
    if g.is_cuda and g.dtype == x.dtype == h.dtype and not (g.is_neg() or x.is_neg() or h.is_neg()):
        made: Optional[Tuple[Tensor, Tensor]] = run_both(g.contiguous(), x, h, offset, kept)
        if made is not None:
            return made
    gx = _gradient_signal(to_sum(g, x, x.shape[-1], h), h, offset, x.shape[-1])
    return sum_like(gx, x), sum_like(_gradient_response(g, x, offset, h.shape[-1], h.shape[:-1]), h)


def _gradient_both_packed(g: Tensor, x: Tensor, h: Tensor, offset: int, packing: _packed.Packing) -> Tuple[Tensor, Tensor]:
    if g.is_cuda:
        with torch.cuda.device(g.device):
            gx, gh = _packed.compute_both(_packed.Gpu(g), g, x, h, offset, packing)
    else:
        gx, gh = map(torch.from_numpy, _packed.compute_both(_packed.Host(_threads()), host(g), host(x), host(h), offset, packing))
    return gx.to(x.dtype), gh.to(h.dtype)


def _fake(x: Tensor, h: Tensor, offset: int, frames: int, hop: int = 0, linear: bool = False,
          cu_seqlens: Optional[Tensor] = None, max_seqlen: int = 0) -> Tensor:
    batch = x.shape[:-1] if cu_seqlens is not None else torch.broadcast_shapes(x.shape[:-1], h.shape[:-1])
    return x.new_empty(tuple(batch) + (frames,), dtype=torch.promote_types(x.dtype, h.dtype))


def _fake_response(g: Tensor, x: Tensor, offset: int, taps: int, batch: Sequence[int], *_: Any) -> Tensor:
    return g.new_empty(tuple(batch) + (taps,), dtype=torch.promote_types(g.dtype, x.dtype))


def _setup(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.save_for_forward(inputs[0], inputs[1])
    ctx.offset, ctx.rest, ctx.varying = inputs[2], inputs[2:], inputs[-4:]


def _convolve_recorded(ctx: Any, x: Tensor, h: Tensor, offset: int, frames: int, hop: int = 0, linear: bool = False,
                       cu_seqlens: Optional[Tensor] = None, max_seqlen: int = 0) -> Tensor:
    """Convolves, and keeps the transforms of long rows on a GPU for both gradients, where there is memory for them."""
    need, kept = ctx.needs_input_grad, None
    if need[0] and need[1] and x.is_cuda and x.dtype is h.dtype and not hop and cu_seqlens is None:
        y, kept = run("torch", CONVOLVE, x, h, offset, frames, keep=True)
    else:
        y = _convolve(x, h, offset, frames, hop, linear, cu_seqlens, max_seqlen)
    _setup(ctx, (x, h, offset, frames, hop, linear, cu_seqlens, max_seqlen), y)
    if kept is not None:
        ctx.save_for_backward(x, h, kept)
    return y


_REST = (None,) * 6  # gradients of what follows the tensors, but for the batch of responses


def _like(ctx: Any, name: str, a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """Returns the gradient by `like` that is the convolution of a and b, or the gradient by its signal."""
    frames = like.shape[-1]
    packed = ctx.varying[2] is not None  # then no row of a signal is another's
    return sum_like(call(name, a if packed else to_sum(a, like, frames, b), b, ctx.offset, frames, *ctx.varying), like)


def _by_response(ctx: Any, g: Tensor, x: Tensor, h: Tensor) -> Tensor:
    return sum_like(call("gradient_response", g, x, ctx.offset, h.shape[-1], h.shape[:-1], *ctx.varying), h)


def _convolve_backward(ctx: Any, g: Tensor) -> Tuple[Optional[Tensor], ...]:
    x, h, *kept = ctx.saved_tensors
    need = ctx.needs_input_grad
    if kept and is_eager(g, x, h) and not torch.is_grad_enabled():
        return (*_gradient_both(g, x, h, ctx.offset, kept=kept[0]), *_REST)
    if need[0] and need[1] and not ctx.varying[0] and (torch.compiler.is_compiling() or not _transformed()):
        return (*call("gradient_both", g, x, h, ctx.offset, *ctx.varying[2:]), *_REST)
    gx = _like(ctx, "gradient_signal", g, h, x) if need[0] else None
    return gx, _by_response(ctx, g, x, h) if need[1] else None, *_REST


def _gradient_signal_backward(ctx: Any, u: Tensor) -> Tuple[Optional[Tensor], ...]:
    g, h = ctx.saved_tensors
    need = ctx.needs_input_grad
    gg = _like(ctx, "convolve", u, h, g) if need[0] else None
    return gg, _by_response(ctx, g, u, h) if need[1] else None, *_REST


def _gradient_response_backward(ctx: Any, v: Tensor) -> Tuple[Optional[Tensor], ...]:
    g, x = ctx.saved_tensors
    need = ctx.needs_input_grad
    gg = _like(ctx, "convolve", x, v, g) if need[0] else None
    return gg, _like(ctx, "gradient_signal", g, v, x) if need[1] else None, None, *_REST


def _keep_three(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.offset, ctx.varying = inputs[3], (0, False, *inputs[4:])


def _gradient_both_backward(ctx: Any, u: Tensor, v: Tensor) -> Tuple[Optional[Tensor], ...]:
    g, x, h = ctx.saved_tensors
    need = ctx.needs_input_grad
    gg = _like(ctx, "convolve", u, h, g) + _like(ctx, "convolve", x, v, g) if need[0] else None
    return gg, _like(ctx, "gradient_signal", g, v, x) if need[1] else None, _by_response(ctx, g, u, h) if need[2] else None, None, None, None


def _transformed() -> bool:
    """Returns whether torch.func (grad, vmap, ...) transforms the call, or forward-mode differentiation looks at it."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


class _Operator(NamedTuple):
    """The three forms of an operator."""

    tensors: int  # the first arguments, of which gates may be None
    compute: Callable[..., Tensor]
    record: Callable[..., Tensor]  # of an autograd function that knows nothing of torch.func, which a call would pay for
    function: Any  # of autograd, for torch.func; None: it takes the operator
    operator: Any


_operators: dict[str, _Operator] = {}


def call(name: str, *arguments: Any) -> Any:
    """Calls an operator in the form that is the quickest where it is called."""
    form = _operators[name]
    tensors = [tensor for tensor in arguments[: form.tensors] if tensor is not None]
    if is_eager(*tensors):
        recording = False
        if torch.is_grad_enabled():
            for tensor in tensors:
                recording = recording or tensor.requires_grad
        return (form.record if recording else form.compute)(*arguments)
    if form.function is not None and not torch.compiler.is_compiling() and _transformed():
        return form.function.apply(*arguments)
    return form.operator(*arguments)


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
        if rest[-2] is not None:
            raise NotImplementedError("vmap of packed sequences: add the examples to the channels, or loop over them")
        if len(rest) == 7:  # the batch of gradient_response
            rest[2] = [info.batch_size] + [1] * (max(ranks) - 1 - len(rest[2])) + list(rest[2])
        made: Tensor = operator(*operands, *rest)
        if len(rest) == 7:
            made = made.reshape([info.batch_size] + list(arguments[4]) + [made.shape[-1]])
        return made, 0

    return rule


def define(name: str, schema: str, compute: Any, fake: Any, backward: Any, setup: Any, tensors: int = 2, recorded: Any = None) -> None:
    """Defines the operator gpuconv::name in its three forms. tensors: the first arguments; two give the rules for torch.func.
    recorded: the forward function of autograd for eager calls; None: `compute` and `setup`."""
    full = f"{NAMESPACE}::{name}"
    torch.library.define(full, schema, tags=(torch.Tag.pt2_compliant_tag,))
    torch.library.impl(full, ("cpu", "cuda"), compute)
    torch.library.register_fake(full, fake)
    torch.library.register_autograd(full, backward, setup_context=setup)
    operator = getattr(torch.ops.gpuconv, name)

    def record(ctx: Any, *arguments: Any) -> Any:
        made = compute(*arguments)
        setup(ctx, arguments, made)
        return made

    def forward(*arguments: Any) -> Tensor:
        made: Tensor = (compute if is_eager(*arguments[:tensors]) else operator)(*arguments)
        return made

    def tangent(ctx: Any, da: Optional[Tensor], db: Optional[Tensor], *_: Any) -> Optional[Tensor]:
        a, b = ctx.saved_tensors
        first = None if da is None else call(name, da, b, *ctx.rest)
        second = None if db is None else call(name, a, db, *ctx.rest)
        return second if first is None else first if second is None else first + second

    def function(**members: Any) -> Any:
        members = {key: staticmethod(member) for key, member in members.items()}
        return type(f"gpuconv_{name}", (torch.autograd.Function,), members)

    transforms = None
    if tensors == 2:
        rule = _batched(lambda *arguments: call(name, *arguments))
        transforms = function(forward=forward, setup_context=setup, backward=backward, jvp=tangent, vmap=rule)
        if hasattr(torch.library, "register_vmap"):
            torch.library.register_vmap(full, _batched(operator))
    _operators[name] = _Operator(tensors, compute, function(forward=recorded or record, backward=backward).apply, transforms, operator)


_BOTH = "(Tensor g, Tensor x, Tensor h, SymInt offset, Tensor? cu_seqlens=None, SymInt max_seqlen=0) -> (Tensor, Tensor)"
_VARYING = "SymInt hop=0, bool linear=False, Tensor? cu_seqlens=None, SymInt max_seqlen=0) -> Tensor"
_PAIR = "(Tensor {0}, Tensor {1}, SymInt offset, SymInt frames, " + _VARYING
_SUM = "(Tensor g, Tensor x, SymInt offset, SymInt taps, SymInt[] batch, " + _VARYING
define("convolve", _PAIR.format("x", "h"), _convolve, _fake, _convolve_backward, _setup, recorded=_convolve_recorded)
define("gradient_both", _BOTH, _gradient_both, lambda g, x, h, *_: (torch.empty_like(x), torch.empty_like(h)),
       _gradient_both_backward, _keep_three, 3)
define("gradient_signal", _PAIR.format("g", "h"), _gradient_signal, _fake, _gradient_signal_backward, _setup)
define("gradient_response", _SUM, _gradient_response, _fake_response, _gradient_response_backward, _setup)


@functools.lru_cache(maxsize=1024, typed=True)
def fit(x: Tuple[int, ...], h: Tuple[int, ...], mode: Mode, axis: int, delay: int) -> Tuple[int, int]:
    """Returns the window of a mode, after the checks of the shapes of the operands."""
    one = len(h) == 1
    check_frames("x", x, axis)
    check_frames("h", h, -1 if one else axis)
    if axis not in (-1, len(x) - 1):
        if not one and len(h) != len(x):
            raise ValueError(f"with axis={axis} h must have 1 or, as x, {len(x)} dimensions, not {len(h)}")
        at = axis % len(x)
        x, h = (shape if len(shape) == 1 else shape[:at] + shape[at + 1 :] + shape[at : at + 1] for shape in (x, h))
    broadcast_batch(x, h)
    return window(mode, x[-1], h[-1], delay)


def keyed(checks: Any, x: Tensor, h: Tensor) -> Callable[..., Tuple[int, int]]:
    """Returns checks whose results are kept, as they are; without that where a compiler traces sizes, which are no keys."""
    found: Callable[..., Tuple[int, int]] = checks if is_eager(x, h) else checks.__wrapped__
    return found


def _prepare(x: Tensor, h: Tensor, mode: Mode, axis: int, delay: int) -> Tuple[Tensor, Tensor, int, int]:
    """Returns the operands with their frames last, and the window, after all checks."""
    if x.device != h.device:
        raise ValueError(f"x is on {x.device} and h on {h.device}; move one of them")
    offset, frames = keyed(fit, x, h)(x.shape, h.shape, mode, axis, delay)
    if axis not in (-1, x.dim() - 1):
        x, h = x.movedim(axis, -1), h if h.dim() == 1 else h.movedim(axis, -1)
    check_taps(x, h)
    return x, h, offset, frames


def convolve_wide(x: Tensor, h: Tensor, mode: Mode, axis: int, delay: int) -> Tensor:
    """Convolves float64 by PyTorch's own transforms, whose derivatives PyTorch knows."""
    last = axis in (-1, x.dim() - 1)
    x, h, offset, frames = _prepare(x, h, mode, axis, delay)
    whole = x.shape[-1] + h.shape[-1] - 1
    size = 1 << (whole - 1).bit_length()
    y = torch.fft.irfft(torch.fft.rfft(x, size) * torch.fft.rfft(h, size), size)[..., offset : min(offset + frames, whole)]
    made = nn.functional.pad(y, (0, frames - y.shape[-1]))  # a delay may reach behind the result
    return made if last else made.movedim(-1, axis)


def convolve(
    x: Tensor, h: Tensor, mode: Mode = "full", axis: int = -1, *, delay: int = 0, threads: Optional[int] = None,
    cu_seqlens: Optional[Tensor] = None, max_seqlen: Optional[int] = None
) -> Tensor:
    """Convolves tensors, as gpuconv.convolve, with gradients by x and h of any order.

    The result has the promoted type of x and h; halves and bfloat16 are computed in 32-bit floats, and two float64 tensors in
    64 bits, more slowly, by PyTorch's transforms. On a GPU the work is queued on the current stream. threads: ignored where gradients are recorded; None: torch.get_num_threads().
    """
    if isinstance(x, Tensor) and isinstance(h, Tensor) and x.dtype == h.dtype == torch.float64:
        return convolve_wide(x, h, mode, axis, delay)
    if cu_seqlens is not None:
        return _convolve_packed(x, h, mode, axis, delay, cu_seqlens, max_seqlen)
    plain = is_plain(x, h)
    if plain and x.is_cuda and h.is_cuda and x.layout == h.layout == torch.strided:
        return convolve_arrays("torch", x, h, mode, axis, delay)
    check("x", x)
    check("h", h)
    last = axis in (-1, x.dim() - 1)
    x, h, offset, frames = _prepare(x, h, mode, axis, delay)
    if plain:
        warn_of_axis(tuple(x.shape), h.shape[-1])
        count = _threads() if threads is None else thread_count(threads)
        y = _as(_host.compute(CONVOLVE, host(x), host(h), offset, frames, count), x, h)
    else:
        y = call("convolve", x, h, offset, frames, 0, False, None, 0)
    return y if last else y.movedim(-1, axis)


def _convolve_packed(x: Tensor, h: Tensor, mode: Mode, axis: int, delay: int, cu_seqlens: Tensor, max_seqlen: Optional[int]) -> Tensor:
    """Convolves packed sequences. Offsets on a GPU stay there if max_seqlen is given; else they are fetched and checked."""
    check("x", x)
    check("h", h)
    if x.device != h.device:
        raise ValueError(f"x is on {x.device} and h on {h.device}; move one of them")
    if not isinstance(cu_seqlens, Tensor):
        raise TypeError(f"cu_seqlens is {type(cu_seqlens).__name__}; use a tensor of whole numbers, or lengths= of gpuconv.convolve()")
    longest = 0 if max_seqlen is None else whole("max_seqlen", max_seqlen, 1, 1 << 40)
    _packed.check_packed(tuple(x.shape), tuple(h.shape), mode, axis, len(cu_seqlens) - 1)
    if not torch.compiler.is_compiling() and not (cu_seqlens.is_cuda and x.is_cuda and longest):
        cu_seqlens = cu_seqlens.cpu()  # once for the gradients too
    check_taps(x, h)
    offset, frames = window(mode, x.shape[-1], h.shape[-1], delay)
    return call("convolve", x, h, offset, frames, 0, False, cu_seqlens, longest)


def convolve_blocks(x: Tensor, h: Tensor, hop: int, linear: bool, offset: int, frames: int) -> Tensor:
    """Convolves blocks of `hop` frames of x with responses of their own, h (..., blocks x taps), with gradients."""
    check("x", x)
    check("h", h)
    if x.device != h.device:
        raise ValueError(f"x is on {x.device} and h on {h.device}; move one of them")
    broadcast_batch(tuple(x.shape), tuple(h.shape))
    check_taps(x, h)
    return call("convolve", x, h, offset, frames, hop, linear, None, 0)


_TYPES = (Tensor, nn.Parameter)
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()))


def is_eager(*tensors: Tensor) -> bool:
    """Returns whether neither a compiler nor a transformation looks at the call, so that samples can be read."""
    if torch.compiler.is_compiling() or _transformed() or _modes() or torch._C._is_tracing():
        return False
    for tensor in tensors:
        if type(tensor) not in _TYPES or tensor.is_meta:
            return False
    return True


def is_plain(x: Tensor, h: Tensor) -> bool:
    """Returns whether neither autograd nor a compiler nor a transformation looks at the call."""
    return is_eager(x, h) and not ((x.requires_grad or h.requires_grad) and torch.is_grad_enabled())


def check_taps(x: Tensor, h: Tensor) -> None:
    """Raises ValueError if h has NaN or infinite taps. Not checked on a GPU, where it would wait for the result, and where a
    compiler or a transformation looks at the call."""
    if h.is_cuda or not is_eager(x, h):
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
