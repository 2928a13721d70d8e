//! What a command may not reach over the network, and what it must still be able to do with sockets.

use std::net::{TcpListener, UdpSocket};

use crate::row::Row;
use crate::stage::{Stage, read_until};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E20",
        "every kind of socket is refused at once where it would lead out",
        every_kind_of_socket,
    ),
    Row::new(
        "E20",
        "there is no other interface than the loopback, and none can be made",
        only_the_loopback,
    ),
    Row::new(
        "E21",
        "programs talk to each other: loopback, Unix sockets, pipes, shared memory, multiprocessing",
        programs_talk_to_each_other,
    ),
    Row::new(
        "E21",
        "the server of one command answers the next, over TCP and over Unix sockets",
        server_of_another_command,
    ),
    Row::new(
        "E22",
        "a server on the host's own loopback is not reached",
        server_of_the_host,
    ),
];

/// Tries what leads out, names what went through or took its time.
const OUT: &str = r#"
import ctypes, errno, os, socket, struct, time
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    result = libc.syscall(number, *args)
    if result < 0: raise OSError(ctypes.get_errno(), 'refused')
    return result
def tcp(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(8)
    s.connect(address)
def fast_open(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.settimeout(8)
    s.sendto(b'evil', 0x20000000, address)
def udp(family, address):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.sendto(b'evil', address)
def broadcast():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.sendto(b'evil', ('255.255.255.255', 9))
def multicast():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b'evil', ('224.0.0.251', 5353))
def icmp(family, protocol, address):
    s = socket.socket(family, socket.SOCK_DGRAM, protocol)
    s.sendto(b'\x08\0\0\0\0\0\0\0', (address, 0))
def bound_elsewhere():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(0, 15, 1)  # IP_FREEBIND
    s.bind(('192.0.2.7', 0))
    s.settimeout(8)
    s.connect(('192.0.2.1', 80))
def device():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0')
def route():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    # RTM_NEWROUTE, a default route over the first interface.
    body = struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack('HHI', 8, 4, 1)
    s.send(struct.pack('IHHII', 16 + len(body), 24, 0x0605, 1, 0) + body)
    kind = struct.unpack_from('IHHIIi', s.recv(4096))
    if kind[5] < 0: raise OSError(-kind[5], 'refused')
def link():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    body = struct.pack('BBHiII', 0, 0, 0, 0, 0, 0) + struct.pack('HH', 8, 3) + b'evil' + struct.pack('HH', 16, 18) + struct.pack('HH', 10, 1) + b'dummy\0\0\0'
    s.send(struct.pack('IHHII', 16 + len(body), 16, 0x0605, 1, 0) + body)
    kind = struct.unpack_from('IHHIIi', s.recv(4096))
    if kind[5] < 0: raise OSError(-kind[5], 'refused')
attacks = {
    'tcp': lambda: tcp(socket.AF_INET, ('192.0.2.1', 80)),
    'tcp, private': lambda: tcp(socket.AF_INET, ('10.0.0.1', 80)),
    'tcp, metadata': lambda: tcp(socket.AF_INET, ('169.254.169.254', 80)),
    'tcp, any': lambda: tcp(socket.AF_INET, ('0.0.0.0', 1)),
    'tcp6': lambda: tcp(socket.AF_INET6, ('2001:db8::1', 80)),
    'tcp6, mapped': lambda: tcp(socket.AF_INET6, ('::ffff:192.0.2.1', 80)),
    'tcp6, link': lambda: tcp(socket.AF_INET6, ('fe80::1', 80, 0, 1)),
    'tcp, fast open': lambda: fast_open(('192.0.2.1', 80)),
    'tcp, bound elsewhere': bound_elsewhere,
    'udp': lambda: udp(socket.AF_INET, ('192.0.2.1', 53)),
    'udp6': lambda: udp(socket.AF_INET6, ('2001:db8::1', 53)),
    'udp, broadcast': broadcast,
    'udp, multicast': multicast,
    'icmp': lambda: icmp(socket.AF_INET, socket.IPPROTO_ICMP, '192.0.2.1'),
    'icmp6': lambda: icmp(socket.AF_INET6, socket.IPPROTO_ICMPV6, '2001:db8::1'),
    'raw': lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    'raw6': lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW),
    'packet': lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3),
    'packet, cooked': lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 3),
    'vsock': lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 1024)),
    'bluetooth': lambda: socket.socket(31, socket.SOCK_RAW, 1),
    'alg': lambda: socket.socket(38, socket.SOCK_SEQPACKET),
    'can': lambda: socket.socket(29, socket.SOCK_RAW, 1),
    'xdp': lambda: socket.socket(44, socket.SOCK_RAW, 0),
    'rds': lambda: socket.socket(21, socket.SOCK_SEQPACKET, 0),
    'tipc': lambda: socket.socket(30, socket.SOCK_STREAM, 0),
    'smc': lambda: socket.socket(43, socket.SOCK_STREAM, 0),
    'qipcrtr': lambda: socket.socket(42, socket.SOCK_DGRAM, 0),
    'netlink, audit': lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9),
    'netlink, netfilter': lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12),
    'netlink, uevent': lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15),
    'netlink, generic': lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16),
    'a family with bits above': lambda: call(41, ctypes.c_ulong((1 << 32) | 17), 3, 3) if os.uname().machine == 'x86_64' else call(198, ctypes.c_ulong((1 << 32) | 17), 3, 3),
    'bind to a device': device,
    'a route': route,
    'a link': link,
    'io_uring': lambda: call(425, 8, ctypes.create_string_buffer(256)),
    'io_uring, registered': lambda: call(427, 0, 0, 0, 0),
    'a name': lambda: socket.getaddrinfo('example.com', 80),
    'a name without dots': lambda: socket.getaddrinfo('metadata', 80),
}
if os.uname().machine == 'x86_64':
    # The calls of the other numbering, which a filter by number would not know.
    attacks['x32'] = lambda: call(0x40000000 | 41, 17, 3, 3)
