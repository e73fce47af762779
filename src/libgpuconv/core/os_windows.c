/* Functions of os.h for Windows with mingw-w64. windows/ has the functions of POSIX that all
 * files use. */
#include "os.h"

#include "descriptor.h"
#include "files.h"
#include "memory.h"
#include "pool.h"
#include "windows/paths.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <shellapi.h>

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

const int64_t gc_os_alignment = 16;

/* free() frees only what malloc has made, whose blocks are aligned to 16 bytes. The vector loops do not need more: they
 * are assembled with unaligned moves, because the stack has no other alignment either (CMakeLists.txt). */
void *gc_os_allocate(int64_t alignment, int64_t bytes, bool huge) {
    (void)alignment;
    (void)huge;
    return malloc((size_t)bytes);
}

void gc_os_keep_freed_memory(void) {} /* the heap of this system does it */

int64_t gc_memory_available(void) {
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    return GlobalMemoryStatusEx(&status)
               ? (int64_t)(status.ullAvailPhys < status.ullAvailPageFile ? status.ullAvailPhys
                                                                         : status.ullAvailPageFile)
               : INT64_MAX;
}

/* ---- Processor and processes ------------------------------------------------------------------------------------ */

static bool read_registry(const wchar_t *key, const wchar_t *name, char *text, size_t room) {
    wchar_t value[256];
    DWORD bytes = sizeof value;
    return RegGetValueW(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_SZ, NULL, value, &bytes) == ERROR_SUCCESS &&
           gc_windows_text(value, text, room);
}

void gc_os_processor_name(char *name, size_t size) {
    if (!read_registry(L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", L"ProcessorNameString", name, size) ||
        !*name)
        (void)snprintf(name, size, "CPU");
}

int gc_processor_count(void) {
    DWORD_PTR own = 0, all;
    int n = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
        for (; own; own &= own - 1)
            n++;
    return n > 0 ? n : 1;
}

/* Other programs (gnuplot, a POSIX shell) are not started on this system. */
bool gc_os_find_program(const char *name, char *path, size_t room) {
    (void)name;
    (void)path;
    (void)room;
    return false;
}

int gc_os_start(const char *program, char *const argv[], char *const environment[], const int stream[3], pid_t *child) {
    (void)program;
    (void)argv;
    (void)environment;
    (void)stream;
    (void)child;
    return ENOTSUP;
}

bool gc_os_wait(pid_t child, double seconds, bool end, int *status) {
    (void)child;
    (void)seconds;
    (void)end;
    *status = -1;
    return true;
}

static double seconds_of(FILETIME time) {
    return 1e-7 * (double)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime);
}

bool gc_os_set_variable(const char *name, const char *value) {
    return _putenv_s(name, value) == 0;
}

double gc_os_processor_seconds(void) {
    FILETIME begin, end, kernel, user;
    return GetProcessTimes(GetCurrentProcess(), &begin, &end, &kernel, &user) ? seconds_of(kernel) + seconds_of(user)
                                                                              : 0;
}

bool gc_os_get_names(gc_os_names *names) {
    (void)snprintf(names->system, sizeof names->system, "Windows");
    (void)snprintf(names->machine, sizeof names->machine, "x86_64");
    return read_registry(L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion", L"CurrentBuildNumber", names->release,
                         sizeof names->release);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

int gc_os_spool_file(char *folder, size_t room) {
    wchar_t wide[GC_WINDOWS_PATH], path[GC_WINDOWS_PATH + 64];
    static volatile LONG made;
    const DWORD length = GetTempPathW(GC_WINDOWS_PATH, wide);
    if (length == 0 || length >= GC_WINDOWS_PATH || !gc_windows_text(wide, folder, room)) {
        (void)snprintf(folder, room, "TEMP");
        errno = ENOENT;
        return -1;
    }
    gc_windows_forward_slashes(folder);
    (void)_snwprintf(path, sizeof path / sizeof *path, L"%lsgpuconv-%lx-%lx.tmp", wide, GetCurrentProcessId(),
                     InterlockedIncrement(&made));
    /* The system removes it with its last handle, however the process ends. */
    HANDLE handle =
        CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                    NULL, CREATE_ALWAYS, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        errno = gc_windows_errno(GetLastError());
        return -1;
    }
    const int fd = _open_osfhandle((intptr_t)handle, O_RDWR | O_BINARY | O_NOINHERIT);
    if (fd < 0)
        CloseHandle(handle);
    return fd;
}

/* A temporary file stays in memory while there is enough of it. */
int gc_os_memory_file(void) {
    char folder[GC_WINDOWS_PATH];
    return gc_os_spool_file(folder, sizeof folder);
}

/* A file without a name cannot get one on this system. */
int gc_os_unnamed_file(const char *folder, unsigned permissions) {
    (void)folder;
    (void)permissions;
    return -1;
}

int gc_os_name_file(int fd, const char *path) {
    (void)fd;
    (void)path;
    return ENOTSUP;
}

/* A new file has the permissions of its folder. */
bool gc_os_is_trusted(const char *path, const char *program, char *resolved, size_t room, char *culprit) {
    (void)program;
    (void)culprit;
    return snprintf(resolved, room, "%s", path) < (int)room; /* permissions are not those of POSIX */
}

int gc_os_keep_permissions(int fd, const struct stat *old) {
    (void)fd;
    (void)old;
    return 0;
}

/* Locks of this system exclude reading and writing; those of POSIX only other locks. The locked bytes therefore are
 * those beyond 2^62, which no file has. A lock that is changed is released for a moment. */
