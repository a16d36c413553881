# Single calls over one carrier, one after the other, with a server of one thread that is started for
# them: sh rpc_ping.sh PROGRAM FOLDER CARRIER [FLAG...], where CARRIER is tcp, unix, shm, pipe, here,
# grpc or mpi, and flags are those of `loadline rpc ping`.
program=$1 folder=$2 carrier=$3 run=
shift 3
serve="exec '$program' serve rpc --listen 127.0.0.1:0 --threads 1"
case $carrier in
tcp) set -- tcp: --server "$serve" "$@" ;;
grpc) set -- grpc:// --server "$serve" "$@" ;;
unix) set -- "unix:$folder/s" --server "rm -f '$folder/s'; $serve --unix '$folder/s'" "$@" ;;
shm) set -- "shm:$folder/m" --server "rm -f '$folder/m'; $serve --shm '$folder/m'" "$@" ;;
pipe) set -- "pipe:exec '$program' serve rpc --pipe" "$@" ;;
here) set -- here: "$@" ;;
mpi)
    command -v mpirun >/dev/null || { echo "mpirun is missing: cargo xtask peers" >&2; exit 1; }
    run="mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2"
    set -- mpi: "$@"
    ;;
*)
    echo "\"$carrier\" is no carrier: say tcp, unix, shm, pipe, here, grpc or mpi" >&2
    exit 2
    ;;
esac
exec $run "$program" rpc ping "$@" --json --count 10000000
