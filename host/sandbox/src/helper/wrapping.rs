//! The helper outside bubblewrap: joins the Session's namespaces, opens what is shown by identity, starts bubblewrap and
//! waits for it, as the native walls' first process waits for the leader.
//!
//! bubblewrap starts the helper once more, as the first process of the namespaces that it has made. The two talk over a
//! pair of sockets of their own, the tether, until the inner one takes over: only then does it get the control socket and
//! the command's streams, and this process keeps none of them. It must never hand them to a bubblewrap that has failed.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::exit;

use rustix::fs::{MemfdFlags, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::io::{Errno, FdFlags};
use rustix::mount::MountFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, clear_ambient_capability_set, move_into_link_name_space};

use super::detached::open_shown;
use super::inside::{PROCESSES_CAPPED, Proceed};
use super::limits::{self, ProcessCap};
use super::mounts::DEVICES;
use super::{capabilities, close_control, failed, last_errno, namespaces, protect};
use crate::control::{self, Received, Report, Request};
use crate::error::SandboxError;
use crate::helper::WORD;
use crate::layer::LayerName;
use crate::plan::wrapped::{Enclosed, Inside, With, Word, Wrapped};
use crate::plan::{Bytes, Plan};
use crate::policy::Limits;

/// The most that is told of what bubblewrap said.
const LONGEST_COMPLAINT: u64 = 2048;

/// Starts bubblewrap and waits until it has ended.
pub(super) fn wrap(
    control: &OwnedFd,
    plan: &Wrapped,
    mut descriptors: Vec<OwnedFd>,
) -> Result<(), SandboxError> {
    let streams = descriptors.split_off(plan.with.count());
    let in_session = plan.with != With::Nothing;
    if let [_, user, network, ..] = descriptors.as_slice() {
        namespaces::join(user, network)?;
        namespaces::separate_processes()?;
        raise_descriptor_limit();
    }
    let mut invocation = Invocation::compose(plan, descriptors)?;
    let tether = control::pair().map_err(host("socketpair(tether)"))?;
    let complaints = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(failed(LayerName::Namespaces, "pipe2"))?;
    let limits = match (&plan.inside, in_session) {
        (Inside::Command(enclosed), true) => Some(&enclosed.execution.limits),
        _ => None,
    };
    // SAFETY: this process has one thread, so the child may do anything that this one may.
    let bubblewrap = match unsafe { libc::fork() } {
        -1 => return Err(failed(LayerName::Namespaces, "fork")(last_errno())),
        0 => {
            let Err(errno) = invocation.execute(&tether.1, &complaints.1, limits);
            let words = format!("{}: {errno}\n", plan.program.to_text());
            let _ = rustix::io::write(&complaints.1, words.as_bytes());
            // SAFETY: ends this process only, without running what the other has registered.
            unsafe { libc::_exit(127) }
        }
        pid => Child(Pid::from_raw(pid)),
    };
    drop((invocation, tether.1, complaints.1));
    let tether = tether.0;
    let entered = send_plan(&tether, &plan.inside).and_then(|()| control::receive(&tether));
    let namespace = match entered {
        Ok(Received::Message(Report::Inside, mut descriptors)) => descriptors.pop(),
        Ok(Received::Message(Report::Failed(failure), _)) => return Err(failure),
        Ok(_) | Err(_) => {
            bubblewrap.wait();
            return Err(SandboxError::Bubblewrap {
                said: complaint(complaints.0),
            });
        }
    };
    if let (Some(namespace), Some(enclosed)) = (namespace, plan.inside.to_hold()) {
        hold(&namespace, enclosed)?;
    }
    let mut handed: Vec<BorrowedFd<'_>> = vec![control.as_fd()];
    handed.extend(streams.iter().map(AsFd::as_fd));
    control::send(&tether, &Proceed, &handed).map_err(host("sendmsg(tether)"))?;
    drop(streams);
    close_control(control);
    let _ = capabilities::drop_all();
    bubblewrap.wait();
    exit(0);
}

fn host(call: &'static str) -> impl Fn(std::io::Error) -> SandboxError {
    move |error| SandboxError::Host {
        call: call.to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// A child of this process, which is killed where nobody has waited for its end.
struct Child(Option<Pid>);

impl Child {
    fn wait(mut self) {
        self.collect();
    }

    fn collect(&mut self) {
        let pid = self.0.take();
        let wait = || rustix::process::waitpid(pid, WaitOptions::empty());
        while pid.is_some() && matches!(wait(), Err(Errno::INTR)) {}
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            self.collect();
        }
    }
}

/// Every file that hides another takes a descriptor until bubblewrap has made it.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where that is refused, bubblewrap runs out of them sooner, and says so.
    let _ = setrlimit(Resource::Nofile, raised);
}

fn send_plan(tether: &OwnedFd, inside: &Inside) -> std::io::Result<()> {
    let plan = serde_json::to_vec(&Plan::Inside(Box::new(inside.clone())))?;
    control::send(tether, &Request::Plan, &[memory(&plan)?.as_fd()])
}

