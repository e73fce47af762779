#!/bin/sh
# Tests the inputs of a batch: manifests with a NUL byte are refused; patterns keep their folders below the output folder.
. "$(dirname "$0")/lib.sh"

make_audio noise a.wav wav-16 1 16000 900 0.1
make_audio noise b.wav wav-16 1 16000 800 0.1
make_audio noise ir.wav wav-float 1 16000 61 0.2
printf 'input,response\na.wav,ir.wav\n' >one.csv

# A NUL byte in a manifest; an empty folder name; a folder name that is too long.
printf 'input,response,output\na.wav,ir.wav,x.wav\nb.wav,ir.wav,\000y.wav\nb.wav,ir.wav,z.wav\n' >nul.csv
refuses 1 "nul.csv, line 3: a zero byte" batch nul.csv --out nul
printf '{"input":"a.wav","response":"ir.wav"}\n\000\n' >nul.jsonl
refuses 1 "nul.jsonl, line 2: a zero byte" batch nul.jsonl --out nul
refuses 2 "--out" batch one.csv --out ""
refuses 1 "too long" batch --inputs a.wav --irs ir.wav --out "./$(printf '/%.0s' $(seq 4300))o"

# there PATH...: fails unless each is a file
there() {
    for path; do
        [ -f "$path" ] || fail "$path does not exist: $(find "${path%%/*}")"
    done
}

# Patterns: ~ and absolute alternatives.
mkdir -p home/in/k d/x e/x
cp a.wav home/in/k/1.wav
cp a.wav d/x/2.wav
cp b.wav e/x/3.wav
# shellcheck disable=SC2088 # the command expands it
(export HOME="$PWD/home" && batch 0 --inputs '~/in/*/*.wav' --irs ir.wav --out tilde) || exit 1
there tilde/k/1.wav
batch 0 --inputs "{$PWD/d,$PWD/e}/x/*.wav" --irs 'ir.{wav,flac}' --out braces
there "braces$PWD/d/x/2.wav" "braces$PWD/e/x/3.wav"
batch 0 --inputs '{d,e}/*/*.wav' --irs ir.wav --out kept
there kept/d/x/2.wav kept/e/x/3.wav
batch 0 --inputs '{../files/d,./e}/*/*.wav' --irs ir.wav --out dots
there dots/files/d/x/2.wav dots/e/x/3.wav
timeout 10 "$GPUCONV" batch --help | grep -qxF '[MANIFEST] --out FOLDER [OPTIONS]' && fail "--help prints the usage twice"
exit 0
