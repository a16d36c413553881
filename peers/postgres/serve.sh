#!/bin/sh
# PostgreSQL in a folder of data, at a loopback port, until SIGTERM:
#   serve.sh FOLDER PORT [NAME=VALUE...]    settings as of postgresql.conf
# The folder is made a cluster the first time, whose superuser is `postgres` without a password.
# PostgreSQL refuses root: then it runs as the user `postgres` of Debian's package.
set -eu
data=$1 port=$2
shift 2
# Debian has a folder for each version; the newest is taken.
for bin in /usr/lib/postgresql/*/bin; do :; done
[ -x "$bin/postgres" ] || { echo "PostgreSQL is not installed: cargo xtask peers" >&2; exit 1; }
as=
if [ "$(id -u)" = 0 ]; then
    # It may search folders on the way that are root's alone.
    as="setpriv --reuid=postgres --regid=postgres --clear-groups"
    as="$as --inh-caps=+dac_read_search --ambient-caps=+dac_read_search"
    mkdir -p "$data"
    # A copy of kept data is root's.
    chown -RH postgres:postgres "$data"
fi
if [ ! -e "$data/PG_VERSION" ]; then
    $as "$bin/initdb" --pgdata="$data" --username=postgres --auth=trust --encoding=UTF8 \
        --locale=C --no-sync --no-instructions > "$data.initdb" 2>&1 || {
        cat "$data.initdb" >&2
        exit 1
    }
    rm "$data.initdb"
fi
chmod 700 "$data/."
for setting; do
    set -- "$@" -c "$setting"
    shift
done
# shellcheck disable=SC2086
exec $as "$bin/postgres" -D "$data" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= "$@"
