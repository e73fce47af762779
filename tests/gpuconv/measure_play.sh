#!/bin/sh
# Tests `gpuconv ir measure --play` with PulseAudio: a program reads the monitor of a null sink, simulates a room and writes
# into a pipe source, which is recorded. The measured response equals the room to the frame; every warning is provoked.
# Usage: measure_play.sh response | latency | devices | warnings, each with a server of its own, so that they can run side by side
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sound.sh"
needs_sound pulseaudio pactl parec
export PULSE_SERVER="unix:$work/run/server"
printf 'pcm.!default { type pulse }\nctl.!default { type pulse }\n' >"$HOME/.asoundrc"
sources() {
    pactl list short sources | grep -q ear
}
start_server() {
    pulseaudio -n --exit-idle-time=-1 --load="module-native-protocol-unix socket=$work/run/server auth-anonymous=1" \
        --load="module-null-sink sink_name=null rate=48000 channels=1 channel_map=mono format=float32le" \
        --load="module-pipe-source source_name=ear file=$work/run/ear rate=48000 channels=4 channel_map=front-left,front-right,rear-left,rear-right format=float32le" \
        >"$work/log/server" 2>&1 &
    server=$!
    until_there PulseAudio sources
    quietly pactl set-default-source ear
    quietly pactl set-default-sink null
}
start_server
runs ir measure --list-devices
grep -q pulse "$work/log/out" || skip "ALSA has no PulseAudio plug-in here (Debian: libasound2-plugins): $(cat "$work/log/out")"

# A room of 60 reflections in a quarter of a second, whose direct sound arrives after 480 frames. What a sweep can measure of
# it is the reference: the response that the recording of the room without any sound device gives.
awk 'BEGIN { srand(3); for (i = 0; i < 12000; i++) {
    x = i == 480 ? 0.5 : i > 480 && rand() < 0.005 ? 0.1 * (rand() - 0.5) * exp(-i / 4000) : 0
    y = i == 500 ? 0.4 : -0.7 * x
    print x, y, 0 } }' >"$work/log/taps"
# shellcheck disable=SC2046 # word splitting is intended
make_audio taps room.wav 3 48000 $(cat "$work/log/taps")
runs ir measure sweep.wav --seconds 1 --silence 0.5
runs -q -b cpu sweep.wav room.wav recording.wav --tail 0
runs ir measure recording.wav sweep.wav expected.wav --length 0.4 -q

room='' monitor='' # processes that simulate the room and read the monitor; the first waits for ever where the server has ended
trap 'kill $monitor $room $server 2>/dev/null; wait; rm -rf "$work"' EXIT
simulate() { # simulate GAIN NOISE [silent]: starts anew, because what is not recorded stays in the pipes
    [ -z "$room" ] || { kill "$monitor" "$room" && wait "$monitor" "$room"; } 2>"$work/log/kill"
    rm -f "$work/run/monitor"
    mkfifo "$work/run/monitor"
    "$TOOLS/simulate_room" room.wav "$@" <"$work/run/monitor" >"$work/run/ear" &
    room=$!
    parec -d null.monitor --raw --format=float32le --rate=48000 --channels=1 --latency-msec=20 \
        >"$work/run/monitor" 2>"$work/log/parec" &
    monitor=$!
    sleep 0.5
}
settings='1 0' # of the simulated room
sweep='--seconds 0.5 --silence 0.45'
measure() {    # measure ARGUMENT...: tries again if a busy machine starved the simulated room
    for try in 1 2 3 4; do
        # shellcheck disable=SC2086 # word splitting is intended
        simulate $settings
        # shellcheck disable=SC2086
        "$GPUCONV" ir measure --play found.wav --inputs 4 $sweep --length 0.4 "$@" \
            >"$work/log/out" 2>"$work/log/err"
        status=$?
        grep -q 'the sound device has failed\|starting the sound device\|no such output device\|no such input device' "$work/log/err" || return $status
        echo "attempt $try: the device failed: $(tail -n 1 "$work/log/err")" >&2
        if ! pactl info >"$work/log/info" 2>&1; then # the server ends itself where it is starved
            echo "PulseAudio has ended: $(tail -n 2 "$work/log/server")" >&2
            kill "$server" 2>/dev/null
            wait "$server" 2>/dev/null
            rm -f "$work/run/server" "$work/run/ear"
            start_server
        fi
    done
    return $status
}
says() { # says TEXT
    grep -qF -- "$1" "$work/log/err" || fail "does not say '$1': $(cat "$work/log/err")"
}

