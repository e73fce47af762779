#!/bin/sh
# Tests `gpuconv live --sink` with a PipeWire server of its own: what another program plays into the sink reaches the output as
# the offline convolution, at each rate that the graph takes meanwhile; the sink ends and leaves nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sound.sh"
start_pipewire
add_node first Audio/Sink
quietly pw-metadata -n settings 0 clock.allowed-rates '[ 44100 48000 ]'
make_audio noise near.wav wav-float 4 48000 30000 0.004
# The monitor misses the beginning of a stream, so the response delays it. pw-play drops its last blocks.
make_audio taps dirac.wav 1 48000 1
runs -q -b cpu near.wav dirac.wav late.wav --predelay 0.3
for rate in 44100 48000; do
    make_audio noise short.wav wav-float 2 $rate 100000 0.2
    # shellcheck disable=SC2046 # word splitting is intended
    make_audio taps pad.wav 1 $rate 1 $(yes 0 | head -n 12000)
    runs -q -b cpu short.wav pad.wav song-$rate.wav --predelay 0.5
    runs -q -b cpu song-$rate.wav late.wav offline-$rate.wav
done
# shellcheck disable=SC2317 # called by until_job_has
runs_at() { # runs_at HZ: whether the graph has this rate, and the response was prepared for it
    tail -n 1 "$work/log/err" | grep -q "PipeWire now runs at $1 Hz"
}
# shellcheck disable=SC2317
linked() { # linked: whether the output is linked to the sink `first`
    pw-link -l | grep -A 1 '^gpuconv:output_FL' | grep -q -- '-> first:playback_FL'
}
"$GPUCONV" live late.wav --sink="Hall of echoes" --output first >"$work/log/out" 2>"$work/log/err" &
job=$!
until_job_has "ports of the sink" sh -c 'pw-link -i | grep -q "^Hall of echoes:playback_FR"'
until_job_has "a link to the output" linked
# shellcheck disable=SC2317 # called by one_of_eight
heard() { # heard RATE: plays a song and compares what the output gets
    records_while "$1" quietly pw-play --target "Hall of echoes" "song-$1.wav"
    "$TOOLS/look_audio" null monitor.wav "offline-$1.wav" -110 110000
}
one_of_eight heard 48000 || fail "the sink's output differs from the offline convolution"
quietly pw-metadata -n settings 0 clock.force-quantum 1024
one_of_eight heard 48000 || fail "the sink's output differs from the offline convolution with shorter blocks"
quietly pw-metadata -n settings 0 clock.force-quantum 4096
pw-play --target "Hall of echoes" song-48000.wav & # while the rate changes
quietly pw-metadata -n settings 0 clock.force-rate 44100
until_job_has "44100 Hz" runs_at 44100
wait $!
one_of_eight heard 44100 || fail "the sink's output differs from the offline convolution at 44100 Hz"
quietly pw-metadata -n settings 0 clock.force-rate 48000
until_job_has "48000 Hz" runs_at 48000
one_of_eight heard 48000 || fail "the sink's output differs from the offline convolution at 48000 Hz again"
kill -TERM $job
wait $job
[ $? -eq 130 ] || fail "SIGTERM: $(cat "$work/log/err")"
pw-link -io >"$work/log/ports"
grep -q "Hall\|gpuconv" "$work/log/ports" && fail "the sink is still there: $(cat "$work/log/ports")"

# A sink of eight channels, which are named, to two ears; a fixed rate. It is the default sink, and does not play into itself.
make_audio noise heads.wav wav-float 14 48000 2000 0.004
"$GPUCONV" live heads.wav --ir-layout hesuvi --sink --channels 8 --rate 44100 >"$work/log/out" 2>"$work/log/err" &
job=$!
until_job_has "eight ports" sh -c 'pw-link -i | grep -q "^gpuconv-sink:playback_SR"'
pw-link -o | grep -c '^gpuconv:output_F[LR]' >"$work/log/ears"
says "$work/log/ears" 2
quietly pw-metadata 0 default.configured.audio.sink '{ "name": "gpuconv-sink" }' Spa:String:JSON
sleep 0.5
until_job_has "a link to the output" linked
kill -INT $job
wait $job
grep "now runs" "$work/log/err" && fail "a fixed rate was left"
refuses 2 "it excludes --input" live late.wav --sink --input ear
refuses 2 "2 to 16 --channels" live late.wav --sink --channels 17
kill $manager $server
wait $manager $server
refuses 1 "PipeWire does not run" live late.wav --sink
exit 0
