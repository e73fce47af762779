#!/usr/bin/env python3
"""Writes the SOFA files of the tests, beside this script: python3 make_sofa.py (needs numpy, scipy, sofar, netCDF4 and
h5py).

head.sofa    SimpleFreeFieldHRIR, 48000 Hz: the spherical-head model of Duda & Martens, JASA 104 (1998), 3048: a rigid
             sphere of 8.75 cm with ears at 100 degrees, sources at 1.5 m
delays.sofa  GeneralFIR, 44100 Hz, cartesian positions: decaying noise with whole and fractional delays for each
             measurement
order2.sofa  SimpleFreeFieldHRIR, 48000 Hz: responses that are a sum of spherical harmonics up to order 2
dense.sofa   the values of pattern(), stored in every way of netCDF-4 that the other files do not use: an index of two
             levels, attributes that are too long for its heap, a text of variable length, chunks that reach over the
             edges, a dimension without limit, checksums, floats, and numbers of the other order of bytes
latest.sofa  the same values by h5py in the newest layout of HDF5, without chunks
units.sofa   the same values in other units and types: radian and millimetre without a Type, a rate in kilohertz and
             delays as integers, the right receiver first, and a chunk without its second filter, deflate
old.sofa     the same values by h5py in its default layout: symbol tables and object headers of version 1
indexes.sofa the same values, each data set with another index of chunks of the newest layout: an extensible array with
             super blocks, a fixed array with pages, a single chunk, an implicit index and a tree of version 2; the
             right receiver first
spectra.sofa SimpleFreeFieldHRTF, 48000 Hz: the spectra of the same values with 6 zeros behind them
brir.sofa    MultiSpeakerBRIR, 48000 Hz: 8 orientations of a head, 45 degrees apart, to the left, and loudspeakers at 30
             and -30 degrees and 2 m; the first tap tells the orientation and the loudspeaker
mimo.sofa    SingleRoomMIMOSRIR: the same
filters.sofa SimpleFreeFieldHRSOS, which is not read
linked.sofa  its Data.IR is a soft link, in the newest layout; symbol.sofa: in a symbol table
never.sofa   its Data.IR was never written
turned.sofa  SingleRoomSRIR, 48000 Hz: the first loudspeaker alone, from a listener 1 m above the floor
"""
import os

import h5py
import netCDF4
import numpy as np
import sofar
from scipy.special import spherical_jn, spherical_yn, eval_legendre

HERE = os.path.dirname(os.path.abspath(__file__))


def head_response(cosine, taps, rate, distance=1.5, radius=0.0875):
    """Response at a point of a rigid sphere, `cosine` of the angle to the source, with the delay of the sphere's centre
    taken off and 16 frames added."""
    frequency = np.fft.rfftfreq(taps, 1 / rate)
    k = 2 * np.pi * frequency[1:] / 343.0
    mu, rho = k * radius, k * distance
    total = np.zeros(len(k), complex)
    for m in range(60):
        at_source = spherical_jn(m, rho) - 1j * spherical_yn(m, rho)
        slope = spherical_jn(m, mu, True) - 1j * spherical_yn(m, mu, True)
        with np.errstate(all="ignore"):
            term = (2 * m + 1) * eval_legendre(m, cosine) * at_source / slope
        total += np.where(np.isfinite(term), term, 0)
    pressure = -distance / radius / mu * total * np.exp(1j * rho)
    pressure = np.concatenate([[1.0], pressure])
    pressure *= np.exp(-2j * np.pi * frequency * 16 / rate)
    pressure[-1] = pressure[-1].real
    return np.fft.irfft(pressure, taps)


def unit(azimuth, elevation):
    a, e = np.radians(azimuth), np.radians(elevation)
    return np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])


def write(sofa, name):
    sofa.verify()
    sofar.write_sofa(os.path.join(HERE, name), sofa, compression=9)


