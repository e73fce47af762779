#!/bin/sh
# Lists of any length: a list that is no list, or that a small file unpacks to, is refused with a line and takes little memory;
# a signal ends the wait for a pipe; a pipe, and members of gzip behind each other, are read whole.
. "$(dirname "$0")/lib.sh"

make_audio noise a.wav wav-16 1 16000 900 0.1
make_audio noise ir.wav wav-float 1 16000 61 0.2
cp "$SOURCE/tests/sofa/head.sofa" . && echo 'a a.wav' >list.scp
{ echo input,response,output && seq -f 'a.wav,ir.wav,%g.wav' 40; } >good.csv
MOST=200000 # KiB
[ -z "$SANITIZE" ] || MOST=4000000

# bounded TEXT ARGUMENT...: the command is refused with the text and takes at most MOST KiB
bounded() {
    says=$1
    shift
    "$TOOLS/measure" "$work/log/memory" timeout -k 5 300 "$GPUCONV" "$@" >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ "$status" -eq 1 ] || fail "gpuconv $*: exit $status: $(cat "$work/log/err")"
    one_line "$says"
    [ "$(cat "$work/log/memory")" -le "$MOST" ] || fail "gpuconv $*: takes $(cat "$work/log/memory") KiB"
    echo "$(cat "$work/log/memory") KiB: $(cat "$work/log/err")"
}

# Endless: zero bytes, one line, blank lines in a compressed file, a quote that is never closed, lines that are no rows, lines
# of rows with much that is kept.
for kind in jsonl csv tsv scp; do
    ln -s /dev/zero zero.$kind
    bounded "zero.$kind, line 1: a zero byte" batch zero.$kind --irs ir.wav --out o
    head -c 17000000 /dev/zero | tr '\0' ' ' | gzip -1 >line.$kind.gz
    bounded "line.$kind.gz, line 1: longer than 16777216 bytes" batch line.$kind.gz --irs ir.wav --out o
done
for kind in csv scp; do # a table and lines; one reader counts the bytes of all, which take seconds under a sanitizer
    [ -z "$SANITIZE" ] || [ $kind = csv ] || continue
    head -c 80000000 /dev/zero | tr '\0' '\n' | gzip -9 >blank.$kind.gz
    bounded "blank.$kind.gz: its text is more than 100 times as long as the file" batch blank.$kind.gz --irs ir.wav --out o
done
{ echo input && echo '"' && yes 'a quote' | head -c 17000000; } >quote.csv
bounded "quote.csv, line 2: a row longer than 16777216 bytes; is a quote open?" batch quote.csv --irs ir.wav --out o
if [ -z "$SANITIZE" ]; then # the same few lines a million times
    yes '{}' | head -n 1100000 >rows.jsonl
    MOST=$((2 * MOST)) bounded "more than 1000000 rows of the list are invalid; the last: line 1000001: the input is missing" \
        batch rows.jsonl --irs ir.wav --out o
