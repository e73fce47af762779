/* Functions that differ between operating systems; no other file asks for which one it is compiled. */
#ifndef GC_CORE_OS_H
#define GC_CORE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Allocates `bytes` bytes at a multiple of `alignment`, a power of two, or of gc_os_alignment if that is less; free()
 * frees them. `huge`: asks for huge pages. @return NULL without memory */
extern const int64_t gc_os_alignment;
void *gc_os_allocate(int64_t alignment, int64_t bytes, bool huge);

/* Keeps freed memory in the process, for blocks of up to 32 MiB: memory that goes back to the system is mapped and
 * cleared again for the next use. */
void gc_os_keep_freed_memory(void);

/* Writes the model of this machine's processor, or "CPU" if it is not known. At most `size` bytes. */
void gc_os_processor_name(char *name, size_t size);

/* Writes the path of a program that the user can start by its name. @return false if there is none */
bool gc_os_find_program(const char *name, char *path, size_t room);

/* Starts a program with three descriptors as its standard streams, default signals and no other descriptor, as the
 * leader of a process group. @return 0 or an errno value */
int gc_os_start(const char *program, char *const argv[], char *const environment[], const int stream[3], pid_t *child);

/* Waits for a program that gc_os_start has started until it has ended or `seconds` have passed, or, with `end`, ends
 * it and the programs that it has started.
 * @return false while it runs; true with its exit status in *status: the negative number of a signal that ended it, 0
 * if it is not known */
bool gc_os_wait(pid_t child, double seconds, bool end, int *status);

/* Sets a variable of the environment. No other thread may run. @return false without memory */
bool gc_os_set_variable(const char *name, const char *value);

/* Returns the processor time of this process in seconds. */
double gc_os_processor_seconds(void);

/* The names of the system, its version and the kind of machine, for reports. @return false if they are not known */
typedef struct gc_os_names {
    char system[64], release[64], machine[64];
} gc_os_names;
bool gc_os_get_names(gc_os_names *names);

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Creates an empty file without a name, for reading and writing, in memory where the system can. Its descriptor is
 * above those of the standard streams. @return -1 with errno set */
int gc_os_memory_file(void);

/* Creates a file without a name in a folder, on disk, for reading and writing. @return -1 if the file system has none
 */
int gc_os_unnamed_file(const char *folder, unsigned permissions);

/* Gives a file of gc_os_unnamed_file a name that no other file has. @return 0 or an errno value */
int gc_os_name_file(int fd, const char *path);

/* Gives a new file the owner, group and permissions of the file that it replaces. If the group cannot be set, the
 * permissions of the group are reduced to those of others. @return 0 or an errno value */
int gc_os_keep_permissions(int fd, const struct stat *old);

/* Returns a number that other processes do not get. */
unsigned gc_os_random(void);

/* Creates a file without a name, for reading and writing, in the folder for temporary files, which `folder` gets.
 * @return -1 with errno set */
int gc_os_spool_file(char *folder, size_t room);

/* Writes the folder for files that can be made again. @return false if the user has none */
bool gc_os_cache_folder(char *path, size_t room);

/* Writes the path of this program, with / between folders. @return false if it is not known */
bool gc_os_program_path(char *path, size_t room);

/* Writes the path of the shared library, or else of the program, that this code is linked into. @return false if it is
 * not known, or relative to a folder that was the current one */
bool gc_os_library_path(char *path, size_t room);

/* Resolves the path of a module and returns whether no user other than this one, root and the owner of the program file
 * `program` can replace it: they own it and all its folders, and others can write to none of these, except where they
 * cannot replace what is there (the sticky bit). A folder's group counts as another user unless root owns the folder or
 * the group is that of this process. @param resolved gets the path, without links, in at most `room` bytes
 * @param culprit gets the file or folder that others can replace */
bool gc_os_is_trusted(const char *path, const char *program, char *resolved, size_t room, char *culprit);

/* The end of the names of modules, such as ".so". */
extern const char gc_os_module_suffix[];

/* ---- Pipes, terminals and signals -------------------------------------------------------------------------------- */

/* Makes a pipe non-blocking, if that is possible without a change for other processes that share it: returns a new
 * descriptor and closes `fd` then. @param max_write gets the bytes that a write accepts at once if the pipe is ready;
 * 0: writes never block */
int gc_os_unblock_pipe(int fd, int64_t *max_write);

/* Calls write() once, and consumes a SIGPIPE that it raises. */
ssize_t gc_os_write_quietly(int fd, const void *bytes, size_t count);

/* Waits at most `milliseconds` (< 0: without limit) until a descriptor is ready, has an error or is hung up.
 * @return 0, EAGAIN (the time has passed), EINTR or an errno value */
int gc_os_wait_ready(int fd, bool for_writing, int milliseconds);

/* Calls a handler at the first request to end (Ctrl-C, end of the session); the second one ends the process. */
void gc_os_catch_signals(void (*handler)(int number));

/* Prepares the standard streams and the arguments of a program: binary streams, arguments in UTF-8. */
void gc_os_begin_program(int *argc, char ***argv);

/* Returns the columns of the terminal at a descriptor; 0 if there is none. */
int gc_os_terminal_columns(int fd);

/* Lets the terminal at standard input give every key at once, without showing it, and reads give nothing if no key was
 * pressed. @return false if standard input is no terminal */
bool gc_os_enter_raw(void);

/* Ends that. */
void gc_os_leave_raw(void);

#endif
