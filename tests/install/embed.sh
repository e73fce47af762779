#!/bin/sh
# Embeds the library in other projects (tests/install/embedded): by FetchContent, by add_subdirectory, and by find_package and
# pkg-config from an installation of the library alone, with gcc and with clang, shared and static. The first two see a
# compiler, CMake and Ninja and nothing else.
. "$(dirname "$0")/../gpuconv/lib.sh"
case $SANITIZE in
?*) skip "a build with sanitizers is not installed" ;;
esac
: "${SOURCE:?the checkout}"
project=$SOURCE/tests/install/embedded
command -v gcc >"$work/log/which" || skip "no gcc"
clang=clang
command -v clang >"$work/log/which" || clang=gcc

# A machine with nothing else: the programs that are needed, and an empty environment. The compilers do not optimise, which
# takes a sixth of the time: other tests run what they compile otherwise.
mkdir bare
for tool in cmake ninja as ld ar ranlib; do
    ln -sf "$(command -v "$tool")" "bare/$tool"
done
for tool in gcc $clang; do
    printf '#!/bin/sh\nexec %s "$@" -O0\n' "$(command -v "$tool")" >"bare/$tool"
    chmod +x "bare/$tool"
done
barely() { # barely COMMAND...
    quietly env -i PATH="$PWD/bare" HOME="$work" PKG_CONFIG_LIBDIR="$PWD/bare" "$@"
}
said() {
    cat "$work/log/out" "$work/log/err"
}
# runs FOLDER LIBRARY...: the programs that were built in a folder run, and find these libraries
runs() {
    folder=$1
    shift
    for kind in gpuconv static; do
        quietly "$folder/with_$kind" "$SOURCE" "$@" || fail "$folder with $kind: $(said)"
    done
    quietly ctest --test-dir "$folder" -N
    grep -q 'Total Tests: 0' "$work/log/out" || fail "$folder: it got tests: $(said)"
    [ -z "$(find "$folder" -name gpuconv -type f)" ] || fail "$folder: it got the command"
}
barely cmake -S "$project" -B fetch -G Ninja -DCMAKE_C_COMPILER=$clang -DCHECKOUT="$SOURCE" -DWAY=fetch -DGPUCONV_INSTALL=ON \
    -DCMAKE_EXE_LINKER_FLAGS=-static || fail "fetch: $(said)"
[ "$(grep -c 'gpuconv: without .* (Debian: .*-dev)' "$work/log/out")" -eq 6 ] || fail "six libraries are not named: $(said)"
barely cmake --build fetch || fail "fetch: $(said)"
runs fetch
readelf -d fetch/with_gpuconv | grep NEEDED && fail "fetch: not linked statically"

set -- -S "$project" -B subdirectory -G Ninja "-DCMAKE_C_COMPILER=$PWD/bare/gcc" -DCHECKOUT="$SOURCE" -DWAY=subdirectory \
    "-DGPUCONV_LIBRARIES=jansson;qhull_r;zlib"
quietly cmake "$@" || fail "subdirectory: $(said)"
find subdirectory -name cmake_install.cmake -exec grep gpuconv.h {} + && fail "a project around gpuconv installs its headers"
quietly cmake "$@" -DGPUCONV_INSTALL=ON -DBUILD_SHARED_LIBS=ON || fail "subdirectory: $(said)"
quietly cmake --build subdirectory || fail "subdirectory: $(said)"
runs subdirectory jansson libqhull zlib
readelf -d subdirectory/with_gpuconv | grep -q 'NEEDED.*libgpuconv\.so' || fail "BUILD_SHARED_LIBS links the static library"

# A library that is named must be there.
barely cmake -S "$SOURCE" -B named -G Ninja -DCMAKE_C_COMPILER=gcc -DGPUCONV_LIBRARY_ONLY=ON -DGPUCONV_LIBRARIES=sndfile &&
    fail "a library that is not there was found"
grep -q 'sndfile (Debian: libsndfile1-dev)' "$work/log/err" || fail "the missing library is not named: $(said)"

# uses FOLDER LIBRARY...: an installation without and with libraries is used by CMake and by pkg-config
uses() {
    prefix=$PWD/$1
    shift
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gpuconv.pc)")
    library=$(dirname "$PKG_CONFIG_PATH")
    export PKG_CONFIG_PATH
    for compiler in gcc $clang; do
        rm -rf package
        quietly cmake -S "$project" -B package -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" -DWAY=package ||
            fail "find_package: $(said)"
        quietly cmake --build package || fail "find_package: $(said)"
        runs package "$@"
        # shellcheck disable=SC2046
        quietly "$compiler" -o shared "$project/embedded.c" $(pkg-config --cflags --libs gpuconv) -lm || fail "pkg-config: $(said)"
        LD_LIBRARY_PATH=$library quietly ./shared "$SOURCE" "$@" || fail "by pkg-config: $(said)"
    done
    # The static library alone, in a static program.
    find "$prefix" -name 'libgpuconv.so*' -exec rm {} +
    for compiler in gcc $clang; do
        # shellcheck disable=SC2046
        quietly "$compiler" -static -o static "$project/embedded.c" $(pkg-config --static --cflags --libs gpuconv) ||
            fail "pkg-config --static: $(said)"
        quietly ./static "$SOURCE" "$@" || fail "by pkg-config --static: $(said)"
    done
}
quietly cmake --install fetch --prefix "$PWD/plain" || fail "cmake --install: $(said)"
uses plain
quietly cmake --install subdirectory --prefix "$PWD/some" || fail "cmake --install: $(said)"
uses some jansson libqhull zlib
exit 0
