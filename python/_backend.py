"""The build backend: scikit-build-core, whose source distributions get the sources of the C library, in library/.

In a checkout python/ builds with the folder above it. A source distribution has no folder above, so that build_sdist()
adds what the build needs to the archive, and fixes the version in its pyproject.toml.
"""

import io
import os
import re
import subprocess
import tarfile
from pathlib import Path

from scikit_build_core.build import *  # noqa: F403
from scikit_build_core.build import build_sdist as _build_sdist

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDERS = ("include", "src", "kernels", "cmake")  # without tests, material and documents
FILES = ("CMakeLists.txt", "LICENSE")


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
