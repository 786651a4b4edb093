/* What the libraries in this folder note for the tests: a log, and how often they were called as they must not be. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char notes[1 << 20];
static size_t noted;
static int mistakes;

#define NOTE(...)                                                                              \
    do {                                                                                       \
        pthread_mutex_lock(&lock);                                                             \
        if (noted < sizeof notes - 200)                                                        \
            noted += snprintf(notes + noted, sizeof notes - noted, __VA_ARGS__);               \
        pthread_mutex_unlock(&lock);                                                           \
    } while (0)

/* The log since the last call. */
const char *fake_log(void) {
    static char copy[sizeof notes];
    pthread_mutex_lock(&lock);
    memcpy(copy, notes, noted);
    copy[noted] = 0;
    noted = 0;
    pthread_mutex_unlock(&lock);
    return copy;
}
