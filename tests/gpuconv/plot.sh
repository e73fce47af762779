#!/bin/sh
# Plots: no name is interpreted by gnuplot or a shell; the requirements of a plot are checked before the job begins; a plot
# that fails later leaves output and report intact.
. "$(dirname "$0")/lib.sh"

make_audio noise in.wav wav-16 1 44100 3000 0.1
make_audio noise ir.wav wav-16 1 44100 200 0.1

# Without gnuplot in PATH (a gnuplot in the current folder is not used): refused before any file is written.
mkdir "$work/none"
cat >gnuplot <<'END'
#!/bin/sh
echo >PWNED
END
chmod +x gnuplot
for path in "$work/none" ":$work/none:" ".:$work/none"; do
    before=$(state)
    quietly "$(command -v env)" "PATH=$path" "$GPUCONV" --report text in.wav ir.wav out.wav --plot o.svg
    status=$?
    [ $status -eq 1 ] || fail "without gnuplot: exit $status"
    one_line "o.svg: drawing needs gnuplot"
    [ "$(state)" = "$before" ] || fail "without gnuplot: changed the folder: $(ls -lA)"
done
rm gnuplot
command -v gnuplot >"$work/log/which" || skip "no gnuplot"
gnuplot=$(cat "$work/log/which")

# Also refused in advance: a missing folder, a read-only folder, a folder as the plot, a file of the job as the plot.
refuses 1 "nowhere/o.svg: cannot be written: No such file or directory" in.wav ir.wav out.wav --report text --plot nowhere/o.svg
refuses 1 "in.wav/o.svg: cannot be written: Not a directory" in.wav ir.wav out.wav --plot in.wav/o.svg
refuses 1 "cannot be written" ir info ir.wav --plot nowhere/o.svg
refuses 1 "cannot be written" bench --frames 100 --sweep taps --most 2 --runs 3 --plot nowhere/o.svg
refuses 1 "cannot be written" bench --frames 100 --runs 3 --roofline nowhere/o.svg
refuses 1 "cannot be written" bench rt --plot nowhere/o.svg
mkdir sub.svg shut
refuses 1 "sub.svg: is a directory" in.wav ir.wav out.wav --plot sub.svg
chmod a-w shut
[ "$(id -u)" -eq 0 ] || refuses 1 "shut/o.svg: cannot be written: Permission denied" in.wav ir.wav out.wav --plot shut/o.svg
chmod u+w shut
rmdir sub.svg shut
cp ir.wav ir.svg
refuses 1 "ir.svg: would replace a file of the same job" in.wav ir.svg out.wav --plot ./ir.svg
refuses 1 "o.svg: would replace a file of the same job" in.wav ir.wav o.svg -f wav --plot o.svg
rm ir.svg
before=$(state)
"$GPUCONV" in.wav ir.wav out.wav --report text >&- 2>"$work/log/err" && fail "a report into a closed descriptor"
one_line "the report cannot be written"
[ "$(state)" = "$before" ] || fail "a closed standard output: changed the folder: $(ls -lA)"

# Names of inputs, responses, outputs, labels and plots are not executed.
plain() { # the elements of a drawing
    tr '<' '\n' <"$1" | grep -c '^[a-z/]'
}
runs in.wav ir.wav out.wav --plot plain.svg
runs ir info ir.wav --plot info.svg
elements=$(plain plain.svg) described=$(plain info.svg)
n=0
while IFS= read -r line; do
    n=$((n + 1))
    [ -z "$SANITIZE" ] || [ $((n % 4)) -eq 1 ] || continue # the same code for each
    printf '%b_' "$line" >"$work/log/name" # the _ keeps newlines at the end
    name=$(cat "$work/log/name")
    name=${name%_}
    mkdir hostile && cp in.wav ir.wav hostile && cd hostile || exit 1
    cp ir.wav "$name.wav"
    runs in.wav "$name.wav" "$name.flac" --plot "$name.svg"
    if [ $((n % 4)) -eq 1 ]; then # ir info quotes names by the same function
        runs ir info "$name.wav" --plot "$name 2.svg"
        [ "$(plain "$name 2.svg")" -eq "$described" ] || fail "$line: $(plain "$name 2.svg") elements, not $described"
        rm "$name 2.svg"
    fi
    [ "$(find . -print0 | tr -dc '\0' | wc -c)" -eq 6 ] || fail "$line: more files than named: $(ls -lA)"
    [ "$(plain "$name.svg")" -eq "$elements" ] || fail "$line: $(plain "$name.svg") elements, not $elements"
    LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" "$name.svg" && fail "$line: control characters in the drawing"
    cd .. && rm -rf hostile
