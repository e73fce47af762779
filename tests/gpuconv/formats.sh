#!/bin/sh
# Formats and encodings by name, pipes, raw samples, parts of the result, dither, and metadata.
# shellcheck disable=SC2002,SC2046 # a pipe is meant, and words are meant to part
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 2 44100 20000 0.2
make_audio noise ir.wav wav-float 1 44100 500 0.02
runs -b cpu in.wav ir.wav want.wav
about want.wav "20499 2 44100 wav 16"

# The format option overrides the extension.
while read -r name format encoding said; do
    runs -b cpu in.wav ir.wav "$name" --format "$format" --encoding "$encoding"
    about "$name" "20499 2 44100 $said"
done <<END
a.bin wav s24 wav 24
b.bin flac s16 flac 16
c.bin aiff float aiff float
d.bin w64 s32 w64 32
e.bin rf64 double rf64 double
f.bin caf s16 caf 16
g.bin au s8 au s8
END
runs -b cpu in.wav ir.wav h.bin --format flac --encoding s24
"$TOOLS/look_audio" near h.bin want.wav 0.00004 || fail "another format, other samples"
runs -b cpu in.wav ir.wav i.ogg --encoding vorbis
about i.ogg "20499 2 44100 ogg vorbis"
runs -b cpu in.wav ir.wav j.flac --encoding s16
about j.flac "20499 2 44100 flac 16"
# FLAC at each level has the same samples and the bytes of flac -LEVEL, and other formats have no levels.
refuses 2 "--compression '9': must be 0 to 8" in.wav ir.wav k.flac --compression 9
refuses 1 "k.wav: levels of compression are FLAC's" in.wav ir.wav k.wav --compression 5
for level in 0 5 8; do
    runs -b cpu in.wav ir.wav k$level.flac --encoding s16 --compression $level
    "$TOOLS/look_audio" near k$level.flac j.flac 0 || fail "--compression $level: other samples"
    if command -v flac >"$work/log/which"; then
        flac -s -f -d k$level.flac -o decoded.wav || fail "flac -d"
        flac -s -f -$level --no-padding --no-seektable decoded.wav -o recoded.flac || fail "flac -$level"
        cmp k$level.flac recoded.flac || fail "--compression $level: other bytes than flac -$level"
    fi
done
cmp k5.flac j.flac || fail "the default is not level 5"
refuses 2 "--format 'mp9': must be a format such as wav" in.wav ir.wav out.wav --format mp9
refuses 2 "--encoding 's17': must be an encoding such as u8" in.wav ir.wav out.wav --encoding s17
refuses 1 "cannot hold 2 channels at 44100 Hz as float" in.wav ir.wav out.wav --format flac --encoding float
# .opus holds one encoding, in a file that is named so and in --format; .ogg holds any that Ogg has.
make_audio noise in48.wav wav-16 1 48000 9000 0.1
for encoding in vorbis s16 float; do
    refuses 1 "files of this name hold opus, not $encoding" in48.wav ir.wav out.opus --encoding $encoding
    refuses 1 "files of this name hold opus, not $encoding" in48.wav ir.wav out.dat --format opus --encoding $encoding
done
for name in 'out.opus --encoding opus' 'out.ogg --encoding opus' 'out.ogg --encoding vorbis' 'out.opus --format ogg --encoding vorbis'; do
    # shellcheck disable=SC2086 # several words
    runs -q in48.wav ir.wav $name
done
rm out.opus out.ogg
refuses 1 "names no known format" in.wav ir.wav out.xyz

