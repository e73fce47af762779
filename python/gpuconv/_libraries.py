"""Arrays of other libraries: which library an array belongs to, and its samples as an array of NumPy without a copy."""

from __future__ import annotations

import operator
import os
import warnings
from typing import Any, Callable

import numpy as np

HOST = 1  # kDLCPU of DLPack
_known: dict[type, str] = {}  # libraries of the types seen so far


def library(array: Any, name: str = "x") -> str:
    """Returns "numpy", "torch", "cupy", "jax" or "dlpack" (any other library that has __dlpack__). Refuses what JAX traces."""
    kind = type(array)
    found = _known.get(kind)
    if found is None:
        found = _known[kind] = _library(array, name)
    return found


def is_traced(array: Any) -> bool:
    """Returns whether JAX traces an array, which then has no values."""
    kind = type(array)
    return kind not in _known and kind.__module__.partition(".")[0] in ("jax", "jaxlib") and kind.__name__.endswith("Tracer")


def _library(array: Any, name: str) -> str:
    if isinstance(array, np.ndarray):
        return "numpy"
    module = type(array).__module__.partition(".")[0]
    if module in ("torch", "cupy"):
        return module
    if module in ("jax", "jaxlib"):
        if is_traced(array):
            raise TypeError(
                f"{name} is traced by JAX and has no values: inside of jax.jit, jax.grad and jax.vmap use gpuconv.convolve(x, h), "
                "gpuconv.time_varying(x, h, hop), or a Convolver that was made of an array outside of them; call everything else outside of them")
        return "jax"
    # A subclass, such as torch.nn.Parameter of another module.
    for base in type(array).__mro__[1:]:
        module = base.__module__.partition(".")[0]
        if module in ("torch", "cupy"):
            return module
    if hasattr(array, "__dlpack__"):
        return "dlpack"
    if isinstance(array, (list, tuple, float, int, np.generic)):
        return "numpy"
    what = "None" if array is None else type(array).__name__
    if isinstance(array, (str, bytes, os.PathLike)):
        hint = "a sound file is read by gpuconv.read(path), a response by gpuconv.load_ir(path)"
    elif what == "ImpulseResponse":
        hint = f"use gpuconv.Convolver({name})(x), or its taps: {name}.numpy()"
    elif hasattr(array, "__array__"):
        hint = f"use numpy.asarray({name}, numpy.float32)"
    else:
        hint = "use NumPy, PyTorch, CuPy, JAX, or any array with __dlpack__"
    raise TypeError(f"{name} is {what}, no array; {hint}")


def same_library(x: Any, h: Any) -> str:
    """Returns the library of both arrays."""
    kind = library(x, "x")
    other = kind if type(h) is type(x) else library(h, "h")
    if kind != other:
        raise TypeError(f"x is an array of {kind} and h of {other}; convert one of them")
    return kind


def check_floats(name: str, array: np.ndarray) -> None:
    """Refuses samples that the library does not compute with."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it first: {name}.filled(0)")
    if array.dtype not in (np.float32, np.float16) and array.dtype.name != "bfloat16":  # of JAX
        hint = f"{name}.astype(numpy.float32)"
        if array.dtype.kind in "iu":
            hint += f" / {float(-np.iinfo(array.dtype).min or np.iinfo(array.dtype).max):.0f} for audio"
        elif array.dtype.kind in "OSU":
            hint = "an array of numbers of equal length"
        elif array.dtype.kind == "c":
            hint = f"{name}.real and {name}.imag, one after the other"
        raise TypeError(f"{name} has dtype {array.dtype}; float32 and float16 fit: use {hint}")


def whole_axis(axis: Any) -> int:
    try:
        return operator.index(axis)
    except TypeError:
        raise TypeError(f"axis={axis!r}: use a whole number") from None


def axis_hint(shape: tuple[int, ...]) -> str:
    """Returns a hint for an array that looks like (frames, channels), as other libraries read files; else ""."""
    if len(shape) >= 2 and shape[-1] <= 16 and shape[-2] >= 1000:
        return f"; frames are the last axis: with (frames, channels) = {shape[-2:]} use axis=-2, or swap the axes"
    return ""


def warn_of_axis(shape: tuple[int, ...], taps: int, callers: int = 1) -> None:
    """Warns of a batch of very many signals, each of a few frames and shorter than the response. callers: functions of
    gpuconv between this one and the user's."""
    if len(shape) >= 2 and taps > shape[-1] and axis_hint(shape):
        warnings.warn(f"x of shape {shape} is {shape[-2]} signals of {shape[-1]} frames{axis_hint(shape)}", stacklevel=2 + callers)