int gc_file_lock(int fd, gc_lock_kind kind, off_t from, off_t bytes) {
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    const uint64_t begin = (UINT64_C(1) << 62) + (uint64_t)from;
    const uint64_t count = bytes > 0 ? (uint64_t)bytes : UINT64_C(1) << 61;
    OVERLAPPED place = {.Offset = (DWORD)begin, .OffsetHigh = (DWORD)(begin >> 32)};
    (void)UnlockFileEx(handle, 0, (DWORD)count, (DWORD)(count >> 32), &place);
    const DWORD flags = LOCKFILE_FAIL_IMMEDIATELY | (kind == GC_LOCK_EXCLUSIVE ? LOCKFILE_EXCLUSIVE_LOCK : 0);
    if (LockFileEx(handle, flags, 0, (DWORD)count, (DWORD)(count >> 32), &place))
        return 0;
    return GetLastError() == ERROR_IO_PENDING ? EAGAIN : gc_windows_errno(GetLastError());
}

unsigned gc_os_random(void) {
    LARGE_INTEGER ticks = {0};
    (void)QueryPerformanceCounter(&ticks);
    return (unsigned)ticks.LowPart ^ (unsigned)GetCurrentProcessId() << 16 ^ (unsigned)GetCurrentThreadId();
}

static bool read_variable(const wchar_t *name, char *text, size_t room) {
    const wchar_t *value = _wgetenv(name);
    if (!value || !*value || !gc_windows_text(value, text, room))
        return false;
    gc_windows_forward_slashes(text);
    return true;
}

bool gc_os_cache_folder(char *path, size_t room) {
    return read_variable(L"XDG_CACHE_HOME", path, room) || read_variable(L"LOCALAPPDATA", path, room);
}

static bool write_module_path(HMODULE module, char *path, size_t room) {
    wchar_t wide[GC_WINDOWS_PATH];
    const DWORD length = GetModuleFileNameW(module, wide, GC_WINDOWS_PATH);
    if (length == 0 || length == GC_WINDOWS_PATH || !gc_windows_text(wide, path, room))
        return false;
    gc_windows_forward_slashes(path);
    return true;
}

const char gc_os_module_suffix[] = ".dll";

bool gc_os_program_path(char *path, size_t room) {
    return write_module_path(NULL, path, room);
}

bool gc_os_library_path(char *path, size_t room) {
    HMODULE module;
    return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                              (LPCWSTR)gc_os_module_suffix, &module) &&
           write_module_path(module, path, room);
}

/* ---- Pipes, terminals and signals -------------------------------------------------------------------------------- */

/* A write to a pipe blocks until its reader has taken the bytes, or has ended. */
int gc_os_unblock_pipe(int fd, int64_t *max_write) {
    *max_write = 1 << 16;
    return fd;
}

ssize_t gc_os_write_quietly(int fd, const void *bytes, size_t count) {
    return write(fd, bytes, (unsigned)count);
}

/* Pipes cannot be waited for: they are looked at every millisecond. A read at the end of a pipe does not block. */
int gc_os_wait_ready(int fd, bool for_writing, int milliseconds) {
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    DWORD ready = 0;
    if (handle == INVALID_HANDLE_VALUE)
        return EBADF;
    if (for_writing || GetFileType(handle) != FILE_TYPE_PIPE)
        return 0;
    for (int waited = 0; milliseconds < 0 || waited <= milliseconds; waited++) {
        if (!PeekNamedPipe(handle, NULL, 0, NULL, &ready, NULL) || ready > 0)
            return 0;
        Sleep(1);
    }
    return EAGAIN;
}

static void (*interrupted)(int);

/* Runs in a thread of its own. */
static BOOL WINAPI handle_control(DWORD event) {
    void (*handler)(int) = InterlockedExchangePointer((void *volatile *)&interrupted, NULL);
    if (!handler)
        return FALSE; /* the system ends the process */
    handler(event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT ? SIGINT : SIGTERM);
    if (event == CTRL_CLOSE_EVENT || event == CTRL_LOGOFF_EVENT || event == CTRL_SHUTDOWN_EVENT)
        Sleep(5000); /* the process ends when this returns: it removes its unfinished files meanwhile */
    return TRUE;
}

void gc_os_catch_signals(void (*handler)(int number)) {
    interrupted = handler;
    (void)SetConsoleCtrlHandler(NULL, FALSE);
    (void)SetConsoleCtrlHandler(handle_control, TRUE);
}

/* The arguments are those of the command line, with / for \ so that the rest of the program needs to know only one. */
void gc_os_begin_program(int *argc, char ***argv) {
    int count = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **made = wide ? gc_calloc(count + 1, (int64_t)sizeof *made) : NULL;
    bool good = made != NULL;
    for (int i = 0; i < count && good; i++) {
        const size_t room = 3 * wcslen(wide[i]) + 1;
        made[i] = malloc(room);
        good = made[i] && gc_windows_text(wide[i], made[i], room);
        if (good)
            gc_windows_forward_slashes(made[i]);
    }
    if (good) { /* else the arguments stay in the process's code page */
        *argc = count;
        *argv = made;
    }
    LocalFree((void *)wide);
    for (int fd = 0; fd < 3; fd++)
        (void)_setmode(fd, O_BINARY);
    (void)SetConsoleOutputCP(CP_UTF8);
}

int gc_os_terminal_columns(int fd) {
    CONSOLE_SCREEN_BUFFER_INFO info;
    return GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(fd), &info) ? info.srWindow.Right - info.srWindow.Left + 1
                                                                         : 0;
}

/* Keys of a console are read only by its own functions: play and live take none here. */
bool gc_os_enter_raw(void) {
    return false;
}

void gc_os_leave_raw(void) {}
