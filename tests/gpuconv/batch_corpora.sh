#!/bin/sh
# Tests corpora of a batch: lists of Kaldi, lhotse and folders with metadata, with lists of the outputs; unquoted
# patterns and **; shards in and out, killed and resumed; other containers; a manifest from results.jsonl.
. "$(dirname "$0")/lib.sh"

# frames FILE COUNT: fails unless the file has this length
frames() {
    [ "$("$TOOLS/look_audio" about "$1" | cut -d' ' -f1)" = "$2" ] || fail "$1: $("$TOOLS/look_audio" about "$1")"
}
# same FOLDER FOLDER: fails unless both have the same outputs
same() {
    diff -rq -x results.jsonl -x manifest.csv "$1" "$2" >"$work/log/diff" || fail "$1 and $2: $(head "$work/log/diff")"
}

mkdir -p c/a/b ir n
for i in 0 1 2 3; do
    make_audio noise c/a/x$i.flac flac-16 1 16000 $((4000 + 700 * i)) 0.1
    make_audio noise c/a/b/y$i.wav wav-16 1 16000 $((3000 + 700 * i)) 0.1
done
make_audio noise ir/h0.wav wav-float 1 16000 900 0.05
make_audio noise ir/h1.wav wav-float 1 16000 700 0.05
make_audio noise n/short.wav wav-16 1 16000 1500 0.2
make_audio noise n/long.wav wav-16 1 16000 30000 0.2

