/* A CUDA driver without a device: it runs no kernels, keeps device memory on the host, and watches what is called.

   Its functions note what matters in a log. They set `mistakes` where a driver would spoil a capture, or where memory goes that a
   kernel could still use. A test captures streams and keeps them busy by the functions at the end, and says how many devices there are. */

#include "notes.h"

typedef struct stream {
    int number, captured, busy;
    void *context;
    uint64_t *faulting; /* Where a kernel in its queue reports a fault. */
} stream;
typedef struct event {
    int number, captured;
    void *context;
} event;
typedef struct graph {
    int nodes;
} graph;

static int streams, events, captures, busy_streams, last_mistake_line;
static volatile int hold_loads, hold_copies, hold_waits, loads_held, copies_held, waits_held;
static __thread int mode; /* 0 global, 1 of the thread, 2 relaxed */
static stream legacy;
static int default_pool, own_pool, context, second_context, made_context, other_context, module, function;
static int devices = 1, peer_access = 1, refused = -1, full = -1, allocated;
static __thread void *current;
static uint32_t number_of_kernel;
static int next_fill, next_copy, next_wait, next_pool, next_retain, next_fault, first_held_event = 1 << 30;
static int driver_version = 12080, own_shared, most_threads = 1024;
static __thread int contexts_on_stack;

#define MISTAKE(code)                                                                          \
    do {                                                                                       \
        mistakes++;                                                                            \
        last_mistake_line = __LINE__;                                                          \
        return code;                                                                           \
    } while (0)
/* What a thread must not call while any stream is captured, unless it says that it knows what it does. */
#define UNSAFE()                                                                               \
    do {                                                                                       \
        if (captures && mode != 2) MISTAKE(900);                                               \
    } while (0)
/* Fails once, as a test has asked for. */
#define FAIL_ONCE(next)                                                                        \
    do {                                                                                       \
        int code = next;                                                                       \
        next = 0;                                                                              \
        if (code) return code;                                                                 \
    } while (0)
/* What cannot be captured. */
#define NOT_CAPTURED(s)                                                                        \
    do {                                                                                       \
        if (of(s)->captured) MISTAKE(900);                                                     \
    } while (0)

static stream *of(stream *s) { return s ? s : &legacy; }
/* Waits as long as a test holds such calls, and counts those that wait. */
static void held(volatile int *hold, volatile int *count) {
    __sync_fetch_and_add(count, 1);
    while (*hold) usleep(100);
    __sync_fetch_and_sub(count, 1);
}
/* Whether it is a context of this device: the primary one, or one that is made. For the second device, both have one handle. */
static int is_of(const void *c, int device) {
    return device ? c == &second_context : c == &context || c == &made_context;
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) { return *version = driver_version, 0; }
int cuGetErrorName(int code, const char **text) {
    *text = code == 900 ? "CAPTURE" : code == 912 ? "CUDA_ERROR_INVALID_CLUSTER_SIZE" : code < 1000 ? "OTHER" : NULL;
    return *text ? 0 : 1;
}
int cuGetErrorString(int code, const char **text) { return cuGetErrorName(code, text); }
int cuDeviceGetCount(int *count) { return *count = devices, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int len, int device) { return snprintf(name, len, "Fake %d", device), 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = (size_t)1 << (30 + device), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    /* The domain, the bus and the device of PCI. */
    if (attribute == 50 || attribute == 33 || attribute == 34) return *value = attribute == 33 ? 7 + device : 0, 0;
    *value = attribute == 75 ? 9 - device : attribute == 76 ? 0 : attribute == 97 ? 232448
             : attribute == 81 ? 233472 : 1024;
    return 0;
}
int cuDeviceCanAccessPeer(int *can, int device, int peer) { return *can = peer_access, device == peer; }
int cuDevicePrimaryCtxRetain(void **c, int device) {
    FAIL_ONCE(next_retain);
    if (device) NOTE("open %d\n", device);
    return *c = device ? &second_context : &context, 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    NOTE("release\n");
    return 0;
}
int cuCtxSetCurrent(void *c) { return current = c, !is_of(c, 0) && !is_of(c, 1) && c != &other_context; }
int cuCtxGetDevice(int *device) { return *device = current == &second_context, 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    (void)device;
    return *flags = 0, *active = 1, 0;
}
int cuCtxPushCurrent_v2(void *c) { return c != &context; }
int cuCtxCreate_v2(void **c, unsigned flags, int device) {
    contexts_on_stack++;
    return *c = device ? &second_context : &made_context, flags;
}
int cuCtxDestroy_v2(void *c) {
    NOTE("destroy\n");
    return c != &made_context && c != &second_context;
}
int cuCtxPopCurrent_v2(void **c) {
    contexts_on_stack--;
    return *c = &context, 0;
}

