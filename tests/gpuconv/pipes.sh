#!/bin/sh
# Streams with wrong or truncated headers or without a length, and streams that stall. A number from a header must not be
# used as an offset or a loop bound before it is checked against the bytes that were read.
# shellcheck disable=SC2002 # a pipe is meant
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 2 44100 20000 0.2
make_audio noise ir.wav wav-float 1 44100 500 0.02
runs -b cpu in.wav ir.wav want.wav

# through FILE OUT [OPTION...]: convolves the file through a pipe, with a time limit
through() {
    from=$1 to=$2
    shift 2
    cat "$from" | timeout 60 "$GPUCONV" -b cpu - ir.wav "$to" "$@" 2>"$work/log/err"
    status=$?
}

# refused TEXT FILE: through a pipe the file is refused with exit status 1, and no file is left
refused() {
    through "$2" out.wav
    [ "$status" -eq 1 ] || fail "$2: exit $status instead of 1: $(cat "$work/log/err")"
    one_line "$1"
    [ ! -e out.wav ] || fail "$2: an output is left"
}

# put FILE OFFSET BYTES: overwrites bytes of the file
put() {
    # shellcheck disable=SC2059 # the bytes are escapes
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>"$work/log/dd"
}

# RF64 headers with sizes of 2^63, 2^64 - 4096, 2^62 and 0 bytes and with the true size: each file is read to its end.
runs -b cpu in.wav ir.wav wide.wav --format rf64
runs -b cpu wide.wav ir.wav want64.wav
for size in '\0\0\0\0\0\0\0\200' '\0\360\377\377\377\377\377\377' '\0\0\0\0\0\0\0\100' '\377\377\377\377\377\377\377\377'; do
    cp wide.wav lies.wav
    put lies.wav 28 "$size"
    through lies.wav out.wav
    [ "$status" -eq 0 ] || fail "RF64 of $size bytes: exit $status: $(cat "$work/log/err")"
    "$TOOLS/look_audio" near out.wav want64.wav 4e-5 || fail "RF64 of $size bytes: other samples"
done
through wide.wav out.wav
[ "$status" -eq 0 ] || fail "RF64: $(cat "$work/log/err")"
"$TOOLS/look_audio" near out.wav want64.wav 0 || fail "RF64: other samples"
cp wide.wav lies.wav
put lies.wav 20 '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' # as a program writes it that cannot go back
through lies.wav out.wav
[ "$status" -eq 0 ] || fail "RF64 of unknown length: $(cat "$work/log/err")"
"$TOOLS/look_audio" near out.wav want64.wav 4e-5 || fail "RF64 of unknown length: other samples"
rm out.wav

# 24 bits in frames of 4 bytes, at their upper end, are read as such, also where they are few.
make_audio noise wide.wav wav-32 1 44100 500 0.3
put wide.wav 34 '\030\000'
runs -b cpu wide.wav ir.wav out.wav
about out.wav "999 1 44100 wav 32"
through wide.wav piped.wav
cmp -s out.wav piped.wav || fail "24 bits in 32 from a pipe: other samples"
rm out.wav piped.wav

# Headers that are truncated at every position, and chunks that extend past the end.
printf 'RIFF\226\006\0\0WAVEfmt \020\0\0\0\001\0\001\0\200\076\001\0\056\0\0\345\0\0\047\0LIST\052\0' >cut.wav
refused "standard input: " cut.wav
for bytes in 1 3 4 11 12 16 20 36 40 43 44; do
    head -c "$bytes" in.wav >cut.wav
    refused "standard input: " cut.wav
