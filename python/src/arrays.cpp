// Convolution of arrays in host memory: gpuconv_memory.h.
#include "calls.h"

#include <gpuconv_memory.h>

#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace {

using memory_owner = std::unique_ptr<gpuconv_memory, deleter<gpuconv_memory_free>>;
using prepared_owner = std::unique_ptr<gpuconv_memory_response, deleter<gpuconv_memory_response_free>>;

// A convolver with the cancel flag of its threads, which it keeps as long as they live.
struct threads_of_call {
    std::unique_ptr<volatile int> cancel = std::make_unique<volatile int>(0);
    memory_owner memory; // freed before the flag
};

// Convolvers that are not in use, by their number of threads. A call takes one and puts it back, so that threads of
// Python convolve at the same time and threads of the library live on between calls.
struct idle_convolvers {
    std::mutex lock;
    std::multimap<int, threads_of_call> free;
};
idle_convolvers *idle = new idle_convolvers; // never deleted: threads may outlive the interpreter's end

struct borrowed {
    int threads;
    threads_of_call own;
    idle_convolvers *home = idle;
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
        gpuconv_memory *made = nullptr;
        gpuconv_error error = {};
        const volatile int *before = gpuconv_cancel_set(own.cancel.get());
        const gpuconv_status status = gpuconv_memory_new(threads, &made, &error);
        gpuconv_cancel_set(before);
        check(status, error);
        own.memory.reset(made);
    }
    ~borrowed() {
        std::lock_guard<std::mutex> locked(home->lock);
        if (own.memory && !*own.cancel && home->free.size() < 16)
            home->free.emplace(threads, std::move(own));
    }
};

// Forgets the convolvers and calls of the parent process, whose threads do not exist in a forked child.
void forget_threads() {
    idle = new idle_convolvers;
    forget_calls();
}

// Responses whose transforms are kept, one for each row of an array.
struct prepared {
    std::vector<size_t> batch;
    int64_t frames;
    std::vector<prepared_owner> rows;
    prepared() = default;
    prepared(prepared &&) = default;
    prepared(const prepared &) = delete;
};

// Offset of element `index` of the batch (all dimensions but the last) of an array whose batch has the same shape.
template <typename Array> int64_t batch_offset(const Array &array, size_t index) {
    int64_t offset = 0;
    for (size_t d = array.ndim() - 1; d-- > 0; index /= array.shape(d))
        offset += (int64_t)(index % array.shape(d)) * array.stride(d);
    return offset;
}

template <typename Array> size_t batch_size(const Array &array) {
    size_t size = 1;
    for (size_t d = 0; d + 1 < array.ndim(); d++)
        size *= array.shape(d);
    return size;
}

template <typename Array> gpuconv_memory_array row_of(const Array &array, size_t index, bool reversed) {
    const size_t last = array.ndim() - 1;
    const int64_t frames = (int64_t)array.shape(last), step = frames > 1 ? array.stride(last) : 1;
    const float *data = array.data() + batch_offset(array, index);
    return {reversed ? data + (frames - 1) * step : data, frames, reversed ? -step : step};
}

// Calls a function without the GIL; one that reads or writes very many frames ends at Ctrl-C.
void run_frames(int64_t frames, volatile int *cancel, const work &call) {
    constexpr int64_t many = INT64_C(1) << 21; // some milliseconds
    if (frames >= many)
        run_interruptible(cancel, call);
    else
        run_unlocked(call);
}

prepared prepare(const floats_in &h) {
    prepared made;
    volatile int cancel = 0;
    for (size_t d = 0; d + 1 < h.ndim(); d++)
        made.batch.push_back(h.shape(d));
    made.frames = (int64_t)h.shape(h.ndim() - 1);
    made.rows.resize(batch_size(h));
    run_frames((int64_t)h.size(), &cancel, [&](gpuconv_error *error) {
        gpuconv_status status = GPUCONV_OK;
        for (size_t i = 0; i < made.rows.size() && !status; i++) {
            const gpuconv_memory_array row = row_of(h, i, false);
            gpuconv_memory_response *response = nullptr;
            status = gpuconv_memory_response_new(row.data, row.frames, row.step, &response, error);
            made.rows[i].reset(response);
        }
        return status;
    });
    return made;
}

