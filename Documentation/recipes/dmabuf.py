# SPDX-License-Identifier: MIT OR Apache-2.0
"""Dma-bufs, as file descriptors: of the accelerator's memory, or of ordinary memory.

python3 dmabuf.py MIB CMD...: run CMD with a dma-buf of the accelerator's memory, as fd:NUMBER in its last argument."""
import fcntl, os, struct, sys


def accelerator(size):
    node = os.open(os.environ["NOBOUNCE_ACCELERATOR"], os.O_RDWR)
    request = bytearray(struct.pack("QQIiQ", size, 4096, os.O_RDWR | os.O_CLOEXEC, -1, 0))
    fcntl.ioctl(node, 0xC020DB00, request)  # IVSHMEM_MEM_IOC_ALLOC
    return struct.unpack_from("i", request, 20)[0]


def ordinary(size):
    memfd = os.memfd_create("payload", os.MFD_ALLOW_SEALING)
    os.ftruncate(memfd, size)
    fcntl.fcntl(memfd, 1033, 2)  # F_ADD_SEALS, F_SEAL_SHRINK
    request = bytearray(struct.pack("IIQQ", memfd, 0, 0, size))
    return fcntl.ioctl(os.open("/dev/udmabuf", os.O_RDWR), 0x40187542, request)  # UDMABUF_CREATE


if __name__ == "__main__":
    fd = accelerator(int(sys.argv[1]) << 20)
    os.set_inheritable(fd, True)
    os.execvp(sys.argv[2], [*sys.argv[2:], f"fd:{fd}"])
