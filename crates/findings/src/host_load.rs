//! What the host carried while a target was measured, for a sweep's charts.

use judge::limits::Figures;

use crate::summary::Summary;
use crate::trial_summary::at_point;

/// What the host carried while a target was measured at a point: means over the trials that are
/// not invalid. `None` is unseen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostLoad {
    /// The cores that were busy, of those that the run may use.
    pub cores: Option<f64>,
    /// What disks read and wrote, in bytes per second.
    pub disk_bytes_per_s: Option<f64>,
    /// What all interfaces carried, the loopback among them, in bytes per second.
    pub network_bytes_per_s: Option<f64>,
}

impl HostLoad {
    /// Beside one target at one point.
    pub fn of(summary: &Summary, point: usize, target: usize) -> Self {
        let here = at_point(&summary.trials, point).iter();
        let here = here.filter(|trial| trial.target == target && trial.is_usable());
        let usages: Vec<&Figures> = here.map(|trial| &trial.usage).collect();
        let mean = |of: fn(&Figures) -> Option<f64>| {
            let seen: Vec<f64> = usages.iter().filter_map(|usage| of(usage)).collect();
            (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
        };
        Self {
            cores: mean(cores),
            disk_bytes_per_s: mean(|usage| {
                usage.per_s(Some(usage.disk_read_bytes? + usage.disk_written_bytes?))
            }),
            network_bytes_per_s: mean(|usage| {
                usage.per_s(Some(usage.loopback_bytes? + usage.network_bytes?))
            }),
        }
    }
}

fn cores(usage: &Figures) -> Option<f64> {
    let own = usage.per_ns(Some(usage.server_cpu_ns? + usage.generator_cpu_ns?))?;
    let disk_work = usage.disk_work.unwrap_or(0.0) * usage.run_cores.unwrap_or(1.0);
    Some(own + usage.foreign_cores()? + disk_work)
}
