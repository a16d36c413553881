//! `grpc.health.v1.Health` (grpc, doc/health-checking.md): every service is served until the server
//! begins to stop.

use crate::model::call::Call;
use crate::protocol::proto::health::health_check_response::ServingStatus;
use crate::protocol::proto::health::{HealthCheckRequest, HealthCheckResponse};
use crate::protocol::status::{Code, Status};

use super::reflection;

/// Whether a service is served here; all of the server has no name.
fn is_known(service: &str) -> bool {
    service.is_empty() || reflection::services().iter().any(|one| one == service)
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status as i32 }
}

/// A server that stops.
fn now(call: &Call) -> ServingStatus {
    match call.info.is_stopping {
        true => ServingStatus::NotServing,
        false => ServingStatus::Serving,
    }
}

pub(super) async fn check(mut call: Call) -> Result<(), Status> {
    let (request, _) = call.receive_only::<HealthCheckRequest>().await?;
    let service = &request.service;
    if !is_known(service) {
        let words = format!("there is no service \"{service}\" here: list them by reflection");
        return Err(Status::new(Code::NotFound, words));
    }
    let answer = answer(now(&call));
    call.send(&answer).await;
    Ok(())
}

pub(super) async fn watch(mut call: Call) -> Result<(), Status> {
    let is_known = is_known(&call.receive_only::<HealthCheckRequest>().await?.0.service);
    let first = if is_known { now(&call) } else { ServingStatus::ServiceUnknown };
    call.send(&answer(first)).await;
    call.server_stops().await;
    if is_known && first == ServingStatus::Serving {
        call.send(&answer(ServingStatus::NotServing)).await;
    }
    Err(Status::new(Code::Unavailable, "the server stops"))
}
