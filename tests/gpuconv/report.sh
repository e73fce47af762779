#!/bin/sh
# Checks reports: JSON parses and is complete, text goes to standard output only, and --quiet prints nothing.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 2 44100 100000 0.1
make_audio noise ir.flac flac-16 2 44100 2000 0.02

check() {
    "$TOOLS/check_report" "$@" || fail "$(cat "$1")"
}

for algorithm in auto direct overlap-save partitioned; do
    runs --backend cpu --algorithm $algorithm --report json in.wav ir.flac out.wav
    check "$work/log/out"
    [ -s "$work/log/err" ] && fail "standard error: $(cat "$work/log/err")"
    grep -q '"output frames": 101999' "$work/log/out" || fail "no count of frames: $(cat "$work/log/out")"
    [ $algorithm = auto ] || grep -q "\"algorithm\": \"$algorithm\"" "$work/log/out" || fail "not by $algorithm"
done
# --compare computes the job again in other ways. Its sentences agree with its rows (check_report), a small job is computed
# whole, of a long one parts that are marked, and nothing but OUT is written.
cp out.wav want.wav
before=$(state)
runs --backend cpu -a partitioned --compare=60 --report json in.wav ir.flac out.wav
check "$work/log/out" compare
grep -q 'of it)' "$work/log/out" && fail "a small job is not computed whole: $(cat "$work/log/out")"
grep -q '"label": "directly"' "$work/log/out" || fail "--compare has no direct sums: $(cat "$work/log/out")"
cmp out.wav want.wav || fail "--compare changes the output"
[ "$(state)" = "$before" ] || fail "--compare changes the folder: $(ls -lA)"
make_audio noise long.wav wav-16 1 44100 220500 0.1
make_audio noise long-ir.wav wav-float 1 44100 110250 0.002
runs --backend cpu --compare=0.1 --report json long.wav long-ir.wav long-out.wav
check "$work/log/out" compare
grep -q 'directly .* x, from .* of it)' "$work/log/out" || fail "a part is not marked: $(cat "$work/log/out")"

runs --backend cpu --report text in.wav ir.flac out.wav
[ -s "$work/log/err" ] && fail "a text report on standard error: $(cat "$work/log/err")"
for word in convolution files times algorithm 'copy-in' compute 'copy-out' wall 'times real time' why; do
    grep -q -- "$word" "$work/log/out" || fail "the text report does not say $word: $(cat "$work/log/out")"
done
grep -q comparison "$work/log/out" && fail "a comparison without --compare"
runs --backend cpu --compare --quiet in.wav ir.flac out.wav
head -n 1 "$work/log/out" | grep -q '^[a-z0-9 ]*: [0-9.]* [mu]*s for 2.27 s; .*directly .* ([0-9. ]* \(x\|times as fast\).*); outputs differ by -[0-9]* dB$' ||
    fail "--compare does not begin with its sentence: $(cat "$work/log/out")"
sed -n 2p "$work/log/out" | grep -q ' for 2.27 s from file to file; ' || fail "no sentence on files: $(cat "$work/log/out")"
[ "$(grep -c ' for 2.27 s' "$work/log/out")" -eq 2 ] || fail "--compare prints a sentence twice: $(cat "$work/log/out")"
for word in comparison residual 'measured on' 'all of it'; do
    grep -q "$word" "$work/log/out" || fail "--compare does not say $word: $(cat "$work/log/out")"
done
[ -s "$work/log/err" ] && fail "--compare on standard error: $(cat "$work/log/err")"
runs --compare=0.1 --input-raw 44100,1,s16 -b cpu in.wav ir.flac out.wav
cp in.wav same.wav
refuses 1 "same.wav: comparing reads" --compare in.wav same.wav same.wav --force
refuses 1 "same.wav: comparing reads" --compare same.wav ir.flac same.wav
refuses 2 "--compare '0'" --compare=0 in.wav ir.flac out.wav
refuses 2 "standard output cannot take both" --compare in.wav ir.flac -

# Prints nothing without a report, and with --quiet even if the output clips and the response is resampled.
runs --backend cpu in.wav ir.flac out.wav
[ -s "$work/log/out" ] || [ -s "$work/log/err" ] && fail "not silent: $(cat "$work/log/out" "$work/log/err")"
make_audio noise other.flac flac-16 2 48000 2000 0.5
runs --backend cpu --gain 40 --quiet in.wav other.flac out.wav
[ -s "$work/log/out" ] || [ -s "$work/log/err" ] && fail "--quiet: $(cat "$work/log/out" "$work/log/err")"
# shellcheck disable=SC2154
quietly "$GPUCONV" --quiet missing.wav ir.flac out.wav && fail "a missing input is no failure"
one_line "missing.wav"

# A file name with invalid UTF-8 does not break the report.
odd=$(printf 'odd\377name.wav')
cp in.wav "$odd"
runs --backend cpu --report json "$odd" ir.flac out.wav
check "$work/log/out"
