"""Random commands, each followed by a sync of one client, whose definition is then to equal the one
that a new client gets. Arguments: port, seed, commands, a file for what it came to (the definition
after each command, without what differs from run to run), and `peer` for ecFlow's own server or
`structure` for nodes that come and go. The
definition is loaded by the caller. Prints how many syncs brought changes and not the whole text.
"""

import difflib
import os
import random
import re
import sys

import ecflow

port, seed, count, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
# ecFlow forgets flags where attributes were added: its own sync is not compared.
is_peer = sys.argv[5:] == ["peer"]
rng = random.Random(seed)
ecflow.PrintStyle.set_style(ecflow.Style.MIGRATE)


def client():
    made = ecflow.Client("localhost", port)
    made.set_retry_connection_period(1)
    return made


def text(of, clocks):
    """The definition, without what a sync doesn't carry in ecFlow either: of calendars it does
    only when asked, or when something else has changed."""
    lines = []
    for line in str(of.get_defs()).splitlines():
        if line.startswith(("#", "defs_state", "history")) or " # server" in line:
            continue
        if line.startswith("  calendar") and not clocks:
            continue
        lines.append(re.sub(r" rt:-?[\d:]+", "", line))
    return lines


def between_servers(line):
    """What also differs from one server to another: times and passwords."""
    line = re.sub(r" (dur:[\d:]+|passwd:\S+|rid:\S+)", "", line)
    return re.sub(r" date:\S+| nextTimeSlot/\S+| relativeDuration/\S+| free| isValid:false", "", line).rstrip(" #")


def child(path, act):
    job = client()
    job.set_child_path(path)
    job.set_child_password("_DJP_")
    job.set_child_pid("77")
    job.set_child_try_no(1)
    job.set_child_timeout(2)
    act(job)


synced, other, handled = client(), client(), client()
synced.sync_local()
# One that follows one of the suites only.
handled.ch_register(False, ["s"])
handled.sync_local()


def suite(of):
    return [re.sub(r" rt:-?[\d:]+", "", line) for line in str(of.get_defs().find_suite("s")).splitlines()
            if not line.startswith("  calendar")]


nodes = sorted(node.get_abs_node_path() for node in synced.get_defs().get_all_nodes())
tasks = sorted(node.get_abs_node_path() for node in synced.get_defs().get_all_tasks())
suites = [path for path in nodes if path.count("/") == 1]
states = ["complete", "aborted", "queued", "active", "submitted", "unknown"]
flags = ["force_aborted", "user_edit", "task_aborted", "edit_failed", "ecfcmd_failed", "late",
         "by_rule", "queue_limit", "wait", "zombie", "no_reque", "no_script", "killed"]


def value():
    return rng.choice(["1", "x y", "ünï\\ \"q\"", "a;b", "20", "line"])


def state(path):
    other.force_state(path, getattr(ecflow.State, rng.choice(states)))


def recursive(path):
    other.force_state_recursive(path, getattr(ecflow.State, rng.choice(states)))


# Those of the definition's own times are left out.
minutes = ["%02d" % minute for minute in range(60) if minute not in (10, 59)]


def unique():
    """Minutes that no time has yet: ecFlow's client takes two equal times of a node for one."""
    return minutes.pop() if minutes else "none left"


def alter(*words):
    other.alter(rng.choice(nodes[1:]), *words)


