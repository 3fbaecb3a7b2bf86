/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef RANGES_H
#define RANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Reads the guest-physical ranges to watch, in place of former ones, and sets
 * their counters to 0. A line is "<start> <length> <label>", in hexadecimal;
 * ranges with the same label are counted together. No file means no ranges.
 *
 * Returns what is wrong with the file, or NULL.
 */
const char *ranges_read(const char *path);

/* Whether there is anything to watch. */
extern bool ranges_any;

/* Counts an access by a vCPU. */
void ranges_count(uint64_t address, unsigned int size, bool store);

/* Writes the counters as a JSON object by label. */
void ranges_write(FILE *file);

#endif