void same_batch(const floats_in &a, const floats_out &y) {
    bool same = a.ndim() == y.ndim() && a.ndim() >= 1;
    for (size_t d = 0; same && d + 1 < a.ndim(); d++)
        same = a.shape(d) == y.shape(d);
    if (!same)
        throw nb::value_error("arrays whose batches differ");
}

gpuconv_memory_row new_row(const floats_in &x, const floats_out &y, size_t index, int64_t offset) {
    const gpuconv_memory_array out = row_of(y, index, false);
    gpuconv_memory_row row = {};
    row.signal = row_of(x, index, false);
    row.output = const_cast<float *>(out.data);
    row.output_frames = out.frames;
    row.output_step = out.step;
    row.offset = offset;
    return row;
}

// Convolves the rows; a call of some length ends at Ctrl-C.
void convolve_rows(const std::vector<gpuconv_memory_row> &rows, int threads) {
    borrowed convolver(threads);
    int64_t frames = 0;
    for (const gpuconv_memory_row &row : rows)
        frames += row.output_frames;
    run_frames(frames, convolver.own.cancel.get(), [&](gpuconv_error *error) {
        return gpuconv_memory_convolve(convolver.own.memory.get(), rows.data(), (int64_t)rows.size(), error);
    });
}

void convolve(const floats_in &x, const floats_in &h, const floats_out &y, int64_t offset, bool reversed, int threads) {
    same_batch(x, y);
    same_batch(h, y);
    std::vector<gpuconv_memory_row> rows(batch_size(y));
    for (size_t i = 0; i < rows.size(); i++) {
        rows[i] = new_row(x, y, i, offset);
        rows[i].response = row_of(h, i, reversed);
    }
    convolve_rows(rows, threads);
}

// index[i] is the prepared response of row i of the batch.
void convolve_prepared(const floats_in &x, const prepared &h,
                       const nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig> &index, const floats_out &y,
                       int64_t offset, int threads) {
    same_batch(x, y);
    std::vector<gpuconv_memory_row> rows(batch_size(y));
    if (index.shape(0) != rows.size())
        throw nb::value_error("arrays whose batches differ");
    for (size_t i = 0; i < rows.size(); i++) {
        rows[i] = new_row(x, y, i, offset);
        rows[i].prepared = h.rows.at((size_t)index.data()[i]).get();
    }
    convolve_rows(rows, threads);
}

bool is_finite(const gpuconv_memory_array &row) {
    uint32_t carries = 0;
    for (int64_t n = 0; n < row.frames; n++) {
        uint32_t bits;
        std::memcpy(&bits, row.data + n * row.step, sizeof bits);
        carries |= (bits & 0x7fffffffu) + 0x00800000u;
    }
    return !(carries >> 31);
}

// Returns whether no element is NaN or infinite.
bool all_finite(const floats_in &array) {
    constexpr size_t many = 1 << 16; // below that to release the GIL takes longer
    std::optional<unlocked> released;
    if (array.size() >= many)
        released.emplace();
    const size_t rows = batch_size(array);
    for (size_t i = 0; i < rows; i++)
        if (!is_finite(row_of(array, i, false)))
            return false;
    return true;
}

} // namespace

void bind_arrays(nb::module_ &m) {
    m.def("convolve", &convolve, nb::arg("x"), nb::arg("h"), nb::arg("y"), nb::arg("offset"), nb::arg("reversed"),
          nb::arg("threads"),
          "Convolves the rows (last dimension) of x and h, whose batches have the shape of y's, and writes the frames "
          "from `offset` on to y. `reversed`: h is read backwards. `threads` 0: one per core.");
    nb::class_<prepared>(m, "Prepared", "Responses whose transforms are kept. Immutable.")
        .def(
            "__init__", [](prepared *self, const floats_in &h) { new (self) prepared(prepare(h)); }, nb::arg("h"))
        .def_ro("frames", &prepared::frames)
        .def(
            "convolve",
            [](const prepared &self, const floats_in &x,
               const nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig> &index, const floats_out &y, int64_t offset,
               int threads) { convolve_prepared(x, self, index, y, offset, threads); },
            nb::arg("x"), nb::arg("index"), nb::arg("y"), nb::arg("offset"), nb::arg("threads"),
            "Convolves row i of x with response index[i].");
    m.def("all_finite", &all_finite, nb::arg("array"), "Returns whether no element is NaN or infinite.");
    m.def("forget_threads", &forget_threads, "Forgets all threads; for a forked child.");
}
