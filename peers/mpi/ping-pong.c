/* Messages there and back by MPI_Send and MPI_Recv, and nothing else: what a remote call over MPI
 * costs at least. Each answer is compared with what was sent.
 *
 *   mpirun -np 2 mpi-ping-pong [--bytes N] [--time MS] [--cpus ONE,OTHER|any]
 *
 * Sends N bytes (8) there and back for MS (1000) milliseconds, and prints how long that takes as
 * JSON. A sample is the mean of as many times as take 1 microsecond. */

#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGE = 1, END = 2, MOST_SAMPLES = 10000000 };

static void fail(const char *words) {
    fprintf(stderr, "mpi-ping-pong: %s\n", words);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("cannot run on this CPU");
}

/* Sends back what comes, until it ends. */
static void echo(char *message, int bytes) {
    for (;;) {
        MPI_Status status;
        MPI_Recv(message, bytes, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == END) return;
        MPI_Send(message, bytes, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD);
    }
}

/* One message there and back, which has to be the same. */
static void once(char *message, int bytes) {
    static uint64_t number;
    uint64_t sent = ++number;
    size_t length = bytes < 8 ? (size_t)bytes : 8;
    memcpy(message, &sent, length);
    MPI_Send(message, bytes, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD);
    memset(message, 0, length);
    MPI_Recv(message, bytes, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (memcmp(message, &sent, length) != 0) fail("a wrong answer");
}

static int compare(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static void ask(char *message, int bytes, int64_t time_ns) {
    double *samples = malloc(MOST_SAMPLES * sizeof *samples);
    if (samples == NULL) fail("no memory");
    int64_t begun = now_ns();
    size_t calls = 0, count = 0;
    for (; now_ns() - begun < time_ns / 10 || calls < 100; calls++) once(message, bytes);
    int64_t each = (now_ns() - begun) / (int64_t)calls;
    int times = each >= 1000 ? 1 : (int)(1000 / (each > 0 ? each : 1)) + 1;
    double sum = 0;
    begun = now_ns();
    for (int64_t last = begun; last - begun < time_ns && count < MOST_SAMPLES; count++) {
        int64_t start = now_ns();
        for (int i = 0; i < times; i++) once(message, bytes);
        last = now_ns();
        samples[count] = (double)(last - start) / times;
        sum += samples[count];
    }
    MPI_Send(message, bytes, MPI_BYTE, 1, END, MPI_COMM_WORLD);
    qsort(samples, count, sizeof *samples, compare);
    printf("{\"samples\":%zu,\"min_ns\":%.1f,\"median_ns\":%.1f,\"mean_ns\":%.1f,\"p99_ns\":%.1f,"
           "\"max_ns\":%.1f}\n",
           count, samples[0], samples[(count - 1) / 2], sum / count, samples[(count - 1) * 99 / 100],
           samples[count - 1]);
    free(samples);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, bytes = 8, cpus[2] = {-1, -1};
    int64_t time_ns = 1000000000;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--bytes") == 0) bytes = atoi(value);
        else if (strcmp(argv[i], "--time") == 0) time_ns = atoll(value) * 1000000;
        else if (strcmp(argv[i], "--cpus") == 0 && strcmp(value, "any") == 0) continue;
        else if (strcmp(argv[i], "--cpus") == 0 && sscanf(value, "%d,%d", cpus, cpus + 1) == 2) continue;
        else fail("[--bytes N] [--time MS] [--cpus ONE,OTHER|any]");
    }
    if (size != 2 || bytes < 1 || time_ns < 1) fail("two ranks, a byte and a millisecond at least");
    if (cpus[rank] >= 0) pin(cpus[rank]);
    char *message = calloc((size_t)bytes, 1);
    if (message == NULL) fail("no memory");
    if (rank == 0) ask(message, bytes, time_ns);
    else echo(message, bytes);
    free(message);
    MPI_Finalize();
    return 0;
}
