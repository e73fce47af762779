#!/bin/sh
# Tests `gpuconv play` with JACK's dummy driver: another client records the command's ports; the recording equals the offline
# convolution. A measurement through its own cable gives an impulse. If the server is killed, playing and measuring end with a
# message, and a recording is kept.
# Usage: play_jack.sh play | system | JACK, the last two for a server that is killed under one of these devices; each with a server
# of its own, so that they can run side by side
# shellcheck disable=SC2317 # one_of_eight calls functions
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sound.sh"
needs_sound jackd jack_rec jack_lsp jack_connect
start_jack

make_audio noise ir.wav wav-float 1 48000 60000 0.004

if [ "$1" = play ]; then
    make_audio noise in.wav wav-float 2 48000 130000 0.2
    runs -q -b cpu in.wav ir.wav offline.wav
    attempt() {
        "$GPUCONV" play -q in.wav ir.wav --output system --block 256 >"$work/log/out" 2>"$work/log/err" &
        job=$!
        until_job_has ports sh -c 'timeout 10 jack_lsp | grep -q "^PortAudio:out_1"'
        jack_rec -f server.wav -d 2 -b 32 PortAudio:out_0 PortAudio:out_1 >"$work/log/rec" 2>&1 ||
            fail "jack_rec: $(cat "$work/log/rec")"
        wait "$job" || fail "exit $?: $(cat "$work/log/err")"
        "$TOOLS/look_audio" null server.wav offline.wav -85 80000
    }
    one_of_eight attempt || fail "the recording differs from the offline convolution"

    # A file of another rate than the server's: the refusal names the option that plays it.
    make_audio noise cd.wav wav-float 2 44100 4410 0.2
    refuses 1 "does not run at 44100 Hz; its rate is --rate 48000" play cd.wav ir.wav --output system
    runs play -q cd.wav ir.wav --output system --rate 48000

    # A measurement by the same module, whose output is wired to its input meanwhile: an impulse, 5 ms after the beginning.
    measured() {
        "$GPUCONV" ir measure --play cable.wav --sound jack --seconds 1 --silence 0.5 --no-check >"$work/log/out" 2>"$work/log/err" &
        job=$!
        (until_job_has ports sh -c 'timeout 10 jack_connect PortAudio:out_0 PortAudio:in_0') # it may come too late for a sweep
        wait "$job" && grep -q 'direct sound after 5.0. ms' "$work/log/err" && runs ir info cable.wav &&
            grep -Eq '^  channel 1 .* 100  ' "$work/log/out" # all energy before 50 ms
    }
    one_of_eight measured || fail "the measurement differs: $(cat "$work/log/err" "$work/log/out")"

    runs play --sound jack --list-devices
    grep -q '(JACK' "$work/log/out" || fail "JACK is not listed: $(cat "$work/log/out")"
    grep -v '(JACK' "$work/log/out" && fail "others are listed too: $(cat "$work/log/out")"
    refuses 1 "no such output device" live ir.wav --sound jack --output nonsense
    (JACK_DEFAULT_SERVER=nothing && refuses 1 "JACK does not run" live ir.wav --sound jack) || exit 1
    exit 0
fi

# PortAudio does not say that the server has gone: it calls nothing more, and waits or aborts where it is closed. Its ALSA
# plug-in is a device of its own.
ended() { # ended SECONDS: waits until the job has ended
    tries=0
    while kill -0 $job 2>"$work/log/kill"; do
        tries=$((tries + 1))
        [ $tries -lt $(($1 * 10)) ] || fail "still running $1 s after the server was killed: $(cat "$work/log/err")"
        sleep 0.1
    done
    wait $job
}
device=$1
runs play --list-devices
[ "$device" = system ] || grep -q '(ALSA)' "$work/log/out" || skip "ALSA has no JACK plug-in here (Debian: libasound2-plugins): $(cat "$work/log/out")"
for seconds in '' '--seconds 60'; do
    # shellcheck disable=SC2086 # word splitting is intended
    "$GPUCONV" live ir.wav --sound portaudio --output $device --input $device --record kept.wav $seconds >"$work/log/out" 2>"$work/log/err" &
    job=$!
    sleep 3
    kill -9 $server
    ended 20
    status=$?
    [ $status -eq 1 ] || fail "$device $seconds: exit $status: $(cat "$work/log/err")"
    grep -q 'has failed or was removed; what was played before is in kept.wav' "$work/log/err" ||
        fail "$device: does not say so: $(cat "$work/log/err")"
    [ "$("$TOOLS/look_audio" about kept.wav | cut -d' ' -f1)" -gt 24000 ] || fail "$device: less than half a second was kept"
    rm kept.wav
    start_jack # under the same name: JACK forgets a server that was killed when another one takes its place
done
"$GPUCONV" ir measure --play found.wav --output "$device" --input "$device" --no-check >"$work/log/out" 2>"$work/log/err" &
job=$!
sleep 2
kill -9 $server
ended 20
status=$?
[ $status -eq 1 ] || fail "ir measure, $device: exit $status: $(cat "$work/log/err")"
grep -q 'has failed, was removed' "$work/log/err" || fail "ir measure: does not say so: $(cat "$work/log/err")"
[ -e found.wav ] && fail "ir measure: writes a response"
start_jack
exit 0
