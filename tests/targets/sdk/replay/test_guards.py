"""Bundles that loop, write, connect, spawn, or are none: each is stopped, named in one sentence, and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stormctl.errors import StormctlError
from stormctl.targets.sdk.node import SdkUnavailable
from stormctl.targets.sdk.replay import Answer, BundleFault, Limits, Pool, find_bundle
from stormctl.targets.sdk.replay.pool import ReplayStopped
from stormctl.targets.sdk.replay.worker import permission_flags
from tests.targets.sdk.replay.tiny import bundle, plain_bundle, record

pytestmark = pytest.mark.usefixtures("node")

#: short, because what is tested here takes all of it, and long enough for a machine that is busy
SHORT = Limits(pass_s=1.5, load_s=8.0)
LOOP_AT_4 = "if (events.length === 4) for (;;) {}\n await next('attr_set', String(events.length));"


def one(folder: Path, body: str, **how: object) -> Answer:
    """The answer of one pass; no limit of a row of them."""
    with Pool(bundle(folder, body, **how), limits=Limits(pass_s=5.0, kills=9)) as pool:
        return next(pool.passes(record(1), [4]))


def gone(pid: int) -> bool:
    """Whether a process is not there, or is dead and only not yet waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# -- what does not end -----------------------------------------------------------------------------------------------


def test_a_pass_in_an_endless_loop_is_killed_and_a_new_worker_does_what_follows(tmp_path: Path) -> None:
    with Pool(bundle(tmp_path, LOOP_AT_4), limits=SHORT) as pool:
        answers = pool.passes(record(3), [2, 3, 4, 5, 6])
        before = next(answers)
        (pid,) = pool.pids
        rest = list(answers)
        assert gone(pid)
    stopped = rest[1]
    assert (stopped.prefix, stopped.ended, stopped.guard) == (4, "threw", "time")
    assert stopped.error is not None
    assert "did not end within 1.54 s" in stopped.error
    assert f"process {pid} was killed" in stopped.error
    good = [before, rest[0], *rest[2:]]
    assert [(answer.prefix, answer.asked[0].correlation_id) for answer in good] == [(n, str(n)) for n in (2, 3, 5, 6)]


@pytest.mark.parametrize(
    "body",
    ["for (;;) {}", "await new Promise(() => {});", "for (;;) await new Promise((go) => setImmediate(go));"],
    ids=["a loop", "a promise that nobody keeps", "a loop that lets others work"],
)
def test_a_bundle_that_never_ends_a_pass_is_given_up(tmp_path: Path, body: str) -> None:
    began = time.monotonic()
    with Pool(bundle(tmp_path, body), limits=SHORT) as pool:
        with pytest.raises(ReplayStopped, match=r"had to be stopped in 2 passes one after the other; .* within 1\.5"):
            list(pool.passes(record(3), range(2, 9)))
        assert pool.pids == []
    assert time.monotonic() - began < 20


def test_a_pass_that_asks_for_too_much_is_stopped(tmp_path: Path) -> None:
    body = "for (let n = 0; ; n++) { try { await next('attr_set', String(n)); } catch {} }"
    with Pool(bundle(tmp_path, body), limits=Limits(creates=50, kills=9)) as pool:
        answer = next(pool.passes(record(1), [2]))
    assert (answer.ended, answer.guard, len(answer.asked)) == ("threw", "creates", 50)
    assert answer.error == "one pass asked for more than 50 events"


def test_messages_are_counted_too(tmp_path: Path) -> None:
    body = "for (;;) await world().queue('__wkf_step_x', {});"
    with Pool(bundle(tmp_path, body), limits=Limits(creates=50, kills=9)) as pool:
        assert next(pool.passes(record(1), [2])).guard == "creates"


def test_a_worker_that_eats_all_memory_dies_alone(tmp_path: Path) -> None:
    body = "if (events.length === 3) { const all = []; for (;;) all.push(new Array(1e5).fill({})); }"
    with Pool(bundle(tmp_path, body), limits=Limits(pass_s=15, memory_mb=64)) as pool:
        first, second, third = pool.passes(record(1), [2, 3, 4])
    assert (first.guard, third.guard) == (None, None)
    assert second.guard == "died"
    assert second.error is not None
    assert second.error.endswith("ran out of memory")