def head():
    around = [0, 30, 45, 60, 90, 110, 120, 135, 150, 180, 210, 225, 240, 250, 270, 300, 315, 330]
    places = [(a, e, 1.5) for e in (0, 30) for a in around] + [(a, -30, 1.5) for a in range(0, 360, 60)]
    places += [(a, 60, 1.5) for a in range(0, 360, 90)] + [(0, 90, 1.5)]
    ears = [unit(100, 0), unit(-100, 0)]
    sofa = sofar.Sofa("SimpleFreeFieldHRIR")
    sofa.GLOBAL_Title = "Spherical head"
    sofa.GLOBAL_ListenerShortName = "sphere"
    sofa.SourcePosition = np.array(places, float)
    sofa.Data_SamplingRate = 48000
    sofa.Data_Delay = np.zeros((1, 2))
    sofa.Data_IR = np.array([[head_response(unit(a, e) @ ear, 128, 48000)[:96] for ear in ears] for a, e, _ in places])
    write(sofa, "head.sofa")


def delays():
    rng = np.random.default_rng(5)
    places = np.array([unit(a, e) * 2 for a, e in ((0, 0), (90, 0), (180, 0), (270, 0), (0, 90), (0, -90))])
    sofa = sofar.Sofa("GeneralFIR")
    sofa.GLOBAL_Title = "Delays"
    sofa.ReceiverPosition = np.array([[0, 0.09, 0], [0, -0.09, 0]])
    sofa.SourcePosition = places
    sofa.SourcePosition_Type = "cartesian"
    sofa.SourcePosition_Units = "metre"
    sofa.Data_SamplingRate = 44100
    sofa.Data_IR = rng.standard_normal((6, 2, 24)) * np.exp(-np.arange(24) / 6)
    sofa.Data_Delay = np.array([[0, 0], [3, 7], [10, 2], [0.5, 4], [1, 2.25], [6, 6]])
    write(sofa, "delays.sofa")


def order2():
    rng = np.random.default_rng(6)
    n = 40
    z = 1 - (2 * np.arange(n) + 1) / n
    around = np.arange(n) * np.pi * (3 - np.sqrt(5))
    azimuth, elevation = np.degrees(around) % 360, np.degrees(np.arcsin(z))
    x, y = np.cos(around) * np.sqrt(1 - z * z), np.sin(around) * np.sqrt(1 - z * z)
    s3 = np.sqrt(3)
    harmonics = np.stack([np.ones(n), y, z, x, s3 * x * y, s3 * y * z, (3 * z * z - 1) / 2, s3 * x * z,
                          s3 / 2 * (x * x - y * y)])
    fit = rng.standard_normal((9, 2, 16))
    sofa = sofar.Sofa("SimpleFreeFieldHRIR")
    sofa.SourcePosition = np.stack([azimuth, elevation, np.full(n, 1.2)], 1)
    sofa.Data_SamplingRate = 48000
    sofa.Data_Delay = np.zeros((1, 2))
    sofa.Data_IR = np.einsum("km,krt->mrt", harmonics, fit)
    write(sofa, "order2.sofa")


def pattern():
    """Responses of 5 measurements x 2 receivers x 6 taps, positions and delays, which the test computes again."""
    m, r, n = np.meshgrid(np.arange(5), np.arange(2), np.arange(6), indexing="ij")
    positions = np.stack([np.arange(5) * 72.0, np.arange(5) * 10.0 - 20, np.full(5, 1.5)], 1)
    return (m * 16 + r * 8 + n - 30) / 64.0, positions, np.array([[0.0, 2.0]])


def attributes(conventions, data_type, title):
    return {"Conventions": "SOFA", "SOFAConventions": conventions, "DataType": data_type, "Title": title}


