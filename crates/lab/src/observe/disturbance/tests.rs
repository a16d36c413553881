//! The rules on recorded marks of a host with two cores: slices of half a second, clean and not.

use CauseKind::{Foreign, ForeignTicks, Pause, Quota, Steal, Swap};

use super::*;
use crate::observe::disk_work::DiskWork;
use crate::observe::hiccup::Pauses;

const MS: u64 = 1_000_000;

/// A mark before a slice, of two cores whose tasks' time is known in nanoseconds.
fn before() -> Mark {
    let core = |cpu, ran_ns, idle_ticks, steal_ticks| CoreMark {
        cpu,
        ran_ns: Some(ran_ns),
        idle_ns: idle_ticks * TICK_NS,
        steal_ns: steal_ticks * TICK_NS,
    };
    Mark {
        at: 7_000_000_000,
        cores: vec![
            core(0, 1_129_626_234_512, 230_535, 82),
            core(1, 1_239_366_452_199, 224_216, 76),
        ],
        lab_ns: 900 * MS,
        swapped_pages: Some(12),
        pauses: Some(Pauses { longest_ns: 5_000 * MS, count: 3, lost_ns: 5_010 * MS }),
        quota_periods: None,
        disk_work: Some(DiskWork { by_core: vec![(1, 70 * MS)], anywhere_ns: 30 * MS }),
    }
}

/// The mark after a clean slice: the server had core 0 to itself, the load three quarters of core
/// 1, and `kworker` and the like 1.5 ms.
fn after() -> Mark {
    let mut mark = before();
    mark.at += 500 * MS;
    let [server, generator] = &mut mark.cores[..] else { unreachable!() };
    server.ran_ns = server.ran_ns.map(|ran_ns| ran_ns + 500 * MS);
    generator.ran_ns = generator.ran_ns.map(|ran_ns| ran_ns + 376 * MS);
    generator.idle_ns += 12 * TICK_NS;
    mark.lab_ns += 376 * MS;
    mark.pauses = Some(Pauses { longest_ns: 274_000, count: 3, lost_ns: 5_010 * MS });
    mark
}

const OWN: OwnCpu<'_> =
    OwnCpu { server_ns: Some(498_500_000), clients_ns: 0, is_writing: false, waits: &[] };

/// What disturbed the slice before this mark, and how much.
fn causes(after: &Mark) -> Vec<(CauseKind, f64)> {
    amounts(&Disturbance::measure(&before(), after, &OWN, &[0, 1]))
}

/// In thousandths of the kind's unit, so that they compare.
fn amounts(seen: &Disturbance) -> Vec<(CauseKind, f64)> {
    seen.causes().into_iter().map(|cause| (cause.kind, (cause.most * 1e3).round())).collect()
}

const NOTHING: Vec<(CauseKind, f64)> = Vec::new();

#[test]
fn a_clean_slice_is_not_disturbed_by_what_is_always_there() {
    let seen = Disturbance::measure(&before(), &after(), &OWN, &[0, 1]);
    assert_eq!((seen.foreign_ns, seen.coarse), (Some(1_500_000), false));
    assert_eq!(seen.longest_pause_ns, Some(274_000));
    assert_eq!(seen.causes(), []);
}

#[test]
fn foreign_cpu_time_disturbs_above_two_percent() {
    let mut mark = after();
    mark.cores[1].ran_ns = mark.cores[1].ran_ns.map(|ran_ns| ran_ns + 18 * MS);
    assert_eq!(causes(&mark), NOTHING, "19.5 ms of 1,000");
    mark.cores[1].ran_ns = mark.cores[1].ran_ns.map(|ran_ns| ran_ns + 3_500_000);
    assert_eq!(causes(&mark), [(Foreign, 23.0)]);
    let other_core = Disturbance::measure(&before(), &mark, &OWN, &[0]);
    assert_eq!(other_core.causes(), [], "core 1 is none of the run's");
}

