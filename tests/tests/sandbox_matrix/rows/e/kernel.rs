//! What a command may not do with the kernel: mounts, namespaces, settings of the machine, other processes, privileges.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use floe_command::{CommandError, CommandSpec, Status};
use floe_sandbox::{MinimumTier, Tier, doctor};

use crate::oracle::set_raw_attribute;
use crate::row::Row;
use crate::stage::{Stage, finish, read_until};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E24",
        "mounts, devices and namespaces are refused, by program and by system call",
        mounts_and_namespaces,
    ),
    Row::new(
        "E25",
        "settings of the machine cannot be opened for writing",
        settings_of_the_machine,
    ),
    Row::new("E26", "the kernel's keys are out of reach", keys),
    Row::new(
        "E27",
        "the insides of other processes are out of reach",
        insides_of_processes,
    ),
    Row::new(
        "E27",
        "a command that signals everything reaches only itself",
        signals_to_everything,
    ),
    Row::new(
        "E27",
        "a sandbox that is killed from outside is told as such, and the next command runs",
        killed_sandbox,
    ),
    Row::new(
        "E28",
        "nothing can be typed into a terminal from within",
        words_into_a_terminal,
    ),
    Row::new(
        "E29",
        "no program gives privileges, whatever its mode says",
        privileged_programs,
    ),
    Row::new(
        "E29",
        "no program can be left behind that gives others the host's privileges",
        setuid_left_behind,
    ),
    Row::new(
        "E35",
        "Landlock is found by asking the kernel, not by a file",
        landlock_is_found,
    ),
];

/// System calls by number and arguments; names those that were not refused.
const CALLS: &str = r#"
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *args)
    return result, ctypes.get_errno()
def refused(name, number, *args, answers=(errno.EPERM,)):
    result, error = call(number, *args)
    if result >= 0 or error not in answers: print('WENT THROUGH', name, result, errno.errorcode.get(error, error))
x86 = os.uname().machine == 'x86_64'
def number(x, arm): return x if x86 else arm
def long(value): return ctypes.c_ulong(value)
"#;

fn calls(stage: &Stage, attacks: &str) {
    let outcome = stage
        .session()
        .python(&format!("{CALLS}{attacks}\nprint('done')"));
    assert_eq!(outcome.text, "done\n");
}

