#!/bin/sh
# What Windows does by its own means, under wine: names beyond ASCII, pipes, a batch on several threads and its lock, Ctrl-C.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 2 44100 50000 0.2
make_audio noise ir.wav wav-16 1 44100 3000 0.1
runs -b cpu in.wav ir.wav plain.wav

# Names in UTF-8, with either slash; the old file is replaced.
mkdir 'ü 音'
cp in.wav 'ü 音/ä.wav'
echo old >'ü 音/öut.wav'
runs -b cpu 'ü 音\ä.wav' ir.wav 'ü 音\öut.wav'
cmp plain.wav 'ü 音/öut.wav' || fail "other bytes under a name beyond ASCII"
[ "$(find 'ü 音' -type f | wc -l)" -eq 2 ] || fail "left over: $(ls -A 'ü 音')"

# Pipes carry bytes, without changes at the ends of lines.
runs -b cpu - ir.wav - <in.wav
"$GPUCONV" -b cpu - ir.wav out.raw --format raw <in.wav 2>"$work/log/err" || fail "$(cat "$work/log/err")"
"$GPUCONV" -b cpu - ir.wav - --format raw <in.wav 2>"$work/log/err" | cmp - out.raw || fail "a pipe changed bytes"
cmp plain.wav "$work/log/out" || fail "standard output has other bytes"

# A missing folder and a wrong input leave an old output as it was.
echo old >old.wav
"$GPUCONV" -b cpu none.wav ir.wav old.wav >"$work/log/out" 2>"$work/log/err" && fail "a missing input"
one_line "none.wav: No such file"
"$GPUCONV" -b cpu in.wav ir.wav none/out.wav >"$work/log/out" 2>"$work/log/err" && fail "a missing folder"
one_line "there is no folder none"
[ "$(cat old.wav)" = old ] || fail "the old output was changed"

# A batch: every file as alone, on two threads, for a pattern that this system's shell does not expand.
mkdir corpus
for name in a b c d; do cp in.wav corpus/$name.wav; done
runs batch -b cpu --inputs 'corpus/*.wav' --irs ir.wav --out wet --workers 2
for name in a b c d; do cmp plain.wav wet/$name.wav || fail "batch: $name.wav"; done

# Ctrl-C in a long job: exit status 130, one line, no partial output, an older output unchanged.
make_audio sparse long.wav 1600000000 2 44100 5
before=$(state)
"$GPUCONV" -b cpu long.wav ir.wav old.wav >"$work/log/out" 2>"$work/log/err" &
job=$!
turns=0
until find . -name '.gpuconv-*' -size +64k | grep -q .; do
    kill -0 $job 2>"$work/log/kill" || fail "ended by itself: $(cat "$work/log/err")"
    turns=$((turns + 1))
    [ $turns -lt 3000 ] || fail "never began to write"
    sleep 0.02
done
kill -s INT $job
wait $job
status=$?
[ $status -eq 130 ] || fail "exit $status after Ctrl-C: $(cat "$work/log/err")"
one_line "old.wav: interrupted"
[ "$(state)" = "$before" ] || fail "Ctrl-C changed the folder: $(ls -lA)"

# A batch that runs locks its folder; Ctrl-C ends it.
"$GPUCONV" batch -b cpu --inputs long.wav --irs ir.wav --out wet2 -q 2>"$work/log/first" &
job=$!
until [ -n "$(find wet2 -name '.*' -type f -size +64k 2>"$work/log/find")" ]; do
    kill -0 $job 2>"$work/log/kill" || fail "the batch ended: $(cat "$work/log/first")"
    sleep 0.02
done
"$GPUCONV" batch -b cpu --inputs in.wav --irs ir.wav --out wet2 >"$work/log/out" 2>"$work/log/err" && fail "two batches"
one_line "another batch writes into this folder"
kill -s INT $job
wait $job
status=$?
[ $status -eq 130 ] || fail "exit $status of a batch after Ctrl-C: $(cat "$work/log/first")"
[ ! -e wet2/long.wav ] || fail "the interrupted file is there"
