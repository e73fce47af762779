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
printf 'input,response,output\nin.wav,ir.wav,a.wav\npipe.wav,ir.wav,b.wav\n' >waiting.csv

# wait_for_lock FOLDER: starts a batch that waits for its second input; $pid
wait_for_lock() {
    "$GPUCONV" batch -b cpu -q waiting.csv --out "$1" --workers 1 2>"$work/log/waiting" &
    pid=$!
    await_files 1 "$1" a.wav
}

wait_for_lock wet
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
cat in.wav >pipe.wav
wait $pid || fail "the first batch: $(cat "$work/log/waiting")"
pid=
cmp want/b.wav wet/b.wav || fail "other bytes"
[ "$(find wet -type f | sort | tr '\n' ' ')" = "wet/a.wav wet/b.wav wet/results.jsonl " ] || fail "left in the folder: $(ls -A wet)"

# Killed: the file stays and locks nothing.
wait_for_lock killed
kill -9 $pid
wait $pid 2>"$work/log/wait"
pid=
[ -e killed/.gpuconv-lock ] || fail "no lock's file: $(ls -A killed)"
runs batch -b cpu list.csv --out killed --resume
diff -r -x results.jsonl want killed || fail "--resume after a kill"
# A file that is no lock, or a link, another may have placed.
mkdir odd && ln -s ../in.wav odd/.gpuconv-lock
before=$(cksum in.wav)
quietly "$GPUCONV" batch -b cpu list.csv --out odd && fail "followed a link that has the lock's name"
one_line "odd/.gpuconv-lock"
[ "$(cksum in.wav)" = "$before" ] || fail "wrote behind a link"
