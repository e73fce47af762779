/* What every test file starts from: cmocka with the headers it wants, and one way to fail that says why. The condition
 * is what must hold, so that a NaN in it fails. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHECK(holds, ...)                                                                                              \
    do {                                                                                                               \
        if (!(holds))                                                                                                  \
            fail_msg(__VA_ARGS__);                                                                                     \
    } while (0)

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
