#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Receives a TCP stream into a dma-buf, and prints how much came and its SHA-256."""
import dmabuf, hashlib, mmap, os, socket, struct, sys

SIZE, MSG_SOCK_DEVMEM, SO_DEVMEM_DMABUF, SO_DEVMEM_DONTNEED = 16 << 20, 0x2000000, 79, 80


def genl(family, command, attributes):
    netlink.send(struct.pack("IHHIIBBH", 20 + len(attributes), family, 1, 1, 0, command, 1, 0) + attributes)
    answer = netlink.recv(65536)
    if struct.unpack_from("H", answer, 4)[0] == 2:  # NLMSG_ERROR
        raise OSError(-struct.unpack_from("i", answer, 16)[0], "refused by the kernel")
    return answer


fd = dmabuf.accelerator(SIZE) if "accelerator" in sys.argv else dmabuf.ordinary(SIZE)
memory = memoryview(mmap.mmap(fd, SIZE))

# The netdev family's number, and NETDEV_CMD_BIND_RX: interface, queue (of type RX), dma-buf.
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
answer = genl(16, 3, struct.pack("HH8s", 11, 2, b"netdev"))
family = struct.unpack_from("H", answer, answer.index(struct.pack("HH", 6, 1)) + 4)[0]
interface, queue = (int(os.environ[name]) for name in ("NOBOUNCE_IFINDEX", "NOBOUNCE_QUEUE"))
genl(family, 13, struct.pack("HHI HHHHIHHI HHI", 8, 1, interface, 20, 0x8002, 8, 1, queue, 8, 3, 0, 8, 3, fd))

stream, _ = socket.create_server((os.environ["NOBOUNCE_ADDRESS"], 5000)).accept()
digest, total = hashlib.sha256(), 0
while messages := stream.recvmsg(1 << 20, 8192, MSG_SOCK_DEVMEM)[1]:
    for _, kind, message in messages:
        assert kind == SO_DEVMEM_DMABUF, "not split: it is in the buffer that recvmsg was given"
        offset, size, token, _, _ = struct.unpack("QIIII", message)
        digest.update(memory[offset : offset + size])
        stream.setsockopt(socket.SOL_SOCKET, SO_DEVMEM_DONTNEED, struct.pack("II", token, 1))
        total += size
print(total, digest.hexdigest())
