/* Writes down what a program hands to the CUDA driver: modules, launches, tensor maps.

   `memmodel record` builds this library and lets the loader put it in front of the driver (LD_PRELOAD). In: the folder in
   MEMMODEL_RECORD. Out: files there. `ID.jsonl` has a line of JSON for each distinct launch and tensor map of the process
   ID; `image-HASH-SIZE` is what a module was loaded from.

   Settled here: the program does not notice. Every call goes on as it came, and its result comes back as it is. Memory of
   the program is read through the kernel, which refuses a bad address where we would crash. No file stays open, nothing is
   waited for without an end, signals wait while the tables are locked, errno stays. A line is written by one call, before
   the launch that it tells of: what a crash leaves is whole. What cannot be written down is left out, and a line says so.

   No header of CUDA is needed: sources of the types are "cuda.h" and the CUDA Driver API, "Module Management", "Library
   Management", "Execution Control", "Memory Management", "Tensor Map Object Management", "Driver Entry Point Access". */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int CUresult;
typedef void *Handle;
typedef unsigned long long Address;

enum { SUCCESS = 0, NOT_INITIALIZED = 3 };

/* Bounds. What lies beyond them is left out. */
#define MOST_IMAGE ((size_t)512 << 20)
#define MOST_PARAM_BYTES ((size_t)32 << 10)
#define MOST_PARAMS 4096
#define MOST_ATTRIBUTES 64
#define MOST_LAUNCHES 20000
#define MOST_OF_KERNEL 64
#define MOST_MAPS 20000
#define MOST_NAME 4096
#define PATIENCE 2 /* seconds for the lock, which nobody holds for long */

/* ---- the functions that are watched -------------------------------------------------------------------------------

   Each has the name that the driver exports, the name by which cuGetProcAddress knows it, the first version of CUDA in
   which that name has this meaning and the one in which it no longer has it, and which default stream it means: -1 where
   it makes no difference, 1 for the stream of the thread. */

#define LATER 14000 /* a version of which nobody knows today what its names mean */

#define WATCHED(each)                                                             \
    each(cuGetProcAddress, cuGetProcAddress, 11030, 12000, -1)                    \
    each(cuGetProcAddress_v2, cuGetProcAddress, 12000, LATER, -1)                 \
    each(cuModuleLoad, cuModuleLoad, 2000, LATER, -1)                             \
    each(cuModuleLoadData, cuModuleLoadData, 2000, LATER, -1)                     \
    each(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, LATER, -1)                 \
    each(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, LATER, -1)           \
    each(cuModuleUnload, cuModuleUnload, 2000, LATER, -1)                         \
    each(cuModuleGetFunction, cuModuleGetFunction, 2000, LATER, -1)               \
    each(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040, LATER, -1) \
    each(cuLibraryLoadData, cuLibraryLoadData, 12000, LATER, -1)                  \
    each(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, LATER, -1)          \
    each(cuLibraryUnload, cuLibraryUnload, 12000, LATER, -1)                      \
    each(cuLibraryGetKernel, cuLibraryGetKernel, 12000, LATER, -1)                \
    each(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, LATER, -1)  \
    each(cuLibraryGetModule, cuLibraryGetModule, 12000, LATER, -1)                \
    each(cuKernelGetFunction, cuKernelGetFunction, 12000, LATER, -1)              \
    each(cuLaunchKernel, cuLaunchKernel, 4000, LATER, 0)                          \
    each(cuLaunchKernel_ptsz, cuLaunchKernel, 7000, LATER, 1)                     \
    each(cuLaunchKernelEx, cuLaunchKernelEx, 11060, LATER, 0)                     \
    each(cuLaunchKernelEx_ptsz, cuLaunchKernelEx, 11060, LATER, 1)                \
    each(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, LATER, 0)    \
    each(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel, 9000, LATER, 1) \
    each(cuGraphAddKernelNode_v2, cuGraphAddKernelNode, 12000, LATER, -1)         \
    each(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled, 12000, LATER, -1)        \
    each(cuTensorMapReplaceAddress, cuTensorMapReplaceAddress, 12000, LATER, -1)  \
    each(cuMemAlloc_v2, cuMemAlloc, 3020, LATER, -1)                              \
    each(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, LATER, -1)                    \
    each(cuMemAllocManaged, cuMemAllocManaged, 6000, LATER, -1)                   \
    each(cuMemAllocAsync, cuMemAllocAsync, 11020, LATER, 0)                       \
    each(cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020, LATER, 1)                  \
    each(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, LATER, 0)       \
    each(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync, 11020, LATER, 1)  \
    each(cuMemAllocHost_v2, cuMemAllocHost, 3020, LATER, -1)                      \
    each(cuMemHostAlloc, cuMemHostAlloc, 2020, LATER, -1)                         \
    each(cuMemHostRegister_v2, cuMemHostRegister, 6050, LATER, -1)                \
    each(cuMemMap, cuMemMap, 10020, LATER, -1)                                    \
    each(cuMemFree_v2, cuMemFree, 3020, LATER, -1)                                \
    each(cuMemFreeAsync, cuMemFreeAsync, 11020, LATER, 0)                         \
    each(cuMemFreeAsync_ptsz, cuMemFreeAsync, 11020, LATER, 1)                    \
    each(cuMemFreeHost, cuMemFreeHost, 2000, LATER, -1)                           \
    each(cuMemHostUnregister, cuMemHostUnregister, 4000, LATER, -1)               \
    each(cuMemUnmap, cuMemUnmap, 10020, LATER, -1)

#define NUMBER(symbol, base, since, until, own_stream) N_##symbol,
enum { WATCHED(NUMBER) COUNT };

static void *const OURS[COUNT];

typedef struct {
    const char *symbol, *base;
    int since, until, own_stream;
    void *given; /* what the program got from the driver for this name, last */
} Slot;

#define ROW(symbol, base, since, until, own_stream) {#symbol, #base, since, until, own_stream, NULL},
static Slot slots[COUNT] = {WATCHED(ROW)};

typedef void *Find(void *, const char *);

static Find *real_dlsym(void) {
    static Find *known;
    if (!known) {
        static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27", "GLIBC_2.0"};
        for (size_t at = 0; at < sizeof versions / sizeof *versions && !known; at++)
            known = (Find *)dlvsym(RTLD_NEXT, "dlsym", versions[at]);
    }
    return known;
}

static int in_driver(void *function) {
    Dl_info info;
    if (!function || !dladdr(function, &info) || !info.dli_fname) return 0;
    const char *slash = strrchr(info.dli_fname, '/');
    return strncmp(slash ? slash + 1 : info.dli_fname, "libcuda.so", 10) == 0;
}