for name, attack in attacks.items():
    started = time.monotonic()
    try:
        attack()
        print('WENT THROUGH', name)
    except (OSError, OverflowError, AttributeError) as error:
        if isinstance(error, TimeoutError) or time.monotonic() - started > 2: print('SLOW', name, error)
print('done')
"#;

fn every_kind_of_socket(stage: &Stage) {
    let session = stage.session();
    let outcome = session.python(OUT);
    assert_eq!(outcome.text, "done\n");
    session.all_refused(&[
        "exec 3<>/dev/tcp/192.0.2.1/80",
        "exec 3<>/dev/udp/192.0.2.1/53 && echo x >&3",
        "exec 3<>/dev/tcp/example.com/80",
        "getent hosts example.com",
        "getent ahosts floe.invalid",
        "curl -sS -m 5 http://192.0.2.1/",
        "curl -sS -m 5 https://example.com/",
        "git ls-remote https://example.com/x.git",
        "ping -c1 -W2 192.0.2.1",
        "ip route add default dev lo",
        "ip link add evil type dummy",
        "ip addr add 192.0.2.7/24 dev lo",
        "ip link set lo down",
        "iptables -L",
    ]);
}

fn only_the_loopback(stage: &Stage) {
    let session = stage.session();
    let interfaces = session.ok("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '");
    assert_eq!(interfaces, "lo\n");
    assert_eq!(
        session.ok("tail -n +2 /proc/net/route; cat /proc/net/arp | tail -n +2"),
        ""
    );
    session.all_refused(&[
        "test -e /sys/class/net",
        "exec 3<>/dev/net/tun",
        "exec 3<>/dev/vhost-net",
        "exec 3<>/dev/vsock",
        "exec 3>>/proc/sys/net/ipv4/ip_forward",
        "ls -l /proc/1/ns/net && nsenter --net=/proc/1/ns/net true",
    ]);
}

/// What honest programs do. Everything must work.
const HONEST: &str = r"
import array, ctypes, fcntl, mmap, multiprocessing, os, select, signal, socket, struct, subprocess, sys, tempfile, threading
from multiprocessing import shared_memory
def tcp(family, host):
    a = socket.socket(family); a.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    a.bind((host, 0)); a.listen()
    b = socket.create_connection(a.getsockname()[:2]); c, _ = a.accept()
    b.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); b.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    b.sendall(b'x'); assert c.recv(1) == b'x'; assert c.getpeername()[:2] == b.getsockname()[:2]
def udp(family, host):
    a = socket.socket(family, socket.SOCK_DGRAM); a.bind((host, 0))
    b = socket.socket(family, socket.SOCK_DGRAM); b.sendto(b'x', a.getsockname()); assert a.recv(1) == b'x'
