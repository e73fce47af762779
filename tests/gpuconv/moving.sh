#!/bin/sh
# Sources that move along a path: from files and pipes, the same bytes on any number of threads; what cannot be combined is
# refused before the output is touched; and interpolation between directions is chosen and told. Heads that turn before
# sources that move or stay, and paths and heads recorded by oscdump.
. "$(dirname "$0")/lib.sh"
head=$SOURCE/tests/sofa/head.sofa

make_audio noise in.wav wav-16 1 48000 60000 0.1
make_audio noise two.wav wav-float 2 48000 60000 0.1
printf 'time,azimuth,elevation,distance\n0.1,0,0,1.5\n0.9,360,20,3\n' >path.csv
printf '0 30 0 -30 0\n1 90 0 -90 0\n' >two.txt

runs in.wav "$head" want.wav --path path.csv
grep -q '1 channel moves along path.csv (2 rows, 1 other line), interpolated between three of 47 directions, every 5 ms' ../log/err || fail "not told: $(cat ../log/err)"
runs in.wav "$head" one.wav --path path.csv --threads 1
cmp want.wav one.wav || fail "one thread: other bytes"
runs in.wav "$head" short.wav --path path.csv --tail 0
make_audio noise cd.wav wav-16 1 44100 30000 0.1
runs cd.wav "$head" short.wav --path path.csv --tail 0.003 # 132.3 frames
about short.wav "30132 2 44100 wav 16"
runs cd.wav "$head" short.wav --path path.csv --tail 0.0021 # 92.61: rounded as that of a response that stays
about short.wav "30093 2 44100 wav 16"
runs cd.wav "$head" all.raw --path path.csv --encoding float
runs cd.wav "$head" floor.raw --path path.csv --encoding float --tail auto:-60 # up to the last frame of that level
size=$(wc -c <floor.raw)
head -c "$size" all.raw | cmp - floor.raw || fail "with a floor: other samples"
[ "$size" -gt 240000 ] || fail "with a floor: $size bytes"
[ "$size" -lt "$(wc -c <all.raw)" ] || fail "a floor cuts nothing off"
runs two.wav "$head" two.out.wav --path two.txt --interpolate nearest --doppler --by-distance --interval 0.02 --gain -3
grep -q 'to the nearest of 47 directions, every 20 ms, with the Doppler effect' ../log/err || fail "not told: $(cat ../log/err)"
"$GPUCONV" - "$head" - --path path.csv <in.wav 2>/dev/null >piped.wav || fail "pipe"
runs in.wav "$head" plain.raw --path path.csv
"$GPUCONV" - "$head" - --path path.csv --format raw <in.wav 2>/dev/null | cmp - plain.raw || fail "pipe: other samples"

echo kept >kept.wav
cp kept.wav out.wav
for wrong in --direction=30,0 --layout=mono --trim=-60 --normalize=peak --reverse --dry=-6 --mode=same --backend=cuda \
    --plot=a.svg --html=a.html --compare; do
    "$GPUCONV" in.wav "$head" out.wav --path path.csv "$wrong" 2>../log/err && fail "$wrong is taken"
    [ "$(wc -l <../log/err)" -eq 1 ] || fail "$wrong: $(cat ../log/err)"
    cmp out.wav kept.wav || fail "$wrong: the output is touched"
done
"$GPUCONV" two.wav "$head" out.wav --path path.csv 2>../log/err && fail "a path of one channel for two"
grep -q "path.csv, line 2: '0.1,0,0,1.5': is not SECONDS and AZIMUTH" ../log/err || fail "$(cat ../log/err)"
"$GPUCONV" in.wav in.wav out.wav --path path.csv 2>../log/err && fail "a path without a SOFA file"
grep -q 'is no SOFA file' ../log/err || fail "$(cat ../log/err)"
cp path.csv again.csv
"$GPUCONV" in.wav "$head" path.csv --path path.csv 2>../log/err && fail "the path is replaced"
cmp path.csv again.csv || fail "the path is replaced"
"$GPUCONV" in.wav "$head" out.wav --doppler 2>../log/err && fail "--doppler without a path"
cmp out.wav kept.wav || fail "the output is touched"

