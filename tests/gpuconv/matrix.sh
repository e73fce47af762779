#!/bin/sh
# Matrices of responses: matrix files and jconvolver configurations give the routes that they list, files of other rates are
# resampled, and an invalid line is reported with its number and the reason.
. "$(dirname "$0")/lib.sh"

mkdir sub
make_audio taps a.wav 2 48000 1 0.5 0.25 -1 # channel 1: 1 0.25, channel 2: 0.5 -1
make_audio taps "sub/b c.wav" 1 48000 0.1 0.2 0.3 0.4
make_audio taps in.wav 2 48000 1 0 0 0 0 1 # left one at frame 0, right one at frame 2
gives() { # gives MATRIX CHANNELS VALUE...
    matrix=$1 channels=$2
    shift 2
    make_audio taps want.wav "$channels" 48000 "$@"
    runs -b cpu in.wav "$matrix" out.wav
    "$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "$matrix gives something else: $(cat "$work/log/err")"
}

cat >one.txt <<'END'
# from  to  file        channel gain delay       offset      length
1       1   a.wav
1       3   a.wav       2       -20
2       2   "sub/b c.wav" 1     0    0.000020833 0.000020833 0.0000416667   # a frame late, from 0.2, two of them
2       1   dirac       1       -6.0205999
2       1   dirac       1       -6.0205999
END
gives one.txt 3  1 0 0.05  0.25 0 -0.1  1 0 0  0 0.2 0  0 0.3 0
one_line "2 inputs x 3 outputs, 4 routes"
cp one.txt one.matrix
gives one.matrix 3  1 0 0.05  0.25 0 -0.1  1 0 0  0 0.2 0  0 0.3 0
cd sub && runs -q -b cpu ../in.wav ../one.txt ../out.wav && cd .. || exit 1
"$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "files lie beside the matrix, not beside us"

cat >two.conf <<'END'
# a configuration of jconvolver
/convolver/new 2 3 256 1000
/input/name 1 Left
/cd sub
/impulse/read 2 2 1.0 1 1 2 1 "b c.wav"
/cd .
/impulse/read 1 1 1 0 0 0 1 a.wav
/impulse/read 1 3 0.1 0 0 0 2 a.wav
/impulse/dirac 2 1 0.5 0
/impulse/dirac 2 1 0.5 0
END
gives two.conf 3  1 0 0.05  0.25 0 -0.1  1 0 0  0 0.2 0  0 0.3 0

# The declared length truncates longer responses.
printf '/convolver/new 2 2 64 2\n/impulse/read 1 1 1 0 0 0 1 "sub/b c.wav"\n/impulse/copy 2 2 1 1\n' >short.conf
gives short.conf 2  0.1 0  0.2 0  0 0.1  0 0.2

# A response of another rate is resampled to the input's rate.
make_audio noise slow.wav wav-float 2 44100 3000 0.1
runs -b cpu slow.wav one.txt out.wav
one_line "resampled from 48000 to 44100 Hz"

# Preparation options apply to a matrix too.
make_audio taps want.wav 3 48000 2 0 0.1 0.5 0 -0.2 2 0 0 0 0.4 0 0 0.6 0
runs -q -b cpu in.wav one.txt out.wav --ir-gain 6.0205999
"$TOOLS/look_audio" near out.wav want.wav 1e-6 || fail "a matrix takes no gain"
runs -b cpu in.wav one.txt out.wav --normalize peak
grep -q 'normalised by peak: +0.00 dB' "$work/log/err" || fail "no level: $(cat "$work/log/err")"

make_audio taps mono.wav 1 48000 1
refuses 1 "the matrix has 2 inputs, the input has 1 channel" mono.wav one.txt out.wav

