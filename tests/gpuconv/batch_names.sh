#!/bin/sh
# Tests names in a batch: what it reads lies outside of its folder, two names of outputs never lead to one file, and its own
# files are no outputs. Tests names of any bytes and any length in results.jsonl.
. "$(dirname "$0")/lib.sh"

# refused FOLDER LINE TEXT: fails unless this line of the manifest is refused with a reason that contains the text
refused() {
    grep "^{\"line\":$2,.*\"status\":\"failed\"" "$1/results.jsonl" | grep -qF -- "$3" ||
        fail "line $2 is not refused with '$3': $(cat "$1/results.jsonl")"
}

make_audio noise a.wav wav-16 1 16000 900 0.1
make_audio noise b.wav wav-16 1 16000 800 0.1
make_audio noise ir.wav wav-float 1 16000 61 0.2

# One output under several names: other spellings, links to folders and files. A hard link is replaced; its other name stays.
mkdir -p one/real one/other
ln -s real one/link
ln -s "$PWD/one/real" one/absolute
ln -s new.wav one/dangling.wav
echo old >one/first.wav
ln one/first.wav one/other/second.wav
{
    echo input,response,output
    for output in a.wav ./a.wav .//a.wav real/a.wav link/a.wav absolute/./a.wav new.wav dangling.wav first.wav real/link.wav; do
        echo "a.wav,ir.wav,$output"
    done
} >one.csv
batch 1 one.csv --out one
[ "$(grep -c '"status":"done"' one/results.jsonl)" -eq 5 ] || fail "not five outputs: $(cat one/results.jsonl)"
for line in 3 4; do refused one $line "an earlier entry has the output 'a.wav'"; done
for line in 6 7; do refused one $line "must not lie behind a link"; done
refused one 9 "is a symbolic link, which must not be here"
[ "$(cat one/other/second.wav)" = old ] || fail "another name of an older file was changed"
# The second output of a row is one, too.
printf 'input,response,output,early_ms\na.wav,ir.wav,x.wav,5\na.wav,ir.wav,x.early.wav,\nb.wav,ir.wav,y.wav,\n' >early.csv
batch 1 early.csv --out early
refused early 3 "an earlier entry has the output 'x.early.wav'"

# A name that exists is that file before it is a pattern, as input, response, noise and shard: the shell expands t*.wav to it.
mkdir -p exact/in exact/other
i=0
for name in 't [1].wav' 't 1.wav' 'a{b,c}.wav' 'ab.wav' 'd\e.wav' 'de.wav' '~f.wav' 'g*.wav' 'gg.wav'; do
    make_audio noise "exact/in/$name" wav-16 1 16000 $((500 + i)) 0.1
    i=$((i + 1))
done
cp ir.wav 'exact/h?[1].wav' && cp b.wav 'exact/h11.wav'
for name in 't [1].wav' 'a{b,c}.wav' 'd\e.wav' '~f.wav' 'g*.wav'; do
    rm -rf exact/out
    batch 0 --inputs "exact/in/$name" --irs 'exact/h?[1].wav' --out exact/out
    runs -b cpu "exact/in/$name" ir.wav exact/want.wav
    cmp "exact/out/$name" exact/want.wav || fail "--inputs '$name': another file: $(ls exact/out)"
    [ "$(find exact/out -name '*.wav' | wc -l)" -eq 1 ] || fail "--inputs '$name': $(ls exact/out)"
done
batch 0 --inputs a.wav --irs ir.wav --noises 'exact/in/t [1].wav' --snr 10 --out exact/out
says exact/out/manifest.csv 't [1].wav'
cp exact/in/ab.wav exact/other/'t [1].wav'
batch 0 --inputs 'exact/in/t [1].wav' 'exact/other/t [1].wav' --irs ir.wav --out exact/both # the folders that differ are kept
for folder in in other; do
    [ -e "exact/both/$folder/t [1].wav" ] || fail "folders of exact names: $(find exact/both)"
done
batch 0 --inputs 'exact/in/{ab,t [[]1]}.wav' --irs ir.wav --out exact/pattern
[ "$(find exact/pattern -name '*.wav' | wc -l)" -eq 2 ] || fail "a pattern: $(find exact/pattern)"