fn mounts_and_namespaces(stage: &Stage) {
    stage.put(".git/hooks/update", "");
    stage.put(".git/HEAD", "ref: refs/heads/main");
    let session = stage.session();
    session.all_refused(&[
        "mount -o remount,rw /",
        "mount -o remount,rw,bind /usr",
        "mount -o remount,rw,bind .git/hooks",
        "mount -o remount,suid,bind .",
        "mount --bind /tmp .git/hooks",
        "mount --bind /tmp /usr",
        "mount --make-shared /",
        "mount -t tmpfs none /tmp",
        "mount -t proc proc /tmp",
        "mount -t sysfs sys /tmp",
        "mount -t cgroup2 c /tmp",
        "mount -t overlay o -o lowerdir=/etc,upperdir=/tmp,workdir=/tmp /tmp",
        "mount -t devtmpfs d /tmp",
        "mount -t debugfs d /tmp",
        "umount .git/hooks",
        "umount -l .git/hooks",
        "umount -l .git",
        "umount -l /",
        "umount /proc/sys",
        "umount -l /proc",
        "umount -l /usr",
        "umount -l .",
        "mknod n c 1 3",
        "mknod n b 8 0",
        "mknod /tmp/n c 1 1",
        "mknod /dev/n c 1 1",
        "unshare -Urm true",
        "unshare -U true",
        "unshare -m true",
        "unshare -n true",
        "unshare -p true",
        "unshare -i true",
        "unshare -u true",
        "unshare -C true",
        "unshare -T true",
        "unshare -Urm umount -l .git/hooks",
        "unshare -Urm mount -o remount,rw /usr",
        "bwrap --ro-bind / / true",
        "nsenter -t 1 -m true",
        "nsenter -t 1 -a true",
        "nsenter -U/proc/1/ns/user true",
        "chroot / true",
        "pivot_root . .",
        "swapon /tmp/x",
        "losetup -f",
        "ls /dev/loop0 || ls /dev/sda || ls /dev/vda || ls /dev/fuse || ls /dev/kvm || ls /dev/mapper",
    ]);
    calls(
        stage,
        r#"
NEW = {'ns': 0x20000, 'cgroup': 0x2000000, 'uts': 0x4000000, 'ipc': 0x8000000, 'user': 0x10000000, 'pid': 0x20000000, 'net': 0x40000000, 'time': 0x80}
for name, flag in NEW.items(): refused('unshare ' + name, number(272, 97), long(flag))
for name, flag in NEW.items():
    if name != 'time': refused('clone ' + name, number(56, 220), long(flag | 17), 0, 0, 0, 0)
refused('clone, bits above', number(56, 220), long(0x10000000 | (1 << 40) | 17), 0, 0, 0, 0, answers=(errno.EPERM, errno.EINVAL))
refused('clone3', 435, ctypes.create_string_buffer(88), long(88), answers=(errno.ENOSYS,))
refused('mount', number(165, 40), b'none', b'/tmp', b'tmpfs', 0, 0)
refused('mount, remount', number(165, 40), b'none', b'/', 0, long(32), 0)
refused('umount2', number(166, 39), b'/proc', 2)
refused('umount2 of the root', number(166, 39), b'/', 2)
refused('pivot_root', number(155, 41), b'.', b'.')
refused('chroot', number(161, 51), b'.')
refused('open_tree', 428, -100, b'/', 1)
refused('move_mount', 429, -100, b'/usr', -100, b'/tmp', 0)
refused('fsopen', 430, b'tmpfs', 0)
refused('fsconfig', 431, 0, 0, 0, 0, 0)
refused('fsmount', 432, 0, 0, 0)
refused('fspick', 433, -100, b'/', 0)
refused('mount_setattr', 442, -100, b'/', 0, ctypes.create_string_buffer(32), long(32))
refused('open_tree_attr', 467, -100, b'/', 1, ctypes.create_string_buffer(32), long(32), answers=(errno.EPERM, errno.ENOSYS))
for kind in ('mnt', 'user', 'net', 'pid', 'uts', 'ipc'):
    try: f = os.open(f'/proc/self/ns/{kind}', os.O_RDONLY)
    except OSError: continue
    refused('setns ' + kind, number(308, 268), f, 0)
try: os.mknod('n', 0o60600, os.makedev(8, 0)); print('WENT THROUGH mknod')
except PermissionError: pass
refused('open_by_handle_at', number(304, 265), -100, ctypes.create_string_buffer(64), 0)
refused('bpf', number(321, 280), 0, ctypes.create_string_buffer(128), 128)
refused('perf_event_open', number(298, 241), ctypes.create_string_buffer(128), 0, -1, -1, long(0))
refused('userfaultfd', number(323, 282), 0)
refused('fanotify_init', number(300, 262), 0, 0)
refused('kexec_load', number(246, 104), 0, 0, 0, 0)
refused('init_module', number(175, 105), 0, 0, 0)
refused('finit_module', number(313, 273), 0, b'', 0)
refused('delete_module', number(176, 106), b'x', 0)
refused('reboot, no magic', number(169, 142), 0, 0, 0, 0)
refused('swapon', number(167, 224), b'/tmp/x', 0)
refused('acct', number(163, 89), b'/tmp/x')
refused('quotactl', number(179, 60), 0, 0, 0, 0)
refused('syslog', number(103, 116), 3, ctypes.create_string_buffer(64), 64)
refused('sethostname', number(170, 161), b'evil', 4)
refused('setdomainname', number(171, 162), b'evil', 4)
refused('settimeofday', number(164, 170), 0, 0)
refused('clock_settime', number(227, 112), 99, 0)
refused('vhangup', number(153, 58))
refused('capset', number(126, 91), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(1, 1, 1, 0, 0, 0))
refused('setuid of another', number(105, 146), 12345, answers=(errno.EPERM, errno.EINVAL))
refused('setgid of another', number(106, 144), 12345, answers=(errno.EPERM, errno.EINVAL))
refused('setgroups', number(116, 159), 1, (ctypes.c_uint32 * 1)(0))
if x86:
    refused('iopl', 172, 3)
    refused('ioperm', 173, 0, 1, 1)
    refused('modify_ldt', 154, 0, 0, 0)
    refused('mount, x32', 0x40000000 | 165, b'none', b'/tmp', b'tmpfs', 0, 0, answers=(errno.ENOSYS,))
"#,
    );
}

