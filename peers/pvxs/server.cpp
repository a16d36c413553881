// A pvxs server of counted values, to be measured beside `loadline serve records`: records that
// clients write, or that a producer advances by one, every element of an array alike. Each value
// carries the time at which it was made.

#include <thread>

#include <unistd.h>

#include <pvxs/client.h>
#include <pvxs/log.h>
#include <pvxs/nt.h>
#include <pvxs/server.h>
#include <pvxs/sharedpv.h>
#include <pvxs/source.h>

#include "common.h"

using namespace pvxs;
using peer::Clock;

static const char HELP[] =
    "pvxs-server: records of 64-bit integers, served by pvxs on the loopback\n\n"
    "  --port N          TCP port; 0 (the default) is any\n"
    "  --udp-port N      port for searches; 0 (the default) is any\n"
    "  --records N       how many records (1)\n"
    "  --name-bytes N    they are called k, 0 ... N-1 in decimal digits, so many bytes in all (8)\n"
    "  --name TEXT       what the one record is called instead\n"
    "  --elements N      arrays of so many elements; 0 (the default) is scalars\n"
    "  --produce KIND    no (the default): clients write; yes: every value goes up by one at a\n"
    "                    time, into a buffer made anew each time\n"
    "  --delay SECONDS   the producer's pause after it has advanced every record (0.0001)\n"
    "  --rate N          updates a second over all records, instead of a pause\n"
    "  --mailbox TEXT    one more record, which clients write although others are produced\n"
    "  --monitors N      monitors in this process, through the loopback (0)\n"
    "  --seconds S       ends by itself after so long (0: never)\n\n"
    "Prints one line of JSON when it is ready, and while it produces one a second on stderr.\n"
    "At its end it prints what it produced in all, and how many names were searched for, each\n"
    "search counted, on stdout.\n";

namespace {

struct Record {
    std::string name;
    server::SharedPV pv;
};

struct Counts {
    uint64_t iterations = 0, updates = 0;
};

struct Producer {
    std::vector<Record> &records;
    const Value &prototype;
    size_t elements;
    double delay_s;
    double rate;
    std::atomic<uint64_t> iterations{0};
    std::atomic<uint64_t> updates{0};
    double took_s = 0;

    void run() {
        const auto start = Clock::now();
        auto report = start;
        Counts reported;
        for (int64_t value = 1; !peer::stopped; value++) {
            for (auto &record : records) {
                record.pv.post(made(value));
            }
            iterations++;
            if (rate > 0) {
                double due_s = double(iterations) * double(records.size()) / rate;
                std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double>(due_s)));
            } else if (delay_s > 0) {
                std::this_thread::sleep_for(std::chrono::duration<double>(delay_s));
            }
            double since_s = peer::seconds_since(report);
            if (since_s >= 1) {
                print(stderr, "second", reported, since_s, value);
                reported = {iterations, updates};
                report = Clock::now();
            }
        }
        took_s = peer::seconds_since(start);
    }

    Value made(int64_t value) const {
        auto next = prototype.cloneEmpty();
        if (elements > 0) {
            shared_array<int64_t> array(elements, value);
            next["value"] = array.freeze();
        } else {
            next["value"] = value;
        }
        stamp(next);
        return next;
    }

    static void stamp(Value &value) {
        using namespace std::chrono;
        auto now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
        value["timeStamp.secondsPastEpoch"] = int64_t(now / 1000000000);
        value["timeStamp.nanoseconds"] = int32_t(now % 1000000000);
    }

    /// Prints what came after `before`.
    void print(FILE *to, const char *what, Counts before, double time_s, int64_t value) const {
        uint64_t count = iterations - before.iterations;
        double per_s = double(count) / time_s;
        double elements_per_s = per_s * double(records.size()) * double(elements ? elements : 1);
        std::fprintf(to,
            "{\"%s\":true,\"value\":%lld,\"iterations\":%llu,\"iterations_per_s\":%.3f,"
            "\"elements_per_s\":%.0f,\"updates_per_s\":%.3f,\"time_s\":%.3f}\n",
            what, (long long)value, (unsigned long long)count, per_s, elements_per_s,
            double(updates - before.updates) / time_s, time_s);
        std::fflush(to);
    }
};

/// Counts the names that clients search for, each time that they do; it claims none of them.
struct Searches : server::Source {
    std::atomic<uint64_t> names{0};

    void onSearch(Search &search) override {
        for (auto &name : search) {
            (void)name;
            names++;
        }
    }

    void onCreate(std::unique_ptr<server::ChannelControl> &&) override {}
};

