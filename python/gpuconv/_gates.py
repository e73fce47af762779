"""Convolution of tensors with gates and a skip, y = post (h * (pre x) + skip x), as custom operators of PyTorch.

The three operators are the convolution and its adjoints. Each is linear in each of its tensors, and each one's gradients are
the others, so that all can be differentiated any number of times.
"""

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from . import _host, _torch
from ._batches import CONVOLVE, GRADIENT_RESPONSE, GRADIENT_SIGNAL, broadcast_batch
from ._cuda import run
from ._modes import Mode
from ._tensors import check, host
from ._torch import _as, _fake, _fake_response, _sum_to, _threads, call, convolve_wide, define, fit, keyed, sum_like, to_sum

Gate = Optional[Tensor]
Shape = Tuple[int, ...]


def _full(gate: Gate, batch: Tuple[int, ...], frames: Optional[int], dtype: torch.dtype) -> Gate:
    """Returns a gate of every row, contiguous."""
    if gate is None:
        return None
    shape = batch if frames is None else batch + (frames,)
    if gate.dtype is dtype and gate.shape == shape and gate.is_contiguous() and not gate.is_neg():
        return gate  # what follows takes some microseconds
    return gate.to(dtype).expand(shape).contiguous().resolve_neg()


def _compute(operation: int, a: Tensor, b: Tensor, gates: Tuple[Gate, Gate, Gate], offset: int, lengths: Tuple[int, int, int],
             target: Tuple[int, ...] = ()) -> Tensor:
    """Runs an operation. lengths: frames of the signal, of the output, and of the result."""
    batch = broadcast_batch(tuple(a.shape), tuple(b.shape))
    pre, post = (_full(gate, batch, frames, a.dtype) for gate, frames in zip(gates[:2], lengths))
    skip = _full(gates[2], batch, None, torch.float32)
    if a.is_cuda:
        a = a if a.shape[:-1] == batch else a.expand(batch + a.shape[-1:])
        made: Tensor = run("torch", operation, a, b, offset, lengths[2], target, None, 0, False, (pre, post, skip))
        return made
    own_pre, own_post, own_skip = (gate if gate is None else host(gate) for gate in (pre, post, skip))
    own = own_pre, own_post, own_skip
    return _as(_host.compute(operation, host(a), host(b), offset, lengths[2], _threads(), target, 0, False, own), a, b)


def _convolve(x: Tensor, h: Tensor, pre: Gate, post: Gate, skip: Gate, offset: int, frames: int) -> Tensor:
    return _compute(CONVOLVE, x, h, (pre, post, skip), offset, (x.shape[-1], frames, frames))


def _signal(g: Tensor, h: Tensor, pre: Gate, post: Gate, skip: Gate, offset: int, frames: int) -> Tensor:
    """gx = pre (h correlated with post g) + skip post g."""
    return _compute(GRADIENT_SIGNAL, g, h, (pre, post, skip), offset, (frames, g.shape[-1], frames))


def _response(g: Tensor, x: Tensor, pre: Gate, post: Gate, offset: int, taps: int, batch: Sequence[int]) -> Tensor:
    """gh = pre x correlated with post g, summed over the rows that share a response."""
    made = _compute(GRADIENT_RESPONSE, g, x, (pre, post, None), offset, (x.shape[-1], g.shape[-1], taps), tuple(batch))
    return _sum_to(made, batch)


def _skipped(g: Tensor, x: Tensor, post: Gate, skip: Tensor) -> Tensor:
    """Returns the gradient by the skip."""
    frames = min(g.shape[-1], x.shape[-1])
    g = g.float() if post is None else post.float() * g.float()  # products of 16 bits would be rounded before their sum
    return sum_like((g[..., :frames] * x[..., :frames].float()).sum(-1), skip)


def _keeping(tensors: int) -> Any:
    """Returns what keeps the first inputs of an operator, its tensors, and the offset behind them for its gradients."""

    def setup(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:tensors])
        ctx.offset = inputs[tensors]

    return setup