# A head that turns: before a path, a bed and ambisonics, from a table and from a recording.
make_audio noise six.wav wav-float 6 48000 60000 0.1
make_audio noise four.wav wav-float 4 48000 60000 0.1
printf 'time,yaw,pitch,roll\n0,0,0,0\n1,100,20,5\n' >turns.csv
printf '%s /ypr fff %s\n' e1f5b6c4.00000000 '0.000000 0.000000 0.000000' e1f5b6c5.00000000 '100.000000 20.000000 5.000000' >turns.osc
printf '%s /adm/obj/1/aed fff %s\n' 00000000.1999999a '0.0 0.0 1.5' 00000000.80000000 '170.0 10.0 2.25' \
    00000000.e6666666 '-40.0 20.0 3.0' >path.osc
printf '0 0 0 1.5\n0.39999999990686774 170 10 2.25\n0.79999999981373549 320 20 3\n' >same.csv
runs in.wav "$head" want.wav --path path.csv --head turns.csv
grep -q '1 channel moves along path.csv (2 rows, 1 other line) before a head that turns (2 rows, 1 other line), interpolated' ../log/err || fail "not told: $(cat ../log/err)"
runs in.wav "$head" one.wav --path path.csv --head turns.csv --threads 1
cmp want.wav one.wav || fail "one thread: other bytes"
runs in.wav "$head" osc.wav --path path.csv --head turns.osc
cmp want.wav osc.wav || fail "a recorded head: other bytes"
runs in.wav "$head" want.wav --path same.csv
runs in.wav "$head" osc.wav --path path.osc
cmp want.wav osc.wav || fail "a recorded path: other bytes"
runs six.wav "$head" bed.wav --layout 5.1 --head turns.csv
grep -q '6 channels stay at 5.1 before a head that turns (2 rows, 1 other line), interpolated' ../log/err || fail "not told: $(cat ../log/err)"
runs two.wav "$SOURCE/tests/sofa/brir.sofa" room.wav --layout stereo --head turns.csv --interval 0.02
runs four.wav "$head" waves.wav --layout ambisonic --head turns.csv
grep -q '4 channels stay at ambisonic before a head that turns (2 rows, 1 other line), decoded by a fit to 47 directions' ../log/err || fail "$(cat ../log/err)"
runs four.wav "$head" other.wav --layout ambisonic --head turns.csv --decode ls
cmp -s waves.wav other.wav && fail "the decoder changes nothing"
for wrong in '--direction 0,0 --layout mono' '' '--layout 7.1' '--direction 0,0 --trim -60' '--direction 0,0 --plot a.svg' '--direction 0,0 --doppler'; do
    # shellcheck disable=SC2086
    "$GPUCONV" in.wav "$head" out.wav --head turns.csv $wrong 2>../log/err && fail "--head with $wrong is taken"
    cmp out.wav kept.wav || fail "$wrong: the output is touched"
done
cp turns.csv again.csv
"$GPUCONV" in.wav "$head" turns.csv --direction 0,0 --head turns.csv 2>../log/err && fail "the head is replaced"
cmp turns.csv again.csv || fail "the head is replaced"

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

# A recording takes the memory of its messages, whatever the number of channels.
make_audio noise wide.wav wav-16 64 48000 100 0.1
awk 'BEGIN { for (i = 0; i < 200000; i++) printf "%08x.%08x /o/%d/aed fff 0 0 1\n", i / 500, i % 500 * 8000000, i % 63 + 1 }' >wide.osc
"$TOOLS/measure" ../log/memory "$GPUCONV" wide.wav "$head" out.wav --path wide.osc 2>../log/err && fail "a channel without messages"
grep -q 'wide.osc: has no OSC message for channel 64' ../log/err || fail "$(cat ../log/err)"
[ "$(cat ../log/memory)" -le 100000 ] || [ -n "$SANITIZE" ] || fail "a recording of 8 MB takes $(cat ../log/memory) KiB"
exit 0
