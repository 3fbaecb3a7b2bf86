#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Receives a TCP stream into a dma-buf, and prints how much came and its SHA-256.

The dma-buf is of the accelerator's memory if the argument says so, and of a memfd otherwise."""
import fcntl, hashlib, mmap, os, socket, struct, sys

SIZE = 16 << 20
MSG_SOCK_DEVMEM, SO_DEVMEM_LINEAR, SO_DEVMEM_DONTNEED = 0x2000000, 78, 80


def attr(kind, value):
    value = value if isinstance(value, bytes) else struct.pack("I", value)
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def genl(netlink, family, command, attributes):
    body = struct.pack("BBH", command, 1, 0) + attributes
    netlink.send(struct.pack("IHHII", 16 + len(body), family, 1, 1, 0) + body)
    answer = netlink.recv(65536)
    if struct.unpack_from("H", answer, 4)[0] == 2:  # NLMSG_ERROR
        error = -struct.unpack_from("i", answer, 16)[0]
        raise OSError(error, os.strerror(error))
    return answer


# A dma-buf of the accelerator's memory, or of a memfd.
if "accelerator" in sys.argv:
    accelerator = os.open(os.environ["NOBOUNCE_ACCELERATOR"], os.O_RDWR)
    request = bytearray(struct.pack("QQIiQ", SIZE, 4096, os.O_RDWR | os.O_CLOEXEC, -1, 0))
    fcntl.ioctl(accelerator, 0xC020DB00, request)  # IVSHMEM_MEM_IOC_ALLOC
    dmabuf = struct.unpack_from("i", request, 20)[0]
else:
    memfd = os.memfd_create("payload", os.MFD_ALLOW_SEALING)
    os.ftruncate(memfd, SIZE)
    fcntl.fcntl(memfd, 1033, 2)  # F_ADD_SEALS, F_SEAL_SHRINK
    request = bytearray(struct.pack("IIQQ", memfd, 0, 0, SIZE))
    dmabuf = fcntl.ioctl(os.open("/dev/udmabuf", os.O_RDWR), 0x40187542, request)  # UDMABUF_CREATE
memory = memoryview(mmap.mmap(dmabuf, SIZE))

# Bind it to the queue: NETDEV_CMD_BIND_RX of the netdev family, whose number the controller knows.
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
answer = genl(netlink, 16, 3, attr(2, b"netdev\0"))
family = struct.unpack_from("H", answer, answer.index(struct.pack("HH", 6, 1)) + 4)[0]
queue = attr(1, int(os.environ["NOBOUNCE_QUEUE"])) + attr(3, 0)
genl(netlink, family, 13, attr(1, int(os.environ["NOBOUNCE_IFINDEX"])) + attr(0x8002, queue) + attr(3, dmabuf))

server = socket.create_server((os.environ["NOBOUNCE_ADDRESS"], 5000))
stream, peer = server.accept()
digest, total = hashlib.sha256(), 0
while True:
    data, messages, _, _ = stream.recvmsg(1 << 20, 8192, MSG_SOCK_DEVMEM)
    if not messages:
        break
    for _, kind, message in messages:
        offset, size, token, _, _ = struct.unpack("QIIII", message)
        if kind == SO_DEVMEM_LINEAR:  # not split: it is in the buffer that recvmsg was given
            piece, data = data[:size], data[size:]
        else:
            piece = memory[offset : offset + size]
            stream.setsockopt(socket.SOL_SOCKET, SO_DEVMEM_DONTNEED, struct.pack("II", token, 1))
        digest.update(piece)
        total += size
print(total, digest.hexdigest())
