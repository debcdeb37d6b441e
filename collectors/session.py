"""One recording of one rank: its collectors, its folder, and how it ends."""

import atexit
import json
import multiprocessing
import multiprocessing.util
import signal
import sys
import threading
import time
from dataclasses import asdict
from importlib import import_module
from typing import Any

from c3prof.collectors.calibration import Switch
from c3prof.collectors.comm import Comm
from c3prof.collectors.environment import device_name, environment, topology, versions
from c3prof.collectors.events import DeviceEvents
from c3prof.collectors.faults import Faults
from c3prof.collectors.flight_recorder import FlightRecorder
from c3prof.collectors.folder import RankFolder
from c3prof.collectors.identity import identity
from c3prof.collectors.kineto import Kineto
from c3prof.collectors.options import Options
from c3prof.collectors.power import Power
from c3prof.collectors.signals import Signals
from c3prof.collectors.stall import stall_report
from c3prof.collectors.steps import Steps
from c3prof.collectors.trigger import Trigger
from c3prof.collectors.watcher import Watcher
from c3prof.records import COMM_FILE, EVENTS_FILE, POWER_FILE, STEPS_FILE, OverheadRecord, RankManifest, RunRecord
from c3prof.units import NS_PER_S

_LOCK_TIMEOUT_S = 15.0

UNSEEN = "NCCL used outside of torch.distributed (DeepEP, NVSHMEM, symmetric memory) is not seen by the communication hook"