fi
cut='{"id":"c","start":0,"duration":1,"recording":{"id":"r","sources":[{"type":"file","channels":[0],"source":"a.wav"}],"duration":1},"custom":"'
{ printf '%s' "$cut" && head -c 900000 /dev/zero | tr '\0' ' ' && echo '"}'; } >one
yes one | head -n 95 | xargs cat | gzip >kept.jsonl.gz
MOST=$((2 * MOST)) bounded "kept.jsonl.gz: its text is more than 100 times" batch kept.jsonl.gz --irs ir.wav --out o
rm -f one rows.jsonl quote.csv ./*.gz
for kind in txt conf matrix; do
    ln -s /dev/zero zero.$kind
    bounded "zero.$kind: is a pipe or a device" -b cpu a.wav zero.$kind out.wav
done
bounded "zero.csv: is a pipe or a device" -b cpu a.wav head.sofa out.wav --layout zero.csv
bounded "zero.scp, line 1: a zero byte" batch good.csv --out o --noises zero.scp --snr 3
bounded "zero.csv, line 1: a zero byte" batch list.scp --irs ir.wav --segments zero.csv --out o

# A signal during the wait for the writer of a pipe.
# stops PIPE ARGUMENT...
stops() {
    pipe=$1
    shift
    mkfifo "$pipe"
    "$GPUCONV" "$@" >"$work/log/out" 2>"$work/log/err" &
    ends_by INT $!
    rm "$pipe"
    [ "$status" -eq 130 ] || fail "gpuconv $*: exit $status after SIGINT: $(cat "$work/log/err")"
    one_line interrupted
}
for kind in csv jsonl scp tsv csv.gz; do
    stops pipe.$kind batch pipe.$kind --irs ir.wav --out o
done
stops pipe batch list.scp --irs ir.wav --segments pipe --out o
stops pipe.scp batch good.csv --irs pipe.scp --out o
stops pipe.jsonl batch list.scp --irs pipe.jsonl --out o
stops pipe.scp batch list.scp --irs ir.wav --noises pipe.scp --snr 3 --out o
[ ! -e o ] || fail "a batch without a list made its folder: $(ls o)"

# The same entries from a pipe, from members of gzip behind each other, and with zeros behind the last.
"$GPUCONV" batch good.csv --out o --dry-run >"$work/log/want" || fail "--dry-run"
head -n 20 good.csv | gzip >two.csv.gz
tail -n +21 good.csv | gzip >>two.csv.gz
head -c 1000 /dev/zero >>two.csv.gz
mkfifo pipe.csv pipe.csv.gz
cat good.csv >pipe.csv &
cat two.csv.gz >pipe.csv.gz &
for list in two.csv.gz pipe.csv pipe.csv.gz; do
    timeout 60 "$GPUCONV" batch $list --out o --dry-run >"$work/log/got" 2>"$work/log/err" || fail "$list: $(cat "$work/log/err")"
    cmp -s "$work/log/want" "$work/log/got" || fail "$list has other entries"
done
size=$(($(wc -c <two.csv.gz) - 1100))
head -c $size two.csv.gz >cut.csv.gz
bounded "cut.csv.gz: its compression is damaged or cut off" batch cut.csv.gz --out o

# A spreadsheet's byte order mark, CR line ends, semicolons and decimal commas, and quotation marks give the same entries; an
# empty field keeps its place; a list of Kaldi may have the mark and the line ends too.
printf 'input,response,output,gain,wet,length\na.wav,ir.wav,x.wav,-3.5,,0.01\nir.wav,ir.wav,y.wav,,-1.5,\n' >plain.csv
"$GPUCONV" batch plain.csv --out plain 2>"$work/log/err" || fail "plain.csv: $(cat "$work/log/err")"
printf '\357\273\277input;response;output;gain;wet;length\r"a.wav";ir.wav;x.wav;-3,5;;0,01\rir.wav;ir.wav;y.wav;;-1,5;\r' >sheet.csv
printf 'input\tresponse\toutput\tgain\twet\tlength\r\na.wav\tir.wav\tx.wav\t-3,5\t\t0.01\r\nir.wav\tir.wav\ty.wav\t\t-1,5\t\r\n' >sheet.tsv
for list in sheet.csv sheet.tsv; do
    rm -rf sheet
    "$GPUCONV" batch $list --out sheet 2>"$work/log/err" || fail "$list: $(cat "$work/log/err")"
    for file in x.wav y.wav; do
        cmp plain/$file sheet/$file || fail "$list gives other samples"
    done
done
printf '\357\273\277file_name;text\ra.wav;"one;\rtwo"\r' >metadata.csv
"$GPUCONV" batch metadata.csv --irs ir.wav --out meta 2>"$work/log/err" || fail "metadata.csv: $(cat "$work/log/err")"
[ "$(tr '\r' '|' <meta/metadata.csv)" = "$(printf 'file_name,"text"\na.wav,"one;|two"')" ] || fail "metadata: $(cat meta/metadata.csv)"
printf '\357\273\277a a.wav\rb ir.wav\r' >marked.scp
"$GPUCONV" batch marked.scp --irs ir.wav --out kaldi 2>"$work/log/err" || fail "marked.scp: $(cat "$work/log/err")"
[ "$(cut -d ' ' -f 1 kaldi/wav.scp | tr '\n' ' ')" = 'a b ' ] || fail "wav.scp: $(cat kaldi/wav.scp)"
