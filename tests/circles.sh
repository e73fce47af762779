#!/bin/sh
# Checks that no files of a static library need each other in a circle: by the symbols that each object file defines and
# uses, so that it does not matter which header declares a function.
# Usage: circles.sh LIBRARY...
set -uf
failed=0
for tool in nm tsort; do
    command -v $tool >/dev/null || {
        echo "no $tool: circles cannot be found"
        exit 77
    }
done
for library in "$@"; do
    [ -n "$library" ] || continue # a library that this build lacks
    # Lines of nm: LIBRARY:FILE:VALUE TYPE NAME, without a value for an undefined name.
    pairs=$(cd "${library%/*}" && nm -A "${library##*/}" | awk '
        { split($0, part, ":"); file = part[2]; sub(/\.c\.o$/, "", file); name = $NF; type = $(NF - 1)
          if (type == "U") uses[file, name] = file " " name
          else if (type ~ /^[A-TV-Z]$/) owner[name] = file }
        END { for (use in uses) { split(uses[use], pair, " ")
              if (pair[2] in owner && owner[pair[2]] != pair[1]) print pair[1], owner[pair[2]] } }' | sort -u)
    [ -n "$pairs" ] || {
        echo "FAILED: ${library##*/} has no names that one file defines and another uses" >&2
        failed=1
    }
    found=$(echo "$pairs" | tsort 2>&1 >/dev/null) || {
        echo "FAILED: files of ${library##*/} need each other in a circle:" >&2
        echo "$found" >&2
        failed=1
    }
done
[ $failed -eq 0 ]
