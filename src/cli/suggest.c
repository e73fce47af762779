/* Distances between words, in letters. */
#include "suggest.h"

#include <string.h>

enum { LETTERS = 32 };

static int least_of(int a, int b, int c) {
    const int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Returns the optimal string alignment distance of two words of fewer than LETTERS letters. */
static int distance_of(const char *a, size_t rows, const char *b, size_t columns) {
    int d[LETTERS][LETTERS];
    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (int)(i + j);
                continue;
            }
            const int replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least_of(replaced, d[i - 1][j] + 1, d[i][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[rows][columns];
}

void gc_suggestion_try(gc_suggestion *s, const char *word) {
    const size_t typed = strlen(s->typed), length = strlen(word);
    if (typed == 0 || typed >= LETTERS || length >= LETTERS)
        return;
    const int allowed = typed < 6 ? 1 : (int)(typed / 3), distance = distance_of(s->typed, typed, word, length);
    if (distance <= allowed && (!s->best || distance < s->distance)) {
        s->best = word;
        s->distance = distance;
    }
}