wrong() { # wrong NAME TEXT LINE...
    name=$1 says=$2
    shift 2
    printf '%s\n' "$@" >"$name"
    refuses 1 "$says" in.wav "$name" out.wav
}
wrong w.txt "w.txt, line 2: a line is INPUT OUTPUT FILE" '1 1 a.wav' '1 2'
wrong w.txt "w.txt, line 1: inputs and outputs are numbers from 1" '0 1 a.wav'
wrong w.txt "w.txt, line 1: inputs and outputs are numbers from 1" '1 1.5 a.wav'
wrong w.txt "w.txt, line 1: 'x' is not a channel" '1 1 a.wav x'
wrong w.txt "w.txt, line 1: 'loud' is not a gain" '1 1 a.wav 1 loud'
wrong w.txt "w.txt, line 1: '-1' is not a time" '1 1 a.wav 1 0 -1'
wrong w.txt "a.wav has 2 channels, not 3" '1 1 a.wav 3'
wrong w.txt "a.wav has only 2 frames; the offset is 48000" '1 1 a.wav 1 0 0 1'
wrong w.txt "w.txt, line 1: nothere.wav: No such file" '1 1 nothere.wav'
wrong w.txt "a quotation mark without its pair" '1 1 "a.wav'
wrong w.txt "w.txt: contains no route" '# nothing'
wrong w.conf "w.conf, line 2: /convolver/new must come before the first route" '/impulse/dirac 1 1 1 0' '/convolver/new 2 2 64 100'
wrong w.conf "w.conf, line 2: 3 to 1 is not a route of 2 inputs and 2 outputs" '/convolver/new 2 2 64 100' '/impulse/dirac 3 1 1 0'
wrong w.conf "w.conf, line 2: unknown command '/impulse/noise'" '/convolver/new 2 2 64 100' '/impulse/noise 1 1 1 0 64'
wrong w.conf "the delay of /impulse/hilbert is at least half its length of 64" '/convolver/new 2 2 64 100' '/impulse/hilbert 1 1 1 31 64'
wrong w.conf "w.conf, line 2: a route is not copied to itself" '/convolver/new 2 2 64 100' '/impulse/copy 1 1 1 1'
wrong w.conf "w.conf, line 3: the route 2 to 2 is a copy (line 2)" '/impulse/dirac 1 1 1 0' '/impulse/copy 2 2 1 1' '/impulse/dirac 2 2 1 0'
wrong w.conf "there is no route from 2 to 2 to copy" '/impulse/dirac 1 1 1 0' '/impulse/copy 1 1 2 2' '/impulse/copy 2 2 1 1'
wrong w.conf "there is no route from 2 to 2" '/convolver/new 2 2 64 100' '/impulse/copy 1 1 2 2'
wrong w.conf "/convolver/new is allowed once only" '/convolver/new 2 2 64 100' '/convolver/new 2 2 64 100'
# A zero byte is named with its line, wherever it stands; nothing behind it is dropped.
zero() { # zero TEXT PRINTF-FORMAT
    for name in w.txt w.conf; do
        # shellcheck disable=SC2059 # the format is the file
        printf "$2" >$name
        refuses 1 "$name, line $1: a zero byte" in.wav $name out.wav
    done
}
zero 1 '\000'
zero 1 '\0001 1 a.wav\n'
zero 2 '# first\n1 1 a.wav\000 and more\n'
zero 2 '# first\n# last without an end\000'
zero 2 '\n\000'
printf '1\000 \0001\000 \000a\000' >w.txt # UTF-16
refuses 1 "w.txt, line 1: a zero byte" in.wav w.txt out.wav

# A byte order mark before the first line is skipped; nowhere else.
printf '\357\273\277' | cat - one.txt >marked.txt
gives marked.txt 3  1 0 0.05  0.25 0 -0.1  1 0 0  0 0.2 0  0 0.3 0
printf '\357\273\277' | cat - two.conf >marked.conf
gives marked.conf 3  1 0 0.05  0.25 0 -0.1  1 0 0  0 0.2 0  0 0.3 0
printf '\357\273\277' >w.txt
refuses 1 "w.txt: contains no route" in.wav w.txt out.wav
printf '# first\n\357\273\2771 1 a.wav\n' >w.txt
refuses 1 "w.txt, line 2: inputs and outputs" in.wav w.txt out.wav

# Lines end with LF or CR LF, and the last one needs no end.
printf '1 1 a.wav\r\n2 2 a.wav 2' >ends.txt
gives ends.txt 2  1 0  0.25 0  0 0.5  0 -1

# The length of the path of /cd is limited.
{
    echo '/convolver/new 2 2 64 100'
    awk 'BEGIN { printf "/cd "; for (i = 0; i < 2048; i++) printf "./"; print "" }'
} >w.conf
refuses 1 "/cd makes the folder's path longer than 4095 bytes" in.wav w.conf out.wav
{
    echo '/convolver/new 2 2 64 100'
    awk -v here="$(pwd)" 'BEGIN { for (i = 0; i < 20000; i++) print "/cd " here }'
    echo '/impulse/read 1 1 1 0 0 0 1 a.wav'
    echo '/impulse/read 2 2 1 0 0 0 2 a.wav'
} >absolute.conf
gives absolute.conf 2  1 0  0.25 0  0 0.5  0 -1