commands = [
    lambda: other.suspend(rng.choice(nodes)),
    lambda: other.resume(rng.choice(nodes)),
    lambda: state(rng.choice(nodes)),
    lambda: recursive(rng.choice(nodes)),
    lambda: other.force_event(rng.choice(tasks) + ":e", rng.choice(["set", "clear"])),
    lambda: other.requeue(rng.choice(nodes[1:]), rng.choice(["", "abort", "force"])),
    lambda: other.order(rng.choice(nodes), rng.choice(["top", "bottom", "alpha", "order", "up"])),
    lambda: other.free_trigger_dep(rng.choice(tasks)),
    lambda: other.free_all_dep(rng.choice(tasks)),
    lambda: other.alter(rng.choice(nodes), "add", "variable", rng.choice("VWXY"), value()),
    lambda: other.alter(rng.choice(nodes), "change", "variable", rng.choice("VWXY"), value()),
    lambda: other.alter(rng.choice(nodes), "delete", "variable", rng.choice("VWXY")),
    lambda: other.alter("/", "add", "variable", rng.choice("PQ"), value()),
    lambda: other.alter(rng.choice(tasks), "change", "label", "lab", value()),
    lambda: other.alter(rng.choice(tasks), "change", "meter", "m", str(rng.randrange(101))),
    lambda: other.alter(rng.choice(tasks), "change", "event", "e", rng.choice(["set", "clear"])),
    lambda: other.alter(rng.choice(tasks), "add", "label", rng.choice(["l1", "l2"]), value()),
    lambda: other.alter(rng.choice(suites), "change", "limit_max", "L", str(rng.randrange(1, 9))),
    lambda: other.alter(rng.choice(suites), "change", "limit_value", "L", str(rng.randrange(9))),
    lambda: other.alter(rng.choice(nodes), "add", "limit", "M", "4"),
    lambda: other.alter(rng.choice(nodes), "set_flag", rng.choice(flags)),
    lambda: other.alter(rng.choice(nodes), "clear_flag", rng.choice(flags)),
    lambda: other.alter(rng.choice(nodes), "change", "defstatus", rng.choice(states[:3])),
    lambda: other.alter(rng.choice(nodes), "delete", "trigger"),
    lambda: other.alter(rng.choice(tasks), "delete", "label", "lab"),
    lambda: alter("add", "time", rng.choice(["", "+"]) + "23:" + unique()),
    lambda: alter("add", "time", "22:00 23:00 00:" + unique()),
    lambda: alter("add", "today", "23:" + unique()),
    lambda: alter("add", "date", "1.2.20" + unique()),
    lambda: alter("add", "cron", "23:" + unique()),
    lambda: alter("delete", rng.choice(["time", "today", "date", "day", "cron"])),
    lambda: alter("add", "trigger", "/s/f/a == complete"),
    lambda: alter("change", rng.choice(["trigger", "complete"]), "/t/x == aborted"),
    lambda: alter("change", "repeat", rng.choice(["2", "20240102", "two", "y"])),
    lambda: alter("delete", "repeat"),
    lambda: alter("add", "inlimit", rng.choice(["/t:L", "/s:L 2"])),
    lambda: alter("delete", "inlimit", "/t:L"),
    lambda: alter("change", "late", "-s +00:20"),
    lambda: alter("delete", "late"),
    lambda: alter("add", "zombie", "user:fail::40"),
    lambda: alter("sort", rng.choice(["event", "label", "variable", "limit"])),
    lambda: other.alter("/t", "change", "clock_gain", str(rng.randrange(300))),
    lambda: child(rng.choice(tasks), lambda job: job.child_init()),
    lambda: child(rng.choice(tasks), lambda job: job.child_meter("m", rng.randrange(101))),
    lambda: child(rng.choice(tasks), lambda job: job.child_label("lab", value())),
    lambda: child(rng.choice(tasks), lambda job: job.child_event("e")),
    lambda: child(rng.choice(tasks), lambda job: job.child_abort(value())),
    lambda: child(rng.choice(tasks), lambda job: job.child_complete()),
    lambda: child(rng.choice(tasks), lambda job: job.child_queue("Q", "active")),
    lambda: other.shutdown_server() if rng.random() < 0.3 else other.ping(),
]

if sys.argv[5:] == ["structure"]:
    def moved():
        other.plug(rng.choice(nodes[1:]), rng.choice(nodes))

    def put_again():
        other.replace(rng.choice(["/s/f", "/s/f/a", "/s/g/h", "/s/g"]), definition, True, True)

    definition = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sync.def")
    containers = [path for path in nodes if path not in tasks and path.count("/") > 1]
    commands += [
        lambda: other.archive(rng.choice(containers)),
        lambda: other.restore(rng.choice(containers)),
        lambda: other.delete(rng.choice(tasks + containers), True),
        moved, put_again, put_again, put_again,
    ]

followed = 0
with open(out, "w") as log:
    for number in range(count):
        which = rng.randrange(len(commands))
        try:
            commands[which]()
            done = "done"
        except RuntimeError as why:
            done = "refused"
            reason = str(why)
        if rng.random() < 0.3:
            log.write("%d %d %s\n" % (number, which, done))
            continue
        clocks = rng.random() < 0.5
        # A minute of the calendars may pass between the two.
        for _ in range(3):
            synced.sync_local(clocks)
            followed += len(list(synced.changed_node_paths)) > 0
            fresh = client()
            fresh.sync_local()
            mine, full = text(synced, clocks), text(fresh, clocks)
            handled.sync_local()
            mine += suite(handled)
            full += suite(fresh)
            if mine == full or is_peer:
                break
        if mine != full and not is_peer:
            differ = difflib.unified_diff(mine, full, "synced", "whole", lineterm="", n=1)
            sys.exit("after %d commands of seed %d, the last %d (%s):\n%s" % (
                number + 1, seed, which, done, "\n".join(differ)))
        log.write("%d %d %s\n" % (number, which, done))
        log.write("\n".join(map(between_servers, text(fresh, False))) + "\n")
print(followed)
