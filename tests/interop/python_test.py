"""Python's two Varlink libraries: both read the interface from the daemon or declare it themselves, and call it."""
import asyncio
import base64
import os
import platform
import sys
import typing

import bpf
import foreign
from harness import DaemonTest, object_bytes, object_path


class Asyncvarlink(DaemonTest):
    """python3-asyncvarlink, which passes descriptors."""

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, foreign.fetch("asyncvarlink"))
        super().setUpClass()

    def run_with_client(self, work):
        import asyncvarlink

        async def main():
            transport, protocol = await asyncvarlink.connect_unix_varlink(
                asyncvarlink.VarlinkClientProtocol, self.daemon.socket_path)
            try:
                return await work(asyncvarlink, protocol)
            finally:
                transport.close()
                await asyncio.sleep(0)
        return asyncio.run(main())

    @staticmethod
    async def call(library, protocol, method, parameters, descriptors=None):
        """The reply's parameters; and duplicates of its descriptors, which the library closes."""
        done = asyncio.get_running_loop().create_future()
        reply, received = await protocol.call(library.VarlinkMethodCall(method, parameters), descriptors, done)
        copies = [os.dup(d.fileno()) for d in received or ()]
        done.set_result(None)
        if reply.error is not None:
            raise RuntimeError(reply.error, reply.parameters)
        return reply.parameters, copies

    def test_describes_the_kernel(self):
        parameters, _ = self.run_with_client(lambda library, protocol: self.call(
            library, protocol, "io.btfd.DescribeKernel", {}))
        self.assertEqual(parameters["release"], platform.release())

    def test_loads_by_descriptor_and_gets_descriptors(self):
        async def work(library, protocol):
            with open(object_path("tp_btf"), "rb") as f:
                return await self.call(library, protocol, "io.btfd.Load", {
                    "objectFileDescriptor": 0, "wantDescriptors": True}, [f.fileno()])
        parameters, descriptors = self.run_with_client(work)
        for descriptor in descriptors:
            self.addCleanup(os.close, descriptor)
        found = parameters["object"]["maps"][0]
        self.assertEqual(bpf.map_info(descriptors[found["fileDescriptor"]])["id"], found["kernelId"])

    def test_with_a_declared_interface(self):
        """Types and descriptors converted by the library, which refuses what does not fit the declaration."""
        import asyncvarlink

        class Descriptor(typing.TypedDict):
            kind: typing.Literal["program", "map", "link"]
            name: str
            fileDescriptor: asyncvarlink.FileDescriptor

        class Interface(asyncvarlink.VarlinkInterface, name="io.btfd"):
            # What the test uses of it. Only the types matter to a client.
            @asyncvarlink.varlinkmethod(return_parameter="descriptors")
            def GetDescriptors(self, *, objectId: int, maps: list[str] | None = None) -> list[Descriptor]:
                raise NotImplementedError

            @asyncvarlink.varlinkmethod
            def Unload(self, *, objectId: int) -> None:
                raise NotImplementedError

        loaded = self.load("tp_btf")["object"]

        async def work(library, protocol):
            proxy = protocol.make_proxy(Interface)
            with await proxy.GetDescriptors(objectId=loaded["id"], maps=["counter"]) as reply:
                entry, = reply["descriptors"]
                number = bpf.map_info(entry["fileDescriptor"].fileno())["id"]
            await proxy.Unload(objectId=loaded["id"])
            with self.assertRaises(library.VarlinkErrorReply) as raised:
                await proxy.Unload(objectId=loaded["id"])
            return number, raised.exception
        number, error = self.run_with_client(work)
        self.assertEqual(number, loaded["maps"][0]["kernelId"])
        self.assertEqual((error.name, error.parameters["objectId"]), ("io.btfd.NoSuchObject", loaded["id"]))

    def test_monitors(self):
        async def work(library, protocol):
            events = protocol.call_more(library.VarlinkMethodCall("io.btfd.Monitor", {}, more=True))
            first, _ = await anext(events)
            loaded = self.load("tp_btf")["object"]
            second, _ = await anext(events)
            await events.aclose()
            return first.parameters["event"], second.parameters["event"], loaded
        first, second, loaded = self.run_with_client(work)
        self.assertEqual(first["kind"], "subscribed")
        self.assertEqual((second["kind"], second["objectId"]), ("loaded", loaded["id"]))

    def test_pipelines(self):
        async def work(library, protocol):
            async def load(i):
                with open(object_path("no_btf_needed"), "rb") as f:
                    return await self.call(library, protocol, "io.btfd.Load", {"objectFileDescriptor": 0, "name": str(i)},
                                           [f.fileno()])
            return await asyncio.gather(*(load(i) for i in range(30)))
        replies = self.run_with_client(work)
        self.assertEqual([parameters["object"]["name"] for parameters, _ in replies], [str(i) for i in range(30)])


class Varlink(DaemonTest):
    """python3-varlink, which builds its methods from the interface that the daemon describes, and checks replies with it."""

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, foreign.fetch("varlink"))
        super().setUpClass()
        import varlink
        cls.library = varlink

    def setUp(self):
        super().setUp()
        client = self.library.Client("unix:" + self.daemon.socket_path)
        self.addCleanup(client.cleanup)
        self.btfd = client.open("io.btfd")
        self.addCleanup(self.btfd.close)
        self.interfaces = client.get_interfaces

    def test_parses_all_interfaces(self):
        self.assertTrue({"io.btfd", "org.varlink.service", "io.systemd.service"} <= set(self.interfaces()))

    def test_loads_inline_and_lists(self):
        text = base64.b64encode(object_bytes("tp_btf")).decode()
        loaded = self.btfd.Load(object=text, name="from python", programs={"on_exec": {"attach": [{}]}})["object"]
        self.assertEqual((loaded["name"], loaded["links"][0]["kind"]), ("from python", "tp_btf"))
        listed = self.btfd.List()["objects"]
        self.assertEqual([o["id"] for o in listed], [loaded["id"]])
        self.btfd.Unload(loaded["id"])
        self.assertEqual(self.btfd.List()["objects"], [])

    def test_describes_the_kernel(self):
        self.assertEqual(self.btfd.DescribeKernel()["release"], platform.release())

    def test_errors(self):
        with self.assertRaises(self.library.VarlinkError) as raised:
            self.btfd.Unload(4711)
        self.assertEqual(raised.exception.error(), "io.btfd.NoSuchObject")
        self.assertEqual(raised.exception.parameters()["objectId"], 4711)

    def test_monitors(self):
        events = self.btfd.Monitor(_more=True)
        self.assertEqual(next(events)["event"]["kind"], "subscribed")
        loaded = self.load("tp_btf")["object"]
        event = next(events)["event"]
        self.assertEqual((event["kind"], event["objectId"]), ("loaded", loaded["id"]))
