#!/bin/sh
# Who may include whom, and who may speak: the rules of the README's architecture section, read from the sources.
#
#   core       <- nobody above it                 engine    <- dsp, core, itself
#   dsp        <- core                            backend/* <- engine/backend.h, dsp, core, its own folder
#   audio      <- dsp, core                       pipeline  <- engine, audio, report, core, dsp
#   report     <- core                            bench     <- engine, report, audio, core, dsp
#   batch      <- pipeline, engine, audio, core, dsp     rt <- engine/{bank,costs}.h, dsp, core
#   lab        <- core, kernels/engine/engine.h, the list of modules; kernels/course <- lab/lab.h, kernels/device, itself
#   synth      <- audio, core, dsp                measure   <- audio, report, core, dsp
#                                                 cli       <- the public header, bench, batch, measure, synth, report, lab,
#                                                              core/{error,number,output_file,visible}.h
set -u
cd "${SOURCE:?the checkout}/src" || exit 1
failed=0
complain() {
    echo "FAILED: $*" >&2
    failed=1
}

# includes FILE: what it includes by quotation marks, as paths from src/
includes() {
    sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$1" | while read -r name; do
        path=$(dirname "$1")/$name
        [ -e "$path" ] || path=$name # found through the search path: from src/, or from kernels/
        case $path in
        ./* | ../* | */../* | */./*) [ -e "$path" ] && path=$(realpath --relative-to=. "$path") ;;
        esac
        echo "$path"
    done
}

# allow FOLDER PATTERN...: files in it include only what one of the patterns matches
allow() {
    folder=$1
    shift
    find "$folder" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' >"$list"
    [ -s "$list" ] || [ "$folder" = backend/cuda ] || complain "no sources in $folder: is this test out of date?"
    while read -r file; do
        for path in $(includes "$file"); do
            ok=no
            for pattern in gpuconv.h "$folder/*" "$@"; do
                # shellcheck disable=SC2254 # the pattern is meant as one
                case $path in
                $pattern) ok=yes ;;
                esac
            done
            [ $ok = yes ] || complain "src/$file includes $path"
        done
    done <"$list"
}

list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT

allow core
allow dsp 'core/*'
allow audio 'dsp/*' 'core/*'
allow report 'core/*'
allow engine 'dsp/*' 'core/*'
allow backend/cpu engine/backend.h engine/batch.h engine/costs.h 'dsp/*' 'core/*'
allow backend/cuda engine/backend.h engine/bank.h engine/batch.h engine/costs.h 'dsp/*' 'core/*' '*kernels/engine/engine.h' 'engine/engine.h' engine.h
allow pipeline 'engine/*' 'audio/*' 'report/*' 'dsp/*' 'core/*'
allow synth 'audio/*' 'dsp/*' 'core/*'
allow measure 'audio/*' 'report/*' 'dsp/*' 'core/*'
allow bench 'engine/*' 'report/*' 'audio/*' 'dsp/*' 'core/*'
allow batch 'pipeline/*' 'engine/*' 'audio/*' 'dsp/*' 'core/*'
allow play 'pipeline/*' 'audio/*' 'dsp/*' 'core/*'
allow rt engine/bank.h engine/costs.h 'dsp/*' 'core/*'
allow mpi batch/ranks.h
allow lv2
allow cli audio/names.h 'measure/*' 'synth/*' 'bench/*' 'batch/*' 'play/*' 'audio/device.h' 'report/*' 'lab/*' core/error.h core/output_file.h core/visible.h core/number.h
allow lab 'core/*' '*kernels/engine/engine.h' '*kernels/course/modules.def'
allow ../kernels/course lab/lab.h '../kernels/device/*'
for folder in */ backend/*/; do
    case $folder in
    core/ | dsp/ | audio/ | report/ | engine/ | backend/ | backend/cpu/ | backend/cuda/ | pipeline/ | bench/ | batch/ | cli/ | lab/ | rt/ | mpi/ | play/ | measure/ | synth/ | lv2/) ;;
    *) complain "src/$folder has no rule here" ;;
    esac
done
[ "$(ls ./*.[ch])" = ./gpuconv.h ] || complain "src/ holds more than gpuconv.h: $(ls ./*.[ch])"

# only "WHERE..." HEADER: nobody else includes a library's header
only() {
    where=$1 header=$2
    grep -rlE "#[[:space:]]*include[[:space:]]*[<\"]${header}[>\"]" . | sed 's,^\./,,' >"$list"
    while read -r file; do
        ok=no
        set -f
        for pattern in $where; do
            # shellcheck disable=SC2254
            case $file in
            $pattern) ok=yes ;;
            esac
        done
        set +f
        [ $ok = yes ] || complain "src/$file includes <$header>, which belongs to $where"
    done <"$list"
    [ -s "$list" ] || [ "$3" = maybe ] || complain "nobody includes <$header>: is this test out of date?"
}
only 'audio/*' 'sndfile\.h' yes
only 'dsp/*' 'soxr\.h' yes
only 'dsp/*' 'ebur128\.h' yes
only 'report/* lab/* batch/* cli/gpulab.c' 'jansson\.h' yes
only 'cli/*' 'popt\.h' yes
only 'backend/cuda/* lab/device_cuda.c' 'cuda[a-z_]*\.h' maybe
only lab/blas.c 'cublas[A-Za-z_0-9]*\.h' yes
only 'mpi/*' 'mpi\.h' yes
only 'audio/*' 'portaudio\.h' maybe

# The public header stands alone.
printf '#include "gpuconv.h"\nint main(void) { return 0; }\n' |
    ${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I. -x c - || complain "gpuconv.h is not whole"

# The library neither prints nor exits. Comments and strings may say so.
find . -name '*.[ch]' ! -path './cli/*' ! -path './lab/*' >"$list"
while read -r file; do
    words='exit|_exit|_Exit|quick_exit|abort|assert|printf|vprintf|puts|putchar|perror|stdout|stderr'
    [ "${file#./report/}" = "$file" ] && words="$words|fprintf|vfprintf|fputs|fputc|putc"
    said=$(sed -e 's/"\([^"\\]\|\\.\)*"/""/g' -e 's/format(printf,//' "$file" | awk '
        { while (match($0, "/\\*")) { head = substr($0, 1, RSTART - 1); rest = substr($0, RSTART + 2)
              while (!match(rest, "\\*/")) { if ((getline rest) <= 0) break }
              $0 = head " " substr(rest, RSTART + 2) } sub("//.*", ""); print }' |
        grep -nE "(^|[^A-Za-z0-9_])($words)([^A-Za-z0-9_]|\$)")
    [ -z "$said" ] || complain "src/${file#./} prints or exits: $said"
done <"$list"

[ $failed -eq 0 ]
