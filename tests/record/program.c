/* A program that launches kernels, in the way that its first argument names. It prints what came back from each call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int CUresult;
#ifdef LINKED
#define FUNCTION(name, symbol, ...) extern CUresult symbol(__VA_ARGS__);
#else
#define FUNCTION(name, symbol, ...) static CUresult (*name)(__VA_ARGS__);
#endif
#define FUNCTIONS                                                                                                           \
    FUNCTION(cuModuleLoadData, cuModuleLoadData, void **, const void *)                                                     \
    FUNCTION(cuModuleUnload, cuModuleUnload, void *)                                                                        \
    FUNCTION(cuLibraryLoadData, cuLibraryLoadData, void **, const void *, void *, void **, unsigned, void *, void **, unsigned) \
    FUNCTION(cuModuleGetFunction, cuModuleGetFunction, void **, void *, const char *)                                       \
    FUNCTION(cuLibraryGetKernel, cuLibraryGetKernel, void **, void *, const char *)                                         \
    FUNCTION(cuKernelGetFunction, cuKernelGetFunction, void **, void *)                                                     \
    FUNCTION(cuLaunchKernel, cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
             void *, void **, void **)                                                                                      \
    FUNCTION(cuLaunchKernelEx, cuLaunchKernelEx, const void *, void *, void **, void **)                                    \
    FUNCTION(cuMemAlloc, cuMemAlloc_v2, uint64_t *, size_t)                                                                 \
    FUNCTION(cuMemFree, cuMemFree_v2, uint64_t)                                                                             \
    FUNCTION(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled, void *, int, uint32_t, void *, const uint64_t *,               \
             const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int)
FUNCTIONS
#undef FUNCTION

#ifdef LINKED
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
static void find_functions(const char *way) { (void)way; }
#else
static void find_functions(const char *way) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) exit(90);
    CUresult (*address)(const char *, void **, int, uint64_t, int *) = dlsym(driver, "cuGetProcAddress_v2");
    if (strcmp(way, "dlsym") == 0) {
#define FUNCTION(name, symbol, ...) if (!(name = dlsym(driver, #symbol))) exit(91);
        FUNCTIONS
#undef FUNCTION
    } else {
        uint64_t flags = strcmp(way, "streams") ? 1 : 2;
        int status;
        if (address("cuGetProcAddress", (void **)&address, 12000, flags, &status) || status) exit(92);
#define FUNCTION(name, symbol, ...) if (address(#name, (void **)&name, 12000, flags, &status) || status) exit(93);
        FUNCTIONS
#undef FUNCTION
    }
    void *gone;
    if (dlsym(driver, "cuNoSuchFunction") || !address("cuNoSuchFunction", &gone, 12000, 0, NULL)) exit(94);
}
#endif

static char *text;
static void *scale, *fused, *tiled;
static uint64_t x, y;

static CUresult start_scale(unsigned grid, unsigned block, uint64_t at, int n, float factor) {
    void *params[] = {&at, &n, &factor};
    return cuLaunchKernel(scale, grid, 1, 1, block, 1, 1, 0, NULL, params, NULL);
}

static void *launch_often(void *number) {
    for (int round = 0; round < 200; round++)
        if (start_scale(1 + round % 3, 64, x, 64 * (1 + round % 3), 2)) exit(95);
    return number;
}

static void print_log(const char *what) {
    uint64_t number = 0, sum = 0;
    void (*log)(uint64_t *, uint64_t *) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "stub_log");
    log(&number, &sum);
    printf("%s: %lu launches, %lx\n", what, (unsigned long)number, (unsigned long)sum);
    fflush(stdout);
}

static void one_of_each(void) {
    errno = 77;
    printf("scale %d", start_scale(4, 64, x, 256, 2));
    printf(" %d", start_scale(4, 64, x + 1024, 256, 2)); /* a view of the same buffer */
    struct { uint64_t x; int n, rest; uint64_t y; } both = {x, 100, 0, y};
    void *fields[] = {&both};
    printf(", fused %d", cuLaunchKernel(fused, 2, 1, 1, 32, 2, 1, 512, (void *)7, fields, NULL));
    size_t size = sizeof both;
    void *extra[] = {(void *)1, &both, (void *)2, &size, NULL};
    both.n = 101;
    printf(" %d", cuLaunchKernel(fused, 2, 1, 1, 32, 2, 1, 512, (void *)7, NULL, extra));
    static char map[128] __attribute__((aligned(64)));
    uint64_t dims[] = {64, 128}, strides[] = {128};
    uint32_t box[] = {64, 32}, steps[] = {1, 1};
    printf(", map %d", cuTensorMapEncodeTiled(map, 9, 2, (void *)x, dims, strides, box, steps, 0, 3, 0, 0));
    struct { unsigned dims[6], shared; void *stream; const void *attributes; unsigned count; } config = {{4, 1, 1, 128, 1, 1}, 8192, NULL, NULL, 2};
    struct { int id, pad; unsigned value[16]; } attributes[] = {{4, 0, {2, 1, 1}}, {6, 0, {1}}};
    config.attributes = attributes;
    void *params[] = {map, &y};
    printf(", tiled %d, errno %d\n", cuLaunchKernelEx(&config, tiled, params, NULL), errno);
}