done <<'END'
a\nsystem "id > PWNED"\n
a'\nsystem "id > PWNED"\n'
a" . system("id > PWNED") . "
`id > PWNED`
$(id > PWNED); id > PWNED
@ARG0 {x}_2^3 %s %d \\\\n \\\\141
e\n1 2\ne\nsystem "id > PWNED"
EOD\nset output "PWNED"\n
<b>&amp; "quoted" 'single' ]]>
\0033[31m\0007\0177\0302\0233 \0377\0376 \0342\0200\0256
a\\\\\nsystem "id > PWNED"
!id > PWNED
END
[ "$n" -eq 12 ] || fail "only $n names were tried"

# The plots before and after use the same scales of time, amplitude and frequency.
mkdir "$work/spy"
cat >"$work/spy/gnuplot" <<END
#!/bin/sh
grep -a '^set [xy]range' /dev/stdin >"$work/log/ranges"
exit 1
END
chmod +x "$work/spy/gnuplot"
make_audio noise loud.wav wav-16 1 44100 6000 0.9
quietly env "PATH=$work/spy:$PATH" "$GPUCONV" in.wav loud.wav o.wav --plot o.svg
for lines in 1,3 2,4 5,7 6,8; do
    [ "$(sed -n "${lines%,*}p" "$work/log/ranges")" = "$(sed -n "${lines#*,}p" "$work/log/ranges")" ] ||
        fail "scales differ: $(cat "$work/log/ranges")"
done

# The user's gnuplot settings have no effect.
mkdir home && echo 'set terminal dumb; system "echo > PWNED"; exit status 3' >home/.gnuplot
HOME=$PWD/home XDG_CONFIG_HOME=$PWD/home GNUTERM=dumb GNUPLOT_LIB=$PWD/home "$GPUCONV" in.wav ir.wav out.wav --plot again.svg ||
    fail "with settings: exit $?"
[ "$(plain again.svg)" -eq "$elements" ] || fail "with settings: another drawing"
[ -e PWNED ] && fail "the settings were obeyed"

# A failing gnuplot: output and report are written, an older plot is kept. gnuplot inherits only descriptors 0, 1 and 2.
mkdir "$work/bin"
cat >"$work/bin/gnuplot" <<END
#!/bin/sh
ls -l /proc/\$\$/fd >"$work/log/fds"
[ "\$FAKE" = cut ] && { "$gnuplot" "\$@" | head -c 5000; exit 0; }
echo 'line 1: no such thing' >&2
exit 1
END
chmod +x "$work/bin/gnuplot"
for FAKE in fail cut; do
    export FAKE
    echo older >older.svg
    rm -f out.wav
    quietly env "PATH=$work/bin:$PATH" "$GPUCONV" in.wav ir.wav out.wav --report text --plot older.svg 7<plain.svg
    status=$?
    [ $status -eq 1 ] || fail "a gnuplot that fails: exit $status"
    one_line "older.svg: gnuplot could not draw it"
    about out.wav "3199 1 44100 wav 16"
    grep -q '^times' "$work/log/out" || fail "a gnuplot that fails took the report: $(cat "$work/log/out")"
    [ "$(cat older.svg)" = older ] || fail "a gnuplot that fails: the older drawing is gone"
    [ "$FAKE" = cut ] || grep -q 'no such thing' "$work/log/err" || fail "not gnuplot's reason: $(cat "$work/log/err")"
    grep -q "$work/files" "$work/log/fds" && fail "gnuplot inherits descriptors: $(cat "$work/log/fds")"
    quietly env "PATH=$work/bin:$PATH" "$GPUCONV" ir info ir.wav --plot older.svg && fail "ir info with a gnuplot that fails: no failure"
    one_line "older.svg: gnuplot could not draw it"
    grep -q '^acoustics' "$work/log/out" || fail "ir info: no report: $(cat "$work/log/out")"
done

# A name that ends a section of XML.
if command -v python3 >"$work/log/which"; then
    cp ir.wav ']]>]]>.wav'
    quietly "$GPUCONV" ir info ']]>]]>.wav' --plot xml.svg || fail "no drawing of ]]>.wav"
    python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("xml.svg")' || fail "the drawing of ]]>.wav is no XML"
fi

# No temporary file is left.
[ -z "$(find . -name '.gpuconv*')" ] || fail "temporary files: $(ls -A)"
exit 0
