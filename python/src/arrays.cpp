// Convolution of arrays: gpuconv_arrays.h. Arrays in host memory come as arrays of NumPy, and calls release the GIL.
// Arrays on a GPU come as layouts, pointers and streams, integers from the caller's library; these calls only queue
// work, so that they keep the GIL.
#include "calls.h"
#include "library.h"

#include <gpuconv_rooms.h>
#include <nanobind/stl/array.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace {

using place_owner = std::unique_ptr<gpuconv_arrays, deleter<gpuconv_arrays_free>>;
using responses_owner = std::unique_ptr<gpuconv_responses, deleter<gpuconv_responses_free>>;
using plan_owner = std::unique_ptr<gpuconv_arrays_plan, deleter<gpuconv_arrays_plan_free>>;
using streamer_owner = std::unique_ptr<gpuconv_streamer, deleter<gpuconv_streamer_free>>;
using rooms_owner = std::unique_ptr<gpuconv_rooms_plan, deleter<gpuconv_rooms_plan_free>>;

// ---- In host memory ----

// A place on the CPU with the cancel flag of its threads, which it keeps as long as they live.
struct threads_of_call {
    std::unique_ptr<volatile int> cancel = std::make_unique<volatile int>(0);
    place_owner place; // freed before the flag
};

// Places that are not in use, by their number of threads. A call takes one and puts it back, so that threads of Python
// convolve at the same time and threads of the library live on between calls.
struct idle_places {
    std::mutex lock;
    std::multimap<int, threads_of_call> free;
};
idle_places *idle = new idle_places; // never deleted: threads may outlive the interpreter's end

struct borrowed {
    int threads;
    threads_of_call own;
    idle_places *home = idle;
    gpuconv_status status = GPUCONV_OK; // of the place, with its reason
    gpuconv_error error = {};
    explicit borrowed(int count) : threads(count) {
        {
            std::lock_guard<std::mutex> locked(home->lock);
            auto found = home->free.find(threads);
            if (found != home->free.end()) {
                own = std::move(found->second);
                home->free.erase(found);
                return;
            }
        }
        gpuconv_arrays *made = nullptr;
        const volatile int *before = gpuconv_cancel_set(own.cancel.get());
        status = gpuconv_arrays_new_cpu(threads, &made, &error);
        gpuconv_cancel_set(before);
        own.place.reset(made);
    }
    gpuconv_arrays *place() const {
        check(status, error);
        return own.place.get();
    }
    ~borrowed() {
        std::lock_guard<std::mutex> locked(home->lock);
        if (own.place && !*own.cancel && home->free.size() < 16)
            home->free.emplace(threads, std::move(own));
    }
};

// Forgets the places and calls of the parent process, whose threads do not exist in a forked child.
void forget_threads() {
    idle = new idle_places;
    forget_calls();
}

// The rows (last dimension) of an array of any strides. `starts` has them where one stride does not.
struct host_rows {
    gpuconv_rows rows = {};
    std::vector<int64_t> starts;
    template <typename Array> explicit host_rows(const Array &array) {
        const size_t last = array.ndim() - 1;
        bool even = true; // row i begins at i * stride
        rows.data = const_cast<float *>(array.data());
        rows.rows = 1;
        for (size_t d = last; d-- > 0; rows.rows *= (int64_t)array.shape(d)) {
            if (rows.rows == 1)
                rows.stride = array.stride(d);
            else if (array.shape(d) > 1)
                even = even && array.stride(d) == rows.rows * rows.stride;
        }
        rows.frames = (int64_t)array.shape(last);
        rows.step = rows.frames > 1 ? array.stride(last) : 1;
        if (rows.rows == 1)
            rows.stride = 0;
        if (even)
            return;
        starts.assign(1, 0);
        starts.reserve((size_t)rows.rows);
        for (size_t d = 0; d < last; d++) { // every row so far becomes those of dimension d, from the last one on
            const size_t count = starts.size(), size = array.shape(d);
            starts.resize(count * size);
            for (size_t i = count; i-- > 0;)
                for (size_t k = size; k-- > 0;)
                    starts[i * size + k] = starts[i] + (int64_t)k * array.stride(d);
        }
        rows.starts = starts.data();
    }
};

