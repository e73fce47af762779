#!/bin/sh
# The committed material is what its MANIFESTs say, line by line, and nothing lies beside it unlisted.
set -u
: "${SOURCE:?the checkout}" "${TOOLS:?the folder of the test tools}"
failed=0
complain() {
    echo "FAILED: $*" >&2
    failed=1
}
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT

total=0
for folder in samples impulses; do
    cd "$SOURCE/$folder" || exit 1
    [ "$(head -n 1 MANIFEST)" = "$(printf 'file\tsource\tlicence\trate\tchannels\tframes\tsha256\tdescription')" ] ||
        complain "$folder/MANIFEST: another first line"
    tail -n +2 MANIFEST >"$list"
    tab=$(printf '\t')
    while IFS=$tab read -r file source licence rate channels frames sum description; do
        [ -f "$file" ] || { complain "$folder/$file is listed and missing"; continue; }
        [ "$(sha256sum <"$file")" = "$sum  -" ] || complain "$folder/$file: another sha256"
        about=$("$TOOLS/look_audio" about "$file")
        [ "${about% * *}" = "$frames $channels $rate" ] || complain "$folder/$file is $about, not $frames $channels $rate"
        [ -f "$SOURCE/$source" ] || complain "$folder/$file: its source $source is missing"
        [ -n "$licence" ] || complain "$folder/$file: no licence"
        [ -n "$description" ] || complain "$folder/$file: no description"
    done <"$list"
    for file in *.flac *.wav; do
        [ -e "$file" ] || continue
        cut -f 1 "$list" | grep -qxF "$file" || complain "$folder/$file is not in the MANIFEST"
        total=$((total + $(wc -c <"$file")))
    done
done
[ "$(tail -n +2 "$SOURCE/samples/MANIFEST" | wc -l)" -ge 4 ] || complain "fewer than four samples"
[ "$(tail -n +2 "$SOURCE/impulses/MANIFEST" | wc -l)" -ge 8 ] || complain "fewer than eight responses"
[ "$total" -gt 0 ] || complain "no material"
[ "$total" -lt 3000000 ] || complain "$total bytes of material; 3 MB at most"
[ $failed -eq 0 ]
