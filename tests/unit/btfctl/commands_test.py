#!/usr/bin/env python3
"""Runs btfctl against a scripted daemon: what each command asks, what it prints and its exit status.

    commands_test.py BTFCTL [TEST...]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from fake_daemon import Close, FakeDaemon, error, reply

BTFCTL = ""
SEALED = 0x0F  # F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE

LINK = {"id": 12, "program": "on_exec", "kind": "tp_btf", "target": "sched_process_exec", "kernelId": 88}
OBJECT = {
    "id": 7,
    "name": "execsnoop",
    "labels": {"team": "net"},
    "ownerUid": 0,
    "lifetime": "session",
    "digest": "ab" * 32,
    "loadedAtUSec": 1_700_000_000_000_000,
    "loadDurationUSec": 5800,
    "programs": [
        {"name": "on_exec", "section": "tp_btf/sched_process_exec", "type": "tracing", "kernelId": 41, "tag": "0123456789abcdef"},
        {"name": "on_exit", "section": "tp_btf/sched_process_exit", "type": "tracing", "kernelId": 42, "tag": "fedcba9876543210"},
    ],
    "maps": [{"name": "events", "type": "ringbuf", "kernelId": 5, "keySize": 0, "valueSize": 0, "maxEntries": 4096}],
    "links": [],
}


def load_failed(**fields):
    return error(
        "io.btfd.LoadFailed",
        **{"message": "program on_exec: the verifier refused it", "stage": "program", "errno": 13, "errnoName": "EACCES"} | fields,
    )


def events(*events):
    """A stream of Monitor that stays open."""
    return [{"parameters": {"event": event}, "continues": True} for event in events]


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.socket = os.path.join(self.directory.name, "socket")
        self.object = os.path.join(self.directory.name, "x.o")
        with open(self.object, "wb") as file:
            file.write(b"\x7fELF and so on")

    def daemon(self, **script):
        daemon = FakeDaemon(self.socket, script)
        self.addCleanup(daemon.__exit__)
        return daemon

    def environment(self):
        return os.environ | {"BTFD_SOCKET": self.socket, "TZ": "UTC"}

    def run_btfctl(self, *arguments, status=0, stdin=b""):
        done = subprocess.run([BTFCTL, *arguments], input=stdin, capture_output=True, env=self.environment(), timeout=20)
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, status, f"stdout:\n{done.stdout}\nstderr:\n{done.stderr}")
        return done

    def start_btfctl(self, *arguments):
        process = subprocess.Popen(
            [BTFCTL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment()
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process


class LoadTest(CommandTest):
    def test_dry_run_passes_a_sealed_copy_of_the_object_and_prints_tables(self):
        daemon = self.daemon(Load=[reply(object=OBJECT | {"id": 0}, verifierLogs={"on_exec": "0: exit\nprocessed 1 insns"})])
        done = self.run_btfctl("load", self.object, "--dry-run", "--log-level", "1")
        (call,) = daemon.calls
        self.assertEqual(call.parameters, {"name": "x", "objectFileDescriptor": 0, "dryRun": True, "verifierLogLevel": 1})
        content, seals = call.files[0]
        self.assertEqual(content, b"\x7fELF and so on")
        self.assertEqual(seals & SEALED, SEALED)
        self.assertIn("Dry run: execsnoop\n", done.stdout)
        self.assertRegex(done.stdout, r"  on_exec +tracing +tp_btf/sched_process_exec +41 +0123456789abcdef\n")
        self.assertRegex(done.stdout, r"  events +ringbuf +0 +0 +4096 +5\n")
        self.assertIn("Verifier log of on_exec\n  0: exit\n  processed 1 insns\n", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_reads_the_object_from_standard_input(self):
        daemon = self.daemon(Load=[reply(object=OBJECT)])
        self.run_btfctl("load", "-", "--dry-run", stdin=b"piped")
        self.assertEqual(daemon.calls[0].files[0][0], b"piped")

    def test_passes_a_file_larger_than_64_mib_itself(self):
        os.truncate(self.object, (64 << 20) + 1)
        daemon = self.daemon(Load=[reply(object=OBJECT)])
        self.run_btfctl("load", self.object, "--dry-run")
        content, seals = daemon.calls[0].files[0]
        self.assertEqual(content[:4], b"\x7fELF")
        self.assertNotEqual((seals or 0) & SEALED, SEALED)

    def test_sends_all_options(self):
        daemon = self.daemon(Load=[reply(object=OBJECT)])
        self.run_btfctl(
            "load", "--name", "mine", "--label", "a=b", "--label", "c=d=e", "--attach", "on_exec",
            "--attach", "drop=interface:veth0,xdpMode:generic", "--disable", "old", "--enable", "new",
            "--set", 'comm="bash"', "--set", "pids=[1,2]", "--max-entries", "events=8192", "--deadline", "1min30s",
            "--dry-run", self.object,
        )  # fmt: skip
        self.assertEqual(
            daemon.calls[0].parameters,
            {
                "objectFileDescriptor": 0,
                "name": "mine",
                "labels": {"a": "b", "c": "d=e"},
                "programs": {
                    "on_exec": {"attach": [{}]},
                    "drop": {"attach": [{"interface": "veth0", "xdpMode": "generic"}]},
                    "old": {"enabled": False},
                    "new": {"enabled": True},
                },
                "variables": {"comm": "bash", "pids": [1, 2]},
                "maps": {"events": {"maxEntries": 8192}},
                "deadlineMs": 90000,
                "dryRun": True,
            },
        )

    def test_holds_the_object_until_a_signal_and_unloads_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number), FakeDaemon(self.socket, {"Load": [reply(object=OBJECT)], "Unload": [reply()]}) as daemon:
                process = self.start_btfctl("load", self.object, "--json")
                self.assertEqual(json.loads(process.stdout.readline())["object"]["id"], 7)
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=20), 0)
                self.assertTrue(daemon.connection_ended.wait(20))
                self.assertEqual(daemon.methods(), ["Load", "Monitor", "Unload"])
                self.assertEqual(daemon.calls[2].parameters, {"objectId": 7})
            os.unlink(self.socket)

    def test_says_that_it_holds_the_object_and_when_the_daemon_goes(self):
        daemon = self.daemon(Load=[reply(object=OBJECT)])
        process = self.start_btfctl("load", self.object)
        self.assertIn("object 7 stays loaded", process.stderr.readline())
        daemon.hang_up()
        self.assertEqual(process.wait(timeout=20), 3)
        self.assertIn("the daemon closed the connection: object 7 is gone", process.stderr.read())

    def test_attach_all_attaches_what_attach_did_not_and_shows_the_links(self):
        described = OBJECT | {"links": [LINK, LINK | {"id": 13, "program": "on_exit"}]}
        daemon = self.daemon(
            Load=[reply(object=OBJECT | {"links": [LINK]})],
            Attach=[reply(link=LINK)],
            Describe=[reply(object=described)],
            Unload=[reply()],
        )
        done = self.run_btfctl(
            "load", self.object, "--attach", "on_exec", "--attach-all", "--deadline", "2s", "--json", "--exec", "--", "true"
        )
        self.assertEqual(daemon.methods(), ["Load", "Attach", "Describe", "Monitor", "Unload"])
        self.assertEqual(daemon.calls[1].parameters, {"objectId": 7, "program": "on_exit", "deadlineMs": 2000})
        self.assertEqual(json.loads(done.stdout)["object"], described)

    def test_attach_all_unloads_again_when_a_program_cannot_be_attached(self):
        failure = error("io.btfd.AttachFailed", message="program on_exit: EINVAL", program="on_exit", errno=22, errnoName="EINVAL")
        daemon = self.daemon(Load=[reply(object=OBJECT)], Attach=[reply(link=LINK), failure], Unload=[reply()])
        done = self.run_btfctl("load", self.object, "--attach-all", status=1)
        self.assertEqual(daemon.methods(), ["Load", "Attach", "Attach", "Unload"])
        self.assertIn("program on_exit could not be attached: it is unloaded again", done.stderr)
        self.assertIn(f"btfctl: load {self.object}: program on_exit: EINVAL\n", done.stderr)

    def test_attach_all_says_in_json_too_which_program_could_not_be_attached(self):
        self.daemon(Load=[reply(object=OBJECT)], Attach=[error("io.btfd.Busy", message="busy", waiting=1)], Unload=[reply()])
        done = self.run_btfctl("load", self.object, "--attach-all", "--json", status=6)
        self.assertEqual(json.loads(done.stdout)["parameters"]["program"], "on_exec")

    def test_attach_all_of_an_object_without_loaded_programs_is_an_error(self):
        daemon = self.daemon(Load=[reply(object=OBJECT | {"programs": []})], Unload=[reply()])
        done = self.run_btfctl("load", self.object, "--attach-all", status=1)
        self.assertEqual(daemon.methods(), ["Load", "Unload"])
        self.assertIn("nothing to attach", done.stderr)

    def test_ends_when_somebody_unloads_the_object(self):
        daemon = self.daemon(
            Load=[reply(object=OBJECT)],
            Monitor=[events({"kind": "subscribed"}, {"kind": "unloaded", "objectId": 8}, {"kind": "unloaded", "objectId": 7, "uid": 0})],
            Describe=[reply(object=OBJECT)],
        )
        done = self.run_btfctl("load", self.object, status=4)
        self.assertIn(f"btfctl: load {self.object}: object 7 was unloaded by root (0)\n", done.stderr)
        self.assertEqual(daemon.methods(), ["Load", "Monitor", "Describe"])

    def test_ends_when_the_object_went_before_it_could_be_watched_or_while_events_were_lost(self):
        gone = error("io.btfd.NoSuchObject", message="there is no object 7", objectId=7)
        for described in ([gone], [reply(object=OBJECT), gone]):
            script = {
                "Load": [reply(object=OBJECT)],
                "Monitor": [events({"kind": "subscribed"}, {"kind": "eventsLost"})],
                "Describe": described,
            }
            with self.subTest(described=described), FakeDaemon(self.socket, script):
                self.assertIn("object 7 was unloaded\n", self.run_btfctl("load", self.object, status=4).stderr)
            os.unlink(self.socket)

    def test_holds_on_when_events_end(self):
        def ending(_):
            yield from events({"kind": "subscribed"})
            raise Close

        daemon = self.daemon(Load=[reply(object=OBJECT)], Monitor=[ending], Describe=[reply(object=OBJECT)], Unload=[reply()])
        process = self.start_btfctl("load", self.object, "--json")
        process.stdout.readline()
        self.assertTrue(daemon.connection_ended.wait(20))
        process.terminate()
        self.assertEqual(process.wait(timeout=20), 0)
        self.assertEqual(daemon.methods()[-1], "Unload")

    def test_exec_goes_on_when_somebody_unloads_the_object(self):
        self.daemon(
            Load=[reply(object=OBJECT)],
            Monitor=[events({"kind": "subscribed"}, {"kind": "unloaded", "objectId": 7})],
            Describe=[reply(object=OBJECT)],
        )
        end = os.path.join(self.directory.name, "end")
        script = f"while [ ! -e {end} ]; do sleep 0.05; done; exit 9"
        process = self.start_btfctl("load", self.object, "--json", "--exec", "--", "sh", "-c", script)
        self.assertIn("object 7 was unloaded; the command goes on", process.stderr.readline())
        open(end, "w").close()
        self.assertEqual(process.wait(timeout=20), 9)

    def test_exec_gives_the_command_the_object_and_its_exit_status_to_the_caller(self):
        daemon = self.daemon(Load=[reply(object=OBJECT)], Unload=[reply()])
        done = self.run_btfctl("load", self.object, "--exec", "--", "sh", "-c", 'echo "object $BTFD_OBJECT"; exit 42', status=42)
        self.assertEqual(done.stdout, "object 7\n")
        self.assertIn("Object 7: execsnoop", done.stderr)
        self.assertEqual(daemon.methods(), ["Load", "Monitor", "Unload"])

    def test_exec_reports_signals_and_missing_commands_as_a_shell_does(self):
        self.daemon(Load=[reply(object=OBJECT)], Unload=[reply()])
        self.run_btfctl("load", self.object, "--exec", "--", "sh", "-c", "kill -KILL $$", status=128 + signal.SIGKILL)
        done = self.run_btfctl("load", self.object, "--exec", "--", "/nonexistent/command", status=127)
        self.assertIn("cannot run /nonexistent/command: No such file or directory", done.stderr)
        self.run_btfctl("load", self.object, "--exec", "--", self.directory.name, status=126)

    def test_exec_passes_signals_on_to_the_command(self):
        self.daemon(Load=[reply(object=OBJECT)], Unload=[reply()])
        script = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
        process = self.start_btfctl("load", self.object, "--exec", "--", "sh", "-c", script)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        self.assertEqual(process.wait(timeout=20), 5)
        self.assertEqual(process.stdout.read(), "got it\n")

    def test_exec_goes_on_when_the_daemon_goes(self):
        daemon = self.daemon(Load=[reply(object=OBJECT)])
        end = os.path.join(self.directory.name, "end")
        script = f"echo ready; while [ ! -e {end} ]; do sleep 0.05; done; exit 9"
        process = self.start_btfctl("load", self.object, "--json", "--exec", "--", "sh", "-c", script)
        process.stdout.readline()  # the document
        self.assertEqual(process.stdout.readline(), "ready\n")
        daemon.hang_up()
        self.assertIn("object 7 is gone; the command goes on", process.stderr.readline())
        open(end, "w").close()
        self.assertEqual(process.wait(timeout=20), 9)


class LoadErrorTest(CommandTest):
    def test_shows_the_verifier_log_indented_and_libbpf_log_only_if_verbose(self):
        self.daemon(Load=[load_failed(program="on_exec", verifierLog="0: r1 = 5\nR1 invalid mem access", libbpfLog=["libbpf: failed"])])
        done = self.run_btfctl("load", self.object, status=1)
        self.assertEqual(
            done.stderr,
            f"btfctl: load {self.object}: program on_exec: the verifier refused it\n"
            "  verifier log of program on_exec:\n"
            "    0: r1 = 5\n"
            "    R1 invalid mem access\n"
            "  (--verbose shows what libbpf said)\n",
        )
        self.assertEqual(done.stdout, "")
        self.assertIn("  libbpf said:\n    libbpf: failed\n", self.run_btfctl("load", self.object, "-v", status=1).stderr)

    def test_json_prints_the_error_on_standard_output(self):
        self.daemon(Load=[load_failed(libbpfLog=["a"])])
        done = self.run_btfctl("load", self.object, "--json", status=1)
        document = json.loads(done.stdout)
        self.assertEqual(document["error"], "io.btfd.LoadFailed")
        self.assertEqual(document["parameters"]["errnoName"], "EACCES")
        self.assertEqual(done.stderr, "")

    def test_shows_near_misses(self):
        self.daemon(Load=[error("io.btfd.NoSuchName", message="no program 'on_exc'", kind="program", name="on_exc", nearMisses=["on_exec", "on_exit"])])
        done = self.run_btfctl("load", self.object, "--attach", "on_exc", status=4)
        self.assertIn("no program 'on_exc'; did you mean on_exec or on_exit?\n", done.stderr)

    def test_control_characters_of_the_daemon_do_not_reach_the_terminal(self):
        self.daemon(Load=[error("io.btfd.InvalidObject", message="bad \x1b[2J name")])
        self.assertIn("bad \\x1b[2J name", self.run_btfctl("load", self.object, status=1).stderr)

    def test_mistakes_in_the_command_line_are_found_before_the_daemon_is_asked(self):
        daemon = self.daemon(Load=[reply(object=OBJECT)])
        for arguments, message in {
            ("--attach", "p=iface:veth0"): "there is no key 'iface'",
            ("--set", "comm=bash"): "is not JSON",
            ("--set", "x=1", "--set", "x=2"): "--set x: given twice",
            ("--label", "nothing"): "must be written as KEY=VALUE",
            ("--max-entries", "m=0"): "between 1 and",
            ("--deadline", "10"): "the unit is missing",
            ("--reuse", "m"): "must be written as MAP=PATH or MAP=ID",
            ("--enable", "p", "--disable", "p"): "it is enabled by --enable",
            ("--log-level", "8"): "8 not in range",
            ("--exec",): "--exec needs a command after --",
            ("--dry-run", "--attach-all"): "excludes",
            ("--dry-run", "--exec", "--", "true"): "excludes",
        }.items():
            with self.subTest(arguments=arguments):
                self.assertIn(message, self.run_btfctl("load", self.object, *arguments, status=2).stderr)
        self.assertEqual(daemon.calls, [])

    def test_a_file_that_cannot_be_read_is_named(self):
        self.daemon()
        self.assertIn("/nonexistent.o: No such file", self.run_btfctl("load", "/nonexistent.o", status=1).stderr)
        done = self.run_btfctl("load", self.object, "--reuse", "events=/nonexistent/map", status=4)
        self.assertIn("--reuse events: cannot open pinned map /nonexistent/map", done.stderr)

    def test_a_map_that_does_not_exist_is_not_found(self):
        self.daemon()
        done = self.run_btfctl("load", self.object, "--reuse", "events=4294967295", status=4 if os.geteuid() == 0 else 1)
        self.assertIn("--reuse events: ", done.stderr)


class OtherCommandsTest(CommandTest):
    def test_list_prints_a_table_and_passes_filters(self):
        daemon = self.daemon(List=[reply(objects=[OBJECT, OBJECT | {"id": 19, "name": "a\x1b[31m"}])])
        done = self.run_btfctl("list", "--label", "team=net", "--name", "execsnoop")
        self.assertEqual(daemon.calls[0].parameters, {"labels": {"team": "net"}, "name": "execsnoop"})
        self.assertEqual(
            done.stdout,
            "ID  NAME       PROGRAMS  MAPS  LINKS  OWNER     LOADED               LABELS\n"
            " 7  execsnoop         2     1      0  root (0)  2023-11-14 22:13:20  team=net\n"
            "19  a\\x1b[31m         2     1      0  root (0)  2023-11-14 22:13:20  team=net\n",
        )

    def test_list_of_nothing_says_so_and_json_is_the_reply(self):
        self.daemon(List=[reply(objects=[])])
        self.assertEqual(self.run_btfctl("list").stdout, "No objects.\n")
        self.assertEqual(self.run_btfctl("--json", "list").stdout, '{"objects":[]}\n')

    def test_show_takes_an_id_or_a_name(self):
        daemon = self.daemon(Describe=[reply(object=OBJECT | {"links": [LINK]})], List=[reply(objects=[OBJECT])])
        done = self.run_btfctl("show", "7")
        self.assertEqual(daemon.methods(), ["Describe"])
        self.assertIn("Object 7: execsnoop\n", done.stdout)
        self.assertRegex(done.stdout, r"  +12  on_exec +tp_btf +sched_process_exec +88\n")
        self.run_btfctl("show", "execsnoop")
        self.assertEqual(daemon.methods()[1:], ["List", "Describe"])
        self.assertEqual(daemon.calls[2].parameters, {"objectId": 7})

    def test_a_name_that_is_not_there_shows_near_misses(self):
        self.daemon(List=[reply(objects=[]), reply(objects=[OBJECT])])
        done = self.run_btfctl("unload", "execsnop", status=4)
        self.assertIn("there is no object named 'execsnop'; did you mean execsnoop?", done.stderr)

    def test_a_name_of_two_objects_is_refused_with_their_ids(self):
        daemon = self.daemon(List=[reply(objects=[OBJECT, OBJECT | {"id": 9}])], Unload=[reply()])
        self.assertIn("say which by its id, 7 or 9", self.run_btfctl("unload", "execsnoop", status=1).stderr)
        self.assertNotIn("Unload", daemon.methods())

    def test_unload_and_detach_are_silent(self):
        daemon = self.daemon(Unload=[reply()], Detach=[reply()])
        self.assertEqual(self.run_btfctl("unload", "7").stdout, "")
        self.assertEqual(self.run_btfctl("detach", "12").stdout, "")
        self.assertEqual(self.run_btfctl("detach", "12", "--json").stdout, "{}\n")
        self.assertEqual([call.parameters for call in daemon.calls], [{"objectId": 7}, {"linkId": 12}, {"linkId": 12}])
        self.run_btfctl("detach", "twelve", status=2)

    def test_update_prints_the_link(self):
        daemon = self.daemon(Update=[reply(link=LINK)])
        self.assertIn("on_exec", self.run_btfctl("update", "12", "7", "on_exec").stdout)
        self.assertEqual(daemon.calls[-1].parameters, {"linkId": 12, "objectId": 7, "program": "on_exec"})

    def test_attach_prints_the_link(self):
        daemon = self.daemon(Attach=[reply(link=LINK)])
        done = self.run_btfctl("attach", "7", "on_exec")
        self.assertRegex(done.stdout, r"LINK +PROGRAM +KIND +TARGET +KERNEL ID\n +12 +on_exec +tp_btf +sched_process_exec +88\n")
        self.run_btfctl("attach", "7", "sample", "perf:software/cpu-clock@99hz,cpu:1", "--deadline", "500ms")
        self.assertEqual(daemon.calls[0].parameters, {"objectId": 7, "program": "on_exec"})
        self.assertEqual(
            daemon.calls[1].parameters,
            {
                "objectId": 7,
                "program": "sample",
                "target": {"perfEvent": {"type": "software", "event": "cpu-clock", "frequency": 99, "cpu": 1}},
                "deadlineMs": 500,
            },
        )

    def test_kernel_shows_what_is_resident_or_why_nothing_is(self):
        spec = {
            "path": "/sys/kernel/btf/vmlinux", "mapped": True, "types": 126700, "bytes": 5767168, "indexedNames": 60000,
            "privateBytes": 1048576, "generation": 3, "builtAtUSec": OBJECT["loadedAtUSec"], "parseUSec": 5000, "indexUSec": 900,
            "modules": [{"name": "veth", "types": 200, "bytes": 4096}, {"name": "odd", "types": 0, "bytes": 0, "error": "corrupt"}],
        }  # fmt: skip
        self.daemon(DescribeKernel=[reply(release="6.18.0", buildCount=1, spec=spec), reply(release="6.18.0", buildCount=0, reason="no load needed it")])
        done = self.run_btfctl("kernel")
        self.assertIn("Linux 6.18.0\n", done.stdout)
        self.assertIn("/sys/kernel/btf/vmlinux (the kernel's own pages)\n", done.stdout)
        self.assertIn("5.5 MiB", done.stdout)
        self.assertIn("parsed in 5.0 ms, indexed in 900 us", done.stdout)
        self.assertRegex(done.stdout, r"  veth +200 +4.0 KiB +-\n")
        self.assertRegex(done.stdout, r"  odd +0 +0 B +corrupt\n")
        self.assertEqual(self.run_btfctl("kernel").stdout, "Linux 6.18.0: no kernel BTF is resident: no load needed it\n")

    def test_monitor_prints_a_line_for_each_event_and_ends_normally_on_sigint(self):
        def events(call):
            self.assertTrue(call.more)
            subscribed = {"kind": "subscribed", "atUSec": OBJECT["loadedAtUSec"], "message": "listening"}
            loaded = {"kind": "loaded", "atUSec": OBJECT["loadedAtUSec"] + 42, "objectId": 7, "objectName": "execsnoop", "uid": 0, "message": "loaded object 7 'execsnoop'"}
            return [{"parameters": {"event": event}, "continues": True} for event in (subscribed, loaded)]

        self.daemon(Monitor=[events])
        for arguments, expected in (
            ((), ["2023-11-14 22:13:20.000000  listening\n",
                  "2023-11-14 22:13:20.000042  root (0): loaded object 7 'execsnoop'\n"]),
            (("--json",), None),
        ):  # fmt: skip
            with self.subTest(arguments=arguments):
                process = self.start_btfctl("monitor", *arguments)
                lines = [process.stdout.readline(), process.stdout.readline()]
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(timeout=20), 0)
                if expected:
                    self.assertEqual(lines, expected)
                else:
                    self.assertEqual([json.loads(line)["event"]["kind"] for line in lines], ["subscribed", "loaded"])


class ExitStatusTest(CommandTest):
    def test_errors_of_the_daemon_have_documented_statuses(self):
        for name, status in {
            "io.btfd.NoSuchObject": 4,
            "io.btfd.NoSuchLink": 4,
            "io.btfd.NotOwner": 5,
            "org.varlink.service.PermissionDenied": 5,
            "io.btfd.Busy": 6,
            "io.btfd.DeadlineExceeded": 6,
            "io.btfd.WorkerLost": 6,
            "io.btfd.LimitExceeded": 1,
            "org.varlink.service.InvalidParameter": 1,
        }.items():
            with self.subTest(name=name), FakeDaemon(self.socket, {"Unload": [error(name, message="no")]}):
                self.assertIn("btfctl: unload 7: no\n", self.run_btfctl("unload", "7", status=status).stderr)
            os.unlink(self.socket)

    def test_a_daemon_that_is_not_there_or_goes_is_unreachable(self):
        self.assertIn("is btfd running", self.run_btfctl("list", status=3).stderr)
        document = json.loads(self.run_btfctl("list", "--json", status=3).stdout)
        self.assertEqual(document["error"], "btfctl.Unreachable")
        self.daemon(List=[Close], Monitor=[Close])
        self.run_btfctl("list", status=3)
        self.run_btfctl("monitor", status=3)

    def test_an_older_daemon_is_explained(self):
        self.daemon()
        self.assertIn("the daemon has no method io.btfd.DescribeKernel", self.run_btfctl("kernel", status=1).stderr)

    def test_wrong_command_lines_say_what_was_meant(self):
        self.assertIn("there is no command 'unlod'; did you mean unload?", self.run_btfctl("unlod", status=2).stderr)
        self.assertIn("Try: btfctl show --help", self.run_btfctl("show", status=2).stderr)
        self.run_btfctl("list", "--unknown", status=2)
        self.run_btfctl(status=2)

    def test_wrong_command_lines_are_json_for_who_wants_json(self):
        for arguments, message in (
            (("unlod", "7", "--json"), "there is no command 'unlod'; did you mean unload?"),
            (("--json", "show"), "OBJECT is required"),
            (("list", "--unknown", "--json"), "--unknown"),
            (("--json",), "subcommand"),
            (("load", "x.o", "--json", "--log-level", "8"), "8 not in range"),
            (("load", "x.o", "--json", "--exec"), "--exec needs a command after --"),
        ):
            with self.subTest(arguments=arguments):
                done = self.run_btfctl(*arguments, status=2)
                document = json.loads(done.stdout)
                self.assertEqual((document["error"], list(document["parameters"])), ("btfctl.Usage", ["message"]))
                self.assertIn(message, document["parameters"]["message"])
                self.assertEqual(done.stderr, "")
        done = self.run_btfctl("list", "--unknown", "--", "--json", status=2)
        self.assertEqual(done.stdout, "")

    def test_help_teaches_by_example_and_documents_exit_statuses(self):
        self.assertIn("Exit status:", self.run_btfctl("--help").stdout)
        for command in ("load", "unload", "attach", "update", "detach", "read", "list", "show", "check", "kernel", "monitor"):
            with self.subTest(command=command):
                self.assertIn(f"Examples:\n  btfctl {command}", self.run_btfctl(command, "--help").stdout)

    def test_output_that_cannot_be_written_is_an_error(self):
        self.daemon(List=[reply(objects=[OBJECT])])
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BTFCTL, "list"], stdout=full, stderr=subprocess.PIPE, env=self.environment(), timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write to standard output", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BTFCTL = sys.argv.pop(1)
    unittest.main()
