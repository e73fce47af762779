// Files: reading, writing, the job from file to file, the batch, and the acoustic figures of a response.
#include "calls.h"

#include "library.h"
#include "settings.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

extern "C" {
#include "libtools/batch/run/batch.h"
#include "libtools/room/room_set.h"
}

namespace {

std::tuple<planar_out, int, int64_t, std::string> read_file(const std::string &path, int64_t start, int64_t frames,
                                                            const text &raw) {
    gcpy_audio audio = {};
    auto samples = made_by<memory_owner<float>>([&](float **made, gpuconv_error *error) {
        const gpuconv_status status = gcpy_read(path.c_str(), c_str(raw), start, frames, &audio, error);
        *made = audio.samples;
        return status;
    });
    return {make_planar(samples.release(), (size_t)audio.channels, (size_t)audio.frames), audio.rate, audio.nonfinite,
            audio.note};
}

int64_t write_file(const std::string &path, const planar_in &samples, int rate, const text &encoding,
                   const text &format) {
    const std::vector<const float *> rows = rows_of(samples);
    int64_t clipped = 0;
    run_interruptible([&](gpuconv_error *error) {
        return gcpy_write(path.c_str(), c_str(format), c_str(encoding), rows.data(), (int)rows.size(),
                          (int64_t)samples.shape(1), rate, &clipped, error);
    });
    return clipped;
}

response prepare(const std::string &path, const named_texts &steps, int inputs, double rate) {
    const settings s(steps);
    return {made_by<ir_owner>([&](gpuconv_ir **made, gpuconv_error *error) {
        return gpuconv_ir_prepare(path.c_str(), &s.made.preparation, inputs, rate, made, error);
    })};
}

// Python's callbacks of a job.
struct callbacks {
    nb::object progress, note;
    volatile int cancel = 0;
    caller python{&cancel};
    callbacks(const nb::object &progress, const nb::object &note) : progress(progress), note(note) {}
    template <typename... Arguments> void call(const nb::object &function, const Arguments &...arguments) {
        if (!function.is_none())
            python.call_back([&] { function(arguments...); });
    }
};

void on_note(void *context, const char *line) {
    auto *c = static_cast<callbacks *>(context);
    c->call(c->note, without_dashes(line));
}

void on_progress(void *context, const gpuconv_progress *p) {
    auto *c = static_cast<callbacks *>(context);
    c->call(c->progress, p->frames, p->total);
}

void on_batch(void *context, const gc_batch_progress *p) {
    auto *c = static_cast<callbacks *>(context);
    c->call(c->progress, p->done + p->failed + p->skipped, p->total);
}

void on_failures(void *context, int64_t count, const char *example) {
    on_note(context, (std::to_string(count) + " failed like this: " + example).c_str());
}

// Returns a report as JSON.
std::string json_of(const gpuconv_report *report) {
    char *memory = nullptr;
    size_t size = 0;
    FILE *stream = open_memstream(&memory, &size);
    gpuconv_status status = stream ? gpuconv_report_write(report, GPUCONV_REPORT_JSON, stream) : GPUCONV_ERROR_MEMORY;
    if (stream && std::fclose(stream) != 0)
        status = GPUCONV_ERROR_MEMORY;
    std::string json(memory ? memory : "", size);
    std::free(memory);
    if (status)
        raise(status, nullptr);
    return json;
}

gpuconv_config config_of(const dictionary &o) {
    auto integer = [&](const char *name, int other) { return o.contains(name) ? nb::cast<int>(o[name]) : other; };
    gpuconv_config config = gpuconv_config_default();
    config.backend = (gpuconv_backend)integer("backend", 0);
    config.algorithm = (gpuconv_algorithm)integer("algorithm", 0);
    config.device = integer("device", -1);
    config.threads = integer("threads", 0);
    return config;
}

// files: raw, plot.
std::string convolve_file(const std::vector<std::string> &paths, const named_texts &given, const dictionary &options,
                          const std::vector<text> &files, const nb::object &progress, const nb::object &note) {
    const settings s(given);
    callbacks c(progress, note);
    gpuconv_job job = s.made.job;
    const gpuconv_config config = config_of(options);
    job.input = paths.at(0).c_str();
    job.response = paths.at(1).c_str();
    job.output = paths.at(2).c_str();
    job.preparation = &s.made.preparation;
    job.raw = c_str(files.at(0));
    job.plot = c_str(files.at(1));
    job.force = nb::cast<bool>(options["force"]);
    job.note = on_note;
    job.progress = on_progress;
    job.context = &c;
    job.cancel = &c.cancel;
    std::unique_ptr<gc_room_job> room;
    if (gc_is_room(job.response)) {
        room.reset(new gc_room_job);
        run_here([&](gpuconv_error *error) {
            return gc_room_job_read(job.response, job.receiver_path != nullptr, room.get(), error);
        });
        job.room = &room->job;
    }
    gpuconv_report *report = nullptr;
    if (gpuconv_report_new(&report))
        raise(GPUCONV_ERROR_MEMORY, nullptr);
    std::unique_ptr<gpuconv_report, deleter<gpuconv_report_free>> owner(report);
    c.python.run([&](gpuconv_error *error) { return gpuconv_convolve_file(&job, &config, report, error); });
    return json_of(report);
}

// Returns the keyword of each setting, the kind of its values, and its words.
std::vector<std::tuple<std::string, std::string, std::string>> list_settings() {
    std::vector<std::tuple<std::string, std::string, std::string>> list;
    for (const gc_setting &s : gc_settings_table) {
        const bool words = s.kind == GC_KIND_WORD || s.kind == GC_KIND_SWITCH;
        list.emplace_back(keyword_of(s),
                          words                     ? "word"
                          : s.kind <= GC_KIND_MIX   ? "number"
                          : s.kind == GC_KIND_FLAG  ? "flag"
                          : s.kind == GC_KIND_FILES ? "files"
                                                    : "text",
                          words ? s.value : "");
    }
    return list;
}

// A list of texts as the library takes it: pointers, NULL at the end.
struct text_list {
    std::vector<const char *> pointers;
    explicit text_list(const std::vector<std::string> &texts) {
        for (const std::string &t : texts)
            pointers.push_back(t.c_str());
        pointers.push_back(nullptr);
    }
    const char *const *get() const {
        return pointers.size() > 1 ? pointers.data() : nullptr;
    }
};

// The values of columns that the rows of a manifest leave empty.
struct batch_defaults {
    gc_entry_texts row = {};
    batch_defaults() = default;
    batch_defaults(const batch_defaults &) = delete;
    ~batch_defaults() {
        gc_texts_clear(&row);
    }
    // Sets and checks them.
    void set(const named_texts &columns) {
        char *reason = nullptr;
        int at = -1;
        bool good = true;
        for (const auto &[name, value] : columns) {
            const int column = gc_column_find(name.c_str());
            if (column < 0)
                raise(GPUCONV_ERROR_ARGUMENT, ("no column " + name).c_str());
            good = good && gc_texts_set(&row, column, value.c_str());
        }
        if (!good || !gc_texts_check(&row, &at, &reason))
            raise(GPUCONV_ERROR_MEMORY, nullptr);
        const std::string why = reason ? reason : "";
        std::free(reason);
        if (!why.empty() && at >= 0)
            raise(GPUCONV_ERROR_ARGUMENT, (keyword_of(gc_settings_table[at - GC_COLUMN_RECIPE]) + ": must be " + why +
                                           ", not '" + row.text[at] + "'")
                                              .c_str());
        if (!why.empty())
            raise(GPUCONV_ERROR_ARGUMENT, why.c_str());
    }
};

using texts = std::vector<std::string>;

// lists: inputs, responses, noises. columns: names and values of columns that rows leave empty.
dictionary batch(const text &manifest, const std::vector<texts> &lists, const std::string &folder,
                 const named_texts &columns, const dictionary &options, const nb::object &progress,
                 const nb::object &note) {
    auto integer = [&](const char *name) { return nb::cast<int64_t>(options[name]); };
    const text_list inputs(lists.at(0)), responses(lists.at(1)), noises(lists.at(2));
    const text segments = nb::cast<text>(options["segments"]), rooms = nb::cast<text>(options["rooms"]);
    const auto id_suffix = nb::cast<std::string>(options["id_suffix"]);
    const auto devices = nb::cast<std::vector<int>>(options["devices"]);
    callbacks c(progress, note);
    batch_defaults defaults;
    defaults.set(columns);
    gc_manifest_options wish = {};
    wish.defaults = &defaults.row;
    wish.responses = responses.get();
    wish.noises = noises.get();
    wish.pick = (gc_pick)integer("pick");
    wish.seed = nb::cast<uint64_t>(options["seed"]);
    wish.segments = c_str(segments);
    wish.rooms = c_str(rooms);
    gc_batch b = {};
    b.folder = folder.c_str();
    b.keep_manifest = wish.responses || wish.rooms || wish.noises;
    b.backend = (gpuconv_backend)integer("backend");
    b.workers = (int)integer("workers");
    b.device = devices.empty() ? nullptr : devices.data();
    b.devices = (int)devices.size();
    b.resume = integer("resume");
    b.fail_fast = integer("fail_fast");
    b.shard_size = integer("shard_size");
    b.id_suffix = id_suffix.c_str();
    b.absolute = integer("absolute");
    b.cancel = &c.cancel;
    b.progress = on_batch;
    b.note = on_note;
    b.failures = on_failures;
    b.context = &c;
    gc_batch_progress counts = {};
    c.python.run([&](gpuconv_error *error) {
        gc_manifest read = {};
        gpuconv_status status = manifest ? gc_manifest_read(manifest->c_str(), &wish, &read, error)
                                         : gc_manifest_pick(inputs.get(), &wish, &read, error);
        if (status)
            return status;
        b.manifest = &read;
        status = gc_batch_run(&b, &counts, error);
        gc_manifest_free(&read);
        return status;
    });
    dictionary result;
    result["total"] = counts.total;
    result["done"] = counts.done;
    result["failed"] = counts.failed;
    result["skipped"] = counts.skipped;
    result["clipped"] = counts.clipped;
    result["seconds"] = counts.seconds;
    result["audio_seconds"] = counts.audio;
    return result;
}

// Returns rows of figures in the order of _acoustics.py, and the words for the doubts of each.
std::vector<std::pair<std::vector<double>, std::string>> acoustics(const response &of, const dictionary &options) {
    auto number = [&](const char *name) { return nb::cast<double>(options[name]); };
    const text reference = nb::cast<text>(options["reference"]);
    const auto noise = nb::cast<std::vector<double>>(options["noise_levels"]);
    gcpy_figures_options o = {};
    o.per_octave = (int)number("per_octave");
    o.lateral = (int)number("lateral");
    o.reference = c_str(reference);
    o.reference_level = number("reference_level");
    o.reference_distance = number("reference_distance");
    o.speech_level = number("speech_level");
    o.noise_level = noise.empty() ? nullptr : noise.data();
    int count = 0;
    const auto figures = made_by<memory_owner<gcpy_figure>>(
        [&](gcpy_figure **made, gpuconv_error *error) { return gcpy_figures(of.ir.get(), &o, made, &count, error); });
    std::vector<std::pair<std::vector<double>, std::string>> result;
    for (const gcpy_figure *f = figures.get(); f < figures.get() + count; f++)
        result.emplace_back(std::vector<double>(f->value, f->value + GCPY_FIGURES), f->doubt);
    return result;
}

} // namespace

