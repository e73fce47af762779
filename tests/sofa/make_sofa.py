#!/usr/bin/env python3
"""Writes the SOFA files of the tests, beside this script: python3 make_sofa.py (needs numpy, scipy and sofar).

head.sofa    SimpleFreeFieldHRIR, 48000 Hz: the spherical-head model of Duda & Martens, JASA 104 (1998), 3048: a rigid
             sphere of 8.75 cm with ears at 100 degrees, sources at 1.5 m
delays.sofa  GeneralFIR, 44100 Hz, cartesian positions: decaying noise with whole and fractional delays for each
             measurement
order2.sofa  SimpleFreeFieldHRIR, 48000 Hz: responses that are a sum of spherical harmonics up to order 2
"""
import os

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


head()
delays()
order2()
