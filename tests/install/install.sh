#!/bin/sh
# What was installed, and moved elsewhere, is found by CMake and pkg-config, links shared and static, shows no name that is
# not public, and runs; the packages hold it all, with the right dependencies.
# Usage: install.sh BUILD-FOLDER
. "$(dirname "$0")/../gpuconv/lib.sh"
build=$1
case $SANITIZE in
?*) skip "a build with sanitizers is not installed" ;;
esac

quietly cmake --install "$build" --prefix "$work/first" || fail "cmake --install: $(cat "$work/log/err")"
mv "$work/first" "$work/moved"
prefix=$work/moved
library=$(find "$prefix" -name 'libgpuconv.so')
[ -e "$library" ] || fail "no shared library"
[ -e "${library%.so}.a" ] || fail "no static library"
# The SONAME has the major version, and the minor one while the major one is 0.
: "${SOURCE:?the checkout}"
version=$("$SOURCE/scripts/version")
abi=${version%%.*}
[ "$abi" != 0 ] || abi=${version%.*}
readelf -d "$library" | grep -q "SONAME.*\[libgpuconv.so.$abi\]" || fail "another SONAME: $(readelf -d "$library" | grep SONAME)"

# Every symbol that is exported, of whatever kind, is a function that the headers declare, and all of these are exported.
nm -D --defined-only "$library" | awk '{ name = $NF; sub("@.*", "", name); if (name != "GPUCONV_'"$abi"'") print name }' | sort -u >exported
sed -n 's/^GPUCONV_API .*[ *]\(gpuconv_[a-z0-9_]*\)(.*/\1/p' "$prefix"/include/gpuconv*.h | sort -u >declared
diff declared exported || fail "the library exports other names than the headers declare"
[ "$(wc -l <declared)" -ge 75 ] || fail "only $(wc -l <declared) functions are declared"

for example in 02_streaming 03_matrix; do
    quietly cmake -S "$SOURCE/tests/install" -B $example -DCMAKE_PREFIX_PATH="$prefix" \
        -DEXAMPLE="$SOURCE/examples/$example.c" || fail "find_package: $(cat "$work/log/err")"
    quietly cmake --build $example || fail "with CMake: $(cat "$work/log/out" "$work/log/err")"
    for kind in gpuconv static; do
        quietly $example/with_$kind || fail "$example with $kind: $(cat "$work/log/err")"
    done
done
PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
${CC:-cc} -o by-pkg-config "$SOURCE/examples/02_streaming.c" $(pkg-config --cflags --libs gpuconv) || fail "pkg-config"
LD_LIBRARY_PATH=$(dirname "$library") quietly ./by-pkg-config || fail "by pkg-config: $(cat "$work/log/err")"

# Without the shared library, with the options of --static and the packages that Debian's build needs.
cp -r "$prefix" static
find static -name 'libgpuconv.so*' -exec rm {} +
moved=$(find "$PWD/static" -path '*/pkgconfig/gpuconv.pc')
# shellcheck disable=SC2046
quietly "${CC:-cc}" -o statically "$SOURCE/examples/02_streaming.c" \
    $(PKG_CONFIG_PATH=$(dirname "$moved") pkg-config --static --cflags --libs gpuconv) || fail "pkg-config --static: $(cat "$work/log/err")"
quietly ./statically || fail "by pkg-config --static: $(cat "$work/log/err")"

# The command, moved, with what came beside it.
make_audio noise in.wav wav-16 1 48000 1000 0.1
quietly "$prefix/bin/gpuconv" -b cpu in.wav "$prefix/share/gpuconv/impulses/cabinet.flac" out.wav || fail "moved: $(cat "$work/log/err")"
# It finds its modules, wherever CMake has put the libraries.
if [ -e "$build/gpuconv-media.so" ]; then
    echo nothing >in.m4a
    quietly "$prefix/bin/gpuconv" in.m4a in.wav out4.wav && fail "a file of text was decoded"
    grep -q gpuconv-media "$work/log/err" && fail "no module: $(cat "$work/log/err")"
fi
# The module of the CUDA backend, in a build with CUDA, exports one name; without it the command is the same.
module=$(dirname "$library")/gpuconv/libgpuconv-cuda.so
if [ -e "$module" ]; then
    [ "$(nm -D --defined-only "$module" | awk '{ print $NF }')" = gpuconv_cuda_module ] || fail "the module exports: $(nm -D --defined-only "$module")"
    quietly "$prefix/bin/gpuconv" -b cuda in.wav in.wav out3.wav
    grep -q 'no CUDA backend' "$work/log/err" && fail "the command does not find its module: $(cat "$work/log/err")"
    mv "$module" "$module.away"
