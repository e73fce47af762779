#!/bin/sh
# Without a GPU: a request for the GPU is refused with one line. By default the command uses the CPU, and a build with CUDA
# prints one note if a GPU would have been faster.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 1 44100 50000 0.1
make_audio taps ir.wav 1 44100 1 0.5
if quietly "$GPUCONV" --backend cuda in.wav ir.wav out.wav; then
    skip "there is a GPU here"
fi
rm -f out.wav
refuses 1 "" --backend cuda in.wav ir.wav out.wav
printf 'input,response\nin.wav,ir.wav\n' >list.csv
refuses 1 "" batch --backend cuda list.csv --out batch
grep -q "no CUDA backend" "$work/log/err" && built= || built=yes
runs in.wav ir.wav out.wav
[ -s "$work/log/err" ] && fail "a short job asks for no GPU: $(cat "$work/log/err")"
make_audio noise big.wav wav-16 2 44100 400000 0.05
make_audio noise long.wav wav-16 2 44100 40000 0.002
runs -t 1 -a direct big.wav long.wav out.wav
if [ "$built" ]; then
    one_line "running on the CPU"
else
    [ -s "$work/log/err" ] && fail "a CPU build has nothing to fall back from: $(cat "$work/log/err")"
fi
true
