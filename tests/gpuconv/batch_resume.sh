#!/bin/sh
# Tests --resume: it does the entries that are not done and no others. An entry is done if results.jsonl records it with the
# same settings and its files have not changed; whenever the batch was killed, the outputs are those of one that was not.
# Argument: the number of rounds.
. "$(dirname "$0")/lib.sh"
rounds=${1:-30}

# before FOLDER, then redone FOLDER NAME...: fails unless exactly these outputs were written in between
before() {
    find "$1" -name '*.wav' -exec stat -c '%n %i %y' {} + | sort >"$work/log/before"
}
redone() {
    folder=$1
    shift
    find "$folder" -name '*.wav' -exec stat -c '%n %i %y' {} + | sort >"$work/log/after"
    comm -13 "$work/log/before" "$work/log/after" | sed "s,^$folder/\([^ ]*\) .*,\1," | tr '\n' ' ' >"$work/log/redone"
    [ "$(cat "$work/log/redone")" = "$*${*:+ }" ] || fail "written again: '$(cat "$work/log/redone")' instead of '$*'"
}
same() {
    diff -rq -x results.jsonl -x manifest.csv "$1" "$2" >"$work/log/diff" || fail "$1 and $2: $(head "$work/log/diff")"
}

# Entries that are done again: output missing or truncated; input, response or settings changed; no line in results.jsonl.
for n in 0 1 2 3 4 5 6 7; do
    make_audio noise "x$n.wav" wav-16 1 16000 $((900 + 100 * n)) 0.1
done
make_audio noise ir.wav wav-float 1 16000 61 0.2
make_audio noise other.wav wav-float 1 16000 62 0.2
make_audio noise tap.wav wav-float 1 16000 50 0.2
echo "1 1 tap.wav" >matrix.txt
manifest() {
    echo "input,response,output,gain"
    echo "x0.wav,ir.wav,0.wav,"
    echo "x1.wav,ir.wav,1.wav,"
    echo "x2.wav,ir.wav,2.wav,$1"
    echo "x3.wav,ir.wav,3.wav,"
    echo "x4.wav,other.wav,4.wav,"
    echo "x5.wav,$2,5.wav,"
    echo "x6.wav,matrix.txt,6.wav,"
    echo "$3,ir.wav,7.wav,"
}
manifest "" ir.wav x7.wav >list.csv
batch 0 list.csv --out wet
before wet
batch 0 list.csv --out wet --resume
redone wet
grep -q '8 done before' "$work/log/err" || fail "not reported: $(cat "$work/log/err")"
rm wet/0.wav
truncate -s -2 wet/1.wav
batch 0 list.csv --out wet --resume
redone wet 0.wav 1.wav
before wet
manifest -3 ir.wav x7.wav >list.csv
batch 0 list.csv --out wet --resume
redone wet 2.wav
before wet
touch x3.wav
make_audio noise other.wav wav-float 1 16000 63 0.2
batch 0 list.csv --out wet --resume
redone wet 3.wav 4.wav
before wet
manifest -3 tap.wav x0.wav >list.csv
batch 0 list.csv --out wet --resume
redone wet 5.wav 7.wav
before wet
make_audio noise tap.wav wav-float 1 16000 51 0.2 # a matrix file names it
batch 0 list.csv --out wet --resume
redone wet 5.wav 6.wav
before wet
sed -i '/"output":"0.wav"/d' wet/results.jsonl
batch 0 list.csv --out wet --resume
redone wet 0.wav
batch 0 list.csv --out fresh
same fresh wet
before wet
rm wet/results.jsonl
batch 0 list.csv --out wet --resume
redone wet 0.wav 1.wav 2.wav 3.wav 4.wav 5.wav 6.wav 7.wav

eight_lines() {
    [ "$(wc -l <wet/results.jsonl)" -eq 8 ] || fail "not eight lines: $(cat wet/results.jsonl)"
    grep -v '^{.*}$' wet/results.jsonl && fail "a line is incomplete"
}
# An incomplete last line is removed; a last line without a newline is completed.
before wet
printf '{"line":2,"input":"x0.wav","respo' >>wet/results.jsonl
batch 0 list.csv --out wet --resume
eight_lines
truncate -s -1 wet/results.jsonl
batch 0 list.csv --out wet --resume
eight_lines
redone wet
mkdir pipe && mkfifo pipe/results.jsonl
batch 1 list.csv --out pipe --resume
grep -q 'not a regular file' "$work/log/err" || fail "a FIFO as results.jsonl: $(cat "$work/log/err")"

# Killed at random times, resumed, and completed.
mkdir dry
n=0
while [ $n -lt 120 ]; do
    make_audio noise dry/x$n.wav wav-16 1 16000 $((400 + 37 * n)) 0.1
    n=$((n + 1))
done
batch 0 --inputs 'dry/*.wav' --irs ir.wav --out want
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    rm -rf c
    for delay in 0.002 0.011; do
        "$GPUCONV" batch -b cpu -q --inputs 'dry/*.wav' --irs ir.wav --out c --resume --workers $((1 + round % 3)) 2>"$work/log/err" &
        pid=$!
        sleep "$(awk -v s=$round -v d=$delay 'BEGIN { srand(s); print d + rand() * 0.02 }')"
        kill -9 $pid 2>"$work/log/kill"
        wait $pid 2>"$work/log/wait"
    done
    batch 0 --inputs 'dry/*.wav' --irs ir.wav --out c --resume
    same want c
    [ "$(grep -o '"output":"[^"]*","status":"done"' c/results.jsonl | sort -u | wc -l)" -eq 120 ] || fail "round $round: not 120 outputs are done"
done
before c
batch 0 --inputs 'dry/*.wav' --irs ir.wav --out c --resume
redone c
# A copy of the folder is as good.
cp -r c moved
before moved
batch 0 --inputs 'dry/*.wav' --irs ir.wav --out moved --resume
redone moved
