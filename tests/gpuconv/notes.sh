#!/bin/sh
# Checks the notes on standard error: resampling, clipping with a gain that avoids it, samples that are not finite.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 1 44100 50000 0.5
make_audio noise ir48.wav wav-16 1 48000 4800 0.01
runs -b cpu in.wav ir48.wav out.wav
one_line "ir48.wav: resampled from 48000 to 44100 Hz, its level rescaled by 1.0884"
about out.wav "54505 1 44100 wav 16"

# The advised gain avoids clipping, even if it depends on the last bit or on tenths of a decibel.
advice() {
    sed -n 's/^gpuconv: .*: [0-9]* samples\{0,1\} clipped; --gain \(.*\) would avoid it$/\1/p' "$work/log/err"
}
advised() {
    gain=$1
    shift
    runs -b cpu --gain "$gain" "$@"
    grep -q clipped "$work/log/err" || fail "no note of clipping: $(cat "$work/log/err")"
    better=$(advice)
    [ -n "$better" ] || fail "no advice: $(cat "$work/log/err")"
    runs -b cpu "--gain=$better" "$@"
    grep -q clipped "$work/log/err" && fail "--gain $gain: the advised $better clips too: $(cat "$work/log/err")"
}
make_audio taps one.wav 1 44100 1
make_audio taps minus.wav 1 44100 -1
make_audio noise full.wav wav-16 1 44100 20000 1
make_audio noise full24.wav wav-24 1 44100 20000 1
make_audio noise full8.wav wav-u8 1 44100 20000 1
make_audio noise full32.wav wav-32 1 44100 20000 1
make_audio sparse lowest.wav 10 1 44100 3
printf '\000\200' | dd of=lowest.wav bs=1 seek=84 conv=notrunc 2>/dev/null # exactly -1.0, which clips when it is multiplied by -1
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

# Samples that are not finite become silence and are counted in a note; none of them reaches the output.
make_audio taps hole.wav 1 44100 0.5 nan 0.5 0.25
make_audio taps quiet.wav 1 44100 0.5 0 0.5 0.25
for out in out.wav out.flac; do
    runs -b cpu quiet.wav one.wav want.${out#*.}
    runs -b cpu hole.wav one.wav $out
    one_line "hole.wav: 1 sample is not finite (NaN or infinity) and was taken as silence; it is at frame 1"
    "$TOOLS/look_audio" near $out want.${out#*.} 0 || fail "a NaN changed the output"
done
make_audio taps endless.wav 2 44100 0.5 0.5 inf 0.5 0.5 -inf nan 0.25
make_audio taps quiet.wav 2 44100 0.5 0.5 0 0.5 0.5 0 0 0.25
for algorithm in direct overlap-save partitioned; do
    runs -b cpu -a $algorithm quiet.wav ir48.wav want.wav -q
    runs -b cpu -a $algorithm endless.wav ir48.wav out.wav
    grep -qF "endless.wav: 3 samples are not finite (NaN or infinity) and were taken as silence; the first is at frame 1" "$work/log/err" ||
        fail "no note: $(cat "$work/log/err")"
    "$TOOLS/look_audio" near out.wav want.wav 0 || fail "$algorithm: infinities changed the output"
done
# shellcheck disable=SC2002 # a pipe is meant
cat endless.wav | "$GPUCONV" -b cpu - ir48.wav out.wav 2>"$work/log/err" || fail "by a pipe: $(cat "$work/log/err")"
grep -q "standard input: 3 samples\|-: 3 samples" "$work/log/err" || fail "by a pipe: $(cat "$work/log/err")"
runs -b cpu endless.wav ir48.wav out.wav --report json
grep -q '"input samples not finite": *3' "$work/log/out" || fail "the report does not count them: $(cat "$work/log/out")"
# A batch counts them for each file, whether it fits into the buffers or is streamed.
printf 'input,response,output\nendless.wav,ir48.wav,a.wav\nlong.wav,ir48.wav,b.wav\nin.wav,ir48.wav,c.wav\n' >list.csv
make_audio noise long.wav wav-float 1 44100 2000000 0.5
printf '\0\0\300\177' | dd of=long.wav bs=1 seek=4000000 conv=notrunc 2>/dev/null
runs batch list.csv --out bulk -q
for line in 'a.wav.*"not_finite":3' 'b.wav.*"not_finite":1' 'c.wav.*"not_finite":0'; do
    grep -q "$line" bulk/results.jsonl || fail "no $line: $(cat bulk/results.jsonl)"
done
"$TOOLS/look_audio" near bulk/a.wav want.wav 1e-6 || fail "a batch writes infinities"
# A response with samples that are not finite is refused.
refuses 1 "hole.wav: the response is not finite at frame 1 of channel 1" -b cpu in.wav hole.wav out.wav

# 32-bit integers and doubles keep the bits of floats: a note where both input and output have more, but not with --quiet.
make_audio noise wide32.wav wav-32 1 44100 2000 0.5
make_audio noise wide64.wav wav-double 1 44100 2000 0.5
for case in "wide32.wav out.wav" "wide64.wav out.wav" "wide64.wav out.wav --encoding s32" "wide32.wav out.aiff"; do
    # shellcheck disable=SC2086
    set -- $case
    input=$1 out=$2
    shift 2
    runs -b cpu "$input" one.wav "$out" "$@"
    one_line "with 24 significant bits, because samples are computed as 32 bit floats"
    one_line "gpuconv: $out: "
    runs -q -b cpu "$input" one.wav "$out" "$@"
    [ -s "$work/log/err" ] && fail "--quiet prints $(cat "$work/log/err")"
done
for case in "wide32.wav --encoding s24" "wide64.wav --encoding float" "in.wav --encoding s32" "in.wav --encoding double"; do
    # shellcheck disable=SC2086
    runs -b cpu ${case%% *} one.wav out.wav ${case#* }
    [ -s "$work/log/err" ] && fail "$case: $(cat "$work/log/err")"
done
printf 'input,response,output\nwide32.wav,one.wav,wide.wav\n' >list.csv
runs batch list.csv --out bulk -q
grep -q 'wide.wav.*"note":"Signed 32 bit PCM with 24 significant bits' bulk/results.jsonl || fail "a batch does not note it"

# Samples that are too large for the transforms do not become NaN without a note.
make_audio taps huge.wav 1 44100 3e38 3e38 3e38
make_audio noise ir44.wav wav-float 1 44100 4800 0.5
runs -b cpu -a overlap-save huge.wav ir44.wav out.wav
one_line "samples are not finite (NaN or infinity), the first at frame"
printf 'input,response,output\nhuge.wav,ir44.wav,huge-wet.wav\n' >list.csv
runs batch list.csv --out huge -q
grep -q '"not_finite":[1-9].*"note":"samples of the output are not finite' huge/results.jsonl || fail "a batch does not count NaN"

# Floats do not clip: no note.
make_audio noise float.wav wav-float 1 44100 20000 1
runs -b cpu --gain 60 float.wav one.wav out.wav
[ -s "$work/log/err" ] && fail "floats do not clip: $(cat "$work/log/err")"
exit 0
