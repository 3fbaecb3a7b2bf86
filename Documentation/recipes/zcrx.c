// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Receives a TCP stream by io_uring's zero-copy receive, and writes it to standard output: the NIC puts
 * payload into the memory of this program.
 *
 * Usage: zcrx IFINDEX QUEUE PORT. Nothing but the kernel's headers is needed (7.0 or newer).
 */
#include <arpa/inet.h>
#include <err.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AREA (16 << 20)
#define BUFFERS (AREA / 4096)

#define load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

static void *map(size_t len, int flags, int fd, off_t offset)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, offset);

	if (memory == MAP_FAILED)
		err(1, "mmap");
	return memory;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: zcrx IFINDEX QUEUE PORT");

	/* A ring whose completions have room for an offset; it belongs to this thread. */
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQE32 | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_NO_SQARRAY | IORING_SETUP_CQSIZE,
		.cq_entries = BUFFERS,
	};
	int ring = syscall(SYS_io_uring_setup, 1, &params);

	if (ring < 0)
		err(1, "io_uring_setup");

	/* Submission and completion queue are one mapping. */
	size_t len = params.cq_off.cqes + params.cq_entries * 2 * sizeof(struct io_uring_cqe);
	char *queues = map(len, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *sqe = map(sizeof(*sqe), MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
	unsigned int *sq_tail = (void *)(queues + params.sq_off.tail);
	unsigned int *cq_head = (void *)(queues + params.cq_off.head);
	unsigned int *cq_tail = (void *)(queues + params.cq_off.tail);
	struct io_uring_cqe *cqes = (void *)(queues + params.cq_off.cqes);

	/* The queue receives into an area, and takes what was read from a refill ring. */
	char *area = map(AREA, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	size_t region_len = 4096 + 2 * BUFFERS * sizeof(struct io_uring_zcrx_rqe);
	char *region = map(region_len, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct io_uring_region_desc region_desc = {
		.user_addr = (__u64)region, .size = region_len, .flags = IORING_MEM_REGION_TYPE_USER,
	};
	struct io_uring_zcrx_area_reg area_reg = { .addr = (__u64)area, .len = AREA };
	struct io_uring_zcrx_ifq_reg queue = {
		.if_idx = atoi(argv[1]), .if_rxq = atoi(argv[2]), .rq_entries = 2 * BUFFERS,
		.area_ptr = (__u64)&area_reg, .region_ptr = (__u64)&region_desc,
	};

	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_ZCRX_IFQ, &queue, 1))
		err(1, "cannot receive into memory of this program from that queue");

	unsigned int *refill_tail = (void *)(region + queue.offsets.tail);
	struct io_uring_zcrx_rqe *refill = (void *)(region + queue.offsets.rqes);

	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(argv[3])) };
	int listener = socket(AF_INET6, SOCK_STREAM, 0);

	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 1))
		err(1, "cannot listen");

	int stream = accept(listener, NULL, NULL);
	unsigned long total = 0;
	int armed = 0, ended = 0;

	while (!ended) {
		/* One request goes on until the stream ends or the completion queue is full. */
		if (!armed) {
			*sqe = (struct io_uring_sqe){
				.opcode = IORING_OP_RECV_ZC, .fd = stream,
				.ioprio = IORING_RECV_MULTISHOT, .zcrx_ifq_idx = queue.zcrx_id,
			};
			store(sq_tail, *sq_tail + 1);
		}
		if (syscall(SYS_io_uring_enter, ring, !armed, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			err(1, "io_uring_enter");
		armed = 1;

		unsigned int head = *cq_head, end = load(cq_tail), returned = *refill_tail;

		for (; head != end; head++) {
			struct io_uring_cqe *cqe = cqes + 2 * (head & (params.cq_entries - 1));
			struct io_uring_zcrx_cqe *piece = (void *)(cqe + 1);
			__u64 offset = piece->off & ~IORING_ZCRX_AREA_MASK;

			if (!(cqe->flags & IORING_CQE_F_MORE))
				armed = 0;
			if (cqe->res <= 0) {
				if (cqe->res < 0)
					errx(1, "cannot receive: errno %d", -cqe->res);
				ended = 1;
				continue;
			}
			if (fwrite(area + offset, cqe->res, 1, stdout) != 1)
				err(1, "standard output");
			total += cqe->res;
			refill[returned++ & (2 * BUFFERS - 1)] = (struct io_uring_zcrx_rqe){
				.off = offset | area_reg.rq_area_token, .len = cqe->res,
			};
		}
		store(cq_head, head);
		store(refill_tail, returned);
	}
	fflush(stdout);
	fprintf(stderr, "%lu bytes\n", total);
	return 0;
}
