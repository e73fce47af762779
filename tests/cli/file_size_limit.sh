#!/bin/sh
# A limit on file sizes, which ends an unprepared process by a signal, and /dev/full, where every write fails.
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

[ -c /dev/full ] || skip "no /dev/full here"
ln -s /dev/full out.wav
refuses 1 "out.wav: No space left on device" in.wav ir.wav out.wav
if [ ! -L out.wav ] || [ ! -c /dev/full ]; then
    fail "/dev/full was replaced"
fi
rm out.wav

# A report that cannot be written fails the command, though the output is whole.
"$GPUCONV" --report json in.wav ir.wav out.wav >/dev/full 2>"$work/log/err"
status=$?
[ "$status" -eq 1 ] || fail "a report to a full disk: exit $status"
one_line "report"