#[test]
fn what_disks_cost_the_kernel_is_the_targets_where_it_writes() {
    let mut mark = after();
    mark.cores[1].ran_ns = mark.cores[1].ran_ns.map(|ran_ns| ran_ns + 30 * MS);
    mark.cores[1].idle_ns -= 3 * TICK_NS;
    mark.disk_work = Some(DiskWork { by_core: vec![(1, 90 * MS)], anywhere_ns: 38 * MS });
    let seen = |is_writing, cpus: &[usize]| {
        let own = OwnCpu { is_writing, ..OWN };
        let mut seen = Disturbance::measure(&before(), &mark, &own, cpus);
        let cores = vec![("kworker".to_owned(), 0.061), ("cron".to_owned(), 0.002)];
        seen.others = Some(OtherPrograms { cores, also_elsewhere: false });
        seen
    };
    assert_eq!(amounts(&seen(false, &[0, 1])), [(Foreign, 32.0)]);
    let own = seen(true, &[0, 1]);
    assert_eq!((own.foreign_ns, own.disk_work_ns), (Some(3_500_000), 28 * MS));
    assert_eq!(own.causes(), []);
    let named: Vec<_> = own.programs().into_iter().map(|one| one.name).collect();
    assert_eq!(named, [Some("kworker".to_owned()), Some("cron".to_owned())], "{named:?}");
    // On a part of the cores it is not known where threads of no core have worked.
    assert_eq!(seen(true, &[1]).disk_work_ns, 20 * MS);
}

#[test]
fn load_in_processes_of_its_own_is_ours() {
    let mut mark = after();
    mark.cores[1].ran_ns = mark.cores[1].ran_ns.map(|ran_ns| ran_ns + 90 * MS);
    assert_eq!(causes(&mark), [(Foreign, 26.0)]);
    let own = OwnCpu { clients_ns: 90 * MS, ..OWN };
    assert_eq!(Disturbance::measure(&before(), &mark, &own, &[0, 1]).causes(), []);
}

#[test]
fn a_task_that_appears_late_is_held_against_idle_time() {
    // Three seconds of a task that never slept are added to core 1 at once.
    let mut mark = after();
    mark.cores[1].ran_ns = mark.cores[1].ran_ns.map(|ran_ns| ran_ns + 3_000 * MS);
    let seen = Disturbance::measure(&before(), &mark, &OWN, &[0, 1]);
    let not_idle_ns = (500 + 380) * MS + 2 * TICK_NS;
    assert_eq!(seen.foreign_ns, Some(not_idle_ns - 498_500_000 - 376 * MS));
    // Of a core that was never idle, no more than the slice's length, which ticks exceed.
    mark.cores[1].idle_ns = before().cores[1].idle_ns;
    let seen = Disturbance::measure(&before(), &mark, &OWN, &[0, 1]);
    assert_eq!(seen.foreign_ns, Some(1_000 * MS - 498_500_000 - 376 * MS));
}

#[test]
fn without_the_schedulers_sums_idle_time_judges_with_a_wider_limit() {
    let (mut first, mut mark) = (before(), after());
    for core in first.cores.iter_mut().chain(&mut mark.cores) {
        core.ran_ns = None;
    }
    let seen = Disturbance::measure(&first, &mark, &OWN, &[0, 1]);
    assert_eq!((seen.foreign_ns, seen.coarse), (Some(0), true), "ticks are given the benefit");
    assert_eq!(seen.causes(), []);
    // The same load on a core that another program kept from being idle for 110 ms.
    mark.cores[1].idle_ns -= 11 * TICK_NS;
    let seen = Disturbance::measure(&first, &mark, &OWN, &[0, 1]);
    assert_eq!(seen.foreign_ns, Some(95_500_000));
    assert_eq!(seen.causes(), [], "less than a tenth may be interrupts");
    let own = OwnCpu { server_ns: Some(480 * MS), ..OWN };
    let seen = Disturbance::measure(&first, &mark, &own, &[0, 1]);
    assert_eq!(amounts(&seen), [(ForeignTicks, 114.0)]);
}

#[test]
fn a_target_whose_cpu_time_is_unseen_leaves_other_programs_unseen() {
    let mut mark = after();
    mark.cores[1].ran_ns = mark.cores[1].ran_ns.map(|ran_ns| ran_ns + 300 * MS);
    let own = OwnCpu { server_ns: None, ..OWN };
    let seen = Disturbance::measure(&before(), &mark, &own, &[]);
    assert_eq!((seen.foreign_ns, seen.causes()), (None, Vec::new()));
    assert_eq!(seen.unassigned_ns, Some(524 * MS), "what both used together is known");
    assert!(seen.wants_names());
}

