#!/bin/sh
# File names with control characters, very long names, and names that are not UTF-8: messages and lines of text reports stay
# single lines with escapes and keep the reason; JSON has the exact name if it is UTF-8.
. "$(dirname "$0")/lib.sh"

# no_controls FILE: the file has only printable characters and newlines
no_controls() {
    [ "$(LC_ALL=C tr -d '\012\040-\176\200-\377' <"$1" | wc -c)" -eq 0 ] || fail "control characters: $(od -c "$1")"
}

make_audio noise in.wav wav-16 1 44100 3000 0.1
make_audio noise ir.wav wav-16 1 48000 200 0.1
odd=$(printf 'a\033[31m\007\nsection\n.wav')

refuses 1 'b\x1b[31m\n.wav: ' "$(printf 'b\033[31m\n.wav')" ir.wav out.wav
no_controls "$work/log/err"
refuses 2 '-\x1b' "$(printf -- '-\033')" ir.wav out.wav
refuses 1 '\xff.wav: No such file' "$(printf 'b\377.wav')" ir.wav out.wav

# Notes name the files too.
cp ir.wav "$odd"
runs in.wav "$odd" out.wav
one_line 'a\x1b[31m\x07\nsection\n.wav: resampled'
no_controls "$work/log/err"

# Reports.
runs ir info "$odd"
no_controls "$work/log/out"
grep -q '^section' "$work/log/out" && fail "a name made a section: $(cat "$work/log/out")"
grep -qF 'a\x1b[31m\x07\nsection\n.wav' "$work/log/out" || fail "no name: $(cat "$work/log/out")"
runs ir info --report json "$odd"
no_controls "$work/log/out"
grep -qF '"a\u001B[31m\u0007\nsection\n.wav"' "$work/log/out" || fail "not the exact name: $(cat "$work/log/out")"
raw=$(printf 'c\377\n.wav')
cp ir.wav "$raw"
runs ir info --report json "$raw"
grep -qF '"c\\xff\\n.wav"' "$work/log/out" || fail "no visible name: $(cat "$work/log/out")"

# Messages with long paths keep the reason, and no UTF-8 character is split.
long=$(awk 'BEGIN { for (i = 0; i < 120; i++) printf "h\303\251l\303\240/" }')
for start in '' x xx; do
    refuses 1 'x.wav: No such file or directory' "$start$long/x.wav" ir.wav out.wav
    iconv -f UTF-8 -t UTF-8 "$work/log/err" >"$work/log/again" || fail "no UTF-8: $(cat "$work/log/err")"
done
big=$(awk 'BEGIN { for (i = 0; i < 5000; i++) printf "abcdefgh" }')
refuses 1 'h.wav: File name too long' "$big.wav" ir.wav out.wav
refuses 1 "No such file or directory" in.wav "$long/x.wav" out.wav
exit 0
