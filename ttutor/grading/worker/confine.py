"""What a worker gives up before it meets a student's code: memory, files, and calls of the kernel that it never needs.

After `confine` a process can compute and answer, and nothing else: it starts no process and no thread, opens no file
for writing, no socket and no memory that its limit does not count, and sends no signal. That holds for every user,
root too, and needs no right: a filter of system calls, see seccomp(2).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FORBIDDEN = {
    # new processes, threads and programs
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "clone3": (435, 435),
    "execve": (59, 221), "execveat": (322, 281), "unshare": (272, 97), "setns": (308, 268),
    # memory that no limit of this process counts
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # other processes, and the network
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "socket": (41, 198), "socketpair": (53, 199),
    # files: none is made, changed or removed
    "creat": (85, None), "openat2": (437, 437), "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "mknod": (133, None), "mknodat": (259, 33),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "inotify_init1": (294, 26),
    # other users and rights
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setfsuid": (122, 151), "setfsgid": (123, 152),
    "setgroups": (116, 159), "capset": (126, 91),
    # the rest of the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_setup": (206, 0), "personality": (135, 92), "seccomp": (317, 277), "syslog": (103, 116), "acct": (163, 89),
    "setpriority": (141, 140), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
}  # fmt: skip
"""The numbers of system calls on x86-64 and on ARM64, None where there is no such call."""
OPENING = {"open": ((2, None), 1), "openat": ((257, 56), 2)}
"""Calls that open files, and which of their arguments says for what."""
WRITING = 0x1 | 0x2 | 0x40 | 0x200 | 0x400000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000  # refused as EPERM
PR_SET_PDEATHSIG, SIGKILL = 1, 9
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 4, 22, 38, 2


def filters_calls() -> bool:
    """Whether system calls can be filtered here: on Linux, on the two kinds of machine whose numbers are known."""
    return platform.system() == "Linux" and platform.machine() in AUDIT and struct.calcsize("P") == 8


def can_fork() -> bool:
    """Whether a process that has loaded PyTorch can be forked here."""
    return platform.system() == "Linux"


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends, however that ends."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(ctypes.c_int(PR_SET_PDEATHSIG), ctypes.c_ulong(SIGKILL))


def confine(memory: int) -> None:
    """Give up all that can be given up on this system.

    Args:
        memory: how much may be used on top of what is in use, in bytes.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = {"FSIZE": 0, "CORE": 0, "NOFILE": 64, "AS": _in_use() + memory}
    if platform.system() != "Linux":  # elsewhere the address space is not what is used
        del limits["AS"]
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    if filters_calls():
        _filter()


def _in_use() -> int:
    """The address space of this process, in bytes; 0 where that cannot be told."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _filter() -> None:
    program = _program(platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    whole = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    zero = ctypes.c_ulong(0)
    for call in (
        (PR_SET_DUMPABLE, zero, zero, zero, zero),
        (PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero),
        (PR_SET_SECCOMP, ctypes.c_ulong(FILTER), ctypes.c_void_p(ctypes.addressof(whole)), zero, zero),
    ):
        if libc.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), f"prctl {call[0]}")


def _program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter: for each step its kind, how many steps to skip where it holds and where not, and a number."""
    which = list(AUDIT).index(machine)
    steps = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, AUDIT[machine]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    steps += [(AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, KILL)]  # the same calls by other numbers
    for numbers in FORBIDDEN.values():
        if (number := numbers[which]) is not None:
            steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    for numbers, argument in OPENING.values():
        if (number := numbers[which]) is not None:
            steps += [(EQUAL, 0, 4, number), (LOAD, 0, 0, 16 + 8 * argument)]
            steps += [(ANY_BIT, 0, 1, WRITING), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return [*steps, (RETURN, 0, 0, ALLOW)]