/* A function of the driver that is loaded; NULL if there is none. It stays loaded as long as we may call it. */
static void *of_driver(const char *symbol) {
    static void *driver;
    Find *find = real_dlsym();
    if (!find) return NULL;
    if (!driver) driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    for (int at = 0; at < COUNT && !driver; at++) {
        Dl_info info;
        if (in_driver(slots[at].given) && dladdr(slots[at].given, &info))
            driver = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
    return driver ? find(driver, symbol) : NULL;
}

/* What is asked of the driver; NULL where it is too old. Looked up before the tables are locked: the loader has a lock, too. */
enum { FUNCTION_PARAM, KERNEL_PARAM, FUNCTION_NAME, KERNEL_NAME, ADDRESS_RANGE, QUESTIONS };
static void *questions[QUESTIONS];

static void look_up_questions(void) {
    static const char *const symbols[QUESTIONS] = {"cuFuncGetParamInfo", "cuKernelGetParamInfo", "cuFuncGetName", "cuKernelGetName",
                                                   "cuMemGetAddressRange_v2"};
    static int done;
    if (__atomic_load_n(&done, __ATOMIC_ACQUIRE)) return;
    for (int at = 0; at < QUESTIONS; at++) __atomic_store_n(&questions[at], of_driver(symbols[at]), __ATOMIC_RELAXED);
    if (of_driver("cuDriverGetVersion")) __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

/* Is this address in a file that the loader has mapped, and stays there? */
static int in_program(const void *address) {
    Dl_info where;
    return dladdr(address, &where) != 0;
}

/* Calls of watched functions that this thread is in: what the driver calls itself is not watched. */
static __thread int depth __attribute__((tls_model("initial-exec")));

/* Where a call goes on: to what the program would have called without us. */
static void *target(int number) {
    Slot *slot = &slots[number];
    void *given = __atomic_load_n(&slot->given, __ATOMIC_ACQUIRE);
    if (depth == 0 && given) return given;
    if (depth == 0) {
        Find *find = real_dlsym();
        void *next = find ? find(RTLD_NEXT, slot->symbol) : NULL;
        if (!next) next = of_driver(slot->symbol);
        if (next) __atomic_store_n(&slot->given, next, __ATOMIC_RELEASE);
        return next;
    }
    void *function = of_driver(slot->symbol); /* called from within: another tool that wraps the driver, too */
    return function ? function : given;
}

/* What the program gets in place of a function that it looked up. */
static void *in_place_of(int number, void *function) {
    if (function == OURS[number]) return target(number) ? function : NULL;
    if (!in_driver(function)) return function;
    __atomic_store_n(&slots[number].given, function, __ATOMIC_RELEASE);
    return OURS[number];
}

EXPORT void *dlsym(void *restrict handle, const char *restrict name) {
    Find *find = real_dlsym();
    if (!find) return NULL;
    if (handle != RTLD_NEXT && name[0] == 'c' && name[1] == 'u')
        for (int at = 0; at < COUNT; at++)
            if (strcmp(name, slots[at].symbol) == 0) return in_place_of(at, find(handle, name));
    return find(handle, name); /* the last call of this function: RTLD_NEXT asks who called */
}

/* ---- reading and writing ------------------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int given_up, held_for_fork;
static const char *folder;

typedef struct {
    sigset_t before;
    int cancel, error;
} Entered;

static int hold(void) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE;
    if (given_up) return 0;
    if (pthread_mutex_timedlock(&lock, &end) == 0) return 1;
    given_up = 1;
    return 0;
}

static void before_fork(void) { held_for_fork = hold(); }

static void in_parent(void) {
    if (held_for_fork) pthread_mutex_unlock(&lock);
}

static void in_child(void) {
    if (!held_for_fork) given_up = 1; /* the tables may be half changed */
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
}

static void prepare(void) {
    const char *named = getenv("MEMMODEL_RECORD");
    if (named && *named == '/' && strlen(named) < PATH_MAX - 100) folder = strdup(named);
    pthread_atfork(before_fork, in_parent, in_child);
}

/* Take the tables. 0: nothing is to be written down. */
static int enter(Entered *entered) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sigset_t all;
    entered->error = errno;
    pthread_once(&once, prepare);
    if (!folder || given_up) return 0;
    look_up_questions();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &entered->before);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &entered->cancel);
    if (hold()) return 1;
    pthread_setcancelstate(entered->cancel, NULL);
    pthread_sigmask(SIG_SETMASK, &entered->before, NULL);
    errno = entered->error;
    return 0;
}

static void leave(Entered *entered) {
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(entered->cancel, NULL);
    pthread_sigmask(SIG_SETMASK, &entered->before, NULL);
    errno = entered->error;
}

/* Copy memory of the program. 0 if a part of it cannot be read. */
static int copy(void *to, const void *from, size_t size) {
    struct iovec here = {to, size}, there = {(void *)from, size};
    if (size == 0) return 1;
    if (!from || (uintptr_t)from + size < (uintptr_t)from) return 0;
    ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (got >= 0 || errno == EFAULT) return got == (ssize_t)size;
    int ends[2]; /* this system does not allow it: a pipe refuses bad addresses, too */
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return 0;
    size_t done = 0;
    while (done < size) {
        size_t part = size - done < 4096 ? size - done : 4096;
        ssize_t put = write(ends[1], (const char *)from + done, part);
        if (put <= 0 || read(ends[0], (char *)to + done, (size_t)put) != put) break;
        done += (size_t)put;
    }
    close(ends[0]);
    close(ends[1]);
    return done == size;
}

/* Append to a file, or do nothing. 0 if it was not written. */
static int append(const char *path, const void *data, size_t size) {
    struct rlimit most;
    struct stat is;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return 0;
    int fits = fstat(file, &is) == 0 && S_ISREG(is.st_mode) && getrlimit(RLIMIT_FSIZE, &most) == 0 &&
               (most.rlim_cur == RLIM_INFINITY || (rlim_t)is.st_size + size <= most.rlim_cur); /* beyond it, a signal ends the program */
    int done = fits && write(file, data, size) == (ssize_t)size;
    close(file);
    return done;
}

typedef struct {
    char *data;
    size_t used, room;
    int failed;
} Text;

static void put(Text *text, const char *format, ...) {
    char piece[512];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(piece, sizeof piece, format, values);
    va_end(values);
    if (length < 0 || length >= (int)sizeof piece) {
        text->failed = 1;
        return;
    }
    if (text->used + (size_t)length + 1 > text->room) {
        size_t room = 2 * text->room + (size_t)length + 1024;
        char *data = realloc(text->data, room);
        if (!data) {
            text->failed = 1;
            return;
        }
        text->data = data;
        text->room = room;
    }
    memcpy(text->data + text->used, piece, (size_t)length + 1);
    text->used += (size_t)length;
}

static void put_hex(Text *text, const void *data, size_t size) {
    put(text, "\"");
    for (size_t at = 0; at < size; at++) put(text, "%02x", ((const unsigned char *)data)[at]);
    put(text, "\"");
}

/* Write a line, and forget it. */
static void finish(Text *text) {
    char path[PATH_MAX];
    put(text, "}\n");
    snprintf(path, sizeof path, "%s/%ld.jsonl", folder, (long)getpid());
    if (!text->failed) append(path, text->data, text->used);
    free(text->data);
}

