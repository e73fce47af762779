#!/bin/sh
# Checks help and version, and that a wrong command line gives exit status 2 and a message of one line.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 1 44100 1000 0.1
make_audio taps ir.wav 1 44100 1 0.5

runs --help
grep -q 'IN IR OUT' "$work/log/out" || fail "--help does not say IN IR OUT"
for option in backend algorithm device threads gain report compare quiet version help; do
    grep -q -- "--$option" "$work/log/out" || fail "--help does not name --$option"
done
[ -s "$work/log/err" ] && fail "--help writes to standard error"
runs --version
grep -Eq '^gpuconv [0-9]+\.[0-9]+\.[0-9]+$' "$work/log/out" || fail "--version says: $(cat "$work/log/out")"

refuses 2 "three files are needed"
refuses 2 "three files are needed" in.wav
refuses 2 "three files are needed" in.wav ir.wav
refuses 2 "three files are needed" in.wav ir.wav out.wav more.wav
refuses 2 "--nonsense" --nonsense in.wav ir.wav out.wav
refuses 2 "-x" -x in.wav ir.wav out.wav

# A mistyped word names the word that is meant, if one is near.
refuses 2 "--wett: unknown option; did you mean --wet? try --help" --wett -3 in.wav ir.wav out.wav
refuses 2 "--trheads=2: unknown option; did you mean --threads? try --help" --trheads=2 in.wav ir.wav out.wav
refuses 2 "--wrkers: unknown option; did you mean --workers?" batch --wrkers 3 m.csv
refuses 2 "did you mean gpuconv play?" plya in.wav
refuses 2 "did you mean gpuconv batch?" btach m.csv --quiet
refuses 2 "'btach' is neither a file nor a subcommand; did you mean gpuconv batch?" btach --inputs in.wav
refuses 2 "did you mean gpuconv calibrate?" calibrat --threads 2 --nonsense
refuses 2 "did you mean gpuconv ir info?" info --json in.wav
refuses 2 "did you mean gpuconv ir info?" info in.wav
refuses 2 "did you mean gpuconv help?" hlep
refuses 2 "'plya' is neither a file nor a subcommand; did you mean gpuconv play?" plya in.wav ir.wav
refuses 2 "not 1, beginning with 'in.wav', which is no subcommand either" in.wav
refuses 2 "--nonsense: unknown option; try --help" --nonsense in.wav ir.wav out.wav
refuses 2 "auto, cpu or cuda" --backend gpu in.wav ir.wav out.wav
refuses 2 "auto, cpu or cuda" --backend "" in.wav ir.wav out.wav
refuses 2 "overlap-save" --algorithm fft in.wav ir.wav out.wav
refuses 2 "text or json" --report xml in.wav ir.wav out.wav
refuses 2 "--device" --device -2 in.wav ir.wav out.wav
refuses 2 "--device 'one': NUMBER is a whole number from -1 to 1023" --device one in.wav ir.wav out.wav
refuses 2 "--threads" --threads -1 in.wav ir.wav out.wav
refuses 2 "--threads" --threads 1025 in.wav ir.wav out.wav
refuses 2 "--threads '99999999999999999999': COUNT is a whole number from 0 to 1024" --threads 99999999999999999999 in.wav ir.wav out.wav
refuses 2 "--gain 'loud': must be -200 to 200 dB" --gain loud in.wav ir.wav out.wav
refuses 2 "--gain ''" --gain= in.wav ir.wav out.wav
refuses 2 "--plot ''" --plot= in.wav ir.wav out.wav
refuses 2 "--tail 'auto:0': must be all" --tail=auto:0 in.wav ir.wav out.wav
for raw in 48000 48000,2 ,2,s16 " 48000,2,s16" "48000, 2,s16" +48000,2,s16 0,2,s16 -1,2,s16 48000,0,s16 48000,1025,s16 \
    nan,2,s16 1e400,2,s16 99999999999999999999,2,s16 48000,2,s17 "48000,2,"; do
    refuses 2 "--input-raw '$raw'" in.wav ir.wav out.wav "--input-raw=$raw"
done
for devices in "" "," "0," ",0" " 0" 0x1 1024 -1 "0,,1" 99999999999; do
    refuses 2 "--device '$devices'" batch --out o "--device=$devices" m.csv
done
for size in "" 8 8x 8xx6 8x6x3x2 nanx2 infx1 " 8x6x3" 1e400x2; do
    refuses 2 "--size '$size'" ir synth room out.wav "--size=$size"
done
refuses 2 "--backend" in.wav ir.wav out.wav --backend
refuses 2 "--quiet" --quiet=yes in.wav ir.wav out.wav

