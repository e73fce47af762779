#!/bin/sh
# Tests `gpuconv play` and `gpuconv live` with PulseAudio: the monitor of a null sink and the command's own recording equal
# the offline convolution without a gap; the command ends with a message if the server is killed.
# Usage: play_pulse.sh blocks | dry | live, each with a server of its own, so that they can run side by side
# shellcheck disable=SC2317 # one_of_eight calls functions
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sound.sh"
needs_sound pulseaudio pactl parecord
export PULSE_SERVER="unix:$work/run/server"
printf 'pcm.!default { type pulse }\nctl.!default { type pulse }\n' >"$HOME/.asoundrc"
pulseaudio -n --exit-idle-time=-1 --load="module-native-protocol-unix socket=$work/run/server auth-anonymous=1" \
    --load="module-null-sink sink_name=null rate=48000 channels=2 format=float32le" >"$work/log/server" 2>&1 &
server=$!
sinks() {
    pactl list short sinks | grep -q null
}
until_there PulseAudio sinks
runs play --list-devices
grep -q pulse "$work/log/out" || skip "ALSA has no PulseAudio plug-in here (Debian: libasound2-plugins): $(cat "$work/log/out")"

if [ "$1" = dry ]; then
    # The dry signal of a response with other numbers of inputs and outputs goes where `gpuconv` puts it.
    make_audio noise few.wav wav-float 2 48000 40000 0.2
    make_audio noise near.wav wav-float 1 48000 30000 0.004
    printf '1 1 near.wav\n2 3 near.wav\n' >wide.txt
    runs -q -b cpu few.wav wide.txt offline-wide.wav --dry -3
    printf '1 1 near.wav\n2 1 near.wav\n' >narrow.txt
    runs -q -b cpu few.wav narrow.txt offline-narrow.wav --dry -3
    make_audio noise far.wav wav-float 2 44100 30000 0.004 # resampled: its lead delays the dry signal too
    runs -q -b cpu few.wav far.wav offline-far.wav --dry -3
    agrees() { # agrees NAME RESPONSE
        runs play few.wav "$2" --dry -3 --record heard.wav
        "$TOOLS/look_audio" null heard.wav "offline-$1.wav" -110 60000
    }
    one_of_eight agrees wide wide.txt || fail "the dry signal of 2 inputs and 3 outputs differs"
    one_of_eight agrees narrow narrow.txt || fail "the dry signal of 2 inputs and 1 output differs"
    one_of_eight agrees far far.wav || fail "the dry signal beside a resampled response differs"

    # A head that is turned to the left hears a source in front from the right.
    if "$GPUCONV" ir info "$SOURCE/tests/sofa/head.sofa" >"$work/log/out" 2>"$work/log/err"; then
        printf '0 30\n' >turns.txt
        runs -q -b cpu near.wav "$SOURCE/tests/sofa/head.sofa" turned.wav --direction -30,0
        turned() {
            runs play -q near.wav "$SOURCE/tests/sofa/head.sofa" --direction 0,0 --follow turns.txt --record heard.wav
            "$TOOLS/look_audio" null heard.wav turned.wav -110 25000
        }
        turned || turned || turned || fail "a turned head hears something else"
        printf '0 0\n0.3 90\n' >turns.txt
        runs play -q near.wav "$SOURCE/tests/sofa/head.sofa" --direction 0,0 --follow turns.txt --record heard.wav
        refuses 1 "a turning head needs one SOFA file" play few.wav near.wav --follow turns.txt
        refuses 1 "README.md: contains no orientation" play near.wav "$SOURCE/tests/sofa/head.sofa" --direction 0,0 --follow "$SOURCE/README.md"
    fi
    exit 0
fi

make_audio noise in.wav wav-float 2 48000 100000 0.2
make_audio noise near.wav wav-float 1 48000 60000 0.004
# The server's monitor misses the beginning of a stream, so the response delays it by 9600 frames of silence.
# shellcheck disable=SC2046 # word splitting is intended
make_audio taps late.wav 1 48000 $(yes 0 | head -n 9600) 1
runs -q -b cpu near.wav late.wav ir.wav

