/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef MARKS_H
#define MARKS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads the addresses whose instructions are markers, in place of former ones.
 * A line is "<address> <marker>", in hexadecimal. No file means no addresses.
 *
 * Returns what is wrong with the file, or NULL.
 */
const char *marks_read(const char *path);

/* The marker at a guest-virtual address; 0 if there is none. */
unsigned int mark_at(uint64_t pc);

#endif
