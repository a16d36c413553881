#!/bin/sh
# Holds the table that jobs read in a PostgreSQL locked for a while, as a careless migration does:
#   hold.sh ADDRESS:PORT SECONDS    0 seconds hold nothing
set -eu
[ "$2" != 0 ] || exit 0
exec psql --quiet --no-psqlrc --host "${1%:*}" --port "${1##*:}" --username postgres \
    --output /dev/null --command "
        BEGIN; LOCK TABLE conditions IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep($2); COMMIT"
