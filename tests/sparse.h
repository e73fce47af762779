/* What a sparse file sounds like: multiples of 8, so that halves, quarters and eighths of them are whole numbers. */
#ifndef TESTS_SPARSE_H
#define TESTS_SPARSE_H

static inline int sparse_value(int i, int channel) {
    return (channel % 2 ? -8 : 8) * (501 + 97 * (i % 11) + 13 * channel);
}

#endif
