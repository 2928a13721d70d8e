//! The processes of a command, looked up in `/proc`. What is read there belongs to programs that may be hostile: it is
//! bounded, and all they can gain by lying is a wrong hint about themselves.

use std::collections::VecDeque;
use std::fs;

/// So many processes of a command are looked at: some microseconds each, on the caller's thread.
const MOST_PROCESSES: usize = 64;

/// True where `condition` holds for `leader` or a process below it. Of very many processes only the first are asked.
pub(crate) fn any(leader: u32, mut condition: impl FnMut(u32) -> bool) -> bool {
    let mut queue = VecDeque::from([leader]);
    for _ in 0..MOST_PROCESSES {
        let Some(pid) = queue.pop_front() else {
            return false;
        };
        if condition(pid) {
            return true;
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        queue.extend(
            children
                .unwrap_or_default()
                .split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    false
}

/// True where `leader` or a process below it runs, waits for its turn to, or waits for a disk: it is quiet now and may
/// not be in a moment.
pub(crate) fn is_busy(leader: u32) -> bool {
    any(leader, |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name before it is in parentheses and may hold anything.
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        state.starts_with(['R', 'D'])
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// A shell with a child that does `work`, which has begun when this returns.
    fn parent_of(work: &str) -> Child {
        let mut shell = Command::new("bash")
            .args(["-c", &format!("bash -c 'echo; {work}' & wait")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
        shell
    }

    fn comes_true(condition: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if condition() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    #[test]
    fn a_child_that_computes_is_busy_and_one_that_waits_is_not() {
        for (work, busy) in [
            ("while :; do :; done", true),
            ("read x < <(exec sleep 100)", false),
        ] {
            let mut shell = parent_of(work);
            let leader = shell.id();
            assert!(comes_true(|| is_busy(leader) == busy), "{work}");
            let mut all = Vec::new();
            any(leader, |pid| {
                all.push(pid);
                false
            });
            assert!(all.len() > 1, "{work}: {all:?}");
            for pid in all.into_iter().rev().filter(|pid| *pid != leader) {
                let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
    }

    #[test]
    fn nothing_is_below_what_has_ended() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_busy(child.id()));
    }
}
