#!/bin/sh
# Help and version work alone; a wrong command line is exit 2 with one line that says what is wrong.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 1 44100 1000 0.1
make_audio taps ir.wav 1 44100 1 0.5

runs --help
grep -q 'IN IR OUT' "$work/log/out" || fail "--help does not say IN IR OUT"
for option in backend algorithm device threads gain report compare quiet version help; do
    grep -q -- "--$option" "$work/log/out" || fail "--help does not name --$option"
done
[ -s "$work/log/err" ] && fail "--help speaks on standard error"
runs --version
grep -Eq '^gpuconv [0-9]+\.[0-9]+\.[0-9]+$' "$work/log/out" || fail "--version says: $(cat "$work/log/out")"

refuses 2 "three files are needed"
refuses 2 "three files are needed" in.wav
refuses 2 "three files are needed" in.wav ir.wav
refuses 2 "three files are needed" in.wav ir.wav out.wav more.wav
refuses 2 "--nonsense" --nonsense in.wav ir.wav out.wav
refuses 2 "-x" -x in.wav ir.wav out.wav
refuses 2 "auto, cpu or cuda" --backend gpu in.wav ir.wav out.wav
refuses 2 "auto, cpu or cuda" --backend "" in.wav ir.wav out.wav
refuses 2 "overlap-save" --algorithm fft in.wav ir.wav out.wav
refuses 2 "text or json" --report xml in.wav ir.wav out.wav
refuses 2 "--device" --device -2 in.wav ir.wav out.wav
refuses 2 "one: invalid numeric value" --device one in.wav ir.wav out.wav
refuses 2 "--threads" --threads -1 in.wav ir.wav out.wav
refuses 2 "--threads" --threads 1025 in.wav ir.wav out.wav
refuses 2 "99999999999999999999: number too large" --threads 99999999999999999999 in.wav ir.wav out.wav
refuses 2 "--gain" --gain 201 in.wav ir.wav out.wav
refuses 2 "--gain" --gain -200.5 in.wav ir.wav out.wav
refuses 2 "--gain" --gain nan in.wav ir.wav out.wav
refuses 2 "loud: invalid numeric value" --gain loud in.wav ir.wav out.wav
refuses 2 "--backend" in.wav ir.wav out.wav --backend
refuses 2 "--quiet" --quiet=yes in.wav ir.wav out.wav

# What is right is accepted wherever it stands, long, short or joined.
for line in "-b cpu -a direct -t 1 -g -3 -q" "--backend=cpu --algorithm=overlap-save --threads=2 --gain=-3.5" \
    "-bcpu -apartitioned" "--gain 0 --device 0 -b cpu"; do
    # shellcheck disable=SC2086 # the words are meant to part
    runs $line in.wav ir.wav out.wav
    # shellcheck disable=SC2086
    runs in.wav ir.wav out.wav $line
    about out.wav "1001 1 44100 wav 16"
done