fi
quietly "$prefix/bin/gpuconv" -b cuda in.wav in.wav out3.wav && fail "there is a GPU without the module"
grep -q 'no CUDA backend.*libgpuconv-cuda' "$work/log/err" || fail "the missing module is not named: $(cat "$work/log/err")"
[ ! -e "$module.away" ] || mv "$module.away" "$module"
for page in gpuconv gpuconv-batch gpuconv-play gpuconv-ir-info; do
    [ -s "$prefix/share/man/man1/$page.1" ] || fail "no manual page $page"
done
[ -s "$prefix/share/bash-completion/completions/gpuconv" ] || fail "no completions"

# The documents, with everything that their links name, the schema of reports, and the examples.
for document in README.md CHANGELOG.md LICENSE docs/manual.md docs/space.md docs/datasets.md docs/rooms.md docs/lab.md docs/promises.md docs/library.md docs/data-path.svg docs/before-after.png \
    docs/report.schema.json examples/01_offline.c examples/05_report.c; do
    [ -s "$prefix/share/doc/gpuconv/$document" ] || fail "no document $document"
done
[ -s "$prefix/share/gpuconv/report.schema.json" ] || fail "no schema of reports"

# The lab names files that are there, in the place that it was moved to, and reads its record; it has a manual page.
lab_is_complete() { # lab_is_complete PREFIX
    lab=$1/bin/gpulab
    quietly "$lab" list || fail "gpulab: $(cat "$work/log/err")"
    [ "$(wc -l <"$work/log/out")" -ge 23 ] || fail "gpulab list: $(cat "$work/log/out")"
    sed '/^$/,$d; s/ .*//' "$work/log/out" >modules # the courses follow
    while read -r module; do
        "$lab" show "$module" >shown || fail "gpulab show $module"
        stem=$(sed -n 's/^Source:  \(.*\)\.c and \.cu$/\1/p' shown)
        case $stem in
        "$1"/share/gpuconv/lab/kernels/course/*) ;;
        *) fail "gpulab show $module names $stem" ;;
        esac
        for file in "$stem.c" "$stem.cu"; do
            [ -s "$file" ] || fail "gpulab show $module names $file, which is not there"
        done
        grep -oE '(kernels|tests|src)/[A-Za-z0-9_/.-]*\.(c|h|cu|cuh|json)' shown >named
        while read -r file; do
            [ -s "$1/share/gpuconv/lab/$file" ] || fail "gpulab show $module names $file, which is not there"
        done <named
    done <modules
    # What the sources include is there too, unless it belongs to the compiler or the toolkit.
    (cd "$1/share/gpuconv/lab" && sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' kernels/course/* | sort -u) >included
    while read -r file; do
        for folder in . src kernels/course; do
            [ -s "$1/share/gpuconv/lab/$folder/$file" ] && continue 2
        done
        fail "the lab's sources include $file, which is not there"
    done <included
    for record in "$1"/share/gpuconv/lab/tests/gpu/*-lab.json; do
        quietly "$lab" report --from "$record" || fail "$record: $(cat "$work/log/err")"
    done
}
lab_is_complete "$prefix"
[ -s "$prefix/share/man/man1/gpulab.1" ] || fail "no manual page gpulab"
grep -q 'run \[MODULE...\]' "$prefix/share/man/man1/gpulab.1" || fail "the page of gpulab lacks its commands"

# Packages: the archive has everything, the .debs one component each.
(cd "$work" && quietly cpack --config "$build/CPackConfig.cmake" -B "$work/packages") || fail "cpack: $(cat "$work/log/out" "$work/log/err")"
tar xzf "$work"/packages/*.tar.gz || fail "no archive"
quietly gpuconv-*/bin/gpuconv --version || fail "the archive's command: $(cat "$work/log/err")"
[ -x "$(echo gpuconv-*/bin/gpulab)" ] || fail "no gpulab in the archive"
command -v dpkg-deb >"$work/log/which" || exit 0

# depends PACKAGE PATTERN: what the package depends on matches the pattern
depends() {
    dpkg-deb --field "$work/packages/$1"_*.deb Depends | grep -qE -- "$2" ||
        fail "$1 does not depend on $2: $(dpkg-deb --field "$work/packages/$1"_*.deb Depends)"
}
# unpack PACKAGE: a new folder PACKAGE with its content
unpack() {
    mkdir "$1"
    dpkg-deb -x "$work/packages/$1"_*.deb "$1" || fail "no package $1"
    for file in copyright changelog.gz; do
        [ -s "$1/usr/share/doc/$1/$file" ] || fail "$1 has no $file"
    done
    [ "$1" = gpuconv-mpi ] && return
    dpkg-deb --field "$work/packages/$1"_*.deb Depends | grep -iE 'mpi|cuda' && fail "$1 depends on MPI or CUDA"
}
for library in libsndfile1 libsoxr0 libebur128-1 libjansson4 libqhull-r8.0 libpopt0; do
    depends gpuconv $library
done
unpack gpuconv
quietly gpuconv/usr/bin/gpuconv -b cpu in.wav gpuconv/usr/share/gpuconv/impulses/cabinet.flac out2.wav || fail "package gpuconv: $(cat "$work/log/err")"
cmp out.wav out2.wav || fail "the packaged command gives another output"
unpack "libgpuconv$abi"
depends libgpuconv-dev "libgpuconv$abi \(= $version\)"
unpack libgpuconv-dev
dpkg-deb --ctrl-tarfile "$work/packages/libgpuconv${abi}"_*.deb | tar xO ./triggers | grep -q ldconfig || fail "the library's package does not call ldconfig"
dpkg-deb --ctrl-tarfile "$work/packages/libgpuconv${abi}"_*.deb | tar xO ./shlibs | grep -qF "libgpuconv $abi libgpuconv$abi" || fail "no shlibs"
unpack gpulab
lab_is_complete "$PWD/gpulab/usr"

# A program is built with the two packages of the library alone.
mkdir both
cp -a "libgpuconv$abi/." libgpuconv-dev/. both/
quietly cmake -S "$SOURCE/tests/install" -B packaged -DCMAKE_PREFIX_PATH="$PWD/both/usr" -DEXAMPLE="$SOURCE/examples/02_streaming.c" ||
    fail "packages: $(cat "$work/log/err")"
quietly cmake --build packaged || fail "packages: $(cat "$work/log/out" "$work/log/err")"
quietly packaged/with_gpuconv || fail "packages: $(cat "$work/log/err")"

# Modules are in packages of their own, where they were built.
dpkg-deb --field "$work"/packages/gpuconv_*.deb Depends | grep -iE 'portaudio|pipewire|liblo|jack' && fail "gpuconv depends on a library of sound devices"
[ -z "$(find gpuconv "libgpuconv$abi" libgpuconv-dev gpulab -name 'gpuconv-*.so' -o -name '*.lv2')" ] || fail "a module is in a package of another component"
if [ -e "$build/gpuconv-mpi.so" ]; then
    depends gpuconv-mpi 'openmpi'
    depends gpuconv-mpi "gpuconv \(= $version\)"
    unpack gpuconv-mpi
    [ -n "$(find gpuconv-mpi -path '*/gpuconv/gpuconv-mpi.so')" ] || fail "no module in gpuconv-mpi"
fi
if [ -e "$build/gpuconv-sound.so" ]; then
    depends gpuconv-sound "gpuconv \(= $version\)"
    depends gpuconv-sound libportaudio2
    unpack gpuconv-sound
    for module in "$build"/gpuconv-sound.so "$build"/gpuconv-pipewire.so "$build"/gpuconv-osc.so "$build"/gpuconv-midi.so; do
        [ ! -e "$module" ] || [ -n "$(find gpuconv-sound -path "*/gpuconv/${module##*/}")" ] || fail "no ${module##*/} in gpuconv-sound"
    done
    dpkg-deb --field "$work"/packages/gpuconv_*.deb Recommends | grep -q gpuconv-sound || fail "gpuconv does not recommend gpuconv-sound"
fi
if [ -e "$build/lv2" ]; then
    unpack gpuconv-lv2
    plugin=$(find gpuconv-lv2 -path '*/lv2/gpuconv.lv2/gpuconv.so')
    [ -s "${plugin%/*}/manifest.ttl" ] || fail "no plug-in in gpuconv-lv2"
    ldd "$plugin" | grep -i mpi && fail "the plug-in loads MPI"
fi
exit 0
