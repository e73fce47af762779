/* Running modules: sizes x variants, into rows of JSON. */
#include "run.h"

#include "libgpuconv/core/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LAB_MODULE(name) extern const gc_lab_module gc_lab_##name;
#include "kernels/course/modules.def"
#undef LAB_MODULE

static const gc_lab_module *const all_modules[] = {
#define LAB_MODULE(name) &gc_lab_##name,
#include "kernels/course/modules.def"
#undef LAB_MODULE
};

#define LAB_MODULE(name) +1 /* NOLINT(bugprone-macro-parentheses): a sum */
enum {
    MODULES = 0
#include "kernels/course/modules.def"
};
#undef LAB_MODULE

/* Elements of each output compared at a timed size. */
enum { SAMPLED = 1000 };

int gc_lab_modules(const gc_lab_module *const **modules) {
    *modules = all_modules;
    return MODULES;
}

const gc_lab_module *gc_lab_find(const char *name) {
    for (int i = 0; i < MODULES; i++)
        if (strcmp(all_modules[i]->name, name) == 0)
            return all_modules[i];
    return NULL;
}

const gc_lab_variant *gc_lab_variant_named(const gc_lab_module *module, const char *name) {
    for (int i = 0; i < module->variant_count; i++)
        if (strcmp(module->variants[i].name, name) == 0)
            return &module->variants[i];
    return NULL;
}

bool gc_lab_parse_size(const char *text, int64_t *size) {
    for (int d = 0; d < LAB_DIMENSIONS; d++) {
        char *end;
        long long value = strtoll(text, &end, 10);
        if (end == text || value < 1 || value > INT64_C(1) << 40)
            return false;
        size[d] = value;
        if (!*end)
            return true;
        if (*end != 'x')
            return false;
        text = end + 1;
    }
    return false;
}

void gc_lab_write_size(const gc_lab_module *module, const int64_t *size, char *text, size_t room) {
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < LAB_DIMENSIONS && module->dimension[d] && used < room; d++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld", d ? "x" : "", (long long)size[d]);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static json_t *new_row(const gc_lab_module *module, const gc_lab_variant *v, const int64_t *size) {
    char text[100];
    gc_lab_write_size(module, size, text, sizeof text);
    return json_pack("{s:s, s:s, s:s, s:s}", "module", module->name, "variant", v->name, "where",
                     v->where == LAB_CPU ? "CPU" : "GPU", "size", text);
}

static void put(json_t *row, const char *name, double value) {
    json_object_set_new(row, name, isfinite(value) ? json_real(value) : json_null());
}

static void end_row(json_t *rows, json_t *row, const char *state, const char *why) {
    json_object_set_new(row, "state", json_string(state));
    if (why)
        json_object_set_new(row, "why", json_string(why));
    json_array_append_new(rows, row);
}

/* Why a variant cannot run at all here; NULL when it can. */
static const char *missing(const gc_lab_session *session, const gc_lab_variant *v) {
    if (v->where == LAB_GPU && !session->device)
        return session->why;
    return v->launch ? NULL : "not in this build";
}

static void say(const gc_lab_session *session, const gc_lab_module *module, const gc_lab_variant *v,
                const int64_t *size, const char *format, double value, const char *text) {
    if (!session->progress || (v->where == LAB_GPU && !session->device)) /* that there is none was said once */
        return;
    char place[100];
    gc_lab_write_size(module, size, place, sizeof place);
    (void)fprintf(session->progress, "%-16s %-34s %-18s ", module->name, v->name, place);
    if (text)
        (void)fprintf(session->progress, "%s: %s\n", format, text);
    else
        (void)fprintf(session->progress, "%s %.4g\n", format, value);
    (void)fflush(session->progress);
}

