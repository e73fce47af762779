#!/bin/sh
# Memory does not grow with the input, and long files have the correct samples. Arguments: minutes of input; several are
# compared with each other; 600 (ten hours, an output above 4 GiB) has the label "long".
. "$(dirname "$0")/lib.sh"

case $SANITIZE in
*address* | *thread*) skip "a sanitizer needs too much memory for this measurement" ;;
esac

rate=44100
# Minutes as file sizes in blocks of a kilobyte, in and out; the input is sparse.
most=0
for minutes in "$@"; do
    [ "$minutes" -gt "$most" ] && most=$minutes
done
room=$(df -Pk . | awk 'NR == 2 { print $4 }')
need=$((most * 60 * rate * 4 / 1024 + 100000))
[ "$room" -gt "$need" ] || skip "$need KiB of disk wanted, $room are free"

# A response of 5001 frames, three of them non-zero.
# shellcheck disable=SC2046 # the zeros are meant to part
make_audio taps ir.wav 1 $rate 0.5 $(yes 0 | head -n 999) 0.25 $(yes 0 | head -n 3999) -0.125

first=
for minutes in "$@"; do
    frames=$((minutes * 60 * rate))
    set -- 0 17 $((frames / 3)) $((frames / 2 + 65536)) $((frames - 70001)) $((frames - 1))
    make_audio sparse in.rf64 $frames 2 $rate "$@"
    "$TOOLS/measure" "$work/log/memory" "$GPUCONV" -b cpu in.rf64 ir.wav out.wav 2>"$work/log/err" ||
        fail "$minutes minutes: $(cat "$work/log/err")"
    memory=$(cat "$work/log/memory")
    echo "$minutes minutes of stereo: $memory KiB at most, output of $(stat -c %s out.wav) bytes"
    [ "$memory" -lt 300000 ] || fail "$memory KiB for $minutes minutes; 300000 are allowed"
    "$TOOLS/look_audio" sparse out.wav $((frames + 5000)) 2 $rate 0=0.5 1000=0.25 5000=-0.125 -- "$@" ||
        fail "$minutes minutes: wrong samples"
    container=wav
    [ $(((frames + 5000) * 4)) -gt 4294901760 ] && container=rf64
    about out.wav "$((frames + 5000)) 2 $rate $container 16"
    rm in.rf64 out.wav
    if [ -n "$first" ] && [ $((memory - first)) -gt 4096 ]; then
        fail "grew from $first to $memory KiB with the input"
    fi
    first=${first:-$memory}
done