int cuThreadExchangeStreamCaptureMode(int *m) {
    int before = mode;
    mode = *m;
    *m = before;
    return 0;
}

/* Memory. */
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    UNSAFE();
    return *address = calloc(bytes, 1), flags == 0;
}
int cuMemFreeHost(void *address) {
    UNSAFE();
    if (busy_streams) MISTAKE(0);
    NOTE("free host\n");
    return free(address), 0;
}
int cuMemAlloc_v2(void **address, size_t bytes) {
    UNSAFE();
    return *address = calloc(bytes, 1), 0;
}
int cuMemFree_v2(void *address) {
    UNSAFE();
    if (busy_streams) MISTAKE(0);
    return free(address), 0;
}
int cuDeviceGetDefaultMemPool(void **pool, int device) { return *pool = &default_pool, device; }
int cuMemPoolCreate(void **pool, const void *props) {
    FAIL_ONCE(next_pool);
    return *pool = &own_pool, props == NULL;
}
int cuMemPoolDestroy(void *pool) { return pool != &own_pool; }
int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
    if (pool != &own_pool) MISTAKE(0);
    return attribute != 4 || !value;
}
int cuMemPoolSetAccess(void *pool, const int *access, size_t count) {
    NOTE("access by %d\n", access[1]);
    return pool != &own_pool || access[0] != 1 || access[2] != 3 || count != 1;
}
int cuMemAllocFromPoolAsync(void **address, size_t bytes, void *pool, stream *s) {
    NOT_CAPTURED(s);
    if (bytes == 0) return 1;
    if (full >= 0 && is_of(of(s)->context, full)) return 2;
    __sync_fetch_and_add(&allocated, 1);
    *address = malloc(bytes);
    NOTE("allocate %s\n", pool == &own_pool ? "own" : "default");
    return 0;
}
int cuMemAllocAsync(void **address, size_t bytes, stream *s) {
    return cuMemAllocFromPoolAsync(address, bytes, &default_pool, s);
}
int cuMemFreeAsync(void *address, stream *s) {
    UNSAFE();
    NOT_CAPTURED(s);
    NOTE("free s%d\n", of(s)->number);
    __sync_fetch_and_sub(&allocated, 1);
    return free(address), 0;
}

/* Streams and events. */
int cuStreamCreate(stream **s, unsigned flags) {
    *s = calloc(1, sizeof **s);
    (*s)->number = ++streams;
    (*s)->context = current;
    return flags > 1;
}
int cuStreamDestroy_v2(stream *s) {
    NOT_CAPTURED(s);
    return free(s), 0;
}
int cuStreamGetCtx(stream *s, void **c) {
    (void)s;
    return *c = current, 0;
}
int cuStreamQuery(stream *s) {
    UNSAFE();
    NOT_CAPTURED(s);
    if (refused >= 0 && is_of(of(s)->context, refused)) return 719;
    return of(s)->busy ? 600 : 0;
}
int cuStreamSynchronize(stream *s) {
    UNSAFE();
    NOT_CAPTURED(s);
    NOTE("synchronize s%d\n", of(s)->number);
    held(&hold_waits, &waits_held);
    busy_streams -= of(s)->busy;
    of(s)->busy = 0;
    if (of(s)->faulting)
        *(uint32_t *)of(s)->faulting[0] = *(uint32_t *)of(s)->faulting[1] = 1;
    of(s)->faulting = NULL;
    return 0;
}
int cuStreamIsCapturing(stream *s, int *status) { return *status = of(s)->captured, 0; }
int cuEventCreate(event **e, unsigned flags) {
    *e = calloc(1, sizeof **e);
    (*e)->number = ++events;
    (*e)->context = current;
    NOTE("event e%d %s\n", events, flags & 2 ? "without time" : "with time");
    return 0;
}
int cuEventDestroy_v2(event *e) { return free(e), 0; }
int cuEventRecord(event *e, stream *s) {
    e->captured = of(s)->captured;
    /* An event is recorded on streams of its own context. */
    if (e->context && of(s)->context && e->context != of(s)->context) MISTAKE(400);
    NOTE("record e%d s%d\n", e->number, of(s)->number);
    return 0;
}
int cuStreamWaitEvent(stream *s, event *e, unsigned flags) {
    FAIL_ONCE(next_wait);
    /* Work of a capture waits for work of the same, and who waits for that joins it. */
    if (of(s)->captured != e->captured) MISTAKE(905);
    NOTE("wait s%d e%d\n", of(s)->number, e->number);
    return (int)flags;
}
int cuEventQuery(event *e) {
    UNSAFE();
    if (e->captured) MISTAKE(907);
    return e->number >= first_held_event ? 600 : 0;
}
int cuEventSynchronize(event *e) {
    UNSAFE();
    if (e->captured) MISTAKE(907);
    NOTE("await e%d\n", e->number);
    return 0;
}
int cuEventElapsedTime(float *milliseconds, event *start, event *end) {
    return *milliseconds = 1, start->captured || end->captured;
}

