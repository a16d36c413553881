//! A server of connectrpc, over hyper, with the functions that single calls are measured by:
//! `loadline.rpc.v1.Table`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use buffa_types::google::protobuf::Empty;
use connectrpc::{
    Encodable, Limits, RequestContext, Response, Router, Server, ServiceRequest, ServiceResult,
};

mod made {
    connectrpc::include_generated!("made.rs");
}

use made::loadline::rpc::v1::{Number, Pause, Place, Sample, Table, TableExt as _};

const USAGE: &str = "\
connectrpc-server [--port PORT] [--threads N]

Serves loadline.rpc.v1.Table on 127.0.0.1. Port 0, the default, is any. One thread, the default, is
tokio's current_thread runtime.";

#[derive(Default)]
struct Functions {
    total: AtomicI64,
}

impl Table for Functions {
    async fn echo<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, Sample>,
    ) -> ServiceResult<impl Encodable<Sample> + Send + use<'a>> {
        // A view of what came: nothing is copied.
        Response::ok(request.to_owned_view())
    }

    async fn add<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, Number>,
    ) -> ServiceResult<impl Encodable<Number> + Send + use<'a>> {
        let value = self.total.fetch_add(request.value, SeqCst) + request.value;
        Response::ok(Number { value, ..Number::default() })
    }

    async fn sleep<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, Pause>,
    ) -> ServiceResult<impl Encodable<Empty> + Send + use<'a>> {
        tokio::time::sleep(Duration::from_nanos(request.ns)).await;
        Response::ok(Empty::default())
    }

    async fn who<'a>(
        &'a self,
        _: RequestContext,
        _: ServiceRequest<'_, Empty>,
    ) -> ServiceResult<impl Encodable<Place> + Send + use<'a>> {
        Response::ok(Place { pid: std::process::id(), ..Place::default() })
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn serve(port: u16) -> Result<(), Failure> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let (address, pid) = (listener.local_addr()?, std::process::id());
    println!(
        "{{\"ready\":true,\"service\":\"connectrpc-server\",\"pid\":{pid},\
         \"address\":\"{address}\",\"addresses\":{{}}}}"
    );
    let router = Arc::new(Functions::default()).register(Router::new());
    let limits = Limits::unlimited();
    let service = connectrpc::ConnectRpcService::new(router).with_limits(limits);
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        served = Server::from_listener(listener).serve_with_service(service) => served,
        _ = ended.recv() => Ok(()),
    }
}

fn main() -> Result<(), Failure> {
    let (mut port, mut threads) = (0, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse::<u16>().ok());
        match (&argument[..], number()) {
            ("--port", Some(number)) => port = number,
            ("--threads", Some(number)) if number > 0 => threads = usize::from(number),
            _ => return Err(USAGE.into()),
        }
    }
    let mut runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.worker_threads(threads).enable_all().build()?.block_on(serve(port))
}
