/* Includes cmocka and the headers that it needs, and defines CHECK, which fails a test with a message. The condition
 * states what must be true, so that a comparison with NaN fails. */
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

/* Declares a function without checks of the address and undefined-behaviour sanitizers: the inner loop of a simulation,
 * which calls nothing of the library. */
#define NOT_SANITIZED __attribute__((no_sanitize("address", "undefined")))

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