def unix(path):
    a = socket.socket(socket.AF_UNIX); a.bind(path); a.listen()
    b = socket.socket(socket.AF_UNIX); b.connect(path); c, _ = a.accept()
    pid, uid, gid = struct.unpack('3i', c.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    assert pid == os.getpid() and uid == os.getuid()
    os.unlink(path)
def pair():
    a, b = socket.socketpair()
    b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    r, w = os.pipe()
    a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [w]))])
    data, sent, _, _ = b.recvmsg(1, 1024)
    kinds = {kind for _, kind, _ in sent}
    assert kinds == {socket.SCM_RIGHTS, 2}, kinds
def pool():
    with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
def queue():
    q = multiprocessing.Queue(); p = multiprocessing.Process(target=q.put, args=(1,)); p.start(); assert q.get() == 1; p.join()
def spawned():
    c = multiprocessing.get_context('spawn'); p = c.Process(target=print); p.start(); p.join(); assert p.exitcode == 0
def shared():
    m = shared_memory.SharedMemory(create=True, size=4096); m.buf[0] = 1; m.close(); m.unlink()
def executable_memory(): mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
def memfd():
    f = os.memfd_create('x'); os.write(f, b'#!/bin/sh\nexit 7\n'); assert subprocess.call([f'/proc/self/fd/{f}'], pass_fds=[f]) == 7
def inotify():
    l = ctypes.CDLL(None); f = l.inotify_init1(0o2000000); assert l.inotify_add_watch(f, b'.', 0xfff) > 0
def poll():
    e = select.epoll(); r, w = os.pipe(); e.register(r, select.EPOLLIN); os.write(w, b'x'); assert e.poll(1)
def locks():
    with open('lock', 'w') as f: fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)
def files():
    os.makedirs('d/e'); open('d/a', 'w').write('x' * 9000); os.link('d/a', 'd/b'); os.symlink('a', 'd/c'); os.mkfifo('d/f')
    os.chmod('d/a', 0o751); os.utime('d/a', (1, 1)); os.rename('d/a', 'd/e/a'); os.truncate('d/b', 10)
    s, t = os.open('d/b', os.O_RDWR), os.open('d/t', os.O_RDWR | os.O_CREAT); os.copy_file_range(s, t, 10); os.posix_fallocate(t, 0, 100); os.fsync(t)
    os.open('d', os.O_TMPFILE | os.O_RDWR)
    try: os.setxattr('d/t', 'user.x', b'y')
    except OSError as e: assert e.errno == 95
def threads():
    ts = [threading.Thread(target=os.getpid) for _ in range(64)]; [t.start() for t in ts]; [t.join() for t in ts]
def terminal():
    import pty; assert pty.spawn(['true'], lambda fd: os.read(fd, 1)) == 0
def children():
    signal.signal(signal.SIGUSR1, lambda *_: None); p = subprocess.Popen(['sleep', '60']); os.kill(p.pid, signal.SIGTERM); assert p.wait() == -15
    os.setpriority(os.PRIO_PROCESS, 0, 5); os.sched_setaffinity(0, os.sched_getaffinity(0)); os.getpgid(0)
    p = subprocess.Popen(['true'], start_new_session=True); f = os.pidfd_open(p.pid); p.wait(); os.close(f)
def names(): assert socket.getaddrinfo('localhost', 80); socket.if_nameindex(); socket.gethostname()
def temporary():
    with tempfile.NamedTemporaryFile() as f: f.write(b'x')
    assert tempfile.gettempdir() == '/tmp'
def standard():
    for path in ('/dev/stdin', '/dev/stdout', '/dev/fd/1', '/dev/null', '/dev/zero', '/dev/urandom', '/dev/full', '/dev/shm', '/dev/ptmx'): assert os.path.exists(path), path
    open('/dev/null', 'w').write('x'); os.getrandom(8)
for name, work in {
    'tcp': lambda: tcp(socket.AF_INET, '127.0.0.1'), 'tcp6': lambda: tcp(socket.AF_INET6, '::1'), 'any': lambda: tcp(socket.AF_INET, '0.0.0.0'),
    'udp': lambda: udp(socket.AF_INET, '127.0.0.1'), 'unix in the Workspace': lambda: unix('s'), 'unix in /tmp': lambda: unix('/tmp/s'), 'unix at home': lambda: unix(os.path.expanduser('~/s')),
    'pair': pair, 'pool': pool, 'queue': queue, 'shared': shared, 'executable memory': executable_memory, 'memfd': memfd, 'inotify': inotify,
    'poll': poll, 'locks': locks, 'files': files, 'threads': threads, 'terminal': terminal, 'children': children, 'names': names, 'temporary': temporary, 'standard': standard,
}.items():
    try: work()
    except BaseException as error: print('BROKEN', name, repr(error))
