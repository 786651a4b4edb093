/* NCCL of a few functions, which note the arguments that they were called with. `VERSION` is its version, and with `LACKS_SEND` it lacks a
   function. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef VERSION
#define VERSION 22005
#endif

typedef struct {
    char internal[128];
} ncclUniqueId;

static char notes[4096];

#define NOTE(...)                                                                              \
    do {                                                                                       \
        size_t noted = strlen(notes);                                                          \
        snprintf(notes + noted, sizeof notes - noted, __VA_ARGS__);                            \
    } while (0)

int ncclGetVersion(int *version) { return *version = VERSION, 0; }
const char *ncclGetErrorString(int result) { return result < 8 ? "what went wrong" : NULL; }
int ncclGetUniqueId(ncclUniqueId *id) { return memset(id, 7, sizeof *id), 0; }
int ncclCommInitRank(void **comm, int ranks, ncclUniqueId id, int rank) {
    NOTE("rank %d of %d by %d..%d\n", rank, ranks, id.internal[0], id.internal[127]);
    return *comm = (void *)(uintptr_t)(100 + rank), 0;
}
int ncclCommInitAll(void **comm, int count, const int *devices) {
    for (int i = 0; i < count; i++) comm[i] = (void *)(uintptr_t)(200 + devices[i]);
    return 0;
}
int ncclCommDestroy(void *comm) { return comm == NULL ? 4 : 0; }
int ncclCommAbort(void *comm) { return comm == NULL ? 4 : 0; }
int ncclCommGetAsyncError(void *comm, int *error) { return *error = 6, comm == NULL; }
int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, void *comm, void *stream) {
    NOTE("reduce %p %p %zu %d %d %d %p %p\n", from, to, count, type, op, root, comm, stream);
    return 0;
}
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream) {
    NOTE("broadcast %p %p %zu %d %d %p %p\n", from, to, count, type, root, comm, stream);
    return 0;
}
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream) {
    NOTE("all reduce %p %p %zu %d %d %p %p\n", from, to, count, type, op, comm, stream);
    return 0;
}
int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream) {
    NOTE("all gather %p %p %zu %d %p %p\n", from, to, count, type, comm, stream);
    return 0;
}
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream) {
    NOTE("reduce scatter %p %p %zu %d %d %p %p\n", from, to, count, type, op, comm, stream);
    return 0;
}
#ifndef LACKS_SEND
int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream) {
    NOTE("send %p %zu %d %d %p %p\n", from, count, type, peer, comm, stream);
    return 0;
}
#endif
int ncclRecv(void *to, size_t count, int type, int peer, void *comm, void *stream) {
    NOTE("receive %p %zu %d %d %p %p\n", to, count, type, peer, comm, stream);
    return 0;
}
int ncclGroupStart(void) {
    NOTE("begin\n");
    return 0;
}
int ncclGroupEnd(void) {
    NOTE("end\n");
    return 5;
}

/* For the test: the notes since the last call. */
const char *fake_notes(void) {
    static char copy[sizeof notes];
    strcpy(copy, notes);
    notes[0] = 0;
    return copy;
}
