#!/bin/sh
# Tests conflicts between entries of a batch: an entry whose bytes would depend on the order of processing is refused, whatever
# path leads to the file. Tests names of any bytes and any length in results.jsonl.
. "$(dirname "$0")/lib.sh"

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
mkdir self && cp a.wav ir.wav self && cp ir.wav self/part.wav && cp ir.wav self/next.wav && ln self/ir.wav self/hard.wav
echo "1 1 part.wav" >self/one.matrix
printf 'input,response,output,series\na.wav,self/ir.wav,ir.wav,\na.wav,self/ir.wav,hard.wav,\na.wav,self/one.matrix,part.wav,\nb.wav,self/one.matrix,b.wav,\na.wav,ir.wav,next.wav,self/next.wav\nself/a.wav,ir.wav,a.wav,\n' >self.csv
batch 1 self.csv --out self
refused self 2 "same file as the response of line 2"
refused self 3 "same file as the output of line 2"
refused self 4 "same file as the response of line 4"
refused self 6 "same file as the response of line 6"
[ "$(grep -c '"status":"done"' self/results.jsonl)" -eq 2 ] || fail "not two done: $(cat self/results.jsonl)"
for file in ir part next; do cmp ir.wav self/$file.wav || fail "self/$file.wav was replaced"; done
rm -r self/results.jsonl self/b.wav && cp a.wav self
printf 'input,response,output\na.wav,self/ir.wav,hard.wav\n' >self.csv
batch 1 self.csv --out self
refused self 2 "same file as the response of line 2"

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
for line in 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do refused own $line "writes files of its own"; done
for output in 000000.tar 000001.tar/x.wav 000002.tar real/results.jsonl; do
    cmp own/$output want.wav || fail "$output: other bytes"
done
batch 1 own.csv --out own_packed --shard-size 9
for line in 16 17; do refused own_packed $line "writes files of its own"; done
[ "$(tar tf own_packed/000001.tar | tr '\n' ' ')" = "000002.tar real/results.jsonl " ] || fail "$(tar tf own_packed/000001.tar)"
batch 0 own.csv --out own_packed --shard-size 9 --dry-run
grep -q '16 refused like this' "$work/log/out" || fail "--dry-run does not tell: $(cat "$work/log/out")"

# Files that a batch reads and would replace by its own: it does nothing, and names the file. Inputs as shards, responses, noise,
# lists, the manifest; through links, too.
mkdir shards && tar cf shards/000000.tar a.wav b.wav && ln -s shards same_shards
cp -a shards shards_before
before_refusal() {
    batch 2 "$@"
    one_line "would be replaced by a file that it writes"
    batch 2 "$@" --dry-run
}
before_refusal --inputs 'shards/*.tar' --irs ir.wav --out shards --shard-size 1
before_refusal --inputs 'shards/*.tar' --irs ir.wav --out same_shards --shard-size 5
printf 'input,response,output\nsame_shards/000000.tar/a.wav,ir.wav,x.wav\n' >member.csv
before_refusal member.csv --out ./shards/ --shard-size 7
diff -r shards shards_before || fail "a refused batch changed its folder"
mkdir listed && cp a.wav listed/manifest.csv
printf 'input,response,output,noise,snr\na.wav,ir.wav,x.wav,listed/manifest.csv,3\n' >noise.csv
batch 0 noise.csv --out listed
before_refusal noise.csv --irs ir.wav --out listed
echo "1 1 listed/manifest.csv" >named.matrix
before_refusal --inputs a.wav --irs named.matrix --out listed
before_refusal listed/results.jsonl --out listed
batch 0 listed/results.jsonl --out listed --resume
printf 'input,output\na.wav,a.wav\n' >listed/manifest.csv
before_refusal listed/manifest.csv --irs ir.wav --out listed
printf 'k a.wav\n' >listed/wav.scp && printf 'k ir.wav\n' >irs.scp && cp irs.scp listed/irs.scp
before_refusal listed/wav.scp --irs ir.wav --out listed
cp listed/wav.scp in.scp
before_refusal in.scp --irs listed/wav.scp --out listed
[ "$(cat listed/wav.scp)" = "k a.wav" ] || fail "a list was replaced"
# Shards that the batch does not write may be in its folder.
cp shards/000000.tar shards/000002.tar
batch 0 --inputs shards/000002.tar --irs ir.wav --out shards --shard-size 5
cmp shards_before/000000.tar shards/000002.tar || fail "a shard that is read was replaced"

# An output that is a list or a response in series, or with shards its own input, which would be removed when it is packed.
mkdir late && cp irs.scp ir.wav a.wav late
printf 'input,output,format\na.wav,irs.scp,wav\nb.wav,b.wav,\n' >late.csv
batch 1 late.csv --irs late/irs.scp --out late
refused late 2 "same file as a list that the batch reads"
printf 'input,response,output,series\na.wav,ir.wav,ir.wav,late/ir.wav\n' >series.csv
batch 1 series.csv --out late
refused late 2 "same file as the response of line 2"
echo "1 1 late/ir.wav" >late.matrix
printf 'input,response,output,series\na.wav,ir.wav,ir.wav,late.matrix\n' >series.csv
batch 1 series.csv --out late
refused late 2 "same file as the response of line 2"
cmp ir.wav late/ir.wav || fail "a response was replaced"
batch 1 --inputs late/a.wav --irs ir.wav --out late --shard-size 2
refused late 2 "same file as the input of line 2"
cmp a.wav late/a.wav || fail "an input was packed"
