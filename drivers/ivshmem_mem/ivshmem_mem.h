/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What programs ask of /dev/ivshmem_mem0, 1, ...: parts of the memory behind
 * BAR 2 of an ivshmem device, as dma-bufs.
 *
 * The memory is the device's, not the host's. Other devices reach it by
 * peer-to-peer DMA; where there is no way between the two, attaching the
 * dma-buf (binding it to a queue, for example) fails with EXDEV and the
 * kernel's log says why. The CPU reaches it by mmap() of the dma-buf, MAP_SHARED
 * only; DMA_BUF_IOCTL_SYNC goes around that as with any dma-buf.
 *
 * All of it is zero when it is allocated, and it is free again when the last
 * reference to the dma-buf is gone: file descriptors, mappings, and devices
 * that use it.
 */
#ifndef _UAPI_IVSHMEM_MEM_H
#define _UAPI_IVSHMEM_MEM_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct ivshmem_mem_alloc - a request for memory
 * @size:   in: how many bytes, a multiple of the page size, not 0
 * @align:  in: what @offset must be a multiple of: a power of two, the page
 *          size or more; 0 is the page size. As a BAR's address is a multiple
 *          of its size, this holds for the memory's address as well.
 * @flags:  in: of the file: O_CLOEXEC, and O_RDWR, O_RDONLY or O_WRONLY;
 *          mmap() to write needs O_RDWR
 * @fd:     out: the dma-buf
 * @offset: out: where in the BAR it begins, in bytes
 */
struct ivshmem_mem_alloc {
	__u64 size;
	__u64 align;
	__u32 flags;
	__s32 fd;
	__u64 offset;
};

/**
 * struct ivshmem_mem_info - what a device has
 * @size:    out: bytes of memory
 * @free:    out: bytes that are not allocated; they need not be in one piece
 * @address: out: of the memory, as the CPU sees it (physical)
 */
struct ivshmem_mem_info {
	__u64 size;
	__u64 free;
	__u64 address;
};

#define IVSHMEM_MEM_IOC_MAGIC	0xDB

/*
 * Allocates. Fails with EINVAL if a field isn't as described, ENOMEM if there
 * is no such range, ENODEV if the device is gone or going, EMFILE or ENFILE if
 * there are too many files.
 */
#define IVSHMEM_MEM_IOC_ALLOC	_IOWR(IVSHMEM_MEM_IOC_MAGIC, 0x00, struct ivshmem_mem_alloc)

/* Tells size, free space and address. */
#define IVSHMEM_MEM_IOC_INFO	_IOR(IVSHMEM_MEM_IOC_MAGIC, 0x01, struct ivshmem_mem_info)

#endif
