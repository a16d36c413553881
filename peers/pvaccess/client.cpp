// A client of pvAccessCPP, the older C++ implementation, for the operations that pvxs has no client
// for: a put-get, which writes and reads in one step, and having a record processed.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <epicsEvent.h>
#include <pv/clientFactory.h>
#include <pv/configuration.h>
#include <pv/createRequest.h>
#include <pv/pvAccess.h>

namespace pvd = epics::pvData;
using namespace epics::pvAccess;

static const char HELP[] =
    "pvaccess-client process NAME SEARCH [TIMES]         has a record processed\n"
    "pvaccess-client put-get NAME SEARCH VALUE           writes a number, and prints what is read\n\n"
    "SEARCH is the IP:PORT at which the server is searched. The record's number is its `value`.\n";

namespace {

constexpr double MOST_S = 20;

[[noreturn]] void fail(const std::string &what) {
    std::fprintf(stderr, "error: %s\n", what.c_str());
    std::exit(1);
}

/// What a call back said, to be waited for.
struct Answer {
    epicsEvent came;
    pvd::Status status;

    void say(const pvd::Status &said) {
        status = said;
        came.signal();
    }

    void wait(const char *what) {
        if (!came.wait(MOST_S)) {
            fail(std::string("no answer to the ") + what);
        }
        if (!status.isSuccess()) {
            fail(status.getMessage());
        }
    }
};

struct Opened : ChannelRequester {
    Answer answer;

    std::string getRequesterName() override { return "opened"; }
    void channelCreated(const pvd::Status &, Channel::shared_pointer const &) override {}
    void channelStateChange(Channel::shared_pointer const &, Channel::ConnectionState now) override {
        if (now == Channel::CONNECTED) {
            answer.say(pvd::Status());
        }
    }
};

struct Processed : ChannelProcessRequester {
    Answer answer;

    std::string getRequesterName() override { return "processed"; }
    void channelProcessConnect(const pvd::Status &status,
                               ChannelProcess::shared_pointer const &) override {
        answer.say(status);
    }
    void processDone(const pvd::Status &status, ChannelProcess::shared_pointer const &) override {
        answer.say(status);
    }
};

struct PutGot : ChannelPutGetRequester {
    Answer answer;
    pvd::StructureConstPtr kind;
    pvd::PVStructure::shared_pointer got;

    std::string getRequesterName() override { return "put-got"; }
    void channelPutGetConnect(const pvd::Status &status, ChannelPutGet::shared_pointer const &,
                              pvd::StructureConstPtr const &put,
                              pvd::StructureConstPtr const &) override {
        kind = put;
        answer.say(status);
    }
    void putGetDone(const pvd::Status &status, ChannelPutGet::shared_pointer const &,
                    pvd::PVStructure::shared_pointer const &value,
                    pvd::BitSet::shared_pointer const &) override {
        got = value;
        answer.say(status);
    }
    void getPutDone(const pvd::Status &status, ChannelPutGet::shared_pointer const &,
                    pvd::PVStructure::shared_pointer const &value,
                    pvd::BitSet::shared_pointer const &) override {
        got = value;
        answer.say(status);
    }
    void getGetDone(const pvd::Status &status, ChannelPutGet::shared_pointer const &,
                    pvd::PVStructure::shared_pointer const &value,
                    pvd::BitSet::shared_pointer const &) override {
        got = value;
        answer.say(status);
    }
    double number() const { return got->getSubFieldT<pvd::PVScalar>("value")->getAs<double>(); }
};

void process(const Channel::shared_pointer &channel, int times) {
    auto requester = std::tr1::shared_ptr<Processed>(new Processed);
    auto request = pvd::createRequest("field()");
    auto operation = channel->createChannelProcess(requester, request);
    requester->answer.wait("beginning");
    for (int time = 0; time < times; time++) {
        operation->process();
        requester->answer.wait("processing");
    }
    operation->destroy();
    std::printf("processed %d\n", times);
}

void put_get(const Channel::shared_pointer &channel, double value) {
    auto requester = std::tr1::shared_ptr<PutGot>(new PutGot);
    auto request = pvd::createRequest("putField(value)getField(value,alarm)");
    auto operation = channel->createChannelPutGet(requester, request);
    requester->answer.wait("beginning");
    operation->getGet();
    requester->answer.wait("get of what would be read");
    std::printf("get %g\n", requester->number());
    auto put = pvd::getPVDataCreate()->createPVStructure(requester->kind);
    auto field = put->getSubFieldT<pvd::PVScalar>("value");
    field->putFrom<double>(value);
    pvd::BitSet::shared_pointer changed(new pvd::BitSet(put->getNumberFields()));
    changed->set(field->getFieldOffset());
    operation->putGet(put, changed);
    requester->answer.wait("put-get");
    std::printf("put-get %g\n", requester->number());
    operation->getPut();
    requester->answer.wait("get of what was put");
    std::printf("put %g\n", requester->number());
    operation->destroy();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fputs(HELP, argc == 2 && std::strcmp(argv[1], "--help") == 0 ? stdout : stderr);
        return argc == 2 ? 0 : 2;
    }
    std::string what = argv[1];
    ClientFactory::start();
    auto settings = ConfigurationBuilder()
                        .add("EPICS_PVA_ADDR_LIST", argv[3])
                        .add("EPICS_PVA_AUTO_ADDR_LIST", "NO")
                        .push_map()
                        .build();
    auto provider = ChannelProviderRegistry::clients()->createProvider("pva", settings);
    auto opened = std::tr1::shared_ptr<Opened>(new Opened);
    auto channel = provider->createChannel(argv[2], opened);
    opened->answer.wait("search");
    if (what == "process") {
        process(channel, argc > 4 ? std::atoi(argv[4]) : 1);
    } else if (what == "put-get" && argc > 4) {
        put_get(channel, std::atof(argv[4]));
    } else {
        fail("say process, or put-get with a value");
    }
    return 0;
}
