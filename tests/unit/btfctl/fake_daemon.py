"""A Varlink server that gives scripted answers, so that a client can be tested without btfd, its kernel and privileges."""

import array
import fcntl
import json
import os
import socket
import threading
from dataclasses import dataclass, field

F_GET_SEALS = 1034  # <linux/fcntl.h>; Python 3.11 does not name it


@dataclass
class Call:
    """A call as it arrived. `files` holds, for each descriptor, its content and its seals (None if it cannot have any)."""

    method: str
    parameters: dict
    more: bool
    files: list = field(default_factory=list)


class Close(Exception):
    """Raised by a script: closes the connection instead of answering."""


def reply(**parameters):
    return [{"parameters": parameters}]


def error(name, /, **parameters):
    return [{"error": name, "parameters": parameters}]


class FakeDaemon:
    """Listens at `path`. `script` maps a method's name, without io.btfd, to a list of answers: each call takes the next,
    the last one stays. An answer is a list of messages, a function from Call to one, or Close."""

    def __init__(self, path, script):
        self.calls = []
        self.connection_ended = threading.Event()
        self._script = {method: list(answers) for method, answers in script.items()}
        self._connections = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # shutdown() wakes accept(), which close() does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()

    def methods(self):
        return [call.method for call in self.calls]

    def hang_up(self):
        """Closes all connections, as a daemon that dies."""
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the client was faster

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        received, descriptors = b"", []
        with connection:
            try:
                while True:
                    data, ancillary, _, _ = connection.recvmsg(65536, socket.CMSG_SPACE(4 * 16))
                    for _, _, payload in ancillary:
                        descriptors.extend(array.array("i", payload))
                    if not data:
                        break
                    received += data
                    while b"\0" in received:
                        message, received = received.split(b"\0", 1)
                        self._answer(connection, json.loads(message), descriptors)
                        descriptors = []
            except (Close, ConnectionError):
                pass
        self.connection_ended.set()

    def _answer(self, connection, message, descriptors):
        interface, _, method = message["method"].rpartition(".")
        files = [self._take_file(descriptor) for descriptor in descriptors]
        call = Call(method, message.get("parameters") or {}, message.get("more", False), files)
        self.calls.append(call)
        answers = self._script.get(method, [])
        if interface != "io.btfd" or not answers:
            answer = error("org.varlink.service.MethodNotFound", method=message["method"])
        else:
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer is Close:
            raise Close
        for part in answer(call) if callable(answer) else answer:
            connection.sendall(json.dumps(part).encode() + b"\0")

    @staticmethod
    def _take_file(descriptor):
        try:
            seals = fcntl.fcntl(descriptor, F_GET_SEALS)
        except OSError:
            seals = None
        content = os.pread(descriptor, 1 << 20, 0)
        os.close(descriptor)
        return content, seals
