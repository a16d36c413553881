"""Drives a server with the published client of NoPayloadDB, unchanged: every method of it.

Run as: python nopayload_client.py URL TOKEN FOLDER, against a server that has no data.
"""

import hashlib
import sys
from pathlib import Path

from nopayloaddb_client import NoPayloadDBClient, NoPayloadDBError
from nopayloaddb_client.populate_test_data import populate

URL, TOKEN, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
OPEN = sys.maxsize


def refused(code, said, call, *args, **named):
    """Checks that a call is refused with this status, and with words that have these in them."""
    try:
        answer = call(*args, **named)
    except NoPayloadDBError as error:
        assert error.status_code == code, (error.status_code, error)
        assert said in str(error), error
        assert isinstance(error.details, dict), error.details
    else:
        raise AssertionError(f"not refused: {answer}")


def write_file(name, content):
    path = FOLDER / name
    path.write_bytes(content)
    return path


def names(rows):
    return [row["name"] for row in rows]


def make(client):
    """Statuses, a tag, types and lists."""
    refused(404, "unlocked", client.create_global_tag, "T", "me")
    for name in ("unlocked", "locked", "frozen"):
        client.create_global_tag_status(name)
    assert names(client.list_global_tag_statuses()) == ["unlocked", "locked", "frozen"]
    tag = client.create_global_tag("T", "me")
    assert (tag["name"], tag["author"], tag["status"]) == ("T", "me", "unlocked")
    refused(400, "already exists", client.create_global_tag, "T", "me")
    for name in ("Beam", "Field"):
        client.create_payload_type(name)
    assert names(client.list_payload_types()) == ["Beam", "Field"]
    refused(404, "Nothing", client.create_payload_list, "Nothing")
    lists = [client.create_payload_list(name)["name"] for name in ("Beam", "Field")]
    assert lists == ["Beam_1", "Field_2"]
    for name in lists:
        assert client.attach_payload_list("T", name)["global_tag"] == "T"
    assert client.get_global_tag_payload_lists("T") == {"Beam": "Beam_1", "Field": "Field_2"}
    return lists


def fill(client, beam, field):
    """Files, and intervals that make room for each other."""
    contents = {name: name.encode() * 1000 for name in ("a", "b", "c", "f")}
    sums = {}
    for name, content in contents.items():
        key = f"some folder/{name}é.bin"
        uploaded = client.upload_payload(write_file(name, content), payload_url=key)
        assert uploaded.checksum == "sha256:" + hashlib.sha256(content).hexdigest()
        sums[name] = (uploaded.payload_url, uploaded.checksum)
    # The same again is fine, other bytes are not.
    client.upload_payload(FOLDER / "a", payload_url=sums["a"][0])
    refused(409, "never change", client.upload_payload, FOLDER / "b", payload_url=sums["a"][0])

    def attach(payload_list, name, start, end=None):
        ends = {} if end is None else {"major_iov_end": end[0], "minor_iov_end": end[1]}
        url, checksum = sums[name]
        return client.create_and_attach_payload_iov(
            payload_list, payload_url=url, checksum=checksum,
            major_iov=start[0], minor_iov=start[1], **ends)

    attach(beam, "a", (0, 0), (0, 10))
    attach(beam, "b", (0, 10), (0, 20))
    c = attach(beam, "c", (0, 5), (0, 15))
    assert c["payload_list"] == beam and c["comb_iov"] == "0.0000000000000000005"
    f = attach(field, "f", (0, 0))
    assert (f["major_iov_end"], f["minor_iov_end"]) == (OPEN, OPEN)
    assert client.get_payload_iov(f["id"])["payload_url"] == sums["f"][0]
    refused(400, "greater or equal", client.create_payload_iov,
            payload_url="x", checksum="md5:0", major_iov=2, minor_iov=0,
            major_iov_end=1, minor_iov_end=0)
    refused(404, "doesn't exist", client.attach_payload_iov, beam, 10_000)
    return contents, sums


