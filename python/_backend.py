"""The build backend: scikit-build-core, whose source distributions get the sources of the C library, in library/.

In a checkout python/ builds with the folder above it. A source distribution has no folder above, so that build_sdist()
adds what the build needs to the archive, and fixes the version in its pyproject.toml.

Where there is an NVIDIA GPU the CUDA backend is built for that GPU; without nvcc NVIDIA's compiler is one of the packages
that the build requires (cmake/cuda-compiler.txt). A GPUCONV_CUDA among the caller's options for CMake decides instead.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from scikit_build_core.build import *  # noqa: F403
from scikit_build_core.build import build_editable as _build_editable
from scikit_build_core.build import build_sdist as _build_sdist
from scikit_build_core.build import build_wheel as _build_wheel
from scikit_build_core.build import get_requires_for_build_editable as _requires_for_editable
from scikit_build_core.build import get_requires_for_build_wheel as _requires_for_wheel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDERS = ("include", "src", "kernels", "cmake")  # without tests, material and documents
FILES = ("CMakeLists.txt", "LICENSE", "tests/gpu/nvidia-h200-lab.json")  # gpulab shows the record


def _library():
    """Returns the files of the C library, relative to the checkout: those that Git tracks, or without Git all."""
    names = FOLDERS + FILES
    try:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", *names], capture_output=True, check=True).stdout
        found = [name for name in os.fsdecode(listed).split("\0") if name and (ROOT / name).is_file()]
        if found:
            return sorted(found)
    except (OSError, subprocess.CalledProcessError):
        pass
    files = [ROOT / name for name in FILES] + [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    return sorted(str(path.relative_to(ROOT)) for path in files if path.is_file() and "__pycache__" not in path.parts)


def _is_chosen(config_settings):
    """Returns whether the caller says how to build: in CMAKE_ARGS or as a setting cmake.define.GPUCONV_CUDA."""
    return "GPUCONV_CUDA" in os.environ.get("CMAKE_ARGS", "") or any("GPUCONV_CUDA" in name for name in config_settings or {})


def _has_gpu():
    try:
        return b"GPU" in subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False


def _has_nvcc():
    places = [os.environ.get("CUDACXX"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"]
    return any(place and os.access(place, os.X_OK) for place in places)


def _compiler(config_settings):
    """Returns the packages of NVIDIA's compiler that the build needs."""
    if _is_chosen(config_settings) or not _has_gpu() or _has_nvcc():
        return []
    text = next(path for path in (ROOT, HERE / "library") if (path / "cmake").is_dir()) / "cmake" / "cuda-compiler.txt"
    return [line for line in text.read_text().splitlines() if line and not line.startswith("#")]


def get_requires_for_build_wheel(config_settings=None):
    return _requires_for_wheel(config_settings) + _compiler(config_settings)


def get_requires_for_build_editable(config_settings=None):
    return _requires_for_editable(config_settings) + _compiler(config_settings)


def _choose_cuda(config_settings):
    """Adds to CMAKE_ARGS what the machine calls for, and says what will be built."""
    if _is_chosen(config_settings):
        return
    if not _has_gpu():
        options = ["-DGPUCONV_CUDA=OFF"]
        print("gpuconv: for the CPU alone, because nvidia-smi finds no GPU; CMAKE_ARGS=-DGPUCONV_CUDA=ON builds for every GPU, with nvcc",
              file=sys.stderr, flush=True)
    else:
        options = ["-DGPUCONV_CUDA=ON"]
        if "CMAKE_CUDA_ARCHITECTURES" not in os.environ.get("CMAKE_ARGS", ""):
            options.append("-DCMAKE_CUDA_ARCHITECTURES=native")
        home = next((Path(folder) / "nvidia" / "cu13" for folder in sys.path if (Path(folder) / "nvidia/cu13/bin/nvcc").exists()), None)
        if not _has_nvcc() and home is not None:
            for link, target in (("lib64", "lib"), ("lib/libcudart.so", "libcudart.so.13")):  # where nvcc and CMake look
                if not (home / link).exists():
                    (home / link).symlink_to(target)
            options.append(f"-DGPUCONV_NVCC={home / 'bin' / 'nvcc'}")
        print("gpuconv: with CUDA for the GPU of this machine, which takes some minutes; CMAKE_ARGS=-DGPUCONV_CUDA=OFF builds for the "
              "CPU alone", file=sys.stderr, flush=True)
    os.environ["CMAKE_ARGS"] = " ".join([os.environ.get("CMAKE_ARGS", ""), *options]).strip()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _choose_cuda(config_settings)
    return _build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _choose_cuda(config_settings)
    return _build_editable(wheel_directory, config_settings, metadata_directory)


def _fixed(text, version):
    """Returns pyproject.toml for a tree without the checkout's CMakeLists.txt above it."""
    text = text.replace('dynamic = ["version"]', f'version = "{version}"')
    return re.sub(r"(?m)^(metadata\.version\.\w+|build-dir) = .*\n", "", text)


def build_sdist(sdist_directory, config_settings=None):
    name = _build_sdist(sdist_directory, config_settings)
    if not (ROOT / "include" / "gpuconv.h").exists():
        return name  # made from a source distribution, which has library/ already
    path = Path(sdist_directory) / name
    folder = name.removesuffix(".tar.gz")
    version = folder.partition("-")[2]
    partial = path.with_name(path.name + ".partial")
    with tarfile.open(path) as old, tarfile.open(partial, "w:gz", format=tarfile.PAX_FORMAT) as new:
        time = old.getmember(f"{folder}/PKG-INFO").mtime
        for member in old.getmembers():
            data = old.extractfile(member).read() if member.isfile() else None
            if member.issym():  # LICENSE, of the checkout
                data, member.type = (HERE / member.name.partition("/")[2]).read_bytes(), tarfile.REGTYPE
                member.size = len(data)
            if member.name == f"{folder}/pyproject.toml":
                data = _fixed(data.decode(), version).encode()
                member.size = len(data)
            new.addfile(member, io.BytesIO(data) if data is not None else None)
        for file in _library():
            member = new.gettarinfo(ROOT / file, f"{folder}/library/{file}")
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = time
            with open(ROOT / file, "rb") as data:
                new.addfile(member, data)
    partial.replace(path)
    return name