if [ "$1" = blocks ]; then
    make_audio noise other.wav wav-float 1 48000 3000 0.02
    runs -q -b cpu in.wav ir.wav offline.wav
    attempt() { # attempt OPTION...
        parecord -d null.monitor --format=float32le --rate=48000 --channels=2 --file-format=wav server.wav &
        recorder=$!
        sleep 0.5
        runs play in.wav ir.wav other.wav --record heard.wav "$@"
        sleep 0.3
        kill -INT "$recorder"
        wait "$recorder"
        "$TOOLS/look_audio" null server.wav offline.wav -85 160000 &&
            "$TOOLS/look_audio" null heard.wav offline.wav -110 169000 && grep -q ' 0 late parts of the tail' "$work/log/err"
    }
    one_of_eight attempt --block 64 || fail "blocks of 64: the output differs from the offline convolution: $(cat "$work/log/err")"
    # With added latency the samples are the same, and it is printed.
    one_of_eight attempt --block 480 --latency 2048 || fail "blocks of 480: the output differs: $(cat "$work/log/err")"
    grep -q '2048 frames of latency added' "$work/log/err" || fail "the latency is not printed: $(cat "$work/log/err")"

    # A device with another rate than the file: the file is resampled and has the same duration.
    make_audio taps dirac.wav 1 48000 1
    for rate in 44100 48000; do # the same sweep at two rates
        runs ir measure sweep$rate.wav --rate $rate --seconds 2 --silence 0.5 --from 100 --to 8000
    done
    resampled() {
        runs play sweep44100.wav dirac.wav --rate 48000 --record heard.wav
        "$TOOLS/look_audio" null heard.wav sweep48000.wav -50 90000
    }
    one_of_eight resampled || fail "a file of another rate is resampled wrongly"
    refuses 2 "cpu or cuda" play in.wav ir.wav --backend gpu
    refuses 2 "--latency" play in.wav ir.wav --latency -1
    refuses 1 "no such output" play in.wav ir.wav --output nonsense
    refuses 1 "missing.wav" play missing.wav ir.wav
    refuses 1 "missing.wav" play in.wav missing.wav
    refuses 2 "IN IR" play in.wav
    refuses 2 "--block" play in.wav ir.wav --block -1
    exit 0
fi

# Live: the signal played into one sink is convolved and played into another. The sinks have separate clocks, so a gap may
# occur: one of the attempts must have none.
quietly pactl load-module module-null-sink sink_name=second rate=48000 channels=2 format=float32le || fail "no second sink"
quietly pactl set-default-source null.monitor
quietly pactl set-default-sink second
make_audio noise sound.wav wav-float 2 48000 40000 0.2
# An idle sink and its monitor are suspended, so the song begins with silence, during which both resume.
runs -q -b cpu sound.wav late.wav song.wav --series late.wav
runs -q -b cpu song.wav ir.wav offline-live.wav
live() {
    "$GPUCONV" live ir.wav --channels 2 --rate 48000 --block 2048 --seconds 6 --record take.wav >"$work/log/out" 2>"$work/log/err" &
    job=$!
    until_job_has "a stream" grep -q 'latency added' "$work/log/err"
    sleep 1.5
    paplay -d null song.wav >"$work/log/song" 2>&1 # `quietly` would write over what the job says
    wait $job || { echo "live: exit $?: $(cat "$work/log/err")" && return 1; }
    "$TOOLS/look_audio" null take.wav offline-live.wav -85 80000
}
one_of_eight live || fail "the live output differs from the offline convolution: $(cat "$work/log/err")"
quietly pactl set-default-sink null

runs play in.wav ir.wav --backend cpu --seek 1 --record heard.wav --seconds 0.5 -q
[ -s heard.wav ] || fail "nothing was recorded"
"$TOOLS/look_audio" about heard.wav | grep -q '^24000 ' || fail "not half a second: $("$TOOLS/look_audio" about heard.wav)"
# A live input begins late: the seconds count from the first frame.
runs live ir.wav --rate 48000 --block 2048 --seconds 2 --record take.wav -q
"$TOOLS/look_audio" about take.wav | grep -q '^96000 ' || fail "not two seconds: $("$TOOLS/look_audio" about take.wav)"

# The server is killed during playback: the command ends with a message and keeps the recording.
"$GPUCONV" play -q in.wav ir.wav --loop --record kept.wav >"$work/log/out" 2>"$work/log/err" &
job=$!
sleep 1
kill -9 $server
tries=0
while kill -0 $job 2>"$work/log/kill"; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail "still running ten seconds after the server was killed"
    sleep 0.1
done
wait $job && fail "exit 0 although the device went away"
grep -q 'has failed or was removed' "$work/log/err" || fail "does not say so: $(cat "$work/log/err")"
grep '^ALSA lib' "$work/log/err" && fail "libasound prints by itself"
[ -s kept.wav ] || fail "the recording was lost"
