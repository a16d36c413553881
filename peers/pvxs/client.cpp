// A pvxs client that loads any pvAccess server of counted values: gets and puts, made anew each
// time or executed again, and monitors. It checks that values advance by counted steps and that
// all elements of an array are alike, and prints a line of JSON a second and one at its end.

// Operations that are executed again are behind this word of pvxs.
#define PVXS_ENABLE_EXPERT_API

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <pvxs/client.h>
#include <pvxs/log.h>
#include <pvxs/nt.h>

#include "common.h"

using namespace pvxs;
using peer::Clock;

static const char HELP[] =
    "pvxs-client get|put|monitor|connect [NAME]: loads a pvAccess server with pvxs\n\n"
    "  --server ADDRESS   IP:PORT of the server, searched over TCP (else as EPICS_PVA_* say)\n"
    "  --start COMMAND    starts this with sh, reads the address from its ready line, and stops\n"
    "                     it in the end\n"
    "  --channels N       records called k, 0 ... N-1 in digits, instead of NAME\n"
    "  --name-bytes N     how long such a name is (8)\n"
    "  --seconds S        for so long (3)\n"
    "  --reexecute yes|no get and put: made once and executed again, or anew each time (yes)\n"
    "  --outstanding N    get and put: so many at once on each channel (1)\n"
    "  --elements N       put: arrays of so many elements; 0 (the default) is scalars\n"
    "  --queue-size N     monitor: the server's queue (4)\n"
    "  --pipeline yes|no  monitor: acknowledged window (no)\n"
    "  --wait SECONDS     monitor: pause after each update (0)\n\n"
    "connect measures how long it takes to find all channels and read each once.\n";

namespace {

/// What has come so far. One lock for all: pvxs calls back from one thread.
struct Tally {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t operations = 0, elements = 0, missed = 0, wrong = 0, errors = 0;
    int64_t first = 0, last = 0;
    std::vector<uint64_t> latencies_ns;

    /// Checks a value: its elements are alike. Gives the value.
    int64_t take(const Value &value) {
        auto field = value["value"];
        uint64_t count = 1;
        bool alike = true;
        if (field.type().isarray()) {
            auto array = field.as<shared_array<const int64_t>>();
            count = array.size();
            first = array.empty() ? -1 : array[0];
            for (auto element : array) {
                alike &= element == first;
            }
        } else {
            first = field.as<int64_t>();
        }
        last = first;
        operations++;
        elements += count;
        wrong += alike ? 0 : 1;
        return first;
    }

    void print(double time_s, uint64_t operations_before, uint64_t elements_before, bool end) {
        auto &l = latencies_ns;
        std::sort(l.begin(), l.end());
        auto at = [&](double q) { return l.empty() ? 0 : l[size_t(double(l.size() - 1) * q)]; };
        double count = double(operations - operations_before);
        double element_count = double(elements - elements_before);
        std::printf(
            "{\"%s\":true,\"t_ns\":%.0f,\"operations\":%.0f,\"operations_per_s\":%.3f,"
            "\"elements_per_s\":%.0f,\"bytes_per_s\":%.0f,\"first\":%lld,\"last\":%lld,"
            "\"missed\":%llu,\"wrong\":%llu,\"errors\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu}\n",
            end ? "total" : "second", time_s * 1e9, count, count / time_s,
            element_count / time_s, element_count * 8 / time_s, (long long)first, (long long)last,
            (unsigned long long)missed, (unsigned long long)wrong, (unsigned long long)errors,
            (unsigned long long)at(0.5), (unsigned long long)at(0.99));
        std::fflush(stdout);
    }
};

/// Waits for so long, printing a line a second, and then the sum.
void report(Tally &tally, double seconds) {
    auto start = Clock::now(), second = start;
    std::unique_lock<std::mutex> lock(tally.mutex);
    uint64_t first_operations = tally.operations, first_elements = tally.elements;
    uint64_t operations = first_operations, elements = first_elements;
    while (!peer::stopped && peer::seconds_since(start) < seconds) {
        double left_s = std::min(0.05, seconds - peer::seconds_since(start));
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::duration<double>(std::max(left_s, 0.0)));
        lock.lock();
        if (peer::seconds_since(second) >= 1 && tally.operations > operations) {
            tally.print(peer::seconds_since(second), operations, elements, false);
            operations = tally.operations;
            elements = tally.elements;
            second = Clock::now();
        }
    }
    peer::stopped = true;
    tally.print(peer::seconds_since(start), first_operations, first_elements, true);
}