void bind_files(nb::module_ &m) {
    m.def("read", &read_file, nb::arg("path"), nb::arg("start"), nb::arg("frames"), nb::arg("raw").none(),
          "Returns samples (channels, frames), rate, and the number of samples that were not finite.");
    m.def("write", &write_file, nb::arg("path"), nb::arg("samples"), nb::arg("rate"), nb::arg("encoding").none(),
          nb::arg("format").none(), "Writes samples (channels, frames) and returns the number of clipped ones.");
    m.def("settings", &list_settings,
          "Returns the keywords of all settings, the kinds of their values, and their words.");
    m.def("prepare", &prepare, nb::arg("path"), nb::arg("steps"), nb::arg("inputs"), nb::arg("rate"));
    m.def("convolve_file", &convolve_file, nb::arg("paths"), nb::arg("settings"), nb::arg("options"), nb::arg("files"),
          nb::arg("progress").none(), nb::arg("note").none(), "Returns the report as JSON.");
    m.def("batch", &batch, nb::arg("manifest").none(), nb::arg("lists"), nb::arg("folder"), nb::arg("columns"),
          nb::arg("options"), nb::arg("progress").none(), nb::arg("note").none());
    m.def("acoustics", &acoustics, nb::arg("response"), nb::arg("options"));
    m.def("calibrate",
          [] { run_interruptible([](gpuconv_error *error) { return gpuconv_calibrate(nullptr, error); }); });
}
