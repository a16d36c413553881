#!/bin/sh
# Runs `loadline records` at a `loadline serve records` that is started for it, for some seconds:
# loadline-ends.sh get|put|monitor|shared ELEMENTS SECONDS. Prints what the client says, in JSON.
set -eu
operation=$1 size=$2 seconds=$3 name=k0000000
loadline=${LOADLINE:-target/release/loadline}
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
printf '[[record]]\nname = "%s"\ntype = "long[]"\n' $name > "$folder/records.toml"
case $operation in
    get | put) source="--config $folder/records.toml" ;;
    monitor) source="--producer array --name $name --size $size --monitors 0" ;;
    shared) source="--producer array --name $name --size $size --monitors 0 --shared-memory" ;;
    *) echo "there is no \"$operation\"" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086
"$loadline" serve records --listen 127.0.0.1:0 --no-search --log error $source > "$folder/ready" &
server=$!
until grep -q ready "$folder/ready"; do sleep 0.01; done
at=$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' "$folder/ready")
client="$loadline records --server $at --check --json"
case $operation in
    get)
        $client put $name --size "$size" --count 1 > /dev/null
        set -- get $name --repeat --delay 0
        ;;
    put) set -- put $name --size "$size" --delay 0 ;;
    monitor) set -- monitor $name --queue-size 4 ;;
    shared) set -- monitor $name --queue-size 4 --shared ;;
esac
# It has no end of its own: what it says each second is what counts.
timeout -s TERM "$seconds" $client "$@" || true
