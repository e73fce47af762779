#!/bin/sh
# Named pipes and blocked pipes: lost data is reported, nothing hangs, and a signal ends the wait.
# shellcheck disable=SC2002 # a pipe is meant
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 2 44100 200000 0.2
make_audio noise ir.wav wav-16 1 44100 3000 0.02
runs -b cpu in.wav ir.wav want.wav
mkfifo out.fifo in.fifo

# begins COMMAND...: starts the command in the background as $job, with a time limit. A signal to $job is passed on once.
begins() {
    timeout --foreground -s KILL 60 "$@" 2>"$work/log/err" &
    job=$!
}

# ends STATUS WHAT: waits for $job, which must exit with this status
ends() {
    wait $job
    status=$?
    [ "$status" -eq "$1" ] || fail "$2: exit $status instead of $1: $(cat "$work/log/err")"
}

# A pipe gets the same bytes as a file; without a reader the command waits.
begins cat out.fifo >got.wav
reader=$job
timeout 60 "$GPUCONV" -b cpu --format wav in.wav ir.wav out.fifo 2>"$work/log/err" || fail "into a named pipe: $(cat "$work/log/err")"
job=$reader
ends 0 "cat"
cmp got.wav want.wav || fail "a named pipe gets other bytes"
begins "$GPUCONV" -b cpu --format wav in.wav ir.wav out.fifo
sleep 0.3
timeout 60 cat out.fifo >got.wav
ends 0 "a reader that comes late"
cmp got.wav want.wav || fail "a reader that comes late gets other bytes"
for signal in INT TERM; do
    begins "$GPUCONV" -b cpu --format wav in.wav ir.wav out.fifo
    sleep 0.3
    kill -s $signal $job
    ends 130 "waiting for a reader, SIG$signal"
    one_line "out.fifo: interrupted"
done

# A reader that closes the pipe early causes an error with a reason.
timeout 60 head -c 1000 out.fifo >"$work/log/head" &
begins "$GPUCONV" -b cpu --format wav in.wav ir.wav out.fifo
ends 1 "a reader that leaves early"
one_line "out.fifo: Broken pipe"

# A reader that reads nothing, from a named pipe and from standard output.
exec 3<>in.fifo # held open by this script, which neither reads nor writes it
for out in in.fifo -; do
    begins "$GPUCONV" -b cpu --format wav in.wav ir.wav $out >in.fifo
    sleep 0.5
    kill -s TERM $job
    ends 130 "a reader that takes nothing, $out"
    one_line "interrupted"
    dd <&3 iflag=nonblock bs=65536 count=1 >"$work/log/drained" 2>&1 # what it wrote before the signal, if anything
done
exec 3<&-

# Every format goes to /dev/null. A pipe gets all frames of the formats that need no length before their samples; the others
# are refused.
make_audio noise in48.wav wav-16 2 48000 20000 0.2
make_audio noise ir48.wav wav-float 2 48000 500 0.02
for format in wav wavex rf64 au raw flac ogg opus mp3 ircam paf pvf aiff caf w64 mat4 mat5 voc avr nist mpc2k; do
    for encoding in "" "-e float"; do
        # shellcheck disable=SC2086 # two words, or none
        "$GPUCONV" -q -b cpu in48.wav ir48.wav whole -f $format $encoding 2>"$work/log/none" || continue
        # shellcheck disable=SC2086
        runs -q -b cpu in48.wav ir48.wav /dev/null -f $format $encoding
        # shellcheck disable=SC2086
        "$GPUCONV" -q -b cpu in48.wav ir48.wav - -f $format $encoding 2>"$work/log/err" | cat >piped
        case $format in
        raw) cmp piped whole || fail "raw through a pipe: other samples" ;;
        aiff | caf | w64 | mat* | voc | avr | nist | mpc2k)
            one_line "standard output: is a pipe, and the header of this format states the length"
            [ ! -s piped ] || fail "$format through a pipe: an output"
            ;;
        *)
            runs -q -b cpu piped ir48.wav wet.wav -e s16
            [ $format = mp3 ] || about wet.wav "20998 2 48000 wav 16" # an MP3 without a length has its padding too
            ;;
        esac
    done
done

# Files that are read twice cannot be pipes.
mkfifo again.wav
refuses 1 "use regular files" --plot x.svg again.wav ir.wav out.wav
refuses 1 "again.wav: comparing runs the job several times" --compare again.wav ir.wav out.wav
refuses 1 "again.wav: comparing runs the job several times" --compare in.wav ir.wav again.wav -f wav
refuses 1 "standard input: comparing runs the job several times" --compare in.wav - out.wav

# Standard output in append mode keeps its content.
echo "before" >list
"$GPUCONV" -b cpu in.wav ir.wav - >>list 2>"$work/log/err" || fail "appending: $(cat "$work/log/err")"
"$GPUCONV" -b cpu in.wav ir.wav - >>list 2>"$work/log/err" || fail "appending: $(cat "$work/log/err")"
{ echo "before" && cat want.wav want.wav; } | cmp - list || fail "appending to a file changes what it had"
exit 0
