#!/bin/sh
# Standard input, output and error may be closed at the start: files get the same bytes, no message is written into a file,
# and output that cannot be written is an error with a reason.
. "$(dirname "$0")/lib.sh"
GPULAB=$(dirname "$GPUCONV")/gpulab

make_audio noise in.wav wav-16 1 44100 1000 0.1
make_audio taps ir48.wav 1 48000 1 0.5 # another rate: a note goes to standard error
printf 'input,response,output\nin.wav,ir48.wav,batch.wav\n' >m.csv
mkdir want

# closed WHICH COMMAND...: runs the command with these descriptors closed; WHICH has the digits 0, 1, 2
closed() {
    which=$1
    shift
    case $which in
    "") timeout 60 "$@" >"$work/log/out" 2>"$work/log/err" </dev/null ;;
    0) timeout 60 "$@" >"$work/log/out" 2>"$work/log/err" <&- ;;
    1) timeout 60 "$@" 2>"$work/log/err" </dev/null >&- ;;
    2) timeout 60 "$@" >"$work/log/out" </dev/null 2>&- ;;
    01) timeout 60 "$@" 2>"$work/log/err" <&- >&- ;;
    02) timeout 60 "$@" >"$work/log/out" <&- 2>&- ;;
    12) timeout 60 "$@" </dev/null >&- 2>&- ;;
    012) timeout 60 "$@" <&- >&- 2>&- ;;
    esac
}

# same NAME COMMAND...: the command writes the same bytes to NAME with any descriptors closed
same() {
    name=$1
    shift
    closed "" "$@" || fail "$*: $(cat "$work/log/err")"
    mv "$name" want/file
    for which in 0 1 2 01 02 12 012; do
        rm -rf out
        closed "$which" "$@" || fail "$* with $which closed: exit $?: $(cat "$work/log/err")"
        cmp "$name" want/file || fail "$* with $which closed: $name has other bytes"
        rm "$name"
    done
}
same out.wav "$GPUCONV" in.wav ir48.wav out.wav
same out.wav "$GPUCONV" --threads 3 -e float in.wav ir48.wav out.wav
same out/batch.wav "$GPUCONV" batch --out out m.csv
same sweep.wav "$GPUCONV" ir measure sweep.wav --seconds 0.5 --silence 0
same cabinet.wav "$GPUCONV" ir synth cabinet cabinet.wav
"$GPULAB" run hello --json >run.json 2>"$work/log/err" || fail "gpulab run: $(cat "$work/log/err")"
same page.html "$GPULAB" report --from run.json --html page.html

# Reading from or writing to a closed descriptor is an error with a reason.
fails() { # fails WHICH TEXT COMMAND...
    which=$1 says=$2
    shift 2
    before=$(state)
    closed "$which" "$@"
    status=$?
    [ "$status" -eq 1 ] || fail "$* with $which closed: exit $status"
    case $which in
    *2*) ;;
    *) grep -qF -- "$says" "$work/log/err" || fail "$* with $which closed says: $(cat "$work/log/err")" ;;
    esac
    [ "$(state)" = "$before" ] || fail "$* with $which closed changed the folder: $(ls -lA)"
}
for which in 1 01 12 012; do
    fails "$which" "standard output: is closed" "$GPUCONV" -q in.wav ir48.wav -
    fails "$which" "standard output: is closed" "$GPUCONV" --version
    fails "$which" "standard output: is closed" "$GPUCONV" --help
    fails "$which" "closed" "$GPUCONV" ir info ir48.wav
    fails "$which" "closed" "$GPULAB" list
done
for which in 0 01 02 012; do
    fails "$which" "standard input: is closed" "$GPUCONV" -q - ir48.wav out.wav
done
exit 0
