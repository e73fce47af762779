#!/bin/sh
# gpuconv ir clean and correct: what was done to a response is told. ir correct writes the filter, the drawing, the page and the figures; what it refuses writes nothing.
. "$(dirname "$0")/lib.sh"

runs ir synth room one.wav --size 5x4x3 --rt60 0.4 --seed 1
cp one.wav two.wav
printf '20 6\n200 3\n' >limit.txt
printf 'Filter 1: ON PK Fc 1000 Hz Gain -3 dB Q 1\n' >eq.txt
runs ir correct one.wav two.wav filter.wav --target house --max-gain limit.txt --eq eq.txt --phase mixed --length 0.25
about filter.wav "12000 2 48000 wav float"
says "$work/log/out" "positions                2" "headroom" "channel 2, dB" "rms after dB"
says "$work/log/err" "limit.txt: 2 rows"
runs ir correct one.wav filter.wav --crossover lr4:80,2500 --length 0.25 -q
about filter.wav "12000 6 48000 wav float"
[ ! -s "$work/log/out" ] || fail "-q prints figures"
runs ir correct filter.wav --eq eq.txt --rate 44100 -q
about filter.wav "22050 1 44100 wav float"
runs ir correct one.wav filter.wav -r json
python3 -c 'import json, sys; r = json.load(sys.stdin); assert len(r["channels"]) == 2, r' <"$work/log/out" || fail "no JSON"
if command -v gnuplot >"$work/log/which"; then
    runs ir correct one.wav filter.wav --plot drawing.svg --html page.html -q
    says drawing.svg "channel 2: filter" "channel 1: response" "after"
    says page.html "largest after dB" "data:image/svg+xml" "</html>"
fi

runs ir correct "$SOURCE/impulses/hall-true-stereo.flac" apart.wav --matrix --to 4000 --length 0.2 --delay 0.05
about apart.wav "9600 4 48000 wav float"
says "$work/log/out" "separation before" "ear 2, dB" "50 ms"
refuses 2 "the most gain is 0 to 60 dB, or a file, not 90 dB" ir correct one.wav out.wav --max-gain 90
refuses 2 "--matrix has --from" ir correct one.wav out.wav --matrix --target house
refuses 2 "--delay needs --matrix" ir correct one.wav out.wav --delay 0.1
refuses 2 "a delay of 0.3 s is not within filters of 0.2 s" ir correct one.wav out.wav --matrix --delay 0.3 --length 0.2
refuses 2 "2 channels in 1 file are no matrix" ir correct one.wav out.wav --matrix

make_audio noise noise.wav wav-16 2 48000 48000 0.5
refuses 1 "noise.wav: channel 1 has no direct sound" ir correct noise.wav out.wav
refuses 2 "noise.wav has 2 channels of 48000 frames" ir correct one.wav noise.wav out.wav
refuses 2 "one.wav: would replace" ir correct one.wav one.wav
refuses 2 "eq.txt: would replace" ir correct one.wav out.wav --eq eq.txt --plot eq.txt
refuses 1 "limit.txt: has no line of \"Preamp:\" or \"Filter\"" ir correct out.wav --eq limit.txt
refuses 2 "--crossover 'lr5:100'" ir correct one.wav out.wav --crossover lr5:100
refuses 2 "a crossover is at 23000 Hz" ir correct one.wav out.wav --crossover lr4:23000
refuses 2 "the range is 1 to 20000 Hz" ir correct one.wav out.wav --from 1
refuses 2 "mixed phase corrects measured responses" ir correct out.wav --eq eq.txt --phase mixed
refuses 2 "measured responses and a file are needed" ir correct one.wav
refuses 1 "missing.wav" ir correct missing.wav out.wav

make_audio spoil one.wav noisy.wav 0 0.001
runs ir clean noisy.wav cleaned.wav
says "$work/log/out" "channel 2" "1000 Hz" "replaced from s"
about cleaned.wav "$("$TOOLS/look_audio" about one.wav | cut -d' ' -f1) 2 48000 wav float"
runs ir clean noisy.wav cleaned.wav --length 2 --tail cut -q
about cleaned.wav "96000 2 48000 wav float"
refuses 2 "one.wav: would replace" ir clean one.wav one.wav
refuses 2 "a length is that of the response" ir clean one.wav out.wav --length 0.01
refuses 2 "two files are needed" ir clean one.wav
