/* LD_PRELOAD module: gives every process the locale of its environment, as Python and desktop programs do for the
 * libraries that they load. */
#include <locale.h>

static __attribute__((constructor)) void set_locale(void) {
    (void)setlocale(LC_ALL, "");
}
