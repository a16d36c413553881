"""Three clients that many use, each doing what it can with the server at 127.0.0.1:PORT."""

import sys

NAME, PORT = sys.argv[1], int(sys.argv[2])


def pymemcache():
    from pymemcache.client.base import Client
    from pymemcache.client.hash import HashClient

    client = Client(("127.0.0.1", PORT), default_noreply=False)
    client.flush_all()
    assert client.set("a", b"1") and client.get("a") == b"1"
    assert client.get("missing") is None
    assert client.add("a", b"2") is False and client.replace("a", b"2") is True
    assert client.append("a", b"3") and client.prepend("a", b"1") and client.get("a") == b"123"
    assert client.incr("a", 7) == 130 and client.decr("a", 31) == 99
    assert client.incr("missing", 1) is None
    value, unique = client.gets("a")
    assert value == b"99 " and client.cas("a", b"x", unique) is True
    assert client.cas("a", b"y", unique) is False and client.cas("none", b"y", unique) is None
    client.set_many({f"k{n}": str(n).encode() * 100 for n in range(200)})
    assert len(client.get_many([f"k{n}" for n in range(300)])) == 200
    assert len(client.gets_many(["k1", "k2"])) == 2
    assert client.touch("a", 100) is True and client.touch("missing", 1) is False
    assert client.delete("a") is True and client.delete("a") is False
    big = bytes(range(256)) * 4000
    assert client.set("big", big) and client.get("big") == big
    client.set("quiet", b"1", noreply=True)
    assert client.get("quiet") == b"1"
    assert client.version() and client.stats()[b"curr_items"] > 0
    assert client.stats("settings") and client.cache_memlimit(65)
    assert client.set("soon", b"1", expire=-1) and client.get("soon") is None
    assert client.flush_all() and client.get("k1") is None
    many = HashClient([("127.0.0.1", PORT)])
    assert many.set("h", "1") and many.get_many(["h", "i"]) == {"h": b"1"}


def bmemcached():
    import bmemcached

    client = bmemcached.Client(("127.0.0.1:%d" % PORT,))
    client.flush_all()
    assert client.set("a", "text") and client.get("a") == "text"
    assert client.set("b", {"an": ["object", 1]}) and client.get("b") == {"an": ["object", 1]}
    assert client.get("missing") is None
    assert client.add("a", "no") is False and client.replace("a", "yes") is True
    assert client.incr("n", 1, default=5) == 5 and client.incr("n", 3) == 8
    assert client.decr("n", 100) == 0
    value, unique = client.gets("a")
    assert value == "yes" and client.cas("a", "new", unique) is True
    assert client.cas("a", "newer", unique) is False
    assert client.set_multi({f"k{n}": n for n in range(100)}) == []
    assert len(client.get_multi([f"k{n}" for n in range(150)])) == 100
    assert client.delete("a") is True and client.delete_multi(["k1", "k2"])
    assert list(client.stats().values())[0]["curr_items"]
    client.disconnect_all()


def pylibmc():
    import pylibmc

    for binary in (False, True):
        client = pylibmc.Client(["127.0.0.1:%d" % PORT], binary=binary)
        client.behaviors = {"cas": True, "tcp_nodelay": True}
        client.flush_all()
        assert client.set("a", "1") and client.get("a") == "1"
        assert client.add("a", "2") is False and client.replace("a", "3") is True
        assert client.set("n", 10) and client.incr("n", 5) == 15 and client.decr("n") == 14
        value, unique = client.gets("a")
        assert value == "3" and client.cas("a", "4", unique)
        assert client.set_multi({f"k{n}": n for n in range(300)}) == []
        assert len(client.get_multi([f"k{n}" for n in range(400)])) == 300
        assert client.append("a", "5") and client.prepend("a", "3") and client.get("a") == "345"
        assert client.touch("a", 100) is True
        big = "x" * 900_000
        assert client.set("big", big, min_compress_len=0) and client.get("big") == big
        assert client.delete("a") is True and client.delete("a") is False
        assert client.get_stats()[0][1]["curr_items"]


{"pymemcache": pymemcache, "bmemcached": bmemcached, "pylibmc": pylibmc}[NAME]()
print(NAME, "is content")