# An encoding that the container does not support: the nearest one is used, and a line reports it.
if "$GPUCONV" -b cpu in.wav ir.wav in.mp3 2>"$work/log/err"; then
    runs -b cpu in.mp3 ir.wav out.wav
    one_line "out.wav: WAV cannot hold MPEG Layer III; written as 32 bit float"
    cp out.wav want.float.wav
    cat in.mp3 | "$GPUCONV" -b cpu - ir.wav - >out.wav 2>"$work/log/err" || fail "MP3 by a pipe: $(cat "$work/log/err")"
    one_line "WAV cannot hold MPEG Layer III"
    "$TOOLS/look_audio" near out.wav want.float.wav 0 || fail "MP3 by a pipe: other samples"
    printf 'input,response,output\nin.mp3,ir.wav,out.wav\n' >mp3.csv
    runs batch mp3.csv --out mp3 -q
    grep -q '"note":"WAV cannot hold MPEG Layer III' mp3/results.jsonl || fail "batch: $(cat mp3/results.jsonl)"
    runs -b cpu in.mp3 ir.wav again.mp3
    [ -s "$work/log/err" ] && fail "MP3 stays MP3, yet: $(cat "$work/log/err")"
    rm out.wav
    refuses 1 "cannot hold 2 channels at 44100 Hz as mp3" -b cpu in.mp3 ir.wav out.wav --encoding mp3
fi
runs -b cpu in.wav ir.wav in.ogg
runs -b cpu in.ogg ir.wav out.flac
one_line "out.flac: FLAC cannot hold Vorbis; written as Signed 24 bit PCM"
make_audio noise mono.wav wav-16 1 8000 16000 0.2
for encoding in vox dwvw12; do
    refuses 1 "cannot hold 1 channels at 8000 Hz as $encoding" -b cpu -q mono.wav ir.wav out.bin --format aiff --encoding $encoding
done
# A WAV of unknown length becomes RF64 only if RF64 supports the encoding.
runs -b cpu mono.wav ir.wav gsm.wav --encoding gsm610 -q
runs -b cpu gsm.wav ir.wav out.wav --tail auto -q
head -c 4 out.wav | grep -q RIFF || fail "GSM of unknown length: $(head -c 4 out.wav)"
"$TOOLS/look_audio" about out.wav | grep -q ' 1 8000 wav other$' || fail "GSM: $("$TOOLS/look_audio" about out.wav)"
rm out.wav

# Pipes get the same bytes as a file, including the header.
"$GPUCONV" -b cpu in.wav ir.wav - >piped.wav 2>"$work/log/err" || fail "to a pipe: $(cat "$work/log/err")"
cmp piped.wav want.wav || fail "standard output is a file, and another one"
"$GPUCONV" -b cpu in.wav ir.wav - 2>"$work/log/err" | cat >piped.wav
cmp piped.wav want.wav || fail "standard output is a pipe, and the WAV another one: $(cat "$work/log/err")"
cat in.wav | "$GPUCONV" -b cpu - ir.wav - 2>"$work/log/err" | cat >piped.wav
cmp piped.wav want.wav || fail "a WAV from a pipe into a pipe: $(cat "$work/log/err")"
"$GPUCONV" -b cpu - ir.wav out.wav <in.wav 2>"$work/log/err" || fail "from a file on standard input"
cmp out.wav want.wav || fail "from standard input, another file"
cat ir.wav | "$GPUCONV" -b cpu in.wav - out.wav 2>"$work/log/err" || fail "a response from a pipe: $(cat "$work/log/err")"
cmp out.wav want.wav || fail "a response from a pipe gives another file"
make_audio noise in.flac flac-16 2 44100 20000 0.2
cat in.flac | "$GPUCONV" -b cpu - ir.wav - 2>"$work/log/err" | cat >piped.wav # needs a way back: kept in a file meanwhile
cmp piped.wav want.wav || fail "FLAC from a pipe: $(cat "$work/log/err")"
# A header without the length, as ffmpeg writes it to a pipe, and one after an unknown chunk.
{
    head -c 4 in.wav
    printf '\377\377\377\377'
    tail -c +9 in.wav | head -c 32
    printf '\377\377\377\377'
    tail -c +45 in.wav
} >endless.wav
# A short input of unknown length gets another plan; with the same algorithm the bytes are the same.
runs -b cpu -a direct in.wav ir.wav direct.wav
cat endless.wav | "$GPUCONV" -b cpu -a direct - ir.wav out.wav 2>"$work/log/err" || fail "without a length: $(cat "$work/log/err")"
"$TOOLS/look_audio" near out.wav direct.wav 0 || fail "a WAV of unknown length from a pipe"
cat endless.wav | "$GPUCONV" -b cpu - ir.wav - 2>"$work/log/err" | cat >piped.wav
cat piped.wav | "$GPUCONV" -b cpu - ir.wav out.wav 2>"$work/log/err" || fail "our own header without a length"
about out.wav "20998 2 44100 wav 16"
for format in flac ogg au; do
    "$GPUCONV" -b cpu in.wav ir.wav - --format $format 2>"$work/log/err" | cat >piped.$format
    "$TOOLS/look_audio" about piped.$format >"$work/log/out" || fail "$format through a pipe: $(cat "$work/log/err")"