def test_time_that_the_caller_takes_is_not_the_workers(tmp_path: Path) -> None:
    limits = Limits(pass_s=1.0, event_s=0)
    with Pool(bundle(tmp_path, "await new Promise((go) => setTimeout(go, 5));"), limits=limits) as pool:
        for answer in pool.passes(record(2), range(2, 6)):
            assert answer.guard is None
            time.sleep(1.2 if answer.prefix == 2 else 0)


# -- what no replay may do -------------------------------------------------------------------------------------------

NETWORK = {
    "net.connect (10.9.8.7:4567)": "require('node:net').connect(4567, '10.9.8.7')",
    "net.connect (h:1)": "new (require('net').Socket)().connect({ host: 'h', port: 1 })",
    "net.connect (/tmp/x.sock)": "require('net').createConnection('/tmp/x.sock')",
    "net.Server.listen (0)": "require('net').createServer().listen(0)",
    "tls.connect (h:443)": "require('node:tls').connect(443, 'h')",
    "dgram.createSocket": "require('node:dgram').createSocket('udp4')",
    "dns.lookup (example.org)": "require('node:dns').lookup('example.org', () => {})",
    "dns.promises.resolve4 (example.org)": "await require('node:dns').promises.resolve4('example.org')",
    "dns.Resolver.resolveTxt (example.org)": "new (require('dns').Resolver)().resolveTxt('example.org', () => {})",
    "http.request (http://h/x)": "require('node:http').request('http://h/x')",
    "https.get (h/y)": "require('node:https').get({ host: 'h', path: '/y' })",
    "http2.connect (https://h)": "require('node:http2').connect('https://h')",
    "fetch (https://h/z)": "await fetch('https://h/z')",
    "WebSocket (wss://h)": "new WebSocket('wss://h')",
}
PROCESSES = {
    "child_process.spawn (touch)": "require('node:child_process').spawn('touch', ['x'])",
    "child_process.execSync (touch x)": "require('child_process').execSync('touch x')",
    "child_process.fork (x.js)": "require('child_process').fork('x.js')",
    "worker_threads.Worker (x.js)": "new (require('node:worker_threads').Worker)('x.js')",
    "process.exit (0)": "process.exit(0)",
    "process.kill (1, 15)": "process.kill(1, 15)",
    "process.abort ()": "process.abort()",
}
#: OUT stands for a path outside
WRITES = {
    "fs.writeFileSync of OUT": "fs.writeFileSync('OUT', 'x')",
    "fs.promises.writeFile of OUT": "await fs.promises.writeFile('OUT', 'x')",
    "fs.writeFile of OUT": "await new Promise((go) => fs.writeFile(new URL('file://OUT'), 'x', go))",
    "fs.appendFileSync of OUT": "fs.appendFileSync(Buffer.from('OUT'), 'x')",
    "fs.openSync of OUT": "fs.openSync('OUT', 'w')",
    "fs.open of OUT": "await fs.promises.open('OUT', 'a')",
    "fs.createWriteStream of OUT": "fs.createWriteStream('OUT')",
    "fs.mkdirSync of OUT": "fs.mkdirSync('OUT')",
    "fs.copyFileSync of OUT": "fs.copyFileSync(process.argv[1], 'OUT')",
    "fs.renameSync of OUT": "fs.writeFileSync('mine', 'x'); fs.renameSync('mine', 'OUT')",
    "fs.symlinkSync of OUT": "fs.symlinkSync('x', 'OUT')",
    "fs.rmSync of OUT": "fs.rmSync('OUT')",
    "fs.unlinkSync of OUT": "fs.unlinkSync('OUT')",
}


