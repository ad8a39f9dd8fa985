/* A driver that launches nothing: it checks what it is given, and keeps a log. The types are those of "cuda.h". */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
enum { INVALID_VALUE = 1, INVALID_IMAGE = 200, INVALID_HANDLE = 400, NOT_FOUND = 500 };

typedef struct { int magic, kernel; const char *text; char name[64]; } Object; /* a module, a library, a function, a kernel */
enum { MODULE = 0x4d4f44, FUNCTION = 0x46554e };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t launches, checksum;
static uint64_t next_address = 0x7f0000000000;
static struct { uint64_t base, size; } memory[4096];
static int count;

/* Of all launches so far: how many, and what was in them, in any order. */
void stub_log(uint64_t *number, uint64_t *sum) { *number = launches, *sum = checksum; }

CUresult cuInit(unsigned flags) { return flags ? INVALID_VALUE : 0; }
CUresult cuDriverGetVersion(int *version) { return *version = 13000, 0; }

static CUresult load(void **out, const void *image) {
    if (!out || !image) return INVALID_VALUE;
    if (*(const uint32_t *)image == 0x466243b1) image = ((const void *const *)image)[1];
    Object *object = calloc(1, sizeof *object);
    object->magic = MODULE;
    object->text = image; /* stays the program's: it has to keep it */
    *out = object;
    return 0;
}
CUresult cuModuleLoadData(void **out, const void *image) { return load(out, image); }
CUresult cuModuleLoadDataEx(void **out, const void *image, unsigned n, void *options, void **values) {
    return n && (!options || !values) ? INVALID_VALUE : load(out, image);
}
CUresult cuModuleUnload(Object *module) { return module && module->magic == MODULE ? 0 : INVALID_HANDLE; }
CUresult cuLibraryLoadData(void **out, const void *image, void *a, void **b, unsigned c, void *d, void **e, unsigned f) {
    return a || b || c || d || e || f ? INVALID_VALUE : load(out, image);
}

static CUresult named(void **out, Object *module, const char *name, int kernel) {
    if (!module || module->magic != MODULE) return INVALID_HANDLE;
    if (strncmp(name, "none", 4) == 0) return NOT_FOUND;
    Object *function = calloc(1, sizeof *function);
    function->magic = FUNCTION, function->kernel = kernel, function->text = module->text;
    strncpy(function->name, name, sizeof function->name - 1);
    *out = function;
    return 0;
}
CUresult cuModuleGetFunction(void **out, Object *module, const char *name) { return named(out, module, name, 0); }
CUresult cuLibraryGetKernel(void **out, Object *library, const char *name) { return named(out, library, name, 1); }
CUresult cuKernelGetFunction(void **out, Object *kernel) { return named(out, &(Object){MODULE, 0, kernel->text, ""}, kernel->name, 0); }

/* scale(float *x, int n, float f), fused(struct {float *x; int n; float *y}), tiled(CUtensorMap, float *y), empty() */
static int sizes(const char *name, size_t *size) {
    if (strcmp(name, "scale") == 0) return size[0] = 8, size[1] = 4, size[2] = 4, 3;
    if (strcmp(name, "fused") == 0) return size[0] = 24, 1;
    if (strcmp(name, "tiled") == 0) return size[0] = 128, size[1] = 8, 2;
    if (strcmp(name, "huge") == 0) return size[0] = (size_t)1 << 40, 1;
    return 0;
}
static CUresult info(Object *function, size_t at, size_t *offset, size_t *size, int kernel) {
    size_t all[4] = {0};
    if (!function || function->magic != FUNCTION || function->kernel != kernel) abort();
    if (at >= (size_t)sizes(function->name, all)) return INVALID_VALUE;
    return *offset = 0, *size = all[at], 0;
}
#ifndef OLD
CUresult cuFuncGetParamInfo(Object *f, size_t at, size_t *offset, size_t *size) { return info(f, at, offset, size, 0); }
CUresult cuKernelGetParamInfo(Object *k, size_t at, size_t *offset, size_t *size) { return info(k, at, offset, size, 1); }
#endif

