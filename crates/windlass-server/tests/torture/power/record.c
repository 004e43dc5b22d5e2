/* Records, in order, every change and every sync of the files in WINDLASS_TEST_RECORD_DIR, before the caller goes on.
   Preloaded into the real binary. One record: operation, length of the name, offset, length of the data, name, data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define FILES 4096

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static char *names[FILES];
static int trace = -2;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char *recorded(const char *path) {
    const char *dir = getenv("WINDLASS_TEST_RECORD_DIR");
    size_t length = dir ? strlen(dir) : 0;
    if (!length || strncmp(path, dir, length) != 0) return NULL;
    if (!path[length]) return ".";
    if (path[length] != '/') return NULL;
    const char *name = path + length + 1;
    /* Shared memory and locks are gone after a power cut. */
    if (strstr(name, "-shm") || strstr(name, ".lock")) return NULL;
    return name;
}

static void put(char operation, const char *name, int64_t offset, const void *data, int64_t length) {
    if (trace == -2) trace = REAL(open)(getenv("WINDLASS_TEST_RECORD"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char head[1 + 2 + 8 + 8];
    uint16_t size = strlen(name);
    head[0] = operation;
    memcpy(head + 1, &size, 2);
    memcpy(head + 3, &offset, 8);
    memcpy(head + 11, &length, 8);
    ssize_t (*out)(int, const void *, size_t) = REAL(write);
    int64_t carried = data ? length : 0;
    if (out(trace, head, sizeof head) != sizeof head || out(trace, name, size) != size ||
        (carried && out(trace, data, carried) != carried))
        abort();
}

static const char *of(int fd) { return fd >= 0 && fd < FILES ? names[fd] : NULL; }

static int opened(const char *path, int flags, int is_new, int fd) {
    const char *name = fd >= 0 && fd < FILES ? recorded(path) : NULL;
    if (name) {
        pthread_mutex_lock(&gate);
        free(names[fd]);
        names[fd] = strdup(name);
        if (is_new && (flags & O_CREAT)) put('C', name, 0, NULL, 0);
        if (!is_new && (flags & O_TRUNC)) put('T', name, 0, NULL, 0);
        pthread_mutex_unlock(&gate);
    }
    return fd;
}

#define OPEN(function)                                                         \
    int function(const char *path, int flags, ...) {                           \
        va_list rest;                                                          \
        va_start(rest, flags);                                                 \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                          \
        int is_new = recorded(path) && access(path, F_OK) != 0;                \
        return opened(path, flags, is_new, REAL(function)(path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)

#define AT(function)                                                                           \
    ssize_t function(int fd, const void *data, size_t length, off_t offset) {                  \
        if (!of(fd)) return REAL(function)(fd, data, length, offset);                          \
        pthread_mutex_lock(&gate);                                                             \
        ssize_t done = REAL(function)(fd, data, length, offset);                               \
        if (done > 0) put('W', of(fd), offset, data, done);                                    \
        pthread_mutex_unlock(&gate);                                                           \
        return done;                                                                           \
    }
AT(pwrite)
AT(pwrite64)

ssize_t write(int fd, const void *data, size_t length) {
    if (!of(fd)) return REAL(write)(fd, data, length);
    pthread_mutex_lock(&gate);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t done = REAL(write)(fd, data, length);
    if (done > 0) put('W', of(fd), offset, data, done);
    pthread_mutex_unlock(&gate);
    return done;
}

#define TRUNCATE(function)                                          \
    int function(int fd, off_t length) {                            \
        if (!of(fd)) return REAL(function)(fd, length);             \
        pthread_mutex_lock(&gate);                                  \
        int done = REAL(function)(fd, length);                      \
        if (done == 0) put('T', of(fd), length, NULL, 0);           \
        pthread_mutex_unlock(&gate);                                \
        return done;                                                \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define SYNC(function)                                     \
    int function(int fd) {                                 \
        if (!of(fd)) return REAL(function)(fd);            \
        pthread_mutex_lock(&gate);                         \
        int done = REAL(function)(fd);                     \
        if (done == 0) put('S', of(fd), 0, NULL, 0);       \
        pthread_mutex_unlock(&gate);                       \
        return done;                                       \
    }
SYNC(fsync)
SYNC(fdatasync)

int unlink(const char *path) {
    const char *name = recorded(path);
    if (!name) return REAL(unlink)(path);
    pthread_mutex_lock(&gate);
    int done = REAL(unlink)(path);
    if (done == 0) put('U', name, 0, NULL, 0);
    pthread_mutex_unlock(&gate);
    return done;
}

int close(int fd) {
    if (of(fd)) {
        pthread_mutex_lock(&gate);
        free(names[fd]);
        names[fd] = NULL;
        pthread_mutex_unlock(&gate);
    }
    return REAL(close)(fd);
}
