// What the two programs share: options of the form --name value, and the end by a signal.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace peer {

using Clock = std::chrono::steady_clock;

inline std::atomic<bool> stopped{false};

/// SIGINT and SIGTERM only set a flag: every loop looks at it.
inline void heed_signals() {
    std::signal(SIGINT, [](int) { stopped = true; });
    std::signal(SIGTERM, [](int) { stopped = true; });
    std::signal(SIGPIPE, SIG_IGN);
}

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The command line: words, and options with a value each.
class Options {
public:
    std::vector<std::string> words;

    Options(int argc, char **argv, const std::set<std::string> &known, const char *help) {
        for (int index = 1; index < argc; index++) {
            std::string word = argv[index];
            if (word == "--help" || word == "-h") {
                std::fputs(help, stdout);
                std::exit(0);
            }
            if (word.rfind("--", 0) != 0) {
                words.push_back(word);
                continue;
            }
            std::string name = word.substr(2);
            if (!known.count(name)) {
                fail("there is no option --" + name + "; --help lists them");
            }
            if (index + 1 == argc) {
                fail("--" + name + " needs a value");
            }
            values_[name] = argv[++index];
        }
    }

    [[noreturn]] static void fail(const std::string &message) {
        std::fprintf(stderr, "error: %s\n", message.c_str());
        std::exit(2);
    }

    std::string text(const std::string &name, const std::string &otherwise) const {
        auto found = values_.find(name);
        return found == values_.end() ? otherwise : found->second;
    }

    /// A number from `least` to `most`.
    double number(const std::string &name, double otherwise, double least, double most) const {
        auto found = values_.find(name);
        if (found == values_.end()) {
            return otherwise;
        }
        char *end = nullptr;
        double value = std::strtod(found->second.c_str(), &end);
        if (found->second.empty() || *end || !(value >= least && value <= most)) {
            char range[100];
            std::snprintf(range, sizeof range, "a number from %g to %g", least, most);
            fail("--" + name + " takes " + range + ", not \"" + found->second + "\"");
        }
        return value;
    }

private:
    std::map<std::string, std::string> values_;
};

/// The name of a key in the lab's workloads: k and decimal digits, so many bytes in all.
inline std::string key_name(size_t index, size_t bytes) {
    char name[64];
    std::snprintf(name, sizeof name, "k%0*zu", int(bytes) - 1, index);
    return name;
}

}  // namespace peer
