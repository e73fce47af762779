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

# Full only at the end, within the last block or the header that is rewritten on closing.
for free in 65536 8192 4096 0; do
    rm -f disk/fill
    head -c $((262144 - 4096 - 2 * 4096 - free)) /dev/zero >disk/fill 2>/dev/null
    before=$(ls -A disk)
    quietly "$GPUCONV" in.wav ir.wav disk/out.wav && fail "wrote 800 kB to a disk with $free bytes free"
    [ "$(ls -A disk)" = "$before" ] || fail "left something on the full disk: $(ls -lA disk)"
done