def check_frames(name: str, shape: tuple[int, ...], axis: int) -> None:
    """Refuses an array without a frame."""
    if not shape:
        raise ValueError(f"{name} is a number, not an array: one dimension of frames is needed")
    axis = whole_axis(axis)
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis={axis}: {name} has {len(shape)} dimensions, shape {shape}")
    if shape[axis] == 0:
        raise ValueError(f"{name} has no frames (shape {shape}): at least one is needed")


def host_view(name: str, array: np.ndarray) -> np.ndarray:
    """Returns the samples as aligned floats; copies only halves and arrays whose steps are no whole samples."""
    check_floats(name, array)
    if array.dtype != np.float32:
        return array.astype(np.float32)
    if not array.flags.aligned or any(step % 4 for step in array.strides):
        return array.copy()
    return array


def to_host(name: str, array: Any) -> np.ndarray:
    """Returns an array of any library but PyTorch and CuPy as one of NumPy."""
    kind = library(array, name)
    if kind == "numpy":
        if isinstance(array, np.ndarray):
            return array
        try:
            made = np.asarray(array)
        except ValueError as error:
            raise ValueError(f"{name} is a list of lists of different lengths; use an array of numbers of equal length") from error
        return made.astype(np.float32) if made.dtype.kind in "fiu" else made
    if kind == "jax":
        return np.asarray(array)
    if array.__dlpack_device__()[0] != HOST:
        raise TypeError(f"{name} is not in host memory, and {type(array).__name__} is not PyTorch, CuPy or JAX; convert it")
    return np.from_dlpack(array)


def on_host(name: str, array: Any) -> np.ndarray:
    """Returns the samples of an array of any library, on any device, as floats of NumPy."""
    kind = library(array, name)
    if kind == "torch":
        array = array.detach().cpu()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()
    elif kind == "cupy":
        array = array.get()
    return host_view(name, to_host(name, array))


def from_host(like: Any) -> Callable[[np.ndarray], Any]:
    """Returns the function that turns a result of NumPy into an array of the library of `like`, without a copy."""
    kind = library(like)
    if kind == "numpy":
        return lambda result: result
    if kind == "jax":
        import jax

        def to_jax(result: np.ndarray) -> Any:
            return jax.device_put(result, next(iter(like.devices())))

        return to_jax
    namespace = like.__array_namespace__() if hasattr(like, "__array_namespace__") else None
    if namespace is None or not hasattr(namespace, "from_dlpack"):
        return lambda result: result
    return lambda result: namespace.from_dlpack(result)


def through_host(name: str, array: Any) -> tuple[np.ndarray, Callable[[np.ndarray], Any]]:
    """Returns the samples of an array of any library, on any device, as floats of NumPy, and the function that turns a result
    into an array of its library, type and device."""
    kind = library(array, name)
    if kind == "torch":
        import torch

        from ._tensors import check, host

        check(name, array)
        return host(array.cpu()), lambda result: torch.from_numpy(result).to(array.device, array.dtype)
    if kind == "cupy":
        import cupy

        def to_cupy(result: np.ndarray) -> Any:
            with array.device:
                return cupy.asarray(result, array.dtype)

        return host_view(name, array.get()), to_cupy
    samples, finish = to_host(name, array), from_host(array)
    return host_view(name, samples), lambda result: finish(result.astype(samples.dtype, copy=False))
