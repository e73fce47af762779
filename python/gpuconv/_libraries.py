"""Arrays of other libraries: which library an array belongs to, and its samples as an array of NumPy without a copy."""

from __future__ import annotations

import os
from typing import Any, Callable

import numpy as np

HOST = 1  # kDLCPU of DLPack


_known: dict[type, str] = {}  # of the types seen so far


def library(array: Any) -> str:
    """Returns "numpy", "torch", "cupy", "jax" or "dlpack" (any other library that has __dlpack__)."""
    kind = type(array)
    found = _known.get(kind)
    if found is None:
        found = _known[kind] = _library(array)
    return found


def _library(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return "numpy"
    name = type(array).__module__.partition(".")[0]
    if name in ("torch", "cupy"):
        return name
    if name in ("jax", "jaxlib"):
        return "jax"
    # A subclass, such as torch.nn.Parameter of another module.
    for base in type(array).__mro__[1:]:
        name = base.__module__.partition(".")[0]
        if name in ("torch", "cupy"):
            return name
    if hasattr(array, "__dlpack__"):
        return "dlpack"
    if isinstance(array, (list, tuple, float, int, np.generic)):
        return "numpy"
    if isinstance(array, (str, bytes, os.PathLike)):
        raise TypeError(f"{array!r} is a name, not an array; gpuconv.read() reads a sound file, gpuconv.load_ir() a response")
    raise TypeError(f"{type(array).__name__} is no array; use NumPy, PyTorch, CuPy, JAX, or any array with __dlpack__")


def same_library(x: Any, h: Any) -> str:
    """Returns the library of both arrays."""
    kind = library(x)
    other = kind if type(h) is type(x) else library(h)
    if kind != other:
        raise TypeError(f"x is an array of {kind} and h of {other}; convert one of them")
    return kind


def check_floats(name: str, array: np.ndarray) -> None:
    """Refuses samples that the library does not compute with."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it first: {name}.filled(0)")
    if array.dtype not in (np.float32, np.float16):
        hint = f"{name}.astype(numpy.float32)"
        if array.dtype.kind in "iu":
            hint += f" / {float(-np.iinfo(array.dtype).min or np.iinfo(array.dtype).max):.0f} for audio"
        elif array.dtype.kind == "c":
            hint = f"{name}.real and {name}.imag, one after the other"
        raise TypeError(f"{name} has dtype {array.dtype}; float32 and float16 fit: use {hint}")


def check_frames(name: str, shape: tuple[int, ...], axis: int) -> None:
    """Refuses an array without a frame."""
    if not shape:
        raise ValueError(f"{name} is a number, not an array: one dimension of frames is needed")
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis={axis!r}: use the number of a dimension, such as -1")
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


def refuse_tracer(name: str, array: Any) -> None:
    """Refuses an array of JAX that has no values yet."""
    if type(array).__name__.endswith("Tracer"):
        raise TypeError(f"{name} is traced by JAX: call gpuconv outside of jax.jit, or through jax.pure_callback")


def to_host(name: str, array: Any) -> np.ndarray:
    """Returns an array of any library but PyTorch and CuPy as one of NumPy."""
    kind = library(array)
    if kind == "numpy":
        if isinstance(array, np.ndarray):
            return array
        made = np.asarray(array)
        return made.astype(np.float32) if made.dtype.kind in "fiu" else made
    if kind == "jax":
        refuse_tracer(name, array)
        return np.asarray(array)
    if array.__dlpack_device__()[0] != HOST:
        raise TypeError(f"{name} is not in host memory, and {type(array).__name__} is not PyTorch, CuPy or JAX; convert it")
    return np.from_dlpack(array)


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