fn settings_of_the_machine(stage: &Stage) {
    let session = stage.session();
    let files = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/pid_max",
        "/proc/sys/kernel/sysrq",
        "/proc/sys/kernel/randomize_va_space",
        "/proc/sys/kernel/usermodehelper/bset",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/sys/fs/protected_hardlinks",
        "/proc/sys/fs/suid_dumpable",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/net/ipv4/ping_group_range",
        "/proc/sysrq-trigger",
        "/proc/irq/default_smp_affinity",
        "/proc/bus/pci/devices",
        "/proc/scsi/scsi",
        "/proc/mtrr",
        "/proc/acpi/wakeup",
        "/proc/timer_list",
        "/proc/1/mem",
        "/proc/1/oom_score_adj",
        "/proc/1/uid_map",
        "/proc/self/uid_map",
        "/proc/self/gid_map",
        "/proc/self/setgroups",
        "/proc/1/attr/current",
        "/proc/1/coredump_filter",
        "/proc/1/clear_refs",
        "/sys/fs/cgroup/release_agent",
        "/sys/fs/cgroup/memory/release_agent",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/unified/cgroup.procs",
        "/sys/kernel/uevent_helper",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/power/state",
        "/dev/mem",
        "/dev/kmsg",
        "/dev/cpu_dma_latency",
        "/dev/watchdog",
    ];
    // Opened for appending and closed again: nothing is written even where this goes through.
    let attacks: Vec<_> = files.iter().map(|file| format!("exec 3>>{file}")).collect();
    session.all_refused(&attacks);
    let attacks: Vec<_> = files
        .iter()
        .map(|file| format!("exec 3<>/proc/self/root{file}"))
        .collect();
    session.all_refused(&attacks);
    session.all_refused(&[
        "find /proc/sys /proc/irq /proc/bus /proc/fs -writable 2>/dev/null | while read -r f; do (exec 3>>\"$f\") 2>/dev/null && echo \"$f\"; done | grep .",
        "ls /sys 2>/dev/null | grep .",
        "sysctl -w kernel.sysrq=1",
        "hostname evil",
        "date -s 2000-01-01",
        "dmesg",
        "chmod 777 /proc/sys/kernel/core_pattern",
    ]);
}

fn keys(stage: &Stage) {
    calls(
        stage,
        r#"
absent = (errno.EPERM, errno.ENOSYS)
for name, arguments in {
    'join a session': (1, 0), 'link': (8, -3, -4), 'session to parent': (18,), 'describe': (6, -3), 'read': (11, -4),
    'search': (10, -4, b'user', b'x', 0), 'revoke': (3, -3), 'persistent': (22, -1, -3), 'get id': (0, -3, 1), 'instantiate': (12, 0, 0, 0, 0),
}.items():
    refused('keyctl ' + name, number(250, 219), *arguments, answers=absent)
refused('add_key', number(248, 217), b'user', b'evil', b'x', long(1), -3, answers=absent)
refused('request_key', number(249, 218), b'user', b'x', 0, -3, answers=absent)
for path in ('/proc/keys', '/proc/key-users'):
    try: text = open(path).read()
    except OSError: continue
    if path == '/proc/keys' and text: print('WENT THROUGH', path, text)
"#,
    );
}

fn insides_of_processes(stage: &Stage) {
    calls(
        stage,
        r#"
import signal, subprocess
child = subprocess.Popen(['sleep', '60'])
buffer = ctypes.create_string_buffer(64)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 64)
absent = (errno.EPERM, errno.ESRCH, errno.EACCES)
for pid in (1, child.pid, os.getpid()):
    refused(f'ptrace attach {pid}', number(101, 117), long(16), pid, 0, 0)
    refused(f'ptrace seize {pid}', number(101, 117), long(0x4206), pid, 0, 0)
    refused(f'process_vm_readv {pid}', number(310, 270), pid, vector, long(1), vector, long(1), long(0))
    refused(f'process_vm_writev {pid}', number(311, 271), pid, vector, long(1), vector, long(1), long(0))
    refused(f'kcmp {pid}', number(312, 272), pid, os.getpid(), 0, long(0), long(1))
refused('ptrace traceme', number(101, 117), long(0), 0, 0, 0)
f = os.pidfd_open(child.pid)
refused('pidfd_getfd', 438, f, 0, 0)
refused('process_madvise', 440, f, vector, long(1), 21, 0)
for file in ('mem', 'environ', 'maps', 'syscall', 'stack', 'exe', 'fd/0', 'fd/3', 'cwd', 'root', 'pagemap', 'auxv'):
    try:
        path = f'/proc/1/{file}'
        text = os.readlink(path) if file in ('exe', 'cwd', 'root', 'fd/0', 'fd/3') else open(path, 'rb').read(64)
        if text: print('WENT THROUGH', path, text)
    except OSError: pass
for flags in (os.O_WRONLY, os.O_RDWR):
    try: os.open('/proc/1/mem', flags); print('WENT THROUGH mem')
    except OSError: pass
child.kill()
for pid in range(2, 400):
    if pid in (os.getpid(), child.pid, os.getppid()): continue
    try: os.kill(pid, 0); print('WENT THROUGH', pid)
    except OSError: pass
"#,
    );
}

