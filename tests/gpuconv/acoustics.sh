#!/bin/sh
# The figures of gpuconv ir info agree with an independent implementation in NumPy and SciPy, in octaves and third-octaves.
. "$(dirname "$0")/lib.sh"
python=$(for p in python3 /usr/bin/python3; do $p -c 'import scipy.signal, scipy.io' 2>/dev/null && echo $p && break; done)
[ -n "$python" ] || skip "no SciPy for Python (Debian: python3-scipy)"
make_audio taps dirac.wav 1 48000 1
# ALL=1: all ten responses, in octaves and third-octaves
names='small-room studio'
[ -n "${ALL:-}" ] && names='bathroom cabinet cathedral hall hall-true-stereo plate small-room spring studio telephone'
for name in $names; do
    runs -q -b cpu dirac.wav "$SOURCE/impulses/$name.flac" "$name.wav"
done
rm dirac.wav
for bands in octave third-octave; do
    [ $bands = third-octave ] && [ -z "${ALL:-}" ] && rm studio.wav # saves time
    runs ir info ./*.wav --csv --bands $bands
    cp "$work/log/out" figures.csv
    "$python" -W ignore "$SOURCE/tests/gpuconv/acoustics_oracle.py" figures.csv $bands ./*.wav >"$work/log/table" 2>"$work/log/err" ||
        fail "$bands: $(cat "$work/log/err" "$work/log/table")"
    cat "$work/log/table"
done
exit 0