// Calls a function without the GIL; one that reads or writes very many frames ends at Ctrl-C.
void run_frames(int64_t frames, volatile int *cancel, const work &call) {
    constexpr int64_t many = INT64_C(1) << 21; // some milliseconds
    if (frames >= many)
        run_interruptible(cancel, call);
    else
        run_unlocked(call);
}

gpuconv_arrays_job new_job(int operation, int64_t group, int64_t offset, const gpuconv_responses *prepared) {
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.operation = (gpuconv_arrays_operation)operation;
    job.group = group;
    job.offset = offset;
    job.prepared = prepared;
    return job;
}

// Makes the filter change with time: a row of the responses has those of all blocks of `hop` frames, one after the
// other, without gaps between them and between rows. hop 0: does nothing.
void vary(gpuconv_arrays_job &job, int64_t hop, bool linear) {
    if (hop <= 0)
        return;
    const int64_t blocks = (job.signal.frames + hop - 1) / hop;
    job.hop = hop;
    job.interpolation = linear ? GPUCONV_ARRAYS_LINEAR : GPUCONV_ARRAYS_HOLD;
    job.response.rows *= blocks;
    job.response.frames /= blocks;
    job.response.stride = job.response.frames;
    job.response.starts = nullptr;
}

// Returns array `number` of a job: the inputs of its operation come first, then the outputs.
gpuconv_rows &role(gpuconv_arrays_job &job, int number) {
    gpuconv_rows *const roles[4][5] = {
        {&job.signal, &job.response, &job.output},
        {&job.output, &job.response, &job.signal},
        {&job.output, &job.signal, &job.response},
        {&job.output, &job.signal, &job.response, &job.signal_gradient, &job.response_gradient}};
    return *roles[job.operation][number];
}

void run_host(const gpuconv_arrays_job &job, int64_t frames, int threads) {
    borrowed on(threads);
    run_frames(frames, on.own.cancel.get(),
               [&](gpuconv_error *error) { return gpuconv_arrays_run(on.place(), &job, nullptr, 0, nullptr, error); });
}

// Operation, group and offset of a job; hop and whether responses cross over, of a filter that changes with time.
using job_options = std::tuple<int, int64_t, int64_t, int64_t, bool>;

using gates_in = std::tuple<std::optional<floats_in>, std::optional<floats_in>, std::optional<floats_in>>;

void compute(const job_options &options, const floats_in &first, const floats_in &second, const floats_out &made,
             const gates_in &factors, int threads) {
    const auto &[operation, group, offset, hop, linear] = options;
    const auto &[pre, post, skip] = factors;
    const host_rows a(first), b(second), c(made);
    const gpuconv_rows rows[] = {a.rows, b.rows, c.rows};
    gpuconv_arrays_job job = job_of_rows({operation, group, offset, threads, hop, linear}, rows);
    std::optional<host_rows> gates[2];
    if (pre)
        job.pre = &gates[0].emplace(*pre).rows;
    if (post)
        job.post = &gates[1].emplace(*post).rows;
    if (skip)
        job.skip = skip->data();
    run_host(job, (int64_t)(operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE ? first.size() : made.size()), threads);
}

} // namespace

gpuconv_arrays_job job_of_rows(const rows_call &call, const gpuconv_rows *rows) {
    gpuconv_arrays_job job = new_job((int)call.operation, call.group, call.offset, nullptr);
    for (int i = 0; i < (call.operation == GPUCONV_ARRAYS_GRADIENT_BOTH ? 5 : 3); i++)
        role(job, i) = rows[i];
    vary(job, call.hop, call.linear != 0);
    return job;
}