# A matrix that does not fit into the memory is refused with the numbers.
awk 'BEGIN { for (i = 1; i <= 200; i++) for (o = 1; o <= 300; o++) print i, o, "dirac", 1, 0, 2000 }' >huge.txt
refuses 1 "huge.txt: a response of 96000001 frames and 60000 channels takes 2.3e+04 GB of memory" in.wav huge.txt out.wav

# What lies beyond the declared length is refused where nothing of it is left, and told where a part is cut off.
wrong w.conf "w.conf, line 2: a delay of 100 frames lies behind the 100 frames of /convolver/new" '/convolver/new 2 2 64 100' '/impulse/dirac 1 1 1 100'
wrong w.conf "w.conf, line 2: a delay of 100 frames lies behind" '/convolver/new 2 2 64 100' '/impulse/read 1 1 1 100 0 0 1 a.wav'
wrong w.conf "w.conf, line 2: a delay of 4000000000 frames" '/convolver/new 2 2 64 10000000000' '/impulse/dirac 1 1 1 4e9'
wrong w.conf "w.conf, line 2: a delay of 4000000000 frames" '/convolver/new 2 2 64 100' '/impulse/dirac 1 1 1 4e9'
wrong w.txt "w.txt, line 1: a delay of 48000000000 frames is more than" '1 1 dirac 1 0 1000000'
printf '/convolver/new 2 2 64 3\n/impulse/dirac 1 1 1 2\n/impulse/dirac 2 2 1 0\n' >edge.conf
gives edge.conf 2  0 0  0 0  1 1  0 0  0 0
runs -b cpu in.wav short.conf out.wav
one_line "2 routes, up to 2 frames beyond the 2 declared left out"

# Numbers are decimal and finite.
wrong w.txt "w.txt, line 1: 'nan' is not a gain" '1 1 a.wav 1 nan'
wrong w.txt "w.txt, line 1: '0x1' is not a gain" '1 1 a.wav 1 0x1'
wrong w.txt "w.txt, line 1: '1e400' is not a time" '1 1 a.wav 1 0 1e400'
wrong w.txt "w.txt, line 1: 'inf' is not a time" '1 1 a.wav 1 0 inf'
wrong w.txt "a line is INPUT OUTPUT FILE" '1 "" a.wav'

# Configurations of mcfx: no /convolver/new, an empty /cd, and matrices that are packed into one file.
make_audio taps packed.wav 2 48000 1 0.1  0.5 0.2  0.25 0.3  -1 0.4 # 2 inputs x 2 frames: 1 0.5, 0.25 -1; 0.1 0.2, 0.3 0.4
printf '/cd \n/impulse/packedmatrix 2 1.0 0 0 0 packed.wav\n' >mcfx.conf
gives mcfx.conf 2  1 0.1  0.5 0.2  0.25 0.3  -1 0.4
printf '/impulse/packedmatrix 2 2 1 1 1 packed.wav\n' >mcfx.conf
gives mcfx.conf 2  0 0  1 0.4  0 0  -2 0.8
printf '/impulse/dirac 2 3 0.5 0\n/impulse/dirac 1 1 1 0\n' >mcfx.conf
gives mcfx.conf 3  1 0 0  0 0 0  0 0 0.5
wrong w.conf "packed.wav has 4 frames, which 3 inputs do not divide evenly" '/impulse/packedmatrix 3 1 0 0 0 packed.wav'
wrong w.conf "packed.wav has 2 frames for each input, not 2 from frame 1 on" '/impulse/packedmatrix 2 1 0 1 2 packed.wav'
wrong w.conf "/impulse/packedmatrix needs inputs" '/impulse/packedmatrix 2 1 packed.wav'

# Rows of gains, as of an ambisonic decoder.
printf 'row 1 1 -0.5\nrow 2 0 2 # a comment\n1 2 a.wav 1 0 0.0000208334\n' >gains.txt
gives gains.txt 2  1 0  0 1  -0.5 2.25  0 0  0 0
wrong w.txt "w.txt, line 1: a row of gains is: row OUTPUT" 'row x 1'
wrong w.txt "w.txt, line 1: 'y' is not a factor" 'row 1 1 y'
wrong w.txt "w.txt, line 1: a row without factors" 'row 1'