int gc_lab_check(gc_lab_session *session, const gc_lab_module *module, const gc_lab_wish *wish, json_t *rows) {
    int failures = 0;
    gc_lab_case *kept = NULL;
    for (int s = 0; s < module->size_count; s++) {
        const gc_lab_size *size = &module->sizes[s];
        if (!(size->use & (wish->quick ? LAB_QUICK : LAB_CHECK | LAB_QUICK)))
            continue;
        for (int i = 0; i < module->variant_count; i++) {
            const gc_lab_variant *v = &module->variants[i];
            if ((v->flags & (LAB_RACES | LAB_LIBRARY)) && wish->clean)
                continue;
            json_t *row = new_row(module, v, size->value);
            const char *why = missing(session, v);
            gpuconv_error error = {0};
            gc_lab_error found = {0};
            bool cannot = false;
            gpuconv_status failed =
                why ? GPUCONV_OK
                    : gc_lab_session_variant(session, module, v, size->value, 0, &kept, &found, NULL, &cannot, &error);
            if (cannot)
                why = v->needs ? v->needs : "this device cannot";
            put(row, "rms", found.rms);
            put(row, "peak", found.peak);
            json_object_set_new(row, "compared", json_integer(found.compared));
            end_row(rows, row, failed ? "failed" : why ? "skipped" : "agrees", failed ? error.message : why);
            failures += failed != GPUCONV_OK;
            if (failed || why)
                say(session, module, v, size->value, failed ? "FAILED" : "skipped", 0, failed ? error.message : why);
            else
                say(session, module, v, size->value, (v->flags & LAB_RACES) ? "races, not compared" : "agrees, error",
                    found.rms, NULL);
        }
    }
    gc_lab_case_free(kept);
    return failures;
}

/* Where the roofline puts it: the time that bytes and operations take at the least, at this run's ceilings. */
static void roofline(const gc_lab_session *session, const gc_lab_module *module, const gc_lab_variant *v,
                     const int64_t *size, const gc_lab_times *t, json_t *row) {
    gc_lab_cost cost = module->cost ? module->cost(size, v) : (gc_lab_cost){0};
    put(row, "bytes", cost.bytes);
    put(row, "operations", cost.operations);
    if (v->where == LAB_CPU || !(cost.bytes > 0))
        return;
    double moving = session->ceilings.copy > 0 ? cost.bytes / session->ceilings.copy : 0;
    double rate = session->ceilings.operations[v->unit], doing = rate > 0 ? cost.operations / rate : 0;
    json_object_set_new(row, "bound", json_string(doing > moving ? "arithmetic" : "memory"));
    put(row, "floor", fmax(moving, doing));
    put(row, "share", fmax(moving, doing) / t->median);
}

static void facts(const gc_lab_variant *v, const gc_lab_run *run, json_t *row) {
    gc_lab_facts f;
    if (v->facts && v->facts(run, &f) == 0)
        json_object_set_new(row, "facts",
                            json_pack("{s:i, s:i, s:i, s:i, s:i}", "registers", f.registers, "local_bytes",
                                      f.local_bytes, "shared_bytes", f.shared_bytes, "threads", f.threads, "blocks",
                                      f.blocks));
}

/* The clock as it is under load counts for figures too. */
static void state(const gc_lab_session *session, gc_lab_run *run, json_t *row) {
    gc_lab_state s;
    char reasons[200];
    if (!gc_lab_nvml_read(session->nvml, &s))
        return;
    gc_lab_nvml_reasons(s.reasons, reasons, sizeof reasons);
    if (s.clock_hz > 0)
        run->clock_hz = s.clock_hz;
    put(row, "clock_hz", s.clock_hz);
    put(row, "celsius", s.celsius);
    json_object_set_new(row, "throttled_by", json_string(reasons));
}

static int time_variant(gc_lab_session *session, const gc_lab_module *module, const gc_lab_variant *v,
                        const int64_t *size, gc_lab_case **kept, json_t *rows) {
    json_t *row = new_row(module, v, size);
    const char *why = missing(session, v);
    gpuconv_error error = {0};
    gc_lab_error found = {0};
    gc_lab_times t = {0};
    bool cannot = false;
    if (v->course)
        json_object_set_new(row, "course", json_string(v->course));
    gpuconv_status failed =
        why ? GPUCONV_OK : gc_lab_session_variant(session, module, v, size, SAMPLED, kept, &found, &t, &cannot, &error);
    if (cannot)
        why = v->needs ? v->needs : "this device cannot";
    if (failed || why) {
        say(session, module, v, size, failed ? "FAILED" : "skipped", 0, failed ? error.message : why);
        end_row(rows, row, failed ? "failed" : "skipped", failed ? error.message : why);
        return failed != GPUCONV_OK;
    }
    put(row, "median", t.median);
    put(row, "spread", t.spread);
    put(row, "least", t.least);
    if (t.cold > 0)
        put(row, "cold", t.cold);
    json_object_set_new(row, "n", json_integer(t.n));
    json_object_set_new(row, "row", json_integer(t.row));
    put(row, "rms", found.rms);
    json_object_set_new(row, "compared", json_integer(found.compared));
    json_object_set_new(row, "races", json_boolean(v->flags & LAB_RACES));
    roofline(session, module, v, size, &t, row);
    gc_lab_run *run = gc_lab_case_run(*kept, v);
    if (v->where == LAB_GPU)
        state(session, run, row);
    facts(v, run, row);
    if (v->figure || v->tell) { /* what the last run left there, fetched once more */
        gc_lab_error again;
        failed = gc_lab_case_check(*kept, v, 1, &again, &error);
    }
    if (v->tell && !failed) {
        char said[300] = "";
        v->tell(run, said, sizeof said);
        json_object_set_new(row, "said", json_string(said));
    }
    if (v->figure && !failed) {
        double figure = v->figure(run);
        put(row, "figure", figure);
        json_object_set_new(row, "unit", json_string(v->figure_unit));
        say(session, module, v, size, v->figure_unit, figure, NULL);
    } else {
        say(session, module, v, size, "ms", t.median * 1e3, NULL);
    }
    end_row(rows, row, failed ? "failed" : "measured", failed ? error.message : NULL);
    return failed != GPUCONV_OK;
}