gpuconv_status compute_rows(const rows_call &call, const gpuconv_rows *rows, gpuconv_error *error) {
    const borrowed on((int)call.threads);
    const gpuconv_arrays_job job = job_of_rows(call, rows);
    *error = on.error;
    return on.status ? on.status : gpuconv_arrays_run(on.own.place.get(), &job, nullptr, 0, nullptr, error);
}

namespace {

// Responses whose transforms are kept.
struct host_prepared {
    responses_owner kept;
    explicit host_prepared(const floats_in &h) {
        const host_rows taps(h);
        volatile int cancel = 0;
        borrowed on(1);
        run_frames((int64_t)h.size(), &cancel, [&](gpuconv_error *error) {
            gpuconv_responses *made = nullptr;
            const gpuconv_status status = gpuconv_responses_new(on.place(), &taps.rows, 1, nullptr, &made, error);
            kept.reset(made);
            return status;
        });
    }
    void convolve(const floats_in &x, const floats_out &y, int64_t group, int64_t offset, int threads) const {
        const host_rows signal(x), output(y);
        gpuconv_arrays_job job = new_job(GPUCONV_ARRAYS_CONVOLVE, group, offset, kept.get());
        job.signal = signal.rows;
        job.output = output.rows;
        run_host(job, (int64_t)y.size(), threads);
    }
};

plan_owner plan_of(gpuconv_arrays *place, const gpuconv_arrays_job &job) {
    return made_in<plan_owner>([](const auto &call) { run_here(call); },
                               [&](gpuconv_arrays_plan **made, gpuconv_error *error) {
                                   return gpuconv_arrays_plan_new(place, &job, made, error);
                               });
}

// How `rows` signals of `frames` frames are convolved with a response of `taps` taps each.
std::string plan_host(int64_t rows, int64_t frames, int64_t taps, int threads) {
    borrowed on(threads);
    gpuconv_arrays_job job = new_job(GPUCONV_ARRAYS_CONVOLVE, 1, 0, nullptr);
    job.signal = gpuconv_rows_of_floats(nullptr, rows, frames);
    job.response = gpuconv_rows_of_floats(nullptr, rows, taps);
    job.output = gpuconv_rows_of_floats(nullptr, rows, frames + taps - 1);
    return gpuconv_arrays_plan_reason(plan_of(on.place(), job).get());
}

// Returns an integer whose highest bit is set if one of the frames, `step` apart, is NaN or infinite. The compiler
// vectorises the loop of a constant step.
uint32_t exponent_carries(const float *frame, int64_t frames, int64_t step) {
    uint32_t carries = 0;
    for (int64_t n = 0; n < frames; n++) {
        uint32_t bits;
        std::memcpy(&bits, frame + n * step, sizeof bits);
        carries |= (bits & 0x7fffffffu) + 0x00800000u;
    }
    return carries;
}

// Returns whether no element is NaN or infinite.
bool all_finite(const floats_in &array) {
    constexpr size_t many = 1 << 16; // below that to release the GIL takes longer
    std::optional<unlocked> released;
    if (array.size() >= many)
        released.emplace();
    const host_rows a(array);
    uint32_t carries = 0;
    for (int64_t i = 0; i < a.rows.rows && !(carries >> 31); i++) {
        const float *row = array.data() + (a.rows.starts ? a.starts[(size_t)i] : i * a.rows.stride);
        carries |= a.rows.step == 1 ? exponent_carries(row, a.rows.frames, 1)
                                    : exponent_carries(row, a.rows.frames, a.rows.step);
    }
    return !(carries >> 31);
}

// ---- On a GPU ----

using layout = std::tuple<int, int64_t, int64_t, int64_t>; // type, rows, frames, stride

using gate_layouts = std::tuple<std::optional<layout>, std::optional<layout>, bool>; // pre, post, skip
using gate_pointers = std::tuple<uintptr_t, uintptr_t, uintptr_t>;                   // the same; 0: none

struct device {
    place_owner place;
};

struct responses {
    const device *home;
    responses_owner kept;
};

struct streamer {
    streamer_owner stream;
};

struct CUstream_st *stream_of(uintptr_t stream) {
    return reinterpret_cast<struct CUstream_st *>(stream);
}

gpuconv_rows array_of(const layout &l, uintptr_t data) {
    const auto [type, rows, frames, stride] = l;
    return {reinterpret_cast<void *>(data), (gpuconv_sample_type)type, rows, frames, stride, 1, nullptr, nullptr};
}

struct planned_job {
    gpuconv_arrays_job job;
    gpuconv_rows pre, post; // if the job points to them
    plan_owner plan;
};

// arrays: in the order of role().
void plan_job(planned_job *self, const device &home, const job_options &options, const std::vector<layout> &arrays,
              const responses *prepared, const gate_layouts &gates) {
    static const float any = 0;
    const auto &[operation, group, offset, hop, linear] = options;
    const auto &[pre, post, skip] = gates;
    new (self) planned_job{new_job(operation, group, offset, prepared ? prepared->kept.get() : nullptr), {}, {}, {}};
    for (size_t i = 0; i < arrays.size(); i++)
        role(self->job, (int)i) = array_of(arrays[i], 0);
    vary(self->job, hop, linear);
    if (pre) {
        self->pre = array_of(*pre, 0);
        self->job.pre = &self->pre;
    }
    if (post) {
        self->post = array_of(*post, 0);
        self->job.post = &self->post;
    }
    self->job.skip = skip ? &any : nullptr;
    self->plan = plan_of(home.place.get(), self->job);
}

// Runs the job. arrays: in the order of role(), 0 behind the last one; transforms: memory in which a convolution writes
// transforms for both gradients, which read them, or 0.
void run_job(const planned_job &self, const std::array<uintptr_t, 5> &arrays, uintptr_t workspace, uintptr_t stream,
             uintptr_t transforms, const gate_pointers &gates) {
    gpuconv_arrays_job job = self.job;
    job.transforms = reinterpret_cast<void *>(transforms);
    gpuconv_rows pre = self.pre, post = self.post;
    pre.data = reinterpret_cast<void *>(std::get<0>(gates));
    post.data = reinterpret_cast<void *>(std::get<1>(gates));
    job.pre = job.pre ? &pre : nullptr;
    job.post = job.post ? &post : nullptr;
    job.skip = reinterpret_cast<const float *>(std::get<2>(gates));
    for (int i = 0; i < 5 && arrays[(size_t)i]; i++)
        role(job, i).data = reinterpret_cast<void *>(arrays[(size_t)i]);
    run_here([&](gpuconv_error *error) {
        return gpuconv_arrays_plan_run(self.plan.get(), &job, reinterpret_cast<void *>(workspace),
                                       gpuconv_arrays_plan_workspace(self.plan.get()), stream_of(stream), error);
    });
}

// Rows anywhere: type, address, rows, frames, stride, and the addresses of their starts and lengths; 0: there are none.
using ragged = std::tuple<int, uintptr_t, int64_t, int64_t, int64_t, uintptr_t, uintptr_t>;

gpuconv_rows rows_at(const ragged &r) {
    const auto [type, data, rows, frames, stride, starts, lengths] = r;
    gpuconv_rows made = array_of({type, rows, frames, stride}, data);
    made.starts = reinterpret_cast<const int64_t *>(starts);
    made.lengths = reinterpret_cast<const int64_t *>(lengths);
    return made;
}

// Operation, group and offset of a job, and whether it adds to its output.
using ragged_options = std::tuple<int, int64_t, int64_t, bool>;

gpuconv_arrays_job job_of_ragged(const ragged_options &options, const std::vector<ragged> &rows) {
    const auto &[operation, group, offset, accumulate] = options;
    gpuconv_arrays_job job = new_job(operation, group, offset, nullptr);
    for (size_t i = 0; i < rows.size(); i++)
        role(job, (int)i) = rows_at(rows[i]);
    job.accumulate = accumulate;
    return job;
}

// Does a job in host memory on `threads` threads.
void compute_ragged(const ragged_options &options, const std::vector<ragged> &rows, int threads) {
    const gpuconv_arrays_job job = job_of_ragged(options, rows);
    run_host(job, job.signal.rows * job.signal.frames, threads);
}

// Sequences, channels and their frames, responses of a sequence and their distance.
using sequence_sizes = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;

// Writes the table of gpuconv_sequences_sort; home: NULL: all is in host memory. output: rows that are written, or
// none.
void sort_sequences(const device *home, uintptr_t offsets, const sequence_sizes &sizes,
                    const std::vector<int64_t> &bounds, const std::optional<ragged> &output, uintptr_t table,
                    uintptr_t stream) {
    gpuconv_sequences s = {};
    gpuconv_rows written = {};
    gpuconv_error error = {};
    s.offsets = reinterpret_cast<const int64_t *>(offsets);
    std::tie(s.sequences, s.channels, s.frames, s.own, s.taps) = sizes;
    s.bounds = bounds.data();
    s.classes = (int)bounds.size();
    if (output) {
        written = rows_at(*output);
        s.output = &written;
    }
    borrowed on(1);
    check(gpuconv_sequences_sort(home ? home->place.get() : on.place(), &s, reinterpret_cast<int64_t *>(table),
                                 stream_of(stream), &error),
          error);
}

using allocator = nb::typed<nb::callable, uintptr_t(size_t)>;

// Queues a job; `allocate` gives the address of a workspace of some bytes.
void queue_ragged(const device &home, const ragged_options &options, const std::vector<ragged> &rows,
                  const allocator &allocate, uintptr_t stream) {
    const gpuconv_arrays_job job = job_of_ragged(options, rows);
    gpuconv_error error = {};
    size_t bytes = 0;
    check(gpuconv_arrays_workspace(home.place.get(), &job, &bytes, &error), error);
    const uintptr_t workspace = bytes ? nb::cast<uintptr_t>(allocate(bytes)) : 0;
    check(gpuconv_arrays_run(home.place.get(), &job, reinterpret_cast<void *>(workspace), bytes, stream_of(stream),
                             &error),
          error);
}

void new_device(device *self, int number) {
    new (self) device{made_soon_by<place_owner>(
        [&](gpuconv_arrays **made, gpuconv_error *error) { return gpuconv_arrays_new_cuda(number, made, error); })};
}

void new_responses(responses *self, const device &home, const layout &l, uintptr_t data, int64_t frames,
                   uintptr_t stream) {
    const gpuconv_rows array = array_of(l, data);
    new (self)
        responses{&home, made_soon_by<responses_owner>([&](gpuconv_responses **made, gpuconv_error *error) {
                      return gpuconv_responses_new(home.place.get(), &array, frames, stream_of(stream), made, error);
                  })};
}

void update_responses(responses &self, const layout &l, uintptr_t data, uintptr_t stream) {
    const gpuconv_rows array = array_of(l, data);
    gpuconv_error error = {};
    check(gpuconv_responses_update(self.home->place.get(), self.kept.get(), &array, stream_of(stream), &error), error);
}

void new_streamer(streamer *self, const device &home, const layout &l, uintptr_t data, int64_t channels, int64_t block,
                  uintptr_t stream) {
    const gpuconv_rows array = array_of(l, data);
    new (self) streamer{made_soon_by<streamer_owner>([&](gpuconv_streamer **made, gpuconv_error *error) {
        return gpuconv_streamer_new(home.place.get(), &array, channels, block, stream_of(stream), made, error);
    })};
}

void process(streamer &self, const layout &in, uintptr_t in_data, const layout &out, uintptr_t out_data,
             uintptr_t stream) {
    const gpuconv_rows from = array_of(in, in_data), to = array_of(out, out_data);
    gpuconv_error error = {};
    check(gpuconv_streamer_process(self.stream.get(), &from, &to, stream_of(stream), &error), error);
}

void reset(streamer &self, uintptr_t stream) {
    gpuconv_error error = {};
    check(gpuconv_streamer_reset(self.stream.get(), stream_of(stream), &error), error);
}

using doubles_in = nb::ndarray<const double, nb::device::cpu, nb::ndim<3>, nb::c_contig, nb::ro>;
using rooms_in = nb::ndarray<const double, nb::device::cpu, nb::ndim<2>, nb::c_contig, nb::ro>;
using rooms_out = nb::ndarray<float, nb::device::cpu, nb::ndim<5>, nb::c_contig>;
using seeds_in = nb::ndarray<const uint64_t, nb::device::cpu, nb::ndim<1>, nb::c_contig, nb::ro>;

// origin, ambisonic order, formula, order of images; rate, temperature, humidity, seconds and level of images,
// high-pass; air, tail, diffuse, alike
using rooms_options =
    std::tuple<std::tuple<int64_t, int, int, int>, std::vector<double>, std::tuple<bool, bool, bool, bool>>;

gpuconv_rooms_job job_of_rooms(const rooms_options &options, int64_t rooms, int64_t sources, int64_t receivers,
                               int64_t frames) {
    static_assert(sizeof(gpuconv_room) == (3 + 7 * GPUCONV_ROOM_BANDS) * sizeof(double), "a room is doubles");
    static_assert(sizeof(gpuconv_room_point) == 6 * sizeof(double), "a point is doubles");
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    int formula = 0;
    job.rooms = rooms;
    job.sources = sources;
    job.receivers = receivers;
    job.frames = frames;
    std::tie(job.origin, job.ambisonic, formula, job.images_order) = std::get<0>(options);
    const std::vector<double> &numbers = std::get<1>(options);
    job.formula = (gpuconv_room_formula)formula;
    job.rate = numbers.at(0);
    job.temperature = numbers.at(1);
    job.humidity = numbers.at(2);
    job.images_seconds = numbers.at(3);
    job.images_level = numbers.at(4);
    job.highpass = numbers.at(5);
    std::tie(job.air, job.tail, job.diffuse, job.alike) = std::get<2>(options);
    return job;
}

// Simulates rooms, whose arrays are the structures of gpuconv_rooms.h as rows of doubles (_rooms.py).
void simulate_rooms(const std::tuple<rooms_in, doubles_in, doubles_in> &arrays, const rooms_out &made,
                    const rooms_options &options, const std::tuple<uint64_t, std::optional<seeds_in>> &seeds,
                    const sofa_set *ears, int threads) {
    const auto &[room, source, receiver] = arrays;
    const auto &[seed, of_rooms] = seeds;
    gpuconv_rooms_job job = job_of_rooms(options, (int64_t)room.shape(0), (int64_t)source.shape(1),
                                         (int64_t)receiver.shape(1), (int64_t)made.shape(4));
    job.room = reinterpret_cast<const gpuconv_room *>(room.data());
    job.source = reinterpret_cast<const gpuconv_room_point *>(source.data());
    job.receiver = reinterpret_cast<const gpuconv_room_point *>(receiver.data());
    job.seed = seed;
    job.seeds = of_rooms ? of_rooms->data() : nullptr;
    job.ears = ears ? ears->set.get() : nullptr;
    borrowed on(threads);
    gpuconv_arrays *place = on.place();
    run_interruptible(on.own.cancel.get(),
                      [&](gpuconv_error *error) { return gpuconv_rooms_simulate(place, &job, made.data(), error); });
}

// A simulation on a device that is planned for its shapes and options.
struct planned_rooms {
    const device *home;
    gpuconv_rooms_job job;
    rooms_owner plan;
};

void plan_rooms(planned_rooms *self, const device &home, const std::array<int64_t, 4> &shape,
                const rooms_options &options, const sofa_set *ears) {
    gpuconv_rooms_job job = job_of_rooms(options, shape[0], shape[1], shape[2], shape[3]);
    job.ears = ears ? ears->set.get() : nullptr;
    auto plan = made_soon_by<rooms_owner>([&](gpuconv_rooms_plan **made, gpuconv_error *error) {
        return gpuconv_rooms_plan_new(home.place.get(), &job, made, error);
    });
    job.ears = nullptr; // the plan has a copy
    new (self) planned_rooms{&home, job, std::move(plan)};
}

void run_rooms(const planned_rooms &self, const std::array<uintptr_t, 4> &arrays, uint64_t seed, uintptr_t made,
               uintptr_t workspace, uintptr_t stream) {
    gpuconv_rooms_job job = self.job;
    gpuconv_error error = {};
    job.room = reinterpret_cast<const gpuconv_room *>(arrays[0]);
    job.source = reinterpret_cast<const gpuconv_room_point *>(arrays[1]);
    job.receiver = reinterpret_cast<const gpuconv_room_point *>(arrays[2]);
    job.seeds = reinterpret_cast<const uint64_t *>(arrays[3]);
    job.seed = seed;
    check(gpuconv_rooms_plan_run(self.plan.get(), &job, reinterpret_cast<float *>(made),
                                 reinterpret_cast<void *>(workspace), gpuconv_rooms_plan_workspace(self.plan.get()),
                                 stream_of(stream), &error),
          error);
}

} // namespace

