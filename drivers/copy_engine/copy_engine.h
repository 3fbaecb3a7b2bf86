/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What programs ask of /dev/copy_engine0, 1, ...: a work queue of an
 * accelerator's engine, which copies, fills, compares and adds what is in
 * dma-bufs. Descriptors, fragments and completions are laid out as the crate
 * `engine` says (drivers/engine).
 *
 * An open file is a work queue of its own. It reaches the dma-bufs that were
 * imported into it, each through a window, and nothing else; closing it ends
 * that. The ring of descriptors is in one of them: the program writes them
 * there itself, and sees in them what became of them.
 *
 *   int engine = open("/dev/copy_engine0", O_RDWR | O_CLOEXEC);
 *   ioctl(engine, COPY_ENGINE_IOC_IMPORT, &import);  // memory with the ring
 *   ioctl(engine, COPY_ENGINE_IOC_START, &start);
 *   portal = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, engine, 0);
 *   ...                                              // write a descriptor
 *   portal[TAIL] = 1;                                // no system call
 *   ioctl(engine, COPY_ENGINE_IOC_WAIT, &wait);
 *
 * The first page of the file is the queue's portal, whose registers the crate
 * `engine` describes: TAIL has the device execute descriptors, and HEAD says
 * how many it has. A child does not inherit the mapping. What else has to do
 * with descriptors, a count that is none of the queue's included, is between
 * the program and the device.
 *
 * After the device is gone all ioctls fail with ENODEV, and access to the
 * portal raises SIGBUS.
 */
#ifndef _UAPI_COPY_ENGINE_H
#define _UAPI_COPY_ENGINE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct copy_engine_import - memory that the queue is to reach
 * @fd:     in: a dma-buf, which must be one range for the device
 * @window: out: the window that it is behind
 * @size:   out: bytes of it
 */
struct copy_engine_import {
	__s32 fd;
	__u32 window;
	__u64 size;
};

/**
 * struct copy_engine_start - where the ring is
 * @window: in: the window of the memory that it is in
 * @size:   in: binary logarithm of the count of descriptors, at most 10
 * @offset: in: where it begins, in bytes, a multiple of 64
 */
struct copy_engine_start {
	__u32 window;
	__u32 size;
	__u64 offset;
};

/**
 * struct copy_engine_wait - waits for completions
 * @head:       in: how many descriptors must be completed, modulo 2^32;
 *              out: how many are
 * @timeout_ms: in: how long to wait at most
 */
struct copy_engine_wait {
	__u32 head;
	__u32 timeout_ms;
};

/**
 * struct copy_engine_hold - a TX queue of a NIC
 * @nic:   in: the number of its auxiliary device, rigb.doorbell.<nic>
 * @queue: in: which TX queue
 */
struct copy_engine_hold {
	__u32 nic;
	__u32 queue;
};

#define COPY_ENGINE_IOC_MAGIC	0xDC

/*
 * Imports a dma-buf. Fails with EBADF or EINVAL if there is none behind the
 * descriptor, EOPNOTSUPP if it is in pieces, ENOSPC without a free window,
 * EXDEV if the device has no peer-to-peer path to it.
 */
#define COPY_ENGINE_IOC_IMPORT	_IOWR(COPY_ENGINE_IOC_MAGIC, 0x00, struct copy_engine_import)

/* Starts the queue, with no descriptor. Fails with EBUSY if it runs. */
#define COPY_ENGINE_IOC_START	_IOW(COPY_ENGINE_IOC_MAGIC, 0x01, struct copy_engine_start)

/*
 * Waits until so many descriptors are completed; one of them must ask for an
 * interrupt. Fails with ETIMEDOUT, EINTR, EIO if the queue came to rest because
 * its ring is not in its window or there were more descriptors than fit.
 */
#define COPY_ENGINE_IOC_WAIT	_IOWR(COPY_ENGINE_IOC_MAGIC, 0x02, struct copy_engine_wait)

/* Stops the queue. What is not completed then won't be. */
#define COPY_ENGINE_IOC_STOP	_IO(COPY_ENGINE_IOC_MAGIC, 0x03)

/*
 * Has a TX queue of a NIC keep what is sent from now on: frames are put on its
 * ring, and the tail is not written. It takes CAP_NET_ADMIN, as it stops all
 * that is sent on the queue. After a second the NIC's driver goes on by itself.
 * A work queue rings for one TX queue, and a TX queue is rung for by one.
 * Fails with ENODEV if there is no such NIC, EINVAL if it has no such queue,
 * ENETDOWN if that has no ring, EBUSY if it is held or taken, EXDEV if the
 * device has no peer-to-peer path to it.
 */
#define COPY_ENGINE_IOC_HOLD	_IOW(COPY_ENGINE_IOC_MAGIC, 0x04, struct copy_engine_hold)

/*
 * Has the next descriptor with a signal that is done without an error ring for
 * what is kept by now; what comes later is rung for when that has been sent.
 * Fails with EAGAIN if nothing is kept yet, ENOTCONN if it is too late, EBUSY
 * if this was done before.
 */
#define COPY_ENGINE_IOC_ARM	_IO(COPY_ENGINE_IOC_MAGIC, 0x05)

#endif
