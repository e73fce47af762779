#!/bin/sh
# Enforces the architecture (docs/architecture.md): which folder may include which, which folder owns which library, that
# the library neither prints nor exits, and that numbers as text do not depend on the locale.
set -uf
cd "${SOURCE:?the checkout}" || exit 1
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
failed=0
complain() {
    echo "FAILED: $*" >&2
    failed=1
}

# sources FOLDER... [OPTION...]: lists the sources in folders
sources() {
    find "$@" \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \)
}

# allow FOLDER PATTERN...: every file in FOLDER, not those in folders below it, includes, besides its own folder, only what
# a PATTERN matches. Includes are spelled from src/, from include/ or from the top of the checkout; a name without a slash is in the same folder.
allow() {
    folder=$1
    shift
    sources "$folder" -maxdepth 1 >"$list"
    [ -s "$list" ] || complain "no sources in $folder: the rule is out of date"
    while read -r file; do
        # shellcheck disable=SC2013 # a name holds no blanks
        for path in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
            allowed=no
            [ -e "$folder/$path" ] && [ "${path#*/}" = "$path" ] && allowed=yes
            for pattern in gpuconv.h gpuconv_arrays.h gpuconv_rooms.h "$@"; do
                # shellcheck disable=SC2254 # the pattern is meant as one
                case $path in $pattern) allowed=yes ;; esac
            done
            [ $allowed = yes ] || complain "$file includes $path"
        done
    done <"$list"
    checked="$checked $folder"
}
checked=

# ---- The library: downwards only ----
L=libgpuconv
allow src/$L/core windows/paths.h
allow src/$L/core/windows
allow src/$L/core/macos
allow src/$L/dsp "$L/core/*"
allow src/$L/audio "$L/dsp/*" "$L/core/*"
allow src/$L/report "$L/core/*"
allow src/$L/ir "$L/audio/*" "$L/dsp/*" "$L/core/*"
allow src/$L/conv "$L/report/*" $L/ir/object.h $L/ir/sofa.h "$L/dsp/*" "$L/core/*"
allow src/$L/conv/cpu $L/conv/plan.h $L/conv/backend.h $L/conv/rooms.h $L/ir/object.h $L/ir/ambisonic.h $L/ir/sofa.h "$L/dsp/*" "$L/core/*"
allow src/$L/conv/cuda $L/conv/plan.h $L/conv/backend.h $L/conv/rooms.h $L/ir/object.h $L/ir/sofa.h kernels/engine/kernels.h "$L/dsp/*" "$L/core/*"
allow src/$L/measure "$L/conv/*" "$L/conv/cpu/*" "$L/conv/cuda/*" kernels/engine/kernels.h kernels/measure/measure.h "$L/report/*" "$L/dsp/*" "$L/core/*"
allow src/$L/file $L/measure/measure.h "$L/conv/*" "$L/ir/*" "$L/audio/*" $L/space/path.h $L/space/head.h "$L/report/*" "$L/dsp/*" "$L/core/*"
allow src/$L/space $L/conv/backend.h $L/conv/rooms.h "$L/ir/*" "$L/dsp/*" "$L/core/*"
allow src/$L/realtime $L/conv/cpu/section.h "$L/conv/*" "$L/ir/*" "$L/dsp/*" "$L/core/*"
# ---- Tools of several products include the library; the library includes none of them ----
allow src/libtools/batch/entry "$L/*"
allow src/libtools/batch/output 'libtools/batch/entry/*' libtools/room/room_set.h "$L/*"
allow src/libtools/batch/list 'libtools/batch/entry/*' libtools/batch/output/shards.h libtools/room/room_set.h "$L/*"
allow src/libtools/batch/run 'libtools/batch/*' libtools/room/room_set.h "$L/*"
allow src/libtools/room "$L/*"
# ---- The command and the lab share a command line and include the library, never each other ----
allow src/cli "$L/core/*"
allow src/gpuconv/bench "$L/*"
allow src/osc "$L/core/*"
allow src/gpuconv/play osc/osc.h "$L/*"
allow src/gpuconv/measure gpuconv/play/device.h libtools/room/sine_sweep.h "$L/*"
allow src/gpuconv/commands osc/osc.h 'gpuconv/*' 'libtools/*' 'cli/*' $L/ir/settings.h $L/ir/sofa.h $L/ir/read_files.h $L/audio/file.h "$L/report/*" "$L/core/*"
allow src/gpulab 'cli/*' gpulab/pages/pages.h gpulab/student/student.h "$L/core/*"
allow src/gpulab/harness gpulab/lab.h "$L/core/*" kernels/measure/measure.h kernels/course/modules.def
allow src/gpulab/pages gpulab/harness/run.h 'cli/*' 'toolchain/*' "$L/core/*"
allow src/gpulab/student gpulab/harness/run.h gpulab/pages/pages.h 'cli/*' emulator/emulator.h emulator/compile.h 'toolchain/*' "$L/core/*"
allow src/emulator 'toolchain/*' "$L/core/*"
allow src/toolchain "$L/core/*"
allow src/lv2 osc/osc.h
allow src/lv2/window lv2/ports.h
# The Python package does to files what the command does, with the same code: of libtools it includes these headers only. And
# it restores responses that were pickled.
allow python/src libtools/batch/run/batch.h libtools/batch/entry/entry.h libtools/room/figures.h libtools/room/room_set.h $L/audio/file.h $L/ir/object.h $L/ir/settings.h $L/conv/backend.h \
    "$L/core/*" "$L/dsp/*"
