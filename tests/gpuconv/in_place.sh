#!/bin/sh
# The output may be the input or the response: the bytes are the same as with another name. Links and permissions are kept.
. "$(dirname "$0")/lib.sh"

for format in wav-16 wav-24 wav-float flac-24 aiff-16; do
    end=${format%-*}
    make_audio noise "in.$end" $format 2 44100 150000 0.2
    make_audio noise "ir.$end" $format 2 44100 3000 0.02
    runs "in.$end" "ir.$end" "want.$end"
    cp "in.$end" "a.$end"
    runs "a.$end" "ir.$end" "a.$end"
    cmp "a.$end" "want.$end" || fail "output = input, $format: other bytes"
    cp "ir.$end" "b.$end"
    runs "in.$end" "b.$end" "b.$end"
    cmp "b.$end" "want.$end" || fail "output = response, $format: other bytes"
done
make_audio noise c.wav wav-16 1 44100 3000 0.1
cp c.wav d.wav
runs c.wav c.wav want.wav
runs d.wav d.wav d.wav
cmp d.wav want.wav || fail "input = response = output: other bytes"

# The same command writes the same bytes again: the file has no time stamp.
runs c.wav c.wav again.wav
cmp want.wav again.wav || fail "two runs, different bytes"
make_audio noise float.wav wav-float 1 44100 3000 0.1
runs float.wav c.wav float.out.wav
grep -q PEAK float.out.wav && fail "a PEAK chunk holds the time of writing"
runs float.wav c.wav float.rf64
"$GPUCONV" -q float.wav c.wav - --format rf64 | cat >piped.rf64
for file in float.rf64 piped.rf64; do
    at=$(grep -abo PEAK $file | cut -d: -f1)
    [ -z "$at" ] || [ "$(od -An -tu4 -j $((at + 12)) -N 4 $file | tr -d ' ')" -eq 0 ] || fail "$file holds the time of writing"
done

# A link is kept, and its target gets the result.
mkdir elsewhere
cp c.wav elsewhere/real.wav && chmod 640 elsewhere/real.wav
ln -s elsewhere/real.wav link.wav
runs link.wav c.wav link.wav
[ -L link.wav ] || fail "the link was replaced"
cmp elsewhere/real.wav want.wav || fail "through a link: other bytes"
[ "$(stat -c %a elsewhere/real.wav)" = 640 ] || fail "permissions changed: $(ls -l elsewhere/real.wav)"
(umask 027 && runs c.wav c.wav fresh.wav)
[ "$(stat -c %a fresh.wav)" = 640 ] || fail "a new file does not follow the umask: $(ls -l fresh.wav)"
[ -z "$(find . -name '.*' -type f)" ] || fail "temporaries left: $(ls -lA . elsewhere)"