void bind_arrays(nb::module_ &m) {
    m.attr("has_cuda") = gcpy_has_cuda();
    m.def(
        "compute", &compute, nb::arg("options"), nb::arg("first"), nb::arg("second"), nb::arg("made"), nb::arg("gates"),
        nb::arg("threads"),
        "Computes the rows (last dimension) of `made`: (x, h) -> y (operation 0), (g, h) -> x (1), (g, x) -> h (2), "
        "where x and y have as many rows and i has response (i // group) % rows of h. `options`: (operation, group, "
        "offset, hop, linear); with a hop a row of h has the responses of all blocks of `hop` frames of x, contiguous; "
        "linear: they cross over the hop. `gates`: (pre, post, skip), factors of the frames of x and y, contiguous, "
        "and of the rows of x that are added to y, or None. `threads` 0: one per core.");
    m.def("simulate_rooms", &simulate_rooms, nb::arg("arrays"), nb::arg("made"), nb::arg("options"), nb::arg("seeds"),
          nb::arg("ears").none(), nb::arg("threads"),
          "Simulates rooms into `made`. `arrays`: (rooms, sources, receivers). `options`: (origin, ambisonic, formula, "
          "order), (rate, temperature, humidity, seconds and level of images, high-pass), (air, tail, diffuse, alike). "
          "`seeds`: (seed, those of the rooms or None).");
    nb::class_<planned_rooms>(m, "CudaRooms", "A simulation of rooms that is planned for its shapes and options.")
        .def("__init__", &plan_rooms, nb::keep_alive<1, 2>(), nb::arg("cuda"), nb::arg("shape"), nb::arg("options"),
             nb::arg("ears").none())
        .def_prop_ro("workspace", [](const planned_rooms &r) { return gpuconv_rooms_plan_workspace(r.plan.get()); })
        .def("run", &run_rooms, nb::arg("arrays"), nb::arg("seed"), nb::arg("made"), nb::arg("workspace"),
             nb::arg("stream"), "Queues it: addresses of rooms, sources, receivers and seeds (0: none).");
    nb::class_<host_prepared>(m, "Prepared", "Responses whose transforms are kept. Immutable.")
        .def(nb::init<const floats_in &>(), nb::arg("h"))
        .def("convolve", &host_prepared::convolve, nb::arg("x"), nb::arg("y"), nb::arg("group"), nb::arg("offset"),
             nb::arg("threads"), "Convolves row i of x with response (i // group) % rows.");
    m.def("plan", &plan_host, nb::arg("rows"), nb::arg("frames"), nb::arg("taps"), nb::arg("threads"),
          "Returns one sentence: how `rows` rows are convolved on the CPU, and the predicted time.");
    m.def("all_finite", &all_finite, nb::arg("array"), "Returns whether no element is NaN or infinite.");
    m.def("forget_threads", &forget_threads, "Forgets all threads; for a forked child.");
    nb::class_<device>(m, "Cuda", "The tables and kernels of one device.")
        .def("__init__", &new_device, nb::arg("device"));
    m.def("compute_ragged", &compute_ragged, nb::arg("options"), nb::arg("rows"), nb::arg("threads"),
          "Computes rows of different lengths: the roles of compute(), each (type, address, rows, frames, stride, "
          "address of the starts, address of the lengths). `options`: (operation, group, offset, accumulate).");
    m.def("sort_sequences", &sort_sequences, nb::arg("cuda").none(), nb::arg("offsets"), nb::arg("sizes"),
          nb::arg("bounds"), nb::arg("output").none(), nb::arg("table"), nb::arg("stream"),
          "Sorts packed sequences into classes by length; addresses as in compute_ragged().");
    m.def("queue_ragged", &queue_ragged, nb::arg("cuda"), nb::arg("options"), nb::arg("rows"), nb::arg("allocate"),
          nb::arg("stream"), "Queues the same on a stream. `allocate` gives the address of a workspace of some bytes.");
    nb::class_<responses>(m, "CudaResponses", "Responses whose transforms are kept on the device.")
        .def("__init__", &new_responses, nb::keep_alive<1, 2>(), nb::arg("cuda"), nb::arg("layout"), nb::arg("data"),
             nb::arg("frames"), nb::arg("stream"))
        .def("update", &update_responses, nb::arg("layout"), nb::arg("data"), nb::arg("stream"))
        .def_prop_ro("bytes", [](const responses &r) { return gpuconv_responses_bytes(r.kept.get()); });
    nb::class_<planned_job>(m, "CudaJob", "A job that is planned for its shapes.")
        .def("__init__", &plan_job, nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>(), nb::arg("cuda"), nb::arg("options"),
             nb::arg("arrays"), nb::arg("prepared").none(), nb::arg("gates") = gate_layouts{})
        .def_prop_ro("workspace", [](const planned_job &j) { return gpuconv_arrays_plan_workspace(j.plan.get()); })
        .def_prop_ro("transforms", [](const planned_job &j) { return gpuconv_arrays_plan_transforms(j.plan.get()); })
        .def_prop_ro("plan", [](const planned_job &j) { return gpuconv_arrays_plan_reason(j.plan.get()); })
        .def("run", &run_job, nb::arg("arrays"), nb::arg("workspace"), nb::arg("stream"), nb::arg("transforms") = 0,
             nb::arg("gates") = gate_pointers{});
    nb::class_<streamer>(m, "CudaStreamer", "Blocks in, blocks out, with the state on the device.")
        .def("__init__", &new_streamer, nb::keep_alive<1, 2>(), nb::arg("cuda"), nb::arg("layout"), nb::arg("data"),
             nb::arg("channels"), nb::arg("block"), nb::arg("stream"))
        .def("process", &process, nb::arg("input"), nb::arg("input_data"), nb::arg("output"), nb::arg("output_data"),
             nb::arg("stream"))
        .def("reset", &reset, nb::arg("stream"));
}
