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
    *text = error == 999 ? "unknown, says the driver" : NULL;
    return *text ? 0 : 1;
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

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                       void **values) {
    uint64_t got[5] = {(uintptr_t)module, (uintptr_t)image, count, options[0], options[1]};
    memcpy(values[0], got, sizeof got);
    return 0;
}

/* A mode that only a newer driver has. */
int cuThreadExchangeStreamCaptureMode(int *mode) {
    *mode += 1000;
    return 0;
}

int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    *milliseconds = (float)((uintptr_t)end - (uintptr_t)start) / 4;
    return 0;
}
