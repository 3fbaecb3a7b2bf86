/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>
#include <stdio.h>

#include "qemu_plugin.h"

/* Counted by code that QEMU generates, so they are in a scoreboard. */
struct executed {
	uint64_t entries; /* how often the block was begun */
	uint64_t insns;   /* without those with a rep prefix */
	uint64_t reps;    /* iterations of instructions with a rep prefix */
};

/* A run of instructions without a branch, by its first one. */
struct block {
	uint64_t pc;
	struct qemu_plugin_scoreboard *score;
	size_t offset; /* of its struct executed */
	uint64_t loads, loaded; /* accesses, bytes */
	uint64_t stores, stored;
	struct block *next; /* in the hash chain */
};

/* The block that starts at a guest-virtual address. NULL without memory. */
struct block *block_at(uint64_t pc);

/* Sets all counters of all blocks to 0. */
void blocks_clear(void);

/* Writes those that counted anything as a JSON array. */
void blocks_write(FILE *file);

#endif
