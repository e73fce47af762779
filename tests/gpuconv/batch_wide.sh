#!/bin/sh
# Tests batch entries with 1024 channels, also with a matrix that uses two of them.
. "$(dirname "$0")/lib.sh"

make_audio noise wide.wav wav-16 1024 8000 60 0.1
make_audio noise ir.wav wav-float 1 8000 20 0.1
printf '1 1 ir.wav\n1024 2 ir.wav\n' >ends.txt
n=1
while [ $n -le 1024 ]; do
    echo "$n $n ir.wav"
    n=$((n + 1))
done >all.txt
printf 'input,response,output\nwide.wav,ends.txt,ends.wav\nwide.wav,all.txt,all.wav\n' >list.csv
timeout -k 1 60 "$GPUCONV" batch -b cpu -q list.csv --out wet --workers 1 2>"$work/log/err" || fail "exit $?: $(cat "$work/log/err")"
for name in ends all; do
    runs -q -b cpu wide.wav $name.txt alone.wav
    cmp alone.wav wet/$name.wav || fail "$name: other bytes than from a single command"
done
timeout -k 1 60 "$GPUCONV" batch -b cpu -q list.csv --out wet --workers 1 --resume 2>"$work/log/err" || fail "--resume: exit $?"