uint64_t ns_since(Clock::time_point start) {
    return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
        Clock::now() - start).count());
}

/// Gets or puts on one channel, one after another.
struct Caller : std::enable_shared_from_this<Caller> {
    client::Context &context;
    Tally &tally;
    std::string name;
    bool puts, again;
    size_t elements;
    int64_t value = 0;
    Value prototype;
    Clock::time_point sent;
    std::shared_ptr<client::Operation> operation, before;

    Caller(client::Context &context, Tally &tally, std::string name, bool puts, bool again,
           size_t elements)
        : context(context), tally(tally), name(std::move(name)), puts(puts), again(again),
          elements(elements) {}

    Value filled(Value next) {
        value++;
        if (elements > 0) {
            next["value"] = shared_array<int64_t>(elements, value).freeze();
        } else {
            next["value"] = value;
        }
        return next;
    }

    void done(client::Result &&result) {
        uint64_t latency_ns = ns_since(sent);
        std::lock_guard<std::mutex> lock(tally.mutex);
        try {
            Value got = result();
            if (puts) {
                tally.operations++;
                tally.elements += elements > 0 ? elements : 1;
            } else {
                tally.take(got);
            }
            if (tally.latencies_ns.size() < 20000000) {
                tally.latencies_ns.push_back(latency_ns);
            }
        } catch (std::exception &error) {
            if (tally.errors++ == 0) {
                std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
            }
        }
        if (!peer::stopped) {
            again ? execute() : start();
        }
    }

    void execute() {
        auto self = shared_from_this();
        auto done = [self](client::Result &&result) { self->done(std::move(result)); };
        sent = Clock::now();
        puts ? operation->reExecPut(filled(prototype.cloneEmpty()), done)
             : operation->reExecGet(done);
    }

    void start() {
        auto self = shared_from_this();
        auto done = [self](client::Result &&result) { self->done(std::move(result)); };
        auto init = [self](const Value &value) {
            self->prototype = value;
            if (self->again) {
                self->execute();
            }
        };
        before = operation;
        sent = Clock::now();
        if (puts) {
            auto build = [self](Value &&value) { return self->filled(value.cloneEmpty()); };
            operation = context.put(name).fetchPresent(false).build(build).autoExec(!again)
                .onInit(init).result(done).syncCancel(false).exec();
        } else {
            operation = context.get(name).autoExec(!again).onInit(init).result(done)
                .syncCancel(false).exec();
        }
    }
};

void call(client::Context &context, const peer::Options &options,
          const std::vector<std::string> &names, bool puts) {
    Tally tally;
    size_t outstanding = size_t(options.number("outstanding", 1, 1, 10000));
    bool again = options.text("reexecute", "yes") == "yes";
    size_t elements = size_t(options.number("elements", 0, 0, 1e9));
    std::vector<std::shared_ptr<Caller>> callers;
    for (auto &name : names) {
        for (size_t index = 0; index < outstanding; index++) {
            callers.push_back(
                std::make_shared<Caller>(context, tally, name, puts, again, elements));
            callers.back()->start();
        }
    }
    report(tally, options.number("seconds", 3, 0, 1e9));
    context.close();
}

void monitor(client::Context &context, const peer::Options &options,
             const std::vector<std::string> &names) {
    Tally tally;
    auto queue_size = int32_t(options.number("queue-size", 4, 1, 1e6));
    bool pipeline = options.text("pipeline", "no") == "yes";
    double wait_s = options.number("wait", 0, 0, 3600);
    std::vector<std::shared_ptr<client::Subscription>> all;
    for (auto &name : names) {
        auto before = std::make_shared<int64_t>(-1);
        auto take = [&tally, before, wait_s](client::Subscription &subscription) {
            for (;;) {
                try {
                    auto value = subscription.pop();
                    if (!value) {
                        return;
                    }
                    std::lock_guard<std::mutex> lock(tally.mutex);
                    int64_t now = tally.take(value);
                    if (*before >= 0) {
                        tally.wrong += now <= *before ? 1 : 0;
                        tally.missed += now > *before + 1 ? uint64_t(now - *before - 1) : 0;
                    }
                    *before = now;
                } catch (client::Connected &) {
                } catch (std::exception &error) {
                    std::lock_guard<std::mutex> lock(tally.mutex);
                    tally.errors += peer::stopped ? 0 : 1;
                }
                if (wait_s > 0) {
                    std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));
                }
            }
        };
        all.push_back(context.monitor(name).record("queueSize", queue_size)
            .record("pipeline", pipeline).maskConnected(true).event(take).exec());
    }
    auto start = Clock::now();
    while (!peer::stopped && peer::seconds_since(start) < 10) {
        std::lock_guard<std::mutex> lock(tally.mutex);
        if (tally.operations >= all.size()) {
            break;
        }
    }
    report(tally, options.number("seconds", 3, 0, 1e9));
    all.clear();
    context.close();
}

