#!/bin/sh
# Manual pages and completions are made from the tables that --help reads: every option of every subcommand stands in all of
# them, pages have no fault, and bash completes words, options and values.
. "$(dirname "$0")/lib.sh"
pages=$(dirname "$GPUCONV")/manual

for command in "" batch bench "bench rt" calibrate "ir info" "ir measure" "ir synth" live play; do
    # shellcheck disable=SC2086 # the words are meant to part
    runs $command --help
    page=$pages/gpuconv$([ -z "$command" ] || echo "-$command" | tr ' ' '-').1
    [ -s "$page" ] || fail "no page for '$command'"
    options=$(sed -n 's/^  [ -].*--\([a-z0-9-]*\).*/\1/p' "$work/log/out")
    [ "$(echo "$options" | wc -l)" -ge 2 ] || fail "--help of '$command' has no options: $(cat "$work/log/out")"
    for option in $options; do
        grep -q -- "$(echo "--$option" | sed 's/-/\\\\-/g')" "$page" || fail "the page of '$command' lacks --$option"
        for file in gpuconv.bash _gpuconv; do
            grep -q -- "--$option" "$pages/$file" || fail "$file lacks --$option"
        done
        grep -q -- "-l $option" "$pages/gpuconv.fish" || fail "the completion of fish lacks --$option"
    done
    if command -v mandoc >"$work/log/which"; then
        mandoc -T lint -W warning "$page" | grep -v 'missing date' >"$work/log/lint"
        [ -s "$work/log/lint" ] && fail "$(cat "$work/log/lint")"
    fi
done

# completes "WORD..." TEXT: with these words typed, the last one half, bash offers this
completes() {
    bash -c '. "$1"; read -ra COMP_WORDS <<<"$2"; [[ $2 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; _gpuconv; printf "%s\n" "${COMPREPLY[@]}"' \
        bash "$pages/gpuconv.bash" "$1" >"$work/log/offer" 2>"$work/log/err" || fail "bash: $(cat "$work/log/err")"
    grep -qx -- "$2" "$work/log/offer" || fail "'$1' offers no $2 but: $(cat "$work/log/offer")"
}
if command -v bash >"$work/log/which"; then
    touch voice.wav
    completes "gpuconv ba" batch
    completes "gpuconv ir sy" synth
    completes "gpuconv --norm" --normalize=
    completes "gpuconv --normalize = lo" loudness
    completes "gpuconv -b cu" cuda
    completes "gpuconv batch --res" --resume
    completes "gpuconv ir info --pl" --plot=
    completes "gpuconv vo" voice.wav
    completes "gpuconv play vo" voice.wav
fi
for shell in zsh fish; do
    command -v $shell >"$work/log/which" || continue
    file=$pages/_gpuconv
    [ $shell = fish ] && file=$pages/gpuconv.fish
    quietly $shell -n "$file" || fail "$shell: $(cat "$work/log/err")"
done
exit 0
