#!/bin/sh
# Tests `gpuconv batch`: every entry gets the same bytes as from a command of its own, with any number of workers; invalid
# entries are listed with a reason and all other entries are done; --resume continues after a kill; memory and descriptors do
# not grow with the number of files. Argument: the number of tiny files.
. "$(dirname "$0")/lib.sh"
many=${1:-2000}

# same FOLDER FOLDER: fails unless both have the same outputs
same() {
    diff -rq -x results.jsonl -x manifest.csv "$1" "$2" >"$work/log/diff" || fail "$1 and $2: $(head "$work/log/diff")"
}

mkdir -p in/a in/b ir
i=0
while [ $i -lt 40 ]; do
    folder=a
    [ $((i % 2)) -eq 0 ] || folder=b
    make_audio noise "in/$folder/x$i.wav" wav-16 $((1 + i % 3 / 2)) 16000 $((700 + 331 * i)) 0.1
    i=$((i + 1))
done
make_audio noise ir/short.wav wav-float 1 16000 61 0.2
make_audio noise ir/long.flac flac-24 1 16000 9000 0.05
make_audio noise ir/other-rate.wav wav-16 1 48000 3000 0.1

# Patterns: the manifest that the batch writes reproduces the outputs, with any number of workers and entry by entry.
batch 0 --inputs 'in/*/*.wav' --irs 'ir/*' --seed 7 --out picked
[ "$(wc -l <picked/results.jsonl)" -eq 40 ] || fail "not 40 results: $(wc -l <picked/results.jsonl)"
[ -f picked/a/x0.wav ] || fail "outputs do not keep their folders: $(ls picked)"
[ -f picked/b/x39.wav ] || fail "outputs do not keep their folders: $(ls picked)"
for workers in 1 2 5; do
    batch 0 picked/manifest.csv --out again$workers --workers $workers
    same picked again$workers
done
sed -n '2,$s/"//gp' picked/manifest.csv | cut -d, -f1-3 | tr ',' ' ' | while read -r in ir out; do
    runs -q -b cpu --force "$in" "$ir" alone.wav
    cmp -s alone.wav "picked/$out" || fail "$in through $ir: other bytes than from a single command"
done || exit 1

# A file of several chunks, convolved directly: the chunks' boundaries must not change the order of additions.
make_audio noise chunks.wav wav-float 1 16000 600000 0.2
make_audio noise few.wav wav-float 1 16000 20 0.2
printf 'input,response,output\nchunks.wav,few.wav,chunks.wav\n' >chunks.csv
batch 0 chunks.csv --out chunks
runs -q -b cpu chunks.wav few.wav alone.wav
cmp -s alone.wav chunks/chunks.wav || fail "a file of several chunks: other bytes than from a single command"

# Files that an engine streams, whose tails begin in one chunk and end in a later one: nothing of the tail is missing.
for case in "480000 96000" "480000 80000" "960000 96000"; do
    make_audio noise streamed.wav wav-16 1 16000 "${case% *}" 0.05
    make_audio noise hall.wav wav-float 1 16000 "${case#* }" 0.005
    rm -rf streamed
    printf 'input,response,output\nstreamed.wav,hall.wav,y.wav\n' >streamed.csv
    batch 0 streamed.csv --out streamed
    runs -q -b cpu streamed.wav hall.wav alone.wav
    cmp -s alone.wav streamed/y.wav || fail "$case frames, streamed: other bytes than from a single command"
done

# As many routes as outputs, but two routes lead into one output: the other output is silence, not old buffer content.
make_audio noise two.wav wav-float 2 16000 4000 0.2
make_audio noise tap.wav wav-float 1 16000 300 0.1
printf '1 2 tap.wav\n2 2 tap.wav\n' >crossed.txt
printf 'input,response,output\ntwo.wav,crossed.txt,crossed.wav\n' >crossed.csv
batch 0 crossed.csv --out crossed
runs -q -b cpu two.wav crossed.txt alone.wav
cmp -s alone.wav crossed/crossed.wav || fail "two routes into one output: other bytes than from a single command"
batch 0 --inputs 'in/*/*.wav' --irs 'ir/*' --seed 7 --out seven
cmp -s picked/manifest.csv seven/manifest.csv || fail "the same seed picked other responses"
batch 0 --inputs 'in/*/*.wav' --irs 'ir/*' --seed 8 --out eight
cmp -s picked/manifest.csv eight/manifest.csv && fail "another seed picked the same responses"
batch 0 --inputs 'in/a/x0.wav' --irs 'ir/*' --pick all --out all
[ "$(find all -name '*.wav' | wc -l)" -eq 3 ] || fail "--pick all: $(ls all)"
batch 0 --inputs 'in/a/*.wav' --irs 'ir/*' --pick cycle --out cycle
sed -n 2,5p cycle/manifest.csv | cut -d, -f2 | tr '\n' ' ' >"$work/log/cycle"
says "$work/log/cycle" '"ir/long.flac" "ir/other-rate.wav" "ir/short.wav" "ir/long.flac"'