@pytest.fixture(scope="module")
def attempts(node: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """All attempts by one bundle, each in a pass of its own: which one is told by the hidden events."""
    folder = tmp_path_factory.mktemp("attempts")
    outside = folder / "outside"
    cases = {
        name.replace("OUT", str(outside)): code.replace("OUT", str(outside))
        for name, code in {**NETWORK, **PROCESSES, **WRITES}.items()
    }
    body = f"const fs = require('node:fs'); const which = {len(cases)} - (events.length - 2);\n switch (which) {{"
    for number, code in enumerate(cases.values()):
        body += f"case {number}: try {{ {code}; }} catch (error) {{ console.log(error.name); }} break;\n"
    body += "}"
    log = record(len(cases) // 2 + 1)
    with Pool(bundle(folder, body), jobs=2, limits=Limits(kills=99)) as pool:
        answers = list(pool.passes(log, [len(cases) + 2 - number for number in range(len(cases))]))
    assert not outside.exists()
    return dict(zip(cases, answers, strict=True)) | {"outside": outside}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("guard", "name"),
    [*(("network", name) for name in NETWORK), *(("process", name) for name in PROCESSES)]
    + [("write", name) for name in WRITES],
)
def test_what_no_replay_may_do_is_refused_and_named(attempts: dict[str, Answer], guard: str, name: str) -> None:
    name = name.replace("OUT", str(attempts["outside"]))
    answer = attempts[name]
    assert (answer.guard, answer.ended, answer.error) == (guard, "threw", name)
    assert answer.asked == ()


def test_a_bundle_may_write_in_its_own_folder(tmp_path: Path) -> None:
    body = """
      const fs = require('node:fs');
      fs.mkdirSync('data/deep', { recursive: true }); fs.writeFileSync('data/deep/x', 'abc');
      await fs.promises.appendFile('data/deep/x', 'd');
      const made = fs.mkdtempSync(require('node:os').tmpdir() + '/y-'); fs.rmSync(made, { recursive: true });
      console.log(fs.readFileSync('data/deep/x', 'utf8'), fs.existsSync(process.argv[1]));
    """
    answer = one(tmp_path, body)
    assert (answer.guard, answer.error, answer.said) == (None, None, ("abcd true",))


def test_nodes_own_permissions_hold_where_a_bundle_goes_behind_the_replaced_functions(
    tmp_path: Path, node: str
) -> None:
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if not permission_flags(version, tmp_path):
        pytest.skip(f"node {version} has no permission flag")
    outside = tmp_path / "outside"
    body = f"""
      const {{ O_CREAT, O_WRONLY }} = require('node:fs').constants;
      try {{ process.binding('fs').open({str(outside)!r}, O_CREAT | O_WRONLY, 0o644, undefined, {{}}); }}
      catch (error) {{ console.log(error.code); }}
    """
    one(tmp_path, body)
    assert not outside.exists()


def test_a_world_call_that_no_replay_has_is_named(tmp_path: Path) -> None:
    for call in (
        "world().streams.write('x')",
        "world().somethingNew(1)",
        "world().steps.get('x')",
        "world().hooks.list()",
    ):
        answer = one(tmp_path, f"try {{ await {call}; }} catch {{}}\n await next('attr_set', 'x');")
        name = call.removeprefix("world().").partition("(")[0]
        assert (answer.guard, answer.ended) == ("world", "threw")
        assert answer.error == f"the engine called world.{name}, which no replay has"


def test_what_a_world_may_lack_may_be_asked_for(tmp_path: Path) -> None:
    body = """
      console.log([world().getRuntimeDeadline, world().events.createBatch, world().queueBatch?.bind,
        world().capabilities?.invoke, (await world()) === world()].map(String).join());
    """
    assert one(tmp_path, body).said == ("undefined,undefined,undefined,undefined,true",)


# -- what is no bundle -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("module.exports = { GET: 1, helper: 2 };", r"flow\.js is no flow bundle: it does not export POST \(it"),
        ("", r"it does not export POST"),
        ("module.exports = { POST: async () => new Response('hi') };", r"its POST asked no world for a queue"),
        ("module.exports = { POST() { throw new Error('not now'); } };", r"no world for a queue \(Error: not now\)"),
        ("module.exports = {", r"no JavaScript that this node reads: SyntaxError: "),
        ("<html>", r"no JavaScript that this node reads: SyntaxError: "),
        ("throw new Error('no config');", r"threw while it was being loaded: Error: no config"),
        ("throw 7;", r"threw while it was being loaded: number: 7"),
        ("require('not-there');", r"threw while it was being loaded: Error: Cannot find module 'not-there'"),
        ("for (;;) {}", r"did not load within 4 s, and was stopped"),
        ("fetch('https://h/config').catch(() => {});", r"network while it was being loaded: fetch \(https://h/config\)"),
        ("require('fs').writeFileSync('/nowhere', 'x');", r"outside of its folder .*: fs\.writeFileSync of /nowhere"),
        ("process.exit(0);", r"start or end a process while it was being loaded: process\.exit \(0\)"),
        ("globalThis[Symbol.for('@workflow/world//cache')].queue('x');", r"called its world while it was being loaded"),
    ],
)  # fmt: skip
def test_what_is_no_flow_bundle_is_told_in_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    found = plain_bundle(tmp_path, text)
    with Pool(found, limits=Limits(load_s=4.0)) as pool:
        with pytest.raises(BundleFault, match=says) as error:
            list(pool.passes(record(1), [2, 3]))
        assert pool.pids == []
    assert "\n" not in str(error.value)
    assert error.value.remedy.endswith(".")


