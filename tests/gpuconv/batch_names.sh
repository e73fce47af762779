#!/bin/sh
# Tests conflicts between entries of a batch: an entry whose bytes would depend on the order of processing is refused, whatever
# path leads to the file. Tests names of any bytes and any length in results.jsonl.
. "$(dirname "$0")/lib.sh"

batch() {
    want=$1
    shift
    timeout -k 5 120 "$GPUCONV" batch -b cpu "$@" >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ "$status" -eq "$want" ] || fail "batch $*: exit $status instead of $want: $(cat "$work/log/err")"
}
# refused FOLDER LINE TEXT: fails unless this line of the manifest is refused with a reason that contains the text
refused() {
    grep "^{\"line\":$2,.*\"status\":\"failed\"" "$1/results.jsonl" | grep -qF -- "$3" ||
        fail "line $2 is not refused with '$3': $(cat "$1/results.jsonl")"
}

make_audio noise a.wav wav-16 1 16000 900 0.1
make_audio noise b.wav wav-16 1 16000 800 0.1
make_audio noise ir.wav wav-float 1 16000 61 0.2

# One output under several names: other spellings, symbolic links to folders and files, hard links.
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

# An output that is the input or response of another entry.
mkdir two && cp a.wav b.wav ir.wav two && ln -s two three
printf 'input,response,output\ntwo/a.wav,ir.wav,c.wav\nb.wav,ir.wav,a.wav\nthree/b.wav,ir.wav,b.wav\na.wav,two/ir.wav,d.wav\na.wav,ir.wav,ir.wav\n' >two.csv
batch 1 two.csv --out two
refused two 3 "same file as the input of line 2"
refused two 6 "same file as the response of line 5"
[ "$(grep -c '"status":"done"' two/results.jsonl)" -eq 3 ] || fail "not three done: $(cat two/results.jsonl)"
cmp ir.wav two/ir.wav || fail "a response was replaced"
# Two entries that replace each other's input: both are refused.
mkdir swap && cp a.wav b.wav swap
printf 'input,response,output\nswap/a.wav,ir.wav,b.wav\nswap/b.wav,ir.wav,a.wav\n' >swap.csv
batch 1 swap.csv --out swap
cmp a.wav swap/a.wav || fail "an input was replaced"
cmp b.wav swap/b.wav || fail "an input was replaced"

# An output that is a file its own response is read from: the response, another name of it, a file of a matrix, one in series.
mkdir own && cp a.wav ir.wav own && cp ir.wav own/part.wav && cp ir.wav own/next.wav && ln own/ir.wav own/hard.wav
echo "1 1 part.wav" >own/one.matrix
printf 'input,response,output,series\na.wav,own/ir.wav,ir.wav,\na.wav,own/ir.wav,hard.wav,\na.wav,own/one.matrix,part.wav,\nb.wav,own/one.matrix,b.wav,\na.wav,ir.wav,next.wav,own/next.wav\nown/a.wav,ir.wav,a.wav,\n' >own.csv
batch 1 own.csv --out own
refused own 2 "same file as the response of line 2"
refused own 3 "same file as the output of line 2"
refused own 4 "same file as the response of line 4"
refused own 6 "same file as the response of line 6"
[ "$(grep -c '"status":"done"' own/results.jsonl)" -eq 2 ] || fail "not two done: $(cat own/results.jsonl)"
for file in ir part next; do cmp ir.wav own/$file.wav || fail "own/$file.wav was replaced"; done
rm -r own/results.jsonl own/b.wav && cp a.wav own
printf 'input,response,output\na.wav,own/ir.wav,hard.wav\n' >own.csv
batch 1 own.csv --out own
refused own 2 "same file as the response of line 2"

# Names that are not UTF-8, have control characters or are long: every line of results.jsonl has the name and the reason.
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
grep -q '"input_bytes":"78ff010a2e776176"' names/results.jsonl || fail "the exact name is missing: $(cat names/results.jsonl)"
iconv -f UTF-8 -t UTF-8 names/results.jsonl >"$work/log/valid" || fail "results.jsonl is not UTF-8"
refused names 5 "an output must be below the batch's folder"
stat -c '%i' names/n.wav >"$work/log/before"
batch 1 names.csv --out names --resume
stat -c '%i' names/n.wav | cmp - "$work/log/before" || fail "--resume does not recognise a name that is not UTF-8"