int gc_lab_time(gc_lab_session *session, const gc_lab_module *module, const gc_lab_wish *wish, json_t *rows) {
    const unsigned timed = LAB_GPU_TIME | LAB_CPU_TIME | LAB_SLOW_TIME | LAB_MIDDLE_TIME;
    gc_lab_case *kept = NULL;
    int failures = 0;
    for (int s = 0; s < module->size_count; s++) {
        unsigned use = module->sizes[s].use & timed;
        if (wish->size && s > 0)
            break;
        if (wish->size)
            use = timed;
        for (int i = 0; use && i < module->variant_count; i++) {
            const gc_lab_variant *v = &module->variants[i];
            unsigned at = v->at ? v->at : v->where == LAB_CPU ? LAB_CPU_TIME : LAB_GPU_TIME;
            if (!(at & use))
                continue;
            failures += time_variant(session, module, v, wish->size ? wish->size : module->sizes[s].value, &kept, rows);
        }
    }
    gc_lab_case_free(kept);
    return failures;
}

/* ---- Effects ----------------------------------------------------------------------------------------------------- */

static bool is(const json_t *row, const char *name, const char *value) {
    const char *text = json_string_value(json_object_get(row, name));
    return text && strcmp(text, value) == 0;
}

static double score(const json_t *row) {
    const json_t *figure = json_object_get(row, "figure");
    return figure ? json_number_value(figure) : json_number_value(json_object_get(row, "median"));
}

/* The row of a variant at a size, when it was measured. */
static json_t *measured(const gc_lab_module *module, const char *variant, const char *size, json_t *rows) {
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) if (is(row, "module", module->name) && is(row, "variant", variant) &&
                                         is(row, "state", "measured") && is(row, "size", size)) return row;
    return NULL;
}

static int hold(const gc_lab_module *module, const gc_lab_effect *e, const json_t *fast, double ratio,
                json_t *effects) {
    bool holds = e->agree ? ratio <= e->ratio && ratio >= 1 / e->ratio : ratio >= e->ratio;
    json_array_append_new(effects, json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:f, s:o, s:b}", "module", module->name,
                                             "what", e->what, "slower", e->slower ? e->slower : "its ceiling", "faster",
                                             e->faster, "size", json_string_value(json_object_get(fast, "size")),
                                             "agree", e->agree, "wanted", e->ratio, "ratio",
                                             isfinite(ratio) ? json_real(ratio) : json_null(), "holds", holds));
    return !holds;
}

int gc_lab_effects(const gc_lab_module *module, json_t *rows, json_t *effects) {
    int failures = 0;
    for (int e = 0; e < module->effect_count; e++) {
        const gc_lab_effect *effect = &module->effects[e];
        size_t i;
        json_t *row;
        const json_t *fast = NULL;
        double ratio = 0;
        json_array_foreach(rows, i, row) {
            if (!is(row, "module", module->name) || !is(row, "variant", effect->faster) ||
                !is(row, "state", "measured"))
                continue;
            const char *size = json_string_value(json_object_get(row, "size"));
            const json_t *share = json_object_get(row, "share"),
                         *slow = effect->slower ? measured(module, effect->slower, size, rows) : NULL;
            if (effect->slower ? !slow : !json_is_number(share))
                continue;
            fast = row;
            ratio = slow ? score(slow) / score(row) : json_number_value(share);
        }
        if (fast)
            failures += hold(module, effect, fast, ratio, effects);
    }
    return failures;
}
