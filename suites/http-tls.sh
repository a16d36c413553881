#!/bin/sh
# Writes the configuration of an nginx that serves two files: http-tls.sh FOLDER PORT [ssl [http2]]
set -e
dir=$1 port=$2
shift 2
mkdir -p "$dir/files"
cd "$dir"
printf '<!doctype html>\n<title>Loadline</title>\n<p>How deep may it lie?\n' > files/index.html
seq 10000 | head -c 4096 > files/page.txt
tls=
if [ $# -gt 0 ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem
    tls="ssl_certificate $dir/cert.pem; ssl_certificate_key $dir/key.pem;"
fi
cat > nginx.conf <<END
daemon off;
user root;
worker_processes 1;
pid nginx.pid;
events { worker_connections 4096; }
http {
    access_log off;
    sendfile on;
    keepalive_requests 1000000000;
    keepalive_timeout 10m;
    types { text/html html; text/plain txt; }
    client_body_temp_path temp;
    proxy_temp_path temp;
    fastcgi_temp_path temp;
    uwsgi_temp_path temp;
    scgi_temp_path temp;
    $tls
    server { listen 127.0.0.1:$port $*; root files; }
}
END
