#!/bin/sh
# Printing to a full standard output is an error: exit status 1 and one line with the reason.
. "$(dirname "$0")/lib.sh"
GPULAB=$(dirname "$GPUCONV")/gpulab
[ -c /dev/full ] || skip "no /dev/full here"

make_audio noise in.wav wav-16 1 44100 1000 0.1
make_audio taps ir.wav 1 44100 1 0.5
full() { # full PROGRAM ARGUMENT...
    timeout 300 "$@" >/dev/full 2>"$work/log/err"
    status=$?
    [ "$status" -eq 1 ] || fail "$* >/dev/full: exit $status: $(cat "$work/log/err")"
    [ "$(grep -c 'No space left on device' "$work/log/err")" -eq 1 ] ||
        fail "$* >/dev/full does not say why: $(cat "$work/log/err")"
}
for command in "" batch bench "bench rows" "bench rt" calibrate ir "ir clean" "ir correct" "ir info" "ir measure" "ir synth" live play; do
    # shellcheck disable=SC2086 # the words are meant to part
    full "$GPUCONV" $command --help
done
full "$GPUCONV" --version
full "$GPUCONV" bench --list
full "$GPUCONV" ir info ir.wav
full "$GPUCONV" ir info ir.wav --report json
full "$GPUCONV" in.wav ir.wav out.wav --report text
full "$GPUCONV" in.wav ir.wav out.wav --report json
full "$GPUCONV" in.wav ir.wav -
full "$GPUCONV" bench --frames 4096 --taps 16 --runs 3 -b cpu -q
full "$GPUCONV" bench rt --seconds 0.1 --length 0.01
"$GPULAB" run hello --json >run.json 2>"$work/log/err" || fail "gpulab run: $(cat "$work/log/err")"
full "$GPULAB" --help
full "$GPULAB" list
full "$GPULAB" show hello
full "$GPULAB" device
full "$GPULAB" run hello --json
full "$GPULAB" report --from run.json
if "$GPUCONV" play --list-devices >"$work/log/out" 2>&1 && [ -s "$work/log/out" ]; then
    full "$GPUCONV" play --list-devices
fi
exit 0