done
"$TOOLS/look_audio" near piped.au want.wav 0 || fail "AU through a pipe"
: | "$GPUCONV" -b cpu - ir.wav out.wav 2>"$work/log/err" && fail "nothing came, and no failure"
one_line "standard input: is empty"
"$GPUCONV" -b cpu - - out.wav 2>"$work/log/err" <in.wav && fail "two inputs from one pipe"
one_line "cannot both be standard input"
refuses 2 "cannot take both the sound (OUT is -) and a report" in.wav ir.wav - --report json

# Raw samples, in and out.
runs -b cpu in.wav ir.wav out.raw
[ "$(wc -c <out.raw)" -eq $((20499 * 4)) ] || fail "raw samples with something else"
tail -c +45 in.wav >in.raw
runs -b cpu in.raw ir.wav out.wav --input-raw 44100,2,s16
"$TOOLS/look_audio" near out.wav want.wav 0 || fail "raw samples are read otherwise"
runs -b cpu -a direct in.wav ir.wav out.raw
cat in.raw | "$GPUCONV" -b cpu -a direct - ir.wav - --input-raw 44100,2,s16 --format raw 2>"$work/log/err" | cat >piped.raw
cmp piped.raw out.raw || fail "raw through pipes: $(cat "$work/log/err")"
refuses 2 "RATE,CHANNELS,ENCODING" in.raw ir.wav out.wav --input-raw 44100

# Parts of the result. The input is a step and the response counts up, so that all frames of the result differ.
make_audio taps step.wav 1 8000 1 1 1 1 1 1
make_audio taps count.wav 1 8000 0.01 0.02 0.03
part() { # part "VALUES" OPTION...
    # shellcheck disable=SC2086
    make_audio taps expected.wav 1 8000 $1
    shift
    runs -b cpu step.wav count.wav out.wav "$@"
    "$TOOLS/look_audio" near out.wav expected.wav 1e-6 || fail "$*: $("$TOOLS/look_audio" about out.wav)"
}
part "0.01 0.03 0.06 0.06 0.06 0.06 0.05 0.03"
part "0.01 0.03 0.06 0.06 0.06 0.06 0.05 0.03" --mode full
part "0.03 0.06 0.06 0.06 0.06 0.05" --mode same
part "0.06 0.06 0.06 0.06" --mode valid
part "0.01 0.03 0.06 0.06 0.06 0.06" --tail 0
part "0.01 0.03 0.06 0.06 0.06 0.06 0.05" --tail 0.000125
part "0.01 0.03 0.06 0.06 0.06 0.06 0.05" --tail auto:-30 # 0.05 is -26 dB, 0.03 is -30.5
part "0.01 0.03 0.06 0.06 0.06 0.06" --tail auto:-20
part "0.01 0.03 0.06 0.06 0.06 0.06 0.05 0.03" --tail auto:-300 # nothing is ever held back
refuses 1 "none are valid" --mode valid count.wav step.wav out.wav
refuses 2 "--tail needs --mode full" --mode same --tail 1 step.wav count.wav out.wav
refuses 2 "must be all, seconds up to 1000000, auto, or auto:DB" --tail long step.wav count.wav out.wav
make_audio sparse quiet.wav 30000 1 44100 0 20000 # a gap in the tail that is quiet, and then something again
make_audio taps blip.wav 1 44100 0.5
runs -b cpu blip.wav quiet.wav out.wav --tail auto
set -- $("$TOOLS/look_audio" about out.wav)
[ "$1" -eq 20001 ] || fail "a gap ends the tail: $1 frames"

