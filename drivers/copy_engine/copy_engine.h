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
 *   ...                                              // write a descriptor
 *   ioctl(engine, COPY_ENGINE_IOC_SUBMIT, 1);
 *   ioctl(engine, COPY_ENGINE_IOC_WAIT, &wait);
 *
 * After the device is gone all fail with ENODEV.
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
 * Has the engine execute descriptors. The argument itself says how many there
 * have been since the queue was started, modulo 2^32. Fails with ENOTCONN if
 * the queue does not run.
 */
#define COPY_ENGINE_IOC_SUBMIT	_IO(COPY_ENGINE_IOC_MAGIC, 0x02)

/*
 * Waits until so many descriptors are completed; one of them must ask for an
 * interrupt. Fails with ETIMEDOUT, EINTR, EIO if the queue came to rest because
 * its ring is not in its window or there were more descriptors than fit.
 */
#define COPY_ENGINE_IOC_WAIT	_IOWR(COPY_ENGINE_IOC_MAGIC, 0x03, struct copy_engine_wait)

/* Stops the queue. What is not completed then won't be. */
#define COPY_ENGINE_IOC_STOP	_IO(COPY_ENGINE_IOC_MAGIC, 0x04)

#endif
