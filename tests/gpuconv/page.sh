#!/bin/sh
# The pages of `gpuconv ir info --html` and `gpuconv IN IR OUT --html` in a real browser: they load nothing, decode their
# sounds, and the player switches in place, without a gap or a step, at equal loudness on request. Names are no markup.
. "$(dirname "$0")/lib.sh"
command -v gnuplot >"$work/log/which" || skip "no gnuplot"
make_audio noise in.wav wav-16 2 44100 44100 0.1
make_audio noise ir.wav wav-float 2 44100 4000 0.05
runs in.wav ir.wav out.wav --html page.html
runs ir info ir.wav --html ir.html --bands none
runs ir info ir.wav "$SOURCE/impulses/spring.flac" --html sounds.html --sound in.wav --bands none
for page in page ir sounds; do
    tail -n 1 $page.html | grep -q '^</html>$' || fail "$page.html is not whole"
    grep -qE '(src|href)="?(https?:|//|file:)|@import|url\(http' $page.html && fail "$page.html loads something"
    grep -q 'T30 s' $page.html || fail "$page.html has no figures"
done
[ "$(grep -c 'class="sound"' page.html)" -eq 3 ] || fail "page.html: not before, after and the response"
[ "$(grep -c 'class="sound"' sounds.html)" -eq 3 ] || fail "sounds.html: not the sound and two responses"
[ "$(grep -c '<img alt' page.html)" -eq 18 ] || fail "page.html: not six panels before and after, by band and of the response"

# Names of files are not markup; nothing is written if the page cannot be.
hostile='a"><img src=x onerror=alert(1)>&.wav'
cp ir.wav "$hostile"
runs ir info "$hostile" --html hostile.html --bands none
grep -q 'onerror=alert(1)>' hostile.html && fail "a name became markup"
refuses 1 "cannot be written" in.wav ir.wav out2.wav --html nowhere/page.html
refuses 2 "--html needs IN and OUT as files" in.wav ir.wav - --html page2.html
refuses 2 "which are the same file" in.wav ir.wav in.wav --html page2.html
refuses 1 "missing.wav" ir info ir.wav --html page2.html --sound missing.wav
[ -s "$work/log/out" ] && fail "figures before a sound that is missing"
mkdir "$work/none"
before=$(state)
quietly "$(command -v env)" "PATH=$work/none" "$GPUCONV" in.wav ir.wav out2.wav --html page2.html && fail "a page without gnuplot"
one_line "need gnuplot"
[ "$(state)" = "$before" ] || fail "a refused page changed the folder: $(ls -lA)"

case $SANITIZE in
?*) exit 0 ;;
esac
for browser in chromium chromium-browser google-chrome; do
    command -v $browser >"$work/log/which" && break
    browser=
done
[ -n "$browser" ] || skip "no chromium (Debian: chromium); the pages were checked as texts only"

# page_test.html switches every tenth of a second and looks for gaps and steps.
sed "/^<\/body>/e cat '$SOURCE/tests/gpuconv/page_test.html'" page.html >tested.html
"$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/log/profile" --virtual-time-budget=20000 \
    --dump-dom "file://$PWD/tested.html" 2>"$work/log/err" | sed -n 's/.*<pre id="result">\(.*\)<\/pre>.*/\1/p' >"$work/log/result"
result=$(cat "$work/log/result")
[ -n "$result" ] || skip "the browser does not run here: $(tail -n 3 "$work/log/err")"
echo "$result"
number() { # number NAME
    printf '%s' "$result" | tr ',{}' '\n' | sed -n "s/^\"$1\"://p"
}
holds() { # holds WHAT CONDITION
    awk "BEGIN { exit !($2) }" || fail "$1: $result"
}
holds "the sounds are not decoded" "$(number sounds) == 3 && $(number rate) == 44100 && $(number images) == 18"
holds "the sounds differ in length" "\"$(number equalLengths)\" == \"true\""
holds "switching makes a step" "$(number step) < 0.004 && $(number step) > 0"
holds "a sound has not its level after a switch" "$(number wrong) < 0.000001"
holds "a sound does not continue in place" "$(number residual) < 0.000001"
holds "the loudness is not equal" "$(number loudness) < 3 && $(number loudness) > -3 && $(number gain) > 0"