allow kernels/course gpulab/lab.h 'kernels/device/*'
shared=$(find kernels/engine -maxdepth 1 -name '*.h' -o -maxdepth 1 -name '*.cuh')
# shellcheck disable=SC2086
allow kernels/engine kernels/engine/bank/bank.h kernels/engine/bank/motion.h kernels/engine/rows/job.h kernels/engine/stream/dense.h $shared "$L/dsp/pcm.h" \
    'kernels/device/*'
for executor in bank rows stream; do # never one another's kernels
    # shellcheck disable=SC2086
    allow kernels/engine/$executor $shared "$L/dsp/pcm.h" 'kernels/device/*'
done
allow kernels/device
allow kernels/measure kernels/engine/kernels.h kernels/engine/launch.cuh 'kernels/device/*'

for folder in $(sources src kernels python/src | sed 's|/[^/]*$||' | sort -u); do
    case "$checked " in
    *" $folder "*) ;;
    *) complain "$folder has no rule here" ;;
    esac
done

# only "PATTERN..." HEADER: only files that a PATTERN matches include a library's header
only() {
    grep -rlE "#[[:space:]]*include[[:space:]]*[<\"]$2[>\"]" src kernels include >"$list"
    while read -r file; do
        found=no
        for pattern in $1; do
            # shellcheck disable=SC2254
            case $file in $pattern) found=yes ;; esac
        done
        [ $found = yes ] || complain "$file includes <$2>, which belongs to $1"
    done <"$list"
    [ -s "$list" ] || complain "no file includes <$2>: the rule is out of date"
}
only "src/$L/audio/*" 'sndfile\.h'
only "src/$L/dsp/resampler.c" 'soxr\.h'
only "src/$L/dsp/loudness.c" 'ebur128\.h'
only 'src/libtools/batch/*' 'csv\.h'
only "src/libtools/batch/* src/$L/ir/hdf5.c" 'zlib\.h'
only "src/$L/ir/sphere_hull.c" 'libqhull_r/libqhull_r\.h'
only 'src/libtools/batch/*' 'archive(_entry)?\.h'
only "src/$L/report/* src/gpulab/* src/libtools/*" 'jansson\.h'
only 'src/cli/*' 'popt\.h'
only "src/$L/conv/cuda/* src/$L/measure/cuda_* src/gpulab/harness/device_cuda.c kernels/*" 'cuda_runtime[a-z_]*\.h'
only src/gpulab/harness/blas.c 'cublas[A-Za-z_0-9]*\.h'
only "src/$L/audio/media_libav.c" 'libavformat/avformat\.h'
only src/libtools/batch/run/ranks_mpi.c 'mpi\.h'
only src/gpuconv/play/device_portaudio.c 'portaudio\.h'
only src/gpuconv/play/device_pipewire.c 'pipewire/[a-z-]*\.h|spa/[a-z/-]*\.h'
only src/osc/osc_liblo.c 'lo/lo\.h'
only src/gpuconv/play/control_midi.c 'jack/[a-z]*\.h'
only 'src/lv2/window/*' 'cairo/[a-z-]*\.h|X11/[A-Za-z]*\.h'