/// Bytes in memory, to be read from their beginning.
fn memory(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("floe", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    std::io::Seek::rewind(&mut file)?;
    Ok(file.into())
}

/// What bubblewrap, which has ended, said on its stderr.
fn complaint(complaints: OwnedFd) -> String {
    let mut said = Vec::new();
    let _ = File::from(complaints)
        .take(LONGEST_COMPLAINT)
        .read_to_end(&mut said);
    worded(&String::from_utf8_lossy(&said))
}

/// The first line of it, as a part of a sentence.
fn worded(said: &str) -> String {
    let said = said.trim().lines().next().unwrap_or_default();
    let said = said.strip_prefix("bwrap: ").unwrap_or(said);
    if said.is_empty() {
        "it ended without a word".to_owned()
    } else {
        said.trim_end_matches('.').to_owned()
    }
}

/// One call of bubblewrap, ready to be executed.
struct Invocation {
    program: CString,
    /// The descriptor that holds the options, which the command line names.
    options: OwnedFd,
    /// This very program.
    helper: OwnedFd,
    /// What the options name by number.
    named: Vec<OwnedFd>,
}

impl Invocation {
    /// Opens what the options name, and writes them down with the numbers.
    fn compose(plan: &Wrapped, mut descriptors: Vec<OwnedFd>) -> Result<Invocation, SandboxError> {
        let script = match plan.with {
            With::SessionAndScript => descriptors.pop(),
            With::Session | With::Nothing => None,
        };
        if let Some(script) = &script {
            rustix::fs::seek(script, rustix::fs::SeekFrom::Start(0))
                .map_err(failed(LayerName::Mounts, "lseek(script)"))?;
        }
        let mut composer = Composer {
            workspace: descriptors.first(),
            script,
            named: Vec::new(),
        };
        let mut text = Vec::new();
        for word in plan.options.iter().flat_map(|told| &told.0) {
            text.extend(composer.word(word)?);
            text.push(0);
        }
        let program = CString::new(plan.program.as_bytes())
            .map_err(|_| failed(LayerName::Mounts, "read the plan")(Errno::INVAL))?;
        let helper = rustix::fs::open(
            "/proc/self/exe",
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(failed(LayerName::Mounts, "open(/proc/self/exe)"))?;
        Ok(Invocation {
            program,
            options: memory(&text).map_err(host("memfd_create"))?,
            helper,
            named: composer.named,
        })
    }

    /// In the child: caps the processes of its namespace, where it has one, and becomes bubblewrap. Whatever privilege the
    /// Session's namespaces give is gone with that, but for a host that is root, whose command drops it.
    fn execute(
        &mut self,
        tether: &OwnedFd,
        complaints: &OwnedFd,
        limits: Option<&Limits>,
    ) -> Result<Infallible, Errno> {
        let capped = limits.is_some_and(cap_processes);
        let mut words = vec![
            b"bwrap".to_vec(),
            b"--args".to_vec(),
            self.options.as_raw_fd().to_string().into_bytes(),
            b"--".to_vec(),
            // By descriptor, since no path leads to it in the view. It is executed there, with that view's libraries.
            format!("/proc/self/fd/{}", self.helper.as_raw_fd()).into_bytes(),
            WORD.into(),
        ];
        words.extend(capped.then(|| PROCESSES_CAPPED.into()));
        let words: Vec<CString> = words
            .into_iter()
            .map(CString::new)
            .collect::<Result<_, _>>()
            .map_err(|_| Errno::INVAL)?;
        // An ordinary user loses every other capability by executing something, and bubblewrap insists on that.
        clear_ambient_capability_set()?;
        rustix::stdio::dup2_stdin(tether)?;
        rustix::stdio::dup2_stderr(complaints)?;
        for named in self.named.iter().chain([&self.options, &self.helper]) {
            rustix::io::fcntl_setfd(named, FdFlags::empty())?;
        }
        let mut arguments: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
        arguments.push(std::ptr::null());
        let environment = [std::ptr::null()];
        // SAFETY: all strings are terminated, both lists end with a null pointer, and all outlive the call.
        unsafe {
            libc::execve(
                self.program.as_ptr(),
                arguments.as_ptr(),
                environment.as_ptr(),
            )
        };
        Err(last_errno())
    }
}

/// Caps the processes of the namespace of which this process is the first; whether that was possible.
fn cap_processes(limits: &Limits) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open("/proc", flags, Mode::empty())
        .map_err(failed(LayerName::Limits, "open(/proc)"))
        .and_then(|proc| limits::cap_processes(&proc, limits))
        .is_ok_and(|cap| cap == ProcessCap::Namespace)
}

struct Composer<'a> {
    workspace: Option<&'a OwnedFd>,
    script: Option<OwnedFd>,
    named: Vec<OwnedFd>,
}

