/* Rooms on a device: the device's memory for the tests of test_rooms.c, the CPU beside it, impossible rooms, graphs. */
#include "gpu_rooms.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

enum { BEHIND = 1024 /* floats behind the output that stay as they were */ };

#define TRY(call) CHECK((call) == cudaSuccess, "%s: %s", #call, cudaGetErrorString(cudaGetLastError()))

/* A job in device memory. */
typedef struct device_job {
    gpuconv_arrays *place;
    gpuconv_rooms_plan *plan;
    gpuconv_rooms_job job;
    void *room, *source, *receiver, *seeds, *workspace;
    float *output;
    size_t frames; /* of all responses */
} device_job;

static void *upload(const void *from, size_t bytes) {
    void *to = NULL;
    TRY(cudaMalloc(&to, bytes));
    TRY(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    return to;
}

static device_job open_job(const gpuconv_rooms_job *job) {
    const int order = job->ambisonic + 1;
    const size_t rooms = (size_t)job->rooms;
    const size_t channels = (size_t)(job->ears ? gpuconv_sofa_receivers(job->ears) : order * order);
    device_job d = {.job = *job};
    gpuconv_error error = {0};
    CHECK(gpuconv_arrays_new_cuda(0, &d.place, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_rooms_plan_new(d.place, job, &d.plan, &error) == GPUCONV_OK, "%s", error.message);
    d.job.room = d.room = upload(job->room, rooms * sizeof *job->room);
    d.job.source = d.source = upload(job->source, rooms * (size_t)job->sources * sizeof *job->source);
    d.job.receiver = d.receiver = upload(job->receiver, rooms * (size_t)job->receivers * sizeof *job->receiver);
    if (job->seeds)
        d.job.seeds = d.seeds = upload(job->seeds, rooms * sizeof *job->seeds);
    d.frames = rooms * (size_t)(job->sources * job->receivers * job->frames) * channels;
    TRY(cudaMalloc(&d.workspace, gpuconv_rooms_plan_workspace(d.plan)));
    TRY(cudaMalloc((void **)&d.output, (d.frames + BEHIND) * sizeof(float)));
    TRY(cudaMemset(d.workspace, 0xff, gpuconv_rooms_plan_workspace(d.plan)));
    TRY(cudaMemset(d.output, 0xff, (d.frames + BEHIND) * sizeof(float)));
    return d;
}

static void run_job(const device_job *d, cudaStream_t stream) {
    gpuconv_error error = {0};
    CHECK(gpuconv_rooms_plan_run(d->plan, &d->job, d->output, d->workspace, gpuconv_rooms_plan_workspace(d->plan),
                                 stream, &error) == GPUCONV_OK,
          "%s", error.message);
}

static guarded read_job(const device_job *d) {
    guarded made = guarded_new(1, (int64_t)d->frames);
    unsigned char behind[BEHIND * sizeof(float)];
    TRY(cudaMemcpy(made.channel[0], d->output, d->frames * sizeof(float), cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(behind, d->output + d->frames, sizeof behind, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < sizeof behind; i++)
        CHECK(behind[i] == 0xff, "byte %zu behind the output was written", i);
    return made;
}

static void close_job(device_job *d) {
    gpuconv_rooms_plan_free(d->plan);
    gpuconv_arrays_free(d->place);
    cudaFree(d->room);
    cudaFree(d->source);
    cudaFree(d->receiver);
    cudaFree(d->seeds);
    cudaFree(d->workspace);
    cudaFree(d->output);
}

guarded gpu_rooms_simulate(const gpuconv_rooms_job *job) {
    device_job d = open_job(job);
    run_job(&d, NULL);
    guarded made = read_job(&d);
    close_job(&d);
    return made;
}

enum { ROOMS = 6 };

/* Fills rooms that differ, with two sources and two receivers each. */
static gpuconv_rooms_job some_rooms(gpuconv_room room[ROOMS], gpuconv_room_point points[4 * ROOMS]) {
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    oracle_random random = {11};
    memset(room, 0, ROOMS * sizeof *room);
    for (int i = 0; i < ROOMS; i++)
        for (int a = 0; a < 3; a++) {
            room[i].size[a] = 4 + 3 * (double)oracle_uniform(&random);
            for (int k = 0; k < 4; k++) {
                gpuconv_room_point *p = &points[k / 2 * 2 * ROOMS + 2 * i + k % 2];
                p->at[a] = (0.5 + 0.45 * (double)oracle_uniform(&random)) * room[i].size[a];
                p->azimuth = 180 * (double)oracle_uniform(&random);
                p->elevation = 90 * (double)oracle_uniform(&random);
                p->omni = 0.5 + 0.5 * (double)oracle_uniform(&random);
            }
        }
    for (int i = 0; i < ROOMS * GPUCONV_ROOM_BANDS; i++)
        room[i / GPUCONV_ROOM_BANDS].rt60[i % GPUCONV_ROOM_BANDS] = 0.3 + 0.01 * (i % 17);
    job.room = room;
    job.rooms = ROOMS;
    job.source = points;
    job.sources = 2;
    job.receiver = points + 2 * ROOMS;
    job.receivers = 2;
    job.frames = 3000;
    return job;
}

/* The noise has the random numbers of the CPU, so that it is compared frame by frame too. Of 100 000 images one lies
 * between two directions of a head within single precision: few are compared. */
void rooms_on_the_gpu_are_those_of_the_cpu(void **state) {
    (void)state;
    static gpuconv_room room[ROOMS];
    static gpuconv_room_point points[4 * ROOMS];
    static const uint64_t seeds[ROOMS] = {5, 4, 3, 2, 1, 0};
    gpuconv_arrays *cpu;
    gpuconv_error error = {0};
    CHECK(gpuconv_arrays_new_cpu(0, &cpu, &error) == GPUCONV_OK, "%s", error.message);
    gpuconv_sofa *ears = random_ears(2);
    for (int k = 0; k < 11; k++) {
        gpuconv_rooms_job job = some_rooms(room, points);
        job.tail = k > 0;
        job.images_level = k == 1 || k >= 4 ? 15 : 0;
        job.images_order = k == 2 ? 4 : k == 10 ? 0 : -1;
        job.images_seconds = k == 3 ? 0.04 : 0;
        job.diffuse = k == 3;
        job.air = k == 4 || k == 9;
        job.ears = k >= 8 ? ears : NULL;
        job.origin = k == 9 ? -200 : 0;
        job.ambisonic = k == 5 ? 2 : 0;
        job.highpass = k == 6 ? 80 : 0;
        job.seeds = k == 7 ? seeds : NULL;
        job.formula = k % 3 == 1 ? GPUCONV_ROOM_EYRING : k % 3 == 2 ? GPUCONV_ROOM_SABINE : GPUCONV_ROOM_IMAGES;
        job.rate = k == 4 ? 48000 : 16000;
        if (job.ears) {
            job.rooms = job.sources = 1;
            job.frames = 800;
        }
        guarded got = gpu_rooms_simulate(&job), want = guarded_new(1, got.frames);
        CHECK(gpuconv_rooms_simulate(cpu, &job, want.channel[0], &error) == GPUCONV_OK, "%s", error.message);
        const double distance = harness_distance(&got, &want, got.frames);
        CHECK(distance <= -80, "case %d: %.1f dB", k, distance);
        print_message("case %d: %.1f dB\n", k, distance);
        guarded_free(&got);
        guarded_free(&want);
    }
    gpuconv_sofa_free(ears);
    gpuconv_arrays_free(cpu);
}

void what_the_cpu_refuses_is_silent(void **state) {
    (void)state;
    static gpuconv_room room[ROOMS];
    static gpuconv_room_point points[4 * ROOMS];
    gpuconv_rooms_job job = some_rooms(room, points);
    job.tail = true;
    job.images_level = 20;
    job.sources = job.receivers = 1;
    job.receiver = points + ROOMS;
    for (int i = 0; i < 3 * ROOMS; i++)
        room[i / 3].size[i % 3] = 7; /* holds the points of all rooms */
    room[0].size[1] = (double)NAN;
    room[1].absorption[3][2] = 1.5;
    points[2].at[0] = -1;
    points[ROOMS + 3] = points[3];
    room[4].rt60[0] = 0; /* and the others are not */
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        room[5].rt60[b] = 0.02; /* walls that absorb 99 % have more */
    guarded got = gpu_rooms_simulate(&job);
    for (int i = 0; i < ROOMS; i++) {
        double energy = 0;
        for (int64_t n = 0; n < job.frames; n++)
            energy += pow((double)got.channel[0][i * job.frames + n], 2);
        CHECK(i < 5 ? energy == 0 : energy > 1e-4 && energy < 1e4, "room %d has the energy %g", i, energy);
    }
    guarded_free(&got);
}

void a_graph_simulates_what_the_memory_then_has(void **state) {
    (void)state;
    static gpuconv_room room[ROOMS], other[ROOMS];
    static gpuconv_room_point points[4 * ROOMS];
    gpuconv_rooms_job job = some_rooms(room, points);
    job.highpass = 60;
    job.tail = true;
    job.images_level = 10;
    for (int i = 0; i < ROOMS; i++)
        other[i] = room[ROOMS - 1 - i];
    for (int i = 0; i < ROOMS; i++)
        memcpy(other[i].size, room[i].size, sizeof room[i].size);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    device_job d = open_job(&job);
    TRY(cudaStreamCreate(&stream));
    run_job(&d, stream);
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    run_job(&d, stream);
    TRY(cudaStreamEndCapture(stream, &graph));
    TRY(cudaGraphInstantiate(&instance, graph, 0));
    TRY(cudaMemcpy(d.room, other, sizeof other, cudaMemcpyHostToDevice));
    TRY(cudaGraphLaunch(instance, stream));
    TRY(cudaStreamSynchronize(stream));
    guarded replayed = read_job(&d);
    close_job(&d);
    job.room = other;
    guarded want = gpu_rooms_simulate(&job);
    assert_true(oracle_identical("a graph", &replayed, replayed.frames, &want, want.frames));
    cudaGraphExecDestroy(instance);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    guarded_free(&replayed);
    guarded_free(&want);
}
