#!/bin/sh
# Entries of a batch whose bytes would depend on the order of processing are refused; files are compared by identity, not
# by name. Names of any bytes and any length are written correctly to the results.
. "$(dirname "$0")/lib.sh"

batch() {
    want=$1
    shift
    timeout -k 5 120 "$GPUCONV" batch -b cpu "$@" >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ "$status" -eq "$want" ] || fail "batch $*: exit $status instead of $want: $(cat "$work/log/err")"
}
# refused FOLDER LINE TEXT: the reason for this line of the manifest contains the text
refused() {
    grep "^{\"line\":$2,.*\"status\":\"failed\"" "$1/results.jsonl" | grep -qF -- "$3" ||
        fail "line $2 is not refused with '$3': $(cat "$1/results.jsonl")"
}

make_audio noise a.wav wav-16 1 16000 900 0.1
make_audio noise b.wav wav-16 1 16000 800 0.1
make_audio noise ir.wav wav-float 1 16000 61 0.2

# One output under several names: as text, through links to folders and files, as two names of one file.
mkdir -p one/real one/other
ln -s real one/link
ln -s "$PWD/one/real" one/absolute
ln -s new.wav one/dangling.wav
echo old >one/first.wav
ln one/first.wav one/second.wav
{
    echo input,response,output
    for output in a.wav ./a.wav .//a.wav real/a.wav link/a.wav absolute/./a.wav new.wav dangling.wav first.wav second.wav; do
        echo "a.wav,ir.wav,$output"
    done
} >one.csv
batch 1 one.csv --out one
[ "$(grep -c '"status":"done"' one/results.jsonl)" -eq 4 ] || fail "not four outputs: $(cat one/results.jsonl)"
for line in 3 4; do refused one $line "an earlier entry has the output 'a.wav'"; done
for line in 6 7; do refused one $line "same file as the output of line 5"; done
refused one 9 "same file as the output of line 8"
refused one 11 "same file as the output of line 10"

# An output that another entry reads.
mkdir two && cp a.wav b.wav ir.wav two && ln -s two three
printf 'input,response,output\ntwo/a.wav,ir.wav,c.wav\nb.wav,ir.wav,a.wav\nthree/b.wav,ir.wav,b.wav\na.wav,two/ir.wav,d.wav\na.wav,ir.wav,ir.wav\n' >two.csv
batch 1 two.csv --out two
refused two 3 "same file as the input of line 2"
refused two 6 "same file as the response of line 5"
[ "$(grep -c '"status":"done"' two/results.jsonl)" -eq 3 ] || fail "not three done: $(cat two/results.jsonl)"
cmp ir.wav two/ir.wav || fail "a response was replaced"
# Two entries that exchange their files: neither is processed.
mkdir swap && cp a.wav b.wav swap
printf 'input,response,output\nswap/a.wav,ir.wav,b.wav\nswap/b.wav,ir.wav,a.wav\n' >swap.csv
batch 1 swap.csv --out swap
cmp a.wav swap/a.wav || fail "an input was replaced"
cmp b.wav swap/b.wav || fail "an input was replaced"

# Names that are not UTF-8, have control characters, or are long: every line of the results has the file and the reason.
bad=$(printf 'x\377\001\n.wav')
cp a.wav "$bad"
folder=$(printf 'q%.0s' $(seq 200))
mkdir -p "$folder/$folder/$folder"
{
    printf 'input,response,output\n"%s",ir.wav,n.wav\n' "$bad"
    printf '%s/%s/%s/\303\251.wav,ir.wav,m.wav\n' "$folder" "$folder" "$folder"
    printf 'a.wav,ir.wav,../%s/\303\251\303\251.wav\n' "$folder"
} >names.csv
batch 1 names.csv --out names
[ "$(wc -l <names/results.jsonl)" -eq 3 ] || fail "not three lines: $(cat names/results.jsonl)"
grep -q '"input_bytes":"78ff010a2e776176"' names/results.jsonl || fail "the exact name is lost: $(cat names/results.jsonl)"
iconv -f UTF-8 -t UTF-8 names/results.jsonl >"$work/log/valid" || fail "results.jsonl is not UTF-8"
refused names 5 "an output lies below the batch's folder"
stat -c '%i' names/n.wav >"$work/log/before"
batch 1 names.csv --out names --resume
stat -c '%i' names/n.wav | cmp - "$work/log/before" || fail "a name that is no UTF-8 is not known again"
