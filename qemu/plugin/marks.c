// SPDX-License-Identifier: MIT OR Apache-2.0

/* Guest-virtual addresses whose instructions are markers. */

#include <inttypes.h>
#include <stdio.h>

#include "marks.h"

#define MARKS 8

static struct {
	uint64_t pc;
	unsigned int marker;
} marks[MARKS];
static unsigned int mark_count;

const char *marks_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[64];

	mark_count = 0;
	if (!file)
		return NULL;
	while (fgets(line, sizeof(line), file)) {
		if (mark_count == MARKS ||
		    sscanf(line, "%" SCNx64 " %x", &marks[mark_count].pc,
			   &marks[mark_count].marker) != 2) {
			fclose(file);
			return "a line that is no mark, or too many";
		}
		mark_count++;
	}
	fclose(file);
	return NULL;
}

unsigned int mark_at(uint64_t pc)
{
	for (unsigned int i = 0; i < mark_count; i++)
		if (marks[i].pc == pc)
			return marks[i].marker;
	return 0;
}