# Missing, superfluous and unknown words.
refuses 2 "info, measure or synth" ir
refuses 2 "'inf': must be clean, correct, info, measure or synth" ir inf in.wav
refuses 2 "IR, not 0" ir info
refuses 2 "SWEEP" ir measure
refuses 2 "not 2" ir measure a b
refuses 2 "not 4" ir measure a b c d
refuses 2 "KIND IR, not 0" ir synth
refuses 2 "KIND IR, not 1" ir synth room
refuses 2 "KIND IR, not 3" ir synth room a b
refuses 2 "room, plate" ir synth barn out.wav
refuses 2 "--out" batch
refuses 2 "one manifest is needed, not 2" batch --out o a.csv b.csv
refuses 2 "either a manifest, or --inputs and --irs" batch --out o
refuses 2 "'rtx'" bench rtx
refuses 2 "'x'" bench rt x
refuses 2 "'x'" calibrate x
refuses 2 "a file and a response are needed" play
refuses 2 "a file and a response are needed" play in.wav
refuses 2 "a response is needed" live
refuses 2 "'bacth' is neither a file nor a subcommand; did you mean gpuconv batch?" bacth
refuses 2 "batch, bench, calibrate, help, ir, live or play" nonsense
refuses 2 "help 'bacth': no such subcommand; there are batch" help bacth
refuses 2 "help 'inf': no such subcommand" help bench inf
refuses 2 "'inf': must be clean, correct, info, measure or synth" help ir inf
runs ir --help
grep -q 'clean|correct|info|measure|synth' "$work/log/out" || fail "ir --help says: $(cat "$work/log/out")"
mv "$work/log/out" "$work/log/want"
for line in "ir -h" "ir -?" "help ir"; do
    # shellcheck disable=SC2086 # the words are meant to part
    runs $line
    cmp -s "$work/log/out" "$work/log/want" || fail "$line says: $(cat "$work/log/out")"
done

# -h, -?, --help and help SUBCOMMAND print the same: one usage line, one sentence, options, two examples. -V works everywhere.
for command in "" batch bench "bench rows" "bench rt" calibrate "ir clean" "ir correct" "ir info" "ir measure" "ir synth" live play; do
    # shellcheck disable=SC2086
    runs $command --help
    mv "$work/log/out" "$work/log/want"
    for line in "$command -h" "$command -?" "help $command"; do
        # shellcheck disable=SC2086
        runs $line
        cmp -s "$work/log/out" "$work/log/want" || fail "'$line' is not '$command --help': $(cat "$work/log/out")"
    done
    head -n 1 "$work/log/want" | grep -q "^Usage: gpuconv${command:+ $command} .*\[OPTION...\]$" || fail "'$command': $(head -n 1 "$work/log/want")"
    sed -n 3p "$work/log/want" | grep -q '^[A-Z].*[.]$' || fail "'$command' does not begin with one sentence: $(sed -n 3p "$work/log/want")"
    [ "$(sed '1,/^Examples:$/d' "$work/log/want" | grep -c '^  gpuconv ')" -eq 2 ] || fail "'$command' does not end with two examples"
    [ "$(sed '1,/^Examples:$/d' "$work/log/want" | wc -l)" -eq 4 ] || fail "'$command' does not end with its examples"
    # shellcheck disable=SC2086
    runs $command -V
    grep -Eq '^gpuconv [0-9]+\.[0-9]+\.[0-9]+$' "$work/log/out" || fail "$command -V says: $(cat "$work/log/out")"
    sed '1,/^Examples:$/d' "$work/log/want" | sed -n 's/^  gpuconv //p' >>"$work/log/examples"
done
[ "$(wc -l <"$work/log/examples")" -eq 26 ] || fail "not twenty-six examples"

