#!/bin/sh
# Symbolic links and permissions of replaced files: a link that the user names is followed, a name that the program chooses
# must not be a link, and no output gets a set-user-id or set-group-id bit.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 1 44100 20000 0.2
make_audio noise ir.wav wav-16 1 44100 300 0.02
runs -b cpu in.wav ir.wav want.wav

# A link is followed; its target is replaced atomically, and the link is kept.
mkdir elsewhere
echo "old" >elsewhere/real.wav
ln -s elsewhere/real.wav first.wav
ln -s first.wav link.wav
runs -b cpu in.wav ir.wav link.wav
[ -L link.wav ] || fail "the link was replaced"
[ -L first.wav ] || fail "the second link was replaced"
cmp elsewhere/real.wav want.wav || fail "through two links: other bytes"

# A dangling link: its target is created if the folder exists.
ln -s elsewhere/new.wav fresh.wav
ln -s fresh.wav dangling.wav
runs -b cpu in.wav ir.wav dangling.wav
[ -L dangling.wav ] || fail "a dangling link was replaced"
cmp elsewhere/new.wav want.wav || fail "through a dangling link: other bytes"
ln -s gone/x.wav nowhere.wav
refuses 1 "nowhere.wav: a symbolic link to gone/x.wav: No such file" -b cpu in.wav ir.wav nowhere.wav

# A loop, and a folder that cannot be entered.
ln -s loop2.wav loop1.wav
ln -s loop1.wav loop2.wav
refuses 1 "loop1.wav: a symbolic link that cannot be followed" -b cpu in.wav ir.wav loop1.wav
mkdir closed
echo "old" >closed/x.wav
ln -s closed/x.wav shut.wav
chmod 0 closed
if [ "$(id -u)" -ne 0 ]; then
    "$GPUCONV" -b cpu in.wav ir.wav shut.wav 2>"$work/log/err" && fail "a closed folder was written to"
    one_line "shut.wav: a symbolic link that cannot be followed: Permission denied"
    [ -L shut.wav ] || fail "the link into a closed folder was replaced"
fi
chmod 700 closed

# Names that the program chooses.
printf 'input,response,output\nin.wav,ir.wav,a.wav\nin.wav,ir.wav,b.wav\n' >list.csv
for name in results.jsonl manifest.csv; do
    for target in "$PWD/precious" "$PWD/not-there" $name; do
        rm -rf out && mkdir out
        echo "precious" >precious
        ln -s "$target" out/$name
        if "$GPUCONV" batch --inputs in.wav --irs ir.wav --out out 2>"$work/log/err"; then
            fail "a batch began whose $name is a link to $target"
        fi
        one_line "out/$name: is a symbolic link"
        [ "$(cat precious)" = precious ] || fail "$name: the link was followed"
        [ -e not-there ] && fail "$name: the link was followed"
        [ -L out/$name ] || fail "$name: the link was replaced"
        [ ! -e out/in.wav ] || fail "$name is a link, yet the batch began"
    done
done
rm -rf out && mkdir out
ln -s "$PWD/precious" out/results.jsonl
"$GPUCONV" batch list.csv --out out --resume 2>"$work/log/err" && fail "--resume appended through a link"
one_line "out/results.jsonl: is a symbolic link"
rm out/results.jsonl && mkfifo out/results.jsonl
timeout 20 "$GPUCONV" batch list.csv --out out 2>"$work/log/err"
[ $? -eq 1 ] || fail "results.jsonl is a named pipe: $(cat "$work/log/err")"
one_line "out/results.jsonl: is not a regular file"
rm out/results.jsonl
ln -s "$PWD/precious" out/a.wav
quietly timeout 60 "$GPUCONV" batch list.csv --out out -q
[ $? -eq 1 ] || fail "an output that is a link did not fail: $(cat "$work/log/err")"
grep '"output":"a.wav"' out/results.jsonl | grep -q '"failed".*is a symbolic link' || fail "no reason: $(cat out/results.jsonl)"
grep '"output":"b.wav"' out/results.jsonl | grep -q '"done"' || fail "the rest did not go on: $(cat out/results.jsonl)"
[ "$(cat precious)" = precious ] || fail "an output's link was followed"
[ -L out/a.wav ] || fail "an output's link was replaced"
ls out/.gpuconv-* >"$work/log/ls" 2>&1 && fail "temporaries left: $(ls -A out)"

# An older list is replaced atomically; another hard link to it keeps the old content.
rm -rf out && mkdir out
echo "older" >out/results.jsonl
ln out/results.jsonl kept
runs batch list.csv --out out -q
[ "$(cat kept)" = older ] || fail "results.jsonl was cut short in place"
[ "$(wc -l <out/results.jsonl)" -eq 2 ] || fail "results.jsonl: $(cat out/results.jsonl)"

# Permissions are kept except the set-user-id, set-group-id and sticky bits; the owner is kept if the system allows it.
cp want.wav mode.wav
chmod 7751 mode.wav
runs -b cpu in.wav ir.wav mode.wav
[ "$(stat -c %a mode.wav)" = 751 ] || fail "mode 7751 became $(stat -c %a mode.wav)"
cp want.wav out/a.wav
chmod 6755 out/a.wav
runs batch list.csv --out out -q
[ "$(stat -c %a out/a.wav)" = 755 ] || fail "batch: mode 6755 became $(stat -c %a out/a.wav)"
if [ "$(id -u)" -eq 0 ] && chown 12345:23456 mode.wav 2>"$work/log/chown"; then
    chmod 4755 mode.wav
    runs -b cpu in.wav ir.wav mode.wav
    [ "$(stat -c %u:%g:%a mode.wav)" = 12345:23456:755 ] || fail "owner and mode became $(stat -c %u:%g:%a mode.wav)"
fi
exit 0
