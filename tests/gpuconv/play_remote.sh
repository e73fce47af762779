#!/bin/sh
# Tests the remote control of `gpuconv play` by OSC messages of oscsend and by MIDI through JACK: a constant input is heard
# at each level, response, bypass and pause that was asked for, in this order, and no message without a meaning.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sound.sh"
needs_sound jackd jack_lsp oscsend
[ -e "$(dirname "$GPUCONV")/gpuconv-osc.so" ] || skip "this build has no OSC"
[ -x "$TOOLS/send_midi" ] || skip "this build has no MIDI"
start_jack

# shellcheck disable=SC2046 # word splitting is intended
make_audio taps in.wav 1 48000 $(yes 0.1 | head -n 4800)
mkdir rooms
for level in 1 0.5 0.25; do
    make_audio taps rooms/$level.wav 1 48000 $level
done
port=$((20000 + $$ % 20000))
refuses 2 "'70000' is no UDP port" play in.wav rooms/1.wav --osc 70000
refuses 2 "'::1:$port' is no UDP port" play in.wav rooms/1.wav --osc "::1:$port"
# Without the control nothing is played, and an older recording stays.
make_audio noise older.wav wav-float 1 48000 1000 0.1
refuses 1 "no such port" play -q in.wav rooms/1.wav --midi nothing:there --sound portaudio --output system --record older.wav
osc() { # osc ADDRESS [TYPE VALUE]
    oscsend localhost $port "$@" || fail "oscsend $*"
}
midi() { # midi BYTES...
    "$TOOLS/send_midi" gpuconv-control:midi "$@" || fail "send_midi $*"
}
want=''
# level VALUE [COMMAND...]: sends until the level is heard after those before; a busy machine may drop a block, and the messages in it
level() {
    want="$want$1 " tries=0
    shift
    until [ "$(cat "$work/log/levels")" = "$want" ]; do
        [ $((tries % 60)) -ne 0 ] || "$@"
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "$*: heard '$(cat "$work/log/levels")', not '$want': $(cat "$work/log/err")"
        sleep 0.05
    done
}
mkfifo heard.wav
# Prints each level that stays for 0.05 s, once, from the first frame of each millisecond. The header of 80 bytes or less does not.
od -An -v -w192 -tf4 heard.wav | awk '{ if ($1 > last - 2e-5 && $1 < last + 2e-5) run++; else { run = 0; last = $1 }
    if (run == 50 && (shown == "" || $1 > shown + 1e-4 || $1 < shown - 1e-4)) { printf "%.4f ", $1; fflush(); shown = $1 } }' \
    >"$work/log/levels" &
listener=$!
"$GPUCONV" play in.wav rooms/1.wav rooms/0.5.wav rooms/0.25.wav --loop --sound portaudio --output system --block 256 --osc $port \
    --midi none --crossfade 0.01 --record heard.wav >"$work/log/out" 2>"$work/log/err" &
job=$!
until_job_has ports sh -c 'timeout 10 jack_lsp | grep -q "^gpuconv-control:midi" && timeout 10 jack_lsp | grep -q "^PortAudio:out_0"'
grep -q "OSC on UDP port $port of this machine" "$work/log/err" || fail "does not say the port: $(cat "$work/log/err")"
level 0.1000
level 0.0500 osc /gpuconv/wet f -6.0206
level 0.0250 osc /gpuconv/next
osc /gpuconv/next f 0     # a button that is released
osc /gpuconv/response i 9 # there is none
osc /gpuconv/wet s loud
osc /another/wet f 0
osc /gpuconv/wet f 90
until_job_has "a refusal of response 9" grep -q 'response 9 does not exist; there are 3' "$work/log/err"
sleep 0.25
level 0.0125 osc /gpuconv/response i 3
level 0.1000 osc /gpuconv/bypass T
level 0.0125 osc /gpuconv/bypass i 0
level 0.0500 osc /gpuconv/gain d 12.0412
level 0.0000 osc /gpuconv/pause i 1
level 0.0500 osc /gpuconv/pause F
level 0.0125 midi b0077f # gain 0 dB
level 0.0250 midi b05b7f # wet 0 dB
level 0.0504 midi b05c40 # dry 40 log10(64/127) dB
level 0.1254 midi c000   # the first response
level 0.0754 midi b0517f # the next one
level 0.1254 midi b0527f # the previous one
level 0.1000 midi b0507f # bypass
level 0.1254 midi b05000
midi 903c7f b0017f f8 # a note, a wheel, a clock
sleep 0.25
kill -INT $job
wait $job
[ $? -eq 130 ] || fail "exit $?: $(cat "$work/log/err")"
wait $listener
[ "$(cat "$work/log/levels")" = "$want" ] || fail "heard '$(cat "$work/log/levels")', not '$want'"
