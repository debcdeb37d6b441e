"""The rank's place in the run folder: claimed by mkdir, its manifest replaced whole at every change of state."""

import contextlib
import hashlib
import os
import shutil
import tempfile
import uuid
from pathlib import Path

from c3prof.collectors.identity import Identity
from c3prof.records import MANIFEST_FILE, RANKS_FOLDER, RUN_FILE, FileRecord, RankManifest, RunRecord, document_of

_BALLAST_BYTES = 1 << 16


class RankFolder:
    """ranks/rankNNNNN of a run folder. `path` is where data is written: there, or on a local disk until publish()."""

    def __init__(self, root: str, who: Identity, local_root: str | None = None, *, ballast: bool = False) -> None:
        self.root = Path(root)
        self.final = self.root / RANKS_FOLDER / f"rank{who.rank:05d}"
        self.final.parent.mkdir(parents=True, exist_ok=True)
        self.taken_by_other = False
        try:
            self.final.mkdir()
        except FileExistsError:
            # Another process of this rank, an earlier run or the life before an elastic restart: never write into its files.
            self.taken_by_other = True
            self.final = self.final.with_name(f"{self.final.name}.{who.host}.{who.pid}.{uuid.uuid4().hex[:8]}")
            self.final.mkdir()
        self.path = self.final
        if local_root is not None:
            Path(local_root).mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=self.final.name + ".", dir=local_root))
        self._ballast = self.final / ".ballast"
        if ballast:
            self._ballast.write_bytes(b"\0" * _BALLAST_BYTES)

    def write_run(self, run: RunRecord) -> None:
        """Writes run.json unless it is there."""
        if not (self.root / RUN_FILE).exists():
            replace_file(self.root / RUN_FILE, document_of(run))

    def write_manifest(self, manifest: RankManifest) -> None:
        """Replaces the manifest; on a full disk the ballast makes room for it."""
        content = document_of(manifest)
        try:
            replace_file(self.final / MANIFEST_FILE, content)
        except OSError:
            self._ballast.unlink(missing_ok=True)
            replace_file(self.final / MANIFEST_FILE, content)

    def publish(self) -> None:
        """Copies what lies on the local disk into the run folder and removes it there."""
        self._ballast.unlink(missing_ok=True)
        if self.path == self.final:
            return
        for source in sorted(self.path.iterdir()):
            part = self.final / f"{source.name}.part"
            shutil.copyfile(source, part)
            part.replace(self.final / source.name)
        shutil.rmtree(self.path, ignore_errors=True)
        self.path = self.final

    def file_record(self, kind: str, name: str, first_step: int, last_step: int) -> FileRecord:
        """The manifest's entry of a finished file in this folder."""
        path = self.path / name
        return FileRecord(kind, name, first_step, last_step, path.stat().st_size, _sha256(path))


def replace_file(path: Path, content: str) -> None:
    """Writes a file that a reader sees whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