def _by_the_rest(ctx: Any, x: Tensor, y: Tensor) -> Tuple[Optional[Tensor], ...]:
    """Returns the gradients of the sum of y times the gated convolution of x by the response, the gates and the skip."""
    _, h, pre, post, skip = ctx.saved_tensors
    need, offset = ctx.needs_input_grad, ctx.offset
    gh = call("gated_response", y, x, pre, post, offset, h.shape[-1], h.shape[:-1]).to(h.dtype) if need[1] else None
    gpre = sum_like(call("gated_signal", to_sum(y, pre, x.shape[-1], h, x), h, x, post, None, offset, x.shape[-1]), pre) if need[2] else None
    gpost = sum_like(call("gated_convolve", to_sum(x, post, y.shape[-1], h, y), h, pre, y, skip, offset, y.shape[-1]), post) if need[3] else None
    return gh, gpre, gpost, _skipped(y, x, post, skip) if need[4] else None, None, None


def _convolve_backward(ctx: Any, g: Tensor) -> Tuple[Optional[Tensor], ...]:
    x, *rest = ctx.saved_tensors
    gx = sum_like(call("gated_signal", to_sum(g, x, x.shape[-1], rest[0]), *rest, ctx.offset, x.shape[-1]), x) if ctx.needs_input_grad[0] else None
    return (gx, *_by_the_rest(ctx, x, g))


def _signal_backward(ctx: Any, u: Tensor) -> Tuple[Optional[Tensor], ...]:
    g, *rest = ctx.saved_tensors
    gg = sum_like(call("gated_convolve", to_sum(u, g, g.shape[-1], rest[0]), *rest, ctx.offset, g.shape[-1]), g) if ctx.needs_input_grad[0] else None
    return (gg, *_by_the_rest(ctx, u, g))


def _response_backward(ctx: Any, v: Tensor) -> Tuple[Optional[Tensor], ...]:
    g, x, pre, post = ctx.saved_tensors
    need, offset, nx, ny = ctx.needs_input_grad, ctx.offset, x.shape[-1], g.shape[-1]
    gg = sum_like(call("gated_convolve", to_sum(x, g, ny, v), v, pre, post, None, offset, ny), g) if need[0] else None
    gx = sum_like(call("gated_signal", to_sum(g, x, nx, v), v, pre, post, None, offset, nx), x) if need[1] else None
    gpre = sum_like(call("gated_signal", to_sum(g, pre, nx, v, x), v, x, post, None, offset, nx), pre) if need[2] else None
    gpost = sum_like(call("gated_convolve", to_sum(x, post, ny, v, g), v, pre, g, None, offset, ny), post) if need[3] else None
    return gg, gx, gpre, gpost, None, None, None


def _fake_whole(a: Tensor, b: Tensor, pre: Gate, post: Gate, skip: Gate, offset: int, frames: int) -> Tensor:
    return _fake(a, b, offset, frames)


def _fake_sum(g: Tensor, x: Tensor, pre: Gate, post: Gate, offset: int, taps: int, batch: Sequence[int]) -> Tensor:
    return _fake_response(g, x, offset, taps, batch)


_GATED = "(Tensor {0}, Tensor {1}, Tensor? pre, Tensor? post, Tensor? skip, SymInt offset, SymInt frames) -> Tensor"
_SUMMED = "(Tensor g, Tensor x, Tensor? pre, Tensor? post, SymInt offset, SymInt taps, SymInt[] batch) -> Tensor"
define("gated_convolve", _GATED.format("x", "h"), _convolve, _fake_whole, _convolve_backward, _keeping(5), 5)
define("gated_signal", _GATED.format("g", "h"), _signal, _fake_whole, _signal_backward, _keeping(5), 5)
define("gated_response", _SUMMED, _response, _fake_sum, _response_backward, _keeping(4), 4)


