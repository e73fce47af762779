#!/bin/sh
# A limit on file sizes, which sends a signal (SIGXFSZ), and /dev/full, where every write fails.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 2 44100 400000 0.1
make_audio taps ir.wav 1 44100 1 0.5
for name in out.wav out.flac out.aiff; do
    echo "an older output" >$name
    before=$(state)
    (ulimit -f 200 && exec "$GPUCONV" in.wav ir.wav $name >"$work/log/out" 2>"$work/log/err")
    status=$?
    [ "$status" -eq 1 ] || fail "$name: exit $status under a file size limit: $(cat "$work/log/err")"
    one_line "$name: File too large"
    [ "$(state)" = "$before" ] || fail "changed the folder: $(ls -lA)"
    rm $name
done

# Space for all but the last bytes, which some encoders write only when the file is closed.
make_audio noise little.wav wav-16 2 48000 40000 0.1
for end in wav flac ogg aiff caf au w64 rf64 opus mp3; do
    "$GPUCONV" -q little.wav ir.wav out.$end 2>"$work/log/err" || continue # built without this format
    limit=$((($(stat -c %s out.$end) - 1) / 512))
    rm out.$end
    before=$(state)
    (ulimit -f $limit && exec "$GPUCONV" -q little.wav ir.wav out.$end >"$work/log/out" 2>"$work/log/err")
    status=$?
    [ "$status" -eq 1 ] || fail "out.$end: exit $status though its end did not fit"
    one_line "out.$end: File too large"
    [ "$(state)" = "$before" ] || fail "changed the folder: $(ls -lA)"
done

[ -c /dev/full ] || skip "no /dev/full here"
ln -s /dev/full out.flac
refuses 1 "out.flac: No space left on device" in.wav ir.wav out.flac
ln -s /dev/full out.wav
refuses 1 "out.wav: No space left on device" in.wav ir.wav out.wav
if [ ! -L out.wav ] || [ ! -c /dev/full ]; then
    fail "/dev/full was replaced"
fi
rm out.wav

# A report that cannot be written is an error, although the output is complete.
"$GPUCONV" --report json in.wav ir.wav out.wav >/dev/full 2>"$work/log/err"
status=$?
[ "$status" -eq 1 ] || fail "a report to a full disk: exit $status"
one_line "report"