/// Finds every channel and reads it once.
void connect(client::Context &context, const std::vector<std::string> &names) {
    auto start = Clock::now();
    std::vector<std::shared_ptr<client::Operation>> all;
    for (auto &name : names) {
        all.push_back(context.get(name).exec());
    }
    for (auto &operation : all) {
        operation->wait(30);
    }
    double took_s = peer::seconds_since(start);
    std::printf("{\"total\":true,\"channels\":%zu,\"time_s\":%.6f,\"channels_per_s\":%.1f}\n",
                names.size(), took_s, double(names.size()) / took_s);
}

/// A server started for this client: its ready line says where it is.
struct Started {
    pid_t pid = -1;
    std::thread reader;

    std::string start(const std::string &command) {
        int ends[2];
        if (pipe(ends) != 0 || (pid = fork()) < 0) {
            peer::Options::fail("cannot start the server");
        }
        if (pid == 0) {
            setpgid(0, 0);
            dup2(ends[1], 1);
            close(ends[0]);
            close(ends[1]);
            std::string exec = "exec " + command;
            execl("/bin/sh", "sh", "-c", exec.c_str(), nullptr);
            _exit(127);
        }
        close(ends[1]);
        FILE *out = fdopen(ends[0], "r");
        char line[4096] = "";
        const char *key = "\"address\":\"";
        if (!std::fgets(line, sizeof line, out) || !std::strstr(line, key)) {
            stop();
            peer::Options::fail("the server says no ready line");
        }
        std::string address = std::strstr(line, key) + std::strlen(key);
        // What it says later goes on, so that it never waits for a reader.
        reader = std::thread([out] {
            char line[4096];
            while (std::fgets(line, sizeof line, out)) {
                std::fputs(line, stdout);
            }
        });
        return address.substr(0, address.find('"'));
    }

    void stop() {
        if (pid > 0) {
            kill(-pid, SIGTERM);
            waitpid(pid, nullptr, 0);
            pid = -1;
        }
        if (reader.joinable()) {
            reader.join();
        }
    }
};

}  // namespace

int main(int argc, char **argv) {
    peer::Options options(argc, argv,
        {"server", "start", "channels", "name-bytes", "seconds", "reexecute", "outstanding",
         "elements", "queue-size", "pipeline", "wait"}, HELP);
    peer::heed_signals();
    if (options.words.empty() || options.words.size() > 2) {
        peer::Options::fail("say get, put, monitor or connect, and NAME or --channels N");
    }
    std::vector<std::string> names;
    size_t channels = size_t(options.number("channels", 0, 0, 1e6));
    for (size_t index = 0; index < channels; index++) {
        names.push_back(peer::key_name(index, size_t(options.number("name-bytes", 8, 2, 32))));
    }
    if (options.words.size() == 2) {
        names.push_back(options.words[1]);
    }
    if (names.empty()) {
        peer::Options::fail("which record? say NAME or --channels N");
    }
    logger_config_env();
    Started started;
    std::string server = options.text("server", "");
    if (!options.text("start", "").empty()) {
        server = started.start(options.text("start", ""));
    }
    auto config = client::Config::fromEnv();
    if (!server.empty()) {
        config.addressList.clear();
        config.autoAddrList = false;
        config.nameServers = {server};
    }
    auto context = config.build();
    const std::string &mode = options.words[0];
    if (mode == "get" || mode == "put") {
        call(context, options, names, mode == "put");
    } else if (mode == "monitor") {
        monitor(context, options, names);
    } else if (mode == "connect") {
        connect(context, names);
    } else {
        started.stop();
        peer::Options::fail("there is no \"" + mode + "\"; say get, put, monitor or connect");
    }
    context.close();
    started.stop();
    return 0;
}
