#!/bin/sh
# Checks manual pages and completions, which are made from the tables that --help prints: each of them has every option of
# every subcommand, mandoc accepts the pages, and bash completes words, options and values.
. "$(dirname "$0")/lib.sh"
pages=$(dirname "$GPUCONV")/manual

for command in "" batch bench "bench rows" "bench rt" calibrate "ir clean" "ir correct" "ir info" "ir measure" "ir synth" live play; do
    # shellcheck disable=SC2086 # the words are meant to part
    runs $command --help
    page=$pages/gpuconv$([ -z "$command" ] || echo "-$command" | tr ' ' '-').1
    [ -s "$page" ] || fail "no page for '$command'"
    # Every sentence of the help stands in the page; blanks and line ends differ.
    # shellcheck disable=SC2020 # blanks and full stops each become a newline
    [ -z "$(sed '/^Subcommands/,/^$/d; s/^Usage: .*//; s/^  *-.*  //; s/^[A-Z].*:$//' "$work/log/out" | tr -s ' \n' '\n\n' | grep '^[A-Za-z]*$' | sort -u |
        while read -r word; do grep -qw -- "$word" "$page" || echo "$word"; done)" ] || fail "the page of '$command' lacks words of --help"
    for example in 1 2; do
        line=$(sed '1,/^Examples:$/d' "$work/log/out" | sed -n 's/^  gpuconv /gpuconv /p' | sed -n ${example}p | sed 's/-/\\-/g')
        grep -qF -- "$line" "$page" || fail "the page of '$command' lacks the example $line"
    done
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

# offers WORDS: writes what bash offers for these words, of which the last is incomplete, to log/offer, and the options that
# it passes to compopt to log/readline
offers() {
    bash -c '. "$1"; read -ra COMP_WORDS <<<"$2"; [[ $2 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { echo "$*" >&3; }; _gpuconv; printf "%s\n" "${COMPREPLY[@]}"' \
        bash "$pages/gpuconv.bash" "$1" >"$work/log/offer" 2>"$work/log/err" 3>"$work/log/readline" ||
        fail "bash: $(cat "$work/log/err")"
    [ -s "$work/log/err" ] && fail "'$1': $(cat "$work/log/err")"
}
# completes "WORD..." TEXT [READLINE]: checks that TEXT is offered and that compopt gets exactly READLINE
completes() {
    offers "$1"
    grep -qx -- "$2" "$work/log/offer" || fail "'$1' offers no $2 but: $(cat "$work/log/offer")"
    [ $# -lt 3 ] || [ "$(cat "$work/log/readline")" = "$3" ] || fail "'$1' asks readline: $(cat "$work/log/readline")"
}
if command -v bash >"$work/log/which"; then
    touch voice.wav "two words.wav"
    completes "gpuconv ba" batch
    completes "gpuconv ir sy" synth ""
    completes "gpuconv help ba" batch ""
    completes "gpuconv he" help
    completes "gpuconv ir synth pl" plate ""
    completes "gpuconv ir synth plate vo" voice.wav
    completes "gpuconv --norm" --normalize= "-o nospace" # with -o filenames it would become --normalize\=
    completes "gpuconv --norm" --normalize=
    completes "gpuconv --normalize =" loudness ""
    completes "gpuconv --normalize = lo" loudness ""
    completes "gpuconv --normalize=lo" --normalize=loudness ""
    completes "gpuconv --tail = a" auto ""
    completes "gpuconv -b cu" cuda ""
    completes "gpuconv batch --res" --resume ""
    completes "gpuconv ir info --pl" --plot= "-o nospace"
    completes "gpuconv ir info --plot = vo" voice.wav "-o filenames"
    completes "gpuconv ir info --plot=vo" --plot=voice.wav
    completes "gpuconv vo" voice.wav "-o filenames"
    completes "gpuconv play vo" voice.wav "-o filenames"
    completes "gpuconv play two" "two words.wav" "-o filenames"
    bash -c '. "$1"; complete -p gpuconv' bash "$pages/gpuconv.bash" >"$work/log/offer"
    grep -q filenames "$work/log/offer" && fail "every word is quoted as a file name: $(cat "$work/log/offer")"

    # Every word of every option that takes one of several words is offered, in each spelling of the option.
    for command in "" batch bench "bench rows" "bench rt" calibrate "ir clean" "ir correct" "ir info" "ir measure" "ir synth" live play; do
        # shellcheck disable=SC2086 # the words are meant to part
        runs $command --help
        sed -n 's/^  [ -].*--\([a-z0-9-]*\)=\([a-z0-9-]*|[a-z0-9|-]*\).*/\1 \2/p' "$work/log/out" >"$work/log/words"
        while read -r option words; do
            for word in $(echo "$words" | tr '|' ' '); do
                completes "gpuconv $command --$option " "$word" ""
                completes "gpuconv $command --$option =" "$word" ""
                completes "gpuconv $command --$option=" "--$option=$word" ""
                echo x >>"$work/log/count"
            done
        done <"$work/log/words"
    done
    [ "$(wc -l <"$work/log/count")" -ge 40 ] || fail "only $(wc -l <"$work/log/count") words of options were found"
fi
for shell in zsh fish; do
    command -v $shell >"$work/log/which" || continue
    file=$pages/_gpuconv
    [ $shell = fish ] && file=$pages/gpuconv.fish
    quietly $shell -n "$file" || fail "$shell: $(cat "$work/log/err")"
done
exit 0