/// What a client writes is kept with the time at which it came, as a database's record does.
void keep(server::SharedPV &pv, std::unique_ptr<server::ExecOp> &&op, Value &&value) {
    Producer::stamp(value);
    pv.post(value);
    op->reply();
}

std::vector<std::shared_ptr<client::Subscription>> monitors(
    client::Context &context, const std::string &name, size_t count,
    std::atomic<uint64_t> &updates) {
    std::vector<std::shared_ptr<client::Subscription>> all;
    for (size_t index = 0; index < count; index++) {
        auto take = [&updates](client::Subscription &subscription) {
            try {
                while (subscription.pop()) {
                    updates++;
                }
            } catch (std::exception &) {
                // It is connected, or no longer; the next event says more.
            }
        };
        all.push_back(context.monitor(name).event(take).exec());
    }
    return all;
}

}  // namespace

int main(int argc, char **argv) {
    peer::Options options(argc, argv,
        {"port", "udp-port", "records", "name-bytes", "name", "elements", "produce", "delay",
         "rate", "mailbox", "monitors", "seconds"}, HELP);
    if (!options.words.empty()) {
        peer::Options::fail("what is \"" + options.words[0] + "\"? --help says what there is");
    }
    peer::heed_signals();
    logger_config_env();
    size_t count = size_t(options.number("records", 1, 1, 1e6));
    size_t name_bytes = size_t(options.number("name-bytes", 8, 2, 32));
    size_t elements = size_t(options.number("elements", 0, 0, 1e9));
    bool produces = options.text("produce", "no") == "yes";
    std::string one = options.text("name", "");
    if (!one.empty() && count != 1) {
        peer::Options::fail("--name names one record, and --records says " +
            std::to_string(count));
    }

    auto type = elements > 0 ? TypeCode::Int64A : TypeCode::Int64;
    const auto prototype = nt::NTScalar{type}.create();
    server::Config config;
    config.interfaces = {"127.0.0.1"};
    config.auto_beacon = false;
    config.tcp_port = (unsigned short)options.number("port", 0, 0, 65535);
    config.udp_port = (unsigned short)options.number("udp-port", 0, 0, 65535);
    auto server = config.build();

    std::vector<Record> records;
    Producer producer{records, prototype, elements, options.number("delay", 0.0001, 0, 3600),
        options.number("rate", 0, 0, 1e9)};
    for (size_t index = 0; index < count; index++) {
        auto name = one.empty() ? peer::key_name(index, name_bytes) : one;
        auto pv = produces ? server::SharedPV::buildReadonly() : server::SharedPV::buildMailbox();
        if (!produces) {
            pv.onPut(keep);
        }
        pv.open(producer.made(0));
        server.addPV(name, pv);
        records.push_back({name, pv});
    }
    std::string mailbox = options.text("mailbox", "");
    if (!mailbox.empty()) {
        auto pv = server::SharedPV::buildMailbox();
        pv.onPut(keep);
        pv.open(producer.made(0));
        server.addPV(mailbox, pv);
    }
    auto searches = std::make_shared<Searches>();
    server.addSource("searches", searches, -1);
    server.start();
    auto bound = server.config();
    std::printf("{\"ready\":true,\"service\":\"pvxs-server\",\"pid\":%d,"
                "\"address\":\"127.0.0.1:%u\",\"addresses\":{\"udp\":\"127.0.0.1:%u\"}}\n",
                int(getpid()), unsigned(bound.tcp_port), unsigned(bound.udp_port));
    std::fflush(stdout);

    client::Context context;
    std::vector<std::shared_ptr<client::Subscription>> local;
    size_t monitor_count = size_t(options.number("monitors", 0, 0, 1000));
    if (monitor_count > 0) {
        auto own = server.clientConfig();
        own.addressList.clear();
        own.autoAddrList = false;
        own.nameServers = {"127.0.0.1:" + std::to_string(bound.tcp_port)};
        context = own.build();
        local = monitors(context, records[0].name, monitor_count, producer.updates);
    }
    double seconds = options.number("seconds", 0, 0, 1e9);
    auto start = Clock::now();
    std::thread thread;
    if (produces) {
        thread = std::thread([&] { producer.run(); });
    }
    while (!peer::stopped && (seconds == 0 || peer::seconds_since(start) < seconds)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    peer::stopped = true;
    if (thread.joinable()) {
        thread.join();
        producer.print(stdout, "total", {}, producer.took_s, int64_t(producer.iterations));
    }
    local.clear();
    server.stop();
    std::printf("{\"names_searched\":%llu}\n", (unsigned long long)searches->names);
    return 0;
}