/* Say what is left out, each reason once. */
static void left_out(const char *why) {
    static const char *said[8];
    Text text = {0};
    for (size_t at = 0; at < 8; at++) {
        if (said[at] == why) return;
        if (!said[at]) {
            said[at] = why;
            put(&text, "{\"left_out\": \"%s\"", why);
            finish(&text);
            return;
        }
    }
}

static uint64_t hashed(uint64_t hash, const void *data, size_t size) {
    for (size_t at = 0; at < size; at++) hash = (hash ^ ((const unsigned char *)data)[at]) * 0x100000001b3u;
    return hash;
}

#define EMPTY_HASH 0xcbf29ce484222325u

/* ---- tables ------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t key;
    void *value;
} Cell;

typedef struct {
    Cell *cells;
    size_t room, used;
} Table;

static Cell *cell_of(Table *table, uint64_t key) {
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (table->room - 1);
    while (table->cells[at].value && table->cells[at].key != key) at = (at + 1) & (table->room - 1);
    return &table->cells[at];
}

static void *get(Table *table, uint64_t key) { return table->room ? cell_of(table, key)->value : NULL; }

/* Set a value. 0 if there is no room for it. */
static int set(Table *table, uint64_t key, void *value) {
    if (2 * table->used >= table->room) {
        Table larger = {calloc(table->room ? 2 * table->room : 256, sizeof(Cell)), table->room ? 2 * table->room : 256, table->used};
        if (!larger.cells) return 0;
        for (size_t at = 0; at < table->room; at++)
            if (table->cells[at].value) *cell_of(&larger, table->cells[at].key) = table->cells[at];
        free(table->cells);
        *table = larger;
    }
    Cell *cell = cell_of(table, key);
    table->used += cell->value == NULL;
    cell->key = key;
    cell->value = value;
    return 1;
}

/* What a module was loaded from. `text`: a copy, of PTX. `lies`: where it stays in the program; it is written when a kernel
   of it is launched. */
typedef struct {
    char name[64]; /* of its file; empty until it is written */
    char *text;
    const void *lies;
    size_t size;
    int unreadable;
} Image;

/* A kernel: its module and its name. */
typedef struct {
    Image *image;
    char *name;
    int launches; /* those that were written down */
} Kernel;

/* A CUfunction or a CUkernel. `kernel` NULL: nobody has said its name yet. */
typedef struct {
    Kernel *kernel;
    Image *image;
    Handle module;
    int of_library; /* a CUkernel */
} Function;

typedef struct {
    uint64_t base, size;
} Range;

static Table images, functions, launches, maps; /* by handle, by handle, by what differs, by their bytes */
static Table written, kernels;                  /* images by content; kernels by image and name */
static Range *ranges;
static size_t range_count, range_room;

static size_t range_at(uint64_t address) { /* the number of ranges that begin at or below it */
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].base <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void forget_range(uint64_t base) {
    size_t at = range_at(base);
    if (at == 0 || ranges[at - 1].base != base) return;
    memmove(ranges + at - 1, ranges + at, (range_count - at) * sizeof *ranges);
    range_count--;
}

static void remember_range(uint64_t base, uint64_t size) {
    if (size == 0 || base + size < base) return;
    forget_range(base);
    if (range_count == range_room) {
        size_t room = range_room ? 2 * range_room : 256;
        Range *larger = realloc(ranges, room * sizeof *ranges);
        if (!larger) return;
        ranges = larger;
        range_room = room;
    }
    size_t at = range_at(base);
    memmove(ranges + at + 1, ranges + at, (range_count - at) * sizeof *ranges);
    ranges[at] = (Range){base, size};
    range_count++;
}

static Range known_range(uint64_t address) {
    size_t at = range_at(address);
    if (at && address - ranges[at - 1].base < ranges[at - 1].size) return ranges[at - 1];
    return (Range){0, 0};
}

/* ---- modules ------------------------------------------------------------------------------------------------------ */

#define WRAPPER 0x466243b1u
#define FATBIN 0xba55ed50u
#define ELF 0x464c457fu

/* The bytes of an image, by what stands in it; 0 if that says nothing. */
static size_t size_of(const void *image, uint32_t first) {
    if (first == FATBIN) {
        struct { uint32_t magic; uint16_t version, header; uint64_t size; } head;
        return copy(&head, image, sizeof head) && head.size < MOST_IMAGE ? head.header + (size_t)head.size : 0;
    }
    if (first == ELF) {
        unsigned char head[64], section[64];
        uint64_t programs, sections, offset, size, end = 0;
        uint16_t sizes[4];
        if (!copy(head, image, sizeof head) || head[4] != 2) return 0;
        memcpy(&programs, head + 32, 8);
        memcpy(&sections, head + 40, 8);
        memcpy(sizes, head + 54, 8); /* size and number of program headers, then of section headers */
        if (programs > MOST_IMAGE || sections > MOST_IMAGE || (sizes[3] && sizes[2] < 64)) return 0;
        end = sections + (uint64_t)sizes[2] * sizes[3];
        if (programs + (uint64_t)sizes[0] * sizes[1] > end) end = programs + (uint64_t)sizes[0] * sizes[1];
        for (unsigned at = 0; at < sizes[3]; at++) {
            if (!copy(section, (const char *)image + sections + (uint64_t)at * sizes[2], sizeof section)) return 0;
            uint32_t type;
            memcpy(&type, section + 4, 4);
            memcpy(&offset, section + 24, 8);
            memcpy(&size, section + 32, 8);
            if (type == 8) continue; /* SHT_NOBITS */
            if (offset > MOST_IMAGE || size > MOST_IMAGE) return 0;
            if (offset + size > end) end = offset + size;
        }
        return end <= MOST_IMAGE ? (size_t)end : 0;
    }
    char piece[4096];
    for (size_t size = 0; size < MOST_IMAGE;) { /* text ends with a zero */
        size_t part = sizeof piece - ((uintptr_t)image + size) % sizeof piece; /* never into the next page */
        if (!copy(piece, (const char *)image + size, part)) return 0;
        const char *zero = memchr(piece, 0, part);
        if (zero) return size + (size_t)(zero - piece);
        size += part;
    }
    return 0;
}

static void write_image(Image *image) {
    char path[PATH_MAX], part[PATH_MAX + 32], piece[65536];
    uint64_t hash = EMPTY_HASH;
    if (image->name[0] || image->unreadable) return;
    image->unreadable = 1;
    for (size_t at = 0, size; at < image->size; at += size) {
        size = image->size - at < sizeof piece ? image->size - at : sizeof piece;
        if (!copy(piece, (const char *)image->lies + at, size)) return;
        hash = hashed(hash, piece, size);
    }
    char name[64];
    snprintf(name, sizeof name, "image-%016llx-%zu", (unsigned long long)hash, image->size);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
    if (access(path, F_OK) != 0) {
        unlink(part);
        for (size_t at = 0, size; at < image->size; at += size) {
            size = image->size - at < sizeof piece ? image->size - at : sizeof piece;
            if (!copy(piece, (const char *)image->lies + at, size) || !append(part, piece, size)) {
                unlink(part);
                left_out("a module that could not be written");
                return;
            }
        }
        if (rename(part, path) != 0) return;
    }
    strcpy(image->name, name);
    image->unreadable = 0;
}

