/* Files and folders of posix.h, by means of Windows. */
#include "posix.h"

#include "paths.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#undef open
#undef fopen

enum { MAX_TRANSFER = 1 << 30 };

/* ---- Errors and paths -------------------------------------------------------------------------------------------- */

int gc_windows_errno(unsigned long code) {
    static const struct {
        DWORD code;
        int err;
    } table[] = {{ERROR_FILE_NOT_FOUND, ENOENT},
                 {ERROR_PATH_NOT_FOUND, ENOENT},
                 {ERROR_INVALID_NAME, ENOENT},
                 {ERROR_BAD_NETPATH, ENOENT},
                 {ERROR_BAD_PATHNAME, ENOENT},
                 {ERROR_ACCESS_DENIED, EACCES},
                 {ERROR_SHARING_VIOLATION, EACCES},
                 {ERROR_WRITE_PROTECT, EROFS},
                 {ERROR_FILE_EXISTS, EEXIST},
                 {ERROR_ALREADY_EXISTS, EEXIST},
                 {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
                 {ERROR_DIRECTORY, ENOTDIR},
                 {ERROR_DISK_FULL, ENOSPC},
                 {ERROR_HANDLE_DISK_FULL, ENOSPC},
                 {ERROR_FILE_TOO_LARGE, EFBIG},
                 {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
                 {ERROR_OUTOFMEMORY, ENOMEM},
                 {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
                 {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
                 {ERROR_INVALID_HANDLE, EBADF},
                 {ERROR_LOCK_VIOLATION, EAGAIN},
                 {ERROR_BROKEN_PIPE, EPIPE},
                 {ERROR_NO_DATA, EPIPE},
                 {ERROR_NOT_SUPPORTED, ENOTSUP},
                 {ERROR_INVALID_FUNCTION, EISDIR}, /* reads of a folder */
                 {ERROR_INVALID_PARAMETER, EINVAL}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code)
            return table[i].err;
    return EIO;
}

/* Sets errno from GetLastError. @return -1 */
static int fail(void) {
    errno = gc_windows_errno(GetLastError());
    return -1;
}

bool gc_windows_path(const char *path, wchar_t wide[GC_WINDOWS_PATH]) {
    if (strcmp(path, "/dev/null") == 0)
        path = "NUL";
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, GC_WINDOWS_PATH) > 0)
        return true;
    errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
    return false;
}

bool gc_windows_text(const wchar_t *wide, char *text, size_t room) {
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, (int)room, NULL, NULL) > 0;
}

void gc_windows_forward_slashes(char *path) {
    for (; *path; path++)
        if (*path == '\\')
            *path = '/';
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

int gc_windows_open(const char *path, int flags, ...) {
    wchar_t wide[GC_WINDOWS_PATH];
    if (!gc_windows_path(path, wide))
        return -1;
    const int mode = flags & (O_RDONLY | O_WRONLY | O_RDWR);
    DWORD access_wanted = mode == O_RDWR     ? GENERIC_READ | GENERIC_WRITE
                          : mode == O_WRONLY ? GENERIC_WRITE
                                             : GENERIC_READ;
    if (flags & O_APPEND) /* each write goes to the end of the file, also next to other processes */
        access_wanted = (access_wanted & ~(DWORD)GENERIC_WRITE) | (FILE_GENERIC_WRITE & ~(DWORD)FILE_WRITE_DATA);
    const DWORD creation = flags & O_CREAT   ? flags & O_EXCL    ? CREATE_NEW
                                               : flags & O_TRUNC ? CREATE_ALWAYS
                                                                 : OPEN_ALWAYS
                           : flags & O_TRUNC ? TRUNCATE_EXISTING
                                             : OPEN_EXISTING;
    const DWORD attributes = FILE_ATTRIBUTE_NORMAL | (flags & O_NOFOLLOW ? FILE_FLAG_OPEN_REPARSE_POINT : 0) |
                             (mode == O_RDONLY ? FILE_FLAG_BACKUP_SEMANTICS : 0); /* opens folders, too */
    HANDLE handle = CreateFileW(wide, access_wanted, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                creation, attributes, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return fail();
    const int fd = _open_osfhandle((intptr_t)handle, mode | O_BINARY | O_NOINHERIT | (flags & O_APPEND));
    if (fd < 0)
        CloseHandle(handle);
    return fd;
}

FILE *gc_windows_fopen(const char *path, const char *mode) {
    const int access_wanted = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
    const int creation = *mode == 'w' ? O_CREAT | O_TRUNC : *mode == 'a' ? O_CREAT | O_APPEND : 0;
    const int fd = gc_windows_open(path, access_wanted | creation, 0666);
    const char binary[] = {*mode, 'b', strchr(mode, '+') ? '+' : '\0', '\0'};
    FILE *stream = fd < 0 ? NULL : _fdopen(fd, binary);
    if (!stream && fd >= 0)
        _close(fd);
    return stream;
}

/* ---- What a file is ---------------------------------------------------------------------------------------------- */

static int describe(HANDLE handle, struct gc_windows_stat *st) {
    BY_HANDLE_FILE_INFORMATION info;
    *st = (struct gc_windows_stat){.st_nlink = 1};
    const DWORD type = GetFileType(handle);
    if (type == FILE_TYPE_PIPE || type == FILE_TYPE_CHAR) {
        st->st_mode = (type == FILE_TYPE_PIPE ? S_IFIFO : S_IFCHR) | 0666;
        st->st_ino = (uint64_t)(uintptr_t)handle;
        return 0;
    }
    if (!GetFileInformationByHandle(handle, &info)) { /* so for the standard streams under wine */
        LARGE_INTEGER size;
        const int err = gc_windows_errno(GetLastError());
        if (type != FILE_TYPE_DISK || !GetFileSizeEx(handle, &size)) {
            errno = err;
            return -1;
        }
        st->st_mode = S_IFREG | 0666;
        st->st_ino = (uint64_t)(uintptr_t)handle;
        st->st_size = size.QuadPart;
        return 0;
    }
    const uint64_t ticks =
        (uint64_t)info.ftLastWriteTime.dwHighDateTime << 32 | (uint64_t)info.ftLastWriteTime.dwLowDateTime;
    const int64_t since_1970 = (int64_t)ticks - INT64_C(116444736000000000); /* in steps of 100 ns */
    st->st_dev = info.dwVolumeSerialNumber;
    st->st_ino = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
    st->st_nlink = info.nNumberOfLinks;
    st->st_size = (int64_t)((uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow);
    st->st_mtim = (struct timespec){since_1970 / 10000000, (long)(since_1970 % 10000000 * 100)};
    st->st_mode = info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT ? S_IFLNK
                  : info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY   ? S_IFDIR | 0777
                                                                       : S_IFREG | 0666;
    if (info.dwFileAttributes & FILE_ATTRIBUTE_READONLY)
        st->st_mode &= ~0222U;
    return 0;
}

static int describe_path(const char *path, DWORD flags, struct gc_windows_stat *st) {
    wchar_t wide[GC_WINDOWS_PATH];
    if (!gc_windows_path(path, wide))
        return -1;
    HANDLE handle = CreateFileW(wide, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return fail();
    const int result = describe(handle, st);
    CloseHandle(handle);
    return result;
}

int gc_windows_stat(const char *path, struct gc_windows_stat *st) {
    return describe_path(path, 0, st);
}

int gc_windows_lstat(const char *path, struct gc_windows_stat *st) {
    return describe_path(path, FILE_FLAG_OPEN_REPARSE_POINT, st);
}

int gc_windows_fstat(int fd, struct gc_windows_stat *st) {
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    if (handle != INVALID_HANDLE_VALUE)
        return describe(handle, st);
    errno = EBADF;
    return -1;
}

int gc_windows_access(const char *path, int mode) {
    struct gc_windows_stat st;
    if (gc_windows_stat(path, &st) != 0)
        return -1;
    if (!(mode & W_OK) || S_ISDIR(st.st_mode) || st.st_mode & 0222U)
        return 0;
    errno = EACCES;
    return -1;
}

/* ---- Names of files ---------------------------------------------------------------------------------------------- */

int gc_windows_unlink(const char *path) {
    wchar_t wide[GC_WINDOWS_PATH];
    return gc_windows_path(path, wide) && (DeleteFileW(wide) || fail() == 0) ? 0 : -1;
}

/* Replaces a file that is open and shares its name: it gets another name for the rest of its life, so that for a moment
 * there is none. @return whether that succeeded */
static bool replace_open(const wchar_t *from, const wchar_t *to) {
    wchar_t aside[GC_WINDOWS_PATH];
    if (_snwprintf(aside, GC_WINDOWS_PATH, L"%ls-old", from) < 0 || !MoveFileExW(to, aside, MOVEFILE_REPLACE_EXISTING))
        return false;
    if (!MoveFileExW(from, to, MOVEFILE_WRITE_THROUGH)) {
        const DWORD code = GetLastError();
        (void)MoveFileExW(aside, to, 0);
        SetLastError(code);
        return false;
    }
    (void)DeleteFileW(aside); /* takes place when its last handle is closed */
    return true;
}

/* Replaces `to`, also while this process reads it, and after a short time in which another process has it open without
 * sharing, such as a scanner for viruses. */
int gc_windows_rename(const char *from, const char *to) {
    wchar_t wide_from[GC_WINDOWS_PATH], wide_to[GC_WINDOWS_PATH];
    if (!gc_windows_path(from, wide_from) || !gc_windows_path(to, wide_to))
        return -1;
    for (int attempt = 0; attempt < 10; attempt++) {
        if (MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
            return 0;
        const DWORD code = GetLastError();
        if (code != ERROR_SHARING_VIOLATION && code != ERROR_ACCESS_DENIED)
            break;
        if (replace_open(wide_from, wide_to))
            return 0;
        Sleep(10);
    }
    return fail();
}

int gc_windows_mkdir(const char *path) {
    wchar_t wide[GC_WINDOWS_PATH];
    return gc_windows_path(path, wide) && (CreateDirectoryW(wide, NULL) || fail() == 0) ? 0 : -1;
}

int gc_windows_rmdir(const char *path) {
    wchar_t wide[GC_WINDOWS_PATH];
    return gc_windows_path(path, wide) && (RemoveDirectoryW(wide) || fail() == 0) ? 0 : -1;
}

char *gc_windows_mkdtemp(char *path) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    char *suffix = path + strlen(path) - 6;
    for (int attempt = 0; attempt < 100; attempt++) {
        const unsigned seed = (unsigned)GetTickCount() * 2654435761U + GetCurrentProcessId() + (unsigned)attempt;
        for (int i = 0; i < 6; i++)
            suffix[i] = digits[seed >> 5 * i & 31];
        if (gc_windows_mkdir(path) == 0)
            return path;
        if (errno != EEXIST)
            break;
    }
    return NULL;
}

char *gc_windows_realpath(const char *path) {
    wchar_t wide[GC_WINDOWS_PATH], full[GC_WINDOWS_PATH];
    char text[3 * GC_WINDOWS_PATH];
    if (!gc_windows_path(path, wide))
        return NULL;
    HANDLE handle = CreateFileW(wide, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        fail();
        return NULL;
    }
    const DWORD length = GetFinalPathNameByHandleW(handle, full, GC_WINDOWS_PATH, FILE_NAME_NORMALIZED);
    CloseHandle(handle);
    if (length == 0 || length >= GC_WINDOWS_PATH || !gc_windows_text(full, text, sizeof text)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    const char *begin = text;
    if (strncmp(begin, "\\\\?\\", 4) == 0 && strncmp(begin, "\\\\?\\UNC\\", 8) != 0)
        begin += 4;
    char *result = _strdup(begin);
    if (result)
        gc_windows_forward_slashes(result);
    return result;
}

/* The target of a link is the end of its chain. */
ssize_t gc_windows_readlink(const char *path, char *to, size_t room) {
    char *real = gc_windows_realpath(path);
    if (!real)
        return -1;
    const size_t length = strlen(real) < room ? strlen(real) : room;
    memcpy(to, real, length);
    free(real);
    return (ssize_t)length;
}

/* ---- Reading and writing ----------------------------------------------------------------------------------------- */

ssize_t gc_windows_pread(int fd, void *bytes, size_t count, int64_t at) {
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    OVERLAPPED place = {.Offset = (DWORD)at, .OffsetHigh = (DWORD)((uint64_t)at >> 32)};
    DWORD got = 0;
    LARGE_INTEGER before = {0}, none = {0};
    const bool kept = SetFilePointerEx(handle, none, &before, FILE_CURRENT) != 0;
    const bool good = ReadFile(handle, bytes, (DWORD)(count < MAX_TRANSFER ? count : MAX_TRANSFER), &got, &place) != 0;
    const DWORD code = good ? 0 : GetLastError();
    if (kept) /* ReadFile has moved it */
        (void)SetFilePointerEx(handle, before, NULL, FILE_BEGIN);
    if (good || code == ERROR_HANDLE_EOF)
        return (ssize_t)got;
    errno = gc_windows_errno(code);
    return -1;
}

ssize_t gc_windows_pwrite(int fd, const void *bytes, size_t count, int64_t at) {
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    OVERLAPPED place = {.Offset = (DWORD)at, .OffsetHigh = (DWORD)((uint64_t)at >> 32)};
    DWORD put = 0;
    LARGE_INTEGER before = {0}, none = {0};
    const bool kept = SetFilePointerEx(handle, none, &before, FILE_CURRENT) != 0;
    const bool good = WriteFile(handle, bytes, (DWORD)(count < MAX_TRANSFER ? count : MAX_TRANSFER), &put, &place) != 0;
    if (!good)
        fail();
    if (kept)
        (void)SetFilePointerEx(handle, before, NULL, FILE_BEGIN);
    return good ? (ssize_t)put : -1;
}

int gc_windows_fcntl(int fd, int command, ...) {
    if (_get_osfhandle(fd) == (intptr_t)INVALID_HANDLE_VALUE || _get_osfhandle(fd) == -2) {
        errno = EBADF;
        return -1;
    }
    if (command != F_DUPFD_CLOEXEC)
        return 0;
    int copy = _dup(fd);
    if (copy >= 0 && copy < 3) { /* above the standard streams, one of which was closed */
        const int low = copy;
        copy = gc_windows_fcntl(fd, F_DUPFD_CLOEXEC, 3);
        _close(low);
    }
    if (copy >= 0)
        (void)_setmode(copy, O_BINARY);
    return copy;
}

/* ---- Folders ----------------------------------------------------------------------------------------------------- */

int gc_windows_alphasort(const struct gc_windows_dirent **a, const struct gc_windows_dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int compare_names(const void *a, const void *b) {
    return gc_windows_alphasort((const struct gc_windows_dirent **)a, (const struct gc_windows_dirent **)b);
}

/* Appends an entry to a list, whose room is the next power of two. @return false without memory */
static bool append_entry(struct gc_windows_dirent ***list, int count, const WIN32_FIND_DATAW *found) {
    struct gc_windows_dirent *entry = malloc(sizeof *entry);
    if (entry && !gc_windows_text(found->cFileName, entry->d_name, sizeof entry->d_name))
        entry->d_name[0] = '\0';
    if (entry && (count & (count - 1)) == 0) {
        struct gc_windows_dirent **larger = realloc((void *)*list, 2 * (size_t)(count + 1) * sizeof *larger);
        if (!larger) {
            free(entry);
            return false;
        }
        *list = larger;
    }
    if (entry)
        (*list)[count] = entry;
    return entry != NULL;
}

int gc_windows_scandir(const char *path, struct gc_windows_dirent ***list,
                       int (*filter)(const struct gc_windows_dirent *),
                       int (*compare)(const struct gc_windows_dirent **, const struct gc_windows_dirent **)) {
    wchar_t wide[GC_WINDOWS_PATH];
    char pattern[GC_WINDOWS_PATH];
    WIN32_FIND_DATAW found;
    int count = 0;
    bool good = true;
    *list = NULL;
    if ((size_t)snprintf(pattern, sizeof pattern, "%s/*", path) >= sizeof pattern || !gc_windows_path(pattern, wide))
        return -1;
    HANDLE search = FindFirstFileW(wide, &found);
    if (search == INVALID_HANDLE_VALUE)
        return fail();
    do {
        if (wcscmp(found.cFileName, L".") == 0 || wcscmp(found.cFileName, L"..") == 0)
            continue;
        good = append_entry(list, count, &found);
        if (good && (!filter || filter((*list)[count])))
            count++;
        else if (good)
            free((*list)[count]);
    } while (good && FindNextFileW(search, &found));
    FindClose(search);
    if (good) {
        if (compare && count > 1)
            qsort((void *)*list, (size_t)count, sizeof **list, compare_names);
        return count;
    }
    for (int i = 0; i < count; i++)
        free((*list)[i]);
    free((void *)*list);
    *list = NULL;
    errno = ENOMEM;
    return -1;
}