/// The causes in a slice of an unseen target, beside the lab, in which these used 500 ms of two
/// cores' 500 ms each.
fn beside_unseen(cores: &[(&str, f64)], also_elsewhere: bool) -> Vec<Cause> {
    let own = OwnCpu { server_ns: None, ..OWN };
    let mut seen = Disturbance::measure(&before(), &after(), &own, &[]);
    let cores = cores.iter().map(|(name, cores)| ((*name).to_owned(), *cores)).collect();
    seen.others = Some(OtherPrograms { cores, also_elsewhere });
    seen.causes()
}

#[test]
fn beside_a_target_whose_processes_are_unknown_all_programs_but_one_are_others() {
    let causes = beside_unseen(&[("rustc", 0.5), ("nginx", 0.3)], false);
    let [cause] = &causes[..] else { panic!("one cause: {causes:?}") };
    assert_eq!((&cause.kind, cause.most), (&CauseKind::Unassigned, 0.5));
    let names: Vec<_> = cause.programs.iter().map(|one| one.name.as_deref()).collect();
    assert_eq!(names, [Some("rustc"), Some("nginx"), None]);
    assert_eq!(beside_unseen(&[("nginx", 1.0)], false), [], "it may be the target alone");
    let through_docker = [("redis-server", 0.6), ("docker-proxy", 0.4)];
    assert_eq!(beside_unseen(&through_docker, false), []);
    let with_ticks = [("nginx", 0.96), ("kworker", 0.02), ("cron", 0.02)];
    assert_eq!(beside_unseen(&with_ticks, false), [], "two ticks are nothing");
    let elsewhere = [("rustc", 0.5), ("nginx", 0.3)];
    assert_eq!(beside_unseen(&elsewhere, true), [], "perhaps on cores of their own");
}

#[test]
fn one_tick_of_steal_may_be_old_and_two_are_not() {
    let mut mark = after();
    mark.cores[0].steal_ns += TICK_NS;
    mark.cores[1].steal_ns += TICK_NS;
    assert_eq!(causes(&mark), NOTHING);
    mark.cores[1].steal_ns += TICK_NS;
    assert_eq!(causes(&mark), [(Steal, 40.0)]);
    // Over ten seconds two ticks are nothing.
    mark.at += 9_500 * MS;
    let seen = Disturbance::measure(&before(), &mark, &OWN, &[0, 1]);
    assert_eq!(seen.most_stolen_ns, Some(2 * TICK_NS));
    assert!((RULES[2].amount)(&seen).is_some_and(|share| share < RULES[2].limit));
}

#[test]
fn a_long_pause_disturbs_and_so_do_many_short_ones() {
    let mut mark = after();
    mark.pauses = Some(Pauses { longest_ns: 23 * MS, count: 4, lost_ns: 5_033 * MS });
    assert_eq!(causes(&mark), [(Pause, 23e9), (CauseKind::Pauses, 46.0)]);
    mark.pauses = Some(Pauses { longest_ns: 4 * MS, count: 8, lost_ns: 5_025 * MS });
    assert_eq!(causes(&mark), [(CauseKind::Pauses, 30.0)]);
    mark.pauses = None;
    assert_eq!(causes(&mark), NOTHING, "unseen is no disturbance");
}

#[test]
fn swapping_disturbs_beyond_a_page_cluster_or_two() {
    let mut mark = after();
    mark.swapped_pages = Some(12 + 16);
    assert_eq!(causes(&mark), NOTHING);
    mark.swapped_pages = Some(12 + 17);
    assert_eq!(causes(&mark), [(Swap, 17e3)]);
    mark.swapped_pages = None;
    assert_eq!(causes(&mark), NOTHING);
}

