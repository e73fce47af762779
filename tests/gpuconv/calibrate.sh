#!/bin/sh
# Calibration measures, writes its results only to the cache folder, and later plans report that they use them.
. "$(dirname "$0")/lib.sh"

XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
make_audio noise in.wav wav-16 1 44100 20000 0.1
make_audio noise ir.wav wav-16 1 44100 2000 0.02
before=$(state)

runs --backend cpu --report text in.wav ir.wav "$work/out.wav"
grep -q 'by the calibration' "$work/log/out" && fail "a calibration before there was any: $(cat "$work/log/out")"
runs calibrate
for word in calibration CPU cpu-tap cpu-bin ns 'kept in' "$work/cache/gpuconv/costs"; do
    grep -qF -- "$word" "$work/log/out" || fail "does not say $word: $(cat "$work/log/out")"
done
[ -s "$work/cache/gpuconv/costs" ] || fail "nothing was kept"
[ "$(ls -A "$work/cache/gpuconv")" = costs ] || fail "more than the figures: $(ls -A "$work/cache/gpuconv")"
[ "$(state)" = "$before" ] || fail "changed the folder it was run in"
runs --backend cpu --report text in.wav ir.wav "$work/out.wav"
grep -q 'by the calibration' "$work/log/out" || fail "no word of the calibration: $(cat "$work/log/out")"
runs calibrate --report json
grep -q '"cpu-tap"' "$work/log/out" || fail "no figure: $(cat "$work/log/out")"

# An invalid calibration file is ignored.
echo nonsense >"$work/cache/gpuconv/costs"
runs --backend cpu --report text in.wav ir.wav "$work/out.wav"
grep -q 'by the calibration' "$work/log/out" && fail "believes nonsense"

refuses 2 "takes options only" calibrate now
refuses 2 "text or json" calibrate --report xml
: >"$work/file"
XDG_CACHE_HOME=$work/file
refuses 1 "$work/file/gpuconv/costs" calibrate
