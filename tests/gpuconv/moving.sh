#!/bin/sh
# Sources that move along a path: from files and pipes, the same bytes on any number of threads; what cannot be combined is
# refused before the output is touched; and interpolation between directions is chosen and told.
. "$(dirname "$0")/lib.sh"
head=$SOURCE/tests/sofa/head.sofa

make_audio noise in.wav wav-16 1 48000 60000 0.1
make_audio noise two.wav wav-float 2 48000 60000 0.1
printf 'time,azimuth,elevation,distance\n0.1,0,0,1.5\n0.9,360,20,3\n' >path.csv
printf '0 30 0 -30 0\n1 90 0 -90 0\n' >two.txt

runs in.wav "$head" want.wav --path path.csv
grep -q '1 channel moves along path.csv, interpolated between three of 47 directions, every 5 ms' ../log/err || fail "not told: $(cat ../log/err)"
runs in.wav "$head" one.wav --path path.csv --threads 1
cmp want.wav one.wav || fail "one thread: other bytes"
runs in.wav "$head" short.wav --path path.csv --tail 0
runs two.wav "$head" two.out.wav --path two.txt --interpolate nearest --doppler --by-distance --interval 0.02 --gain -3
grep -q 'to the nearest of 47 directions, every 20 ms, with the Doppler effect' ../log/err || fail "not told: $(cat ../log/err)"
"$GPUCONV" - "$head" - --path path.csv <in.wav 2>/dev/null >piped.wav || fail "pipe"
runs in.wav "$head" plain.raw --path path.csv
"$GPUCONV" - "$head" - --path path.csv --format raw <in.wav 2>/dev/null | cmp - plain.raw || fail "pipe: other samples"

echo kept >kept.wav
cp kept.wav out.wav
for wrong in --direction=30,0 --layout=mono --trim=-60 --normalize=peak --reverse --dry=-6 --mode=same --tail=auto --backend=cuda \
    --plot=a.svg --html=a.html --compare; do
    "$GPUCONV" in.wav "$head" out.wav --path path.csv "$wrong" 2>../log/err && fail "$wrong is taken"
    [ "$(wc -l <../log/err)" -eq 1 ] || fail "$wrong: $(cat ../log/err)"
    cmp out.wav kept.wav || fail "$wrong: the output is touched"
done
"$GPUCONV" two.wav "$head" out.wav --path path.csv 2>../log/err && fail "a path of one channel for two"
grep -q 'path.csv, line 2: is not SECONDS and AZIMUTH' ../log/err || fail "$(cat ../log/err)"
"$GPUCONV" in.wav in.wav out.wav --path path.csv 2>../log/err && fail "a path without a SOFA file"
grep -q 'is no SOFA file' ../log/err || fail "$(cat ../log/err)"
cp path.csv again.csv
"$GPUCONV" in.wav "$head" path.csv --path path.csv 2>../log/err && fail "the path is replaced"
cmp path.csv again.csv || fail "the path is replaced"
"$GPUCONV" in.wav "$head" out.wav --doppler 2>../log/err && fail "--doppler without a path"
cmp out.wav kept.wav || fail "the output is touched"

runs in.wav "$head" a.wav --direction 37,11
grep -q 'interpolated between three of its 47 directions for each channel; channel 1 is [0-9.]* degrees away from the nearest' ../log/err ||
    fail "the interpolation is not told: $(cat ../log/err)"
runs in.wav "$head" b.wav --direction 37,11 --interpolate nearest
grep -q 'the nearest of its 47 directions' ../log/err || fail "not told: $(cat ../log/err)"
cmp -s a.wav b.wav && fail "the interpolation changes nothing"
runs in.wav "$head" c.wav --direction 37,11,3 --by-distance --gain 6.0206
runs in.wav "$head" d.wav --direction 37,11,1.5 --by-distance
lossy=$(cmp -l c.wav d.wav | wc -l)
[ "$lossy" -lt 2000 ] || fail "half the level at twice the distance: $lossy bytes differ"
exit 0
