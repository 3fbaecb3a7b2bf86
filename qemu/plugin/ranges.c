// SPDX-License-Identifier: MIT OR Apache-2.0

/* Guest-physical ranges, and what vCPUs load and store there. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ranges.h"

#define LABELS 32
#define LABEL_LENGTH 32

struct range {
	uint64_t start, end;
	unsigned int label;
};

struct label {
	char name[LABEL_LENGTH];
	uint64_t loads, loaded; /* accesses, bytes */
	uint64_t stores, stored;
};

static struct range *ranges;
static size_t range_count;
static struct label labels[LABELS];
static unsigned int label_count;

bool ranges_any;

/* Reads a hexadecimal number and the blank behind it; NULL if there is none. */
static const char *number(const char *text, uint64_t *value)
{
	const char *digits = "0123456789abcdef";
	const char *at = text;

	*value = 0;
	for (const char *digit; *at && (digit = strchr(digits, *at)); at++)
		*value = *value << 4 | (uint64_t)(digit - digits);
	return at > text && *at == ' ' ? at + 1 : NULL;
}

static const char *add_label(const char *name, unsigned int *index)
{
	size_t length = strcspn(name, "\n");

	if (!length || length >= LABEL_LENGTH || memchr(name, '"', length))
		return "a label that is empty, too long or quoted";
	for (*index = 0; *index < label_count; ++*index)
		if (strlen(labels[*index].name) == length &&
		    !memcmp(labels[*index].name, name, length))
			return NULL;
	if (label_count == LABELS)
		return "too many labels";
	memset(&labels[label_count], 0, sizeof(labels[0]));
	memcpy(labels[label_count++].name, name, length);
	return NULL;
}

static const char *add_range(const char *line)
{
	struct range range;
	uint64_t length;
	const char *at = number(line, &range.start);

	at = at ? number(at, &length) : NULL;
	if (!at || !length || range.start + length < range.start)
		return "a line that is no range";
	range.end = range.start + length;

	const char *wrong = add_label(at, &range.label);

	if (wrong)
		return wrong;
	if (!(range_count & (range_count - 1))) {
		size_t room = range_count ? 2 * range_count : 1;
		struct range *more = realloc(ranges, room * sizeof(*more));

		if (!more)
			return "no memory";
		ranges = more;
	}
	ranges[range_count++] = range;
	return NULL;
}

static int by_start(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

const char *ranges_read(const char *path)
{
	FILE *file = fopen(path, "r");
	const char *wrong = NULL;
	char line[128];

	range_count = 0;
	label_count = 0;
	ranges_any = false;
	if (!file)
		return NULL;
	while (!wrong && fgets(line, sizeof(line), file))
		wrong = add_range(line);
	fclose(file);
	if (wrong)
		return wrong;

	qsort(ranges, range_count, sizeof(*ranges), by_start);
	for (size_t i = 1; i < range_count; i++)
		if (ranges[i].start < ranges[i - 1].end)
			return "ranges that overlap";
	ranges_any = range_count > 0;
	return NULL;
}

void ranges_count(uint64_t address, unsigned int size, bool store)
{
	/* The first range that starts behind the address. */
	size_t low = 0, high = range_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= ranges[low - 1].end)
		return;

	struct label *label = &labels[ranges[low - 1].label];

	if (store) {
		label->stores++;
		label->stored += size;
	} else {
		label->loads++;
		label->loaded += size;
	}
}

void ranges_write(FILE *file)
{
	fputs("{", file);
	for (unsigned int i = 0; i < label_count; i++) {
		const struct label *label = &labels[i];

		fprintf(file,
			"%s\"%s\":{\"loads\":%" PRIu64 ",\"loaded\":%" PRIu64
			",\"stores\":%" PRIu64 ",\"stored\":%" PRIu64 "}",
			i ? "," : "", label->name, label->loads,
			label->loaded, label->stores, label->stored);
	}
	fputs("}", file);
}
