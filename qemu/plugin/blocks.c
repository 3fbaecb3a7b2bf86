// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Counters by translation block. A block's address stays the same when QEMU
 * forgets and translates it again, and the generated code holds pointers to the
 * counters, so a block is never freed.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"

/* A guest executes some 50,000 blocks. */
#define BUCKETS (1u << 16)
/* QEMU makes a scoreboard for 16 vCPUs at once: this takes 768 KiB. */
#define CHUNK 2048

struct chunk {
	struct block blocks[CHUNK];
	struct qemu_plugin_scoreboard *score;
	size_t used;
	struct chunk *next;
};

static struct block *buckets[BUCKETS];
static struct chunk *chunks;

static struct block **bucket(uint64_t pc)
{
	/* Fibonacci hashing: the upper bits of the product depend on all. */
	return &buckets[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> 48];
}

static struct block *new_block(void)
{
	struct chunk *chunk = chunks;

	if (!chunk || chunk->used == CHUNK) {
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->score = qemu_plugin_scoreboard_new(
			CHUNK * sizeof(struct executed));
		chunk->next = chunks;
		chunks = chunk;
	}

	struct block *block = &chunk->blocks[chunk->used];

	block->score = chunk->score;
	block->offset = chunk->used++ * sizeof(struct executed);
	return block;
}

struct block *block_at(uint64_t pc)
{
	struct block **head = bucket(pc);

	for (struct block *block = *head; block; block = block->next)
		if (block->pc == pc)
			return block;

	struct block *block = new_block();

	if (!block)
		return NULL;
	block->pc = pc;
	block->next = *head;
	*head = block;
	return block;
}

void blocks_clear(void)
{
	for (struct chunk *chunk = chunks; chunk; chunk = chunk->next) {
		memset(qemu_plugin_scoreboard_find(chunk->score, 0), 0,
		       CHUNK * sizeof(struct executed));
		for (size_t i = 0; i < chunk->used; i++) {
			struct block *block = &chunk->blocks[i];

			block->loads = block->loaded = 0;
			block->stores = block->stored = 0;
		}
	}
}

void blocks_write(FILE *file)
{
	const char *before = "";

	fputs("[", file);
	for (struct chunk *chunk = chunks; chunk; chunk = chunk->next) {
		const struct executed *all =
			qemu_plugin_scoreboard_find(chunk->score, 0);

		for (size_t i = 0; i < chunk->used; i++) {
			const struct block *block = &chunk->blocks[i];
			const struct executed *done = &all[i];

			if (!done->entries && !done->insns && !done->reps &&
			    !block->loads && !block->stores)
				continue;
			fprintf(file,
				"%s\n[%" PRIu64 ",%" PRIu64 ",%" PRIu64
				",%" PRIu64 ",%" PRIu64 ",%" PRIu64
				",%" PRIu64 ",%" PRIu64 "]",
				before, block->pc, done->entries, done->insns,
				done->reps, block->loads, block->loaded,
				block->stores, block->stored);
			before = ",";
		}
	}
	fputs("]", file);
}