def read(client, contents, sums):
    """Both forms of the question, and the files that it leads to."""
    for minor, shown in ((0, "a"), (4, "a"), (5, "c"), (14, "c"), (15, "b"), (25, "b")):
        rows = {row["payload_type_name"]: row for row in client.query_payloads("T", 0, minor)}
        assert rows["Beam"]["payload_url"] == sums[shown][0], (minor, rows)
        assert rows["Beam"]["checksum"] == sums[shown][1]
        params = {"gtName": "T", "majorIOV": 0, "minorIOV": minor}
        for path in ("payload-iovs/query/", "payloadiovs/"):
            positional = client._request("GET", path, params=params)
            assert positional == [list(rows[name].values()) for name in ("Beam", "Field")]
    files = client.get_payload_files("T", 0, 7)
    assert {name: path.read_bytes() for name, path in files.items()} == {
        "Beam": contents["c"], "Field": contents["f"]}
    # The second time it comes from the client's cache.
    assert client.get_payload_files("T", 0, 7, payload_type="Beam") == {"Beam": files["Beam"]}
    assert client.query_payloads("none", 0, 0) == []
    refused(404, "Not found.", client.download_payload, "none.bin", checksum="md5:00")


def browse(client):
    """Lists and pages."""
    assert names(client.list_global_tags()) == ["T"]
    whole = client.get_global_tag("T")
    assert [len(one["payload_iov"]) for one in whole["payload_lists"]] == [3, 1]
    assert client.get_global_tag("T", light=True)["payload_iov_count"] == 4
    refused(404, "Not found.", client.get_global_tag, "none")
    assert len(client.list_payload_lists()) == 2 and len(client.list_payload_iovs()) == 4
    assert client.get_payload_list("Beam_1")["iov_count"] == 3
    page = client.browse_payload_iovs(
        page=1, page_size=2, payload_type="Beam", sort="minor_iov", order="desc")
    assert (page.count, page.total_pages) == (3, 2)
    assert [row["minor_iov"] for row in page.results] == [15, 5]
    assert page.results[0]["global_tag"] == "T"
    assert client.browse_payload_iovs(search="FÉ.BIN").count == 1
    assert names(client.browse_payload_lists(global_tag="T", sort="iov_count").results) == [
        "Field_2", "Beam_1"]
    assert names(client.browse_payload_types(search="eam").results) == ["Beam"]
    assert client.browse_global_tags(status="locked").count == 0


def close(client, beam):
    """Copies, locks, and what they refuse."""
    copy = client.clone_global_tag("T", "Copy")
    assert (copy["status"], copy["payload_iov_count"]) == ("unlocked", 4)
    client.change_global_tag_status("T", "locked")
    assert client.get_global_tag("T", light=True)["status"] == "locked"

    def create(start, end):
        return client.create_payload_iov(
            payload_url="late", checksum="md5:0", major_iov=0, minor_iov=start,
            major_iov_end=0, minor_iov_end=end)["id"]

    refused(409, "GT is LOCKED", client.attach_payload_iov, beam, create(12, 30))
    assert client.attach_payload_iov(beam, create(20, 30))["payload_list"] == beam
    refused(409, "locked", client.delete_global_tag, "T")
    client.change_global_tag_status("T", "frozen")
    refused(409, "frozen", client.attach_payload_iov, beam, create(30, 40))
    refused(409, "frozen", client.delete_payload_iov, "T", "Beam", 0, 20,
            major_iov_end=0, minor_iov_end=30)
    client.change_global_tag_status("T", "unlocked")
    deleted = client.delete_payload_iov("T", "Beam", 0, 20, major_iov_end=0, minor_iov_end=30)
    assert deleted == {"detail": "PayloadIOV late deleted."}
    client.delete_payload_iov("T", "Field", 0, 0)
    refused(404, "doesn't exist", client.delete_payload_iov, "T", "Field", 0, 0)
    refused(409, "contains 3", client.delete_payload_list, beam)
    client.delete_payload_list("Field_2")
    refused(409, "is used by", client.delete_payload_type, "Beam")
    client.delete_global_tag("T")
    client.delete_global_tag("Copy")
    client.delete_payload_type("Beam")


def main():
    with NoPayloadDBClient(URL, access_token=TOKEN, cache_dir=FOLDER / "cache") as client:
        beam, field = make(client)
        contents, sums = fill(client, beam, field)
        read(client, contents, sums)
        browse(client)
        close(client, beam)
        # The client's own tutorial, which is run again on what it made.
        populate(client)
        populate(client)
        files = client.get_payload_files("ClientTutorialGT", 0, 150)
        assert len(files) == 4, files
    with NoPayloadDBClient(URL, access_token="another-token-of-no-use", cache_dir=FOLDER) as client:
        assert names(client.list_global_tags()) == ["ClientTutorialGT"]
        try:
            client.create_payload_type("Beam")
        except NoPayloadDBError as error:
            assert error.status_code == 401, error
        else:
            raise AssertionError("a token is not needed")
    print("the client is content")


main()
