#!/bin/sh
# Inputs for which other convolvers report success but write silence, full scale or the dry input (fconvolver, SoX, ffmpeg,
# SciPy and dsp of Debian 12): gpuconv writes the correct result or refuses with a reason.
# shellcheck disable=SC2046 # words are meant to part
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 2 44100 30000 0.2
make_audio taps ir.wav 1 44100 0.5 0.25

# A response that is missing, empty, junk or without frames: fconvolver writes silence, SoX copies the input dry.
: >empty.wav
head -c 3000 /dev/urandom >junk.wav
make_audio broken zero-frames none.wav
refuses 1 "missing.wav: No such file" in.wav missing.wav out.wav
refuses 1 "empty.wav: the file is empty" in.wav empty.wav out.wav
refuses 1 "junk.wav: not readable as audio" in.wav junk.wav out.wav
refuses 1 "none.wav: holds no frames" in.wav none.wav out.wav

# A NaN in the response: ffmpeg and SciPy write full scale.
make_audio taps nan.wav 1 44100 0.5 nan 0.25
refuses 1 "not finite at frame 1 of channel 1" in.wav nan.wav out.wav

# A long response: SoX writes silence past 153 725 taps.
make_audio sparse long.wav 200000 1 44100 0 199999
make_audio sparse click.wav 100 1 44100 0
runs -q -b cpu click.wav long.wav out.wav
about out.wav "200099 1 44100 wav 16"
set -- $("$TOOLS/look_audio" peak out.wav 199990 200010)
[ "$1" != 0 ] || fail "the end of a long response is silent"

# The output is the input, or the response with --force: other convolvers destroy both.
cp in.wav want-in.wav
runs -q -b cpu in.wav ir.wav want.wav
runs -q -b cpu in.wav ir.wav in.wav
"$TOOLS/look_audio" near in.wav want.wav 0 || fail "in place gives something else"
cp want-in.wav in.wav
cp ir.wav response.wav
refuses 1 "response.wav: the response is read from this file" in.wav response.wav response.wav
runs -q -b cpu --force in.wav response.wav response.wav
"$TOOLS/look_audio" near response.wav want.wav 0 || fail "onto the response gives something else"

# Nothing is normalised, truncated or resampled without a note; ffmpeg does all three.
make_audio taps loud.wav 1 44100 4
make_audio noise soft.wav wav-float 1 44100 5000 0.1
runs -b cpu soft.wav loud.wav out.wav
[ -s "$work/log/err" ] && fail "says something of nothing: $(cat "$work/log/err")"
runs -q -b cpu out.wav ir.wav twice.wav
make_audio taps eighth.wav 1 44100 0.25
runs -q -b cpu out.wav eighth.wav back.wav
"$TOOLS/look_audio" near back.wav soft.wav 1e-7 || fail "a gain of 4 is no gain of 4"
make_audio noise tail.wav wav-float 1 44100 7000 0.01
runs -b cpu soft.wav tail.wav out.wav
about out.wav "11999 1 44100 wav float"
make_audio noise other.wav wav-float 1 48000 7000 0.01
runs -b cpu soft.wav other.wav out.wav
one_line "other.wav: resampled from 48000 to 44100 Hz"
exit 0