@functools.lru_cache(maxsize=1024, typed=True)
def _fit(x: Shape, h: Shape, mode: Mode, delay: int, *gates: Optional[Shape]) -> Tuple[int, int]:
    """Returns the window of a mode, after the checks of the shapes of the operands and of pre, post and skip."""
    offset, frames = fit.__wrapped__(x, h, mode, -1, delay)
    batch = broadcast_batch(x, h)
    for name, gate, shape in zip(("pre", "post", "skip"), gates, (batch + x[-1:], batch + (frames,), batch)):
        try:
            fits = gate is None or torch.broadcast_shapes(gate, shape) == shape
        except RuntimeError:
            fits = False
        if not fits:
            raise ValueError(f"{name} has the shape {tuple(gate or ())}; use one that broadcasts to {tuple(shape)}")
    return offset, frames


def _convolve_gated_wide(x: Tensor, h: Tensor, mode: Mode, delay: int, gates: Tuple[Gate, Gate, Gate]) -> Tensor:
    """Does the same for float64, by PyTorch's own transforms."""
    pre, post, skip = gates
    y = convolve_wide(x if pre is None else pre * x, h, mode, -1, delay)
    if skip is not None:
        count = min(x.shape[-1], y.shape[-1])
        y = y + nn.functional.pad((skip[..., None] * x)[..., :count], (0, y.shape[-1] - count))
    return y if post is None else post * y


def convolve(
    x: Tensor, h: Tensor, mode: Mode = "full", axis: int = -1, *, delay: int = 0, threads: Optional[int] = None,
    pre: Gate = None, post: Gate = None, skip: Gate = None, cu_seqlens: Optional[Tensor] = None, max_seqlen: Optional[int] = None
) -> Tensor:
    """Convolves tensors, as gpuconv.convolve, with gradients by x and h of any order.

    The result has the promoted type of x and h; halves and bfloat16 are computed in 32-bit floats, and two float64 tensors in
    64 bits, more slowly, by PyTorch's transforms. On a GPU the work is queued on the current stream. threads: ignored where
    gradients are recorded; None: torch.get_num_threads().

    pre, post, skip: gates, as models of long sequences have them: y = post * (convolve(pre * x, h) + skip[..., None] * x), with
    gradients by all of them; of the shapes of x, of the result, and of their batch, or what broadcasts to these. The frames
    are the last dimension. Frame n of x is added to frame n of the result, in every mode. On a GPU transforms on the chip
    apply the gates as they load and store samples.

    cu_seqlens: offsets of sequences that follow one another in x, (channels, frames) or (frames,): 0, the end of the first,
    ..., frames, as flash-attention has them. Each is convolved for itself, without padding, in the modes "causal" and "same"; h is
    (taps,), (channels, taps), or (sequences, channels, taps) with 1 for what shares a response. Offsets on a GPU are fetched
    and checked, which waits for the GPU, unless max_seqlen, the frames of the longest sequence, is given: then a CUDA graph can
    capture the call, and offsets that do not ascend, or longer sequences, give wrong frames without an error.
    """
    gates = (pre, post, skip)
    if all(gate is None for gate in gates):
        return _torch.convolve(x, h, mode, axis, delay=delay, threads=threads, cu_seqlens=cu_seqlens, max_seqlen=max_seqlen)
    if cu_seqlens is not None:
        raise ValueError("cu_seqlens with pre, post or skip: multiply packed sequences by their gates before and after the call")
    if not isinstance(x, Tensor) or not isinstance(h, Tensor):
        check("h" if isinstance(x, Tensor) else "x", h if isinstance(x, Tensor) else x)  # raises
    if axis not in (-1, x.dim() - 1):
        raise ValueError(f"axis={axis}: with pre, post or skip the frames are the last dimension")
    if x.dtype == h.dtype == torch.float64:
        return _convolve_gated_wide(x, h, mode, delay, gates)
    for name, tensor in zip(("x", "h", "pre", "post", "skip"), (x, h, *gates)):
        if tensor is not None:
            check(name, tensor)
            if tensor.device != x.device:
                raise ValueError(f"x is on {x.device} and {name} on {tensor.device}; move one of them")
    shapes = (None if gate is None else gate.shape for gate in gates)
    offset, frames = keyed(_fit, x, h)(x.shape, h.shape, mode, delay, *shapes)
    _torch.check_taps(x, h)
    return call("gated_convolve", x, h, pre, post, skip, offset, frames)
