#!/bin/sh
# Tests the lock of a batch's folder: a second batch into the folder is refused and names the process of the first, and a batch
# that was killed locks nothing.
. "$(dirname "$0")/lib.sh"
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$work"' EXIT

make_audio noise in.wav wav-16 1 16000 900 0.1
make_audio noise ir.wav wav-float 1 16000 61 0.2
printf 'input,response,output\nin.wav,ir.wav,a.wav\nin.wav,ir.wav,b.wav\n' >list.csv
runs batch -b cpu list.csv --out want
mkfifo pipe.wav
printf 'input,response,output\npipe.wav,ir.wav,b.wav\n' >pipe.csv
awk 'BEGIN { print "input,response,output"; for (i = 0; i < 4000; i++) printf "in.wav,ir.wav,%d.wav\n", i }' >long.csv

# A pipe without a writer would hold the lock for ever.
batch 1 pipe.csv --out piped
says piped/results.jsonl 'pipe.wav: is a pipe'

# hold_lock FOLDER: starts a long batch and stops it once it has the lock; $pid
hold_lock() {
    "$GPUCONV" batch -b cpu -q long.csv --out "$1" --workers 1 2>"$work/log/waiting" &
    pid=$!
    await_files 1 "$1" .gpuconv-lock
    kill -STOP $pid || fail "the batch has ended: $(cat "$work/log/waiting")"
    while grep -L '^State:.T' /proc/$pid/task/*/status | grep -q .; do # each thread stops for itself
        sleep 0.01
    done
}

hold_lock wet
before=$(cd wet && state)
ln -s wet link
for folder in wet link ./wet/; do
    quietly "$GPUCONV" batch -b cpu list.csv --out $folder
    status=$?
    [ $status -eq 1 ] || fail "exit $status while another batch writes into the folder"
    one_line "another batch writes into this folder (process $pid on $(uname -n))"
    quietly "$GPUCONV" batch -b cpu list.csv --out $folder --resume -q && fail "--resume while another batch writes"
    one_line "another batch"
    quietly "$GPUCONV" batch -b cpu --inputs in.wav --irs ir.wav --out $folder && fail "exit 0 while another batch writes"
done
[ "$(cd wet && state)" = "$before" ] || fail "a refused batch changed the folder: $(ls -lA wet)"
runs batch -b cpu list.csv --out wet --dry-run
runs batch -b cpu list.csv --out wet/below
rm -r wet/below
kill -CONT $pid
wait $pid || fail "the first batch: $(cat "$work/log/waiting")"
pid=
cmp want/b.wav wet/3999.wav || fail "other bytes"
[ "$(find wet -type f | grep -v '/[0-9]*\.wav$')" = wet/results.jsonl ] || fail "left in the folder: $(ls -A wet)"
[ "$(find wet -name '*.wav' | wc -l)" -eq 4000 ] || fail "not 4000 outputs"

# Killed: the file stays and locks nothing.
hold_lock killed
kill -9 $pid
wait $pid 2>"$work/log/wait"
pid=
[ -e killed/.gpuconv-lock ] || fail "no lock's file: $(ls -A killed)"
runs batch -b cpu list.csv --out killed --resume
for name in a b; do
    cmp want/$name.wav killed/$name.wav || fail "--resume after a kill"
done
# A file that is no lock, or a link, another may have placed.
mkdir odd && ln -s ../in.wav odd/.gpuconv-lock
before=$(cksum in.wav)
quietly "$GPUCONV" batch -b cpu list.csv --out odd && fail "followed a link that has the lock's name"
one_line "odd/.gpuconv-lock"
[ "$(cksum in.wav)" = "$before" ] || fail "wrote behind a link"
