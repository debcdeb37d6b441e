"""The rank's place in the run folder: claimed by mkdir, its manifest replaced whole at every change of state."""

import contextlib
import hashlib
import os
import shutil
import tempfile
import uuid

from c3prof.collectors.identity import Identity
from c3prof.records import MANIFEST_FILE, RANKS_FOLDER, RUN_FILE, FileRecord, RankManifest, RunRecord, document_of

_BALLAST_BYTES = 1 << 16


class RankFolder:
    """ranks/rankNNNNN of a run folder. `path` is where data is written: there, or on a local disk until publish()."""

    def __init__(self, root: str, who: Identity, local_root: str | None = None, ballast: bool = False) -> None:
        self.root, self.final = root, os.path.join(root, RANKS_FOLDER, f"rank{who.rank:05d}")
        os.makedirs(os.path.dirname(self.final), exist_ok=True)
        self.taken_by_other = False
        try:
            os.mkdir(self.final)
        except FileExistsError:
            # Another process of this rank, an earlier run or the life before an elastic restart: never write into its files.
            self.taken_by_other = True
            self.final += f".{who.host}.{who.pid}.{uuid.uuid4().hex[:8]}"
            os.mkdir(self.final)
        self.path = self.final
        if local_root is not None:
            os.makedirs(local_root, exist_ok=True)
            self.path = tempfile.mkdtemp(prefix=os.path.basename(self.final) + ".", dir=local_root)
        self._ballast = os.path.join(self.final, ".ballast")
        if ballast:
            with open(self._ballast, "wb") as file:
                file.write(b"\0" * _BALLAST_BYTES)

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def write_run(self, run: RunRecord) -> None:
        """Writes run.json unless it is there."""
        path = os.path.join(self.root, RUN_FILE)
        if not os.path.exists(path):
            _replace(path, document_of(run))

    def write_manifest(self, manifest: RankManifest) -> None:
        """Replaces the manifest; on a full disk the ballast makes room for it."""
        path, content = os.path.join(self.final, MANIFEST_FILE), document_of(manifest)
        try:
            _replace(path, content)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(self._ballast)
            _replace(path, content)

    def publish(self) -> None:
        """Copies what lies on the local disk into the run folder and removes it there."""
        with contextlib.suppress(OSError):
            os.unlink(self._ballast)
        if self.path == self.final:
            return
        for name in sorted(os.listdir(self.path)):
            shutil.copyfile(os.path.join(self.path, name), os.path.join(self.final, name + ".part"))
            os.replace(os.path.join(self.final, name + ".part"), os.path.join(self.final, name))
        shutil.rmtree(self.path, ignore_errors=True)
        self.path = self.final

    def file_record(
        self, kind: str, name: str, first_step: int | None = None, last_step: int | None = None, *, closed: bool = False
    ) -> FileRecord:
        """The manifest's entry of a file in this folder; a closed one gets its checksum."""
        path = self.file(name)
        return FileRecord(kind, name, first_step, last_step, os.path.getsize(path), _sha256(path) if closed else None)


def _replace(path: str, content: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".tmp-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
