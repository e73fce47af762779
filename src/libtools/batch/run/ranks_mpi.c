/*
 * Messages between the ranks of a batch through MPI. A report is a header followed by lines of results.jsonl; an answer
 * is a list of entries, empty if none are left. Waiting polls with pauses, because MPI_Wait keeps a core busy.
 */
#include "ranks.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADER = 1, LINES, ANSWER }; /* tags */

typedef struct header {
    int64_t done, failed, clipped, bytes, leaving;
    double audio;
} header;

static int size;
static bool lost; /* a message failed, so that another rank may wait for an answer */

static void sleep_briefly(void) {
    struct timespec t = {0, 100000};
    nanosleep(&t, NULL);
}

/* Waits for a request. @return false: it failed */
static bool wait_for(MPI_Request *request, MPI_Status *status) {
    for (int done = 0; !done; sleep_briefly())
        if (MPI_Test(request, &done, status) != MPI_SUCCESS)
            return false;
        else if (done)
            return true;
    return true;
}

static bool receive(void *to, int bytes, int from, int tag, MPI_Status *status) {
    MPI_Request request;
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): wait_for() completes the request */
    return MPI_Irecv(to, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
           wait_for(&request, status);
}

static bool send_to(const void *from, int bytes, int to, int tag) {
    MPI_Request request;
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker) */
    return MPI_Isend(from, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
           wait_for(&request, MPI_STATUS_IGNORE);
}

static bool answer_reports(int (*take)(void *context, int64_t *entries),
                           void (*accept)(void *context, const gc_ranks_report *report), void *context) {
    for (int present = size - 1; present > 0;) {
        header h;
        MPI_Status status;
        int64_t entries[GC_RANKS_ENTRIES] = {0};
        if (!receive(&h, sizeof h, MPI_ANY_SOURCE, HEADER, &status))
            return false;
        char *lines = malloc((size_t)h.bytes + 1);
        if (!lines || (h.bytes > 0 && !receive(lines, (int)h.bytes, status.MPI_SOURCE, LINES, MPI_STATUS_IGNORE))) {
            free(lines);
            return false;
        }
        const gc_ranks_report report = {h.done, h.failed, h.clipped, h.audio, (int)h.leaving, lines, (size_t)h.bytes};
        accept(context, &report);
        free(lines);
        const int n = h.leaving ? 0 : take(context, entries);
        present -= h.leaving != 0;
        if (!h.leaving && !send_to(entries, n * (int)sizeof *entries, status.MPI_SOURCE, ANSWER))
            return false;
    }
    return true;
}

static int ask(const gc_ranks_report *report, int64_t *entries) {
    header h = {report->done, report->failed, report->clipped, (int64_t)report->bytes, report->leaving, report->audio};
    MPI_Status status;
    int bytes = 0;
    if (!send_to(&h, sizeof h, 0, HEADER) || (h.bytes > 0 && !send_to(report->lines, (int)h.bytes, 0, LINES)))
        return -1;
    if (report->leaving)
        return 0;
    if (!receive(entries, GC_RANKS_ENTRIES * (int)sizeof *entries, 0, ANSWER, &status) ||
        MPI_Get_count(&status, MPI_BYTE, &bytes) != MPI_SUCCESS)
        return -1;
    return bytes / (int)sizeof *entries;
}

static bool serve(int (*take)(void *context, int64_t *entries),
                  void (*accept)(void *context, const gc_ranks_report *report), void *context) {
    const bool served = answer_reports(take, accept, context);
    lost = lost || !served;
    return served;
}

static int request(const gc_ranks_report *report, int64_t *entries) {
    const int n = ask(report, entries);
    lost = lost || n < 0;
    return n;
}

/* MPI_Finalize waits for all ranks: it would never return while one of them waits for an answer. */
static void end(bool in_order, int status) {
    if (in_order && !lost)
        MPI_Finalize();
    else
        MPI_Abort(MPI_COMM_WORLD, status);
}

__attribute__((visibility("default"))) gc_ranks_start gpuconv_ranks_start;

bool gpuconv_ranks_start(gc_ranks *ranks, char *why, size_t room) {
    int provided = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_SERIALIZED) {
        (void)snprintf(why, room, "this MPI cannot be called from several threads");
        return false;
    }
    *ranks = (gc_ranks){.serve = serve, .request = request, .end = end};
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    size = ranks->size;
    return true;
}
