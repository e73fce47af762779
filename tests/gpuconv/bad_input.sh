#!/bin/sh
# A file that cannot be used gives exit status 1 and one line with its name and the reason; no output and no temporary file
# is written, and an older output is unchanged.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 1 44100 1000 0.1
make_audio noise two.wav wav-16 2 44100 1000 0.1
make_audio taps ir.wav 1 44100 1 0.5
make_audio taps three.wav 3 44100 1 0.5 0.25 0 1 0
make_audio taps nan.wav 1 44100 1 nan 0.25
make_audio taps inf.wav 1 44100 1 0 inf
make_audio noise long.flac flac-16 1 44100 50000 0.5
: >empty.wav
mkdir folder folder.wav
echo "This is a letter, not a sound. It is long enough to hold a header." >text.wav
head -c 100000 /dev/zero >zeros.wav
for kind in truncated zero-frames zero-channels; do
    make_audio broken $kind $kind.wav
done
head -c 200 long.flac >cut-off.flac
head -c 50000 long.flac >half.flac

# The same file as input and as response.
bad() {
    refuses 1 "$1: $2" "$1" ir.wav out.wav
    refuses 1 "$1: $2" in.wav "$1" out.wav
}
bad missing.wav "No such file"
bad nowhere/in.wav "No such file"
bad in.wav/in.wav "Not a directory"
bad empty.wav "the file is empty"
bad folder "is a directory"
bad folder.wav "is a directory"
bad text.wav "not readable as audio"
bad zeros.wav "not readable as audio"
bad truncated.wav "not readable as audio"
bad zero-frames.wav "holds no frames"
bad zero-channels.wav "not readable as audio"
bad cut-off.flac ""
# A device, which may never end, is no input, also behind a link and in a batch.
ln -s /dev/zero endless.wav
refuses 1 "endless.wav: is a pipe or a device" endless.wav ir.wav out.wav
refuses 1 "endless.wav: is a pipe or a device" ir info ir.wav --html page.html --sound endless.wav
timeout 60 "$GPUCONV" batch -q --inputs endless.wav --irs ir.wav --out wet >"$work/log/out" 2>&1
[ $? -eq 1 ] || fail "a batch of a device: not exit 1"
grep -q '"failed","reason":".*is a pipe or a device' wet/results.jsonl || fail "a batch of a device"
rm -r wet

# A file that ends in the middle gives no shorter output.
head -c 1000 in.wav >half.wav
bad half.wav "damaged or cut off: of 2000 bytes of samples that its header states, 1044 are missing"
bad half.flac "damaged or cut off: ends after"
"$GPUCONV" -b cpu - ir.wav out.wav <half.flac 2>"$work/log/err" && fail "half of a file as standard input: exit 0"
one_line "standard input: damaged or cut off: ends after"

refuses 1 "nan.wav: the response is not finite at frame 1 of channel 1" in.wav nan.wav out.wav
refuses 1 "inf.wav: the response is not finite at frame 2 of channel 1" in.wav inf.wav out.wav
refuses 1 "three.wav: 3 channels of response do not fit 2 of input" two.wav three.wav out.wav

refuses 1 "nowhere/out.wav: there is no folder nowhere; create it first" in.wav ir.wav nowhere/out.wav
refuses 1 "in.wav/out.wav: Not a directory" in.wav ir.wav in.wav/out.wav
refuses 1 "folder.wav: is a directory" in.wav ir.wav folder.wav
refuses 1 "out.xyz: the extension names no known format" in.wav ir.wav out.xyz
refuses 1 "out: the extension names no known format" in.wav ir.wav out
refuses 1 "folder/.wav" in.wav ir.wav folder/.wav/out.wav

# An output that cannot be opened is reported before anything is computed.
make_audio sparse long.wav 400000000 1 44100 0
refuses 1 "nowhere/out.wav" long.wav ir.wav nowhere/out.wav
