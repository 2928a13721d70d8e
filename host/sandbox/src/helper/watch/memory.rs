//! The memory of a command: of all its processes, each page once as far as that is cheap to say.
//!
//! What counts is what cannot simply be dropped again: private memory, shared memory and what of them was swapped out, but
//! not the cached content of files. The kernel keeps these sums per process, and a page that several processes share
//! (after a fork, say) is in the sum of each. So they can only be too high, and are enough as long as they stay below the
//! limit. Above it the kernel is asked for the shares, in which a page of three processes counts a third for each; that
//! takes it a walk through their page tables. A process that does not let itself be looked into counts in full.

use std::collections::HashSet;
use std::fs;

/// The processes that are the command.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Processes {
    /// All that this process's own `/proc` shows, but for itself: it is the first of a namespace.
    OfNamespace,
    /// All that come from this process. Those that left it while no subreaper was set are not found.
    Descendants,
}

/// A number of a process.
type ProcessId = u32;

impl Processes {
    /// The memory of all of them, in bytes. Not more than `enough` matters; up to it the cheap upper bound is given.
    pub(super) fn memory(self, enough: u64) -> u64 {
        let processes = self.list();
        let sums: Vec<(ProcessId, u64)> = processes.into_iter().map(|id| (id, sum(id))).collect();
        let bound: u64 = sums.iter().map(|&(_, sum)| sum).sum();
        if bound <= enough {
            return bound;
        }
        sums.iter()
            .map(|&(id, sum)| share(id).map_or(sum, |share| share.min(sum)))
            .sum()
    }

    /// Their numbers, as this process's `/proc` gives them.
    pub(in super::super) fn list(self) -> Vec<ProcessId> {
        let own = std::process::id();
        match self {
            Processes::OfNamespace => numbers("/proc").filter(|&id| id != own).collect(),
            Processes::Descendants => descendants(own),
        }
    }
}

/// All that come from `ancestor`, parents before children.
fn descendants(ancestor: ProcessId) -> Vec<ProcessId> {
    let mut found = Vec::new();
    let mut known = HashSet::from([ancestor]);
    let mut next = vec![ancestor];
    while let Some(parent) = next.pop() {
        // A child belongs to the thread that started it.
        for thread in numbers(&format!("/proc/{parent}/task")) {
            let children = format!("/proc/{parent}/task/{thread}/children");
            let children = fs::read_to_string(children).unwrap_or_default();
            for child in children.split_ascii_whitespace() {
                // A number may come twice where it moved to another parent meanwhile.
                if let Ok(child) = child.parse()
                    && known.insert(child)
                {
                    found.push(child);
                    next.push(child);
                }
            }
        }
    }
    found
}

/// The entries of `folder` that are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What the kernel has summed up for a process, in bytes; nothing for one that is gone.
fn sum(id: ProcessId) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    total(&status, &["RssAnon:", "RssShmem:", "VmSwap:"]).unwrap_or(0)
}

/// A process's share, in bytes, where it can be had.
fn share(id: ProcessId) -> Option<u64> {
    let shares = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
    total(&shares, &["Pss_Anon:", "Pss_Shmem:", "SwapPss:"])
}

/// The sum of the fields of such a file, in bytes; none where it has none of them.
fn total(text: &str, fields: &[&str]) -> Option<u64> {
    let values = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let is_field = words.next().is_some_and(|name| fields.contains(&name));
        let kib: Option<u64> = words.next()?.parse().ok();
        kib.filter(|_| is_field)
    });
    values.reduce(|a, b| a + b).map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_asked_for_are_summed_and_no_others() {
        let text = "Name:\tRssAnon: 7 kB\nVmRSS:\t  90 kB\nRssAnon:\t  10 kB\nRssShmem:\t 2 kB\n";
        assert_eq!(total(text, &["RssAnon:", "RssShmem:"]), Some(12 * 1024));
        assert_eq!(total(text, &["Pss_Anon:"]), None);
    }

    #[test]
    fn a_process_has_memory_and_its_share_is_not_more() {
        let own = std::process::id();
        assert!(sum(own) > 0);
        assert!(share(own).unwrap() > 0);
        assert_eq!(sum(u32::MAX), 0);
    }

    #[test]
    fn children_of_children_are_found() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & read x; kill $!"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let names = || -> Vec<String> {
            let all = Processes::Descendants.list().into_iter();
            all.filter_map(|id| fs::read_to_string(format!("/proc/{id}/comm")).ok())
                .collect()
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !["sh\n", "sleep\n"]
            .iter()
            .all(|name| names().contains(&(*name).to_owned()))
        {
            assert!(std::time::Instant::now() < deadline, "{:?}", names());
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
