#!/bin/sh
# Tests batch --rooms: a room for each row, drawn from the seed and the row's number, simulated and not written. The outputs
# are those of files from `ir synth room` with the recorded texts; the bytes depend on neither threads nor a kill.
. "$(dirname "$0")/lib.sh"

same() {
    diff -rq -x results.jsonl -x manifest.csv "$1" "$2" >"$work/log/diff" || fail "$1 and $2: $(head "$work/log/diff")"
}
# synth TEXT FILE: makes the response of a recorded room
synth() {
    # shellcheck disable=SC2046 # a room's text has no blanks and wildcards within its words
    runs ir synth room "$2" --rate 16000 $(echo "${1#room:}" | tr ' ' '\n' | sed 's/^\([a-z0-9]*\)=\(.*\)/--\1 \2/')
}

mkdir x n
for i in 0 1 2 3 4 5 6 7 8 9; do
    make_audio noise x/u$i.wav wav-16 1 16000 $((4000 + 700 * i)) 0.1
done
make_audio noise n/short.wav wav-16 1 16000 1500 0.2
make_audio noise n/long.wav wav-16 1 16000 30000 0.2
rooms='size=3:6x3:5x2.4:3 rt60=0.2:0.4 distance=0.5:2'

# The bytes depend on neither the number of threads nor where the batch is killed; results.jsonl gives them again.
set -- --inputs 'x/*.wav' --rooms "$rooms" --noises 'n/*' --snr 5:20 --early 30 --preset speech --seed 4
batch 0 "$@" --out one --workers 1
batch 0 "$@" --out three --workers 3
same one three
batch 0 one/results.jsonl --out again
same one again
for number in 1 5 9; do
    kill_once_there $number killed '*.early.wav' batch -b cpu "$@" --out killed
    batch 0 "$@" --out killed --resume
    same one killed
    rm -r killed
done
batch 0 one/manifest.csv --out one --resume
says "$work/log/err" "10 done before"
[ "$(find one -type f | wc -l)" -eq 22 ] || fail "more than outputs was written: $(find one)"
[ "$(cut -d'"' -f4 one/manifest.csv | sort -u | wc -l)" -eq 11 ] || fail "rooms are repeated: $(cat one/manifest.csv)"
batch 0 --inputs 'x/*.wav' --rooms "$rooms" --seed 5 --out seed
grep -qF "$(cut -d'"' -f4 one/manifest.csv | sed -n 2p)" seed/manifest.csv && fail "the seed changes nothing"

# A row is what a file of its room gives, with the early reflections up to 30 ms after the direct sound; its noise sounds
# from another place in the same room.
response=$(cut -d'"' -f4 one/manifest.csv | sed -n 3p)
noise=$(grep -o 'room:[^"]*' one/manifest.csv | sed -n 4p)
[ "${response%% source*}" = "${noise%% source*}" ] || fail "$response and $noise are two rooms"
case $response in *"${noise#*source=}"*) fail "noise from the place of the source: $noise" ;; esac
synth "$response" r.wav
synth "$noise" b.wav
printf 'input,response,output,noise,noise_response,snr,noise_offset,seed\n' >rows.csv
grep '"line":3,' one/results.jsonl | sed 's/.*"seed":"\([0-9]*\)","noise":"\([^"]*\)","snr":"\([^"]*\)","noise_offset":"\([^"]*\)".*/x\/u1.wav,r.wav,u1.wav,\2,b.wav,\3,\4,\1/' >>rows.csv
batch 0 rows.csv --early 30 --preset speech --out files
cmp files/u1.wav one/u1.wav || fail "a room is not its file: $(cat rows.csv)"
cmp files/u1.early.wav one/u1.early.wav || fail "the early reflections of a room are not those of its file"

# Several inputs have places of their own in one room; rows with a response keep it; lists of Kaldi and materials.
printf 'inputs,output,response\nx/u0.wav|x/u1.wav,two.wav,\nx/u2.wav,own.wav,r.wav\n' >several.csv
batch 0 several.csv --rooms 'materials=carpet pattern=cardioid channels=2 images=0.05' --out several
says several/manifest.csv '|room:size=8x6x3.2 materials=carpet source=' 'pattern=cardioid images=0.05' 'x/u2.wav","r.wav"'
printf 'u0 x/u0.wav\nu1 x/u1.wav\n' >wav.scp
batch 0 wav.scp --rooms "$rooms" --preset speech --out kaldi
says kaldi/wav.scp "u0 kaldi/u0.wav" "u1 kaldi/u1.wav"

# Heads of a SOFA set, whose file is opened once, and its change noticed.
cp "$SOURCE/tests/sofa/head.sofa" 'a head.sofa'
batch 0 --inputs 'x/u[01].wav' --rooms "$rooms sofa=a head.sofa" --preset speech --out ears
says ears/manifest.csv ' sofa=a head.sofa",'
response=$(cut -d'"' -f4 ears/manifest.csv | sed -n 2p)
synth "${response% sofa=*} sofa=$SOURCE/tests/sofa/head.sofa" e.wav
printf 'input,response\nx/u0.wav,e.wav\n' >ears.csv
batch 0 ears.csv --preset speech --out head
cmp head/u0.wav ears/u0.wav || fail "a room of ears is not its file"
batch 0 ears/manifest.csv --out ears --resume
says "$work/log/err" "2 done before"
touch 'a head.sofa'
batch 0 ears/manifest.csv --out ears --resume
says "$work/log/err" "2 of 2 files, "
grep -q "done before" "$work/log/err" && fail "rows were kept though their head has changed"

# Wrong ones.
refuses() {
    batch "$2" --inputs 'x/u0.wav' --rooms "$3" --out wrong
    says "$work/log/err" "$1"
}
refuses "--rooms: size '3:2000x3x3': metres" 2 'size=3:2000x3x3'
refuses "each from 0.1 to 1000" 2 'size=0x3x3'
refuses "rt60 '0.5:0.2': SECONDS is a number from 0.1 to 20" 2 'rt60=0.5:0.2'
refuses "'height': a room has no such key" 2 'height=3'
refuses "distance 'far'" 2 'distance=far'
refuses "channels '65': a number of receivers from 1 to 64" 2 'channels=65'
refuses "use one of rt60, absorption and materials" 2 'rt60=0.5 materials=carpet'
refuses "sofa 'a head.sofa size=3x3x3': a SOFA file, in a text the last key" 2 'sofa=a head.sofa size=3x3x3'
refuses "no.sofa" 1 'sofa=no.sofa'
refuses "ambisonic 1; use one loudspeaker" 1 'ambisonic=1 sofa=a head.sofa'
cp 'a head.sofa' wrong/h.sofa
refuses "wrong/h.sofa: is read by the batch" 2 'sofa=wrong/h.sofa'
refuses "no receiver 10 to 20 m from the source" 1 'size=3x3x3 distance=10:20'
refuses "walls that absorb 99 %" 1 'size=30x30x30 rt60=0.1'
batch 2 --inputs 'x/u0.wav' --rooms "$rooms" --irs r.wav --out wrong
says "$work/log/err" "--rooms and --irs exclude each other"
printf 'input,noise_response\nx/u0.wav,r.wav\n' >alone.csv
batch 1 alone.csv --irs r.wav --out wrong
says wrong/results.jsonl "needs a noise"
