#!/bin/sh
# The output may be the input, and with --force the response: the bytes are the same as with another name. Links and permissions
# are kept. No other file that a command reads is replaced.
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
    runs --force "in.$end" "b.$end" "b.$end"
    cmp "b.$end" "want.$end" || fail "output = response, $format: other bytes"
done
make_audio noise c.wav wav-16 1 44100 3000 0.1
cp c.wav d.wav
runs c.wav c.wav want.wav
runs --force d.wav d.wav d.wav
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

# Without --force no file that IR is read from is replaced, whatever its name: IR itself, a file that a matrix names, a matrix, a
# response in series.
make_audio noise in.wav wav-16 1 44100 9000 0.1
make_audio noise ir.wav wav-16 1 44100 3000 0.02
make_audio noise part.wav wav-16 1 44100 700 0.02
ln ir.wav hard.wav
ln -s ir.wav soft.wav
echo "1 1 part.wav" >one.matrix
echo '/convolver/new 1 1 256 8000
/impulse/read 1 1 1 0 0 0 1 part.wav' >two.conf
for out in ir.wav ./ir.wav hard.wav soft.wav; do refuses 1 "$out: the response is read from this file" in.wav ir.wav $out; done
refuses 1 "choose another name for the output" ir.wav ir.wav ir.wav
refuses 1 "part.wav: the response is read from this file" in.wav one.matrix part.wav
refuses 1 "part.wav: the response is read from this file" in.wav two.conf part.wav
refuses 1 "one.matrix: the response is read from this file" in.wav one.matrix one.matrix -f wav
refuses 1 "part.wav: the response is read from this file" in.wav ir.wav part.wav --series part.wav
refuses 1 "part.wav: the response is read from this file" in.wav ir.wav part.wav --series one.matrix
runs in.wav one.matrix part.wav --force
for option in --plot --html; do
    for file in in.wav ir.wav part.wav one.matrix; do
        ln -f $file $file.svg
        refuses 1 "$file.svg: would replace a file of the same job" in.wav ir.wav new.wav --series one.matrix $option $file.svg
        rm $file.svg
    done
    ln ir.wav ir.svg
    refuses 1 "ir.svg: would replace a file of the same job" ir info in.wav ir.wav $option ir.svg
    refuses 1 "ir.svg: would replace a file of the same job" ir info in.wav --reference ir.wav $option ir.svg
    rm ir.svg
done
ln in.wav in.svg
refuses 1 "in.svg: would replace a file of the same job" ir info ir.wav --html in.svg --sound in.wav
rm in.svg
runs ir measure sweep.wav --seconds 0.5
runs sweep.wav ir.wav recording.wav
for out in sweep.wav recording.wav; do
    refuses 1 "$out: would replace a file of the same job" ir measure recording.wav sweep.wav $out
done
printf '20 0\n20000 0\n' >flat.svg
cp recording.wav calibrator.svg
for file in flat calibrator; do
    option=$([ $file = flat ] && echo --calibration || echo --calibrator)
    refuses 1 "$file.svg: would replace a file of the same job" ir measure recording.wav sweep.wav new.wav "$option" $file.svg --distortion $file.svg
    refuses 1 "$file.svg: would replace a file of the same job" ir measure recording.wav sweep.wav $file.svg "$option" $file.svg
done
if [ -e "$SOURCE/tests/sofa/head.sofa" ] && quietly "$GPUCONV" ir info "$SOURCE/tests/sofa/head.sofa"; then
    cp "$SOURCE/tests/sofa/head.sofa" head.sofa
    printf '30 0\n' >place.txt
    refuses 1 "head.sofa: the response is read from this file" in.wav head.sofa head.sofa -f wav --direction 30,0
    refuses 1 "place.txt: the response is read from this file" in.wav head.sofa place.txt -f wav --layout place.txt
fi
