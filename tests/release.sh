#!/bin/sh
# Checks what scripts/release refuses before it builds anything: changes that are not committed, a missing tag, a tag of another
# version, a CHANGELOG without a date, and a pending GPU record.
set -eu
: "${SOURCE:?the checkout}"
git -C "$SOURCE" rev-parse --verify --quiet HEAD >/dev/null 2>&1 || {
    echo "skipped: no Git checkout"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --shared "$SOURCE" "$work/tree"
cp "$SOURCE/scripts/release" "$SOURCE/scripts/version" "$work/tree/scripts/"
cd "$work/tree"
commit() {
    git add -A
    git -c user.name=test -c user.email=test@localhost commit --quiet --allow-empty -m "$1"
    git tag -f "$2" >/dev/null
}
refused() { # refused TAG TEXT
    status=0
    scripts/release "$1" >out 2>&1 </dev/null || status=$?
    if [ $status -ne 1 ] || ! grep -qF "$2" out; then
        echo "scripts/release $1: status $status instead of a refusal with \"$2\": $(cat out)" >&2
        exit 1
    fi
    rm out
}
version=$(scripts/version)
printf 'out\n' >>.git/info/exclude
commit 'the script' v9.9.9
sed -i "s/^## \[$version\] .*/## [$version] - unreleased/" CHANGELOG.md
echo >>CHANGELOG.md
refused v9.9.9 'not committed'
commit 'no date' "v$version"
refused v8.8.8 'no tag v8.8.8'
refused v9.9.9 "has the version $version"
refused "v$version" "no date for $version"
sed -i "s/^## \[$version\] .*/## [$version] - 2000-01-01/" CHANGELOG.md
echo '// changed' >>kernels/engine/reference.cu
commit 'GPU code that was not run' "v$version"
refused "v$version" 'GPU record is pending'