# BruteFIR's configurations.
printf '1\n0.25\n' >one.coeff
printf '\0\0\200\077\0\0\0\277' >two.raw # 1 -0.5
cat >brute.conf <<'END'
# comments are skipped, settings of the program itself are noted
float_bits: 32; sampling_rate: 48000; filter_length: 1,8; powersave: true; safety_limit: 0; float_bits: 64;
logic: "cli" { port: 3000; };
coeff "a" { filename: "one.coeff"; format: "text"; };
coeff 1 { filename: "two.raw"; format: "FLOAT_LE"; attenuation: 6.0205999; };
coeff "cut" { filename: "one.coeff"; format: "text"; blocks: 1; };
input "left", "right" { device: "file" { path: "x"; }; sample: "S16_LE"; channels: 2/0,1; delay: 0,0; };
output "l", "r", "sub" { device: "file" { path: "y"; }; sample: "S16_LE"; channels: 3; };
filter "first" { from_inputs: "left"; to_outputs: "l"; coeff: "a"; };
filter 2 { inputs: "left"//-1, 1/6.0205999; outputs: "r"/0/2; coeff: 1; process: 0; };
filter "third" { inputs: "right"; outputs: "sub"/20; coeff: -1; };
filter "fourth" { inputs: "right"; outputs: "sub"; coeff: "cut"; };
END
gives brute.conf 3  1 -1 0  0.25 0.5 0  0 0.5 1.1  0 -0.25 0
one_line "2 inputs x 3 outputs, 4 routes; ignored: float_bits, powersave, safety_limit, logic, device, sample, process"
wrong w.conf "w.conf, line 1: 'x' is no input or output" 'filter 1 { inputs: "x"; outputs: 0; coeff: -1; };'
wrong w.conf "filters behind filters are not read" 'input "x" { };' 'filter 1 { from_filters: "x"; };'
wrong w.conf "'nothing' is no coefficient" 'input 0 { }; output 0 { };' 'filter 1 { inputs: 0; outputs: 0; coeff: "nothing"; };'
wrong w.conf "w.conf, line 1: coefficient 'a': a filename and a format text" 'coeff "a" { filename: "one.coeff"; format: "processed"; };'
wrong w.conf "w.conf, line 1: nothere: No such file" 'coeff "a" { filename: "nothere"; };'
wrong w.conf "a.wav, line 1: a zero byte" 'coeff "a" { filename: "a.wav"; };'
wrong w.conf "a delay of 3 is not read" 'input "x" { delay: 3; };'
wrong w.conf "';' is missing" 'coeff "a" { filename: "one.coeff" }'
wrong w.conf "a quotation mark without its pair in the line" 'coeff "a' '";'
wrong w.conf "w.conf: contains no route" 'sampling_rate: 44100;'

# Settings of BruteFIR that change the samples are honoured or refused; the others are noted.
printf '\n  0.5\n\t\n 0\r\n0.25' >blank.coeff
brute() { # brute CHANNELS TEXT VALUE...
    channels=$1 text=$2
    shift 2
    printf '%s\n' "$text" 'filter 0 { inputs: "l"; outputs: "ol"; coeff: "c"; };' 'filter 1 { inputs: "r"; outputs: "or"; coeff: "c"; };' >b.conf
    gives b.conf "$channels" "$@"
}
c='coeff "c" { filename: "blank.coeff"; format: "TEXT"; shared_mem: false; blocks: -1; };'
brute 2 "$c input \"l\",\"r\" {}; output \"ol\",\"or\" {};" 0.5 0  0 0  0.25 0.5  0 0  0 0.25
brute 2 "$c input \"l\",\"r\" { mute: false,true; }; output \"ol\",\"or\" { mute: false; dither: true; };" 0.5 0  0 0  0.25 0  0 0  0 0
brute 2 "$c input \"l\",\"r\" {}; output \"ol\",\"or\" { mute: true, false; };" 0 0  0 0  0 0.5  0 0  0 0.25
brute 2 "filter_length: 1,2; $c input \"l\",\"r\" {}; output \"ol\",\"or\" {};" 0.5 0  0 0  0 0.5  0 0
one_line "2 routes, up to 1 frames beyond the 2 declared left out"
brute 2 "$c input \"l\",\"r\" { channels: 2/1,0; }; output \"ol\",\"or\" {};" 0 0.5  0 0  0.5 0.25  0 0  0.25 0
brute 3 "$c input \"l\",\"r\" {}; output \"ol\",\"or\" { channels: 3/2,0; };" 0 0 0.5  0 0 0  0.5 0 0.25  0 0 0  0.25 0 0
brute 2 "$c input \"l\",\"r\" {}; output \"ol\",\"or\",\"x\" { channels: 2; mapping: 1,1,0; };" 0 0.5  0 0  0 0.75  0 0  0 0.25
printf '\357\273\277' | cat - brute.conf | tr '\n' '\r' >cr.conf
gives cr.conf 3  1 -1 0  0.25 0.5 0  0 0.5 1.1  0 -0.25 0
wrong w.conf "'l' has no channel of the device" 'input "x", "l" { channels: 1; };'
wrong w.conf "unknown setting 'mut' of channels" 'input "x" { mut: true; };'
wrong w.conf "mute: 'yes' is neither true nor false" 'input "x" { mute: yes; };'
wrong w.conf "'x' is declared twice" 'input "x", "x" { };'
wrong w.conf "unknown setting 'block' of coefficients" 'coeff "a" { block: 3; };'
wrong w.conf "unknown setting 'gain' of a filter" 'input 0 { }; filter 1 { gain: 2; };'
wrong w.conf "w.conf, line 1: unknown setting 'sample_rate'" 'sample_rate: 44100;'
wrong w.conf "filter_length: 0.5 is not an integer" 'filter_length: 0.5;'
wrong w.conf "powersave: a level of -80 dB, which changes samples, is not read" 'powersave: -80;'
wrong w.conf "safety_limit: a level of -3 dB" 'safety_limit: -3;'
wrong w.conf "the module 'eq' of logic changes coefficients" 'logic: "cli" { port: 1; }, "eq" { debug: true; };'
wrong w.conf "a script of the module 'cli' is not run" 'logic: "cli" { script: "cfoa 0 0 6"; };'
printf '0.5\n1k\n' >bad.coeff
wrong w.conf "w.conf, line 1: bad.coeff, line 2: '1k': '1k' is not a number" 'coeff "a" { filename: "bad.coeff"; };'

# jconvolver: a copy takes the place of what was there and follows later additions, through other copies too; /cd begins at
# the folder of the configuration; names in 'quotation marks', with backslashes, and with blanks as mcfx writes them.
make_audio taps one.wav 1 48000 1
mkdir -p sub/sub
cp one.wav 'big hall.wav'
cp one.wav sub/one.wav
cp "sub/b c.wav" sub/sub/one.wav
printf '%s\n' '/convolver/new 2 2 64 100' '/impulse/dirac 2 2 5 0' '/impulse/dirac 1 1 0.25 0' '/impulse/copy 2 2 1 1' '/impulse/dirac 1 1 0.5 1' >copy.conf
gives copy.conf 2  0.25 0  0.5 0  0 0.25  0 0.5
printf '%s\n' '/convolver/new 2 2 64 100' '/impulse/copy 1 2 2 2' '/impulse/copy 2 2 1 1' '/impulse/dirac 1 1 0.25 0' >copy.conf
gives copy.conf 2  0.25 0.25  0 0  0 0.25
printf '%s\n' '/convolver/new 2 2 64 100' '/cd sub/sub' '/cd sub' '/impulse/read 1 1 1 0 0 0 1 one.wav' >cd.conf
gives cd.conf 2  1 0  0 0  0 0
for name in 'big hall.wav' "'big hall.wav'" '"big hall.wav"' 'big\ hall.wav' 'big" "hall.wav # a comment' 'big hall.wav # a comment'; do
    printf '/impulse/dirac 2 2 0 0\n/impulse/read 1 1 1 0 0 0 1 %s\n' "$name" >name.conf
    gives name.conf 2  1 0  0 0  0 0
done
printf '/convolver/new 2 2 64 100\n/jack/client x\n/input/name 1 a b c d e f g h i j k l m\n/impulse/hilbert 1 1 1.5707963268 33 64\n' >hilbert.conf
# shellcheck disable=SC2046 # a list of values
gives hilbert.conf 2 $(awk 'BEGIN { for (n = 0; n < 67; n++) { i = n - 33
    print (i % 2 && i > -32 && i < 32 ? -(0.43 + 0.57 * cos(i * 3.14159265 / 32)) / i : 0), 0 } }')

# A matrix may be divided by semicolons or commas, with decimal commas and empty fields where these are clear.
cells() { # cells TEXT
    # shellcheck disable=SC2059 # the text is the format
    printf "$1" >cells.txt
    gives cells.txt 2  0.5 0  0 0  0 1
}
cells '\357\273\277# c\r1;1;one.wav;;-6,0205999\r2;2;dirac\r'
cells '1,1,one.wav,,-6.0205999,\n2,2,dirac\n'
cells '1\t1\tone.wav\t1\t-6,0205999\r\n2\t2\tdirac\n'
cells '1 1 one.wav 1 -6,0205999\n2 2 dirac\n'
wrong w.txt "an empty field between two tabs" '1	1	one.wav		2'
wrong w.txt "'-6.0' is not a gain" '1;1;one.wav;1;-6,0' '1;2;one.wav;1;-6.0'

wrong w.conf "/impulse/read needs" '/convolver/new 2 2 64 100' '/impulse/read 1 1 1 0 0 0 1'
exit 0
