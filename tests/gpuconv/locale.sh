#!/bin/sh
# A process whose locale has decimal commas (German) or other letters (Turkish, where I is no capital i) writes and reads the
# same bytes as in the "C" locale. Usage: locale.sh MODULE, which tests/set_locale.c became
. "$(dirname "$0")/lib.sh"
module=$1 lab=${GPUCONV%/*}/gpulab record=$SOURCE/tests/gpu/nvidia-h200-lab.json
[ -z "${SANITIZE:-}" ] || skip "a sanitizer must be loaded before LD_PRELOAD"

# The locales of the system, or built into a folder.
mkdir "$work/locales"
for name in de_DE tr_TR; do
    localedef -i "$name" -f UTF-8 "$work/locales/$name.UTF-8" >"$work/log/localedef" 2>&1 ||
        skip "localedef cannot build $name (Debian: locales): $(head -n 1 "$work/log/localedef")"
done
export LOCPATH="$work/locales"

# in_locale NAME COMMAND...
in_locale() {
    locale=$1
    shift
    GPUCONV_TEST_LOCALE=$locale LD_PRELOAD=$module "$@" # aborts if the locale is missing
}

make_audio noise in.wav wav-16 2 44100 20000 0.1
make_audio noise B.wav wav-16 1 44100 9000 0.1
make_audio noise a.wav wav-16 1 44100 9000 0.1
make_audio noise ir.wav wav-float 1 44100 2000 0.05
make_audio noise ir2.wav wav-float 1 44100 2500 0.05
cp ir.wav ir.AIFF
echo '1 1 ir.wav 1 -3.5 0.0125
1 2 ir2.wav 1 -1.25' >room.matrix
printf '/convolver/new 1 2 256 4000\n/impulse/read 1 1 0.5 0 0 0 1 ir.wav\n/impulse/dirac 1 2 0.25 7\n' >jconvolver.conf
printf 'sampling_rate: 44100;\nfilter_length: 256,16;\ncoeff "c" { filename: "taps.txt"; format: "text"; attenuation: 1.5; };\n' >brutefir.conf
printf 'input "l" { };\noutput "o" { };\nfilter "f" { inputs: "l"/1.25; outputs: "o"//0.5; coeff: "c"; };\n' >>brutefir.conf
printf '0.5\n0.25\n-0.125\n' >taps.txt
printf '/0.5\n' >bad.matrix

# work_in NAME FOLDER: runs the jobs whose results are compared
work_in() {
    name=$1 to=$2
    mkdir "$to"
    {
        in_locale "$name" "$GPUCONV" -b cpu in.wav ir.wav "$to/out.wav" --gain=-3.5 --predelay 0.0125 --trim=-40.5
        for matrix in room.matrix jconvolver.conf brutefir.conf; do
            in_locale "$name" "$GPUCONV" -b cpu a.wav "$matrix" "$to/$matrix.wav"
        done
        in_locale "$name" "$GPUCONV" -b cpu a.wav ir.AIFF "$to/OUT.AIFF"
        in_locale "$name" "$GPUCONV" ir info ir.wav ir2.wav
        in_locale "$name" "$GPUCONV" ir info ir.wav --report json
        in_locale "$name" "$GPUCONV" ir info ir.wav --csv
        in_locale "$name" "$GPUCONV" ir info ir.wav --html "$to/page.html"
        in_locale "$name" "$GPUCONV" ir info ir.wav --plot "$to/plot.svg"
        in_locale "$name" "$GPUCONV" -b cpu in.wav ir.wav "$to/loud.wav" --gain 60.5 # prints the gain that avoids clipping
        in_locale "$name" "$GPUCONV" -b cpu in.wav bad.matrix "$to/none.wav"
        in_locale "$name" "$GPUCONV" -b cpu in.wav ir.wav "$to/none.wav" --gain=-1000.5
        in_locale "$name" "$GPUCONV" batch -b cpu -q --inputs '*[aB].wav' --irs 'ir*.wav' --noises B.wav --snr 5.5:20.5 \
            --gain=-6:-1 --dry=-12.25 --early 20.5 --level rms:-26.5 --seed 3 --out "$to/wet"
        in_locale "$name" "$GPUCONV" batch -b cpu "$to/wet/manifest.csv" --dry-run --out "$to/wet"
        in_locale "$name" "$lab" report --from "$record"
        in_locale "$name" "$lab" report --from "$record" --html "$to/lab.html"
        in_locale "$name" "$lab" show transpose --markdown
    } >"$work/log/out" 2>&1
    # Without what differs between two runs of one locale: times, and the name of the folder.
    sed -e "s|$to/|TO/|g" -e '/times real time\|a second\|seconds\|predicted\|memory/d' "$work/log/out" >"$work/log/$to"
    in_locale "$name" "$GPUCONV" batch -b cpu "$to/wet/manifest.csv" --out "$to/wet" --resume >"$work/log/out" 2>"$work/log/err" ||
        fail "$name: a batch was not resumed: $(cat "$work/log/err")"
    grep -q '2 done before' "$work/log/err" || fail "$name: entries were done twice: $(cat "$work/log/err")"
    in_locale "$name" "$GPUCONV" batch -b cpu -q "$to/wet/results.jsonl" --out "$to/again" ||
        fail "$name: results.jsonl is no manifest"
    rm "$to/wet/results.jsonl" "$to/again/results.jsonl"
}
work_in C plain
for other in de_DE tr_TR; do
    work_in $other.UTF-8 $other
    diff -r plain $other >"$work/log/diff" || fail "$other: other files: $(head -c 1000 "$work/log/diff")"
    diff "$work/log/plain" "$work/log/$other" >"$work/log/diff" || fail "$other: other messages: $(head -c 1000 "$work/log/diff")"
done

# Costs that one locale writes serve another one.
for pair in 'de_DE.UTF-8 C' 'C de_DE.UTF-8'; do
    export XDG_CACHE_HOME="$work/cache of $pair"
    in_locale "${pair% *}" "$GPUCONV" calibrate >"$work/log/out" 2>&1 || fail "calibrate: $(cat "$work/log/out")"
    in_locale "${pair#* }" "$GPUCONV" -b cpu --report text in.wav ir.wav out.wav >"$work/log/out" 2>&1
    grep -q 'by the calibration' "$work/log/out" || fail "costs are not read: $(cat "$work/log/out")"
done
