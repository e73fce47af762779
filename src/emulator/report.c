/* Asks the symbols for lines, and reads the lines from student.cu beside the library. */
#include "report.h"

#include "counts.h"
#include "libgpuconv/core/number.h"
#include "symbols.h"

#include <stdio.h>
#include <string.h>

/* Writes line `number` of the source, without the blanks before it; nothing if there is none. */
static void read_source_line(const char *library, int number, char *line, size_t room) {
    char path[4300];
    const char *slash = strrchr(library, '/');
    *line = '\0';
    (void)snprintf(path, sizeof path, "%.*sstudent.cu", slash ? (int)(slash + 1 - library) : 0, library);
    FILE *from = number > 0 ? fopen(path, "r") : NULL;
    int at = 1;
    char text[400];
    while (from && at <= number && fgets(text, sizeof text, from)) {
        size_t length = strcspn(text, "\r\n");
        bool ends = strchr(text, '\n') != NULL;
        if (at == number && ends) {
            text[length] = '\0';
            (void)snprintf(line, room, "> %s\n", text + strspn(text, " \t"));
        }
        at += ends;
    }
    if (from)
        (void)fclose(from);
}

/* Writes where a barrier is missing between the accesses in two lines, of which the second came first. */
static void name_missing_barrier(const gc_failure *f, const int line[2], char *hint, size_t room) {
    int first = line[0] < line[1] ? line[0] : line[1], last = line[0] < line[1] ? line[1] : line[0];
    if (first == last)
        (void)snprintf(
            hint, room,
            "This is a race. A barrier is missing: __syncthreads() at the end of the loop around line %d, or "
            "between what this line reads and what it writes.",
            first);
    else if (first < f->barrier && f->barrier < last)
        (void)snprintf(hint, room,
                       "This is a race. A barrier is missing at the end of the loop: __syncthreads() after line %d, "
                       "before its next step reaches line %d.",
                       last, first);
    else
        (void)snprintf(hint, room, "This is a race. A barrier is missing: __syncthreads() between line %d and line %d.",
                       first, last);
}

void gc_report_failure(const gc_failure *failure, const char *library, char *text, size_t room) {
    const void *const place[] = {failure->place, failure->other_place};
    int line[2];
    char where[40] = "", source[500], hint[300];
    const char *other = strstr(failure->text, "%LINE%");
    gc_symbols_lines(library, place, line, 2);
    if (!failure->place)
        line[0] = failure->line;
    if (line[0] > 0)
        (void)snprintf(where, sizeof where, "Line %d: ", line[0]);
    read_source_line(library, line[0], source, sizeof source);
    char changed[650];
    (void)snprintf(changed, sizeof changed, "%s", failure->text);
    if (other)
        (void)snprintf(changed, sizeof changed, "%.*s%d%s", (int)(other - failure->text), failure->text, line[1],
                       other + strlen("%LINE%"));
    if (failure->is_shared_race)
        name_missing_barrier(failure, line, hint, sizeof hint);
    (void)snprintf(text, room, "%s%s%s%s\n%s%s", where, failure->thread, *failure->thread ? " " : "", changed, source,
                   failure->is_shared_race ? hint : failure->hint);
}

void gc_report_counts(const char *library, char *text, size_t room) {
    const gc_sum global = gc_counts_sum(GC_SITE_GLOBAL), shared = gc_counts_sum(GC_SITE_SHARED),
                 blocks = gc_counts_sum(GC_SITE_BLOCK);
    const void *const place[] = {global.worst, shared.worst, blocks.worst};
    int line[3];
    char worst[3][100] = {"", "", ""};
    size_t used = 0;
    gc_symbols_lines(library, place, line, 3);
    if (line[0])
        (void)gc_format(worst[0], sizeof worst[0], ", line %d takes %.1f", line[0], global.worst_ratio);
    if (line[1])
        (void)gc_format(worst[1], sizeof worst[1], ", conflicts in line %d", line[1]);
    if (line[2])
        (void)gc_format(worst[2], sizeof worst[2], ", in line %d: %.0f %%", line[2], 100 * blocks.worst_ratio);
    *text = '\0';
    if (global.requests)
        used = (size_t)gc_format(text, room, "global memory: %lld requests of %.1f sectors (best %.1f)%s\n",
                                 (long long)global.requests, (double)global.spent / (double)global.requests,
                                 (double)global.best / (double)global.requests, worst[0]);
    if (shared.requests && used < room)
        used += (size_t)gc_format(
            text + used, room - used, "shared memory: %lld requests of %.1f cycles (best %.1f)%s\n",
            (long long)shared.requests, (double)shared.spent / (double)shared.requests,
            (double)shared.best / (double)shared.requests, shared.worst ? worst[1] : ", no bank conflicts");
    if (blocks.spent && used < room)
        (void)gc_format(text + used, room - used, "divergence: %.0f %% of the lanes are at work%s\n",
                        100 * (double)blocks.best / (double)blocks.spent, worst[2]);
}
