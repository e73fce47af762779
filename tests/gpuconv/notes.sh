#!/bin/sh
# What the command tells on standard error without being asked: resampling, clipping with advice that holds, a GPU that
# is not there.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 1 44100 50000 0.5
make_audio noise ir48.wav wav-16 1 48000 4800 0.01
runs -b cpu in.wav ir48.wav out.wav
one_line "ir48.wav: resampled from 48000 to 44100 Hz, its level rescaled by 1.0884"
about out.wav "54409 1 44100 wav 16"

# The advised gain avoids clipping, also where it hangs on the last bit or on tenths of a decibel.
advice() {
    sed -n 's/^gpuconv: .*: [0-9]* samples\{0,1\} clipped; --gain \(.*\) would avoid it$/\1/p' "$work/log/err"
}
advised() {
    gain=$1
    shift
    runs -b cpu --gain "$gain" "$@"
    one_line "clipped"
    better=$(advice)
    [ -n "$better" ] || fail "no advice: $(cat "$work/log/err")"
    runs -b cpu "--gain=$better" "$@"
    [ -s "$work/log/err" ] && fail "--gain $gain: the advised $better does not do: $(cat "$work/log/err")"
}
make_audio taps one.wav 1 44100 1
make_audio taps minus.wav 1 44100 -1
make_audio noise full.wav wav-16 1 44100 20000 1
make_audio noise full24.wav wav-24 1 44100 20000 1
make_audio noise full8.wav wav-u8 1 44100 20000 1
make_audio noise full32.wav wav-32 1 44100 20000 1
make_audio sparse lowest.wav 10 1 44100 3
printf '\000\200' | dd of=lowest.wav bs=1 seek=84 conv=notrunc 2>/dev/null # -1.0 exactly; times -1 it just clips
for name in full.wav full24.wav full32.wav full8.wav; do
    for gain in 0.05 0.1 1 6.02 37.77 200; do
        advised $gain $name one.wav out.wav
    done
done
advised 0 lowest.wav minus.wav out.wav
runs -b cpu lowest.wav minus.wav out.wav
one_line "out.wav: 1 sample clipped; --gain -0.1 would avoid it"
runs -b cpu lowest.wav one.wav out.wav
[ -s "$work/log/err" ] && fail "-1.0 fits, yet: $(cat "$work/log/err")"

# Samples that are no numbers have no gain that helps.
make_audio taps hole.wav 1 44100 0.5 nan 0.5 0.25
runs -b cpu hole.wav one.wav out.flac
one_line "1 sample not a number"
make_audio taps endless.wav 1 44100 0.5 inf 0.5 0.25
runs -b cpu -a direct endless.wav one.wav out.flac
one_line "1 sample clipped"
grep -q -- --gain "$work/log/err" && fail "advice against infinity: $(cat "$work/log/err")"

# Floats hold what integers cannot: nothing to tell.
make_audio noise float.wav wav-float 1 44100 20000 1
runs -b cpu --gain 60 float.wav one.wav out.wav
[ -s "$work/log/err" ] && fail "floats do not clip: $(cat "$work/log/err")"
exit 0
