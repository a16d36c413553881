//! The cost of one operation, for programs.

use findings::{CallFigures, Mean, Summary, calls, costs};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct CostJson<'a> {
    target: &'a str,
    figures: Vec<FigureJson>,
    server_calls: Vec<CallJson>,
    generator_calls: Vec<CallJson>,
}

#[derive(Serialize)]
struct FigureJson {
    name: &'static str,
    unit: &'static str,
    mean: Option<f64>,
    half_width: Option<f64>,
    sampling: Option<f64>,
    difference: Option<f64>,
    difference_half_width: Option<f64>,
}

#[derive(Serialize)]
struct CallJson {
    name: String,
    calls_per_op: f64,
    errors_per_op: f64,
    time_share: f64,
    difference: Option<f64>,
}

/// Each target's cost at a point.
pub(super) fn cost(summary: &Summary, point: usize) -> Vec<CostJson<'_>> {
    let figures = costs(summary, point);
    let sides = [false, true].map(|of_generator| calls(summary, point, of_generator));
    let of_target = |index: usize| {
        let figure = |cost: &findings::Cost| {
            let half = |mean: Option<Mean>| mean.and_then(|mean| mean.half_width);
            FigureJson {
                name: cost.row.code,
                unit: cost.row.unit,
                mean: cost.targets[index].map(|mean| mean.mean),
                half_width: half(cost.targets[index]),
                sampling: cost.sampling[index],
                difference: cost.differences[index].map(|mean| mean.mean),
                difference_half_width: half(cost.differences[index]),
            }
        };
        let made = |side: &[findings::CallCost]| {
            let call = |call: &findings::CallCost| {
                let CallFigures { calls, errors, share } = call.targets[index]?;
                Some(CallJson {
                    name: call.name.clone(),
                    calls_per_op: calls,
                    errors_per_op: errors,
                    time_share: share,
                    difference: call.difference(index).filter(|_| index > 0),
                })
            };
            side.iter().filter_map(call).collect()
        };
        CostJson {
            target: &summary.targets[index].name,
            figures: figures.iter().map(figure).collect(),
            server_calls: made(&sides[0]),
            generator_calls: made(&sides[1]),
        }
    };
    (0..summary.targets.len()).map(of_target).collect()
}