done
head -c 46 in.wav >short.wav # half a frame
refused "nothing is left to write" short.wav
# From a damaged chunk on, the next "data" is the data chunk.
head -c 36 in.wav >lies.wav
printf 'junk\377\377\377\377' >>lies.wav
tail -c +37 in.wav >>lies.wav
through lies.wav out.wav
[ "$status" -eq 0 ] || fail "a chunk that extends past the end: exit $status: $(cat "$work/log/err")"
"$TOOLS/look_audio" near out.wav want.wav 4e-5 || fail "a chunk that extends past the end: other samples"
head -c 36 in.wav >lies.wav
printf 'LIST\007\0\0\0INFOodd' >>lies.wav # without its padding
tail -c +37 in.wav >>lies.wav
through lies.wav out.wav
[ "$status" -eq 0 ] || fail "a chunk without padding: exit $status: $(cat "$work/log/err")"
"$TOOLS/look_audio" near out.wav want.wav 4e-5 || fail "a chunk without padding: other samples"
rm out.wav

# ends FILE STATUS [PIPE-STATUS]: as a file and through a pipe, the command ends within 20 s, and with this status
ends() {
    timeout -s KILL 20 "$GPUCONV" -q --force -b cpu "$1" ir.wav out.wav 2>"$work/log/err"
    [ $? -eq "$2" ] || fail "$1 as a file does not end with status $2: $(cat "$work/log/err")"
    cat "$1" | timeout -s KILL 20 "$GPUCONV" -q --force -b cpu - ir.wav out.wav 2>"$work/log/err"
    [ $? -eq "${3:-$2}" ] || fail "$1 on a pipe does not end with status ${3:-$2}: $(cat "$work/log/err")"
    rm -f out.wav
}

# libsndfile loops for ever on these headers, and must not see them: LIST chunks whose inner chunk has a size of
# 2^32 - 9 bytes, also behind and inside damaged chunks, and an RF64 with an impossible size of its samples.
corpus=$SOURCE/tests/fuzz/corpus/pipe
ends "$corpus/endless-list" 1
ends "$corpus/hidden-list" 1
ends "$corpus/inner-list" 1
ends "$corpus/rf64-endless" 1 1 # a stream must have the samples that it states
{ head -c 36 in.wav && tail -c +37 "$corpus/endless-list" | head -c 46 && tail -c +37 in.wav; } >endless.wav
ends endless.wav 0
{ printf 'ID3\003\0\0\0\0\0\0' && cat endless.wav; } >tagged.wav # libsndfile skips ID3 tags
ends tagged.wav 0
runs -b cpu tagged.wav ir.wav out.wav
"$TOOLS/look_audio" near out.wav want.wav 4e-5 || fail "an endless LIST: other samples"
# 8 MiB of LIST chunks behind a damaged chunk are searched once.
head -c 36 in.wav >many.wav
printf 'bext\377\377\377\177' >>many.wav
printf 'LIST\0\0\0\0' >list
while [ "$(wc -c <list)" -lt 8388608 ]; do
    cat list list >twice && mv twice list
done
cat list >>many.wav
ends many.wav 1
# The samples of a file that was not closed properly are no chunks, whatever they contain.
cp in.wav unclosed.wav
put unclosed.wav 4 '\010\0\0\0'
put unclosed.wav 40 '\0\0\0\0'
put unclosed.wav 1000 'LIST\0\0\0\0abcd\377\377\377\377'
runs -q -b cpu unclosed.wav ir.wav out.wav

# Unknown lengths, as ffmpeg, SoX and an incorrect program write them.
for size in '\377\377\377\377' '\0\360\377\177' '\0\0\0\0'; do
    cp in.wav unknown.wav
    put unknown.wav 4 "$size"
    put unknown.wav 40 "$size"
    through unknown.wav out.wav
    [ "$status" -eq 0 ] || fail "unknown length $size: $(cat "$work/log/err")"
    "$TOOLS/look_audio" near out.wav want.wav 4e-5 || fail "unknown length $size: other samples"
    rm out.wav
done

