from pathlib import Path

import pytest

from store.file_system import Mount, journal_mode, mount_of, parse_mountinfo, read_mounts

POD = r"""
1012 967 0:139 / / rw,relatime master:402 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
1013 1012 0:142 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1020 1012 0:155 / /workspace rw,nosuid,nodev,relatime shared:9 master:3 - fuse mfs#eu.example.net:9421 rw,user_id=0
1021 1020 0:156 / /workspace/fast rw - ext4 /dev/nvme0n1 rw
1022 1012 0:157 / /mnt/my\040disk rw - nfs4 host:/export rw,vers=4.2
1023 1012 0:158 / /over rw - nfs host:/a rw
1024 1023 0:159 / /over rw - xfs /dev/sdb rw
1025 1012 0:160 / /srv rw - zfs tank rw
this is not a mount
""".strip()


@pytest.fixture
def mounts() -> tuple[Mount, ...]:
    return parse_mountinfo(POD)


def test_mountinfo_is_read_with_optional_fields_and_escapes(mounts: tuple[Mount, ...]) -> None:
    assert mounts[2] == Mount(Path("/workspace"), "fuse")
    assert Mount(Path("/mnt/my disk"), "nfs4") in mounts
    assert len(mounts) == 8


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("/root/.local/share/llmtune/llmtune.db", "wal"),
        ("/workspace/llmtune/llmtune.db", "truncate"),
        ("/workspacefiles/llmtune.db", "wal"),  # beside /workspace, not within
        ("/workspace/fast/llmtune.db", "wal"),
        ("/mnt/my disk/llmtune.db", "truncate"),
        ("/over/llmtune.db", "wal"),  # the later mount hides the earlier
        ("/srv/llmtune.db", "wal"),
    ],
)
def test_the_longest_mount_point_above_decides(path: str, mode: str, mounts: tuple[Mount, ...]) -> None:
    assert journal_mode(Path(path), mounts) == mode


@pytest.mark.parametrize(
    "type",
    [
        *("nfs", "nfs4", "cifs", "smb3", "9p", "lustre", "virtiofs", "ceph", "beegfs", "unheard-of"),
        *("fuse", "fuse.mfs", "fuse.glusterfs", "fuse.s3fs", "fuseblk"),
    ],
)
def test_network_fuse_and_unknown_file_systems_get_the_rollback_journal(type: str) -> None:
    assert journal_mode(Path("/x/llmtune.db"), (Mount(Path("/"), "ext4"), Mount(Path("/x"), type))) == "truncate"


def test_without_mounts_the_journal_that_is_correct_everywhere() -> None:
    assert journal_mode(Path("/x/llmtune.db"), ()) == "truncate"


def test_a_link_counts_as_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    mounts = (Mount(Path("/"), "ext4"), Mount((tmp_path / "far").resolve(), "nfs"))
    assert journal_mode(tmp_path / "near" / "llmtune.db", mounts) == "truncate"


def test_this_machine_has_a_root() -> None:
    assert mount_of(Path("/"), read_mounts()) is not None
