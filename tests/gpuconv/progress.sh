#!/bin/sh
# On a terminal a line shows how far a job is and is gone at the end; elsewhere, and with --quiet, there is none so soon.
. "$(dirname "$0")/lib.sh"
case $SANITIZE in
?*) skip "what is slow by its sanitizer speaks sooner than others" ;;
esac
command -v script >"$work/log/which" || skip "script, which makes a terminal, is not installed"

make_audio noise in.wav wav-16 2 44100 3000000 0.1
make_audio noise ir.wav wav-float 1 44100 8000 0.004
on_terminal() { # on_terminal ARGUMENT...: what was drawn goes to log/seen
    TERM=xterm script -qefc "\"$GPUCONV\" -b cpu -t 1 -a direct in.wav ir.wav out.wav $*" "$work/log/seen" \
        >"$work/log/out" 2>&1 </dev/null || fail "on a terminal: $(cat "$work/log/out")"
}
on_terminal
tr '\r' '\n' <"$work/log/seen" >"$work/log/lines"
grep -q '\[#* *\] [0-9]* %, 0:[0-9][0-9] of audio, .* million frames a second, [0-9]* times real time, 0:[0-9][0-9] left' "$work/log/lines" ||
    fail "no progress: $(cat "$work/log/lines")"
tail -n 2 "$work/log/lines" | grep -q 'of audio' && fail "the line stays: $(tail -n 2 "$work/log/lines")"
on_terminal --quiet
grep -q 'of audio' "$work/log/seen" && fail "--quiet is not"
runs -b cpu -t 1 -a direct in.wav ir.wav out.wav
[ -s "$work/log/err" ] && fail "progress where no terminal is: $(cat "$work/log/err")"
exit 0