# Block encodings end with their bytes, also if the header has no length.
make_audio noise mono.wav wav-16 1 8000 16000 0.2
for encoding in gsm610 ima-adpcm ms-adpcm; do
    runs -b cpu mono.wav ir.wav block.wav --encoding $encoding -q
    put block.wav 4 '\377\377\377\377'
    at=$(grep -abo data block.wav | head -n 1 | cut -d: -f1)
    put block.wav $((at + 4)) '\377\377\377\377'
    through block.wav out.wav -q
    [ "$status" -eq 0 ] || fail "$encoding of unknown length: exit $status: $(cat "$work/log/err")"
    frames=$("$TOOLS/look_audio" about out.wav)
    [ "${frames%% *}" -lt 30000 ] || fail "$encoding of unknown length: $frames"
    cat block.wav | timeout 60 "$GPUCONV" -b cpu - ir.wav - -q 2>"$work/log/err" | head -c 1000000 >piped.wav
    [ "$(wc -c <piped.wav)" -lt 100000 ] || fail "$encoding of unknown length to a pipe does not end"
    through piped.wav out.wav -q
    [ "$status" -eq 0 ] || fail "what $encoding became on a pipe is not readable: $(cat "$work/log/err")"
    rm out.wav
done

# An impossible sampling rate is refused before reading.
cp in.wav fast.wav
put fast.wav 24 '\377\377\377\177'
refuses 1 "fast.wav: 2 channels at 2147483647 Hz are not supported" -b cpu fast.wav ir.wav out.wav
refuses 1 "fast.wav: 2 channels at 2147483647 Hz are not supported" -b cpu in.wav fast.wav out.wav

# A stream that stalls before, in or after its header, as the input and as the response: a signal ends the command.
mkfifo idle.wav
exec 3<>idle.wav
printf 'input,response,output\nidle.wav,ir.wav,a.wav\n' >in.csv
for bytes in 0 20 44 5000; do
    for signal in TERM INT; do
        for what in "- ir.wav out.wav" "in.wav - out.wav" "in.wav /dev/stdin out.wav" "in.wav /dev/fd/0 out.wav" \
            "idle.wav ir.wav out.wav"; do
            head -c $bytes in.wav >&3
            # shellcheck disable=SC2086 # words
            "$GPUCONV" $what -b cpu -q <idle.wav 2>"$work/log/err" &
            ends_by $signal $!
            [ "$status" -eq 130 ] || fail "$what stops after $bytes bytes, SIG$signal: exit $status: $(cat "$work/log/err")"
            one_line "interrupted"
            dd <&3 bs=65536 count=1 iflag=nonblock >"$work/log/drained" 2>&1
        done
    done
done
exec 3<&-
[ ! -e out.wav ] || fail "an interrupted job leaves an output"

# A response that the command line pipes in is read; every other response is a regular file, which never blocks.
cat ir.wav | runs -b cpu in.wav /dev/stdin out.wav
"$TOOLS/look_audio" near out.wav want.wav 0 || fail "a response from /dev/stdin: other samples"
rm out.wav
echo "1 1 idle.wav" >matrix.txt
printf 'input,response,output\nin.wav,idle.wav,a.wav\n' >ir.csv
ln -s /dev/zero zero.wav
mkfifo idle.sofa
exec 3<>idle.wav 4<>idle.sofa
for what in "in.wav idle.wav out.wav" "in.wav zero.wav out.wav" "in.wav matrix.txt out.wav" "ir info idle.wav" \
    "ir info zero.wav" "ir info idle.sofa" "batch in.csv --out out" "batch ir.csv --out out2" "in.wav ir.wav out.wav --series idle.wav"; do
    # shellcheck disable=SC2086 # words
    timeout -s KILL 60 "$GPUCONV" $what >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ "$status" -eq 1 ] || fail "$what: exit $status: $(cat "$work/log/err")"
    grep -q "is a pipe or a device; use a regular file" "$work/log/err" || fail "$what says: $(cat "$work/log/err")"
    [ ! -e out.wav ] || fail "$what: an output is left"
done
cat ir.wav | timeout -s KILL 60 "$GPUCONV" ir info - >"$work/log/out" 2>"$work/log/err" && fail "ir info reads a pipe"
one_line "standard input: is a pipe or a device"
exit 0
