//! A client of tonic, which asks a server of `loadline.rpc.v1.Table` and `grpc.testing.TestService`
//! and compares each answer: `tonic-client http://HOST:PORT`.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

mod table {
    tonic::include_proto!("loadline.rpc.v1");
}

mod testing {
    tonic::include_proto!("grpc.testing");
}

use table::table_client::TableClient;
use table::{Number, Pause, Sample};
use testing::test_service_client::TestServiceClient;
use testing::{
    EchoStatus, Empty, Payload, ResponseParameters, SimpleRequest, StreamingInputCallRequest,
    StreamingOutputCallRequest,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let Some(address) = std::env::args().nth(1) else {
        return Err("usage: tonic-client http://HOST:PORT".into());
    };
    let channel = Channel::from_shared(address)?.connect().await?;
    totals_and_echoes(TableClient::new(channel.clone())).await?;
    let mut service = TestServiceClient::new(channel);
    single(&mut service).await?;
    streams(&mut service).await?;
    metadata(&mut service).await?;
    statuses(&mut service).await?;
    println!("all is right");
    Ok(())
}

fn payload(bytes: usize) -> Option<Payload> {
    Some(Payload { body: Bytes::from(vec![0; bytes]), ..Payload::default() })
}

fn length(payload: Option<Payload>) -> usize {
    payload.map_or(0, |payload| payload.body.len())
}

async fn totals_and_echoes(mut table: TableClient<Channel>) -> Outcome {
    for total in 1..=3 {
        assert_eq!(table.add(Number { value: 1 }).await?.into_inner().value, total);
    }
    let inner = Sample { text: "größe".to_owned(), signed: -1, ..Sample::default() };
    let sample = Sample { reals: vec![1.5, -0.5], inner: Some(inner.into()), ..Sample::default() };
    assert_eq!(table.echo(sample.clone()).await?.into_inner(), sample);
    // A deadline ends a call by either side, whichever is first; tonic calls its own end CANCELLED.
    let mut late = Request::new(Pause { ns: 60_000_000_000 });
    late.set_timeout(Duration::from_millis(20));
    let late = table.sleep(late).await.expect_err("late");
    assert!(matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled), "{late}");
    assert_eq!(table.add(Number { value: 0 }).await?.into_inner().value, 3, "its neighbours go on");
    Ok(())
}

async fn single(service: &mut TestServiceClient<Channel>) -> Outcome {
    service.empty_call(Empty {}).await?;
    let request = SimpleRequest {
        response_size: 314_159,
        payload: payload(271_828),
        ..SimpleRequest::default()
    };
    let answer = service.unary_call(request).await?.into_inner();
    assert_eq!(length(answer.payload), 314_159);
    Ok(())
}

/// A request for one answer of a stream.
fn one(size: i32, bytes: usize) -> StreamingOutputCallRequest {
    StreamingOutputCallRequest {
        response_parameters: vec![ResponseParameters { size, ..ResponseParameters::default() }],
        payload: payload(bytes),
        ..StreamingOutputCallRequest::default()
    }
}

async fn streams(service: &mut TestServiceClient<Channel>) -> Outcome {
    let sizes = [31_415, 9, 2_653, 58_979];
    let parameters = |size| ResponseParameters { size, ..ResponseParameters::default() };
    let request = StreamingOutputCallRequest {
        response_parameters: sizes.map(parameters).to_vec(),
        ..StreamingOutputCallRequest::default()
    };
    let answers = service.streaming_output_call(request).await?.into_inner();
    let came: Vec<_> = answers.map(|one| one.map(|one| length(one.payload))).collect().await;
    let came = came.into_iter().collect::<Result<Vec<_>, Status>>()?;
    assert_eq!(came, sizes.map(|size| size as usize));

    let requests = [27_182, 8, 1_828, 45_904].map(|bytes| StreamingInputCallRequest {
        payload: payload(bytes),
        ..StreamingInputCallRequest::default()
    });
    let answer = service.streaming_input_call(stream::iter(requests)).await?.into_inner();
    assert_eq!(answer.aggregated_payload_size, 74_922);

    // Each message once the one before it is answered.
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let requests = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|request| (request, receiver))
    });
    sender.send(one(sizes[0], 27_182)).await?;
    let mut answers = service.full_duplex_call(requests).await?.into_inner();
    for (at, size) in sizes.into_iter().enumerate() {
        let answer = answers.message().await?.ok_or("no answer")?;
        assert_eq!(length(answer.payload), size as usize);
        if let Some(next) = sizes.get(at + 1) {
            sender.send(one(*next, 8)).await?;
        }
    }
    drop(sender);
    assert!(answers.message().await?.is_none());

    let nothing = stream::empty::<StreamingOutputCallRequest>();
    assert!(service.full_duplex_call(nothing).await?.into_inner().message().await?.is_none());
    Ok(())
}

async fn metadata(service: &mut TestServiceClient<Channel>) -> Outcome {
    const INITIAL: &str = "x-grpc-test-echo-initial";
    const TRAILING: &str = "x-grpc-test-echo-trailing-bin";
    let bytes = MetadataValue::from_bytes(&[0xab, 0, 0xff]);
    let mut request = Request::new(stream::iter([one(100, 0)]));
    request.metadata_mut().insert(INITIAL, "test_initial_metadata_value".parse()?);
    request.metadata_mut().insert_bin(TRAILING, bytes.clone());
    let answer = service.full_duplex_call(request).await?;
    let initial = answer.metadata().get(INITIAL).ok_or("it doesn't come back")?;
    assert_eq!(initial, "test_initial_metadata_value");
    let mut answers = answer.into_inner();
    while answers.message().await?.is_some() {}
    let trailers = answers.trailers().await?.ok_or("no trailers")?;
    assert_eq!(trailers.get_bin(TRAILING).ok_or("it doesn't come back")?, &bytes);
    Ok(())
}

async fn statuses(service: &mut TestServiceClient<Channel>) -> Outcome {
    let words = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
    let status = EchoStatus { code: 2, message: words.to_owned() };
    let request = SimpleRequest { response_status: Some(status), ..SimpleRequest::default() };
    let refused = service.unary_call(request).await.expect_err("refused");
    assert_eq!((refused.code(), refused.message()), (Code::Unknown, words));
    let refused = service.unimplemented_call(Empty {}).await.expect_err("refused");
    assert_eq!(refused.code(), Code::Unimplemented);
    // More than the server takes.
    let request = SimpleRequest { payload: payload(5_000_000), ..SimpleRequest::default() };
    let refused = service.unary_call(request).await.expect_err("refused");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    service.empty_call(Empty {}).await?;
    Ok(())
}
