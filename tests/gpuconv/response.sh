#!/bin/sh
# Every option that prepares the response: an impulse is convolved, so that the output is the prepared response, and compared
# with samples that were computed by hand.
# shellcheck disable=SC2046 # words are meant to part
. "$(dirname "$0")/lib.sh"

make_audio taps one.wav 1 48000 1
make_audio taps ir.wav 1 48000 0 0 0.5 1 0.25 0 0.0005 0
frame() { # frames to seconds
    awk "BEGIN { printf \"%.9f\", $1 / 48000 }"
}

# gives "VALUE..." OPTION...: the impulse through ir.wav must give these values within 1e-6
gives() {
    want=$1
    shift
    # shellcheck disable=SC2086 # the values are meant to part
    make_audio taps want.wav 1 48000 $want
    runs -q -b cpu one.wav ir.wav out.wav "$@"
    "$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "$* does not give $want"
}
gives "0 0 0.5 1 0.25 0 0.0005 0"
gives "0.5 1 0.25 0 0.0005 0" --ir-start "$(frame 2)"
gives "0 0 0.5 1" --ir-length "$(frame 4)"
gives "1 0.25" --ir-start "$(frame 3)" --ir-length "$(frame 2)"
gives "0 0 0.5 1 0.25" --trim -60
gives "0 0 0.5 1 0.25 0 0.0005" --trim -70
gives "0.5 1 0.25 0 0.0005 0" --align onset
gives "1 0.25 0 0.0005 0" --align peak
gives "0 0.0005 0 0.25 1 0.5 0 0" --reverse
gives "0 0 0 0 0 0.5 1 0.25 0 0.0005 0" --predelay "$(frame 3)"
gives "0 0 0.5 0.75 0.0625 0" --ir-length "$(frame 6)" --fade "$(frame 3)"
gives "0 0 1 2 0.5 0 0.001 0" --ir-gain 6.0205999
gives "0 0 1 2 0.5 0 0.001 0" --gain 6.0205999
gives "0 0 0.05 0.1 0.025 0 0.00005 0" --wet -20
gives "0.1 0 0.5 1 0.25 0 0.0005 0" --dry -20
gives "0.2 0 0.1 0.2 0.05 0 0.0001 0" --dry 0 --wet -13.9794 --gain -13.9794 --ir-gain 13.9794

# Responses of other programs: a text, raw samples, HeSuVi's order; the rate that their files do not state.
printf '0\n0.5\n1\n' >taps.txt
printf '\000\100\000\300' >taps.pcm
makes() { # makes "VALUE..." RESPONSE OPTION...
    want=$1 response=$2
    shift 2
    # shellcheck disable=SC2086 # the values are meant to part
    make_audio taps want.wav 1 48000 $want
    runs -q -b cpu one.wav "$response" out.wav "$@"
    "$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "$response $* does not give $want"
}
makes "0 0.5 1" taps.txt --ir-rate 48000
makes "0.5 -0.5" taps.pcm --ir-raw 48000,1,s16
refuses 1 "taps.pcm: not readable as audio" one.wav taps.pcm out.wav
says "$work/log/err" "such as --ir-raw 48000,1,double"
refuses 1 "taps.txt: states no sampling rate; give it with --ir-rate" one.wav taps.txt out.wav
refuses 2 "--ir-raw 'x': must be RATE,CHANNELS,ENCODING such as 48000,1,double" one.wav taps.pcm out.wav --ir-raw x
refuses 1 "the layout hesuvi needs a response of 7 or 14 channels" one.wav ir.wav out.wav --ir-layout hesuvi
printf 'input,response,output,ir_rate,ir_raw\none.wav,taps.txt,a.wav,48000,\none.wav,taps.pcm,b.wav,,"48000,1,s16"\n' >list.csv
runs batch list.csv --out batch -q
"$TOOLS/look_audio" near batch/b.wav want.wav 1e-6 || fail "a batch reads raw samples otherwise"
runs ir info taps.txt --ir-rate 44100 --bands none
says "$work/log/out" "rate                     44100 Hz" "frames                   3"

make_audio taps two.wav 1 48000 0 2
make_audio taps half.wav 1 48000 0.5
gives "0 0 0 1 2 0.5 0 0.001 0" --series two.wav
gives "0 0 0 0.5 1 0.25 0 0.0005 0" --series two.wav --series half.wav

# Levels: the applied gain in dB is printed and reported.
make_audio taps ir.wav 2 48000 0.5 0.25 -0.25 0 0.5 0.25
make_audio taps one.wav 1 48000 1
leveled() { # leveled WAY DB: the gain is printed, and silence after the response does not change it
    runs -b cpu --normalize "$1" one.wav "$3" out.wav
    one_line "normalised by $1: $2 dB"
    runs -b cpu --normalize "$1" --report json one.wav "$3" out.wav
    grep -q "normalised by $1: $2 dB" "$work/log/out" || fail "the report does not say it: $(cat "$work/log/out")"
}
make_audio taps longer.wav 2 48000 0.5 0.25 -0.25 0 0.5 0.25 0 0 0 0 0 0 0 0
for ir in ir.wav longer.wav; do
    leveled peak +6.02 $ir
    leveled l1 -1.94 $ir     # 1.25 into the left
    leveled energy +2.50 $ir # 0.5625
done
runs -b cpu --normalize loudness one.wav ir.wav out.wav
loud=$(cat "$work/log/err")
runs -b cpu --normalize loudness one.wav longer.wav out.wav
[ "${loud#*: *: }" = "$(sed 's/^[^:]*: [^:]*: //' "$work/log/err")" ] || fail "silence changes it: $loud, $(cat "$work/log/err")"
runs -q -b cpu --normalize peak one.wav ir.wav out.wav
make_audio taps want.wav 2 48000 1 0.5 -0.5 0 1 0.5
"$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "--normalize peak does nothing"