/* The image whose copy this is: the same for the same content. */
static Image *copied_image(char *text, size_t size, int binary) {
    Image *image = calloc(1, sizeof *image);
    if (!image) {
        free(text);
        return NULL;
    }
    image->size = size;
    image->lies = text;
    write_image(image);
    uint64_t key = hashed(EMPTY_HASH, image->name, strlen(image->name));
    Image *before = image->name[0] ? get(&written, key) : NULL;
    if (before || binary) free(text);
    if (before) {
        free(image);
        return before;
    }
    if (!binary) image->text = text;
    if (image->name[0]) set(&written, key, image);
    return image;
}

static int is_binary(uint32_t first) { return first == FATBIN || first == ELF; }

/* What a module is loaded from. `stays`: it is a part of the program. */
static Image *image_of(const void *code, int stays) {
    char beginning[4] = {0};
    uint32_t first;
    for (int deep = 0; deep < 2 && copy(&first, code, sizeof first) && first == WRAPPER; deep++) {
        const void *inner;
        if (!copy(&inner, (const char *)code + 8, sizeof inner)) return NULL;
        code = inner;
    }
    if (!copy(beginning, code, sizeof beginning) && !copy(beginning, code, 1)) return NULL; /* a text may be shorter */
    memcpy(&first, beginning, sizeof first);
    size_t size = size_of(code, first);
    if (size == 0) {
        left_out("a module whose size is not known");
        return NULL;
    }
    if (is_binary(first) && stays) { /* written when a kernel of it is launched */
        uint64_t key = hashed(EMPTY_HASH, &code, sizeof code);
        Image *image = get(&written, key);
        if (!image && (image = calloc(1, sizeof *image))) {
            image->size = size;
            image->lies = code;
            set(&written, key, image);
        }
        return image;
    }
    char *text = malloc(size + 1);
    if (!text || !copy(text, code, size)) {
        free(text);
        return NULL;
    }
    text[size] = 0;
    return copied_image(text, size, is_binary(first));
}

static Image *image_of_file(const char *path) {
    struct stat is;
    char name[PATH_MAX];
    size_t length = 0;
    while (length < sizeof name - 1 && copy(name + length, path + length, 1) && name[length]) length++;
    name[length] = 0;
    int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return NULL;
    Image *image = NULL;
    if (fstat(file, &is) == 0 && S_ISREG(is.st_mode) && is.st_size >= 4 && (size_t)is.st_size < MOST_IMAGE) {
        size_t size = (size_t)is.st_size;
        char *text = malloc(size + 1);
        uint32_t first;
        if (text && read(file, text, size) == is.st_size) {
            text[size] = 0;
            memcpy(&first, text, sizeof first);
            image = copied_image(text, size, is_binary(first));
        } else {
            free(text);
        }
    }
    close(file);
    return image;
}

static void remember_module(const Handle *module, Image *image) {
    Handle handle = NULL;
    if (image && copy(&handle, module, sizeof handle) && handle) set(&images, (uintptr_t)handle, image);
}

static void forget_module(Handle module) {
    for (size_t at = 0; at < functions.room; at++) {
        Function *function = functions.cells[at].value;
        if (function && function->module == module) function->image = NULL, function->kernel = NULL, function->module = NULL;
    }
}

static Kernel *kernel_of(Image *image, const char *name) {
    char text[MOST_NAME];
    size_t length = 0;
    while (length < sizeof text - 1 && copy(text + length, name + length, 1) && text[length]) length++;
    text[length] = 0;
    uint64_t key = hashed(hashed(EMPTY_HASH, &image, sizeof image), text, length);
    Kernel *kernel = get(&kernels, key);
    if (kernel || length == 0 || !image) return kernel;
    kernel = calloc(1, sizeof *kernel);
    if (!kernel) return NULL;
    kernel->image = image;
    kernel->name = strdup(text);
    if (!kernel->name || !set(&kernels, key, kernel)) return NULL;
    return kernel;
}

static void remember_function(const Handle *at, Handle module, const char *name, int of_library) {
    Handle handle = NULL;
    if (!copy(&handle, at, sizeof handle) || !handle) return;
    Function *function = get(&functions, (uintptr_t)handle);
    if (!function) function = calloc(1, sizeof *function);
    if (!function) return;
    function->image = get(&images, (uintptr_t)module);
    function->kernel = name ? kernel_of(function->image, name) : NULL;
    function->module = module;
    function->of_library = of_library;
    set(&functions, (uintptr_t)handle, function);
}

/* ---- parameters --------------------------------------------------------------------------------------------------- */

typedef CUresult ParamInfo(Handle, size_t, size_t *, size_t *);

static const char *past_space(const char *at) {
    for (;;) {
        while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
        if (at[0] == '/' && at[1] == '/') {
            while (*at && *at != '\n') at++;
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at, "*/");
            if (!end) return at + strlen(at);
            at = end + 2;
        } else {
            return at;
        }
    }
}

