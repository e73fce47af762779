/* Sample values of sparse test files: multiples of 8, so that 1/2, 1/4 and 1/8 of them are integers. */
#ifndef TESTS_SPARSE_H
#define TESTS_SPARSE_H

static inline int sparse_value(int i, int channel) {
    return (channel % 2 ? -8 : 8) * (501 + 97 * (i % 11) + 13 * channel);
}

#endif
