//! The kinds of requests that are counted, by the names that `ecflow_http` has for them.

/// All of them, in the order of `SStatsCmd`.
#[rustfmt::skip]
pub(in crate::server) const KINDS: [&str; 66] = [
    "checkpt", "server_version", "restart_server", "shutdown_server", "halt_server",
    "reload_white_list_file", "reload_passwd_file", "ping", "debug_server_on",
    "debug_server_off", "get_defs", "sync", "sync_full", "sync_clock", "news", "node_job_gen",
    "node_check_job_gen_only", "node_delete", "node_suspend", "node_resume", "node_kill",
    "node_status", "node_edit_history", "node_archive", "node_restore", "log_cmd",
    "log_msg_cmd", "begin_cmd", "task_init", "task_complete", "task_wait", "task_abort",
    "task_event", "task_meter", "task_label", "task_queue", "zombie_fob", "zombie_fail",
    "zombie_adopt", "zombie_remove", "zombie_get", "zombie_block", "zombie_kill",
    "requeue_node", "order_node", "run_node", "load_defs", "replace", "force", "free_dep",
    "suites", "edit_script", "alter_cmd", "ch_cmd", "file_ecf", "file_job", "file_jobout",
    "file_cmdout", "file_manual", "plug", "move", "group_cmd", "server_load_cmd", "stats",
    "check", "query",
];