static int in_name(char letter) {
    return letter == '_' || letter == '$' || letter == '%' || (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z');
}

/* The sizes of the parameters of an entry, from the text of its PTX. Returns how many there are; -1 if that is not clear. */
static int declared_sizes(const char *text, const char *name, size_t *sizes) {
    size_t length = strlen(name);
    const char *at = text;
    while ((at = strstr(at, ".entry")) != NULL) {
        at = past_space(at + 6);
        if (strncmp(at, name, length) == 0 && !in_name(at[length])) break;
    }
    if (!at) return -1;
    at = past_space(at + length);
    if (*at != '(') return 0;
    int count = 0;
    at = past_space(at + 1);
    while (*at && *at != ')') {
        size_t size = 0, elements = 1;
        while (*at && *at != ',' && *at != ')') {
            if (*at == '.') {
                unsigned bits;
                char kind;
                if (sscanf(at, ".%c%u", &kind, &bits) == 2 && strchr("bsuf", kind) && bits % 8 == 0) size = bits / 8;
                at++;
                while (in_name(*at)) at++;
            } else if (*at == '[') {
                elements = strtoul(at + 1, NULL, 0);
                while (*at && *at != ']') at++;
                if (*at) at++;
            } else {
                while (in_name(*at)) at++;
                if (*at && !strchr(" \t\r\n/.,)[", *at)) return -1;
            }
            const char *next = past_space(at);
            if (next == at && *at == '/') return -1;
            at = next;
        }
        if (size == 0 || elements == 0 || elements > MOST_PARAM_BYTES || count == MOST_PARAMS) return -1;
        sizes[count++] = size * elements;
        if (*at == ',') at = past_space(at + 1);
    }
    return *at ? count : -1;
}

/* The sizes of the parameters of a kernel: the driver knows them since CUDA 12.4, and a text of PTX says them. */
static int param_sizes(Handle handle, const Function *function, size_t *sizes) {
    ParamInfo *info = (ParamInfo *)questions[function->of_library ? KERNEL_PARAM : FUNCTION_PARAM];
    for (int count = 0; info && count < MOST_PARAMS; count++) {
        size_t offset = 0;
        if (info(handle, (size_t)count, &offset, &sizes[count]) == SUCCESS) continue;
        if (count) return count;
        break;
    }
    return function->image->text ? declared_sizes(function->image->text, function->kernel->name, sizes) : -1;
}

/* ---- launches ----------------------------------------------------------------------------------------------------- */

typedef struct {
    unsigned grid[3], block[3], shared, cluster[3];
    int cooperative, programmatic;
    Handle stream;
} Shape;

typedef struct {
    unsigned char *bytes;
    size_t sizes[MOST_PARAMS];
    size_t used;
    int count; /* -1: nobody knows */
    int packed;
} Values;

static void read_values(Values *values, Handle handle, const Function *function, void **params, void **extra) {
    values->used = 0;
    values->packed = 0;
    values->count = -1;
    void *words[5] = {0};
    if (!params && extra) { /* one buffer: CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, in any order */
        const void *buffer = NULL;
        size_t size = 0;
        for (int at = 0; at < 2 && copy(words, extra + 2 * at, 2 * sizeof *words) && words[0]; at++) {
            if (words[0] == (void *)1) buffer = words[1];
            if (words[0] == (void *)2 && !copy(&size, words[1], sizeof size)) return;
        }
        if (!buffer || size > MOST_PARAM_BYTES || !copy(values->bytes, buffer, size)) return;
        values->used = values->sizes[0] = size;
        values->count = values->packed = 1;
        return;
    }
    int count = param_sizes(handle, function, values->sizes);
    for (int at = 0; at < count; at++) {
        const void *from;
        if (values->sizes[at] > MOST_PARAM_BYTES - values->used) return;
        if (!copy(&from, params + at, sizeof from) || !copy(values->bytes + values->used, from, values->sizes[at])) return;
        values->used += values->sizes[at];
    }
    values->count = count;
}

/* Where what a parameter points to lies: seen when it was allocated, or as the driver knows it. */
static Range range_of(uint64_t address) {
    Range range = known_range(address);
    CUresult (*asked)(Address *, size_t *, Address) = (CUresult(*)(Address *, size_t *, Address))questions[ADDRESS_RANGE];
    if (range.size || !asked || address < 65536 || address >> 57) return range;
    Address base = 0;
    size_t size = 0;
    CUresult result = asked(&base, &size, address);
    return result == SUCCESS && base <= address && address - base < size ? (Range){base, size} : range;
}

/* The launches that each stream saw last. */
static struct { Handle stream; int number; } last[64];

static int after(Handle stream, int number) {
    size_t at = (size_t)((uintptr_t)stream * 0x9e3779b97f4a7c15u >> 32) % 64;
    int before = last[at].stream == stream ? last[at].number : 0;
    last[at].stream = stream;
    last[at].number = number;
    return before;
}

static int number_of_launches;

/* What is to be said when a launch has returned. `number`: the line that was written for it, if one was. `missing`: why
   none was. */
typedef struct {
    int number;
    uint64_t key;
    const char *missing;
} Noted;

/* Write a launch down, unless one like it was. */
static void note_launch(Handle handle, const Shape *shape, void **params, void **extra, Noted *noted) {
    static unsigned char bytes[MOST_PARAM_BYTES];
    static Values values = {.bytes = bytes};
    Function *function = get(&functions, (uintptr_t)handle);
    if (!function || !function->image) {
        noted->missing = "launches of kernels whose module was loaded out of sight";
        after(shape->stream, 0);
        return;
    }
    CUresult (*name_of)(const char **, Handle) =
        (CUresult(*)(const char **, Handle))questions[function->of_library ? KERNEL_NAME : FUNCTION_NAME];
    const char *name = NULL;
    if (!function->kernel && name_of && name_of(&name, handle) == SUCCESS) function->kernel = kernel_of(function->image, name);
    Kernel *kernel = function->kernel;
    if (!kernel) {
        noted->missing = "launches of kernels whose name the driver does not say";
        after(shape->stream, 0);
        return;
    }
    read_values(&values, handle, function, params, extra);
    uint64_t key = hashed(EMPTY_HASH, &kernel, sizeof kernel);
    key = hashed(key, shape->grid, sizeof shape->grid);
    key = hashed(key, shape->block, sizeof shape->block);
    key = hashed(key, shape->cluster, sizeof shape->cluster);
    key = hashed(key, &shape->shared, sizeof shape->shared);
    key = hashed(key, values.bytes, values.used);
    for (size_t at = 0; at + 8 <= values.used; at += 4) {
        uint64_t word;
        memcpy(&word, values.bytes + at, 8);
        Range range = known_range(word);
        if (range.size) key = hashed(key, &range, sizeof range);
    }
    int programmatic_after = 0;
    if (shape->programmatic) {
        programmatic_after = after(shape->stream, 0);
        key = hashed(key, &programmatic_after, sizeof programmatic_after);
    }
    int known = (int)(intptr_t)get(&launches, key);
    if (known) {
        after(shape->stream, known);
        return;
    }
    if (kernel->launches >= MOST_OF_KERNEL || number_of_launches >= MOST_LAUNCHES) {
        noted->missing = "launches of a kernel beyond its first 64 that differ";
        after(shape->stream, 0);
        return;
    }
    write_image(kernel->image);
    int number = ++number_of_launches;
    kernel->launches++;
    set(&launches, key, (void *)(intptr_t)number);
    noted->number = number;
    noted->key = key;
    after(shape->stream, number);
    Text text = {0};
    put(&text, "{\"launch\": %d, \"image\": \"%s\", \"kernel\": ", number, kernel->image->name);
    put_hex(&text, kernel->name, strlen(kernel->name));
    put(&text, ", \"grid\": [%u, %u, %u]", shape->grid[0], shape->grid[1], shape->grid[2]);
    put(&text, ", \"block\": [%u, %u, %u]", shape->block[0], shape->block[1], shape->block[2]);
    if (shape->cluster[0]) put(&text, ", \"cluster\": [%u, %u, %u]", shape->cluster[0], shape->cluster[1], shape->cluster[2]);
    put(&text, ", \"shared\": %u, \"cooperative\": %d", shape->shared, shape->cooperative);
    if (shape->programmatic) put(&text, ", \"programmatic_after\": %d", programmatic_after);
    if (values.count >= 0) {
        put(&text, ", \"%s\": [", values.packed ? "packed" : "params");
        size_t begin = 0;
        for (int at = 0; at < values.count; at++) {
            if (at) put(&text, ", ");
            put_hex(&text, values.bytes + begin, values.sizes[at]);
            begin += values.sizes[at];
        }
        put(&text, "], \"memory\": [");
        const char *between = "";
        begin = 0;
        for (int at = 0; at < values.count; begin += values.sizes[at++])
            for (size_t offset = 0; offset + 8 <= values.sizes[at]; offset += 8) {
                uint64_t word;
                memcpy(&word, values.bytes + begin + offset, 8);
                Range range = range_of(word);
                if (range.size) {
                    put(&text, "%s[%llu, %llu]", between, (unsigned long long)range.base, (unsigned long long)range.size);
                    between = ", ";
                }
            }
        put(&text, "]");
    }
    finish(&text);
}

/* ---- tensor maps -------------------------------------------------------------------------------------------------- */

enum { MAP_BYTES = 128, MOST_DIMENSIONS = 5 };

typedef struct {
    unsigned char bytes[MAP_BYTES];
    int type, rank, interleave, swizzle;
    uint64_t address, dims[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
    uint32_t box[MOST_DIMENSIONS], steps[MOST_DIMENSIONS];
} TensorMap;

static void remember_map(TensorMap *map, const void *from) {
    if (!copy(map->bytes, from, MAP_BYTES)) return;
    uint64_t key = hashed(EMPTY_HASH, map->bytes, MAP_BYTES);
    TensorMap *before = get(&maps, key);
    if (before && memcmp(before, map, sizeof *map) == 0) return;
    if (maps.used >= MOST_MAPS) {
        left_out("tensor maps beyond the first 20,000");
        return;
    }
    TensorMap *kept = malloc(sizeof *kept);
    if (!kept) return;
    *kept = *map;
    set(&maps, key, kept);
    Range range = range_of(map->address);
    Text text = {0};
    put(&text, "{\"map\": ");
    put_hex(&text, map->bytes, MAP_BYTES);
    put(&text, ", \"type\": %d, \"address\": %llu, \"interleave\": %d, \"swizzle\": %d", map->type, (unsigned long long)map->address,
        map->interleave, map->swizzle);
    put(&text, ", \"memory\": [%llu, %llu]", (unsigned long long)range.base, (unsigned long long)range.size);
    put(&text, ", \"dims\": [");
    for (int at = 0; at < map->rank; at++) put(&text, "%s%llu", at ? ", " : "", (unsigned long long)map->dims[at]);
    put(&text, "], \"strides\": [");
    for (int at = 0; at < map->rank - 1; at++) put(&text, "%s%llu", at ? ", " : "", (unsigned long long)map->strides[at]);
    put(&text, "], \"box\": [");
    for (int at = 0; at < map->rank; at++) put(&text, "%s%u", at ? ", " : "", map->box[at]);
    put(&text, "], \"steps\": [");
    for (int at = 0; at < map->rank; at++) put(&text, "%s%u", at ? ", " : "", map->steps[at]);
    put(&text, "]");
    finish(&text);
}

/* ---- the functions ------------------------------------------------------------------------------------------------ */

/* Call what is behind us. `result` is what it returns, `seen` says whether it is to be written down. */
#define PASS_ON(number, parameters, arguments)                            \
    CUresult(*real) parameters = (CUresult(*) parameters)target(number); \
    if (!real) return NOT_INITIALIZED;                                    \
    int seen = depth == 0;                                                \
    depth++;                                                              \
    CUresult result = real arguments;                                     \
    depth--;

#define WHEN_DONE(...)                                 \
    if (seen && result == SUCCESS) {                   \
        Entered entered;                               \
        if (enter(&entered)) {                         \
            depth++;                                   \
            __VA_ARGS__;                               \
            depth--;                                   \
            leave(&entered);                           \
        }                                              \
    }                                                  \
    return result;

static void replace_address(const char *symbol, void **function, int version, uint64_t flags) {
    char name[64];
    void *found;
    size_t length = 0;
    while (length < sizeof name - 1 && copy(name + length, symbol + length, 1) && name[length]) length++;
    name[length] = 0;
    if (!copy(&found, function, sizeof found) || !found) return;
    for (int at = 0; at < COUNT; at++) {
        const Slot *slot = &slots[at];
        int named = strcmp(name, slot->base) == 0, own_stream = (flags & 2) != 0; /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
        if (!named || version < slot->since || (slot->own_stream >= 0 && slot->own_stream != own_stream)) continue;
        if (version >= slot->until && (slot->until != LATER || found != of_driver(slot->symbol))) continue;
        __atomic_store_n(&slots[at].given, found, __ATOMIC_RELEASE);
        *function = OURS[at];
        return;
    }
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    PASS_ON(N_cuGetProcAddress, (const char *, void **, int, uint64_t), (symbol, function, version, flags))
    WHEN_DONE(replace_address(symbol, function, version, flags))
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    PASS_ON(N_cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *), (symbol, function, version, flags, status))
    WHEN_DONE(replace_address(symbol, function, version, flags))
}

EXPORT CUresult cuModuleLoad(Handle *module, const char *path) {
    PASS_ON(N_cuModuleLoad, (Handle *, const char *), (module, path))
    WHEN_DONE(remember_module(module, image_of_file(path)))
}

EXPORT CUresult cuModuleLoadData(Handle *module, const void *image) {
    PASS_ON(N_cuModuleLoadData, (Handle *, const void *), (module, image))
    int stays = seen && result == SUCCESS && in_program(image);
    WHEN_DONE(remember_module(module, image_of(image, stays)))
}

EXPORT CUresult cuModuleLoadDataEx(Handle *module, const void *image, unsigned count, void *options, void **values) {
    PASS_ON(N_cuModuleLoadDataEx, (Handle *, const void *, unsigned, void *, void **), (module, image, count, options, values))
    int stays = seen && result == SUCCESS && in_program(image);
    WHEN_DONE(remember_module(module, image_of(image, stays)))
}

EXPORT CUresult cuModuleLoadFatBinary(Handle *module, const void *image) {
    PASS_ON(N_cuModuleLoadFatBinary, (Handle *, const void *), (module, image))
    int stays = seen && result == SUCCESS && in_program(image);
    WHEN_DONE(remember_module(module, image_of(image, stays)))
}

EXPORT CUresult cuModuleUnload(Handle module) {
    PASS_ON(N_cuModuleUnload, (Handle), (module))
    WHEN_DONE(forget_module(module))
}

EXPORT CUresult cuModuleGetFunction(Handle *function, Handle module, const char *name) {
    PASS_ON(N_cuModuleGetFunction, (Handle *, Handle, const char *), (function, module, name))
    WHEN_DONE(remember_function(function, module, name, 0))
}

EXPORT CUresult cuModuleEnumerateFunctions(Handle *each, unsigned count, Handle module) {
    PASS_ON(N_cuModuleEnumerateFunctions, (Handle *, unsigned, Handle), (each, count, module))
    WHEN_DONE(for (unsigned at = 0; at < count; at++) remember_function(each + at, module, NULL, 0))
}

EXPORT CUresult cuLibraryLoadData(Handle *library, const void *code, void *options, void **values, unsigned count, void *more,
                                  void **more_values, unsigned more_count) {
    PASS_ON(N_cuLibraryLoadData, (Handle *, const void *, void *, void **, unsigned, void *, void **, unsigned),
            (library, code, options, values, count, more, more_values, more_count))
    int stays = seen && result == SUCCESS && in_program(code);
    WHEN_DONE(remember_module(library, image_of(code, stays)))
}

EXPORT CUresult cuLibraryLoadFromFile(Handle *library, const char *path, void *options, void **values, unsigned count, void *more,
                                      void **more_values, unsigned more_count) {
    PASS_ON(N_cuLibraryLoadFromFile, (Handle *, const char *, void *, void **, unsigned, void *, void **, unsigned),
            (library, path, options, values, count, more, more_values, more_count))
    WHEN_DONE(remember_module(library, image_of_file(path)))
}

EXPORT CUresult cuLibraryUnload(Handle library) {
    PASS_ON(N_cuLibraryUnload, (Handle), (library))
    WHEN_DONE(forget_module(library))
}

EXPORT CUresult cuLibraryGetKernel(Handle *kernel, Handle library, const char *name) {
    PASS_ON(N_cuLibraryGetKernel, (Handle *, Handle, const char *), (kernel, library, name))
    WHEN_DONE(remember_function(kernel, library, name, 1))
}

EXPORT CUresult cuLibraryEnumerateKernels(Handle *each, unsigned count, Handle library) {
    PASS_ON(N_cuLibraryEnumerateKernels, (Handle *, unsigned, Handle), (each, count, library))
    WHEN_DONE(for (unsigned at = 0; at < count; at++) remember_function(each + at, library, NULL, 1))
}

static void same_image(const Handle *module, Handle library) { remember_module(module, get(&images, (uintptr_t)library)); }

EXPORT CUresult cuLibraryGetModule(Handle *module, Handle library) {
    PASS_ON(N_cuLibraryGetModule, (Handle *, Handle), (module, library))
    WHEN_DONE(same_image(module, library))
}

static void same_kernel(const Handle *at, Handle kernel) {
    Handle handle = NULL;
    Function *known = get(&functions, (uintptr_t)kernel);
    if (!known || !copy(&handle, at, sizeof handle) || !handle || handle == kernel) return;
    remember_function(at, known->module, known->kernel ? known->kernel->name : NULL, 0);
}

EXPORT CUresult cuKernelGetFunction(Handle *function, Handle kernel) {
    PASS_ON(N_cuKernelGetFunction, (Handle *, Handle), (function, kernel))
    WHEN_DONE(same_kernel(function, kernel))
}

/* A launch is written down before it is made. */
static Noted before_launch(Handle function, const Shape *shape, void **params, void **extra) {
    Entered entered;
    Noted noted = {0};
    if (depth || !enter(&entered)) return noted;
    depth++;
    note_launch(function, shape, params, extra, &noted);
    depth--;
    leave(&entered);
    return noted;
}

/* If the driver refused it, a line says so, and the next one like it is new. */
static void after_launch(const Noted *noted, CUresult result) {
    Entered entered;
    if (result == SUCCESS ? !noted->missing : !noted->number) return;
    if (!enter(&entered)) return;
    if (result == SUCCESS) {
        left_out(noted->missing);
    } else {
        Text text = {0};
        put(&text, "{\"refused\": %d", noted->number);
        finish(&text);
        cell_of(&launches, noted->key)->value = NULL;
    }
    leave(&entered);
}

#define SHAPE {{gx, gy, gz}, {bx, by, bz}, shared, {0}, 0, 0, stream}

#define LAUNCH(symbol)                                                                                                           \
    EXPORT CUresult symbol(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,        \
                           unsigned shared, Handle stream, void **params, void **extra) {                                        \
        Shape shape = SHAPE;                                                                                                     \
        Noted noted = before_launch(function, &shape, params, extra);                                                            \
        PASS_ON(N_##symbol,                                                                                                      \
                (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **),        \
                (function, gx, gy, gz, bx, by, bz, shared, stream, params, extra))                                               \
        if (seen) after_launch(&noted, result);                                                                                  \
        return result;                                                                                                           \
    }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)