/* Copies. */
static int with_host(const char *what, void *to, const void *from, size_t bytes, stream *s) {
    NOT_CAPTURED(s);
    FAIL_ONCE(next_copy);
    NOTE("%s s%d\n", what, of(s)->number);
    held(&hold_copies, &copies_held);
    return memcpy(to, from, bytes), 0;
}
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, stream *s) {
    return with_host("upload", to, from, bytes, s);
}
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, stream *s) {
    return with_host("download", to, from, bytes, s);
}
int cuMemcpyHtoD_v2(void *to, const void *from, size_t bytes) {
    UNSAFE();
    return memcpy(to, from, bytes), 0;
}
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t bytes, stream *s) {
    NOTE("copy s%d\n", of(s)->number);
    return memmove(to, from, bytes), 0;
}
int cuMemcpyPeerAsync(void *to, void *to_context, const void *from, void *from_context, size_t bytes, stream *s) {
    if (to_context == from_context || to_context != of(s)->context) MISTAKE(400);
    NOT_CAPTURED(s);
    FAIL_ONCE(next_copy);
    NOTE("peer copy s%d\n", of(s)->number);
    return memmove(to, from, bytes), 0;
}
int cuMemsetD8Async(void *to, unsigned char value, size_t bytes, stream *s) {
    NOTE("fill s%d\n", of(s)->number);
    FAIL_ONCE(next_fill);
    return memset(to, value, bytes), 0;
}
int cuMemsetD32Async(uint32_t *to, unsigned value, size_t count, stream *s) {
    NOTE("fill s%d\n", of(s)->number);
    FAIL_ONCE(next_fill);
    for (size_t i = 0; i < count; i++) to[i] = value;
    return 0;
}

/* Kernels. */
int cuModuleLoadDataEx(void **m, const void *image, unsigned count, void *options, void **values) {
    (void)image, (void)options, (void)values;
    UNSAFE();
    held(&hold_loads, &loads_held);
    NOTE("load\n");
    return *m = &module, count != 2;
}
int cuModuleUnload(void *m) {
    if (busy_streams) MISTAKE(0);
    NOTE("unload\n");
    return m != &module;
}
int cuModuleGetFunction(void **f, void *m, const char *name) {
    (void)name;
    return *f = &function, m != &module;
}
int cuModuleGetGlobal_v2(void **address, size_t *bytes, void *m, const char *name) {
    (void)name;
    *address = &number_of_kernel;
    return *bytes = 4, m != &module;
}
int cuFuncGetAttribute(int *value, int attribute, void *f) {
    return *value = attribute == 0 ? most_threads : attribute == 1 ? own_shared : 0, f != &function;
}
int cuFuncSetAttribute(void *f, int attribute, int value) {
    if (attribute == 9)
        NOTE("carveout %d\n", value);
    return f != &function;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *f, int threads, size_t shared) {
    return *blocks = shared + own_shared > 232448 ? 0 : 2048 / threads, f != &function;
}
/* A kernel without arguments has the address of its control: the addresses of the flag and of the record. */
static void report_to(stream *s, void **parameters) {
    if (next_fault)
        of(s)->faulting = *(uint64_t **)parameters[0];
    next_fault = 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, stream *s, void **parameters, void **extra) {
    (void)gx, (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)extra;
    NOTE("launch s%d\n", of(s)->number);
    report_to(s, parameters);
    return f != &function || bx > (unsigned)most_threads;
}
/* As `cuda.h` has them. */
typedef struct {
    int id, pad, allowed, rest[15];
} attribute;
typedef struct {
    unsigned grid[3], block[3], shared;
    stream *stream;
    attribute *attributes;
    unsigned count;
} configuration;
int cuLaunchKernelEx(const configuration *c, void *f, void **parameters, void **extra) {
    (void)extra;
    if (c->count != 1 || c->attributes->id != 6 || c->attributes->allowed != 1) return 1;
    NOTE("launch s%d, overlapping\n", of(c->stream)->number);
    report_to(c->stream, parameters);
    return f != &function;
}

