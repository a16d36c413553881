"""memcaslap (libmemcached-tools) as a client of loadline: reads, every value compared.

memcaslap.py HOST PORT CONNECTIONS KEY_BYTES VALUE_BYTES SECONDS
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

host, port, connections, key_bytes, value_bytes, seconds = sys.argv[1:]

if shutil.which("memcaslap") is None:
    sys.exit("memcaslap is not installed; this line brings it: apt-get install libmemcached-tools")

# Its own keys and values, of the same lengths; it writes them first, a thousand for each connection,
# and those writes count as operations too.
config = f"""key
{key_bytes} {key_bytes} 1
value
{value_bytes} {value_bytes} 1
cmd
0 0.0
1 1.0
"""

with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file, tempfile.TemporaryFile() as said:
    file.write(config)
    file.flush()
    command = ["memcaslap", "-s", f"{host}:{port}", "-T", "1", "-c", connections, "-w", "1k"]
    command += ["-t", f"{max(1, round(float(seconds)))}s", "-F", file.name, "-v", "1.0"]
    print(json.dumps({"t_ns": time.monotonic_ns()}), flush=True)
    child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
    # The CPU time is memcaslap's own, without this program's.
    _, status, used = os.wait4(child.pid, 0)
    ended_ns = time.monotonic_ns()
    said.seek(0)
    text = said.read().decode()

counts = {name: int(number) for name, number in re.findall(r"^(\w+): (\d+)$", text, re.MULTILINE)}
if status != 0 or "cmd_get" not in counts:
    sys.exit(f"memcaslap: {text.strip()}")
wrong = counts["verify_failed"] + counts["verify_misses"] + counts["get_misses"]
line = {
    "t_ns": ended_ns,
    "operations": counts["cmd_get"] + counts["cmd_set"],
    "checked": True,
    "wrong": wrong,
    "user_ns": round(used.ru_utime * 1e9),
    "system_ns": round(used.ru_stime * 1e9),
}
if wrong:
    line["note"] = f"{wrong} values failed memcaslap's verification"
print(json.dumps(line), flush=True)
