"""Giving rights up, on Linux and other POSIX systems: namespaces, Landlock, limits, another user.

A process calls these on itself, before it lets a student's code run; none can be taken back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from collections.abc import Iterable

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

__all__ = [
    "become",
    "hide_from_tracing",
    "landlock",
    "landlock_version",
    "limit",
    "mount_empty",
    "mount_empty_around",
    "mounts_below",
    "no_new_rights",
    "unshare_network",
    "unshare_worker",
]

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x20000,
    0x2000000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 24, 38
LANDLOCK_CREATE, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT = 444, 445, 446
CAPSET = {"x86_64": 126, "aarch64": 91}
READ, LIST, EXECUTE = 1 << 2, 1 << 3, 1
BIND, RECURSIVE = 4096, 16384
ALL_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many kinds of access each version of Landlock knows


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def hide_from_tracing(hidden: bool = True) -> None:
    """Let no process of the same user read or trace this one (Linux)."""
    _checked(_libc().prctl(PR_SET_DUMPABLE, int(not hidden), 0, 0, 0), "prctl(PR_SET_DUMPABLE)")


def no_new_rights() -> None:
    """Give up every way to gain rights: set-user-id programs, capabilities (Linux)."""
    libc = _libc()
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 and ctypes.get_errno() not in (
            errno.EINVAL,
            errno.EPERM,
        ):
            _checked(-1, "prctl(PR_CAPBSET_DROP)")
    number = CAPSET.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"capset is not known for {os.uname().machine}")
    head, none = struct.pack("=Ii", 0x20080522, 0), bytes(24)
    _checked(libc.syscall(number, head, none), "capset")


def become(user: int) -> None:
    """Become another user, for good; only root can."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    if os.getresuid() != (user, user, user):
        raise OSError(errno.EPERM, "the user could not be changed")


def unshare_worker() -> None:
    """Take own namespaces of every kind; the next child is process 1 of its own.

    Raises:
        OSError: this system does not allow it.
    """
    user, group = os.getuid(), os.getgid()
    hide_from_tracing(False)  # else the maps below belong to root
    _checked(_libc().unshare(NEWUSER | NEWPID | NEWNS | NEWIPC | NEWNET | NEWUTS | NEWCGROUP), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def unshare_network() -> None:
    """Take an own network, which has no way out.

    Raises:
        OSError: this system does not allow it.
    """
    _checked(_libc().unshare(NEWUSER | NEWNET), "unshare")


def mount_empty(where: str, options: str, *, read_only: bool = False) -> None:
    """Mount an empty folder in memory over another; needs own namespaces."""
    flags = 2 | 4 | (1 if read_only else 0)  # no set-user-id programs, no devices
    kind, place = b"tmpfs", os.fsencode(where)
    _checked(_libc().mount(kind, place, kind, flags, options.encode()), f"mount {where}")


def mount_empty_around(where: str, options: str) -> None:
    """Mount an empty folder in memory over another, but keep what is mounted inside that one, such as packages."""
    with open("/proc/self/mountinfo", "rb") as file:
        places = mounts_below(where, file.read())
    inside = [(place, os.open(place, os.O_PATH | os.O_CLOEXEC)) for place in places]
    mount_empty(where, options)
    for place, fd in inside:
        os.makedirs(place, mode=0o755, exist_ok=True)
        source = f"/proc/self/fd/{fd}".encode()
        _checked(_libc().mount(source, os.fsencode(place), None, BIND | RECURSIVE, None), f"mount {place}")
        os.close(fd)


def mounts_below(where: str, mountinfo: bytes) -> list[str]:
    """Return the mounts inside a folder, without those inside one another.

    Args:
        where: the folder, as an absolute path.
        mountinfo: the text of ``/proc/self/mountinfo``, see proc(5); its fifth column is where each mount stands.
    """
    columns = [line.split(b" ")[4] for line in mountinfo.splitlines()]
    places = {os.fsdecode(re.sub(rb"\\([0-7]{3})", _character, column)) for column in columns}
    below = sorted(place for place in places if place.startswith(f"{where}/"))
    return [place for place in below if not any(place.startswith(f"{other}/") for other in below)]


def _character(octal: re.Match[bytes]) -> bytes:
    """What proc(5) writes as a number: blank, tab, line break and backslash."""
    return bytes([int(octal[1], 8)])


def limit(*, memory: int | None, processes: int | None, file_size: int = 32 << 20, files: int = 256) -> None:
    """Limit what this process and its children may use each."""
    limits = [(resource.RLIMIT_FSIZE, file_size), (resource.RLIMIT_NOFILE, files), (resource.RLIMIT_CORE, 0)]
    limits += [(resource.RLIMIT_AS, memory)] if memory is not None else []
    limits += [(resource.RLIMIT_NPROC, processes)] if processes is not None else []
    for name, value in limits:
        _, hard = resource.getrlimit(name)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))


def landlock_version() -> int:
    """Return which version of Landlock the kernel has, 0 where it has none."""
    if not hasattr(os, "uname") or os.uname().sysname != "Linux":
        return 0
    return max(0, _libc().syscall(LANDLOCK_CREATE, None, 0, 1))


def landlock(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Allow files only below these places; no TCP, and no signals to processes outside, where the kernel can.

    Raises:
        OSError: the kernel has no Landlock.
    """
    libc, version = _libc(), landlock_version()
    if not version:
        raise OSError(errno.ENOSYS, "the kernel has no Landlock")
    rights = (1 << ALL_FILE_RIGHTS.get(version, 16)) - 1
    network, scope = (3 if version >= 4 else 0), (3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("=QQQ", rights, network, scope)[:size]
    rules = _checked(libc.syscall(LANDLOCK_CREATE, attributes, size, 0), "landlock_create_ruleset")
    try:
        for place in readable:
            _allow(libc, rules, place, (READ | LIST | EXECUTE) & rights)
        for place in writable:
            _allow(libc, rules, place, rights)
        _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
        _checked(libc.syscall(LANDLOCK_RESTRICT, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, place: str, rights: int) -> None:
    try:
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):  # what may not be read need not be allowed
        return
    try:
        if not os.path.isdir(place):
            rights &= READ | EXECUTE | 1 << 1 | 1 << 14 | 1 << 15
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd), 12)
        _checked(libc.syscall(LANDLOCK_ADD_RULE, rules, 1, rule, 0), f"landlock_add_rule {place}")
    finally:
        os.close(fd)