# Levels, parts, JSON Lines, through a unit impulse.
make_audio taps dirac.wav 1 16000 1
make_audio taps ramp.wav 1 16000 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8
cat >parts.jsonl <<'END'
{"input": "ramp.wav", "response": "dirac.wav", "output": "plain.wav"}
{"input": "ramp.wav", "response": "dirac.wav", "output": "half.wav", "wet": -12.041199826559248, "dry": -12.041199826559248}

{"input": "ramp.wav", "response": "dirac.wav", "output": "louder.wav", "gain": 6.020599913279624, "wet": -6.020599913279624}
{"input": "ramp.wav", "response": "dirac.wav", "output": "part.wav", "offset": 0.000125, "length": 0.0001875}
{"input": "ramp.wav", "response": "dirac.wav", "output": "dry.wav", "wet": -200, "dry": 0}
{"input": "ramp.wav", "response": "dirac.wav", "output": "there.wav", "offset": "random", "length": 0.000125, "seed": 3}
END
batch 0 parts.jsonl --out parts
make_audio taps half.wav 1 16000 0.05 0.1 0.15 0.2 0.25 0.3 0.35 0.4
make_audio taps part.wav 1 16000 0.3 0.4 0.5
for name in plain louder dry; do
    "$TOOLS/look_audio" near parts/$name.wav ramp.wav 1e-6 || fail "$name"
done
for name in half part; do
    "$TOOLS/look_audio" near parts/$name.wav $name.wav 1e-6 || fail "$name"
done
about parts/there.wav "2 1 16000 wav float"
batch 0 parts.jsonl --out parts2 --workers 1
same parts parts2

# A part that reaches past the end has a note, also if it begins at random; a FLAC that does not state its length is counted.
make_audio noise stated.flac flac-16 1 16000 20000 0.2
cp stated.flac unknown.flac
printf '\000\000\000\000' | dd of=unknown.flac bs=1 seek=22 conv=notrunc 2>"$work/log/dd"
cat >ends.jsonl <<'END'
{"input": "ramp.wav", "response": "dirac.wav", "output": "short.wav", "offset": 0.00025, "length": 60}
{"input": "ramp.wav", "response": "dirac.wav", "output": "behind.wav", "offset": 1, "length": 60}
{"input": "stated.flac", "response": "dirac.wav", "output": "stated.wav", "offset": "random", "length": 0.1, "seed": 3}
{"input": "unknown.flac", "response": "dirac.wav", "output": "unknown.wav", "offset": "random", "length": 0.1, "seed": 3}
{"input": "unknown.flac", "response": "dirac.wav", "output": "other.wav", "offset": "random", "length": 0.1, "seed": 4}
END
batch 1 ends.jsonl --out ends
about ends/short.wav "4 1 16000 wav float"
says ends/results.jsonl '60 s are asked for from 0.00025 s on, and 0.00025 s are there' 'behind.wav","status":"failed","reason":"ramp.wav: no samples from 1 s on'
"$TOOLS/look_audio" near ends/unknown.wav ends/stated.wav 0 || fail "a FLAC of unknown length has another offset"
cmp -s ends/unknown.wav ends/other.wav && fail "a FLAC of unknown length has the same offset for every seed"

# Ten kinds of invalid entries among ninety valid ones.
echo "this is no audio" >junk.wav
: >empty.wav
make_audio broken zero-frames nothing.wav
make_audio taps nan.wav 1 16000 0.5 nan 0.25
make_audio noise three.wav wav-16 3 16000 100 0.1
make_audio noise two.wav wav-16 2 16000 100 0.1
{
    echo "input,response,output,gain,offset"
    n=0
    while [ $n -lt 90 ]; do
        echo "in/a/x$((n % 20 * 2)).wav,ir/short.wav,good$n.wav,,"
        case $n in
        5) echo "missing.wav,ir/short.wav,bad0.wav,," ;;
        14) echo "in/a/x0.wav,no-response.wav,bad1.wav,," ;;
        23) echo "junk.wav,ir/short.wav,bad2.wav,," ;;
        32) echo "empty.wav,ir/short.wav,bad3.wav,," ;;
        41) echo "nothing.wav,ir/short.wav,bad4.wav,," ;;
        50) echo "in/a/x0.wav,nan.wav,bad5.wav,," ;;
        59) echo "two.wav,three.wav,bad6.wav,," ;;
        68) echo "in/a/x0.wav,ir/short.wav,../bad7.wav,," ;;
        77) echo "in/a/x0.wav,ir/short.wav,bad8.xyz,," ;;
        86) echo "in/a/x0.wav,ir/short.wav,bad9.wav,loud," ;;
        esac
        n=$((n + 1))
    done
    echo "in/a/x0.wav,ir/short.wav,good0.wav,,"
    echo "in/a/x0.wav,ir/short.wav,late.wav,,1000"
} >mixed.csv
batch 1 mixed.csv --out mixed
[ "$(find mixed -name 'good*.wav' | wc -l)" -eq 90 ] || fail "not every valid entry was done"
[ "$(find mixed -name 'bad*' | wc -l)" -eq 0 ] || fail "an invalid entry left a file: $(find mixed -name 'bad*')"
[ -e bad7.wav ] && fail "an output was written outside the folder"
[ "$(grep -c '"status":"failed"' mixed/results.jsonl)" -eq 12 ] || fail "not 12 failures: $(grep failed mixed/results.jsonl)"
[ "$(grep -c '"status":"done"' mixed/results.jsonl)" -eq 90 ] || fail "not 90 done"
says mixed/results.jsonl 'missing.wav: No such file' 'no-response.wav: No such file' 'junk.wav' 'empty.wav' \
    'nothing.wav: holds no frames' 'not finite' 'three.wav: 3 channels' 'below the batch' 'bad8.xyz: the extension' "a number, or a range LOW:HIGH with LOW up to HIGH, not 'loud'" \
    "earlier entry has the output 'good0.wav'" 'no samples from 1000 s'
