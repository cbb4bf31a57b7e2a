#!/usr/bin/env python3
"""Stands in for btfd where the tests' own harness and client are tested. It speaks just enough Varlink to be taken for a
daemon, and misbehaves as the environment variable STAND_IN says (see harness_test.py)."""
import argparse
import array
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bpf  # noqa: E402

FAULTS = set(filter(None, os.environ.get("STAND_IN", "").split(",")))


def reply(connection, message, descriptors=()):
    data = json.dumps(message).encode() + b"\0"
    if descriptors:
        numbers = array.array("i", descriptors)
        sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
        data = data[sent:]
    connection.sendall(data)


def pipes(count, first):
    """Descriptors to read numbers from, first and following."""
    out = []
    for number in range(first, first + count):
        reader, writer = os.pipe()
        os.write(writer, b"%d" % number)
        os.close(writer)
        out.append(reader)
    return out


def serve(connection):
    buffer = b""
    while True:
        while b"\0" not in buffer:
            data, control, _, _ = connection.recvmsg(65536, 4096)
            for _, _, content in control:
                for (number,) in struct.iter_unpack("=i", content):
                    os.close(number)
            if not data:
                return
            buffer += data
        text, _, buffer = buffer.partition(b"\0")
        call = json.loads(text)
        if call["method"] == "test.Pipes":
            # All replies in as few sends as possible, so that messages with and without descriptors are adjacent.
            for i, count in enumerate(call["parameters"]["counts"]):
                descriptors = pipes(count, 100 * i)
                reply(connection, {"parameters": {"count": count}, "continues": True}, descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
            reply(connection, {"parameters": {"count": 0}})
        elif call["method"] == "test.Fail":
            reply(connection, {"error": "test.Failed", "parameters": {"why": "asked to"}})
        elif call["method"] == "test.HalfAReply":
            connection.sendall(b'{"parameters":')
            connection.close()
            return
        else:
            reply(connection, {"parameters": {"method": call["method"]}})


def main():
    parser = argparse.ArgumentParser()
    for option in ("config", "socket", "state-dir", "bpffs"):
        parser.add_argument("--" + option, required=True)
    options = parser.parse_args()
    if "dies-at-start" in FAULTS:
        sys.exit("the stand-in does not feel like it")
    kept = bpf.map_create(bpf.MAP_TYPE_ARRAY, 4, 8, 1)  # as a load would; it ends with the process
    if "keeps-pin" in FAULTS:
        path = os.path.join(options.bpffs, "kept").encode() + b"\0"
        import ctypes
        buffer = ctypes.create_string_buffer(path)
        bpf.bpf(6, struct.pack("=QII", ctypes.addressof(buffer), kept, 0))  # BPF_OBJ_PIN
    if "keeps-child" in FAULTS:
        subprocess.Popen(["sleep", "300"], start_new_session=True)
    if "sanitizer-report" in FAULTS:
        print("==1==ERROR: AddressSanitizer: heap-use-after-free", flush=True)

    def stop(*_):
        if "ignores-sigterm" in FAULTS:
            return
        if "keeps-socket" not in FAULTS:
            os.unlink(options.socket)
        os._exit(3 if "bad-status" in FAULTS else 0)

    signal.signal(signal.SIGTERM, stop)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(options.socket)
    listener.listen(16)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
