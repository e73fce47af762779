/* Word wrapping. */
#include "wrap.h"

#include <string.h>

void gc_print_words(FILE *to, const char *words, size_t bytes, gc_wrap wrap) {
    const char *end = words + bytes;
    int column = wrap.margin;
    while (words < end) {
        int length = (int)strcspn(words, " \n");
        if (column > wrap.margin && column + 1 + length > wrap.width) {
            fprintf(to, "\n%*s", wrap.margin, "");
            column = wrap.margin;
        }
        column += fprintf(to, "%s%.*s", column > wrap.margin ? " " : "", length, words);
        words += length;
        words += strspn(words, " \n");
    }
    fputc('\n', to);
}
