"""Tensors of PyTorch: which ones the library computes with, and their samples as arrays of NumPy."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _hint(name: str, tensor: Tensor) -> str:
    if tensor.is_complex():
        return f"{name}.real and {name}.imag, one after the other"
    if tensor.dtype in (torch.int16, torch.int32):
        return f"{name}.float() / {-torch.iinfo(tensor.dtype).min} for audio"
    return f"{name}.float()"


def check(name: str, tensor: Tensor) -> None:
    """Raises TypeError unless `tensor` has floats of a type that the library takes."""
    if not isinstance(tensor, Tensor):
        what = "None" if tensor is None else type(tensor).__name__
        raise TypeError(f"{name} is {what}; use a tensor" + (f": torch.from_numpy({name})" if what == "ndarray" else ""))
    if tensor.dtype not in FLOATS:
        raise TypeError(f"{name} has dtype {tensor.dtype}; float32, float16 and bfloat16 fit: use {_hint(name, tensor)}")
    if tensor.layout != torch.strided:
        raise TypeError(f"{name} has layout {tensor.layout}; use {name}.to_dense()")
    if tensor.device.type not in ("cpu", "cuda", "meta"):
        raise TypeError(f"{name} is on {tensor.device}; use a tensor on the CPU or on a CUDA device")


def host(tensor: Tensor) -> np.ndarray:
    """Returns the samples as an array of NumPy, without a copy of floats."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    view: np.ndarray = (tensor if tensor.dtype == torch.float32 else tensor.float()).resolve_neg().numpy()
    return view
