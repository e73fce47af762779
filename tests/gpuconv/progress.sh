#!/bin/sh
# On a terminal a line shows the progress of a job and of its comparison, and is erased at the end, where one line says what was written; without a
# terminal, and with --quiet, a short job prints none.
. "$(dirname "$0")/lib.sh"
case $SANITIZE in
?*) skip "a sanitizer makes the job so slow that progress lines appear earlier" ;;
esac
command -v script >"$work/log/which" || skip "script, which makes a terminal, is not installed"

make_audio noise in.wav wav-16 2 44100 3000000 0.1
make_audio noise ir.wav wav-float 1 44100 8000 0.004
on_terminal() { # on_terminal COLUMNS ARGUMENT...: what was drawn goes to log/seen; COLUMNS 0: the terminal does not say
    columns=$1
    shift
    TERM=xterm script -qefc "stty cols $columns; \"$GPUCONV\" -b cpu -t 1 -a direct in.wav ir.wav out.wav $*" "$work/log/seen" \
        >"$work/log/out" 2>&1 </dev/null || fail "on a terminal: $(cat "$work/log/out")"
}
on_terminal 120
tr '\r' '\n' <"$work/log/seen" >"$work/log/lines"
grep -q '\[#* *\] [0-9]* %, 0:[0-9][0-9] of audio, .* million frames a second, [0-9]* times real time, 0:[0-9][0-9] left' "$work/log/lines" ||
    fail "no progress: $(cat "$work/log/lines")"
says_end='gpuconv: out.wav: 1:08 of audio, computed on one core in [0-9.]* s, [0-9]* times real time$'
[ "$(grep -c "$says_end" "$work/log/lines")" -eq 1 ] || fail "no line at the end: $(cat "$work/log/lines")"
sed "1,/$says_end/d" "$work/log/lines" | grep -q 'of audio' && fail "the progress stays: $(cat "$work/log/lines")"
on_terminal 120 --compare=0.1
tr '\r' '\n' <"$work/log/seen" >"$work/log/lines"
for step in computing 'from file to file'; do
    grep -q "comparing: one core, direct, $step" "$work/log/lines" || fail "no line while it compares: $(cat "$work/log/lines")"
done
on_terminal 120 --quiet
grep -q 'of audio' "$work/log/seen" && fail "--quiet is not"

# No line is wider than the terminal, whose width is its own, else COLUMNS, else 80.
fits() { # fits COLUMNS
    tr '\r' '\n' <"$work/log/seen" | sed "s/$(printf '\033')\[K//g" | grep 'of audio' >"$work/log/lines" ||
        fail "no progress in $1 columns: $(cat "$work/log/seen")"
    awk -v most="$1" 'length($0) >= most { print; bad = 1 } END { exit bad }' "$work/log/lines" ||
        fail "lines of $1 columns and more"
}
for columns in 20 80; do
    on_terminal "$columns"
    fits "$columns"
done
COLUMNS=40 && export COLUMNS
on_terminal 0
fits 40
unset COLUMNS
on_terminal 0
fits 80
runs -b cpu -t 1 -a direct in.wav ir.wav out.wav
[ -s "$work/log/err" ] && fail "progress where no terminal is: $(cat "$work/log/err")"
exit 0