def test_a_bundle_is_taken_by_its_content_where_its_project_says_otherwise(tmp_path: Path) -> None:
    """The package.json above a built bundle may be that of another tool."""
    for esm, kind in ((False, "module"), (True, "commonjs")):
        folder = tmp_path / kind
        found = bundle(folder, esm=esm)
        (folder / "package.json").write_text(f'{{"type": "{kind}"}}')
        wrong = folder / "flow.js"
        found.flow.rename(wrong)
        with Pool(find_bundle(wrong)) as pool:
            (answer,) = pool.passes(record(1), [4])
        assert answer.asked[0].correlation_id == "step_1"


def test_without_node_or_with_an_old_one_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bundle(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SdkUnavailable, match="node is not on this machine's PATH"):
        Pool(found)
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v18.1.0\n")
    old.chmod(0o755)
    with pytest.raises(SdkUnavailable, match=r"node is version v18\.1\.0, and 20 or later is needed"):
        Pool(found)


def test_the_permission_flags_are_those_of_the_node(tmp_path: Path) -> None:
    assert permission_flags("20.20.2", tmp_path)[0] == "--experimental-permission"
    assert permission_flags("22.12.0", tmp_path)[0] == "--experimental-permission"
    assert permission_flags("22.13.0", tmp_path)[0] == "--permission"
    assert permission_flags("23.4.0", tmp_path)[0] == "--experimental-permission"
    assert permission_flags("24.1.0", tmp_path)[0] == "--permission"
    assert permission_flags("19.9.0", tmp_path) == []


# -- nothing is left behind ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "error", "forgotten", "fault"])
def test_nothing_is_left_of_a_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    pids: list[int] = []

    def use(pool: Pool) -> None:
        for _answer in pool.passes(record(3), range(2, 9)):
            pids.extend(pool.pids)
            if how == "error":
                raise KeyError("ours")

    if how == "fault":
        with pytest.raises(BundleFault):
            list(Pool(plain_bundle(tmp_path, "module.exports = 1;")).passes(record(1), [2]))
    elif how == "forgotten":
        pool = Pool(bundle(tmp_path))
        use(pool)
        del pool
    elif how == "error":
        with pytest.raises(KeyError), Pool(bundle(tmp_path), jobs=2) as pool:
            use(pool)
    else:
        with Pool(bundle(tmp_path), jobs=2) as pool:
            use(pool)
    assert all(map(gone, pids))
    assert list(temporary.iterdir()) == []


DRIVER = """
import sys
from pathlib import Path
from tests.targets.sdk.replay.tiny import bundle, record
from stormctl.targets.sdk.replay import Pool
pool = Pool(bundle(Path(sys.argv[1]), sys.argv[2]), jobs=2)
answers = pool.passes(record(8), range(2, 15))
next(answers)
print(*pool.pids, *(worker.folder for worker in pool._work), flush=True)
next(answers)
sys.stdin.read()
"""


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_their_owner_is_killed_even_out_of_a_loop(
    tmp_path: Path, root: Path, signal_: signal.Signals
) -> None:
    body = "if (events.length > 2) for (;;) {}"
    owner = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path), body],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert owner.stdout is not None
    assert owner.stdin is not None
    told = owner.stdout.readline().split()
    pids = [int(word) for word in told if word.isdigit()]
    folders = [Path(word) for word in told if not word.isdigit()]
    time.sleep(0.3)
    assert pids
    assert not any(map(gone, pids))
    owner.send_signal(signal_)
    owner.wait(10)
    owner.stdin.close()
    owner.stdout.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not (all(map(gone, pids)) and not any(map(Path.exists, folders))):
        time.sleep(0.05)
    assert all(map(gone, pids))
    assert not any(map(Path.exists, folders))


def test_errors_of_a_replay_are_ours() -> None:
    assert issubclass(BundleFault, StormctlError)
    assert issubclass(ReplayStopped, StormctlError)