# Everything that is drawn is in results.jsonl, from which the same bytes come; the words of the shell keep their folders.
options="--preset speech --snr 5:20 --level rms:-26 --gain -3:0 --early 30 --format flac --seed 4"
# shellcheck disable=SC2086 # several words
batch 0 --inputs c/a/*.flac c/a/b/*.wav --irs ir/*.wav --noises n/*.wav $options --out drawn
# shellcheck disable=SC2086
batch 0 --inputs 'c/**/*.flac' 'c/**/*.wav' --irs 'ir/*' --noises 'n/*' $options --out quoted
batch 0 drawn/results.jsonl --out again --workers 1
same drawn again
batch 0 drawn/manifest.csv --out again2 --workers 3
same drawn again2
[ -f drawn/b/y3.early.flac ] || fail "outputs: $(find drawn)"
[ -f quoted/a/b/y3.flac ] || fail "** does not go deeper: $(find quoted)"
frames drawn/x0.flac 4000
batch 0 drawn/manifest.csv --out drawn --resume
says "$work/log/err" "8 done before"
rm drawn/x1.early.flac
batch 0 drawn/manifest.csv --out drawn --resume
says "$work/log/err" "7 done before"
batch 0 drawn/manifest.csv --out nothing --dry-run
says "$work/log/out" "x0.flac * ir/h" "8 rows; nothing was written"
[ ! -e nothing ] || fail "--dry-run wrote a folder"

# Kaldi: segments, probabilities, commands are refused.
mkdir k
printf 'u0 c/a/x0.flac\nu1 c/a/b/y1.wav\nu2 sox c/a/x2.flac -t wav - |\n' >k/wav.scp
printf 's0 u0 0.05 0.2\ns1 u1 0 -1\ns2 u9 0 1\ns3 u2 0 1\n' >k/segments
printf -- '--rir-id a --room-id r --probability 1 ir/h0.wav\n--rir-id b --room-id r --probability 0 ir/h1.wav\n' >k/rir_list
batch 1 k --irs k/rir_list --preset speech --out ko
says ko/wav.scp "s0 ko/s0.wav" "s1 ko/s1.wav"
[ "$(wc -l <ko/wav.scp)" -eq 2 ] || fail "wav.scp: $(cat ko/wav.scp)"
says ko/results.jsonl "gpuconv runs no commands" "wav.scp does not have: 'u9'"
grep -q 'ir/h1.wav' ko/results.jsonl && fail "a response of probability 0 was picked"
frames ko/s0.wav 2400
# lines FILE TEXT: fails unless the file has exactly these lines
lines() {
    printf "%b" "$2" >"$work/log/want"
    cmp "$1" "$work/log/want" || fail "$1: $(cat "$1")"
}
lines ko/utt2spk 's0 s0\ns1 s1\n'
lines ko/segments 's0 s0 0 0.15\ns1 s1 0 0.23125\n'
[ ! -e ko/text ] || fail "a text without one among the inputs"
printf 's3  x\ty \ns1\ns0 a b\n' >k/text
printf 's1 sam\ns0 sam\ns2 sue\ns3 sue\n' >k/utt2spk
batch 1 k --irs ir/h0.wav ir/h1.wav --pick all --preset speech --absolute --out kp
lines kp/text 's0-h0 a b\ns0-h1 a b\ns1-h0 \ns1-h1 \n'
lines kp/utt2spk 's0-h0 sam\ns0-h1 sam\ns1-h0 sam\ns1-h1 sam\n'
lines kp/spk2utt 'sam s0-h0 s0-h1 s1-h0 s1-h1\n'
says kp/wav.scp "s1-h1 $PWD/kp/s1-h1.wav"
printf 's1 m\n' >k/spk2gender
: >k/feats.scp
cp k/segments k/kept
make_audio noise k/two.wav wav-16 2 16000 4000 0.1
printf 'u0 c/a/x0.flac\nu1 k/two.wav\n' >k/wav.scp
printf 's0 u0 0 0.1 0\ns1 u1 0 0.1 1\ns2 u1 0 0.1 0\ns3 u1 0 0.1 -1\ns4 u0 0 0.1 1\ns5 u0 0 0.1 left\n' >k/segments
rm k/text k/utt2spk
batch 1 k --irs ir/h0.wav --preset speech --out kc
says "$work/log/err" "k/wav.scp: not carried over into the list of the outputs: spk2gender, feats.scp"
lines kc/segments 's0 s0 0 0.1\ns3 s3 0 0.1\n'
[ "$(grep -c 'one channel of a recording is not read' kc/results.jsonl)" -eq 3 ] || fail "channels: $(cat kc/results.jsonl)"
says kc/results.jsonl "a number from 0, or -1, not 'left'"
# A file that is named twice: the first output is listed, whichever line of results.jsonl comes last.
rm k/segments
printf 'u0 c/a/x0.flac\nu0 c/a/x0.flac\n' >k/wav.scp
batch 1 k --irs ir/h0.wav --preset speech --out kd --workers 1
says kd/wav.scp "u0 kd/u0.wav"
batch 1 k --irs ir/h0.wav --preset speech --out kd --workers 1 --resume
says "$work/log/err" "1 done before"
mv k/kept k/segments
batch 2 k --preset speech --out none
says "$work/log/err" "k: names no responses; add --irs"
[ ! -e none ] || fail "a list without responses was begun"
batch 2 k --irs k/rir_list --out k
says "$work/log/err" "is read by the batch and lies in k, the folder of its outputs"

# lhotse, compressed; one source is a command.
{
    echo '{"id":"r0","sources":[{"type":"file","channels":[0],"source":"c/a/x0.flac"}],"sampling_rate":16000,"num_samples":4000,"duration":0.25}'
    echo '{"id":"r1","sources":[{"type":"command","channels":[0],"source":"cat x"}],"sampling_rate":16000,"num_samples":4000,"duration":0.25}'
} | gzip >r.jsonl.gz
batch 1 r.jsonl.gz --irs ir/h0.wav --preset speech --format flac --out ro
gzip -dc ro/recordings.jsonl.gz >recordings
says recordings '"id":"r0_rvb"' '"source":"ro/r0.flac"' '"num_samples":4000'
says ro/results.jsonl "only files are read"
echo '{"id":"c0","start":0.1,"duration":0.1,"channel":0,"supervisions":[{"id":"s","text":"hello"}],"recording":{"id":"r0","sources":[{"type":"file","channels":[0],"source":"c/a/x0.flac"}],"sampling_rate":16000,"num_samples":4000,"duration":0.25},"type":"MonoCut"}' >cuts.jsonl
batch 0 cuts.jsonl --irs ir/h0.wav --preset speech --out co
gzip -dc co/cuts.jsonl.gz >cuts
says cuts '"text":"hello"' '"duration":0.1' '"num_samples":1600'

# A cut that ends behind its recording: its supervisions end with it, and one that begins behind it goes.
sed 's/"duration":0.1,"channel":0,"supervisions":\[{"id":"s"/"duration":60,"channel":0,"supervisions":[{"id":"late","start":1,"duration":1},{"id":"in","start":0.01,"duration":0.02},{"id":"s","start":0.05,"duration":59/' cuts.jsonl >longer.jsonl
batch 0 longer.jsonl --irs ir/h0.wav --preset speech --out cl
gzip -dc cl/cuts.jsonl.gz >cuts
says cuts '"supervisions":[{"id":"in_rvb","start":0.01,"duration":0.02,' '{"id":"s_rvb","start":0.05' '"duration":0.0999' '"duration":0.1499'
grep -q 'late' cuts && fail "a supervision of nothing: $(cat cuts)"
says "$work/log/err" "c0.wav: shorter than the part that its list asks for"

# The level of the input, as lhotse has it, excludes another one.
batch 0 --inputs c/a/x0.flac --irs ir/h0.wav --preset speech --level-match --out matched
says matched/results.jsonl '"level":"input:0"'
refuses 2 "--level and --level-match exclude" batch --inputs c/a/x0.flac --irs ir/h0.wav --level rms:-20 --level-match --out none

# As lhotse's qa.validate demands: the supervisions belong to the recording and channel of the output, and identifiers are
# those of no other list, also with several responses for each input.
sed -i 's/"id":"s"/"id":"s","recording_id":"r0","channel":1/' cuts.jsonl
# listed IDS...: fails unless the list of the last batch has each of them as recording, cut and supervision
listed() {
    gzip -dc vo/cuts.jsonl.gz >cuts
    [ "$(wc -l <cuts)" -eq $# ] || fail "cuts: $(cat cuts)"
    for id; do
        says cuts "\"supervisions\":[{\"id\":\"s${id#c0}\",\"recording_id\":\"$id\",\"channel\":0,\"text\":\"hello\"}]" \
            "\"id\":\"$id\",\"start\":0" "\"recording\":{\"id\":\"$id\""
    done
}
batch 0 cuts.jsonl --irs ir/h0.wav --preset speech --out vo
listed c0_rvb
batch 0 cuts.jsonl --irs ir/h0.wav --preset speech --out vo --id-suffix none
listed c0
refuses 2 "is not UTF-8" batch cuts.jsonl --irs ir/h0.wav --out none --id-suffix "$(printf '\377')"
batch 0 cuts.jsonl --irs ir/h0.wav ir/h1.wav --pick all --preset speech --out vo
listed c0-h0_rvb c0-h1_rvb

# Files that clip, or have samples that are not finite, are named.
make_audio noise loud.wav wav-16 1 16000 900 0.9
make_audio noise bad.wav wav-float 1 16000 900 0.1
printf '\000\000\300\177' | dd of=bad.wav bs=4 seek=300 conv=notrunc 2>/dev/null # a NaN
batch 0 --inputs loud.wav c/a/x0.flac bad.wav --irs ir/h0.wav --gain 60 -e s16 --out named
says "$work/log/err" "loud.wav and 2 other files: samples clipped" "bad.wav: samples that are not finite"
batch 2 --inputs loud.wav --irs ir/h0.wav --noises bad.wav --snr 20:5 --out none
says "$work/log/err" "snr is a number, or a range LOW:HIGH with LOW up to HIGH, not '20:5'"

# A folder with metadata.csv; other columns are kept.
mkdir -p hf/train
cp c/a/x0.flac hf/train
printf 'transcription,file_name\n"a, ""b""",train/x0.flac\n' >hf/metadata.csv
batch 0 hf --irs ir/h0.wav --preset speech --format flac --out ho
says ho/metadata.csv 'train/x0.flac,"a, ""b"""'
refuses 1 "without metadata.csv" batch c --irs ir/h0.wav --out none

# TSV, and damaged compression.
printf 'input\tresponse\toutput\nc/a/x0.flac\tir/h0.wav\tt.wav\n' >t.tsv
batch 0 t.tsv --out to
[ -f to/t.wav ] || fail "TSV"
gzip -c t.tsv | head -c 40 >cut.tsv.gz
refuses 1 "compression is damaged" batch cut.tsv.gz --out none
refuses 2 "--snr" batch --inputs c/a/x0.flac --irs ir/h0.wav --noises n/long.wav --out none
refuses 2 "--snr needs noise" batch --inputs c/a/x0.flac --irs ir/h0.wav --snr 5 --out none
refuses 2 "--segments is for a wav.scp" batch --inputs c/a/x0.flac --irs ir/h0.wav --segments none --out none

# A row that fills a column which means nothing without another one fails.
for cell in snr,5 noise_offset,1 gains,-3 starts,1; do
    printf 'input,response,%s\nc/a/x0.flac,ir/h0.wav,%s\n' "${cell%,*}" "${cell#*,}" >alone.csv
    batch 1 alone.csv --out alone
    grep -Eq 'needs a noise|are those of inputs or responses' alone/results.jsonl || fail "$cell: $(cat alone/results.jsonl)"
    rm -r alone
done
refuses 2 "--level" batch t.tsv --level loud --out none
refuses 2 "--align" batch t.tsv --align middle --out none

# Shards: the same bytes as loose files, killed and resumed; members that belong to a sample are copied.
mkdir samples sh
i=0
while [ $i -lt 60 ]; do
    make_audio noise samples/s$i.flac flac-16 1 16000 $((2000 + 100 * (i % 7))) 0.1
    echo "text $i" >samples/s$i.txt
    i=$((i + 1))
done
echo junk >samples/s7.flac
# pack SHARD FIRST LAST: makes a shard of samples, each with its text
pack() {
    seq "$2" "$3" | sed 's/.*/s&.flac\ns&.txt/' >"$work/log/members"
    tar cf "$1" -C samples -T "$work/log/members" || fail "tar"
}
pack sh/0.tar 0 29
pack sh/1.tar 30 59
batch 1 --inputs sh/0.tar sh/1.tar --irs ir/*.wav --preset speech --format flac --out loose
batch 1 --inputs sh/0.tar sh/1.tar --irs ir/*.wav --preset speech --format flac --out packed --shard-size 9
[ "$(wc -l <loose/results.jsonl)" -eq 60 ] || fail "not 60 results: $(cat "$work/log/err")"
[ "$(find packed -name '*.flac' | wc -l)" -eq 0 ] || fail "files are left: $(ls packed)"
[ "$(find packed -name '*.tar' | wc -l)" -eq 7 ] || fail "not 7 shards: $(ls packed)"
mkdir unpacked
for shard in packed/*.tar; do
    tar xf "$shard" -C unpacked
done
for output in loose/*.flac; do
    cmp -s "$output" "unpacked/${output#loose/}" || fail "$output: other bytes in the shard"
done
[ "$(cat unpacked/s30.txt)" = "text 30" ] || fail "the text of a sample is not in its shard"
kill_once_there 1 killed 000001.tar batch -b cpu -q loose/manifest.csv --out killed --shard-size 9 --workers 1
batch 1 loose/manifest.csv --out killed --shard-size 9 --resume
for shard in packed/*.tar; do
    cmp -s "$shard" "killed/${shard#packed/}" || fail "$shard: other bytes after --resume"
done
batch 1 loose/manifest.csv --out killed --shard-size 9 --resume
says "$work/log/err" "59 done before"
cp samples/s8.flac samples/s7.flac
pack sh/0.tar 0 29
batch 0 loose/manifest.csv --out killed --shard-size 9 --resume
tar tf killed/000000.tar >"$work/log/members"
says "$work/log/members" s7.flac s8.flac

# A sample with two sounds has its texts once, texts that do not stand beside their sound are copied, and names are bytes in every
# locale.
umlaut=$(printf '\303\244')
latin=$(printf '\344')
for name in a.left.wav a.right.wav b.wav "$umlaut".wav "$latin".wav; do cp samples/s1.flac "samples/$name"; done
for name in a.txt a.json b.txt "$umlaut".txt "$latin".txt; do echo "$name" >"samples/$name"; done
printf '%s\n' a.left.wav a.right.wav b.wav a.txt "$umlaut".wav a.json b.txt "$umlaut".txt "$latin".wav "$latin".txt >"$work/log/members"
tar cf mixed.tar -C samples -T "$work/log/members" || fail "tar"
tar cf mixed-pax.tar --format=pax -C samples -T "$work/log/members" || fail "tar"
for shard in mixed mixed-pax; do
    for locale in C C.UTF-8; do
        rm -rf mixed
        LC_ALL=$locale batch 0 --inputs $shard.tar --irs ir/h0.wav --out mixed --shard-size 20
        printf '%s\n' a.left.wav a.txt a.json a.right.wav b.wav b.txt "$umlaut".wav "$umlaut".txt "$latin".wav "$latin".txt >"$work/log/want"
        LC_ALL=C tar tf mixed/000000.tar --quoting-style=literal 2>/dev/null >"$work/log/members"
        cmp "$work/log/members" "$work/log/want" || fail "$shard in $locale: $(cat "$work/log/members")"
        [ "$(tar xOf mixed/000000.tar b.txt)" = b.txt ] || fail "the text of another sample"
    done
done

# A file that ends before its header says fails, in a slot as well as streamed (each output is a sum of routes).
make_audio noise whole.flac flac-16 2 16000 60000 0.1
make_audio noise two-routes.wav wav-float 4 16000 300 0.1
make_audio noise one-route.wav wav-float 1 16000 300 0.1
head -c 120000 whole.flac >half.flac
for response in two-routes one-route; do
    for mix in "" "--level rms:-20"; do
        # shellcheck disable=SC2086 # two words or none
        batch 1 --inputs half.flac --irs $response.wav --preset speech --format flac --out half-$response $mix
        says half-$response/results.jsonl 'half.flac: ' 'ends after' 'of 60000 frames'
        [ ! -e half-$response/half.flac ] || fail "a damaged input left an output ($response $mix)"
    done
done

# FLAC at each level has the bytes of flac -LEVEL, and other formats have no levels.
refuses 2 "--compression '9': must be 0 to 8" batch --inputs c/a/x0.flac --irs ir/h0.wav --format flac --compression 9 --out none
batch 1 --inputs c/a/x0.flac --irs ir/h0.wav --compression 3 --out none
says none/results.jsonl "levels of compression are FLAC's"
if command -v flac >"$work/log/which"; then
    for level in 0 1 2 3 4 5 6 7 8; do
        batch 0 --inputs c/a/x0.flac --irs ir/h0.wav --format flac --compression $level --out level$level
        flac -s -d -f level$level/x0.flac -o decoded.wav || fail "flac -d"
        flac -s -f -$level --no-padding --no-seektable decoded.wav -o recoded.flac || fail "flac -$level"
        cmp level$level/x0.flac recoded.flac || fail "--compression $level: other bytes than flac -$level"
    done
    cmp level0/x0.flac level8/x0.flac >"$work/log/cmp" && fail "--compression changes nothing"
fi

# Other containers, where the module is there.
make_audio noise x.ogg ogg 1 16000 9000 0.1
batch 0 --inputs x.ogg --irs ir/h0.wav --format opus --preset speech --out opus
[ -f opus/x.opus ] || fail "no opus: $(ls opus)"
batch 0 --inputs opus/x.opus --irs ir/h0.wav --format flac --preset speech --out from-opus
head -c 3000 /dev/urandom >junk.m4a
batch 1 --inputs junk.m4a c/a/x0.flac --irs ir/h0.wav --out junk
says "$work/log/err" "1 failed like this: junk.m4a: not readable as audio"
if command -v ffmpeg >"$work/log/which" && [ -e "$(dirname "$GPUCONV")/gpuconv-media.so" ]; then
    make_audio noise even.wav wav-16 1 16000 8000 0.1 # M4A states the length in milliseconds
    for kind in m4a mp3; do
        ffmpeg -loglevel error -y -i even.wav x3.$kind || continue
        batch 0 --inputs x3.$kind --irs ir/h0.wav --format flac --preset speech --out from-$kind
        [ -f from-$kind/x3.flac ] || fail "no output from $kind"
    done
    frames from-m4a/x3.flac 8000
fi
exit 0