refuses_measure() { # refuses_measure TEXT ARGUMENT...
    text=$1
    shift
    rm -f found.wav
    measure "$@" && fail "exit 0: $(cat "$work/log/err")"
    says "$text"
    [ -e found.wav ] && fail "a response was written: $(cat "$work/log/err")"
}
case $1 in
response)
sweep='--seconds 1 --silence 0.5'
# Two inputs of the room, the loopback, an input without a signal: the response within -60 dB of its peak of 0.5, frame by
# frame.
exact() {
    measure --loopback 3 --repeat 2 --recording mean.wav || fail "exit $?: $(cat "$work/log/err")"
    about found.wav "19200 3 48000 wav float"
    "$TOOLS/look_audio" near found.wav expected.wav 0.0005 && grep -q 'mean of 2' "$work/log/err"
}
one_of_eight exact || fail "the response differs: $(cat "$work/log/err")"
cat "$work/log/err"
says "input 1: peak"
says "input 4 does not hold the sweep"
says "direct sound after 10.00 ms"
about mean.wav "72000 3 48000 wav float"
grep -q 'input 3\|clips\|the noise' "$work/log/err" && [ "$(grep -c 'input 3' "$work/log/err")" -gt 1 ] &&
    fail "warns without a reason: $(cat "$work/log/err")"
;;
latency)
# Without loopback the direct sound comes after 5 ms.
after_5_ms() {
    measure --no-check || fail "without loopback: exit $?"
    grep -qE 'direct sound after (4.[89].|5.0.) ms' "$work/log/err"
}
one_of_eight after_5_ms || fail "not after 5 ms: $(cat "$work/log/err")"
refuses 2 "the loopback is input 3, but 2 are recorded" ir measure --play out.wav --inputs 2 --loopback 3
refuses 2 "with --play one file is needed" ir measure --play
refuses 2 "--positions needs --play, and excludes" ir measure --play out.wav --positions 2 --csv
refuses 2 "--positions needs --play" ir measure out.wav --positions 2
refuses 2 "at least 0.1 s" ir measure --play out.wav --silence 0
refuses 1 "no such input" ir measure --play out.wav --input nonsense
;;
devices)
# Two positions: a Return before the second one, a file for each, and the mean over two microphones and two positions.
printf '\n\n\n\n' >returns
measure --loopback 3 --no-check --positions 2 <returns || fail "two positions: exit $?: $(cat "$work/log/err")"
says "position 2 of 2: press Return"
for number in 1 2; do
    about found-$number.wav "19200 3 48000 wav float"
done
grep -q '^mean of 6 ' "$work/log/out" || fail "no mean: $(cat "$work/log/out")"
measure --loopback 3 --no-check --positions 5 </dev/null && fail "five positions without a Return"
says "standard input has ended before position 2 of 5"
# A sink and a source of PulseAudio by name, while others are the default, and their list.
quietly pactl load-module module-null-sink sink_name=other rate=48000 || fail "no second sink"
quietly pactl set-default-sink other
quietly pactl set-default-source other.monitor
runs ir measure --list-devices
for name in 'out pulse:null' 'in  pulse:ear'; do
    grep -q "^$name " "$work/log/out" || fail "$name is not listed: $(cat "$work/log/out")"
done
measure -q --no-check --output pulse:null --input pulse:ear || fail "named devices: exit $?: $(cat "$work/log/err")"
grep -q '^gpuconv: ' "$work/log/err" && fail "--quiet prints: $(cat "$work/log/err")"
;;
warnings)
# Noise above the decay: a warning. An input that clips: the level check refuses; without it, a warning.
settings='0.5 0.05'
measure --loopback 3 --no-check || fail "with noise: exit $?: $(cat "$work/log/err")"
says "input 1: the noise is only"
settings='6 0'
refuses_measure "clips in the level check; lower its gain" --loopback 3
measure --loopback 3 --no-check || fail "clipping: exit $?: $(cat "$work/log/err")"
says "input 1 clips; lower the gain"

# Nothing but noise at the microphones, and a loopback that is not wired.
settings='1 0.01 silent'
refuses_measure "no input receives the sweep in the level check" --loopback 3
refuses_measure "no input receives the sweep; check devices" --loopback 3 --no-check
refuses_measure "the loopback, input 4, does not receive the sweep" --loopback 4 --no-check
;;
esac
true
