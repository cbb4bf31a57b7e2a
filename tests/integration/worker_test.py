"""Workers that die or hang take their own request with them, and nothing else."""
import os
import signal
import time

import bpf
from btfd_client import VarlinkError
from harness import SLOW, Bystander, DaemonTest, eventually, object_path


class Workers(DaemonTest):
    config = {"workers": {"count": 3}}

    def start_slow_load(self, **parameters):
        """A client that waits for a load that takes long, and the worker that is at it."""
        client = self.connect()
        with open(object_path("slow_verify_many"), "rb") as f:
            client.send("io.btfd.Load", {"objectFileDescriptor": 0, **parameters}, [f])
        return client, self.daemon.busy_worker()

    def pool_recovers(self):
        """As many workers as before, none of them stopped, and each takes loads."""
        eventually(lambda: len(self.daemon.workers()) == 3, lambda: "there are %d workers" % len(self.daemon.workers()))
        for _ in range(9):
            self.client.call("io.btfd.Unload", {"objectId": self.load("exec_events")["object"]["id"]})

    def check_loss(self, signal_number):
        events = self.connect().stream("io.btfd.Monitor")
        next(events)
        # No Bystander where the busy worker is looked for: it must be the one with the slow load.
        client, worker = self.start_slow_load(name="lost")
        with Bystander(self.daemon) as others:
            time.sleep(0.2)
            os.kill(worker, signal_number)
            with self.refused("WorkerLost", signal=int(signal_number)):
                client.receive()
            time.sleep(0.2)
        self.assertGreater(others.rounds, 3)
        while True:
            event = next(events)["event"]
            if event["kind"] == "workerLost":
                break
        self.daemon.assert_idle()
        client.call("io.btfd.List")  # its connection stays
        self.load("tp_btf", client)
        self.pool_recovers()

    def test_killed(self):
        self.check_loss(signal.SIGKILL)

    def test_crashed(self):
        self.check_loss(signal.SIGSEGV)

    def test_aborted(self):
        self.check_loss(signal.SIGABRT)

    def test_stopped_until_the_deadline(self):
        deadline = int(1500 * SLOW)
        begin = time.monotonic()
        client, worker = self.start_slow_load(deadlineMs=deadline)
        os.kill(worker, signal.SIGSTOP)
        with Bystander(self.daemon):
            with self.refused("DeadlineExceeded", deadlineMs=deadline):
                client.receive()
        self.assertTrue(deadline / 1000 <= time.monotonic() - begin + 0.05 < deadline / 1000 + 3 * SLOW)
        self.daemon.assert_idle()
        self.assertNotIn(worker, self.daemon.workers())
        self.pool_recovers()

    def test_too_slow_for_the_deadline(self):
        with Bystander(self.daemon):
            with self.refused("DeadlineExceeded", deadlineMs=300):
                self.load("slow_verify_many", deadlineMs=300)
        self.pool_recovers()

    def test_idle_ones_that_die(self):
        eventually(lambda: len(self.daemon.workers()) == 3, "there are not 3 workers")
        killed = self.daemon.workers()
        for worker in killed:
            os.kill(worker, signal.SIGKILL)
        # One that gets a job while it is dying is lost with it, rightly: nobody can tell whether it began. A process that the
        # daemon has reaped is one that it gives no job to.
        eventually(lambda: not any(os.path.exists("/proc/%d" % worker) for worker in killed), "the killed workers are still there")
        for _ in range(6):
            try:
                self.load("tp_btf")
            except VarlinkError as e:
                self.fail("a load failed for the death of an idle worker: %s" % e)
        self.pool_recovers()

    def test_stopped_idle_one_does_not_hold_up_others(self):
        """Only the request that it got fails, at its deadline."""
        eventually(lambda: len(self.daemon.workers()) == 3, "there are not 3 workers")
        worker = self.daemon.workers()[0]
        os.kill(worker, signal.SIGSTOP)
        outcomes = []
        clients = [self.connect() for _ in range(6)]
        for client in clients:
            with open(object_path("no_btf_needed"), "rb") as f:
                client.send("io.btfd.Load", {"objectFileDescriptor": 0, "deadlineMs": int(1500 * SLOW)}, [f])
        for client in clients:
            try:
                client.receive()
                outcomes.append("loaded")
            except VarlinkError as e:
                outcomes.append(e.name)
        self.assertLessEqual(outcomes.count("io.btfd.DeadlineExceeded"), 1, outcomes)
        self.assertEqual(outcomes.count("loaded") + outcomes.count("io.btfd.DeadlineExceeded"), 6, outcomes)
        if worker in self.daemon.workers():
            os.kill(worker, signal.SIGCONT)
        self.pool_recovers()

    def test_lost_during_an_attachment(self):
        """What was loaded before stays."""
        loaded = self.load("tp_btf")["object"]
        for worker in self.daemon.workers():
            os.kill(worker, signal.SIGSTOP)
        self.client.send("io.btfd.Attach", {"objectId": loaded["id"], "program": "on_exec", "deadlineMs": 1000})
        with self.refused("DeadlineExceeded", deadlineMs=1000):
            self.client.receive()
        for worker in self.daemon.workers():
            os.kill(worker, signal.SIGCONT)
        self.assertEqual(self.client.call("io.btfd.Describe", {"objectId": loaded["id"]})["object"], loaded)
        self.assertIn(loaded["programs"][0]["kernelId"], bpf.ids("program"))
        self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "on_exec"})

    def test_again_and_again(self):
        """Events of the descriptors of one that is gone must not be taken for those of the next client."""
        for _ in range(20):
            client, worker = self.start_slow_load()
            os.kill(worker, signal.SIGKILL)
            with self.refused("WorkerLost"):
                client.receive()
            client.close()
        self.pool_recovers()


