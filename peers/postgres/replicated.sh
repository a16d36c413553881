#!/bin/sh
# PostgreSQL with a streaming replica, until SIGTERM: the first at 127.0.0.1, the replica, which only
# reads, at 127.0.0.2, both at one port:
#   replicated.sh FOLDER PORT [NAME=VALUE...]    settings of both, as of postgresql.conf
set -eu
serve=$(dirname "$0")/serve.sh
folder=$1 port=$2
shift 2
first= replica=
end() {
    # The replica first: the other one waits for it.
    [ -z "$replica" ] || { kill "$replica" && wait "$replica" || true; }
    [ -z "$first" ] || { kill "$first" && wait "$first" || true; }
    exit 0
}
trap end TERM INT
for bin in /usr/lib/postgresql/*/bin; do :; done
mkdir -p "$folder"
"$serve" "$folder/first" "$port" "$@" wal_level=replica max_wal_senders=4 &
first=$!
until "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
    kill -0 "$first" 2> /dev/null || { first=; exit 1; }
    sleep 0.05
done
if [ ! -e "$folder/replica/PG_VERSION" ]; then
    "$bin/pg_basebackup" -h 127.0.0.1 -p "$port" -U postgres -D "$folder/replica" \
        --write-recovery-conf --wal-method=stream --checkpoint=fast
fi
"$serve" "$folder/replica" "$port" "$@" wal_level=replica max_wal_senders=4 \
    listen_addresses=127.0.0.2 "primary_conninfo=host=127.0.0.1 port=$port user=postgres" &
replica=$!
# A signal ends the wait, and what it does ends this.
wait "$first"
