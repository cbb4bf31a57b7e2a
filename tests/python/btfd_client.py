"""A Varlink client for the tests, written from the specification (varlink.org) and nothing else.

It shares no code with the project's own client, so that a misunderstanding there shows here. Only the standard library
is used. Descriptors travel as systemd has them: SCM_RIGHTS on the sendmsg that carries the first byte of a message;
a reply's fields named ...FileDescriptor are indices into the descriptors of that reply.
"""
import array
import json
import os
import socket
import time


class VarlinkError(Exception):
    """An error reply: its qualified name and its parameters."""

    def __init__(self, name, parameters):
        super().__init__("%s %s" % (name, json.dumps(parameters)[:2000]))
        self.name = name
        self.parameters = parameters


class ConnectionLost(Exception):
    """The service closed the connection where a reply was due."""


class Descriptor:
    """A file descriptor that came with a reply; closed with its last reference."""

    def __init__(self, number):
        self.number = number

    def fileno(self):
        return self.number

    def close(self):
        number, self.number = self.number, -1
        if number >= 0:
            os.close(number)

    def __del__(self):
        self.close()


class Reply(dict):
    """The parameters of a reply; beside them `continues` and the descriptors that came along."""

    def __init__(self, parameters, continues, descriptors):
        super().__init__(parameters)
        self.continues = continues
        self.descriptors = descriptors


class Client:
    def __init__(self, path, timeout=60):
        self.timeout = timeout
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    # ---- Sending -----------------------------------------------------------------------------------------------------

    def send_raw(self, data, descriptors=()):
        """Sends bytes as they are, with descriptors on the first of them."""
        if descriptors:
            numbers = array.array("i", [d if isinstance(d, int) else d.fileno() for d in descriptors])
            sent = self.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
            data = memoryview(data)[sent:]
        self.socket.sendall(data)

    def send(self, method, parameters=None, descriptors=(), **flags):
        """Sends a call without waiting for its reply. Flags: more, oneway, upgrade."""
        message = {"method": method, **flags}
        if parameters is not None:
            message["parameters"] = parameters
        self.send_raw(json.dumps(message).encode() + b"\0", descriptors)

    # ---- Receiving ---------------------------------------------------------------------------------------------------

    def receive_raw(self, timeout=None):
        """The next message without its NUL, and its descriptors. None at the end of the connection."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        text, descriptors = bytearray(), []
        try:
            while True:
                # Never beyond this message's NUL: one recvmsg over two messages would not say whose the descriptors are.
                seen = self._before(deadline, lambda: self.socket.recv(1 << 16, socket.MSG_PEEK))
                end = seen.find(b"\0")
                count = len(seen) if end < 0 else end + 1
                if count == 0:
                    if text:
                        raise ConnectionLost("the service closed the connection inside a message: %r" % bytes(text[:200]))
                    return None
                while count > 0:
                    data, control, flags, _ = self._before(
                        deadline, lambda: self.socket.recvmsg(count, socket.CMSG_SPACE(253 * 4), socket.MSG_CMSG_CLOEXEC))
                    for level, kind, content in control:
                        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                            numbers = array.array("i")
                            numbers.frombytes(content[:len(content) - len(content) % numbers.itemsize])
                            descriptors += [Descriptor(number) for number in numbers]
                    if flags & socket.MSG_CTRUNC:
                        raise AssertionError("descriptors of a reply were lost (MSG_CTRUNC)")
                    text += data
                    count -= len(data)
                if end >= 0:
                    return bytes(text[:-1]), descriptors
        finally:
            self.socket.settimeout(self.timeout)

    def _before(self, deadline, operation):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no reply in time")
        self.socket.settimeout(left)
        try:
            return operation()
        except ConnectionResetError as e:
            raise ConnectionLost(str(e)) from e

    def receive(self, timeout=None):
        """The next reply; VarlinkError if it is an error, ConnectionLost if there is none."""
        received = self.receive_raw(timeout)
        if received is None:
            raise ConnectionLost("the service closed the connection")
        text, descriptors = received
        message = json.loads(text.decode("utf-8"))
        if not isinstance(message, dict) or not set(message) <= {"parameters", "continues", "error"}:
            raise AssertionError("no Varlink reply: %r" % text[:500])
        parameters = message.get("parameters") or {}
        if "error" in message:
            if message.get("continues"):
                raise AssertionError("an error reply that continues: %r" % text[:500])
            raise VarlinkError(message["error"], parameters)
        return Reply(parameters, message.get("continues", False), descriptors)

    def at_end(self, timeout=None):
        """Whether the service closed the connection, without another message, within the timeout."""
        try:
            return self.receive_raw(timeout) is None
        except ConnectionLost:
            return True
        except TimeoutError:
            return False

    # ---- Calls -------------------------------------------------------------------------------------------------------

    def call(self, method, parameters=None, descriptors=(), timeout=None):
        self.send(method, parameters, descriptors)
        reply = self.receive(timeout)
        if reply.continues:
            raise AssertionError("%s continues, though it was not called with more" % method)
        return reply

    def stream(self, method, parameters=None, descriptors=()):
        """Calls with `more`, and yields replies to the last."""
        self.send(method, parameters, descriptors, more=True)
        while True:
            reply = self.receive()
            yield reply
            if not reply.continues:
                return
