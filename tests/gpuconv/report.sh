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
runs --backend cpu --compare --report json in.wav ir.flac out.wav
check "$work/log/out" compare

runs --backend cpu --report text in.wav ir.flac out.wav
[ -s "$work/log/err" ] && fail "a text report on standard error: $(cat "$work/log/err")"
for word in convolution files times algorithm 'copy-in' compute 'copy-out' wall 'times real time' why; do
    grep -q -- "$word" "$work/log/out" || fail "the text report does not say $word: $(cat "$work/log/out")"
done
grep -q comparison "$work/log/out" && fail "a comparison without --compare"
runs --backend cpu --compare in.wav ir.flac out.wav
for word in comparison 'CPU direct, one core' 'CPU direct, all cores' residual excerpt; do
    grep -q "$word" "$work/log/out" || fail "--compare does not say $word: $(cat "$work/log/out")"
done

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