class Session:
    """What runs between the start and the end of profile(). No method issues a collective."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.who = identity()
        self.faults = Faults(self.who.rank, options.strict)
        self.step_number = 0
        self.status = "running"
        self._started_ns = time.time_ns()
        self._lock = threading.RLock()
        self._step_cost_ns = 0
        self._device_name = device_name()
        self._groups_written = 0
        plan = options.plan(self.who.rank)
        self.folder = RankFolder(options.dir, self.who, options.local_dir, ballast=plan is not None)
        if self.folder.taken_by_other:
            self.faults.error("folder", f"another process owns ranks/rank{self.who.rank:05d}; this one writes to {self.folder.final.name}")
        self.switch = Switch(options.calibration, self.faults, on_device=_on_device())
        self.steps = Steps(self.folder.path / STEPS_FILE, self.faults)
        self.events = DeviceEvents(self.folder.path / EVENTS_FILE, self.faults) if options.comms and _on_device() else None
        self.comm = Comm(self.folder.path / COMM_FILE, self.switch, self.faults, self.events) if options.comms else None
        self.power = Power(self.folder.path / POWER_FILE, self.faults) if options.power else None
        self.flight_recorder = FlightRecorder(self.folder, self.faults) if options.comms and self.who.backend == "nccl" else None
        self.kineto = Kineto(self.folder, plan.place, self.faults, shapes=options.shapes) if plan else None
        self._collectors: list[Any] = []
        self._signals = Signals()
        flush_s = options.flush_interval(self.who.world_size)
        self._watcher = Watcher(self, self._signals, flush_s, options.stall_s)
        leads = options.leads(self.who.rank)
        self._trigger = Trigger(self.folder.root, plan, self.faults, leads=leads, poll_s=flush_s) if plan and options.trigger else None

    def start(self) -> None:
        """Starts every collector that can work here; the others leave a note."""
        self.availability: dict[str, str] = {}
        for collector in (self.events, self.comm, self.flight_recorder, self.power, self.kineto, self.steps):
            if collector is not None:
                self._start(collector)
        if self.comm in self._collectors:
            self.faults.note(UNSEEN)
        if not self._signals.install():
            self.faults.note("started outside of the main thread: data is not saved on signals")
        with self.faults.guard("run.json"):
            if self.who.rank == 0:
                self.folder.write_run(self._run_record())
        self.write_manifest()
        self._watcher.start()
        atexit.register(self.finish, None)
        if multiprocessing.parent_process() is not None:
            # Children of multiprocessing leave without atexit.
            multiprocessing.util.Finalize(self, self.finish, args=(None,), exitpriority=100)
        if self.kineto in self._collectors and self.kineto is not None:
            self.kineto.step(0, self.switch.phase)
        self.steps.step(0, self.switch.phase)

    def step(self) -> None:
        """The current step ends and the next begins."""
        started = time.perf_counter_ns()
        window = self.kineto.window if self.kineto else None
        self.steps.ended(self.step_number, self.switch.phase, window)
        self.step_number += 1
        self.switch.step = self.step_number
        self._watcher.beat()
        if self.status == "stalled":
            self.status = "running"
            self.faults.note(f"went on after a stall in step {self.step_number - 1}")
            self.write_manifest()
        for collector in self._collectors:
            with self.faults.guard(f"step of {collector.name}"):
                collector.step(self.step_number, self.switch.phase)
        self._step_cost_ns += time.perf_counter_ns() - started

    def finish(self, why: str | None) -> None:
        """Ends the recording once; why is the status to leave, None asks the interpreter whether an exception ended it."""
        if not self._lock.acquire(timeout=_LOCK_TIMEOUT_S):
            return
        try:
            if self.status not in {"running", "stalled"}:
                return
            self.status = why or _status_at_exit()
            for collector in reversed(self._collectors):
                with self.faults.guard(f"end of {collector.name}"):
                    collector.stop()
            with self.faults.guard("copy from the local disk"):
                self.folder.publish()
            self.write_manifest()
        finally:
            self._lock.release()
        self._signals.restore()
        self._watcher.stop()
        atexit.unregister(self.finish)

    def forget(self) -> None:
        """In a child after fork: the recording, its files and its signals are the parent's."""
        self.status = "forked"
        if self.comm is not None:
            self.comm.silence()
        self._signals.restore()

    def flush(self) -> None:
        """Writes what has been recorded; called by the watcher."""
        try:
            with self._lock:
                if self.status not in {"running", "stalled"}:
                    return
                for collector in self._collectors:
                    if drain := getattr(collector, "drain", None):
                        drain()
                if self.comm and len(self.comm.groups) != self._groups_written:
                    self.write_manifest()
                if self._trigger is not None:
                    step_s = (time.time_ns() - self._started_ns) / NS_PER_S / max(self.step_number, 1)
                    self._trigger.poll(self.step_number, step_s)
        except Exception as error:  # the watcher must outlive whatever happens in here
            self.faults.error("flush", error)

    def signalled(self, number: int, *, fatal: bool) -> None:
        """Saves what there is; the recording is over when the process is about to die."""
        name = f"signal:{signal.Signals(number).name}"
        if fatal:
            self.finish(name)
            return
        self.faults.note(f"{name} received in step {self.step_number}")
        try:
            with self._lock:
                if self.kineto is not None:
                    self.kineto.close_window()
                self.write_manifest(name)
        except Exception as error:  # as above
            self.faults.error(name, error)

    def stalled(self, seconds: float) -> None:
        """Writes down what every thread does and which collectives are open."""
        self.status = "stalled"
        try:
            open_operations = self.comm.open_operations() if self.comm else []
            stall_report(self.folder, self.step_number, seconds, open_operations)
            self.faults.error("stall", f"no step for {seconds:.0f} s after step {self.step_number}; see stall.json and stacks.txt")
        except Exception as error:  # as above
            self.faults.error("stall report", error)
        self.write_manifest()

    def write_manifest(self, status: str | None = None) -> None:
        """Replaces the manifest with the present state."""
        if self.who.backend is None:
            self.who = identity()
        groups = tuple(self.comm.groups.values()) if self.comm else ()
        self._groups_written = len(groups)
        manifest = RankManifest(
            rank=self.who.rank,
            world_size=self.who.world_size,
            local_rank=self.who.local_rank,
            host=self.who.host,
            pid=self.who.pid,
            job=self.who.job,
            restart=self.who.restart,
            backend=self.who.backend,
            device_name=self._device_name,
            status=status or self.status,
            steps=self.step_number,
            started_ns=self._started_ns,
            updated_ns=time.time_ns(),
            monotonic_ns=time.monotonic_ns(),
            flush_s=self.options.flush_interval(self.who.world_size),
            files=tuple(file for collector in self._collectors for file in collector.files()),
            groups=groups,
            collectors=dict(self.availability),
            notes=tuple(self.faults.notes),
            errors=tuple(self.faults.errors),
            overhead=self._overhead(),
        )
        try:
            self.folder.write_manifest(manifest)
        except OSError as error:
            self.faults.error("manifest", error)

    def _start(self, collector: Any) -> None:
        with self.faults.guard(f"start of {collector.name}"):
            works, reason = collector.probe()
            self.availability[collector.name] = "on" if works and not reason else reason
            if not works:
                self.faults.note(f"{collector.name} is off: {reason}")
                return
            collector.start()
            self._collectors.append(collector)

    def _overhead(self) -> OverheadRecord:
        return OverheadRecord(
            hook_calls=self.comm.calls if self.comm else 0,
            hook_ns=self.comm.cost_ns if self.comm else 0,
            step_calls=self.step_number,
            step_ns=self._step_cost_ns,
            window_ns=self.kineto.cost_ns if self.kineto else 0,
            watcher_cpu_ns=self._watcher.cpu_ns,
        )

    def _run_record(self) -> RunRecord:
        return RunRecord(
            created_ns=self._started_ns,
            world_size=self.who.world_size,
            backend=self.who.backend,
            job=self.who.job,
            config=json.loads(json.dumps(asdict(self.options))),
            environment=environment(),
            versions=versions(),
            topology=topology(),
        )


def _on_device() -> bool:
    torch = import_module("torch")
    return bool(torch.cuda.is_available())


def _status_at_exit() -> str:
    """complete, unless the interpreter has just printed an exception that nobody caught."""
    kind = getattr(sys, "last_type", None)
    return "complete" if kind is None else f"exception:{kind.__name__}"