fn signals_to_everything(stage: &Stage) {
    let mut neighbour = std::process::Command::new("sleep")
        .arg("100")
        .spawn()
        .unwrap();
    let session = stage.session();
    for signal in ["TERM", "KILL", "STOP", "INT", "HUP", "USR1", "SEGV"] {
        let outcome = session.run(&format!(
            "trap '' TERM INT HUP USR1; sleep 50 & kill -{signal} 1; kill -{signal} $PPID; kill -{signal} -1; echo still here"
        ));
        assert_ne!(outcome.status, Status::Running, "{signal}");
        assert!(neighbour.try_wait().unwrap().is_none(), "{signal}");
    }
    let host = std::process::id();
    session.all_refused(&[
        format!("kill -9 {host}"),
        format!("kill -0 {}", neighbour.id()),
    ]);
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    assert_eq!(session.ok("echo on"), "on\n");
}

fn killed_sandbox(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let command = session.start("echo up; sleep 100").await;
        read_until(&command, "up\n").await;
        // The host's own children are the helpers; the one with a child of its own leads the command.
        let own = std::process::id().to_string();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(stat) = fs::read_to_string(process.path().join("stat")) else {
                continue;
            };
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            if after_name.split_whitespace().nth(1) == Some(&own) {
                let pid = process.file_name().to_str().unwrap().parse().unwrap();
                let pid = rustix::process::Pid::from_raw(pid).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }
        }
        assert_eq!(
            command.ended().await,
            Status::Lost(CommandError::SandboxEnded)
        );
        assert!(CommandError::SandboxEnded.to_string().contains("sandbox"));
        let next = session.start("echo next").await;
        assert_eq!(finish(&next).await.text, "next\n");
    });
}

fn words_into_a_terminal(stage: &Stage) {
    let session = stage.session();
    let attack = r#"
import ctypes, errno, fcntl, os, sys
libc = ctypes.CDLL(None, use_errno=True)
ioctl = 16 if os.uname().machine == 'x86_64' else 29
own = os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)
for fd in (0, 1, 2, own):
    for name, request in {'TIOCSTI': 0x5412, 'TIOCLINUX': 0x541C, 'TIOCSETD': 0x5423}.items():
        # The kernel looks at the lower half of the request only.
        for above in (0, 1 << 32, 0xdead << 32):
            argument = ctypes.create_string_buffer(b'\x02\0\0\0')
            if libc.syscall(ctypes.c_long(ioctl), fd, ctypes.c_ulong(above | request), argument) >= 0 or ctypes.get_errno() != errno.EPERM:
                print('WENT THROUGH', fd, name, above, ctypes.get_errno())
print('done')
"#;
    let outcome = session.python(attack);
    assert_eq!(outcome.text, "done\n");
    // No terminal at all in a command with pipes: the person's is not even there to be opened.
    session.all_refused(&[
        "exec 3<>/dev/tty",
        "exec 3<>/dev/console",
        "exec 3<>/dev/tty1",
        "exec 3<>/dev/pts/0",
        "ls /dev/tty[0-9]* /dev/vcs* /dev/ttyS*",
    ]);
    let in_terminal = session.run_spec(CommandSpec {
        command: "python3".into(),
        args: Some(vec!["-c".into(), attack.into()]),
        terminal: true,
        ..CommandSpec::default()
    });
    assert_eq!(in_terminal.text.trim_end(), "done", "{in_terminal:?}");
    let name = session.run_spec(CommandSpec {
        terminal: true,
        ..CommandSpec::shell("tty; ls /dev/pts; readlink /proc/self/fd/0")
    });
    assert_eq!(
        name.text.split_whitespace().collect::<Vec<_>>(),
        ["/dev/pts/0", "0", "ptmx", "/dev/pts/0"]
    );
}

/// A program that says with which privileges it runs.
fn status_lines(program: &str) -> String {
    format!(
        "{program} -E '^(Uid|Gid|CapEff|CapPrm|NoNewPrivs):' /proc/self/status | tr '\\t\\n' '  '"
    )
}