#[test]
fn waiting_counts_only_where_the_run_does_not_wait_for_itself() {
    let on = |cores, target, waited_ms: u64, runnable| Wait {
        target,
        waited_ns: waited_ms * MS,
        runnable,
        cores,
    };
    let memcached = Some("memcached");
    let server = |waited_ms, runnable| on(&[0], memcached, waited_ms, runnable);
    let load = |waited_ms, runnable| on(&[1], None, waited_ms, runnable);
    let judge = |waits: &[Wait<'_>]| {
        Disturbance::measure(&before(), &after(), &OwnCpu { waits, ..OWN }, &[0, 1]).causes()
    };
    let waited = |target: Option<&str>, share| {
        [Cause::new(CauseKind::Wait { target: target.map(str::to_owned) }, share)]
    };
    assert_eq!(judge(&[server(10, 1), load(300, 4)]), []);
    assert_eq!(judge(&[server(45, 1), load(5, 1)]), waited(memcached, 0.09));
    assert_eq!(judge(&[server(5, 1), load(45, 1)]), waited(None, 0.09));
    assert_eq!(judge(&[server(700, 1)]), waited(memcached, 1.0), "it began before the slice");
    let both = |of_server, of_load| {
        judge(&[on(&[0, 1], memcached, 45, of_server), on(&[0, 1], None, 5, of_load)])
    };
    assert_eq!(both(1, 1), waited(memcached, 0.09), "two cores for two threads");
    assert_eq!(both(1, 2), [], "the sides wait for each other");
    assert_eq!(judge(&[on(&[0, 1], memcached, 45, 2), load(300, 1)]), []);
}

#[test]
fn what_a_quota_stopped_is_not_blamed_on_a_neighbour() {
    let waits = [Wait { target: Some("nginx"), waited_ns: 300 * MS, runnable: 1, cores: &[0] }];
    let own = OwnCpu { waits: &waits, ..OWN };
    let (mut first, mut mark) = (before(), after());
    (first.quota_periods, mark.quota_periods) = (Some([100, 3]), Some([122, 25]));
    let causes = |mark: &Mark| amounts(&Disturbance::measure(&first, mark, &own, &[0, 1]));
    assert_eq!(causes(&mark), [(Quota, 1_000.0)]);
    mark.quota_periods = Some([122, 3]);
    assert_eq!(
        causes(&mark),
        [(CauseKind::Wait { target: Some("nginx".into()) }, 600.0)],
        "the quota lasted"
    );
}

/// The programs that are named in a slice in which others used 740 ms of two cores' 500 ms each,
/// and these were seen.
fn named(cores: &[(&str, f64)], also_elsewhere: bool) -> Vec<(Option<String>, Option<f64>)> {
    let cores = cores.iter().map(|(name, cores)| ((*name).to_owned(), *cores)).collect();
    let disturbed = Disturbance {
        length_ns: 500 * MS,
        core_time_ns: 1_000 * MS,
        foreign_ns: Some(740 * MS),
        others: Some(OtherPrograms { cores, also_elsewhere }),
        ..Disturbance::default()
    };
    assert!(disturbed.wants_names());
    let programs = &disturbed.causes()[0].programs;
    let rounded = |cores: f64| (cores * 1e3).round() / 1e3;
    programs.iter().map(|one| (one.name.clone(), one.cores.map(rounded))).collect()
}

#[test]
fn other_programs_are_named_with_their_cores_and_what_no_reading_saw() {
    let used = |name: &str, cores| (Some(name.to_owned()), Some(cores));
    let unseen = |cores| (None, Some(cores));
    let seen = [("rustc", 1.1), ("java", 0.2), ("sshd", 0.02)];
    assert_eq!(named(&seen, false), [used("rustc", 1.1), used("java", 0.2), unseen(0.16)]);
    let equal = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|name| (name, 0.15));
    let kept = equal[..MAX_PROGRAMS - 1].iter().map(|(name, cores)| used(name, *cores));
    assert_eq!(named(&equal, false), kept.collect::<Vec<_>>());
    let reaped = [("bash's children", 7.0), ("rustc", 1.0)];
    let within = [used("bash's children", 1.295), used("rustc", 0.185)];
    assert_eq!(named(&reaped, false), within, "no more than the cores have done");
    assert_eq!(named(&[], false), [unseen(1.48)]);
    let probable = |name: &str| (Some(name.to_owned()), None);
    let both = [probable("java"), probable("cc1")];
    assert_eq!(named(&[("java", 20.0), ("cc1", 0.9)], true), both);
    let one = [probable("cc1")];
    assert_eq!(named(&[("cc1", 1.4)], true), one, "as much as was lost is no proof");
    assert_eq!(named(&[("cc1", 0.01)], true), []);
}

#[test]
fn every_rule_says_why_its_limit_is_what_it_is() {
    for rule in RULES {
        assert!(rule.limit > 0.0 && rule.why.len() > 20, "{:?}", rule.kind);
    }
}
