#!/bin/sh
# A disk that becomes full during the job: a file system of 256 KiB, mounted in a private name space.
. "$(dirname "$0")/lib.sh"

if [ "${1-}" != inside ]; then
    unshare -m true 2>/dev/null || skip "no permission for a mount namespace, so no small disk to fill"
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare -m sh -c 'mount -t tmpfs -o size=64k tmpfs "$1"' sh "$work/files" 2>/dev/null ||
        skip "no permission to mount a small file system"
    unshare -m sh "$0" inside
    exit $?
fi

mkdir disk
mount -t tmpfs -o size=256k tmpfs disk || fail "no file system to fill"
make_audio noise in.wav wav-16 2 44100 200000 0.1
make_audio noise short.wav wav-16 1 44100 1000 0.1
make_audio taps ir.wav 1 44100 1 0.5
runs short.wav ir.wav disk/older.wav

for name in out.wav out.flac out.aiff out.w64 out.rf64 out.caf out.au; do
    refuses 1 "disk/$name: No space left on device" in.wav ir.wav "disk/$name"
done
refuses 1 "disk/older.wav: No space left on device" in.wav ir.wav disk/older.wav
about disk/older.wav "1001 1 44100 wav 16"

# An encoder that cannot write prints nothing.
head -c 240000 /dev/zero >disk/fill
for name in out.ogg out.opus out.mp3; do
    "$GPUCONV" -q in.wav ir.wav "disk/$name" >"$work/log/out" 2>"$work/log/err" && fail "$name on a full disk: exit 0"
    [ ! -s "$work/log/out" ] || fail "$name on a full disk prints: $(cat "$work/log/out")"
done
rm disk/fill

# Outputs that a job does not convolve into: responses, sweeps, pages, drawings, reports, costs.
make_audio noise ir3.wav wav-float 2 44100 60000 0.1
runs ir measure sweep.wav --seconds 2
runs -q sweep.wav ir.wav recording.wav
refuses 1 "disk/room.wav: No space left on device" ir synth room disk/room.wav --rt60 3 --size 20x20x10 --rate 16000
refuses 1 "disk/sweep.wav: No space left on device" ir measure disk/sweep.wav --seconds 5
refuses 1 "disk/response.wav: No space left on device" ir measure recording.wav sweep.wav disk/response.wav --length 3
wants() { # wants TEXT ARGUMENT...: exit status 1, and a line with the text
    says=$1
    shift
    quietly "$GPUCONV" "$@" && fail "gpuconv $*: exit 0 though the disk is full"
    grep -qF -- "$says" "$work/log/err" || fail "gpuconv $*: does not say '$says': $(cat "$work/log/err")"
}
if command -v gnuplot >"$work/log/which"; then
    wants "disk/page.html: No space left on device" -q in.wav ir.wav short.out.wav --html disk/page.html
    wants "disk/page.html: No space left on device" ir info ir3.wav --html disk/page.html
    head -c 250000 /dev/zero >disk/fill 2>"$work/log/head"
    for end in svg png pdf; do
        wants "disk/drawing.$end: cannot be written: No space left on device" -q in.wav ir.wav short.out.wav --plot disk/drawing.$end
        wants "disk/drawing.$end: cannot be written: No space left on device" ir info ir.wav --plot disk/drawing.$end
    done
    rm disk/fill short.out.wav
fi
head -c 300000 /dev/zero >disk/fill 2>"$work/log/head"
"$GPUCONV" ir info ir.wav --csv >disk/table.csv 2>"$work/log/err" && fail "a table on a full disk: exit 0"
one_line "No space left on device"
"$GPUCONV" -q short.wav ir.wav short.out.wav --report json >disk/report.json 2>"$work/log/err" && fail "a report on a full disk: exit 0"
one_line "No space left on device"
export XDG_CACHE_HOME="$PWD/disk"
wants "No space left on device" calibrate
unset XDG_CACHE_HOME
rm -rf disk/fill disk/table.csv disk/report.json disk/gpuconv short.out.wav

# Full only at the end, within the last block or the header that is rewritten on closing.
for free in 65536 8192 4096 0; do
    rm -f disk/fill
    head -c $((262144 - 4096 - 2 * 4096 - free)) /dev/zero >disk/fill 2>/dev/null
    before=$(ls -A disk)
    quietly "$GPUCONV" in.wav ir.wav disk/out.wav && fail "wrote 800 kB to a disk with $free bytes free"
    [ "$(ls -A disk)" = "$before" ] || fail "left something on the full disk: $(ls -lA disk)"
done
