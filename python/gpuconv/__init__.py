"""gpuconv: exact convolution of audio with impulse responses, on all cores of the CPU or on an NVIDIA GPU.

    import gpuconv
    x, rate = gpuconv.read("speech.flac")                  # float32, (channels, frames)
    hall = gpuconv.prepare_ir("hall.flac", inputs=len(x), rate=rate, normalize="loudness")
    gpuconv.write("wet.flac", gpuconv.Convolver(hall)(x), rate)

convolve(x, h) takes arrays of NumPy, PyTorch, CuPy and JAX. With gradients in PyTorch and
JAX; gpuconv.torch has modules.
"""

from ._acoustics import Acoustics, acoustics
from ._batch import BatchOptions, BatchResult, batch
from ._convolve import Convolver, Plan, convolve
from ._core import calibrate as _calibrate
from ._core import has_cuda as built_with_cuda
from ._core import version as _version
from ._files import Audio, convolve_file, read, write
from ._response import ImpulseResponse, Preparation, load_ir, prepare_ir
from ._rooms import simulate_rooms
from ._sofa import SofaSet, move_in_room
from ._stream import StreamingConvolver
from ._varying import time_varying

__version__: str = _version()


def calibrate() -> None:
    """Measures the costs of this machine's processors in some seconds and keeps them for later processes."""
    _calibrate()


__all__ = [
    "Acoustics",
    "Audio",
    "BatchOptions",
    "BatchResult",
    "Convolver",
    "ImpulseResponse",
    "Plan",
    "Preparation",
    "SofaSet",
    "StreamingConvolver",
    "acoustics",
    "batch",
    "built_with_cuda",
    "calibrate",
    "convolve",
    "convolve_file",
    "load_ir",
    "move_in_room",
    "prepare_ir",
    "read",
    "simulate_rooms",
    "time_varying",
    "write",
]
