#!/bin/sh
# SIGINT during long work (interrupt.sh has the other signals): exit status 130, one line, no partial output. Without a signal every case but the last takes a
# minute or more, so that a loop that ignores the signal exceeds the time limit of `stops`.
. "$(dirname "$0")/lib.sh"

XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
make_audio noise in.wav wav-16 2 44100 2646000 0.1
make_audio noise hall.wav wav-16 1 44100 441000 0.01
make_audio noise long.wav wav-16 1 44100 13230000 0.01

# stops TEXT ARGUMENT...: the command ends with 130 after the signal and reports it. The signal is sent when the file
# $awaited exists, if that is set.
awaited=
stops() {
    says=$1
    shift
    "$GPUCONV" "$@" >"$work/log/out" 2>"$work/log/err" &
    job=$!
    turns=0
    until catches $job; do
        grep -q '^State:.*Z' "/proc/$job/status" && fail "gpuconv $*: ended before it caught a signal: $(cat "$work/log/err")"
        turns=$((turns + 1))
        [ "$turns" -lt 3000 ] || fail "gpuconv $*: never caught a signal"
        sleep 0.02
    done
    until [ -z "$awaited" ] || [ -e "$awaited" ]; do
        turns=$((turns + 1))
        [ "$turns" -lt 6000 ] || fail "gpuconv $*: $awaited never appeared"
        sleep 0.02
    done
    sleep 0.3
    (sleep 60 && kill -9 $job) >"$work/log/guard" 2>&1 &
    guard=$!
    kill -s INT $job 2>"$work/log/kill" || fail "gpuconv $*: was done before the signal"
    wait $job
    status=$?
    kill $guard 2>"$work/log/kill"
    [ $status -eq 130 ] || fail "gpuconv $*: exit $status after SIGINT: $(cat "$work/log/err")"
    one_line "$says"
    [ -s "$work/log/out" ] && fail "gpuconv $*: standard output: $(cat "$work/log/out")"
    echo "$*: $(cat "$work/log/err")"
}

before=$(state)
stops "interrupted" -q -b cpu -a direct -t 1 in.wav hall.wav out.wav
stops "interrupted" -q -b cpu --minimum-phase in.wav long.wav out.wav
stops "interrupted" -q -b cpu --normalize loudness in.wav long.wav out.wav
stops "interrupted" -q -b cpu --series long.wav in.wav long.wav out.wav
stops "interrupted" ir info long.wav
stops "interrupted" ir measure long.wav long.wav out.wav
stops "interrupted" ir synth room --size 60x50x30 --rt60 20 --channels 4 out.wav
stops "interrupted" bench -q -b cpu --frames 1e6 --taps 2e6 -a direct --runs 64
stops "interrupted" bench -q -b cpu --frames 1e9 --taps 512 --runs 64
[ "$(state)" = "$before" ] || fail "changed the folder: $(ls -lA)"

# The output is complete before a comparison begins, and is kept. The comparison takes seconds: with the long response, or
# under the thread sanitizer.
compared=long.wav
case $SANITIZE in *thread*) compared=hall.wav ;; esac
runs -q -b cpu in.wav $compared want.wav
awaited=out.wav
stops "out.wav: written whole; then interrupted" -q -b cpu --compare in.wav $compared out.wav
cmp -s out.wav want.wav || fail "--compare interrupted: the output is not whole"