static CUresult launch(Object *f, const unsigned *dims, unsigned shared, void *stream, void **params, void **extra) {
    size_t size[4];
    uint64_t sum = shared + (uintptr_t)stream;
    if (!f || f->magic != FUNCTION) return INVALID_HANDLE;
    for (int at = 0; at < 6; at++) {
        if (dims[at] == 0) return INVALID_VALUE;
        sum = sum * 31 + dims[at];
    }
    if ((uint64_t)dims[3] * dims[4] * dims[5] > 1024) return INVALID_VALUE;
    int number = strcmp(f->name, "huge") ? sizes(f->name, size) : 0;
    const unsigned char *packed = NULL;
    if (!params && number) {
        if (!extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4]) return INVALID_VALUE;
        packed = extra[1];
    }
    for (int at = 0; at < number; at++)
        for (size_t byte = 0; byte < size[at]; byte++) sum = sum * 31 + (packed ? *packed++ : ((unsigned char *)params[at])[byte]);
    pthread_mutex_lock(&lock);
    launches++, checksum += sum;
    pthread_mutex_unlock(&lock);
    return 0;
}
#define LAUNCH(name)                                                                                                     \
    CUresult name(Object *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned shared,    \
                  void *stream, void **params, void **extra) {                                                           \
        return launch(f, (unsigned[]){a, b, c, d, e, g}, shared, stream, params, extra);                                 \
    }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)
typedef struct { unsigned dims[6], shared; void *stream; const void *attributes; unsigned count; } Config;
CUresult cuLaunchKernelEx(const Config *config, Object *f, void **params, void **extra) {
    if (!config || (config->count && !config->attributes)) return INVALID_VALUE;
    return launch(f, config->dims, config->shared, config->stream, params, extra);
}

CUresult cuMemAlloc_v2(uint64_t *out, size_t size) {
    if (!size) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *out = next_address;
    memory[count].base = next_address, memory[count++].size = size;
    next_address += (size + 511) / 512 * 512;
    pthread_mutex_unlock(&lock);
    return 0;
}
CUresult cuMemFree_v2(uint64_t base) {
    for (int at = 0; at < count; at++)
        if (memory[at].base == base) return memory[at].base = 0, 0;
    return INVALID_VALUE;
}
CUresult cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address) {
    for (int at = 0; at < count; at++)
        if (memory[at].base && memory[at].base <= address && address < memory[at].base + memory[at].size)
            return *base = memory[at].base, *size = memory[at].size, 0;
    return NOT_FOUND;
}
/* Memory of another library: cuMemAlloc was never asked for it. */
CUresult stub_hidden(uint64_t *out, size_t size) { return cuMemAlloc_v2(out, size); }

CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims, const uint64_t *strides,
                                const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
    if (rank < 1 || rank > 5 || (uintptr_t)address % 16 || (uintptr_t)map % 64) return INVALID_VALUE;
    uint64_t words[16] = {type, rank, (uintptr_t)address, interleave, swizzle, promotion, fill, dims[0], box[0], steps[0]};
    if (rank > 1) words[10] = dims[1], words[11] = strides[0], words[12] = box[1];
    memcpy(map, words, 128);
    return 0;
}

static void *of_name(const char *name, uint64_t flags);
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
    *out = of_name(name, flags);
    if (status) *status = *out ? 0 : 1;
    return version > 0 && *out ? 0 : NOT_FOUND;
}
CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) { return cuGetProcAddress_v2(name, out, version, flags, NULL); }

#define KNOWN(name) if (strcmp(asked, #name) == 0) return (void *)name;
#define VERSION(name, symbol) if (strcmp(asked, #name) == 0) return (void *)symbol;
static void *of_name(const char *asked, uint64_t flags) {
    if (flags & 2) VERSION(cuLaunchKernel, cuLaunchKernel_ptsz)
    KNOWN(cuInit) KNOWN(cuModuleLoadData) KNOWN(cuModuleLoadDataEx) KNOWN(cuModuleUnload) KNOWN(cuLibraryLoadData)
    KNOWN(cuModuleGetFunction) KNOWN(cuLibraryGetKernel) KNOWN(cuKernelGetFunction) KNOWN(cuLaunchKernel) KNOWN(cuLaunchKernelEx)
    KNOWN(cuTensorMapEncodeTiled) VERSION(cuMemAlloc, cuMemAlloc_v2) VERSION(cuMemFree, cuMemFree_v2)
    VERSION(cuGetProcAddress, cuGetProcAddress_v2)
    return NULL;
}