/* A description of an array: its address alone. */
int cuTensorMapEncodeTiled(uint64_t *map, int type, unsigned rank, void *address, const uint64_t *extents,
                           const uint64_t *strides, const unsigned *tile, const unsigned *steps, int interleave,
                           int swizzle, int promotion, int fill) {
    (void)type, (void)rank, (void)extents, (void)strides, (void)tile, (void)steps;
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return map[0] = (uint64_t)address, (uint64_t)address % 16 != 0;
}

/* Graphs. */
int cuGraphCreate(graph **g, unsigned flags) { return *g = calloc(1, sizeof **g), (int)flags; }
int cuGraphDestroy(graph *g) { return free(g), 0; }
int cuGraphAddKernelNode(void **node, graph *g, void **before, size_t count, const void *params) {
    (void)before, (void)count, (void)params;
    g->nodes++;
    return *node = g, 0;
}
int cuGraphAddMemsetNode(void **node, graph *g, void **before, size_t count, const void *params, void *c) {
    return cuGraphAddKernelNode(node, g, before, count, params) || (!is_of(c, 0) && !is_of(c, 1));
}
int cuGraphAddMemcpyNode(void **node, graph *g, void **before, size_t count, const void *params, void *c) {
    return cuGraphAddMemsetNode(node, g, before, count, params, c);
}
int cuGraphInstantiate_v2(graph **out, graph *g, void **node, char *log, size_t bytes) {
    (void)node, (void)log, (void)bytes;
    *out = malloc(sizeof **out);
    return **out = *g, 0;
}
int cuGraphExecDestroy(graph *g) {
    UNSAFE();
    return free(g), 0;
}
int cuGraphLaunch(graph *g, stream *s) {
    NOT_CAPTURED(s);
    NOTE("graph %d s%d\n", g->nodes, of(s)->number);
    return 0;
}

/* For the test. */
void fake_capture(stream *s, int captured) {
    captures += captured - of(s)->captured;
    of(s)->captured = captured;
}
void fake_busy(stream *s) {
    busy_streams += !of(s)->busy;
    of(s)->busy = 1;
}
int fake_number(stream *s) { return of(s)->number; }
/* How many devices there are, 1 or 2, and whether one can access the other's memory. */
void fake_devices(int count) { devices = count; }
void fake_peer_access(int can) { peer_access = can; }
/* The device whose context is lost, as queries of its streams say; none if it is negative. */
void fake_refused(int device) { refused = device; }
/* The device that has no memory left; none if it is negative. */
void fake_full(int device) { full = device; }
/* How many allocations of streams are not freed. */
int fake_allocated(void) { return allocated; }
void fake_hold_loads(int hold) { hold_loads = hold; }
void fake_hold_copies(int hold) { hold_copies = hold; }
void fake_hold_waits(int hold) { hold_waits = hold; }
/* What the next fill, copy with the host, wait, new pool or primary context returns. */
void fake_next_fill(int code) { next_fill = code; }
void fake_next_copy(int code) { next_copy = code; }
void fake_next_wait(int code) { next_wait = code; }
/* The next kernel faults when its stream is waited for. */
void fake_next_fault(int yes) { next_fault = yes; }
void fake_version(int version) { driver_version = version; }
void fake_next_pool(int code) { next_pool = code; }
void fake_next_retain(int code) { next_retain = code; }
/* The shared memory that kernels which are loaded from now on have themselves, and the most threads of their blocks. */
void fake_own_shared(int bytes) { own_shared = bytes; }
void fake_most_threads(int threads) { most_threads = threads; }
/* Of the events that are made from now on, streams come to so many, and to no others; to all if it is negative. */
void fake_hold_events(int after) { first_held_event = after < 0 ? 1 << 30 : events + after + 1; }
/* A context that is not the primary one. */
void *fake_other_context(void) { return &other_context; }
/* Contexts that this thread has pushed and not popped. */
int fake_contexts_on_stack(void) { return contexts_on_stack; }
int fake_held(void) { return loads_held + copies_held + waits_held; }
int fake_mistakes(void) { return mistakes ? last_mistake_line : 0; }
