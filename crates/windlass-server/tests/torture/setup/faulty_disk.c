/* A disk with faults, preloaded into a process. While the file WINDLASS_TEST_DISK_FAULT/read-only exists, nothing in
   WINDLASS_TEST_DISK_DIR can be written, as after a remount; while .../slow exists, each sync there takes two seconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int has(const char *fault) {
    const char *dir = getenv("WINDLASS_TEST_DISK_FAULT");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir ? dir : "", fault);
    int before = errno, is_there = dir && access(path, F_OK) == 0;
    errno = before;
    return is_there;
}

static int is_inside(const char *path) {
    const char *dir = getenv("WINDLASS_TEST_DISK_DIR");
    return dir && strncmp(path, dir, strlen(dir)) == 0;
}

static int is_on_disk(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int before = errno;
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return is_inside(path);
}

/* Faults are rare: looking for the fault first keeps the other calls quick. */
static int is_refused(int fd) {
    if (!has("read-only") || !is_on_disk(fd)) return 0;
    errno = EROFS;
    return 1;
}

/* A relative path of a database server is resolved by its working directory, so the opened file is looked at. */
static int checked(int fd, int flags) {
    int writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
    if (fd < 0 || !writes || !is_refused(fd)) return fd;
    REAL(close)(fd);
    errno = EROFS;
    return -1;
}

#define OPEN(function)                                                              \
    int function(const char *path, int flags, ...) {                                \
        va_list rest;                                                               \
        va_start(rest, flags);                                                      \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;      \
        va_end(rest);                                                               \
        /* Nothing may be created or cut before the check. */                       \
        int safe = has("read-only") && is_inside(path) ? flags & ~(O_CREAT | O_TRUNC) : flags; \
        return checked(REAL(function)(path, safe, mode), flags);                    \
    }
OPEN(open)
OPEN(open64)

#define AT(function)                                                          \
    ssize_t function(int fd, const void *data, size_t length, off_t offset) { \
        return is_refused(fd) ? -1 : REAL(function)(fd, data, length, offset); \
    }
AT(pwrite)
AT(pwrite64)

#define VECTOR(function)                                                             \
    ssize_t function(int fd, const struct iovec *parts, int count, off_t offset) {   \
        return is_refused(fd) ? -1 : REAL(function)(fd, parts, count, offset);       \
    }
VECTOR(pwritev)
VECTOR(pwritev64)

ssize_t write(int fd, const void *data, size_t length) { return is_refused(fd) ? -1 : REAL(write)(fd, data, length); }

#define TRUNCATE(function) \
    int function(int fd, off_t length) { return is_refused(fd) ? -1 : REAL(function)(fd, length); }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

int posix_fallocate(int fd, off_t from, off_t length) {
    return is_refused(fd) ? EROFS : REAL(posix_fallocate)(fd, from, length);
}

int unlink(const char *path) {
    if (has("read-only") && is_inside(path)) {
        errno = EROFS;
        return -1;
    }
    return REAL(unlink)(path);
}

#define SYNC(function)                                      \
    int function(int fd) {                                  \
        if (has("slow") && is_on_disk(fd)) usleep(2000000); \
        return REAL(function)(fd);                          \
    }
SYNC(fsync)
SYNC(fdatasync)
