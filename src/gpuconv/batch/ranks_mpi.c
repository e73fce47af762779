/*
 * The module that carries a batch's messages through MPI. A question is a head, then the lines of results; an answer is
 * the entries to be done, none for "no more". Waiting polls with pauses: MPI's own waiting would take a core from the
 * work.
 */
#include "ranks.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEAD = 1, LINES, ANSWER }; /* tags */

typedef struct head {
    int64_t done, failed, clipped, bytes, leaving;
    double audio;
} head;

static int members;

static void pause_a_little(void) {
    struct timespec t = {0, 100000};
    nanosleep(&t, NULL);
}

static bool finish(MPI_Request *request, MPI_Status *status) {
    for (int done = 0; !done; pause_a_little())
        if (MPI_Test(request, &done, status) != MPI_SUCCESS)
            return false;
        else if (done)
            return true;
    return true;
}

static bool receive(void *to, int bytes, int from, int tag, MPI_Status *status) {
    MPI_Request request;
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): finish() waits, by asking */
    return MPI_Irecv(to, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
           finish(&request, status);
}

static bool send_to(const void *from, int bytes, int to, int tag) {
    MPI_Request request;
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker) */
    return MPI_Isend(from, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
           finish(&request, MPI_STATUS_IGNORE);
}

static bool serve(int (*take)(void *context, int64_t *entries),
                  void (*accept)(void *context, const gc_ranks_news *news), void *context) {
    for (int here = members - 1; here > 0;) {
        head h;
        MPI_Status status;
        int64_t entries[GC_RANKS_ENTRIES];
        if (!receive(&h, sizeof h, MPI_ANY_SOURCE, HEAD, &status))
            return false;
        char *lines = malloc((size_t)h.bytes + 1);
        if (!lines || (h.bytes > 0 && !receive(lines, (int)h.bytes, status.MPI_SOURCE, LINES, MPI_STATUS_IGNORE))) {
            free(lines);
            return false;
        }
        gc_ranks_news news = {h.done, h.failed, h.clipped, h.audio, (int)h.leaving, lines, (size_t)h.bytes};
        accept(context, &news);
        free(lines);
        int n = h.leaving ? 0 : take(context, entries);
        here -= h.leaving != 0;
        if (!h.leaving && !send_to(entries, n * (int)sizeof *entries, status.MPI_SOURCE, ANSWER))
            return false;
    }
    return true;
}

static int ask(const gc_ranks_news *news, int64_t *entries) {
    head h = {news->done, news->failed, news->clipped, (int64_t)news->bytes, news->leaving, news->audio};
    MPI_Status status;
    int bytes = 0;
    if (!send_to(&h, sizeof h, 0, HEAD) || (h.bytes > 0 && !send_to(news->lines, (int)h.bytes, 0, LINES)))
        return -1;
    if (news->leaving)
        return 0;
    if (!receive(entries, GC_RANKS_ENTRIES * (int)sizeof *entries, 0, ANSWER, &status) ||
        MPI_Get_count(&status, MPI_BYTE, &bytes) != MPI_SUCCESS)
        return -1;
    return bytes / (int)sizeof *entries;
}

static void end(void) {
    MPI_Finalize();
}

__attribute__((visibility("default"))) gc_ranks_start gpuconv_ranks_start;

bool gpuconv_ranks_start(gc_ranks *ranks, char *why, size_t room) {
    int given = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS || given < MPI_THREAD_SERIALIZED) {
        (void)snprintf(why, room, "it cannot be called from several threads in turn");
        return false;
    }
    *ranks = (gc_ranks){.serve = serve, .ask = ask, .end = end};
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    members = ranks->size;
    return true;
}
