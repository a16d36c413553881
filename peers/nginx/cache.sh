#!/bin/sh
# This program's server of conditions, and nginx before it as a cache, at a loopback port, until
# SIGTERM:
#   cache.sh LOADLINE FOLDER PORT
set -eu
loadline=$1 folder=$2 port=$3
nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || {
    echo "nginx is not installed: cargo xtask peers" >&2
    exit 1
}
mkdir -p "$folder/nginx"
# nginx takes a relative path for one below its own folder.
folder=$(cd "$folder" && pwd)
mkfifo "$folder/ready"
"$loadline" serve conditions --data "$folder/data" --listen 127.0.0.1:0 > "$folder/ready" &
# Its first line says where it listens; where it has ended there is none.
read -r line < "$folder/ready"
server=$(printf %s "$line" | sed -n 's/.*"address":"\([0-9.:]*\)".*/\1/p')
cat > "$folder/nginx/nginx.conf" <<END
daemon off;
master_process off;
pid $folder/nginx/pid;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $folder/nginx/body;
    proxy_temp_path $folder/nginx/proxy;
    fastcgi_temp_path $folder/nginx/fastcgi;
    uwsgi_temp_path $folder/nginx/uwsgi;
    scgi_temp_path $folder/nginx/scgi;
    client_max_body_size 64m;
    proxy_cache_path $folder/nginx/cache levels=1:2 keys_zone=answers:64m inactive=1y
        use_temp_path=off;
    upstream server {
        server $server;
        keepalive 16;
    }
    server {
        listen 127.0.0.1:$port;
        location / {
            proxy_pass http://server;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $server;
            proxy_cache answers;
            # What the server spent is not spent again.
            proxy_hide_header Server-Timing;
            proxy_cache_key \$request_uri;
            proxy_cache_lock on;
        }
    }
}
END
exec "$nginx" -e stderr -c "$folder/nginx/nginx.conf"
