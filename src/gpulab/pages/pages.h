/* The texts and pages of gpulab: the code of the modules, chapters, tables and the page. */
#ifndef GPULAB_PAGES_H
#define GPULAB_PAGES_H

#include "gpulab/harness/run.h"

/* ---- Reports as JSON (report.c) ---------------------------------------------------------------------------------- */

/* Returns the recorded report of an H200, with the rows of an H100 for modules that it lacks; their member recorded_on
 * names the device. The caller releases it with json_decref. NULL if memory is exhausted. */
json_t *gc_lab_recorded_load(void);

/* Returns the name of the recorded GPU, "NVIDIA H200". `recorded` may be NULL. */
const char *gc_lab_recorded_device(const json_t *recorded);

/* Returns the measured row of a variant at a size, or at the last recorded size if `size` is NULL; NULL if there is
 * none. `recorded` may be NULL. */
const json_t *gc_lab_recorded_find(const json_t *recorded, const char *module, const char *variant, const char *size);

/* How much of a row is written; each includes those before it. */
typedef enum gc_lab_detail {
    GC_LAB_FIGURE,    /* 0.190 ms, 71 % of the arithmetic limit */
    GC_LAB_SIZE,      /* 0.190 ms at 8388608x512, ... */
    GC_LAB_ARITHMETIC /* ... limit (8590 million operations at 63.8 TFLOP/s: 0.135 ms) */
} gc_lab_detail;

/* Writes a measured row as one text. */
void gc_lab_recorded_format(const json_t *row, gc_lab_detail detail, char *text, size_t room);

/* Returns the recorded row of a variant that a report has skipped because the machine has no GPU; NULL: it has not, or
 * there is none. */
const json_t *gc_lab_recorded_instead(const json_t *report, const json_t *recorded, const json_t *row);

/* Checks that a report has the form that gpulab writes, so that the tables and the page can rely on it: known members
 * have their types, every row has its names, numbers lie within 1e18, times are at least 1e-18, values of a sweep are 0
 * or at least 1e-18, and a sweep's axis is positive and increases. Unknown members may be scalars. `path` is the file's
 * name in messages. Fails with FORMAT and a message that has the row and what must hold. */
gpuconv_status gc_lab_saved_check(const json_t *report, const char *path, gpuconv_error *error);

/* Reads and checks a report. The caller releases `*report` with json_decref. Fails with FILE if the file cannot be
 * opened, and with FORMAT if it is not JSON or not a report. */
gpuconv_status gc_lab_saved_load(const char *path, json_t **report, gpuconv_error *error);

/* ---- The code of the modules (code.c) ---------------------------------------------------------------------------- */

/* Returns the report of gpulab on an NVIDIA H200 as JSON, which tests/gpu/nvidia-h200-lab.json contains. */
const char *gc_lab_recorded_text(void);

/* Returns the report of an NVIDIA H100, for modules that the report of the H200 lacks. */
const char *gc_lab_recorded_text_h100(void);

enum { GC_LAB_LEFT_OUT = '~' };

typedef struct gc_lab_code_line {
    char mark; /* ' ', '+': not in the rung before, '-': only in the rung before, or GC_LAB_LEFT_OUT */
    const char *text;
    int length; /* without the line break; GC_LAB_LEFT_OUT: the number of lines that both rungs have here */
} gc_lab_code_line;

typedef struct gc_lab_code {
    gc_lab_code_line *line;
    int count;
    const gc_lab_variant *same;    /* an earlier rung with the same code, or NULL; the lines have no marks then */
    const gc_lab_variant *against; /* the rung that the marks refer to; NULL: no marks, because little is common */
} gc_lab_code;

/* Finds the code of variant `rung`. Without code (a function of the harness) count is 0. The caller frees the code.
 * @return MEMORY */
gpuconv_status gc_lab_code_find(const gc_lab_module *module, int rung, gc_lab_code *code, gpuconv_error *error);
void gc_lab_code_free(gc_lab_code *code);

/* Prints a table of loads, stores and arithmetic instructions per kernel, as PTX comments, and then (unless
 * `table_only`) the PTX, so that the whole output is valid PTX. @return FILE without PTX and nvcc, or if nvcc fails,
 * CANCELLED */
gpuconv_status gc_lab_write_ptx(const gc_lab_module *module, bool table_only, FILE *to, gpuconv_error *error);

/* ---- Text (text.c) ----------------------------------------------------------------------------------------------- */

/* The courses that the modules name, with author and title, a line each. */
extern const char gc_lab_courses[];

void gc_lab_write_list(FILE *to);

/* Prints the results, effects and sweeps of a report as tables. */
void gc_lab_write_tables(const json_t *report, FILE *to);

/* Prints a module as text, as wide as the terminal, up to 100 columns. `brief` leaves out the code. @return MEMORY */
gpuconv_status gc_lab_write_module(const gc_lab_module *module, bool brief, FILE *to, gpuconv_error *error);

/* Prints a module as a chapter in Markdown, which also lists the effects. @return MEMORY */
gpuconv_status gc_lab_write_chapter(const gc_lab_module *module, bool brief, FILE *to, gpuconv_error *error);

/* The resources of a thread block. */
typedef struct gc_lab_block_shape {
    int threads;
    int registers;  /* per thread */
    int64_t shared; /* bytes of shared memory */
} gc_lab_block_shape;

void gc_lab_print_device(const gc_lab_session *session, const gc_lab_block_shape *shape, FILE *to);

/* Times the vector-add module and prints the speedup that Amdahl's law allows. Returns the number of failed variants.
 */
int gc_lab_print_amdahl(gc_lab_session *session, FILE *to);

/* ---- HTML (html.c) ----------------------------------------------------------------------------------------------- */

/* Writes the page. The caller checks ferror(to). */
void gc_lab_write_page(const json_t *report, FILE *to);

#endif