# Stretching multiplies the length; minimum phase moves the peak to the start.
make_audio noise long.wav wav-float 1 48000 1000 0.5
runs -q -b cpu one.wav long.wav out.wav --stretch 2
set -- $("$TOOLS/look_audio" about out.wav)
[ "$1" -ge 2000 ] || fail "stretched to $1 frames"
[ "$1" -le 2200 ] || fail "stretched to $1 frames"
make_audio taps late.wav 1 48000 0 0 0 1 0 0 0 0
runs -q -b cpu one.wav late.wav out.wav --minimum-phase
make_audio taps want.wav 1 48000 1 0 0 0 0 0 0 0
"$TOOLS/look_audio" near out.wav want.wav 1e-5 || fail "--minimum-phase leaves the delay"

# Silence before a response is reported as latency, with the option that removes it.
make_audio sparse silent.wav 2000 1 48000 1000
runs -b cpu one.wav silent.wav out.wav
one_line "begins with 20.8 ms of silence, which is heard as latency; --align onset"
runs -b cpu one.wav silent.wav out.wav --align onset
one_line "0.0208333 s of silence before it cut off"

# Another rate: the onset is preserved and time zero does not move.
make_audio taps click.wav 1 48000 1 0 0 0 0 0 0 0
make_audio noise slow.wav wav-float 1 44100 4000 0.2
runs -b cpu slow.wav click.wav out.wav
one_line "frames of it before time zero"
runs -q -b cpu slow.wav click.wav same.wav --tail 0
about same.wav "4000 1 44100 wav float"

# Layouts of four channels, and packed in time.
make_audio taps stereo.wav 2 48000 1 0
make_audio taps four.wav 4 48000 0.1 0.2 0.3 0.4
for case in "source 0.1 0.2" "output 0.1 0.3" "auto 0.1 0.2"; do
    # shellcheck disable=SC2086
    set -- $case
    runs -b cpu stereo.wav four.wav out.wav --ir-layout "$1"
    one_line "channels read as left-left"
    make_audio taps want.wav 2 48000 "$2" "$3"
    "$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "layout $1 is not $2 $3"
done
# One channel: through true stereo it gives stereo and says so, and four outputs where they are asked for.
make_audio taps mono.wav 1 48000 1
runs -b cpu mono.wav four.wav out.wav
one_line "four.wav: 4 channels taken as true stereo"
make_audio taps want.wav 2 48000 0.4 0.6
"$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "a mono input through true stereo"
for layout in auto source; do
    runs -q -b cpu mono.wav four.wav out.wav --ir-layout $layout
    "$TOOLS/look_audio" near out.wav four.wav 1e-6 || fail "a mono input with the layout $layout"
done
make_audio taps packed.wav 2 48000 0.1 0.2 0 0 0.3 0.4 0 0 # two frames for the left input, two for the right
make_audio taps right.wav 2 48000 0 1
runs -q -b cpu right.wav packed.wav out.wav --ir-layout packed
make_audio taps want.wav 2 48000 0.3 0.4 0 0
"$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "packed in time"
# A packed response is divided before it is resampled or edited: it gives the bytes of the same responses in the layout
# output, also in series with a packed one. Silence would hide a shift, so all frames sound.
make_audio taps first.wav 1 48000 0.8 -0.4 0.2 0.1 -0.3 0.2
make_audio taps packed.wav 1 48000 0.8 -0.4 0.2 0.1 -0.3 0.2
make_audio taps output.wav 2 48000 0.8 0.1 -0.4 -0.3 0.2 0.2
make_audio noise slow2.wav wav-float 2 44100 400 0.2
for steps in "" "--predelay .01" "--ir-start .00003 --ir-length .00004" "--reverse" "--minimum-phase --fade .00002" \
    "--stretch 2 --trim -20" "--series first.wav --normalize l1"; do
    rm -f out.wav want.wav
    # shellcheck disable=SC2086
    runs -q -b cpu slow2.wav packed.wav out.wav --ir-layout packed $steps
    # shellcheck disable=SC2086
    runs -q -b cpu slow2.wav output.wav want.wav --ir-layout output $steps
    cmp -s out.wav want.wav || fail "packed is not output with '$steps'"
    # shellcheck disable=SC2086
    runs batch -q --inputs slow2.wav --irs packed.wav --ir-layout packed --out bulk $steps
    cmp -s bulk/*.wav want.wav || fail "packed is not output in a batch with '$steps'"
    rm -r bulk
done
make_audio taps three.wav 3 48000 0.1 0.2 0.3
refuses 1 "1 or 2 or 4 (true stereo) would" stereo.wav three.wav out.wav
refuses 1 "a multiple of 2 would be" --ir-layout source stereo.wav three.wav out.wav

# Invalid values are refused with one line.
refuses 2 "none, onset or peak" --align start one.wav ir.wav out.wav
refuses 2 "--trim" --trim 6 one.wav ir.wav out.wav
refuses 1 "the part begins at 5 s" --ir-start 5 one.wav ir.wav out.wav
refuses 1 "nothere.wav" --series nothere.wav one.wav ir.wav out.wav
refuses 1 "cannot be in series" --series three.wav one.wav ir.wav out.wav
make_audio taps nothing.wav 1 48000 0 0 0
refuses 1 "silent and cannot be normalised" --normalize energy one.wav nothing.wav out.wav
exit 0
