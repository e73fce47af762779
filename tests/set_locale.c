/* LD_PRELOAD module: the commands, the unit tests and Python begin in the locale that GPUCONV_TEST_LOCALE names, as if
 * another part of the process had set it. Other programs, and all messages of the system, stay as they are. */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((constructor)) void set_locale(void) {
    static const char *const programs[] = {"gpuconv", "gpulab", "test_", "python"};
    const char *name = getenv("GPUCONV_TEST_LOCALE");
    for (size_t i = 0; name && i < sizeof programs / sizeof *programs; i++)
        if (strncmp(program_invocation_short_name, programs[i], strlen(programs[i])) == 0 &&
            !(setlocale(LC_ALL, name) && setlocale(LC_MESSAGES, "C")))
            abort(); /* the locale is missing */
}