def dense():
    responses, positions, delay = pattern()
    f = netCDF4.Dataset(os.path.join(HERE, "dense.sofa"), "w", format="NETCDF4")
    for name, size in {"M": None, "R": 2, "N": 6, "C": 3, "I": 1}.items():
        f.createDimension(name, size)
    texts = attributes("SimpleFreeFieldHRIR", "FIR", "Pr\u00fcfung")
    texts.update({f"extra{i}": str(i) for i in range(48)}, Comment="x" * 4200)
    for name, text in texts.items():
        f.setncattr(name, text)
    f.createVariable("SourcePosition", "f4", ("M", "C"), zlib=True, chunksizes=(4, 2))[:] = positions
    f["SourcePosition"].Type = "spherical"
    f.createVariable("Data.IR", "f8", ("M", "R", "N"), zlib=True, fletcher32=True, chunksizes=(3, 1, 4))[:] = responses
    f.createVariable("Data.SamplingRate", "f8", ("I",))[:] = 48000
    f.createVariable("Data.Delay", ">f8", ("I", "R"), endian="big")[:] = delay
    f.close()


def latest():
    responses, positions, delay = pattern()
    with h5py.File(os.path.join(HERE, "latest.sofa"), "w", libver="latest") as f:
        for name, text in attributes("SimpleFreeFieldHRIR", "FIR", "latest").items():
            f.attrs[name] = np.bytes_(text)
        for name, values in {"Data.IR": responses, "SourcePosition": positions, "Data.Delay": delay,
                             "Data.SamplingRate": np.array([48000.0])}.items():
            f[name] = values
        f["SourcePosition"].attrs["Type"] = "spherical"


def units():
    responses, positions, delay = pattern()
    with h5py.File(os.path.join(HERE, "units.sofa"), "w", libver=("v108", "v108")) as f:
        for name, text in attributes("SimpleFreeFieldHRIR", "FIR", "latest").items():
            f.attrs[name] = np.bytes_(text)
        f["SourcePosition"] = positions * [np.pi / 180, np.pi / 180, 1000]
        f["SourcePosition"].attrs["Units"] = np.bytes_("radian, radian, millimetre")
        f["ReceiverPosition"] = np.array([[270.0, 0.0, 9.0], [90.0, 0.0, 9.0]])[:, :, None]
        f["ReceiverPosition"].attrs["Units"] = np.bytes_("degrees, degrees, cm")
        f["Data.SamplingRate"] = np.array([48], ">u2")
        f["Data.SamplingRate"].attrs["Units"] = np.bytes_("kilohertz")
        f["Data.Delay"] = delay[:, ::-1].astype("i1")
        ir = f.create_dataset("Data.IR", (5, 2, 6), "f4", chunks=(3, 2, 6), shuffle=True, compression="gzip")
        ir[:] = responses[:, ::-1]
        first = responses[:3, ::-1].astype("<f4").tobytes()
        ir.id.write_direct_chunk((0, 0, 0), bytes(first[4 * i + b] for b in range(4) for i in range(36)), 2)


def old():
    responses, positions, delay = pattern()
    with h5py.File(os.path.join(HERE, "old.sofa"), "w", libver="earliest") as f:
        for name, text in attributes("SimpleFreeFieldHRIR", "FIR", "latest").items():
            f.attrs[name] = text
        f.create_dataset("Data.IR", data=responses, chunks=(3, 1, 4), shuffle=True, compression="gzip")
        for name, values in {"SourcePosition": positions, "Data.Delay": delay,
                             "Data.SamplingRate": np.array([48000.0])}.items():
            f[name] = values
        f["SourcePosition"].attrs["Type"] = "spherical"
        for i in range(8):  # more symbols than fit into a node
            f[f"Link{i}"] = f["Data.Delay"]


def refused():
    for name, libver in {"linked": "latest", "symbol": "earliest", "never": "latest"}.items():
        with h5py.File(os.path.join(HERE, name + ".sofa"), "w", libver=libver) as f:
            for key, text in attributes("SimpleFreeFieldHRIR", "FIR", name).items():
                f.attrs[key] = np.bytes_(text)
            if name == "never":
                f.create_dataset("Data.IR", (5, 2, 6), "f8")
            else:
                f["Data.IR"] = h5py.SoftLink("/raw/Data.IR")


