/* The functions of POSIX that gpuconv uses and the C library of mingw-w64 lacks, or has for paths in the process's code
 * page only. CMake includes this header first in every file that is compiled for Windows. Paths are UTF-8, at most
 * GC_WINDOWS_PATH - 1 characters, with / or \ between folders. Every function sets errno as POSIX says; a limit that
 * differs from POSIX is told beside it. posix.c and text.c have the definitions. */
#ifndef GC_CORE_WINDOWS_POSIX_H
#define GC_CORE_WINDOWS_POSIX_H

#include <direct.h>
#include <dirent.h>
#include <fcntl.h>
#include <io.h>
#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

enum { GC_WINDOWS_PATH = 4096 };

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Files are binary, not inherited by child processes, and may be renamed and removed while they are open. */
#define O_CLOEXEC O_NOINHERIT
#define O_NOCTTY 0
#define O_NONBLOCK 0
#define O_NOFOLLOW 0x10000000
#define open gc_windows_open /* also of members of structures that are functions */
int gc_windows_open(const char *path, int flags, ...);
#define fopen(path, mode) gc_windows_fopen(path, mode)
FILE *gc_windows_fopen(const char *path, const char *mode);
/* Loses the bytes that are written. */
#define fmemopen(bytes, room, mode) ((void)(bytes), (void)(room), fopen("NUL", mode))

#undef stat
#undef fstat
#define stat gc_windows_stat
#define fstat gc_windows_fstat
#define lstat gc_windows_lstat
#define S_IFLNK 0xa000
#define S_IFSOCK 0xc000
#define S_ISLNK(mode) (((mode)&0xf000) == S_IFLNK)
#define S_ISSOCK(mode) (((mode)&0xf000) == S_IFSOCK)

struct gc_windows_stat {
    uint64_t st_dev, st_ino; /* serial number of the volume; number of the file on it */
    unsigned st_mode, st_nlink, st_uid, st_gid;
    int64_t st_size;
    struct timespec st_mtim;
};

int gc_windows_stat(const char *path, struct gc_windows_stat *st);
int gc_windows_lstat(const char *path, struct gc_windows_stat *st);
int gc_windows_fstat(int fd, struct gc_windows_stat *st);

#undef X_OK
#define X_OK 0
#define access(path, mode) gc_windows_access(path, mode)
int gc_windows_access(const char *path, int mode);
#define unlink(path) gc_windows_unlink(path)
int gc_windows_unlink(const char *path);
#define rename(from, to) gc_windows_rename(from, to)
int gc_windows_rename(const char *from, const char *to);
#define mkdir(path, mode) gc_windows_mkdir(path)
int gc_windows_mkdir(const char *path);
#define rmdir(path) gc_windows_rmdir(path)
int gc_windows_rmdir(const char *path);
#define mkdtemp gc_windows_mkdtemp
char *gc_windows_mkdtemp(char *path);
#define realpath(path, resolved) gc_windows_realpath(path)
char *gc_windows_realpath(const char *path); /* to be freed */
#define readlink(path, to, room) gc_windows_readlink(path, to, room)
ssize_t gc_windows_readlink(const char *path, char *to, size_t room);

/* Reads and writes do not keep the position of the descriptor, which no other thread may use meanwhile. */
#define pread gc_windows_pread
#define pwrite gc_windows_pwrite
ssize_t gc_windows_pread(int fd, void *bytes, size_t count, int64_t at);
ssize_t gc_windows_pwrite(int fd, const void *bytes, size_t count, int64_t at);

/* F_DUPFD_CLOEXEC, F_GETFD and F_GETFL (the answer is 0) only. */
#define F_DUPFD_CLOEXEC 1
#define F_GETFD 2
#define F_GETFL 3
#define fcntl(...) gc_windows_fcntl(__VA_ARGS__)
int gc_windows_fcntl(int fd, int command, ...);

/* ---- Folders ----------------------------------------------------------------------------------------------------- */

/* Names, without . and .. */
#define dirent gc_windows_dirent
#define scandir gc_windows_scandir
#define alphasort gc_windows_alphasort
struct gc_windows_dirent {
    char d_name[780];
};
int gc_windows_scandir(const char *path, struct gc_windows_dirent ***list,
                       int (*filter)(const struct gc_windows_dirent *),
                       int (*compare)(const struct gc_windows_dirent **, const struct gc_windows_dirent **));
int gc_windows_alphasort(const struct gc_windows_dirent **a, const struct gc_windows_dirent **b);

/* ---- Text and numbers -------------------------------------------------------------------------------------------- */

#define strndup gc_windows_strndup
char *gc_windows_strndup(const char *text, size_t length);
#define memmem gc_windows_memmem
void *gc_windows_memmem(const void *bytes, size_t count, const void *part, size_t part_count);
#define strcasestr gc_windows_strcasestr
char *gc_windows_strcasestr(const char *text, const char *part);
#define getc_unlocked getc

/* The locale of the calling thread: "C" (whatever is asked for) or the one before. */
typedef int locale_t;
enum { LC_ALL_MASK = 1, LC_CTYPE_MASK = 2 };
#define newlocale(mask, name, base) ((void)(mask), (void)(name), (void)(base), 1)
#define freelocale(locale) ((void)(locale))
#define uselocale gc_windows_uselocale
locale_t gc_windows_uselocale(locale_t locale);

/* UTF-8 in every locale. */
#define mbrtowc(c, text, count, state) ((void)(state), gc_windows_mbrtowc(c, text, count))
size_t gc_windows_mbrtowc(wchar_t *c, const char *text, size_t count);
#define wcwidth gc_windows_wcwidth
int gc_windows_wcwidth(wchar_t c);

/* The name of this machine. */
#define gethostname gc_windows_gethostname
int gc_windows_gethostname(char *name, int room);

#endif
