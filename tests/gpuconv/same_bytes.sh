#!/bin/sh
# The same input gives the same bytes with any number of threads, in the command and in a batch; a pipe of unknown length
# gives the same bytes as the file from 2^23 frames.
. "$(dirname "$0")/lib.sh"

# same NAME FILE FILE
same() {
    cmp -s "$2" "$3" || fail "$1: $2 and $3 differ"
}

# Inputs and responses for which threads or length once changed the plan, and one for each named algorithm.
make_audio noise short.wav wav-float 2 44100 1367100 0.1
make_audio noise hall.wav wav-float 2 44100 200000 0.1
make_audio noise cabinet.wav wav-float 1 44100 700 0.1
make_audio noise long.wav wav-16 1 44100 8388608 0.1
make_audio noise room.wav wav-16 1 44100 107719 0.1

for case in "auto hall" "overlap-save hall" "partitioned hall" "auto cabinet" "direct cabinet"; do
    # shellcheck disable=SC2086 # two words
    set -- $case
    runs -q -b cpu -a "$1" -t 1 short.wav "$2.wav" one.wav
    for threads in 2 3 4 5 6 7 8 32; do
        runs -q -b cpu -a "$1" -t $threads short.wav "$2.wav" many.wav
        same "$case, 1 and $threads threads" one.wav many.wav
    done
    if [ "$1" = auto ]; then
        rm -rf wet
        printf 'input,response,output\nshort.wav,%s.wav,out.wav\n' "$2" >list.csv
        runs batch -q list.csv --backend cpu --out wet
        same "$case, command and batch" one.wav wet/out.wav
    fi
done

# A raw pipe has no length.
for input in "long.wav room" "long.wav cabinet"; do
    # shellcheck disable=SC2086
    set -- $input
    tail -c 16777216 "$1" >samples.raw
    runs -q -b cpu --input-raw 44100,1,s16 --format raw samples.raw "$2.wav" file.raw
    "$GPUCONV" -q -b cpu --input-raw 44100,1,s16 --format raw - "$2.wav" pipe.raw <samples.raw >"$work/log/out" \
        2>"$work/log/err" || fail "pipe: $(cat "$work/log/err")"
    same "$input, file and standard input" file.raw pipe.raw
    # shellcheck disable=SC2002 # the test needs a pipe
    cat samples.raw | "$GPUCONV" -q -b cpu --input-raw 44100,1,s16 --format raw - "$2.wav" pipe.raw \
        >"$work/log/out" 2>"$work/log/err" || fail "pipe: $(cat "$work/log/err")"
    same "$input, file and pipe" file.raw pipe.raw
done
