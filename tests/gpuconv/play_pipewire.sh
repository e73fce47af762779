#!/bin/sh
# Tests `gpuconv play` and `gpuconv live` with a PipeWire server of their own: named ports, the samples at a sink's monitor, a
# change of the default device while playing, a live input, and the end when the server goes away.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sound.sh"
start_pipewire
add_node ear Audio/Source/Virtual audio.rate=48000
add_node first Audio/Sink audio.rate=48000
add_node second Audio/Sink audio.rate=48000
runs play --list-devices
grep -q '^out first (PipeWire)' "$work/log/out" || fail "the sink is not listed: $(cat "$work/log/out")"
make_audio noise in.wav wav-float 1 48000 100000 0.2
make_audio noise ir.wav wav-float 4 48000 30000 0.004
default() { # default NAME
    quietly pw-metadata 0 default.configured.audio.sink "{ \"name\": \"$1\" }" Spa:String:JSON || fail "no default: $(cat "$work/log/err")"
}
# shellcheck disable=SC2317 # called by until_job_has
linked() { # linked NAME: whether the command's left port is linked to the sink's
    pw-link -l | grep -A 1 '^gpuconv:output_FL' | grep -q -- "-> $1:playback_FL"
}
default first
# The monitor misses the beginning of a stream, so the response delays it.
make_audio noise stereo.wav wav-float 2 48000 100000 0.2
make_audio noise near.wav wav-float 1 48000 30000 0.004
make_audio taps dirac.wav 1 48000 1
runs -q -b cpu near.wav dirac.wav late.wav --predelay 0.3
runs -q -b cpu stereo.wav late.wav offline.wav
# shellcheck disable=SC2317 # called by one_of_eight
monitored() {
    records_while 48000 runs play stereo.wav late.wav --sound pipewire
    "$TOOLS/look_audio" null monitor.wav offline.wav -110 110000
}
one_of_eight monitored || fail "the sink's monitor differs from the offline convolution: $(cat "$work/log/err")"
# Live: a player is linked to a virtual source, which the command takes as its input.
# shellcheck disable=SC2046 # word splitting is intended
make_audio taps pad.wav 1 48000 1 $(yes 0 | head -n 12000) # pw-play drops its last blocks
runs -q -b cpu stereo.wav pad.wav song.wav --predelay 1
runs -q -b cpu song.wav late.wav offline-live.wav
# shellcheck disable=SC2317 # called by one_of_eight
live() {
    "$GPUCONV" live late.wav --input ear --channels 2 --rate 48000 --block 1024 --seconds 6 --record take.wav >"$work/log/out" 2>"$work/log/err" &
    job=$!
    until_job_has "a live input" sh -c 'pw-link -l | grep -A 1 "^ear:capture_FL" | grep -q -- "-> gpuconv-input:input_FL"'
    pw-play --target 0 song.wav &
    song=$!
    until_job_has "a song" sh -c 'pw-link pw-play:output_FL ear:input_FL && pw-link pw-play:output_FR ear:input_FR'
    wait "$song"
    wait "$job" || fail "live: exit $?: $(cat "$work/log/err")"
    "$TOOLS/look_audio" null take.wav offline-live.wav -85 100000
}
one_of_eight live || fail "the live output differs from the offline convolution: $(cat "$work/log/err")"

# A measurement: the sink's monitor is linked to the source, which is a cable. It gets no warning.
quietly pw-link first:monitor_FL ear:input_FL || fail "no link: $(cat "$work/log/err")"
# shellcheck disable=SC2317 # called by one_of_eight
cable() {
    runs ir measure --play cable.wav --output first --input ear --seconds 1 --silence 0.5 --length 0.2
    grep -q 'mean of 1.*direct sound after 5.00 ms' "$work/log/err" && [ "$(wc -l <"$work/log/err")" -eq 2 ]
}
one_of_eight cable || fail "a cable is measured with warnings: $(cat "$work/log/err")"
quietly pw-link -d first:monitor_FL ear:input_FL

"$GPUCONV" play in.wav ir.wav --loop --dry -6 --record heard.wav >"$work/log/out" 2>"$work/log/err" &
job=$!
until_job_has "a link to the first sink" linked first
grep -q 'true stereo' "$work/log/err" || fail "does not say that the output is stereo: $(cat "$work/log/err")"
pw-link -o | grep -q '^gpuconv:output_FR' || fail "ports have other names: $(pw-link -o)"
default second
until_job_has "a link to the second sink" linked second
linked first && fail "still linked to the first sink: $(pw-link -l)"
# It goes on there: the second sink's monitor has the sound, and the recording has no gap.
quietly timeout -s INT 1 pw-record -P '{ stream.capture.sink=true }' --target second --rate 48000 --channels 2 --format f32 moved.wav
kill -INT $job
wait $job
[ "$("$TOOLS/look_audio" peak moved.wav 0 24000 | tr -d .0e-)" ] || fail "nothing is heard at the second sink"
runs -q -b cpu in.wav ir.wav offline.wav --dry -6
"$TOOLS/look_audio" null heard.wav offline.wav -110 50000 || fail "the output differs: $(cat "$work/log/err")"

# A terminal of 80 columns: keys show what they change, ? lists them, and no line is longer.
if command -v script >"$work/log/which"; then
    mkdir rooms
    make_audio noise "rooms/a response with a name that is longer than the line of a terminal of eighty columns.wav" wav-float 2 48000 3000 0.02
    make_audio noise rooms/b.wav wav-float 1 48000 3000 0.02
    make_audio noise rooms/c.wav wav-float 2 22050 3000 0.02
    echo text >rooms/notes.md
    (
        sleep 1
        printf 'W?'
        sleep 0.5
        printf 'D'
        sleep 0.5
        printf 'nn'
        sleep 0.5
        printf q
    ) | script -qec "stty cols 80; '$GPUCONV' play in.wav rooms --loop" "$work/log/screen" >"$work/log/out" 2>"$work/log/err" ||
        fail "on a terminal: $(cat "$work/log/out")"
    tr '\r' '\n' <"$work/log/out" | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' >"$work/log/lines"
    for text in 'wet +1.0 dB' 'dry -59.0 dB' 'next or previous response' '3/3' '  2  rooms/b.wav'; do
        grep -qF -- "$text" "$work/log/lines" || fail "the terminal does not show '$text': $(cat "$work/log/lines")"
    done
    grep -v '^gpuconv:' "$work/log/lines" | awk 'length($0) > 79 { print; found = 1 } END { exit found }' || fail "a line is too long"
fi
mkdir empty
refuses 1 "has no response" play in.wav empty
"$GPUCONV" play -q in.wav ir.wav --loop --record kept.wav >"$work/log/out" 2>"$work/log/err" &
job=$!
until_job_has "a link" linked second
kill -9 $server
tries=0
while kill -0 $job 2>"$work/log/kill"; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail "still running ten seconds after the server was killed"
    sleep 0.1
done
wait $job && fail "exit 0 although the server went away"
grep -q 'has failed or was removed' "$work/log/err" || fail "does not say so: $(cat "$work/log/err")"
[ -s kept.wav ] || fail "the recording was lost"
refuses 1 "PipeWire does not run" play in.wav ir.wav --sound pipewire
exit 0
