#!/bin/sh
# Runs a client against a pvxs server of so many records that counts the names searched for:
# searched.sh COUNT CLIENT ARGUMENT…. A client other than pvxs-client gets the names as arguments.
set -eu
count=$1
shift
out=$(mktemp)
target/peers/pvxs-server --records "$count" > "$out" &
server=$!
trap 'kill $server 2>/dev/null || true; rm -f "$out"' EXIT
until grep -q ready "$out"; do sleep 0.01; done
port=$(sed -n 's/.*"udp":"127.0.0.1:\([0-9]*\)".*/\1/p' "$out")
export EPICS_PVA_AUTO_ADDR_LIST=NO EPICS_PVA_ADDR_LIST="127.0.0.1:$port" EPICS_PVA_NAME_SERVERS=
case $1 in
    *pvxs-client) names= ;;
    *) names=$(seq -f 'k%07g' 0 $((count - 1))) ;;
esac
began=$(date +%s.%N)
# shellcheck disable=SC2086
"$@" $names > /dev/null
ended=$(date +%s.%N)
echo "{\"client_s\":$(echo "$ended $began" | awk '{ printf "%.6f", $1 - $2 }')}"
kill -TERM $server
wait $server || true
# pvxs hands a search that came to its own address on to all servers of the host, itself among them,
# so that it counts each twice.
sed -n 's/.*"names_searched":\([0-9]*\).*/\1/p' "$out" |
    awk -v count="$count" '{ printf "{\"searches_per_name\":%.3f}\n", $1 / 2 / count }'
