#!/bin/sh
# Sources and receivers that move in a simulated room: from files and pipes, the same bytes on any number of threads; what
# stays has the simulated response; and what does not fit is refused before the output is touched.
. "$(dirname "$0")/lib.sh"
room='room:size=5x4x3 rt60=0.3 images=0.02'

make_audio noise in.wav wav-16 1 16000 12000 0.1
make_audio noise two.wav wav-float 2 16000 12000 0.1
printf 'time,x,y,z\n0 1 1 1.5\n0.6 1.9 1.4 1.5\n' >walk.txt
printf '0 1 1 1.5 4 3 1\n0.6 1.9 1.4 1.5 4 3 1\n' >two.txt
printf '0 4 2 1.2\n0.6 3.5 2.5 1.2\n' >back.txt

runs in.wav "$room receiver=4,2,1.2" want.wav --path walk.txt
grep -q '1 channel moves along walk.txt (2 rows, 1 other line), receivers stay, responses simulated every 5 ms' ../log/err || fail "not told: $(cat ../log/err)"
runs in.wav "$room receiver=4,2,1.2" one.wav --path walk.txt --threads 1
cmp want.wav one.wav || fail "one thread: other bytes"
"$GPUCONV" - "$room receiver=4,2,1.2" - --path walk.txt <in.wav 2>/dev/null >piped.wav || fail "pipe"
runs two.wav "$room pattern=cardioid receiver=4,2,1.2,180,0 receiver=4.1,2,1.2" both.wav --path two.txt --receiver-path back.txt --interval 0.01
grep -q '2 channels move along two.txt (2 rows), receivers along back.txt (2 rows), responses simulated every 10 ms' ../log/err || fail "not told: $(cat ../log/err)"
about both.wav "19570 2 16000 wav float"
runs in.wav "$room ambisonic=1" waves.wav --path walk.txt --receiver-path back.txt --head walk.txt
about waves.wav "19570 4 16000 wav 16"

# Both ends stay: the response that gpuconv ir synth writes.
"$GPUCONV" ir synth room response.wav --size 5x4x3 --rt60 0.3 --images 0.02 --source 1,1,1.5 --receiver 4,2,1.2 --rate 16000 2>../log/err || fail "$(cat ../log/err)"
runs in.wav "$room source=1,1,1.5 receiver=4,2,1.2" still.raw --encoding float --tail 0
runs in.wav response.wav plain.raw --encoding float --tail 0
cat >near.py <<'PY'
import struct, sys
a, b = (struct.unpack("<%df" % (len(d) // 4), d) for d in (open(n, "rb").read() for n in sys.argv[1:3]))
power, off = sum(x * x for x in b), sum((x - y) ** 2 for x, y in zip(a, b))
sys.exit(not (len(a) == len(b) and off < 1e-3 * power))
PY
if command -v python3 >../log/which; then
    python3 near.py still.raw plain.raw || fail "ends that stay: another response"
fi

echo kept >kept.wav
cp kept.wav out.wav
printf '0 1 1 1.5\n0.6 5.5 1.4 1.5\n' >outside.txt
printf '0 4 1 1.2\n0.6 4 3 1.2\n' >through.txt
refuses() { # refuses WORDS IR OPTION...: fails with one line that has these words, and leaves the output alone
    words=$1 ir=$2
    shift 2
    "$GPUCONV" in.wav "$ir" out.wav "$@" 2>../log/err && fail "$ir $*: is taken"
    [ "$(wc -l <../log/err)" -eq 1 ] || fail "$ir $*: $(cat ../log/err)"
    grep -q "$words" ../log/err || fail "$ir $*: $(cat ../log/err)"
    cmp out.wav kept.wav || fail "$ir $*: the output is touched"
}
refuses 'channel 1 is at x = 5.5 m at 0.6 s; use more than 0 and less than 5' "$room receiver=4,2,1.2" --path outside.txt
refuses 'receiver 1 is at x = 5.5 m at 0.6 s' "$room" --path walk.txt --receiver-path outside.txt
refuses 'come within 0 m of each other; use 0.05 m or more' "$room receiver=4,2,1.2" --path through.txt
refuses "two.txt, line 1: '0 1 1 1.5 4 3 1': too many fields" "$room receiver=4,2,1.2" --path two.txt
refuses 'has no receiver' "$room" --path walk.txt
refuses 'has no place for the sources' "$room receiver=4,2,1.2"
refuses '2 sources for 1 channel' "$room receiver=4,2,1.2 source=1,1,1 source=2,1,1"
refuses 'leave out a direction' "$room receiver=4,2,1.2" --path walk.txt --direction 30,0
refuses 'are not edited' "$room receiver=4,2,1.2" --path walk.txt --interpolate nearest
refuses 'are not edited' "$room receiver=4,2,1.2" --path walk.txt --trim -60
refuses 'on the CPU only' "$room receiver=4,2,1.2" --path walk.txt --backend cuda
refuses 'is no room' in.wav --path walk.txt --receiver-path back.txt
refuses 'exclude --html' "$room receiver=4,2,1.2" --path walk.txt --compare
refuses 'rt60' "room:size=5x4x3 rt60=nan receiver=4,2,1.2" --path walk.txt
refuses "ears of a set are for ends that rest" "$room receiver=4,2,1.2 sofa=set.sofa" --path walk.txt
cp back.txt again.txt
"$GPUCONV" in.wav "$room" back.txt --path walk.txt --receiver-path back.txt 2>../log/err && fail "the path is replaced"
cmp back.txt again.txt || fail "the path is replaced"
exit 0
