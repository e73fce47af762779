#!/bin/sh
# The library's binary interface is that of the last release (scripts/abi), additions aside; and that check fails when a
# public structure, an enumerator or a function changes.
. "$(dirname "$0")/../gpuconv/lib.sh"
for tool in abidw abidiff; do
    command -v $tool >"$work/log/which" || skip "no $tool (Debian: abigail-tools)"
done
case $(uname -m) in
x86_64) ;;
*) skip "the dump of the last release is of x86_64" ;;
esac
mkdir changed

# check SED: runs the check with a header that sed has changed. The first header has all of the interface and two additions:
# the check fails too if the interface itself has changed.
check() {
    sed "$1" "$SOURCE/include/gpuconv.h" >changed/gpuconv.h
    quietly "$SOURCE/scripts/abi" --include "$PWD/changed"
}
check '/^} gpuconv_config;/i double added;
    s/GPUCONV_MODE_VALID /GPUCONV_MODE_VALID, GPUCONV_MODE_ADDED /' || fail "additions are refused: $(cat "$work/log/out" "$work/log/err")"
cmp -s changed/gpuconv.h "$SOURCE/include/gpuconv.h" && fail "nothing was added: the test is out of date"

# All of these changes are printed, each by a text of its own.
check '/^typedef struct gpuconv_job {/a double added;
    /^} gpuconv_error;/i double added;
    s/^    GPUCONV_MODE_SAME,/    GPUCONV_MODE_ADDED, &/
    /^} gpuconv_progress;/i double added;
    s/^    double seconds;.*/int64_t seconds;/
    s/gpuconv_plan_note(const/gpuconv_plan_remark(const/; s/^#define GPUCONV_H$/&\n#define gpuconv_plan_note gpuconv_plan_remark/' &&
    fail "breaking changes are not found"
for text in 'struct gpuconv_job' 'struct gpuconv_error' 'enumerator GPUCONV_MODE_SAME = 1' 'field gpuconv_progress .* seconds : double' \
    gpuconv_plan_note; do
    grep -q -- "$text" "$work/log/out" || fail "does not print '$text': $(cat "$work/log/out" "$work/log/err")"
done
exit 0