static void wrong_sizes(void *module) {
    void *function, *huge;
    printf("wrong: %d", start_scale(4, 2048, x, 1, 1));
    printf(" %d", start_scale(0, 64, x, 1, 1));
    printf(" %d", cuLaunchKernel((void *)text, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    printf(" %d", cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    printf(" %d", cuModuleLoadData(&function, NULL));
    printf(" %d", cuModuleGetFunction(&function, module, "none"));
    if (cuModuleGetFunction(&huge, module, "huge")) exit(96);
    printf(" %d", cuLaunchKernel(huge, 1, 1, 1, 1, 1, 1, 0, NULL, (void **)16, NULL)); /* a terabyte, at a bad address */
    printf(" %d", cuMemAlloc(&(uint64_t){0}, 0));
    printf(" %d\n", cuMemFree(12345));
}

static void *fork_often(void *number) {
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        if (child == 0) _exit(start_scale(8, 32, x, 8, 1) ? 1 : 0);
        int status;
        if (waitpid(child, &status, 0) != child || status) exit(97);
    }
    return number;
}

/* A module that is a part of the program, as the runtime of CUDA registers it. */
static void from_program(void) {
    static struct { uint32_t magic; uint16_t version, header; uint64_t size; char text[1 << 16]; } fatbin = {0xba55ed50, 1, 16, 0, ""};
    static struct { int magic, version; const void *data; void *file; } wrapper = {0x466243b1, 1, &fatbin, NULL};
    void *library, *kernel;
    fatbin.size = strlen(strcpy(fatbin.text, text));
    if (cuLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0) || cuLibraryGetKernel(&kernel, library, "scale")) exit(79);
    void *params[] = {&x, &(int){320}, &(float){0.5}};
    printf("program %d\n", cuLaunchKernel(kernel, 5, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
}

static void in_threads(void *(*first)(void *)) {
    pthread_t threads[4];
    for (int at = 0; at < 4; at++) pthread_create(&threads[at], NULL, at ? launch_often : first, NULL);
    for (int at = 0; at < 4; at++) pthread_join(threads[at], NULL);
}

int main(int count, char **words) {
    if (count < 4) return 98;
    find_functions(words[1]);
    FILE *file = fopen(words[3], "rb");
    text = calloc(1, 1 << 16);
    if (!file || !fread(text, 1, (1 << 16) - 1, file)) return 99;
    fclose(file);
    void *module, *library, *kernel;
    if (cuModuleLoadData(&module, text) || cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0)) return 80;
    if (cuModuleGetFunction(&scale, module, "scale") || cuLibraryGetKernel(&fused, library, "fused")) return 81;
    if (cuLibraryGetKernel(&kernel, library, "tiled") || cuKernelGetFunction(&tiled, kernel)) return 82;
    if (cuMemAlloc(&x, 16384) || cuMemAlloc(&y, 4096)) return 83;
    for (const char *what = words[2]; *what; what++) {
        if (*what == 'o') one_of_each();
        if (*what == 'w') wrong_sizes(module);
        if (*what == 't') in_threads(launch_often);
        if (*what == 'f') in_threads(fork_often);
        if (*what == 'd') for (int at = 3; at < 64; at++) close(at);
        if (*what == 'b') from_program();
        if (*what == 'c') raise(SIGSEGV);
        if (*what == 'e') execl(words[0], words[0], words[1], "o", words[3], NULL);
        if (*what == 'u') printf("unload %d %d\n", cuModuleUnload(module), start_scale(5, 64, x, 1, 1));
    }
    print_log("log");
    return 5;
}