def indexes():
    responses, positions, delay = pattern()
    gzip = {"shuffle": True, "compression": "gzip"}
    with h5py.File(os.path.join(HERE, "indexes.sofa"), "w", libver="latest") as f:
        for name, text in attributes("SimpleFreeFieldHRIR", "FIR", "latest").items():
            f.attrs[name] = np.bytes_(text)
        f.create_dataset("Data.IR", data=responses[:, ::-1].astype("f4"), chunks=(1, 1, 3), maxshape=(None, 80, 6),
                         **gzip)
        f.create_dataset("SourcePosition", data=positions.astype("f4"), chunks=(1, 1), maxshape=(5, 300))
        f["SourcePosition"].attrs["Type"] = np.bytes_("spherical")
        f.create_dataset("ReceiverPosition", data=np.array([[0, -0.09, 0], [0, 0.09, 0]])[:, :, None], chunks=(1, 1, 1),
                         maxshape=(None, None, 1))
        f["ReceiverPosition"].attrs["Type"] = np.bytes_("cartesian")
        f.create_dataset("Data.Delay", data=delay[:, ::-1], chunks=(1, 2), **gzip)
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_chunk((1,))
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple((2,))
        rate = h5py.h5d.create(f.id, b"Data.SamplingRate", h5py.h5t.IEEE_F64LE, space, early)
        h5py.Dataset(rate)[:] = 48000


def spectra():
    responses, positions, _ = pattern()
    values = np.fft.rfft(responses, 12)
    with h5py.File(os.path.join(HERE, "spectra.sofa"), "w", libver="latest") as f:
        for name, text in attributes("SimpleFreeFieldHRTF", "TF", "spectra").items():
            f.attrs[name] = np.bytes_(text)
        for name, data in {"Data.Real": values.real, "Data.Imag": values.imag, "N": np.arange(7) * 4000.0,
                           "SourcePosition": positions}.items():
            f[name] = data



def filters():
    with h5py.File(os.path.join(HERE, "filters.sofa"), "w", libver="latest") as f:
        for name, text in attributes("SimpleFreeFieldHRSOS", "SOS", "filters").items():
            f.attrs[name] = np.bytes_(text)


def room(name, conventions, data_type, responses, more):
    """A room in which a head turns by 45 degrees from measurement to measurement."""
    yaw = np.radians(np.arange(8) * 45)
    with h5py.File(os.path.join(HERE, name), "w", libver="latest") as f:
        for key, text in attributes(conventions, data_type, name).items():
            f.attrs[key] = np.bytes_(text)
        for key, data in {"Data.IR": responses, "Data.SamplingRate": np.array([48000.0]),
                          "ListenerView": np.stack([np.cos(yaw), np.sin(yaw), 0 * yaw], 1),
                          "ListenerUp": np.array([[0.0, 0, 1]]), **more}.items():
            f[key] = data
        for key in ("SourcePosition", "ListenerPosition", "ListenerView"):
            f[key].attrs["Type"] = "cartesian"
        if "EmitterPosition" in f:
            f["EmitterPosition"].attrs["Type"] = "spherical"


def rooms():
    taps = np.zeros((8, 2, 2, 4))  # measurements x receivers x emitters x taps
    taps[..., 0] = np.arange(8)[:, None, None] + 10 * np.arange(2) + 100 * np.arange(2)[:, None] + 1
    taps[..., 1:] = 0.5, 0.25, 0.125
    more = {"SourcePosition": np.zeros((1, 3)), "ListenerPosition": np.zeros((1, 3)),
            "EmitterPosition": np.array([[[30.0], [0], [2]], [[-30], [0], [2]]]),
            "Data.Delay": np.array([[[0.0, 3], [0, 3]]])}
    room("brir.sofa", "MultiSpeakerBRIR", "FIRE", taps, more)
    room("mimo.sofa", "SingleRoomMIMOSRIR", "FIR-E", taps.transpose(0, 1, 3, 2), more)
    front = 2 * unit(30, 0) + [0, 0, 1]
    room("turned.sofa", "SingleRoomSRIR", "FIR", taps[:, :, 0],
         {"SourcePosition": front[None], "ListenerPosition": np.array([[0.0, 0, 1]])})


head()
delays()
order2()
dense()
latest()
units()
old()
indexes()
spectra()
rooms()
filters()
refused()
