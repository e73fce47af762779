"""Convolution of arrays that JAX traces: primitives with rules for jax.jit, jax.grad, jax.jvp and jax.vmap.

_rows_p works on rows: a (R, n), b (rows, m), and row i of a goes with row (i // group) % rows of b. With `hop` a row of
responses has those of all blocks of `hop` frames, one after the other. Its three operations (_batches) are linear in both
operands, and the transpose of each is another one. A change of both operands is the primitive _change_p, whose transpose
_both_p computes both gradients in one job. XLA calls functions of _core itself (foreign-function interface), on an NVIDIA
GPU with its stream; in a build without them it calls through the host.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import _core
from . import _host
from ._batches import CONVOLVE, GRADIENT_BOTH, GRADIENT_RESPONSE, GRADIENT_SIGNAL, broadcast_batch, share
from ._libraries import check_floats, check_frames, warn_of_axis
from ._modes import Mode, window

TARGET, BOTH = "gpuconv_rows", "gpuconv_both"
_rows_p, _change_p, _both_p = Primitive(TARGET), Primitive("gpuconv_change"), Primitive(BOTH)
_both_p.multiple_results = True


def _shape(a: Any, b: Any, operation: int, frames: int, rows: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((rows if operation == GRADIENT_RESPONSE else a.shape[0], frames), np.float32)


def _abstract(a: Any, b: Any, *, operation: int, frames: int, rows: int, **rest: Any) -> Any:
    return a.update(shape=_shape(a, b, operation, frames, rows).shape)


_rows_p.def_abstract_eval(_abstract)


# ---- Derivatives: for each operation, those whose results are the transposes by its first and its second operand ----

_TRANSPOSES = {
    CONVOLVE: (GRADIENT_SIGNAL, GRADIENT_RESPONSE),  # (x, h) -> y
    GRADIENT_SIGNAL: (CONVOLVE, GRADIENT_RESPONSE),  # (g, h) -> x
    GRADIENT_RESPONSE: (CONVOLVE, GRADIENT_SIGNAL),  # (g, x) -> h
}


def _transpose_first(cotangent: Any, a: Any, b: Any, *, operation: int, **rest: Any) -> Any:
    operands = (b, cotangent) if operation == GRADIENT_RESPONSE else (cotangent, b)
    return _rows_p.bind(*operands, operation=_TRANSPOSES[operation][0], **{**rest, "frames": a.aval.shape[-1]})


def _transpose_second(cotangent: Any, a: Any, b: Any, *, operation: int, **rest: Any) -> Any:
    operands = (cotangent, a) if operation == CONVOLVE else (a, cotangent)
    return _rows_p.bind(*operands, operation=_TRANSPOSES[operation][1], **{**rest, "frames": b.aval.shape[-1]})


ad.defbilinear(_rows_p, _transpose_first, _transpose_second)
_bilinear = ad.primitive_jvps[_rows_p]


def _rows_jvp(primals: Any, tangents: Any, *, operation: int, **rest: Any) -> Any:
    if operation != CONVOLVE or rest["hop"] or any(type(t) is ad.Zero for t in tangents):
        return _bilinear(primals, tangents, operation=operation, **rest)
    return _rows_p.bind(*primals, operation=operation, **rest), _change_p.bind(*tangents, *primals, **rest)


ad.primitive_jvps[_rows_p] = _rows_jvp


# ---- Changes of both operands: dx * h + x * dh, linear in dx and dh; and both gradients, (g, x, h) -> (gx, gh) ----


def _change(dx: Any, dh: Any, x: Any, h: Any, **rest: Any) -> Any:
    bind = partial(_rows_p.bind, operation=CONVOLVE, **rest)
    return bind(dx, h) + bind(x, dh)


def _both(g: Any, x: Any, h: Any, *, frames: int, **rest: Any) -> Any:
    bind = partial(_rows_p.bind, **rest)
    return bind(g, h, operation=GRADIENT_SIGNAL, frames=x.shape[-1]), bind(g, x, operation=GRADIENT_RESPONSE, frames=h.shape[-1])


def _change_transpose(cotangent: Any, dx: Any, dh: Any, x: Any, h: Any, **rest: Any) -> Any:
    if type(cotangent) is ad.Zero:
        return None, None, None, None
    if ad.is_undefined_primal(dx) and ad.is_undefined_primal(dh):
        return (*_both_p.bind(cotangent, x, h, **rest), None, None)
    gx = _transpose_first(cotangent, dx, h, operation=CONVOLVE, **rest) if ad.is_undefined_primal(dx) else None
    gh = _transpose_second(cotangent, x, dh, operation=CONVOLVE, **rest) if ad.is_undefined_primal(dh) else None
    return gx, gh, None, None


def _both_transpose(cotangents: Any, g: Any, x: Any, h: Any, **rest: Any) -> Any:
    u, v = (ad.instantiate_zeros(c) for c in cotangents)
    return _change_p.bind(u, v, x, h, **rest), None, None


def _jvp_of(function: Any) -> Any:
    return lambda primals, tangents, **rest: jax.jvp(partial(function, **rest), primals, tuple(map(ad.instantiate_zeros, tangents)))


_change_p.def_abstract_eval(lambda dx, dh, x, h, *, frames, **rest: x.update(shape=(x.shape[0], frames)))
_both_p.def_abstract_eval(lambda g, x, h, **rest: (x, h))
ad.primitive_jvps[_change_p], ad.primitive_jvps[_both_p] = _jvp_of(_change), _jvp_of(_both)
ad.primitive_transposes[_change_p], ad.primitive_transposes[_both_p] = _change_transpose, _both_transpose


# ---- vmap: the mapped dimension becomes more rows ----


def _batch(operands: Any, dims: Any, *, operation: int, rows: int, group: int, **rest: Any) -> Any:
    count = next(array.shape[dim] for array, dim in zip(operands, dims) if dim is not None)

    def mapped(array: Any, dim: Optional[int]) -> Any:
        return jnp.broadcast_to(array, (count,) + array.shape) if dim is None else jnp.moveaxis(array, dim, 0)

    def flat(array: Any) -> Any:
        return array.reshape((-1, array.shape[-1]))

    a = mapped(operands[0], dims[0])
    repeats = a.shape[1] // (rows * group)  # of the responses, in the rows of one call
    if operation == GRADIENT_RESPONSE:
        many = {**rest, "operation": operation, "rows": count * repeats * rows, "group": group}
        made = _rows_p.bind(flat(a), flat(mapped(operands[1], dims[1])), **many)
        return made.reshape((count, repeats, rows, -1)).sum(1), 0
    b = operands[1]
    if dims[1] is not None:
        b = mapped(b, dims[1])
        b = flat(jnp.broadcast_to(b[:, None], (count, repeats) + b.shape[1:]))
        rows = len(b)
    made = _rows_p.bind(flat(a), b, operation=operation, rows=rows, group=group, **rest)
    return made.reshape((count, a.shape[1], -1)), 0


batching.primitive_batchers[_rows_p] = _batch
batching.primitive_batchers[_change_p] = lambda operands, dims, **rest: (jax.vmap(partial(_change, **rest), dims)(*operands), 0)
batching.primitive_batchers[_both_p] = lambda operands, dims, **rest: (jax.vmap(partial(_both, **rest), dims)(*operands), (0, 0))


# ---- Calls ----


def compute_on_host(
    a: Any, b: Any, *, operation: int, offset: int, frames: int, rows: int, group: int, threads: int, hop: int, linear: bool
) -> np.ndarray:
    """Returns the result of the primitive for arrays that can be read on the host."""
    a, b = np.asarray(a), np.asarray(b)
    split = a.reshape((-1, rows, group, a.shape[-1]))
    gradient = operation == GRADIENT_RESPONSE
    second = b.reshape(split.shape[:-1] + b.shape[-1:]) if gradient else b[:, None]
    made = _host.compute(operation, split, second, offset, frames, threads, (rows, 1) if gradient else (), hop, linear)
    return made.reshape((-1, frames))


def _through_host(a: Any, b: Any, **job: Any) -> Any:
    return jax.pure_callback(partial(compute_on_host, **job), _shape(a, b, job["operation"], job["frames"], job["rows"]), a, b)


def _call_of_xla(context: Any, *arrays: Any, frames: int, rows: int, operation: int = GRADIENT_BOTH, **attributes: int) -> Any:
    lower = jax.ffi.ffi_lowering(BOTH if operation == GRADIENT_BOTH else TARGET)
    return lower(context, *arrays, **{name: np.int64(value) for name, value in {"operation": operation, **attributes}.items()})


for primitive, lowered in (_rows_p, _through_host), (_change_p, _change), (_both_p, _both):
    primitive.def_impl(jax.jit(primitive.bind, static_argnames=("operation", "offset", "frames", "rows", "group", "threads", "hop", "linear")))
    mlir.register_lowering(primitive, mlir.lower_fun(lowered, multiple_results=primitive.multiple_results))
if hasattr(_core, "xla_rows"):
    try:
        # Makes the backends first: then a target that XLA refuses raises an error here, and not when JAX makes them later.
        jax.devices()
        # XLA before 0.6 does not give its functions the number of the GPU.
        for platform in ("cpu", "cuda") if _core.has_cuda and jax.__version_info__ >= (0, 6) else ("cpu",):
            for primitive in _rows_p, _both_p:
                call = _core.xla_rows(primitive is _both_p, platform == "cuda")
                jax.ffi.register_ffi_target(primitive.name, call, platform=platform.replace("cuda", "CUDA"))
                mlir.register_lowering(primitive, _call_of_xla, platform=platform)
    except Exception:  # an XLA that is older than the headers
        pass


def _in_rows(x: Any, h: Any, offset: int, frames: int, threads: Optional[int], hop: int = 0, linear: bool = False) -> Any:
    """Returns the convolution along the last dimension, in the promoted type."""
    batch = broadcast_batch(x.shape, h.shape)
    dtype, size = jnp.promote_types(x.dtype, h.dtype), int(np.prod(batch))
    shared = share(batch, h.shape[:-1])
    if shared is None:
        h, shared = jnp.broadcast_to(h, batch + h.shape[-1:]), (size, 1)
    if size == 0:
        return jnp.zeros(batch + (frames,), dtype)
    rows = jnp.broadcast_to(x, batch + x.shape[-1:]).reshape((size, -1)).astype(np.float32)
    taps = h.reshape((shared[0], -1)).astype(np.float32)
    made = _rows_p.bind(rows, taps, operation=CONVOLVE, offset=offset, frames=frames, rows=shared[0], group=shared[1],
                        threads=_host.thread_count(threads), hop=hop, linear=linear)
    return made.reshape(batch + (frames,)).astype(dtype)


def convolve(x: Any, h: Any, mode: Mode, axis: int, delay: int, threads: Optional[int]) -> Any:
    """Convolves as gpuconv.convolve, of arrays of which JAX traces at least one. That h is finite is not checked."""
    x, h = jnp.asarray(x), jnp.asarray(h)
    for name, array in (("x", x), ("h", h)):
        check_floats(name, array)
    one = h.ndim == 1
    check_frames("x", x.shape, axis)
    check_frames("h", h.shape, -1 if one else axis)
    last = axis in (-1, x.ndim - 1)
    if not last:
        if not one and h.ndim != x.ndim:
            raise ValueError(f"with axis={axis} h must have 1 or, as x, {x.ndim} dimensions, not {h.ndim}")
        x, h = jnp.moveaxis(x, axis, -1), h if one else jnp.moveaxis(h, axis, -1)
    offset, frames = window(mode, x.shape[-1], h.shape[-1], delay)
    warn_of_axis(x.shape, h.shape[-1])
    y = _in_rows(x, h, offset, frames, threads)
    return y if last else jnp.moveaxis(y, -1, axis)


def convolve_blocks(x: Any, h: Any, hop: int, linear: bool, offset: int, frames: int, threads: Optional[int]) -> Any:
    """Convolves blocks of `hop` frames of x with responses of their own, h (..., blocks x taps)."""
    x, h = jnp.asarray(x), jnp.asarray(h)
    for name, array in (("x", x), ("h", h)):
        check_floats(name, array)
    return _in_rows(x, h, offset, frames, threads, hop, linear)
