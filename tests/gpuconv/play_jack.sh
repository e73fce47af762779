#!/bin/sh
# Plays to JACK's dummy driver: the samples that another client records from the command's ports equal the offline result.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sound.sh"
needs_sound jackd jack_rec jack_lsp
start_jack

make_audio noise in.wav wav-float 2 48000 200000 0.2
make_audio noise ir.wav wav-float 1 48000 60000 0.004
runs -q -b cpu in.wav ir.wav offline.wav
# A busy machine may drop a block: three attempts.
attempt() {
    "$GPUCONV" play -q in.wav ir.wav --output system --block 256 >"$work/log/out" 2>"$work/log/err" &
    job=$!
    until_job_has ports sh -c 'jack_lsp | grep -q "^PortAudio:out_1"'
    jack_rec -f server.wav -d 2 -b 32 PortAudio:out_0 PortAudio:out_1 >"$work/log/rec" 2>&1 ||
        fail "jack_rec: $(cat "$work/log/rec")"
    wait $job || fail "exit $?: $(cat "$work/log/err")"
    "$TOOLS/look_audio" null server.wav offline.wav -85 80000
}
attempt || attempt || attempt || fail "JACK got something else"