impl Composer<'_> {
    /// A word as bubblewrap is told it.
    fn word(&mut self, word: &Word) -> Result<Vec<u8>, SandboxError> {
        let opened = match word {
            Word::Text(text) => return Ok(text.as_bytes().to_owned()),
            Word::Workspace => match self.workspace {
                Some(workspace) => rustix::io::fcntl_dupfd_cloexec(workspace, 0),
                None => Err(Errno::BADF),
            },
            Word::Shown(path) => open_shown(path.as_path()),
            Word::Nothing => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                rustix::fs::open("/dev/null", flags, Mode::empty())
            }
            Word::Script => self.script.take().ok_or(Errno::BADF),
        };
        let opened = opened.map_err(|errno| {
            let what = match word {
                Word::Shown(path) => path.to_text(),
                _ => "what bwrap is to show".to_owned(),
            };
            failed(LayerName::Mounts, format!("open({what})"))(errno)
        })?;
        let number = opened.as_raw_fd().to_string().into_bytes();
        self.named.push(opened);
        Ok(number)
    }
}

/// Holds what is protected in the Workspace, at each of its places, in the view that bubblewrap has made, and the devices.
///
/// This is done by descriptor, as within the native walls. Whoever may join the Session's namespaces may join the
/// command's, which lie within; a child of this process does, and does nothing else there.
fn hold(namespace: &OwnedFd, plan: &Enclosed) -> Result<(), SandboxError> {
    let layer = LayerName::ProtectedPaths;
    let (ours, theirs) = control::pair().map_err(host("socketpair"))?;
    // SAFETY: this process has one thread, so the child may do anything that this one may.
    match unsafe { libc::fork() } {
        -1 => Err(failed(layer, "fork")(last_errno())),
        0 => {
            let held = enter_view(namespace)
                .map_err(failed(layer, "setns(CLONE_NEWNS)"))
                .and_then(|()| {
                    hold_devices()
                        .map_err(failed(layer, "mount(devices, MS_REMOUNT|MS_RDONLY)"))?;
                    plan.workspaces
                        .iter()
                        .try_for_each(|place| hold_at(place, plan))
                });
            let _ = control::send(&theirs, &held.err(), &[]);
            // SAFETY: ends this process only, without running what the other has registered.
            unsafe { libc::_exit(0) }
        }
        pid => {
            drop(theirs);
            let said = control::receive::<Option<SandboxError>>(&ours);
            Child(Pid::from_raw(pid)).wait();
            match said {
                Ok(Received::Message(None, _)) => Ok(()),
                Ok(Received::Message(Some(failure), _)) => Err(failure),
                _ => Err(failed(layer, "mount in the view of bwrap")(Errno::IO)),
            }
        }
    }
}

/// Keeps the machine's devices as they are: their mode and owner are its root's to change. bubblewrap can make what it shows
/// read-only, but then no devices are left.
fn hold_devices() -> rustix::io::Result<()> {
    for name in DEVICES {
        // By path, and by the old call, which every kernel knows that bubblewrap stands on: nothing runs in the view yet that
        // could change where a path leads, and of its `/proc` this process is no part.
        let device = Path::new("/dev").join(name);
        let held = match rustix::fs::statvfs(&device) {
            Ok(status) => status.f_flag,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno),
        };
        let mut flags = MountFlags::BIND | MountFlags::RDONLY;
        // What is not said again would be taken away.
        for (held_as, flag) in [
            (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
            (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        ] {
            flags.set(flag, held.contains(held_as));
        }
        rustix::mount::mount_remount(&device, flags, "")?;
    }
    Ok(())
}

fn hold_at(place: &Bytes, plan: &Enclosed) -> Result<(), SandboxError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let workspace = rustix::io::retry_on_intr(|| {
        rustix::fs::openat2(
            rustix::fs::CWD,
            place.as_path(),
            flags,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        )
    });
    let workspace = workspace.map_err(failed(LayerName::ProtectedPaths, "open(the Workspace)"))?;
    protect::hold(&workspace, &plan.protected, &plan.denied).map(drop)
}

/// Enters a mount namespace and the user namespace that it belongs to.
fn enter_view(namespace: &OwnedFd) -> rustix::io::Result<()> {
    /// `_IO(0xb7, 1)`: the user namespace that owns another namespace.
    const NS_GET_USERNS: libc::c_ulong = 0xb701;
    // SAFETY: the request takes no argument and returns a new descriptor.
    let user = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_USERNS as _) };
    if user == -1 {
        return Err(last_errno());
    }
    // SAFETY: a new descriptor that nobody else owns.
    let user = unsafe { OwnedFd::from_raw_fd(user) };
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))
}

#[cfg(test)]
mod tests {
    use super::worded;

    #[test]
    fn what_bubblewrap_says_becomes_a_part_of_a_sentence() {
        for (said, expected) in [
            (
                "bwrap: Can't mkdir /x: No space left on device\n",
                "Can't mkdir /x: No space left on device",
            ),
            (
                "bwrap: No permissions to create a namespace.\nusage: …",
                "No permissions to create a namespace",
            ),
            ("\n", "it ended without a word"),
        ] {
            assert_eq!(worded(said), expected);
        }
    }
}