print('done')
";

fn programs_talk_to_each_other(stage: &Stage) {
    let session = stage.session();
    let outcome = session.python(HONEST);
    assert_eq!(outcome.stdout, "done\n", "{outcome:?}");
    for script in [
        "diff <(seq 3) <(seq 3)",
        "seq 100000 | sort -rn | head -1 | grep 100000",
        "mkfifo p; (echo x > p &) ; cat p",
        "coproc cat; echo x >&${COPROC[1]}; read -r y <&${COPROC[0]}; test $y = x",
        "printf '#!/bin/sh\\necho ran' > run; chmod +x run; ./run; /workspace/run",
        "cp /bin/true t; ./t",
        "ps aux | grep -q ps",
        "trap 'exit 0' TERM; kill -TERM $$; exit 1",
        "sleep 0.01 & wait $!",
        "getent hosts localhost; getent passwd $(id -u)",
        "git init -q g; cd g; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git clone -q . ../h",
        "tar c g | tar x -C /tmp; rm -r /tmp/g",
        "ulimit -n; nproc; df . >/dev/null; uname -a >/dev/null; date >/dev/null; id >/dev/null; tty || true",
        "perl -e 'system(\"true\") == 0 or die'",
        "timeout 5 true; nice true; setsid true; nohup true; stdbuf -o0 true; env true; xargs true </dev/null",
        "test -r /etc/passwd; test -r /etc/ssl/certs; test -x /usr/bin/env; test -w /tmp; test -w ~",
    ] {
        session.ok(&format!("set -e; {script}"));
    }
}

fn server_of_another_command(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let server = session
            .start(
                "python3 -c \"
import socket, threading
def serve(s):
    s.listen()
    while True: s.accept()[0].sendall(b'served\\n')
t = socket.socket(); t.bind(('127.0.0.1', 0))
w, p = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX); w.bind('/workspace/server'); p.bind('/tmp/server')
for s in (w, p): threading.Thread(target=serve, args=(s,)).start()
print(t.getsockname()[1], flush=True); serve(t)\"",
            )
            .await;
        server.keep(false);
        let port = read_until(&server, "\n").await;
        let client = session
            .start(&format!(
                "exec 3<>/dev/tcp/127.0.0.1/{}; cat <&3; python3 -c \"
import socket
for path in ('/workspace/server', '/tmp/server'):
    s = socket.socket(socket.AF_UNIX); s.connect(path); print(s.recv(99).decode(), end='')\"",
                port.trim()
            ))
            .await;
        let outcome = crate::stage::finish(&client).await;
        assert_eq!(outcome.text, "served\n".repeat(3), "{outcome:?}");
        server.kill();
    });
}

fn server_of_the_host(stage: &Stage) {
    let four = TcpListener::bind("127.0.0.1:0").unwrap();
    let six = TcpListener::bind("[::1]:0").ok();
    let any = TcpListener::bind("0.0.0.0:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let mut attacks = vec![
        format!("exec 3<>/dev/tcp/127.0.0.1/{}", port(&four)),
        format!("exec 3<>/dev/tcp/127.1.2.3/{}", port(&any)),
        format!("exec 3<>/dev/tcp/localhost/{}", port(&four)),
        format!("exec 3<>/dev/tcp/0.0.0.0/{}", port(&any)),
        format!("exec 3<>/dev/tcp/::ffff:127.0.0.1/{}", port(&four)),
        format!("exec 3<>/dev/tcp/$(hostname -i)/{}", port(&any)),
        format!("curl -sS -m 5 http://127.0.0.1:{}", port(&four)),
    ];
    if let Some(six) = &six {
        attacks.push(format!("exec 3<>/dev/tcp/::1/{}", port(six)));
    }
    let session = stage.session();
    session.all_refused(&attacks);
    let outcome = session.run(&format!(
        "echo evil > /dev/udp/127.0.0.1/{}; grep -c . /proc/net/tcp /proc/net/tcp6",
        datagrams.local_addr().unwrap().port()
    ));
    // Only the heads of the tables: the host's sockets are not in there.
    assert!(outcome.stdout.contains("/proc/net/tcp:1"), "{outcome:?}");
    for listener in [Some(&four), six.as_ref(), Some(&any)]
        .into_iter()
        .flatten()
    {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    }
    datagrams.set_nonblocking(true).unwrap();
    assert!(datagrams.recv(&mut [0; 8]).is_err());
}
