//! A server of tonic with the methods that calls are measured by: `loadline.rpc.v1.Table` and the
//! streams of `grpc.testing.TestService`.

use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

mod table {
    tonic::include_proto!("loadline.rpc.v1");
}

mod testing {
    tonic::include_proto!("grpc.testing");
}

use table::table_server::{Table, TableServer};
use table::{Number, Pause, Place, Sample};
use testing::test_service_server::{TestService, TestServiceServer};
use testing::{
    Empty, Payload, SimpleRequest, SimpleResponse, StreamingInputCallRequest,
    StreamingInputCallResponse, StreamingOutputCallRequest, StreamingOutputCallResponse,
};

const USAGE: &str = "\
tonic-server [--port PORT] [--threads N]

Serves loadline.rpc.v1.Table and grpc.testing.TestService on 127.0.0.1. Port 0, the default, is any.
One thread, the default, is tokio's current_thread runtime.";

#[derive(Default)]
struct Functions {
    total: AtomicI64,
}

#[tonic::async_trait]
impl Table for Functions {
    async fn echo(&self, request: Request<Sample>) -> Result<Response<Sample>, Status> {
        Ok(Response::new(request.into_inner()))
    }

    async fn add(&self, request: Request<Number>) -> Result<Response<Number>, Status> {
        let value = request.into_inner().value;
        Ok(Response::new(Number { value: self.total.fetch_add(value, SeqCst) + value }))
    }

    async fn sleep(&self, request: Request<Pause>) -> Result<Response<()>, Status> {
        tokio::time::sleep(Duration::from_nanos(request.into_inner().ns)).await;
        Ok(Response::new(()))
    }

    async fn who(&self, _: Request<()>) -> Result<Response<Place>, Status> {
        Ok(Response::new(Place { pid: std::process::id(), ..Place::default() }))
    }
}

type Answers =
    Pin<Box<dyn Stream<Item = Result<StreamingOutputCallResponse, Status>> + Send + 'static>>;

/// What payloads are parts of, as in our own server.
static ZEROS: LazyLock<Bytes> = LazyLock::new(|| vec![0; 16 << 20].into());

fn zeros(size: i32) -> Option<Payload> {
    let size = ZEROS.len().min(size.max(0) as usize);
    Some(Payload { body: ZEROS.slice(..size), ..Payload::default() })
}

fn answers(
    request: StreamingOutputCallRequest,
) -> impl Stream<Item = Result<StreamingOutputCallResponse, Status>> {
    let parameters = stream::iter(request.response_parameters);
    parameters.map(|one| Ok(StreamingOutputCallResponse { payload: zeros(one.size) }))
}

#[tonic::async_trait]
impl TestService for Functions {
    async fn empty_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn unary_call(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<SimpleResponse>, Status> {
        let payload = zeros(request.into_inner().response_size);
        Ok(Response::new(SimpleResponse { payload, ..SimpleResponse::default() }))
    }

    type StreamingOutputCallStream = Answers;

    async fn streaming_output_call(
        &self,
        request: Request<StreamingOutputCallRequest>,
    ) -> Result<Response<Answers>, Status> {
        Ok(Response::new(Box::pin(answers(request.into_inner()))))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<StreamingInputCallRequest>>,
    ) -> Result<Response<StreamingInputCallResponse>, Status> {
        let (mut requests, mut size) = (request.into_inner(), 0);
        while let Some(request) = requests.message().await? {
            size += request.payload.map_or(0, |payload| payload.body.len());
        }
        Ok(Response::new(StreamingInputCallResponse { aggregated_payload_size: size as i32 }))
    }

    type FullDuplexCallStream = Answers;

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let answered = request.into_inner().flat_map(|request| match request {
            Ok(request) => answers(request).left_stream(),
            Err(status) => stream::iter([Err(status)]).right_stream(),
        });
        Ok(Response::new(Box::pin(answered)))
    }

    type HalfDuplexCallStream = Answers;

    async fn half_duplex_call(
        &self,
        _: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Answers>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn unimplemented_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented(""))
    }
}

async fn serve(port: u16) -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let (address, pid) = (listener.local_addr()?, std::process::id());
    println!(
        "{{\"ready\":true,\"service\":\"tonic-server\",\"pid\":{pid},\"address\":\"{address}\",\
         \"addresses\":{{}}}}"
    );
    let functions = std::sync::Arc::new(Functions::default());
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let large = 64 << 20;
    Server::builder()
        .add_service(TableServer::from_arc(functions.clone()).max_decoding_message_size(large))
        .add_service(TestServiceServer::from_arc(functions).max_decoding_message_size(large))
        // A listener that is handed over has Nagle's algorithm on unless it is turned off.
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            async move {
                ended.recv().await;
            },
        )
        .await?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
