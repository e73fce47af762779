#!/bin/sh
# Benchmarks verify their outputs, report peak rates and ratios, and draw; an unknown case is refused.
. "$(dirname "$0")/lib.sh"

# holds TEXT...: fails unless the report contains each text
holds() {
    for text in "$@"; do
        grep -qF -- "$text" "$work/log/out" || fail "the report does not contain '$text': $(cat "$work/log/out")"
    done
}

runs bench --backend cpu --frames 20000 --taps 100 --runs 3
holds 'cpu multiply-add loop' TFLOP/s 'cpu copy' GB/s 'own case: cpu, direct' 'own case: cpu, overlap-save' \
    'own case: cpu, partitioned' 'x copy' '% of loop' 'error dB' chosen
runs bench --backend cpu --frames 20000 --taps 100 --channels 2 --algorithm direct --runs 3 --threads 1 --report json
"$TOOLS/check_report" "$work/log/out" bench || fail "$(cat "$work/log/out")"
grep -q overlap-save "$work/log/out" && fail "an algorithm that was not requested is reported"

runs bench --backend cpu --frames 5000 --sweep taps --most 64 --runs 3 --report json
"$TOOLS/check_report" "$work/log/out" sweep || fail "$(cat "$work/log/out")"
[ "$(grep -c '"chosen / best"' "$work/log/out")" -eq 7 ] || fail "not seven lengths: $(cat "$work/log/out")"
for algorithm in direct overlap-save partitioned matrix; do
    grep -q "\"$algorithm ms\"" "$work/log/out" || fail "the sweep has no $algorithm: $(cat "$work/log/out")"
done
runs bench --backend cpu --taps 50 --sweep frames --most 4096 --runs 3
holds sweep 'chosen / best'

for taps in 50 3000; do
    runs bench --backend cpu --frames 200000 --taps $taps --channels 2 --stream --runs 3
    holds streams 'own case: cpu, float' 'own case: cpu, s16' Mframes/s 's16 against float'
done

runs bench --help
holds 'gpuconv bench'
runs bench --list
holds '2^23 x 512' '60 min stereo x 3 s'
refuses 2 "no such case" bench --case nonsense
refuses 2 "--runs" bench --runs 2
refuses 2 "--frames" bench --frames 0
refuses 2 "--sweep" bench --sweep sideways
refuses 2 "--plot needs --sweep" bench --plot out.svg
refuses 2 "--peers" bench --stream --peers
refuses 2 "--stream" bench --stream --sweep taps
refuses 1 "a matrix is measured without --stream" bench -b cpu --stream --case '16 x 16 x 1 s over 60 s'
refuses 2 "--backend" bench --backend gpu
refuses 2 "takes options only" bench in.wav
refuses 2 "--nonsense" bench --nonsense

if command -v gnuplot >"$work/log/out"; then
    for type in svg png; do
        runs bench --backend cpu --frames 2000 --sweep taps --most 8 --runs 3 --plot out.$type
        [ -s out.$type ] || fail "no out.$type"
    done
    runs bench --backend cpu --frames 20000 --taps 100 --runs 3 --roofline roof.svg
    grep -q 'convolutions' roof.svg || fail "the roofline has no label convolutions"
    grep -q 'cpu, matrix' out.svg || fail "the drawing has no label matrix"
    refuses 1 "nowhere/out.svg" bench --backend cpu --frames 2000 --sweep taps --most 8 --runs 3 --plot nowhere/out.svg
else
    refuses 1 gnuplot bench --backend cpu --frames 2000 --sweep taps --most 8 --runs 3 --plot out.svg
fi
