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

quietly "$SOURCE/scripts/abi" || fail "$(cat "$work/log/out" "$work/log/err")"

# change SED: makes changed/gpuconv.h
change() {
    sed "$1" "$SOURCE/include/gpuconv.h" >changed/gpuconv.h
    cmp -s changed/gpuconv.h "$SOURCE/include/gpuconv.h" && fail "'$1' changes nothing: the test is out of date"
}
# keeps SED: with this change of the header the check passes
keeps() {
    change "$1"
    quietly "$SOURCE/scripts/abi" --include "$PWD/changed" || fail "'$1' is refused: $(cat "$work/log/out" "$work/log/err")"
}
# breaks SED TEXT: with this change of the header the check fails and prints TEXT
breaks() {
    change "$1"
    quietly "$SOURCE/scripts/abi" --include "$PWD/changed" && fail "'$1' is not found"
    grep -q -- "$2" "$work/log/out" || fail "'$1' does not print '$2': $(cat "$work/log/out" "$work/log/err")"
}
keeps '/^} gpuconv_config;/i double added;
    s/GPUCONV_MODE_VALID /GPUCONV_MODE_VALID, GPUCONV_MODE_ADDED /'
breaks '/^typedef struct gpuconv_job {/a double added;' "gpuconv_job"
breaks '/^} gpuconv_error;/i double added;' "gpuconv_error"
breaks 's/^    GPUCONV_MODE_SAME,/    GPUCONV_MODE_ADDED, &/' "enumerator GPUCONV_MODE_SAME = 1"
breaks '/^} gpuconv_progress;/i double added;
    s/^    double seconds;.*/int64_t seconds;/' "field gpuconv_progress .* seconds : double"
breaks 's/gpuconv_plan_note(const/gpuconv_plan_remark(const/; s/^#define GPUCONV_H$/&\n#define gpuconv_plan_note gpuconv_plan_remark/' "gpuconv_plan_note"
exit 0
