"""Sets of measured directions: SOFA files that are read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy as np

from . import _core
from ._host import thread_count
from ._libraries import on_host
from ._modes import BACKENDS, choose, real, whole
from ._response import PATHS, ImpulseResponse, Path, Preparation, path_of, text_of, texts_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _to_xyz(directions: Any) -> np.ndarray:
    """Returns positions (..., 3) to the front, to the left and up of azimuth, elevation and distance."""
    at = np.asarray(directions, np.float64)
    if at.ndim < 1 or at.shape[-1] not in (2, 3):
        raise ValueError(f"directions of shape {at.shape}: use (..., 2) or (..., 3), azimuth, elevation, distance")
    azimuth, elevation = np.radians(at[..., 0]), np.radians(at[..., 1])
    distance = at[..., 2] if at.shape[-1] == 3 else np.ones(at.shape[:-1])
    if not np.isfinite(at).all() or (np.abs(at[..., 1]) > 90).any() or not (distance > 0).all():
        raise ValueError("directions: use finite azimuths, elevations of -90 to 90 degrees and distances above 0")
    flat = np.cos(elevation)
    around = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], -1)
    return np.ascontiguousarray(distance[..., np.newaxis] * around)


def _rows_of(path: Any, channels: int, in_room: bool = False) -> Any:
    """Returns the path of a pair (seconds, directions), or in a room (seconds, places)."""
    try:
        seconds, directions = (np.asarray(part, np.float64) for part in path)
    except (TypeError, ValueError):
        raise TypeError("path: use the name of a file, or a pair (seconds, directions)") from None
    if directions.ndim == 2 and channels == 1:
        directions = directions[:, np.newaxis]
    if directions.ndim != 3 or directions.shape[1] != channels or directions.shape[2] not in ((3,) if in_room else (2, 3)) or seconds.shape != directions.shape[:1]:
        raise ValueError(
            f"path: times of shape {seconds.shape} and directions of shape {directions.shape} do not fit {channels} "
            f"channel{'s' * (channels != 1)}; use (rows,) and (rows, {channels}, 3)"
        )
    if directions.shape[2] == 2:
        directions = np.concatenate([directions, np.ones(directions.shape[:2] + (1,))], -1)
    make = _core.Path.make_in_room if in_room else _core.Path.make
    return make(np.ascontiguousarray(seconds), np.ascontiguousarray(directions))


def _path_in_room(path: Any, channels: int) -> Any:
    """Returns the path of a file or of a pair (seconds, places); None stays."""
    if path is None:
        return None
    return _core.Path.load_in_room(path_of("path", path), channels) if isinstance(path, PATHS) else _rows_of(path, channels, True)


def _head_of(head: Any) -> Any:
    """Returns the head of a file or of a pair (seconds, angles)."""
    if isinstance(head, PATHS):
        return _core.Head.load(path_of("head", head))
    try:
        seconds, angles = (np.ascontiguousarray(part, np.float64) for part in head)
    except (TypeError, ValueError):
        raise TypeError("head: use the name of a file, or a pair (seconds, angles)") from None
    if angles.ndim != 2 or angles.shape[1] != 3 or seconds.shape != angles.shape[:1]:
        raise ValueError(f"head: times of shape {seconds.shape} and angles of shape {angles.shape}: use (rows,) and (rows, 3)")
    return _core.Head.make(seconds, angles)


def _channels_of(x: Any) -> np.ndarray:
    """Returns a signal as (channels, frames)."""
    kept = np.ascontiguousarray(on_host("x", x))
    kept = kept[np.newaxis] if kept.ndim == 1 else kept
    if kept.ndim != 2 or 0 in kept.shape:
        raise ValueError(f"x of shape {kept.shape}: use (channels, frames) or (frames,), with at least one frame")
    return kept


def move_in_room(
    x: Any,
    rate: float,
    room: str,
    path: Any = None,
    *,
    receiver_path: Any = None,
    head: Any = None,
    interval: float = 0.005,
    threads: Optional[int] = None,
) -> np.ndarray:
    """Moves the channels of x, (channels, frames) or (frames,), in a simulated room; returns (receivers, frames + tail).

    rate: of x in Hz.
    room: its description, "size=5x4x3 rt60=0.5 receiver=2,2,1.5", with the keys of `gpuconv ir synth`: size, rt60 or
        absorption or materials, receiver (may be repeated) or receivers, pattern, ambisonic, images, seed; and, without
        a path, source for each channel.
    path: a file with a line for each row, SECONDS and X, Y, Z for each channel, in metres; or a pair (seconds, places),
        (rows,) and (rows, channels, 3), for one channel also (rows, 3). None: the channels stay.
    receiver_path: the same for the first receiver, around which the others keep their places. None: they stay.
    head: the receivers turn, as in SofaSet.move(); rolls do not count.
    interval: seconds after which new responses are simulated; in between there is a cubic through four of them, and the
        direct sound follows its delay in a straight line.
    The same samples as `gpuconv IN "room:..." OUT --path FILE --receiver-path FILE --head FILE`.
    """
    kept = _channels_of(x)
    made: np.ndarray = np.asarray(_core.move_in_room(
        room, _path_in_room(path, len(kept)), _path_in_room(receiver_path, 1), None if head is None else _head_of(head), kept,
        (real("rate", rate), real("interval", interval), thread_count(threads))))
    return made


class SofaSet:
    """An open SOFA file (AES69): responses from the directions of sources to the receivers (ears) of a listener.

    SofaSet(path, rate=None): the file is read once; with `rate` its responses are resampled to it, once. Immutable: any
    number of threads may use it at the same time. A direction is (azimuth, elevation) or (azimuth, elevation, distance):
    degrees to the left and up, and metres (1 if not given). Of a set of several distances the nearest one is used.
    """

    __slots__ = ("_set", "_path")

    def __init__(self, path: Path, rate: Optional[float] = None) -> None:
        self._path = path_of("path", path)
        self._set = _core.SofaSet(self._path, 0.0 if rate is None else real("rate", rate))

    def __repr__(self) -> str:
        return f"<gpuconv.SofaSet {self._path}: {len(self)} directions to {self.receivers} receivers at {self.rate:g} Hz>"

    def __reduce__(self) -> Any:
        return SofaSet, (self._path, self.rate)

    def __len__(self) -> int:
        """Number of measured directions."""
        return int(self._set.directions)

    @property
    def receivers(self) -> int:
        """Number of receivers: 2 for a pair of ears."""
        return int(self._set.receivers)

    @property
    def rate(self) -> float:
        """Frames per second."""
        return float(self._set.rate)

    @property
    def frames(self) -> int:
        """Length of the responses of responses()."""
        return int(self._set.frames)

    @property
    def lead(self) -> int:
        """Frames of these before time zero."""
        return int(self._set.lead)

    @property
    def title(self) -> str:
        """Title of the file, or ""."""
        return str(self._set.title)

    @property
    def directions(self) -> np.ndarray:
        """The measured directions, (directions, 3): azimuth in -180..180 and elevation in degrees, distance in metres."""
        x, y, z = self._positions().T
        flat = np.hypot(x, y)
        return np.stack([np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, flat)), np.hypot(flat, z)], -1)

    def _positions(self) -> np.ndarray:
        at = np.empty((len(self), 3))
        self._set.positions(at)
        return at

    def nearest(self, direction: Sequence[float]) -> tuple[int, float]:
        """Returns the number of the measured direction nearest to one, and the angle between them in degrees."""
        found, degrees = self._set.nearest(tuple(_to_xyz(direction).tolist()))
        return int(found), float(degrees)

    def responses(
        self,
        directions: Any,
        *,
        interpolate: str = "auto",
        by_distance: bool = False,
        yaw: float = 0,
        pitch: float = 0,
        roll: float = 0,
    ) -> np.ndarray:
        """Returns the responses of directions, (..., 2) or (..., 3), as an array (..., receivers, frames).

        interpolate: "triangle": between the three measured directions around one, delays and the rest apart; "nearest":
            that of the nearest; "auto": triangle.
        by_distance: the gain is the measured distance divided by that of the direction.
        yaw, pitch, roll: the head is turned, in degrees to the left, up, to the right; in a room of several loudspeakers
            the direction chooses one of these.
        Each has the first `lead` frames before time zero. For time_varying(), give a direction for each hop.
        """
        at = _to_xyz(directions)
        rows = at.reshape(-1, 3)
        made = np.empty((len(rows) * self.receivers, self.frames), np.float32)
        if len(rows):
            turn = {"interpolate": interpolate, "by_distance": by_distance, "yaw": yaw, "pitch": pitch, "roll": roll}
            self._set.respond(rows, texts_of(turn), made)
        return made.reshape(at.shape[:-1] + (self.receivers, self.frames))

    def move(
        self,
        x: Any,
        path: Any = None,
        *,
        head: Any = None,
        direction: Any = None,
        layout: Optional[Path] = None,
        interval: float = 0.005,
        interpolate: str = "auto",
        by_distance: bool = False,
        doppler: bool = False,
        decode: str = "auto",
        diffuse_eq: bool = False,
        ambisonics: str = "acn-sn3d",
        threads: Optional[int] = None,
        backend: str = "cpu",
        device: int = 0,
    ) -> np.ndarray:
        """Moves the channels of x, (channels, frames) or (frames,), at the set's rate; returns (receivers, frames + tail).

        path: a file with a line for each row, SECONDS and AZIMUTH, ELEVATION[, DISTANCE] for each channel; or a pair
            (seconds, directions), (rows,) and (rows, channels, 2) or (rows, channels, 3), for one channel also (rows, 2) or
            (rows, 3). Between two rows azimuth, elevation and distance are linear; azimuths of 0 and 720 make two turns.
        direction, layout: instead of a path, where the channels stay, as in prepare_ir().
        head: a file with lines SECONDS YAW [PITCH [ROLL]], or a pair (seconds, angles), (rows,) and (rows, 3): degrees to the
            left, up, to the right. The directions of the channels are those in the room.
        interval: seconds after which the responses are exchanged. Meanwhile delays go in a straight line, and the rest of
            the responses crosses over.
        interpolate, by_distance: as in responses(). doppler: the sound arrives distance / (343 m/s) later.
        decode, diffuse_eq, ambisonics: with layout="ambisonic", as in prepare_ir().
        backend: "cuda" renders on the GPU of this number, ambisonics excepted.
        The same samples as `gpuconv IN SET OUT --path FILE --head FILE`.
        """
        kept = _channels_of(x)
        if [path, direction, layout].count(None) != 2:
            raise TypeError("use one of path, direction and layout")
        moving = {
            "interval": interval,
            "interpolate": interpolate,
            "by_distance": by_distance,
            "doppler": doppler,
            "decode": decode,
            "diffuse_eq": diffuse_eq,
            "ambisonics": ambisonics,
        }
        how = {
            "threads": thread_count(threads),
            "backend": choose("backend", backend, BACKENDS),
            "device": whole("device", device, -1, 1023),
        }
        if path is None:
            still = text_of("direction", direction) if layout is None else text_of("layout", layout)
            rows = _core.Path.still(still, len(kept))
        else:
            rows = _core.Path.load(path_of("path", path), len(kept)) if isinstance(path, PATHS) else _rows_of(path, len(kept))
        turned = None if head is None else _head_of(head)
        made: np.ndarray = np.asarray(self._set.move(rows, turned, kept, texts_of(moving), how))
        return made

    def prepare(self, *, inputs: int, **steps: "Unpack[Preparation]") -> ImpulseResponse:
        """Returns what prepare_ir() makes of the file for signals of the set's rate, without reading it again."""
        return ImpulseResponse._of(self._set.prepare(texts_of(steps, Preparation.__annotations__), whole("inputs", inputs, 1, 1024)), True)
