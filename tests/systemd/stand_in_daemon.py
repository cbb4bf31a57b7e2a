#!/usr/bin/python3
"""Does in btfd's place what btfd.service must allow: systemd's protocols, a little Varlink, and a probe of each thing
that a loader of eBPF needs from the kernel. So a test of the unit says which setting breaks what, whatever the daemon
does.

Methods: org.varlink.service.GetInfo; io.btfd.test.Probe gives {"probes": {name: "ok" or what failed}};
io.btfd.test.Keep(names) gives a BPF map for each to systemd's store; Kept gives {"names": [...]} of those that came
back.
"""

import array
import ctypes
import fcntl
import json
import mmap
import os
import platform
import select
import signal
import socket
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
SYS_BPF, SYS_PERF_EVENT_OPEN = {"x86_64": (321, 298), "aarch64": (280, 241)}[platform.machine()]
MAP_CREATE, PROG_LOAD, OBJ_PIN, OBJ_GET, PROG_GET_NEXT_ID, PROG_GET_FD_BY_ID = 0, 5, 6, 7, 11, 13
RAW_TRACEPOINT_OPEN, BTF_GET_FD_BY_ID, BTF_GET_NEXT_ID, LINK_CREATE = 17, 19, 23, 28
TYPE_RAW_TRACEPOINT, TYPE_XDP, ATTACH_XDP, XDP_FLAGS_SKB_MODE = 17, 6, 37, 2
BPFFS = "/sys/fs/bpf/btfd"
STATE = "/var/lib/btfd"


def syscall(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def bpf(command, attributes):
    """bpf(2); returns its result and the attributes as the kernel left them."""
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result = syscall(SYS_BPF, ctypes.c_int(command), buffer, ctypes.c_uint(128))
    return result, buffer.raw


def address(buffer):
    return ctypes.cast(buffer, ctypes.c_void_p).value


def create_map():
    return bpf(MAP_CREATE, struct.pack("IIII", 2, 4, 8, 1))[0]


def load_program(kind):
    code = ctypes.create_string_buffer(struct.pack("<BBhi", 0xB7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    return bpf(PROG_LOAD, struct.pack("IIQQ", kind, 2, address(code), address(licence)))[0]


def pin():
    descriptor = create_map()
    path = ctypes.create_string_buffer(f"{BPFFS}/probe".encode())
    bpf(OBJ_PIN, struct.pack("QI", address(path), descriptor))
    try:
        os.close(bpf(OBJ_GET, struct.pack("QI", address(path), 0))[0])
    finally:
        os.unlink(f"{BPFFS}/probe")
        os.close(descriptor)


def by_id(next_command, get_command):
    _, attributes = bpf(next_command, struct.pack("I", 0))
    identifier = struct.unpack_from("I", attributes, 4)[0]
    os.close(bpf(get_command, struct.pack("I", identifier))[0])


def attach_raw_tracepoint():
    program = load_program(TYPE_RAW_TRACEPOINT)
    name = ctypes.create_string_buffer(b"sched_process_exit")
    os.close(bpf(RAW_TRACEPOINT_OPEN, struct.pack("QI", address(name), program))[0])
    os.close(program)


def attach_xdp():
    program = load_program(TYPE_XDP)
    loopback = socket.if_nametoindex("lo")
    os.close(bpf(LINK_CREATE, struct.pack("IIII", program, loopback, ATTACH_XDP, XDP_FLAGS_SKB_MODE))[0])
    os.close(program)


def perf_event():
    # PERF_TYPE_SOFTWARE, size, PERF_COUNT_SW_CPU_CLOCK; all processes on CPU 0: perf_event_paranoid
    attributes = ctypes.create_string_buffer(struct.pack("IIQ", 1, 64, 0), 64)
    os.close(
        syscall(SYS_PERF_EVENT_OPEN, attributes, ctypes.c_int(-1), ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_ulong(0))
    )


def kernel_addresses():
    with open("/proc/kallsyms") as symbols:
        if all(int(next(symbols).split()[0], 16) == 0 for _ in range(100)):
            raise OSError("all addresses are zero")


def kernel_btf():
    with open("/sys/kernel/btf/vmlinux", "rb") as btf:
        if len(btf.read(4096)) != 4096:
            raise OSError("is short")


def tracepoint_id():
    for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        if os.path.exists(f"{root}/events/sched/sched_switch/id"):
            return int(open(f"{root}/events/sched/sched_switch/id").read())
    raise OSError("no sched_switch in tracefs, or not to be seen")


def netlink():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as route:
        route.bind((0, 0))


def write_state():
    with open(f"{STATE}/probe", "w") as file:
        file.write("x")
    os.unlink(f"{STATE}/probe")


def worker():
    """A child that gets a socketpair, makes a map, and sends it to its parent."""
    parent, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            socket.send_fds(child, [b"x"], [create_map()])
        finally:
            os._exit(0)
    child.close()
    watch = os.pidfd_open(pid)
    _, descriptors, _, _ = socket.recv_fds(parent, 16, 1)
    os.waitpid(pid, 0)
    for descriptor in (*descriptors, watch):
        os.close(descriptor)
    if len(descriptors) != 1:
        raise OSError("the worker's map did not arrive")


def sealed_memfd():
    descriptor = os.memfd_create("probe", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(descriptor, b"x")
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    mmap.mmap(descriptor, 1, mmap.MAP_PRIVATE, mmap.PROT_READ).close()
    os.close(descriptor)


def is_refused(what):
    try:
        what()
    except OSError:
        return
    raise OSError("was allowed, and must not be")


def write_elsewhere():
    for path in ("/etc/btfd-probe", "/run/btfd-probe", "/tmp/btfd-probe", "/sys/fs/bpf/probe"):
        is_refused(lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)))
    is_refused(lambda: open("/proc/sys/kernel/hostname", "w").write("x"))


def internet():
    is_refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close())


PROBES = {
    "map-create": lambda: os.close(create_map()),
    "program-load-tracing": lambda: os.close(load_program(TYPE_RAW_TRACEPOINT)),
    "program-load-xdp": lambda: os.close(load_program(TYPE_XDP)),
    "attach-raw-tracepoint": attach_raw_tracepoint,
    "attach-xdp": attach_xdp,
    "pin": pin,
    "program-by-id": lambda: by_id(PROG_GET_NEXT_ID, PROG_GET_FD_BY_ID),
    "btf-by-id": lambda: by_id(BTF_GET_NEXT_ID, BTF_GET_FD_BY_ID),
    "perf-event": perf_event,
    "kernel-addresses": kernel_addresses,
    "kernel-btf": kernel_btf,
    "tracepoint-id": tracepoint_id,
    "netlink": netlink,
    "state-directory": write_state,
    "worker": worker,
    "sealed-memfd": sealed_memfd,
    "cannot-write-elsewhere": write_elsewhere,
    "cannot-use-internet": internet,
}


def probe():
    results = {}
    held = None  # so that there is a program to look up by its id
    try:
        held = load_program(TYPE_RAW_TRACEPOINT)
    except OSError:
        pass  # the probe of just this says so
    for name, function in PROBES.items():
        try:
            function()
            results[name] = "ok"
        except Exception as error:  # whatever it is, the report is what the test is for
            results[name] = f"{type(error).__name__}: {error}"
    if held is not None:
        os.close(held)
    return results


def notify(text, descriptors=()):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        sender.sendmsg([text.encode()], ancillary, 0, os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))


