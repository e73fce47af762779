#!/bin/sh
# What was installed, and moved elsewhere, is found by CMake and pkg-config, links shared and static, shows no name that is
# not public, and runs; the packages hold it all, with the right dependencies.
# Usage: install.sh BUILD-FOLDER
. "$(dirname "$0")/../gpuconv/lib.sh"
build=$1
case $SANITIZE in
?*) skip "what is built with sanitizers is not installed" ;;
esac

quietly cmake --install "$build" --prefix "$work/first" || fail "cmake --install: $(cat "$work/log/err")"
mv "$work/first" "$work/moved"
prefix=$work/moved
library=$(find "$prefix" -name 'libgpuconv.so')
[ -e "$library" ] || fail "no shared library"
[ -e "${library%.so}.a" ] || fail "no static library"
readelf -d "$library" | grep -q 'SONAME.*\[libgpuconv.so.0\]' || fail "another SONAME: $(readelf -d "$library" | grep SONAME)"

# What is exported is what the header declares, all of it.
nm -D --defined-only "$library" | awk '$2 ~ /[TDBRVW]/ { sub("@.*", "", $3); print $3 }' | grep -v '^GPUCONV_' | sort -u >exported
cat "$prefix/include/gpuconv.h" "$prefix/include/gpuconv_cuda.h" | grep -v '^ \*' | grep -o 'gpuconv_[a-z0-9_]*(' | tr -d '(' | sort -u >declared
diff declared exported || fail "the library shows other names than the headers declare"

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

# The command, moved, with what came beside it.
make_audio noise in.wav wav-16 1 48000 1000 0.1
quietly "$prefix/bin/gpuconv" -b cpu in.wav "$prefix/share/gpuconv/impulses/cabinet.flac" out.wav || fail "moved: $(cat "$work/log/err")"
for page in gpuconv gpuconv-batch gpuconv-play gpuconv-ir-info; do
    [ -s "$prefix/share/man/man1/$page.1" ] || fail "no manual page $page"
done
[ -s "$prefix/share/bash-completion/completions/gpuconv" ] || fail "no completions"

# The documents, with everything that their links name, the schema of reports, and the examples.
for document in README.md CHANGELOG.md LICENSE docs/manual.md docs/library.md docs/data-path.svg docs/before-after.png \
    docs/report.schema.json examples/01_offline.c; do
    [ -s "$prefix/share/doc/gpuconv/$document" ] || fail "no document $document"
done

# Packages.
(cd "$work" && quietly cpack --config "$build/CPackConfig.cmake" -B "$work/packages") || fail "cpack: $(cat "$work/log/out" "$work/log/err")"
tar xzf "$work"/packages/*.tar.gz || fail "no archive"
quietly gpuconv-*/bin/gpuconv --version || fail "the archive's command: $(cat "$work/log/err")"
if command -v dpkg-deb >"$work/log/which"; then
    dpkg-deb --info "$work"/packages/*.deb >"$work/log/out" || fail "no package"
    for library in libsndfile1 libsoxr0 libebur128-1 libjansson4 libpopt0; do
        grep -q "Depends:.*$library" "$work/log/out" || fail "does not depend on $library: $(cat "$work/log/out")"
    done
    dpkg-deb --contents "$work"/packages/*.deb >"$work/log/out"
    grep -q 'usr/bin/gpuconv$' "$work/log/out" || fail "no command in the package"
fi
exit 0