# Each public header stands alone, as C and as C++, without CUDA's headers.
for header in gpuconv.h gpuconv_arrays.h gpuconv_rooms.h; do
    printf '#include "%s"\nint main(void) { return 0; }\n' $header |
        ${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c - || complain "$header does not compile alone"
    if command -v "${CXX:-c++}" >/dev/null; then
        printf '#include "%s"\nint main() { return 0; }\n' $header |
            ${CXX:-c++} -std=c++17 -pedantic -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c++ - || complain "$header does not compile as C++"
    fi
done

# code FILE: prints the file without its comments
code() {
    awk '{ while (match($0, "/\\*")) { head = substr($0, 1, RSTART - 1); rest = substr($0, RSTART + 2)
               while (!match(rest, "\\*/")) { if ((getline rest) <= 0) break }
               $0 = head " " substr(rest, RSTART + 2) } sub("//.*", ""); print }' "$1"
}

# The library neither prints nor exits, and the tools exit only through the command line. Comments and strings are left out.
find src/$L src/libtools src/gpuconv/bench src/gpuconv/measure src/gpuconv/play src/lv2 src/osc -name '*.[ch]' >"$list"
while read -r file; do
    words='exit|_exit|_Exit|quick_exit|abort|assert|printf|vprintf|puts|putchar|perror|stdout|stderr'
    case $file in
    src/$L/report/* | src/libtools/room/page.c | src/$L/core/number.*) ;;
    *) words="$words|fprintf|vfprintf|fputs|fputc|putc|gc_print" ;;
    esac
    found=$(code "$file" | sed -e 's/"\([^"\\]\|\\.\)*"/""/g' -e 's/format(printf,//' |
        grep -nE "(^|[^A-Za-z0-9_])($words)([^A-Za-z0-9_]|\$)")
    [ -z "$found" ] || complain "$file prints or exits: $found"
done <"$list"

# What differs between operating systems and C libraries is in one file for each.
found=$(grep -rnE '^[[:space:]]*#[[:space:]]*(el)?if.*(_WIN32|__MINGW32__|__linux__|__APPLE__|__GLIBC__|__unix__|MADV_|M_MMAP)' src include python/src |
    grep -v "^src/$L/core/os_[a-z]*\.c:")
[ -z "$found" ] || complain "asks for the operating system; use core/os.h: $found"

# An algorithm is named once in the file of its row. Everything else walks the arrays of the backends.
grep -roE 'GPUCONV_ALGORITHM_[A-Z_]+' src kernels python/src | grep -v ':GPUCONV_ALGORITHM_AUTO$' >"$list"
found=$(grep -vE "^src/$L/conv/((cpu|cuda)/)?[a-z_]*\.c:" "$list")
[ -z "$found" ] || complain "names an algorithm; walk the algorithms of the backend: $found"
found=$(cut -d: -f1 "$list" | sort | uniq -d)
[ -z "$found" ] || complain "names an algorithm outside of its row: $found"

# Seconds of a machine stand with the costs.
found=$(grep -rnE '^ *static const double [^;]*[0-9]e-[0-9]' "src/$L/conv" "src/$L/realtime" src/libtools | grep -v "^src/$L/conv/costs\.c:")
[ -z "$found" ] || complain "has seconds; use conv/costs.c: $found"

# Numbers are parsed and printed by core/number.h, whatever the locale. Window and plug-in include
# public headers only: they show numbers to people, and the window reads the digits that are typed itself.
# core/os_linux.c scans integers. A statement ends with a line that ends in ; or a brace.
find src kernels python/src \( -name '*.[ch]' -o -name '*.cpp' \) ! -path "src/$L/core/number.c" ! -path "src/$L/core/os_linux.c" \
    ! -path 'src/lv2/*' >"$list"
found=$(while read -r file; do code "$file" | sed "s|^|$file: |"; done <"$list" | awk '
    { file = $1; sub("^[^ ]* ", ""); line = $0; gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      words = "strto(d|f|ld)|atof|[a-z]*scanf|v[a-z]*printf|setlocale|localeconv|strcoll|strn?casecmp"
      if (file !~ "/patterns.c:$") words = words "|glob|alphasort"
      if (line ~ "(^|[^A-Za-z0-9_])(" words ")[ ]*[(]" && file !~ "/core/windows/") print file line
      text = text $0; calls = calls line
      if ($0 !~ /[;{}]$/) next
      literals = ""
      while (match(text, /"([^"\\]|\\.)*"/)) { literals = literals substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH) }
      gsub("%%", "", literals)
      if (calls ~ /(^|[^A-Za-z0-9_])(sn|s|as|d|f)?printf[(]/ && literals ~ /%[-+ #0-9.*]*[lL]?[aefgAEFG]/) print file literals
      text = calls = "" }')
[ -z "$found" ] || complain "depends on the locale; use core/number.h: $found"

[ $failed -eq 0 ]
