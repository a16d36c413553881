"""The interface over HTTP by Python's own client: the steps of ecflow_http's own test of its API v1,
and the tree beside the one that ecFlow's client holds."""

import http.client
import json
import sys

import ecflow

AT, TOKEN, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])


def ask(method, path, body=None, headers=None, expect=200):
    if headers is None:
        headers = {"Authorization": "Bearer " + TOKEN}
    link = http.client.HTTPConnection(AT, timeout=60)
    link.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = link.getresponse()
    text = answer.read()
    assert answer.status == expect, (method, path, body, answer.status, text)
    return json.loads(text) if text else None


def filtered(path, name):
    return ask("GET", f"{path}?filter={name}")


def steps(node, kind, create, change, delete, member, first, second):
    """An attribute that is added, changed and deleted."""
    path = f"/v1/suites{node}/attributes"
    values = lambda: [one["value"] for one in as_list(filtered(path, member))]
    ask("POST", path, dict(type=kind, **create), expect=201)
    assert values() == [first], (kind, values())
    ask("PUT", path, dict(type=kind, **change))
    assert values() == [second], (kind, values())
    ask("DELETE", path, dict(type=kind, **delete), expect=204)
    assert values() == [], (kind, values())


def as_list(part):
    return part if isinstance(part, list) else [] if part is None else [part]


server = "/v1/server/attributes"
foo = lambda: [v["value"] for v in filtered(server, "variables") if v["name"] == "foo"]
assert filtered("/v1/server/status", "status") == "RUNNING"
assert ask("GET", "/v1/server/ping")["host"].endswith(f":{PORT}")
ask("POST", server, {"type": "variable", "name": "foo", "value": "bar"}, expect=201)
assert foo() == ["bar"]
ask("PUT", server, {"type": "variable", "name": "foo", "value": "baz"}, {"X-API-Key": TOKEN})
assert foo() == ["baz"]
ask("DELETE", f"{server}?key={TOKEN}", {"type": "variable", "name": "foo"}, {}, 204)
assert foo() == []

for headers in [{}, {"Authorization": "Bearer wrong-wrong-wrong"}, {"X-API-Key": "no"}]:
    for method, path in [("POST", server), ("PUT", server), ("DELETE", "/v1/suites/test")]:
        ask(method, path, {"type": "variable", "name": "x", "value": "1"}, headers, 401)
ask("PATCH", server, {}, expect=405)

text = "suite test\n  family a\n    task a\n  endfamily\nendsuite\n"
ask("POST", "/v1/suites", {"definition": text}, expect=201)
ask("POST", "/v1/suites", {"definition": text}, expect=409)
assert "test" in ask("GET", "/v1/suites")
assert ask("GET", "/v1/suites/tree")["test"] == {"a": {"a": {}}}
assert ask("GET", "/v1/suites/test/a/tree") == {"a": {"a": {}}}
ask("PUT", "/v1/suites/test/status", {"action": "begin"})
assert filtered("/v1/suites/test/definition", "definition") == text
ask("PUT", "/v1/suites/test/status", {"action": "suspend"})
assert filtered("/v1/suites/test/status", "status") == "suspended"
assert "suite /test is suspended" in ask("GET", "/v1/suites/test/a/a/status")["why"]["bottom_up_why"]

family = "family dynamic\nendfamily"
ask("PUT", "/v1/suites/test/definition", {"definition": family})
node = "/test/dynamic"
for action, state in [("abort", "aborted"), ("complete", "complete"), ("requeue", "queued"),
                      ("suspend", "suspended")]:
    ask("PUT", f"/v1/suites{node}/status", {"action": action})
    assert filtered(f"/v1/suites{node}/status", "status") == state, action
ask("PUT", f"/v1/suites{node}/status", {"action": "defstatus", "defstatus_value": "complete"})
assert filtered(f"/v1/suites{node}/status", "default_status") == "complete"

named = lambda value, **more: dict(name="foo", value=value, **more)
bare = lambda value, **more: dict(value=value, **more)
steps(node, "meter", named("10", min="0", max="20"), named("15"), named(""), "meters", 10, 15)
steps(node, "limit", named("0"), named("6"), named(""), "limits", 0, 6)
steps(node, "event", named("set"), named(False), named(""), "events", True, False)
steps(node, "label", named("bar"), named("baz"), named(""), "labels", "bar", "baz")
steps(node, "time", bare("+00:20"), bare("+00:25", old_value="+00:20"), bare("+00:25"), "times",
      "+00:20", "+00:25")
steps(node, "day", bare("monday"), bare("tuesday", old_value="monday"), bare("tuesday"), "days",
      "monday", "tuesday")