says "$work/log/err" '12 failed'
batch 1 mixed.csv --out quiet -q
says "$work/log/err" 'failed like this' 'No such file or directory'
[ "$(grep -c 'failed like this' "$work/log/err")" -eq "$(wc -l <"$work/log/err")" ] || fail "-q prints more: $(cat "$work/log/err")"
batch 1 mixed.csv --out fast --fail-fast --workers 1
[ "$(wc -l <fast/results.jsonl)" -le 8 ] || fail "--fail-fast did not stop: $(wc -l <fast/results.jsonl) results"

# Killed while running: existing outputs are complete, --resume does the remaining entries, and no entry twice.
{
    echo "input,response,output"
    n=0
    while [ $n -lt "$many" ]; do
        echo "in/a/x$((n % 10 * 2)).wav,ir/short.wav,$((n % 7))/t$n.wav"
        n=$((n + 1))
    done
} >tiny.csv
batch 0 tiny.csv --out whole
kill_once_there $((many / 10)) cut 't*.wav' batch -b cpu -q tiny.csv --out cut
told_done cut >"$work/log/before"
done=$(wc -l <"$work/log/before")
[ "$done" -gt 0 ] || fail "killed before an entry was done"
[ "$done" -lt "$many" ] || echo "the batch ended before it was killed: --resume has nothing to do"
batch 0 tiny.csv --out cut --resume
same whole cut
told_done cut >"$work/log/after"
[ "$(comm -23 "$work/log/before" "$work/log/after" | wc -l)" -eq 0 ] || fail "an entry was done twice"
[ "$(grep '"status":"done"' cut/results.jsonl | sed 's/.*"output":"//; s/".*//' | sort | uniq -d | wc -l)" -eq 0 ] ||
    fail "an entry has two results"
batch 0 tiny.csv --out cut --resume
says "$work/log/err" "$many done before"

# Memory does not depend on the number of files, and no descriptor stays open.
case $SANITIZE in
*address* | *thread*) echo "memory: not measured under a sanitizer" ;;
*)
    head -n 201 tiny.csv >few.csv
    "$TOOLS/measure" "$work/log/few" "$GPUCONV" batch -b cpu -q --workers 2 few.csv --out few || fail "few"
    # shellcheck disable=SC3045 # every shell that this runs in has it
    (ulimit -n 32 && "$TOOLS/measure" "$work/log/many" "$GPUCONV" batch -b cpu -q --workers 2 tiny.csv --out many) || fail "many"
    echo "memory: $(cat "$work/log/few") KiB for 200 files, $(cat "$work/log/many") KiB for $many"
    # An entry is 112 bytes, its three short names 96, its place in the hash tables and the list of entries to do up to 80.
    [ $(($(cat "$work/log/many") - $(cat "$work/log/few"))) -lt $((6144 + many * 300 / 1024)) ] ||
        fail "memory grows with the number of files"
    ;;
esac

rm -rf whole cut few many # the following checks list all files
refuses 2 "--out" batch tiny.csv
refuses 2 "a manifest, or" batch --out o
refuses 2 "a manifest, or" batch tiny.csv --inputs 'in/*' --irs 'ir/*' --out o
refuses 2 "--pick" batch --inputs 'in/*' --irs 'ir/*' --pick best --out o
refuses 2 "--device" batch tiny.csv --out o --device one
refuses 1 "nowhere.csv" batch nowhere.csv --out o
refuses 1 "no file matches" batch --inputs 'none/*' --irs 'ir/*' --out o
echo "name,thing" >columns.csv
refuses 1 "is not a column" batch columns.csv --out o
echo "input" >columns.csv
refuses 1 "must name the columns" batch columns.csv --out o
