#!/bin/sh
# bench rt processes blocks at the pace of the clock, verifies the output, reports the times and draws them.
. "$(dirname "$0")/lib.sh"

# holds TEXT...: fails unless the report contains each text
holds() {
    for text in "$@"; do
        grep -qF -- "$text" "$work/log/out" || fail "the report does not contain '$text': $(cat "$work/log/out")"
    done
}

runs bench rt --seconds 0.4 --length 0.3 --channels 3
holds 'real time' 'deadline us' 'median us' '99.9 % us' 'worst part' missed 'CPU %' 'error dB' 'block times' directly
holds 'columns' 'blocks that took longer than the deadline' 'no block was missed'
runs bench rt --seconds 0.2 --length 0.05 --block 512 --rate 44100 --report json
holds '"error dB"' '"kept up"'
# The verdict agrees with the times: where the worst block takes longer than its deadline, blocks are missed. 1024 channels in 40
# microseconds are too many for any machine.
for shape in "--channels 1024 --block 4 --rate 96000" "--channels 2 --block 4096"; do
    # shellcheck disable=SC2086 # options and their values
    runs bench rt --seconds 0.1 --length 0.01 $shape --report json
    awk -F '[:,]' '/"worst part"/ { worst = $2 } /"missed"/ { missed = $2 } /"kept up"/ { kept = $2 }
        END { exit !((worst > 1) == (missed > 0) && (kept == 1) == (missed == 0)) }' "$work/log/out" ||
        fail "$shape: times and verdict differ: $(cat "$work/log/out")"
done
runs bench rt --seconds 0.2 --length 0.1 --matrix 8x6
holds 'cpu, 8 x 6, 4800 frames' 'matrix products' 'error dB'
for matrix in 8 x8 8x 0x8 8x1025 8x8x8 axb; do
    refuses 2 "--matrix $matrix: is INPUTSxOUTPUTS" bench rt --matrix $matrix
done
runs bench rt --seconds 0.5 --moving "$SOURCE/tests/sofa/head.sofa" --channels 11 --block 128
holds 'cpu, 11 moving sources, 187 blocks of 128' missed 'error dB'
refuses 2 "--moving needs" bench rt --moving "$SOURCE/tests/sofa/head.sofa" --matrix 2x2
refuses 2 "--moving needs" bench rt --moving "$SOURCE/tests/sofa/head.sofa" --backend both
refuses 2 "with --moving to 16384" bench rt --moving "$SOURCE/tests/sofa/head.sofa" --channels 16385
refuses 1 "missing.sofa" bench rt --moving missing.sofa
runs bench rt --help
holds 'gpuconv bench rt'
refuses 2 "--channels" bench rt --channels 0
refuses 2 "--length" bench rt --length 0
refuses 2 "takes options only" bench rt now
refuses 2 "--nonsense" bench rt --nonsense
if command -v gnuplot >"$work/log/which"; then
    runs bench rt --seconds 0.2 --length 0.1 --plot times.svg
    grep -q 'deadline' times.svg || fail "the drawing has no label deadline"
fi
