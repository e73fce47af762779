#!/bin/sh
# SIGINT, SIGTERM and SIGHUP during a long job: exit status 130, one line, no partial output, an older output unchanged.
. "$(dirname "$0")/lib.sh"

# writing PID: returns 0 once the process has written more than 64 KiB to an unnamed or a temporary output
writing() {
    for link in /proc/"$1"/fd/*; do
        case $(readlink "$link") in
        "$PWD"/*deleted* | *.gpuconv-*)
            size=$(stat -L -c %s "$link" 2>"$work/log/stat") && [ "$size" -gt 65536 ] && return 0
            ;;
        esac
    done
    return 1
}

make_audio sparse in.wav 1600000000 2 44100 5
make_audio noise ir.wav wav-16 1 44100 3000 0.1
echo "an older output" >out.wav

for signal in INT TERM HUP; do
    before=$(state)
    "$GPUCONV" -b cpu in.wav ir.wav out.wav >"$work/log/out" 2>"$work/log/err" &
    job=$!
    turns=0
    until writing $job; do
        kill -0 $job 2>/dev/null || fail "ended by itself: $(cat "$work/log/err")"
        turns=$((turns + 1))
        [ "$turns" -lt 3000 ] || fail "never began to write"
        sleep 0.02
    done
    kill -s $signal $job
    wait $job
    status=$?
    [ "$status" -eq 130 ] || fail "exit $status after SIG$signal: $(cat "$work/log/err")"
    one_line "out.wav: interrupted"
    [ "$(state)" = "$before" ] || fail "SIG$signal changed the folder: $(ls -lA)"
done

# Under nohup SIGHUP remains ignored.
(
    trap '' HUP
    "$GPUCONV" -b cpu in.wav ir.wav out.wav >"$work/log/out" 2>"$work/log/err" &
    echo $! >"$work/log/pid"
    wait $!
    echo $? >"$work/log/status"
) &
shell=$!
turns=0
until [ -s "$work/log/pid" ] && writing "$(cat "$work/log/pid")"; do
    turns=$((turns + 1))
    [ "$turns" -lt 3000 ] || fail "never began to write"
    sleep 0.02
done
job=$(cat "$work/log/pid")
ignored=$(sed -n 's/^SigIgn:[[:space:]]*//p' "/proc/$job/status")
kill -s INT "$job"
wait $shell
[ "$(cat "$work/log/status")" -eq 130 ] || fail "exit $(cat "$work/log/status") after SIGINT under nohup"
[ $((0x${ignored#????????} & 1)) -eq 1 ] || fail "a hang-up that nohup ignores was caught again"

# SIGKILL: on systems with unnamed files (O_TMPFILE) no file is left.
before=$(state)
"$GPUCONV" -b cpu in.wav ir.wav out.wav >"$work/log/out" 2>"$work/log/err" &
job=$!
until writing $job; do
    kill -0 $job 2>/dev/null || fail "ended by itself: $(cat "$work/log/err")"
    sleep 0.02
done
named=$(find . -name '.gpuconv-*')
kill -9 $job
wait $job
[ -n "$named" ] || [ "$(state)" = "$before" ] || fail "SIGKILL left something: $(ls -lA)"