class Queue(DaemonTest):
    """One worker is kept, and up to four are there while requests wait."""
    config = {"workers": {"count": 1}, "limits": {"queuedRequests": 2}}
    most = 4

    def occupy_all(self):
        """As many slow loads as there can be workers."""
        slow = [self.connect() for _ in range(self.most)]
        busy = []
        for client in slow:
            with open(object_path("slow_verify_many"), "rb") as f:
                client.send("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
            busy.append(self.daemon.busy_worker(busy))
        return slow

    def test_is_bounded(self):
        slow = self.occupy_all()
        waiting = [self.connect() for _ in range(2)]
        for client in waiting:
            with open(object_path("tp_btf"), "rb") as f:
                client.send("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
        time.sleep(0.2)
        begin = time.monotonic()
        with self.refused("Busy", waiting=2):
            self.load("tp_btf")
        self.client.call("io.btfd.List")  # what needs no worker does not wait
        self.assertLess(time.monotonic() - begin, 1 * SLOW)
        self.assertEqual(len(self.daemon.workers()), self.most)
        for client in slow:
            client.close()  # nobody waits for the result: the worker is free
        for client in waiting:
            client.receive()
        self.load("tp_btf")
        eventually(lambda: len(self.daemon.workers()) == 1, "the pool does not shrink again")

    def test_deadline_counts_the_waiting(self):
        """A request whose time is over before a worker is free for it does not wait on."""
        slow = self.occupy_all()
        begin = time.monotonic()
        with self.refused("DeadlineExceeded", deadlineMs=200):
            self.load("tp_btf", deadlineMs=200)
        self.assertLess(time.monotonic() - begin, 2 * SLOW)
        for client in slow:
            client.close()

    def test_users_take_turns(self):
        """One connection that keeps all workers busy does not keep another's request from being done soon."""
        slow = self.connect()
        for _ in range(2):
            with open(object_path("slow_verify_many"), "rb") as f:
                slow.send("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
        self.daemon.busy_worker()
        begin = time.monotonic()
        self.load("tp_btf")
        self.assertLess(time.monotonic() - begin, 1 * SLOW)
        slow.close()
