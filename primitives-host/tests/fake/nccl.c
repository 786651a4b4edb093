/* NCCL without a network: it connects the members of one process, notes what they call, and computes nothing. */

#include "notes.h"

typedef struct {
    char internal[128];
} ncclUniqueId;
typedef struct comm {
    int rank, gone;
} comm;

static int ids, present[128], error_rank = -1, error, next_result;
static volatile int hold_starts, hold_calls;

/* A call on a communicator that is no more. */
#define ALIVE(c)                                                                               \
    do {                                                                                       \
        if ((c)->gone) mistakes++;                                                             \
    } while (0)

static int result(void) {
    int now = next_result;
    next_result = 0;
    return now;
}

int ncclGetVersion(int *version) {
    const char *other = getenv("FAKE_NCCL_VERSION");
    return *version = other ? atoi(other) : 22005, 0;
}
const char *ncclGetErrorString(int code) { return code == 6 ? "remote process exited" : code ? "it went wrong" : "no error"; }
int ncclGetUniqueId(ncclUniqueId *id) {
    memset(id, 7, sizeof *id);
    id->internal[0] = (char)__sync_fetch_and_add(&ids, 1);
    return 0;
}
int ncclCommInitRank(comm **c, int ranks, ncclUniqueId id, int rank) {
    int *here = &present[(int)id.internal[0]];
    __sync_fetch_and_add(here, 1);
    while (hold_starts || *(volatile int *)here < ranks) usleep(100);
    *c = calloc(1, sizeof **c);
    (*c)->rank = rank;
    NOTE("%d: of %d by %d %d\n", rank, ranks, id.internal[0], id.internal[127]);
    return 0;
}
int ncclCommInitAll(comm **c, int count, const int *devices) {
    for (int i = 0; i < count; i++) {
        c[i] = calloc(1, sizeof **c);
        c[i]->rank = i;
        NOTE("%d: of all on %d\n", i, devices[i]);
    }
    return 0;
}
int ncclCommGetAsyncError(comm *c, int *code) {
    ALIVE(c);
    return *code = c->rank == error_rank ? error : 0, 0;
}
/* What is destroyed stays, to notice later calls. */
int ncclCommDestroy(comm *c) {
    ALIVE(c);
    NOTE("%d: destroy\n", c->rank);
    return c->gone = 1, 0;
}
int ncclCommAbort(comm *c) {
    ALIVE(c);
    NOTE("%d: abort\n", c->rank);
    return c->gone = 1, 0;
}
int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, comm *c, void *stream) {
    return (void)from, (void)to, (void)count, (void)type, (void)op, (void)root, (void)c, (void)stream, 5;
}
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, comm *c, void *stream) {
    ALIVE(c);
    NOTE("%d: broadcast %zu %d from %d%s\n", c->rank, count, type, root, from == to && stream ? " in place" : "");
    return result();
}
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, comm *c, void *stream) {
    ALIVE(c);
    NOTE("%d: all reduce %zu %d by %d%s\n", c->rank, count, type, op, from == to && stream ? " in place" : "");
    /* As while it connects members: only an abort ends it. */
    while (hold_calls) {
        if (*(volatile int *)&c->gone) return 3;
        usleep(100);
    }
    return result();
}
int ncclAllGather(const void *from, void *to, size_t count, int type, comm *c, void *stream) {
    ALIVE(c);
    NOTE("%d: all gather %zu %d%s\n", c->rank, count, type, from != to && stream ? "" : " wrong");
    return result();
}
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, comm *c, void *stream) {
    ALIVE(c);
    NOTE("%d: reduce scatter %zu %d by %d%s\n", c->rank, count, type, op, from != to && stream ? "" : " wrong");
    return result();
}
static __thread uintptr_t first_sent, first_received;
static __thread int depth;
int ncclSend(const void *from, size_t count, int type, int peer, comm *c, void *stream) {
    ALIVE(c);
    if (!first_sent) first_sent = (uintptr_t)from;
    NOTE("%d: send %zu %d to %d at %zu%s\n", c->rank, count, type, peer, (size_t)((uintptr_t)from - first_sent), stream ? "" : " wrong");
    return result();
}
int ncclRecv(void *to, size_t count, int type, int peer, comm *c, void *stream) {
    ALIVE(c);
    if (!first_received) first_received = (uintptr_t)to;
    NOTE("%d: receive %zu %d from %d at %zu%s\n", c->rank, count, type, peer, (size_t)((uintptr_t)to - first_received),
         stream ? "" : " wrong");
    return result();
}
/* Groups may be inside others. */
int ncclGroupStart(void) {
    if (!depth++) NOTE("begin\n");
    first_sent = first_received = 0;
    return 0;
}
int ncclGroupEnd(void) {
    if (!--depth) NOTE("end\n");
    first_sent = first_received = 0;
    return 0;
}

/* For the test. */
/* The member whose communicator has failed; none if it is negative. */
void fake_failed_rank(int rank) { error = 6, error_rank = rank; }
/* What the next call that enqueues returns. */
void fake_next_result(int code) { next_result = code; }
void fake_hold_starts(int hold) { hold_starts = hold; }
void fake_hold_calls(int hold) { hold_calls = hold; }
int fake_mistakes(void) { return mistakes; }
