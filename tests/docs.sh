#!/bin/sh
# Checks the documents: every relative link and image leads to a file that exists, every anchor to a heading of that file;
# README.md is one page; and the commands of blocks marked <!-- docs-test: run --> run, in a folder with copies of the
# samples and the impulse responses, with the command that was built.
. "$(dirname "$0")/gpuconv/lib.sh"

# Prints the lines of a document outside fenced and indented code blocks, without code spans.
prose() {
    awk '/^ *```/ { code = !code; next } !code && !/^    / { gsub(/`[^`]*`/, ""); print }' "$1"
}

# Prints the anchors of a document's headings, as code hosts make them: lower case, punctuation dropped, blanks to hyphens.
anchors() {
    awk '/^```/ { code = !code; next } !code && /^#+ / { sub(/^#+ +/, ""); print }' "$1" |
        tr '[:upper:]' '[:lower:]' | sed -e 's/[^a-z0-9 _-]//g' -e 's/ /-/g'
}

links=0
documents="$SOURCE/README.md $SOURCE/CHANGELOG.md $SOURCE/CONTRIBUTING.md $SOURCE/SECURITY.md"
for document in "$SOURCE"/docs/*.md "$SOURCE"/docs/experiments/*.md; do
    documents="$documents $document"
done
# shellcheck disable=SC2086 # a list; the path of the checkout is split only if it has blanks, and the test then fails
for document in $documents; do
    prose "$document" | grep -o '](\([^()]*\))' | sed -e 's/^](//' -e 's/)$//' -e 's/ ".*//' >links
    while IFS= read -r link; do
        case $link in
        http://* | https://* | mailto:*) continue ;;
        esac
        links=$((links + 1))
        file=${link%%#*}
        target=$document
        [ -z "$file" ] || target=$(dirname "$document")/$file
        [ -e "$target" ] || fail "$document: the link $link leads to no file"
        case $link in
        *'#'*) anchors "$target" | grep -qxF -- "${link#*#}" || fail "$document: the link $link leads to no heading" ;;
        esac
    done <links
done
[ $links -ge 20 ] || fail "only $links links found: this test no longer reads the documents"

lines=$(wc -l <"$SOURCE/README.md")
[ "$lines" -le 80 ] || fail "README.md has $lines lines; at most 80 are allowed"

# ---- The commands ----
mkdir -p scratch/build/demo scratch/bin
cp -R "$SOURCE/samples" "$SOURCE/impulses" scratch
ln -s "$GPUCONV" scratch/build/demo/gpuconv
ln -s "$GPUCONV" scratch/bin/gpuconv
[ ! -x "$(dirname "$GPUCONV")/gpulab" ] || ln -s "$(dirname "$GPUCONV")/gpulab" scratch/bin/gpulab
cd scratch || exit 1
PATH=$PWD/bin:$PATH
# shellcheck disable=SC2086
for document in $documents; do
    case $SANITIZE$document in
    "$SOURCE/"* | *README.md) ;;
    *) continue ;; # sanitizers make the manual's commands slow; builds without them run those
    esac
    awk '/^<!-- docs-test: run -->$/ { marked = 1; next }
        /^```/ { code = !code; if (!code) marked = 0; next }
        code && marked' "$document" >commands
    if [ ! -s commands ]; then
        [ "$document" != "$SOURCE/README.md" ] || fail "README.md marks no commands"
        continue
    fi
    sh -eu commands >"$work/log/out" 2>"$work/log/err" </dev/null ||
        fail "a command of $document failed: $(cat commands "$work/log/err")"
done
exit 0
