/* A CUDA driver of a few functions, which hand back the arguments that they were called with. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

int cuDriverGetVersion(int *version) {
    *version = 13020;
    return 0;
}

int cuGetErrorString(int error, const char **text) {
    *text = error == 999 ? "unknown, says the driver" : "another one, says the driver";
    return 0;
}

/* Returns what is in its argument: a code of the test's choice. */
int cuDeviceGetCount(int *count) { return *count; }

/* The last argument is where to write the others. */
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
    uint64_t got[10] = {(uintptr_t)function, gx, gy, gz, bx, by, bz, shared, (uintptr_t)stream,
                        (uintptr_t)parameters};
    memcpy(extra, got, sizeof got);
    /* Aligned accesses to the stack fault where a caller has left it misaligned. */
    __attribute__((aligned(16))) volatile char aligned[16] = {0};
    return ((uintptr_t)aligned & 15) == 0 ? 0 : 1;
}

int cuLinkAddData_v2(void *state, int type, void *data, size_t size, const char *name,
                     unsigned count, void *options, void **values) {
    uint64_t got[7] = {(uintptr_t)state, type, (uintptr_t)data, size, (uintptr_t)name, count,
                       (uintptr_t)options};
    memcpy(values, got, sizeof got);
    return 0;
}

struct handle {
    char bytes[64];
};

int cuIpcOpenMemHandle_v2(uint64_t *out, struct handle handle, unsigned flags) {
    memcpy(out, &handle, sizeof handle);
    out[8] = flags;
    return 0;
}

int cuTexRefSetMipmapLevelClamp(void *out, float low, float high) {
    float got[2] = {low, high};
    memcpy(out, got, sizeof got);
    return 0;
}
