// Calls of the library without the GIL: Ctrl-C, callbacks, and the end of Python.
#ifndef GPUCONV_PYTHON_CALLS_H
#define GPUCONV_PYTHON_CALLS_H

#include "common.h"

#include <gpuconv_arrays.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

using work = std::function<gpuconv_status(gpuconv_error *)>;

// Releases the GIL while it exists. A thread that finds that Python is ending stays here until the process has ended:
// before Python 3.14 a thread that asks for the GIL then is ended by unwinding its stack, which aborts the process in
// the functions of C++ that are noexcept.
class unlocked {
  public:
    // `cancel`: the flag that ends the call, or NULL.
    explicit unlocked(volatile int *cancel = nullptr);
    ~unlocked();
    unlocked(const unlocked &) = delete;
    volatile int *const cancel;

  private:
    PyThreadState *state;
};

// A call that may be long, by a thread of Python.
class caller {
  public:
    // `*cancel` is the cancel flag of the call, and of what the call makes; once raised it stays so.
    explicit caller(volatile int *cancel) : cancel(cancel) {}

    // Calls a function of the library without the GIL and raises if it or a callback fails. On the main thread it runs
    // on a thread of its own meanwhile, so that Ctrl-C is noticed: then `*cancel` is raised, and the exception of
    // Python's signal handler follows.
    void run(const work &call);

    // Calls a function of Python from the call that runs, with the GIL, on the thread that is in run(). An exception
    // ends the call. Does nothing if the call is cancelled.
    void call_back(const std::function<void()> &function);

  private:
    gpuconv_status serve(const std::function<gpuconv_status()> &call);
    void poll(const std::function<void()> *function);

    volatile int *const cancel;
    std::mutex lock, turn;
    std::condition_variable changed;
    bool serving = false;                          // run() waits for functions to call
    const std::function<void()> *wanted = nullptr; // the next one
    std::exception_ptr raised;                     // by a function, or by Python's signal handler
};

// Calls a function of the library without the GIL and raises if it fails. For short calls, which nothing ends.
void run_unlocked(const work &call);

// Calls a function of the library that may take long. `*cancel` and Ctrl-C end it.
inline void run_interruptible(volatile int *cancel, const work &call) {
    caller(cancel).run(call);
}

// Calls a function that may take long and makes nothing that lives longer than the call.
inline void run_interruptible(const work &call) {
    volatile int cancel = 0;
    run_interruptible(&cancel, call);
}

// An operation on three arrays: first, second, result; or both gradients, on five (role). With `hop` a row of responses
// has those of all blocks.
struct rows_call {
    int64_t operation, group, offset, threads, hop, linear;
};

gpuconv_arrays_job job_of_rows(const rows_call &call, const gpuconv_rows *rows);

// Does such a job in host memory, for a caller that has no GIL.
gpuconv_status compute_rows(const rows_call &call, const gpuconv_rows *rows, gpuconv_error *error);

// Calls a function of the library, with the GIL, and raises if it fails.
template <typename Call> void run_here(const Call &call) {
    gpuconv_error error = {};
    check(call(&error), error);
}

// Returns an object that a function of the library makes: make(&made, error). `run`: how it is called.
template <typename Owner, typename Run, typename Make> Owner made_in(const Run &run, const Make &make) {
    Owner owner;
    run([&](gpuconv_error *error) {
        typename Owner::pointer made = nullptr;
        const gpuconv_status status = make(&made, error);
        owner.reset(made);
        return status;
    });
    return owner;
}

// Return what a function of the library makes: made_by of one that may take long, made_soon_by of a short one.
template <typename Owner, typename Make> Owner made_by(const Make &make) {
    return made_in<Owner>([](const work &call) { run_interruptible(call); }, make);
}
template <typename Owner, typename Make> Owner made_soon_by(const Make &make) {
    return made_in<Owner>(run_unlocked, make);
}

// Cancels the calls of all other threads and waits for their end, a few seconds at most. Later calls of these threads
// do not return. For Python's atexit.
void end_calls();

// Forgets the calls of the parent process, whose threads do not exist in a forked child.
void forget_calls();

#endif