# Only written samples are counted as clipped.
make_audio taps loud.wav 1 8000 0.6 0.6 0.6 0.6
make_audio taps twice.wav 1 8000 1 0.5 1.5
runs -b cpu loud.wav twice.wav out.wav --encoding s16
one_line "3 samples clipped"
runs -b cpu loud.wav twice.wav out.wav --encoding s16 --tail 0
one_line "2 samples clipped"
runs -b cpu loud.wav twice.wav out.wav --encoding s16 --mode valid
one_line "2 samples clipped"

# Dither changes samples by at most two steps, is reproducible, and is not applied to floats.
runs -b cpu in.wav ir.wav plain.wav
runs -b cpu in.wav ir.wav dithered.wav --dither tpdf
runs -b cpu in.wav ir.wav again.wav --dither tpdf
cmp -s plain.wav dithered.wav && fail "--dither does nothing"
cmp dithered.wav again.wav || fail "dither is not the same again"
"$TOOLS/look_audio" near plain.wav dithered.wav 0.0000611 || fail "dither is too large"
runs -b cpu step.wav count.wav plain.wav
runs -b cpu step.wav count.wav dithered.wav --dither tpdf
cmp plain.wav dithered.wav || fail "floats are dithered"

# Title, artist, date, cue points with their names, loops, the broadcast chunk and iXML are copied. One line names what the
# format of OUT has no place for, in a file and in a pipe.
make_audio tagged tagged.wav
"$TOOLS/look_audio" tags tagged.wav >want.tags || fail "no tags to begin with"
runs -b cpu --force tagged.wav ir.wav out.wav
"$TOOLS/look_audio" tags out.wav >got.tags
diff want.tags got.tags || fail "a WAV loses what stood in it"
[ -s "$work/log/err" ] && fail "nothing is lost, yet: $(cat "$work/log/err")"
runs -b cpu tagged.wav ir.wav out.rf64
[ -s "$work/log/err" ] && fail "nothing is lost, yet: $(cat "$work/log/err")"
for chunk in 'cue ' smpl labl iXML; do grep -q "$chunk" out.rf64 || fail "an RF64 loses $chunk"; done
runs -b cpu out.rf64 ir.wav back.wav
one_line "back.wav: WAV has no place for names of cue points"
"$TOOLS/look_audio" tags back.wav | sed 's/: chorus/: /' >got.tags
sed 's/: chorus/: /' want.tags | diff - got.tags || fail "lost on the way through RF64"
lost() { # lost EXTENSION TEXT: this, and nothing else, has no place in this format
    runs -b cpu tagged.wav ir.wav "out.$1"
    one_line " has no place for $2"
    grep -q "no place for $2\$" "$work/log/err" || fail "more than $2: $(cat "$work/log/err")"
}
lost flac "cue points, loops, broadcast chunk, iXML chunk"
lost ogg "cue points, loops, broadcast chunk, iXML chunk"
lost caf "cue points, loops, broadcast chunk, iXML chunk"
lost aiff "cue points, loops, broadcast chunk, iXML chunk, date"
lost au "cue points, loops, broadcast chunk, iXML chunk, title, artist, date"
lost w64 "cue points, loops, broadcast chunk, iXML chunk, title, artist, date"
"$GPUCONV" -b cpu tagged.wav ir.wav - --format au 2>"$work/log/err" | cat >piped.au
one_line "AU has no place for cue points"
runs -b cpu --force tagged.wav ir.wav out.flac
"$TOOLS/look_audio" tags out.flac >got.tags
grep -q '^title A title$' got.tags || fail "a FLAC loses the title: $(cat got.tags)"