#define COOPERATIVE(symbol)                                                                                                      \
    EXPORT CUresult symbol(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,        \
                           unsigned shared, Handle stream, void **params) {                                                      \
        Shape shape = SHAPE;                                                                                                     \
        shape.cooperative = 1;                                                                                                   \
        Noted noted = before_launch(function, &shape, params, NULL);                                                             \
        PASS_ON(N_##symbol, (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **),     \
                (function, gx, gy, gz, bx, by, bz, shared, stream, params))                                                      \
        if (seen) after_launch(&noted, result);                                                                                  \
        return result;                                                                                                           \
    }
COOPERATIVE(cuLaunchCooperativeKernel)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz)

typedef struct {
    unsigned grid[3], block[3], shared;
    Handle stream;
    const void *attributes;
    unsigned count;
} LaunchConfig;

typedef struct {
    int id;
    char pad[4];
    union { unsigned sizes[3]; int on; char bytes[64]; } value;
} LaunchAttribute;

enum { COOPERATIVE_LAUNCH = 2, CLUSTER_DIMENSION = 4, PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

static Noted before_launch_of(const LaunchConfig *given, Handle function, void **params, void **extra) {
    LaunchConfig config;
    Noted noted = {0};
    LaunchAttribute attribute;
    int error = errno;
    if (copy(&config, given, sizeof config)) {
        Shape shape = {{0}, {0}, config.shared, {0}, 0, 0, config.stream};
        memcpy(shape.grid, config.grid, sizeof shape.grid);
        memcpy(shape.block, config.block, sizeof shape.block);
        for (unsigned at = 0; at < config.count && at < MOST_ATTRIBUTES; at++) {
            if (!copy(&attribute, (const char *)config.attributes + at * sizeof attribute, sizeof attribute)) break;
            if (attribute.id == CLUSTER_DIMENSION) memcpy(shape.cluster, attribute.value.sizes, sizeof shape.cluster);
            if (attribute.id == COOPERATIVE_LAUNCH) shape.cooperative = attribute.value.on != 0;
            if (attribute.id == PROGRAMMATIC_STREAM_SERIALIZATION) shape.programmatic = attribute.value.on != 0;
        }
        noted = before_launch(function, &shape, params, extra);
    }
    errno = error;
    return noted;
}

#define LAUNCH_EX(symbol)                                                                                       \
    EXPORT CUresult symbol(const LaunchConfig *config, Handle function, void **params, void **extra) {          \
        Noted noted = {0};                                                                                      \
        if (!depth) noted = before_launch_of(config, function, params, extra);                                  \
        PASS_ON(N_##symbol, (const LaunchConfig *, Handle, void **, void **), (config, function, params, extra)) \
        if (seen) after_launch(&noted, result);                                                                 \
        return result;                                                                                          \
    }
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

typedef struct {
    Handle function;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    Handle kernel, context;
} KernelNode;

EXPORT CUresult cuGraphAddKernelNode_v2(Handle *node, Handle graph, const Handle *needs, size_t count, const KernelNode *given) {
    KernelNode kernel;
    Noted noted = {0};
    int error = errno;
    if (!depth && copy(&kernel, given, sizeof kernel)) {
        Shape shape = {{0}, {0}, kernel.shared, {0}, 0, 0, graph};
        memcpy(shape.grid, kernel.grid, sizeof shape.grid);
        memcpy(shape.block, kernel.block, sizeof shape.block);
        noted = before_launch(kernel.function ? kernel.function : kernel.kernel, &shape, kernel.params, kernel.extra);
    }
    errno = error;
    PASS_ON(N_cuGraphAddKernelNode_v2, (Handle *, Handle, const Handle *, size_t, const KernelNode *), (node, graph, needs, count, given))
    if (seen) after_launch(&noted, result);
    return result;
}

static void note_map(const void *map, int type, unsigned rank, const void *address, const uint64_t *dims, const uint64_t *strides,
                     const uint32_t *box, const uint32_t *steps, int interleave, int swizzle) {
    TensorMap known = {.type = type, .rank = (int)rank, .interleave = interleave, .swizzle = swizzle, .address = (uintptr_t)address};
    if (rank < 1 || rank > MOST_DIMENSIONS || !copy(known.dims, dims, rank * sizeof *dims)) return;
    if (!copy(known.strides, strides, (rank - 1) * sizeof *strides)) return;
    if (!copy(known.box, box, rank * sizeof *box) || !copy(known.steps, steps, rank * sizeof *steps)) return;
    remember_map(&known, map);
}

EXPORT CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims, const uint64_t *strides,
                                       const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
    PASS_ON(N_cuTensorMapEncodeTiled,
            (void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int),
            (map, type, rank, address, dims, strides, box, steps, interleave, swizzle, promotion, fill))
    WHEN_DONE(note_map(map, type, rank, address, dims, strides, box, steps, interleave, swizzle))
}

static void note_moved(const unsigned char *before, const void *map, const void *address) {
    TensorMap *known = get(&maps, hashed(EMPTY_HASH, before, MAP_BYTES));
    if (!known) return;
    TensorMap moved = *known;
    moved.address = (uintptr_t)address;
    remember_map(&moved, map);
}

EXPORT CUresult cuTensorMapReplaceAddress(void *map, void *address) {
    unsigned char before[MAP_BYTES];
    int error = errno, read = copy(before, map, sizeof before);
    errno = error;
    PASS_ON(N_cuTensorMapReplaceAddress, (void *, void *), (map, address))
    WHEN_DONE(if (read) note_moved(before, map, address))
}

/* Memory. What a pointer says is read when the call has succeeded. */
static void remember_memory(const void *at, uint64_t size) {
    uint64_t base = 0;
    if (copy(&base, at, sizeof base)) remember_range(base, size);
}

static void remember_pitched(const void *at, const size_t *pitch, size_t height) {
    size_t width = 0;
    if (copy(&width, pitch, sizeof width)) remember_memory(at, (uint64_t)width * height);
}

EXPORT CUresult cuMemAlloc_v2(Address *at, size_t size) {
    PASS_ON(N_cuMemAlloc_v2, (Address *, size_t), (at, size))
    WHEN_DONE(remember_memory(at, size))
}

EXPORT CUresult cuMemAllocPitch_v2(Address *at, size_t *pitch, size_t width, size_t height, unsigned element) {
    PASS_ON(N_cuMemAllocPitch_v2, (Address *, size_t *, size_t, size_t, unsigned), (at, pitch, width, height, element))
    WHEN_DONE(remember_pitched(at, pitch, height))
}

EXPORT CUresult cuMemAllocManaged(Address *at, size_t size, unsigned flags) {
    PASS_ON(N_cuMemAllocManaged, (Address *, size_t, unsigned), (at, size, flags))
    WHEN_DONE(remember_memory(at, size))
}

#define ALLOCATE_ASYNC(symbol)                                                           \
    EXPORT CUresult symbol(Address *at, size_t size, Handle stream) {                    \
        PASS_ON(N_##symbol, (Address *, size_t, Handle), (at, size, stream))             \
        WHEN_DONE(remember_memory(at, size))                                             \
    }
ALLOCATE_ASYNC(cuMemAllocAsync)
ALLOCATE_ASYNC(cuMemAllocAsync_ptsz)

#define ALLOCATE_FROM_POOL(symbol)                                                       \
    EXPORT CUresult symbol(Address *at, size_t size, Handle pool, Handle stream) {       \
        PASS_ON(N_##symbol, (Address *, size_t, Handle, Handle), (at, size, pool, stream)) \
        WHEN_DONE(remember_memory(at, size))                                             \
    }
ALLOCATE_FROM_POOL(cuMemAllocFromPoolAsync)
ALLOCATE_FROM_POOL(cuMemAllocFromPoolAsync_ptsz)

EXPORT CUresult cuMemAllocHost_v2(void **at, size_t size) {
    PASS_ON(N_cuMemAllocHost_v2, (void **, size_t), (at, size))
    WHEN_DONE(remember_memory(at, size))
}

EXPORT CUresult cuMemHostAlloc(void **at, size_t size, unsigned flags) {
    PASS_ON(N_cuMemHostAlloc, (void **, size_t, unsigned), (at, size, flags))
    WHEN_DONE(remember_memory(at, size))
}

EXPORT CUresult cuMemHostRegister_v2(void *at, size_t size, unsigned flags) {
    PASS_ON(N_cuMemHostRegister_v2, (void *, size_t, unsigned), (at, size, flags))
    WHEN_DONE(remember_range((uintptr_t)at, size))
}

EXPORT CUresult cuMemMap(Address at, size_t size, size_t offset, Address allocation, Address flags) {
    PASS_ON(N_cuMemMap, (Address, size_t, size_t, Address, Address), (at, size, offset, allocation, flags))
    WHEN_DONE(remember_range(at, size))
}

EXPORT CUresult cuMemFree_v2(Address at) {
    PASS_ON(N_cuMemFree_v2, (Address), (at))
    WHEN_DONE(forget_range(at))
}

#define FREE_ASYNC(symbol)                                        \
    EXPORT CUresult symbol(Address at, Handle stream) {           \
        PASS_ON(N_##symbol, (Address, Handle), (at, stream))      \
        WHEN_DONE(forget_range(at))                               \
    }
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)

EXPORT CUresult cuMemFreeHost(void *at) {
    PASS_ON(N_cuMemFreeHost, (void *), (at))
    WHEN_DONE(forget_range((uintptr_t)at))
}

EXPORT CUresult cuMemHostUnregister(void *at) {
    PASS_ON(N_cuMemHostUnregister, (void *), (at))
    WHEN_DONE(forget_range((uintptr_t)at))
}

EXPORT CUresult cuMemUnmap(Address at, size_t size) {
    PASS_ON(N_cuMemUnmap, (Address, size_t), (at, size))
    WHEN_DONE(forget_range(at))
}

#define OUR(symbol, base, since, until, own_stream) (void *)symbol,
static void *const OURS[COUNT] = {WATCHED(OUR)};