# What is read lies outside of the folder, whatever link leads to it, and whether it is there already: input, response, noise,
# a file of a matrix, one in series, a shard, a list. The batch does nothing, and names the file.
mkdir -p two/sub && cp a.wav ir.wav two && cp ir.wav two/sub/part.wav && ln -s two three && ln -s two/a.wav linked.wav
echo "1 1 two/sub/part.wav" >one.matrix
tar cf two/shard.tar a.wav
printf 'k two/ir.wav\n' >irs.scp && printf 'k ir.wav\n' >two/irs.scp
cp -a two two_before
# inside FILE HEADER ROW [OPTION...]: a batch into two/ that reads FILE is refused
inside() {
    printf '%s\n%s\n' "$2" "$3" >inside.csv
    file=$1
    shift 3
    for out in two ./three/ two/sub/..; do
        batch 2 inside.csv --out $out "$@"
        one_line "$file: is read by the batch and lies in $out, the folder of its outputs; name another folder"
        batch 2 inside.csv --out $out "$@" --dry-run
    done
}
row=input,response,output
inside two/a.wav $row two/a.wav,ir.wav,a.wav
inside two/a.wav $row two/a.wav,ir.wav,b.wav
inside three/a.wav $row three/a.wav,ir.wav,b.wav
inside linked.wav $row linked.wav,ir.wav,b.wav
inside two/sub/new.wav $row two/sub/new.wav,ir.wav,b.wav
inside two/ir.wav $row a.wav,two/ir.wav,b.wav
inside two/ir.wav input,output a.wav,b.wav --irs irs.scp
inside two/irs.scp input,output a.wav,b.wav --irs two/irs.scp
inside two/a.wav $row,noise,snr a.wav,ir.wav,b.wav,two/a.wav,3
inside two/sub/part.wav $row a.wav,one.matrix,b.wav
inside two/ir.wav $row,series a.wav,ir.wav,b.wav,two/ir.wav
inside two/shard.tar/a.wav $row two/shard.tar/a.wav,ir.wav,b.wav
inside two/a.wav inputs,response,output "b.wav|two/a.wav,ir.wav,b.wav"
batch 2 --inputs two/shard.tar --irs ir.wav --out two --shard-size 1
diff -r two two_before || fail "a refused batch changed its folder"
# The folder may lie in that of the inputs, as long as no input lies in it.
mkdir deep && cp a.wav b.wav deep
batch 0 --inputs 'deep/**/*.wav' --irs ir.wav --out deep/wet
batch 2 --inputs 'deep/**/*.wav' --irs ir.wav --out deep/wet
one_line "deep/wet/a.wav: is read by the batch and lies in deep/wet"
batch 0 --inputs 'deep/*.wav' --irs ir.wav --out deep/wet --resume
says "$work/log/err" "2 done before"

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

# Files of the batch itself: an output must not have the name of one, however the path is written. Every other entry is done.
mkdir -p own/real && ln -s . own/here && ln -s results.jsonl own/log.wav
{
    echo input,response,output,format
    for output in results.jsonl Results.JSONL manifest.csv wav.scp recordings.jsonl.gz cuts.jsonl.gz metadata.csv metadata.jsonl \
        here/results.jsonl log.wav manifest.csv/a.wav .gpuconv-lock .gpuconv-0123456789abcdef real/.gpuconv-1 000000.tar 000001.tar/x.wav; do
        echo "a.wav,ir.wav,$output,wav"
    done
    echo a.wav,ir.wav,000002.tar,wav
    echo a.wav,ir.wav,real/results.jsonl,wav
} >own.csv
"$GPUCONV" -q -b cpu a.wav ir.wav want.wav
cp -a own own_packed
batch 1 own.csv --out own
[ "$(grep -c '"status":"done"' own/results.jsonl)" -eq 4 ] || fail "not four done: $(cat own/results.jsonl)"
for line in 2 3 4 5 6 7 8 9 12 13 14 15; do refused own $line "writes files of its own"; done
refused own 10 "must not lie behind a link"
refused own 11 "is a symbolic link"
for output in 000000.tar 000001.tar/x.wav 000002.tar real/results.jsonl; do
    cmp own/$output want.wav || fail "$output: other bytes"
done
batch 1 own.csv --out own_packed --shard-size 9
for line in 16 17; do refused own_packed $line "writes files of its own"; done
[ "$(tar tf own_packed/000001.tar | tr '\n' ' ')" = "000002.tar real/results.jsonl " ] || fail "$(tar tf own_packed/000001.tar)"
batch 0 own.csv --out own_packed --shard-size 9 --dry-run
grep -q '14 refused like this' "$work/log/out" || fail "--dry-run does not tell: $(cat "$work/log/out")"

# Lists that a batch has written may be read again, unless they would be replaced.
batch 0 --inputs a.wav --irs ir.wav --out listed
for list in results.jsonl manifest.csv; do
    batch 0 listed/$list --out listed --resume
    says "$work/log/err" "1 done before"
done
batch 2 listed/results.jsonl --out listed
one_line "listed/results.jsonl: is read by the batch and lies in listed"
printf 'input,output\na.wav,a.wav\n' >listed/manifest.csv
batch 2 listed/manifest.csv --irs ir.wav --out listed
one_line "listed/manifest.csv: is read"
printf 'k a.wav\n' >listed/wav.scp
batch 2 listed/wav.scp --irs ir.wav --out listed
one_line "listed/wav.scp: is read"
[ "$(cat listed/wav.scp)" = "k a.wav" ] || fail "a list was replaced"
