// The list of the calls that have released the GIL: when Python ends, it cancels them and waits for them.
#include "calls.h"

#include <chrono>
#include <exception>
#include <future>
#include <set>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace {

constexpr std::chrono::milliseconds signal_step(50);
constexpr std::chrono::seconds longest_end(5);

struct open_calls {
    std::mutex lock;
    std::condition_variable closed;
    std::set<const unlocked *> all;
    std::thread::id ender; // the thread that has called end_calls()
    bool have_ended() const {
        return ender != std::thread::id() && ender != std::this_thread::get_id();
    }
    void close(const unlocked *call) {
        all.erase(call);
        closed.notify_all();
    }
};
open_calls *calls = new open_calls; // never deleted: threads may outlive the interpreter's end

// Blocks until the process has ended.
[[noreturn]] void park() {
    for (;;)
        pause();
}

} // namespace

unlocked::unlocked(volatile int *flag) : cancel(flag) {
    std::unique_lock<std::mutex> locked(calls->lock);
    const bool ended = calls->have_ended();
    if (!ended)
        calls->all.insert(this);
    locked.unlock();
    state = PyEval_SaveThread();
    if (ended)
        park();
}

unlocked::~unlocked() {
    std::unique_lock<std::mutex> locked(calls->lock);
    if (calls->have_ended()) {
        calls->close(this);
        locked.unlock();
        park();
    }
    locked.unlock();
    PyEval_RestoreThread(state); // Python does not end meanwhile: end_calls() waits for this call, without the GIL
    locked.lock();
    calls->close(this);
}

void run_unlocked(const work &call) {
    gpuconv_error error = {};
    gpuconv_status status;
    {
        unlocked released;
        status = call(&error);
    }
    check(status, error);
}

// Calls a function. Before Python 3.14 a thread that asks for the GIL after Python has ended is unwound without an
// exception; such a thread is kept here for ever.
template <typename Function> void stay_if_unwound(const Function &function) {
    struct guard {
        const int exceptions = std::uncaught_exceptions();
        bool returned = false;
        ~guard() {
            if (!returned && std::uncaught_exceptions() == exceptions)
                park();
        }
    } guard;
    function();
    guard.returned = true;
}

// Looks at signals with the GIL, and calls a function, or none (NULL).
void caller::poll(const std::function<void()> *function) {
    try {
        stay_if_unwound([function] {
            nb::gil_scoped_acquire held;
            stay_if_unwound([function] { // here, before the GIL is given back
                if (PyErr_CheckSignals() != 0)
                    throw nb::python_error();
                if (function)
                    (*function)();
            });
        });
    } catch (...) {
        raised = std::current_exception();
        *cancel = 1;
    }
}

// Runs the call on a thread of its own; meanwhile looks at signals and calls the functions that the call wants.
gpuconv_status caller::serve(const std::function<gpuconv_status()> &call) {
    std::future<gpuconv_status> result;
    serving = true;
    try {
        result = std::async(std::launch::async, [&] {
            struct finish {
                caller &own;
                ~finish() {
                    std::lock_guard<std::mutex> locked(own.lock);
                    own.serving = false;
                    own.changed.notify_all();
                }
            } at_the_end{*this};
            return call();
        });
    } catch (const std::system_error &) { // no thread to be had
        serving = false;
        return call();
    }
    std::unique_lock<std::mutex> locked(lock);
    while (serving) {
        changed.wait_for(locked, signal_step, [&] { return !serving || wanted; });
        const std::function<void()> *function = wanted;
        locked.unlock();
        if (!*cancel)
            poll(function);
        locked.lock();
        if (function)
            wanted = nullptr;
        changed.notify_all();
    }
    locked.unlock();
    return result.get();
}

void caller::run(const work &call) {
    gpuconv_error error = {};
    gpuconv_status status;
    auto flagged = [&] {
        const volatile int *before = gpuconv_cancel_set(cancel);
        const gpuconv_status result = call(&error);
        gpuconv_cancel_set(before);
        return result;
    };
    {
        unlocked released(cancel);
        const bool is_main = syscall(SYS_gettid) == getpid(); // the thread on which Python handles signals
        status = is_main ? serve(flagged) : flagged();
    }
    if (raised)
        std::rethrow_exception(raised);
    check(status, error);
}

void caller::call_back(const std::function<void()> &function) {
    std::lock_guard<std::mutex> one(turn);
    if (*cancel)
        return;
    std::unique_lock<std::mutex> locked(lock);
    if (serving) {
        wanted = &function;
        changed.notify_all();
        changed.wait(locked, [&] { return !wanted; });
    } else {
        locked.unlock();
        poll(&function);
    }
}

void end_calls() {
    nb::gil_scoped_release released;
    std::unique_lock<std::mutex> locked(calls->lock);
    calls->ender = std::this_thread::get_id();
    for (const unlocked *call : calls->all)
        if (call->cancel)
            *call->cancel = 1;
    calls->closed.wait_for(locked, longest_end, [] { return calls->all.empty(); });
}

void forget_calls() {
    calls = new open_calls;
}