# The speakers of a WAV's mask stay where each output is the input's channel of that number, in a file, a pipe and a batch;
# a line says where they cannot. No speakers are invented.
mask() { # mask FILE: the mask in the header of a WAV or RF64; nothing: it has none
    case $(head -c 4 "$1") in RF64) at=76 ;; *) at=40 ;; esac
    dd if="$1" bs=1 skip=$((at - 20)) count=2 2>/dev/null | od -An -tx1 | grep -q 'fe ff' &&
        od -An -tx1 -j $at -N 4 "$1" | tr -d ' '
}
keeps() { # keeps FILE MASK: the file has this mask
    [ "$(mask "$1")" = "$2" ] || fail "$1 has the mask '$(mask "$1")', not '$2'"
}
speakers() { # speakers FILE CHANNELS BYTES: makes a file with this mask, in octal bytes
    make_audio noise "$1" wavex-16 "$2" 44100 2000 0.1
    # shellcheck disable=SC2059 # the bytes are the format
    printf "$3" | dd of="$1" bs=1 seek=40 conv=notrunc 2>/dev/null
}
while read -r channels bytes hex; do
    speakers masked.wav "$channels" "$bytes"
    keeps masked.wav "$hex"
    runs -b cpu masked.wav ir.wav out.wav
    keeps out.wav "$hex"
    [ -s "$work/log/err" ] && fail "$hex stays, yet: $(cat "$work/log/err")"
    runs -b cpu masked.wav ir.wav out.rf64 --encoding float
    keeps out.rf64 "$hex"
    runs -b cpu out.rf64 ir.wav out.wav
    keeps out.wav "$hex"
    cat masked.wav | "$GPUCONV" -b cpu - ir.wav - >out.wav || fail "mask $hex in a pipe"
    keeps out.wav "$hex"
    "$GPUCONV" -b cpu masked.wav ir.wav - | cat >out.wav || fail "mask $hex in a pipe"
    keeps out.wav "$hex"
    "$GPUCONV" -b cpu masked.wav ir.wav - --format rf64 | cat >out.rf64 || fail "mask $hex in a pipe"
    keeps out.rf64 "$hex"
done <<'END'
6 \017\006\000\000 0f060000
6 \077\000\000\000 3f000000
8 \077\006\000\000 3f060000
8 \377\000\000\000 ff000000
4 \063\000\000\000 33000000
4 \003\006\000\000 03060000
3 \003\001\000\000 03010000
4 \007\000\000\000 07000000
6 \003\006\000\000 03060000
2 \000\006\000\000 00060000
8 \017\126\000\000 0f560000
END
printf 'input,response,output\nmasked.wav,ir.wav,out.wav\n' >masked.csv
runs batch masked.csv --out masked -q
keeps masked/out.wav 0f560000
speakers masked.wav 6 '\077\000\000\000'
for name in caf aiff; do
    runs -b cpu masked.wav ir.wav "out.$name"
    runs -b cpu "out.$name" ir.wav out.wav
    keeps out.wav 3f000000
done
speakers masked.wav 6 '\017\006\000\000'
for name in caf aiff flac w64; do
    runs -b cpu masked.wav ir.wav "out.$name"
    one_line " has no place for speakers"
done
seq 6 | sed 's/.*/& & dirac/; 1s/1 1/1 2/; 2s/2 2/2 1/' >swap.txt
seq 6 | sed 's/.*/& 1 dirac/' >sum.txt
for matrix in swap sum; do
    runs -b cpu masked.wav $matrix.txt out.wav
    grep -q "the speakers of the input are left out" "$work/log/err" || fail "$matrix: no line"
    keeps out.wav ''
done
for channels in 4 6 8; do
    make_audio noise plain.wav wav-16 $channels 44100 2000 0.1
    runs -b cpu plain.wav ir.wav out.rf64
    keeps out.rf64 00000000
    runs -b cpu plain.wav ir.wav out.wav
    keeps out.wav ''
done

# A plot.
if command -v gnuplot >"$work/log/which"; then
    for kind in png svg; do
        runs -b cpu in.wav ir.wav out.wav --plot sheet.$kind
        [ "$(wc -c <sheet.$kind)" -gt 10000 ] || fail "an empty drawing"
    done
    refuses 1 "a drawing is named .svg, .png or .pdf" in.wav ir.wav out.wav --plot sheet.jpg
fi
exit 0