# The documents name every option of a job and of a batch, or its column.
root=$(cd "$SOURCE" && pwd)
for command in "" batch; do
    # shellcheck disable=SC2086
    runs $command --help
    grep -oE '^ {2}(-., | {4})--[a-z-]+' "$work/log/out" | sed 's/.*--//' | grep -vE '^(help|version)$' >"$work/log/options"
    [ "$(wc -l <"$work/log/options")" -gt 30 ] || fail "$command --help lists few options"
    while read -r option; do
        grep -qE -- "--$option([^a-z-]|$)|\`$(echo "$option" | tr - _)\`" "$root"/docs/*.md || fail "no document names --$option"
    done <"$work/log/options"
done

# The examples work as they stand, at the top of the checkout.
ln -s "$root/samples" samples && ln -s "$root/impulses" impulses
while read -r line; do
    case $line in
    play* | live* | bench* | calibrate*) continue ;; # a sound device, or minutes
    *recording.wav*) runs -q samples/speech.flac impulses/studio.flac recording.wav && runs -q sweep.wav impulses/studio.flac recording.wav ;;
    esac
    eval "set -- $line"
    runs "$@"
done <"$work/log/examples"
rm -rf samples impulses wet wet.wav wet.flac sweep.wav recording.wav room.wav plate.flac

# A response is not replaced by a result where IR and OUT have changed places: IR has the length of IN convolved with OUT. Any
# other output of an earlier job is replaced.
make_audio noise song.wav wav-16 1 44100 30000 0.1
make_audio noise hall.wav wav-16 1 44100 20000 0.1
make_audio noise clip.wav wav-16 1 44100 500 0.1
runs song.wav hall.wav wet.wav
refuses 1 "hall.wav: is the response of which wet.wav is a result" song.wav wet.wav hall.wav
refuses 1 "(--force) replaces it" song.wav wet.wav hall.wav
runs clip.wav hall.wav short.wav
refuses 1 "hall.wav: is the response" clip.wav short.wav hall.wav
make_audio noise o.wav wav-16 1 44100 12000 0.1 # an output of a shorter input
runs song.wav hall.wav o.wav
make_audio noise o.wav wav-16 1 44100 12000 0.1
# shellcheck disable=SC2002 # the input is to be a pipe
cat song.wav | "$GPUCONV" - hall.wav o.wav 2>"$work/log/err" || fail "an output was not replaced from a pipe: $(cat "$work/log/err")"
runs clip.wav clip.wav twice.wav
runs clip.wav twice.wav same.wav --mode same # OUT is as long as IN, and IR as both together
runs clip.wav twice.wav same.wav --mode same
runs song.wav hall.wav wet.wav
runs clip.wav hall.wav short.wav
runs song.wav clip.wav wet.wav
cp hall.wav kept.wav
runs song.wav wet.wav hall.wav --force
cmp -s hall.wav kept.wav && fail "--force replaced nothing"
cp kept.wav hall.wav
refuses 1 "wet.wav: exists, and --no-clobber is given" song.wav hall.wav wet.wav --no-clobber
refuses 1 "hall.wav: exists, and --no-clobber is given" song.wav hall.wav hall.wav --no-clobber
refuses 1 "hall.wav: the response is read from this file" song.wav hall.wav hall.wav
refuses 2 "exclude each other" song.wav hall.wav wet.wav --no-clobber --force
rm wet.wav
runs song.wav hall.wav wet.wav --no-clobber
about wet.wav "49999 1 44100 wav 16"
runs clip.wav song.wav clip.wav # in place, shorter than IR
make_audio taps unit.wav 1 44100 1
runs unit.wav hall.wav wet.wav # as long as IR
runs unit.wav hall.wav wet.wav
rm unit.wav song.wav hall.wav clip.wav short.wav wet.wav kept.wav pipe.wav

# gpulab reads its options with the same functions.
GPUCONV_ALONE=$GPUCONV
GPUCONV=$(dirname "$GPUCONV")/gpulab
lab_refuses() { # lab_refuses TEXT ARGUMENT...: exit 2 and one line that begins with the program's name and has the text
    says=$1
    shift
    quietly "$GPUCONV" "$@"
    status=$?
    [ "$status" -eq 2 ] || fail "gpulab $*: exit $status"
    [ "$(wc -l <"$work/log/err")" -eq 1 ] || fail "gpulab $*: not one line: $(cat "$work/log/err")"
    grep -q '^gpulab: ' "$work/log/err" || fail "gpulab $*: $(cat "$work/log/err")"
    grep -qF -- "$says" "$work/log/err" || fail "gpulab $*: does not say '$says': $(cat "$work/log/err")"
}
for option in threads registers shared; do
    for value in "" " 1" 1x nan inf 1e400 1.5 0x10 -1 99999999999999999999; do
        lab_refuses "--$option '$value': " "--$option=$value" device
    done
done
for value in "" " 1" 1x 0 -1 1x2x3x4x5 nan 99999999999999999999; do
    lab_refuses "--size '$value': " "--size=$value" run hello
done
lab_refuses "--from ''" --from= report
lab_refuses "--html ''" --html= report
lab_refuses "'sing': no such command" sing
lab_refuses "unknown option" --nonsense list
GPUCONV=$GPUCONV_ALONE

# Valid options are accepted before and after the files, in the long, short and joined form.
for line in "-b cpu -a direct -t 1 -g -3 -q" "--backend=cpu --algorithm=overlap-save --threads=2 --gain=-3.5" \
    "-bcpu -apartitioned" "--gain 0 --device 0 -b cpu"; do
    # shellcheck disable=SC2086 # the words are meant to part
    runs $line in.wav ir.wav out.wav
    # shellcheck disable=SC2086
    runs in.wav ir.wav out.wav $line
    about out.wav "1001 1 44100 wav 16"
done