steps(node, "date", bare("1.*.*"), bare("2.*.*", old_value="1.*.*"), bare("2.*.*"), "dates",
      "1.*.*", "2.*.*")
steps(node, "today", bare("03:00"), bare("03:00 05:00 01:00", old_value="03:00"),
      bare("03:00 05:00 01:00"), "todays", "03:00", "03:00 05:00 01:00")
steps(node, "cron", bare("-w 0,1 10:00"), bare("23:00", old_value="-w 0,1 10:00"), bare("23:00"),
      "crons", "-w 0,1 10:00", "23:00")
late = "-s +00:01 -a 14:30 -c +00:01"
steps(node, "late", bare(late), bare("-c +00:01", old_value=late), bare(""), "late", late,
      "-c +00:01")
steps(node, "complete", bare("/test/a eq complete"), bare("/test/a eq active"), bare(""),
      "complete", "/test/a eq complete", "/test/a eq active")
steps(node, "autocancel", bare("+01:00"), bare("0"), {}, "autocancel", "+01:00", "0")
steps(node, "autoarchive", bare("+01:00"), bare("0"), {}, "autoarchive", "+01:00", "0")
steps(node, "autorestore", bare("/test/a"), bare("/test"), {}, "autorestore", "/test/a", "/test")
variables = lambda: [(v["name"], v["value"]) for v in
                     filtered(f"/v1/suites{node}/attributes", "variables")]
for method, value, status in [("POST", "bar", 201), ("PUT", "baz", 200)]:
    ask(method, f"/v1/suites{node}/attributes", dict(type="variable", **named(value)),
        expect=status)
    assert ("foo", value) in variables()
ask("DELETE", f"/v1/suites{node}/attributes", {"type": "variable", "name": "foo"}, expect=204)
assert not [v for v in variables() if v[0] == "foo"]

ask("GET", "/v1/suites/test/a/a/output", expect=404)
ask("GET", "/v1/suites/test/a/a/script", expect=404)
ask("GET", "/v1/suites/test/none/status", expect=404)
ask("DELETE", f"/v1/suites{node}/definition", expect=204)
ask("GET", f"/v1/suites{node}/definition", expect=404)
ask("DELETE", "/v1/suites/test", expect=204)
counts = ask("GET", "/v1/statistics")
assert counts["num_requests"] > 50 and counts["num_errors"] > 5, counts

# Beside ecFlow's own client.
client = ecflow.Client("localhost", PORT)
client.sync_local()
full = ask("GET", "/v1/suites/tree?content=full&with_id=true&gen_vars=true")


def compare(node, seen):
    kind = type(node).__name__.lower()
    assert seen["type"] == kind and seen["id"] == node.get_abs_node_path(), seen
    assert seen["state"]["node"] == str(node.get_state()), (seen["id"], node.get_state())
    of = lambda kind: [one for one in seen["attributes"] if one["type"] == kind]
    assert [(m["name"], m["min"], m["max"], m["value"]) for m in of("meter")] == \
        [(m.name(), m.min(), m.max(), m.value()) for m in node.meters]
    assert [(one["name"], one["value"]) for one in of("event")] == \
        [(e.name() or str(e.number()), e.value()) for e in node.events]
    assert [(one["name"], one["value"]) for one in of("label")] == \
        [(one.name(), one.new_value() or one.value()) for one in node.labels]
    own = [v for v in of("variable") if not v.get("generated")]
    assert [(v["name"], v["value"]) for v in own] == \
        [(v.name(), v.value()) for v in node.variables]
    assert [(one["name"], one["value"], one["limit"]) for one in of("limit")] == \
        [(one.name(), one.value(), one.limit()) for one in node.limits]
    trigger = node.get_trigger()
    words = trigger.get_expression() if trigger else None
    assert [one["expression"] for one in of("trigger")] == ([words] if words else [])
    children = list(node.nodes) if hasattr(node, "nodes") else []
    below = seen.get("children", {})
    assert list(below) == [child.name() for child in children]
    for child in children:
        compare(child, below[child.name()])


suites = list(client.get_defs().suites)
assert len(suites) == 1 and list(full) == [suite.name() for suite in suites]
for suite in suites:
    compare(suite, full[suite.name()])
path = "/big/f/t"
listed = ask("GET", f"/v1/suites{path}/attributes")
node = client.get_defs().find_abs_node(path)
made = ecflow.VariableList()
node.get_generated_variables(made)
assert {(v.name(), v.value()) for v in made} == \
    {(v["name"], v["value"]) for v in listed["variables"] if v.get("generated")}
assert [up["path"] for up in listed["inherited_variables"]] == ["/big/f", "/big", "/"]
assert node.get_repeat().name() == listed["repeat"]["name"] == "YMD"
assert node.get_repeat().value() == listed["repeat"]["value"]
print("right")