fn privileged_programs(stage: &Stage) {
    let is_root = rustix::process::geteuid().is_root();
    let program = stage.workspace.join("grep");
    fs::copy("/usr/bin/grep", &program).unwrap();
    if is_root {
        std::os::unix::fs::chown(&program, Some(65534), Some(65534)).unwrap();
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
    let capable = stage.workspace.join("capable");
    fs::copy("/usr/bin/grep", &capable).unwrap();
    if is_root {
        // CAP_SYS_ADMIN and all others, permitted and effective.
        let mut all = 0x0200_0001_u32.to_le_bytes().to_vec();
        all.extend(
            [0xff; 4]
                .iter()
                .chain(&[0; 4])
                .chain(&[0xff; 4])
                .chain(&[0; 4]),
        );
        set_raw_attribute(&capable, "security.capability", &all);
    }
    let session = stage.session();
    let plain = session.ok(&status_lines("/usr/bin/grep"));
    assert!(plain.contains("CapEff: 0000000000000000"), "{plain}");
    assert!(plain.contains("CapPrm: 0000000000000000"), "{plain}");
    assert!(plain.contains("NoNewPrivs: 1"), "{plain}");
    for program in ["./grep", "/workspace/grep", "./capable"] {
        assert_eq!(session.ok(&status_lines(program)), plain, "{program}");
    }
    session.all_refused(&[
        "su -c id nobody </dev/null",
        "su - -c true </dev/null",
        "sudo -n true",
        "pkexec true",
        "newgrp root -c true </dev/null",
        "chown 1:1 grep",
        "chown 12345 capable",
        "setpriv --reuid 12345 true",
        "setpriv --inh-caps +all true",
        "capsh --caps=all+eip -- -c true",
        "setcap all+ep /workspace/capable",
        "ping -c1 -W1 192.0.2.1",
        "find / -xdev -perm /6000 -newermt '2100-01-01' | grep .",
    ]);
    let mounts = session.ok("awk '$4 !~ /nosuid/ {print $2}' /proc/self/mounts");
    assert_eq!(mounts, "");
}

fn setuid_left_behind(stage: &Stage) {
    let session = stage.session();
    let outcome = session.run(
        "cp /bin/bash one; chmod 4755 one; cp /bin/bash two; chmod u+s two; cp /bin/bash three; chmod 6711 three
         install -m 4755 /bin/bash four
         python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None)
x86 = os.uname().machine == 'x86_64'
def tried(attack):
    try: attack()
    except OSError: pass
tried(lambda: os.open('five', os.O_CREAT | os.O_WRONLY, 0o4755))
tried(lambda: os.mknod('six', 0o104755))
open('seven', 'w'); f = os.open('seven', os.O_RDWR)
tried(lambda: os.fchmod(f, 0o4755))
open('eight', 'w'); libc.syscall(452, -100, b'eight', 0o4755, 0)
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
libc.syscall(437, -100, b'nine', how, 24)
if x86: libc.syscall(85, b'ten', 0o4755)
open('eleven', 'w'); libc.syscall(268 if x86 else 53, -100, b'eleven', ctypes.c_ulong((1 << 32) | 0o4755))
def unnamed():
    f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755)
    assert libc.linkat(-100, f'/proc/self/fd/{f}'.encode(), -100, b'twelve', 0x400) == 0
tried(unnamed)
END
         tar cf t --mode=4755 one; mkdir out; tar xpf t -C out; cp -p --preserve=all one thirteen",
    );
    let mut left = Vec::new();
    let mut waiting = vec![stage.workspace.clone()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                waiting.push(entry.path());
            } else if metadata.permissions().mode() & 0o4000 != 0 {
                left.push(entry.path());
            }
        }
    }
    assert!(left.is_empty(), "{left:?}\n{outcome:?}");
    // What has to do with modes otherwise works, a shared folder's too.
    session.ok("set -e; touch f; chmod 755 f; chmod 0600 f; chmod u=rwx,go=rx f; mkdir d; chmod 1777 d; chmod 2775 d; umask 002; install -m 755 /bin/true t2; git init -q --shared=group s; cp -a s s2");
}

fn landlock_is_found(stage: &Stage) {
    let session = stage.session();
    session.ok("true");
    let confinement = session.sandbox.confinement();
    let landlock = confinement
        .layers
        .iter()
        .find(|layer| layer.name == "landlock");
    assert!(
        landlock.is_some_and(|layer| layer.active),
        "{confinement:?}"
    );
    // Inside there is no such file in any case, so nothing that was found was found by it.
    session.all_refused(&["cat /sys/kernel/security/lsm", "ls /sys/kernel/security"]);
    let doctor = doctor(&stage.helper, MinimumTier::Native);
    let native = doctor
        .tiers
        .iter()
        .find(|examined| examined.tier == Tier::Native);
    let landlock =
        native.and_then(|native| native.layers.iter().find(|layer| layer.name == "landlock"));
    assert!(landlock.is_some_and(|layer| layer.active), "{doctor:?}");
}
