#!/bin/sh
# A program with less memory, its part of the page cache included, until SIGTERM:
#   memory.sh LIMIT FOLDER COMMAND...    LIMIT as 200M; FOLDER is not in the page cache at first
# Its memory is that of a control group, which takes root, or a folder of groups of one's own.
set -eu
limit=$1 folder=$2
shift 2
say() { echo "memory.sh: $1" >&2; exit 1; }
# What others have read is none of this memory.
[ ! -e "$folder" ] || find "$folder/." -type f -size +0 -exec dd if={} iflag=nocache count=0 status=none \;
if [ -e /sys/fs/cgroup/memory ]; then
    own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
    groups=/sys/fs/cgroup/memory$own file=memory.limit_in_bytes
else
    groups=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup) file=memory.max
fi
group=$groups/loadline-$$
mkdir "$group" 2> /dev/null || say "$groups takes no group: run as root, or in a scope of systemd-run"
# The folder of groups may be gone where it is another one's: nothing else is left of them.
trap 'rmdir "$group" 2> /dev/null || true' EXIT
echo "$limit" > "$group/$file" || say "$group can't be limited: its memory controller is off"
sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" "$@" &
pid=$!
trap 'kill -TERM $pid' TERM INT
# A signal ends the first wait.
wait $pid || true
wait $pid