class Daemon:
    def __init__(self):
        names = os.environ.get("LISTEN_FDNAMES", "").split(":")
        received = {3 + i: name for i, name in enumerate(names[: int(os.environ.get("LISTEN_FDS", "0"))])}
        self.listener = socket.socket(fileno=next(fd for fd, name in received.items() if name == "varlink"))
        self.kept = {fd: name for fd, name in received.items() if name != "varlink"}
        self.interval = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6 / 4
        signal.signal(signal.SIGHUP, lambda *_: self.reload())
        signal.signal(signal.SIGTERM, lambda *_: self.stop())

    def reload(self):
        notify(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
        notify("READY=1\nSTATUS=Reloaded")

    def stop(self):
        notify("STOPPING=1")
        sys.exit(0)

    def call(self, method, parameters):
        if method == "org.varlink.service.GetInfo":
            return {
                "vendor": "btfd",
                "product": "stand-in",
                "version": "0",
                "url": "",
                "interfaces": ["org.varlink.service"],
            }
        if method == "io.btfd.test.Probe":
            return {"probes": probe()}
        if method == "io.btfd.test.Keep":
            for name in parameters["names"]:
                descriptor = create_map()
                # Without FDPOLL=0 systemd polls it, finds that a map can't be polled, and drops it.
                notify(f"FDSTORE=1\nFDNAME={name}\nFDPOLL=0", [descriptor])
                os.close(descriptor)
            return {}
        if method == "io.btfd.test.Kept":
            return {"names": list(self.kept.values())}
        return None

    def answer(self, connection):
        with connection:
            request = b""
            while not request.endswith(b"\0"):
                more = connection.recv(65536)
                if not more:
                    return
                request += more
            call = json.loads(request[:-1])
            result = self.call(call["method"], call.get("parameters"))
            reply = {"error": "org.varlink.service.MethodNotFound"} if result is None else {"parameters": result}
            connection.sendall(json.dumps(reply).encode() + b"\0")

    def run(self):
        notify("READY=1\nSTATUS=Stand-in")
        while True:
            readable, _, _ = select.select([self.listener], [], [], self.interval or None)
            notify("WATCHDOG=1")
            if readable:
                self.answer(self.listener.accept()[0])


if __name__ == "__main__":
    Daemon().run()
