// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Counts what a guest's processor does within a window: instructions and bytes
 * loaded and stored, by block of code, and accesses to guest-physical ranges.
 * README.md says how it is used.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "marks.h"
#include "qemu_plugin.h"
#include "ranges.h"

EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* nopl 0x7f4d4b00|id(%rax,%rax,1) is marker `id`. */
#define MARKER_SIZE 8
static const uint8_t marker_opcode[] = { 0x0f, 0x1f, 0x84, 0x00 };
static const uint8_t marker_tag[] = { 0x4b, 0x4d, 0x7f };

enum marker {
	MARKER_START = 1,
	MARKER_END = 2,
	MARKER_READ = 3,
};

static const char *directory;
static bool counting;
static unsigned int windows;
/* What went wrong; every further window tells. */
static const char *wrong;

static void start(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/ranges", directory);
	if (!wrong)
		wrong = ranges_read(path);
	blocks_clear();
	counting = true;
}

/* Writes the window under another name first: a reader never sees a part. */
static void end(void)
{
	char path[4096], whole[4096];

	if (!counting)
		return;
	counting = false;
	snprintf(path, sizeof(path), "%s/window.new", directory);
	snprintf(whole, sizeof(whole), "%s/window-%u.json", directory,
		 windows++);

	FILE *file = fopen(path, "w");

	if (!file) {
		fprintf(stderr, "counter: can't write %s: %s\n", path,
			strerror(errno));
		return;
	}
	fputs("{\"error\":", file);
	fprintf(file, wrong ? "\"%s\"" : "null", wrong);
	fputs(",\n\"ranges\":", file);
	ranges_write(file);
	fputs(",\n\"blocks\":", file);
	blocks_write(file);
	fputs("}\n", file);
	if (fclose(file) || rename(path, whole))
		fprintf(stderr, "counter: can't write %s: %s\n", whole,
			strerror(errno));
}

static void read_marks(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/marks", directory);
	const char *bad = marks_read(path);

	if (!wrong)
		wrong = bad;
}

static void act(enum marker marker)
{
	switch (marker) {
	case MARKER_START:
		start();
		break;
	case MARKER_END:
		end();
		break;
	case MARKER_READ:
		read_marks();
		break;
	}
}

static void on_marker(unsigned int vcpu, void *data)
{
	(void)vcpu;
	act((enum marker)(uintptr_t)data);
}

/* The code stays translated when the marks are others. */
static void on_mark(unsigned int vcpu, void *data)
{
	(void)vcpu;
	act((enum marker)mark_at((uintptr_t)data));
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info,
		      uint64_t vaddr, void *data)
{
	struct block *block = data;
	unsigned int size = 1u << qemu_plugin_mem_size_shift(info);
	bool store = qemu_plugin_mem_is_store(info);

	(void)vcpu;
	if (!counting)
		return;
	if (store) {
		block->stores++;
		block->stored += size;
	} else {
		block->loads++;
		block->loaded += size;
	}
	if (ranges_any) {
		const struct qemu_plugin_hwaddr *hwaddr =
			qemu_plugin_get_hwaddr(info, vaddr);

		if (hwaddr)
			ranges_count(qemu_plugin_hwaddr_phys_addr(hwaddr), size,
				     store);
	}
}

/* 0 if the instruction is no marker. */
static unsigned int marker(const uint8_t *bytes, size_t size)
{
	if (size != MARKER_SIZE || memcmp(bytes, marker_opcode, 4) ||
	    memcmp(bytes + 5, marker_tag, 3))
		return 0;
	return bytes[4];
}

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: /* segments */
	case 0x64: case 0x65:
	case 0x66: case 0x67: /* operand and address size */
	case 0xf0: case 0xf2: case 0xf3: /* lock, repne, rep */
		return true;
	default:
		return (byte & 0xf0) == 0x40; /* REX */
	}
}

/*
 * Whether it is a string instruction with a rep prefix. With -icount QEMU runs
 * each of its iterations as an instruction of its own.
 */
static bool is_rep(const uint8_t *bytes, size_t size)
{
	bool rep = false;

	for (size_t i = 0; i < size; i++) {
		uint8_t byte = bytes[i];

		if (!is_prefix(byte))
			return rep && ((byte >= 0x6c && byte <= 0x6f) ||
				       (byte >= 0xa4 && byte <= 0xa7) ||
				       (byte >= 0xaa && byte <= 0xaf));
		rep |= byte == 0xf2 || byte == 0xf3;
	}
	return false;
}

static void translated(struct qemu_plugin_tb *tb)
{
	struct block *block = block_at(qemu_plugin_tb_vaddr(tb));
	size_t count = qemu_plugin_tb_n_insns(tb);

	if (!block) {
		wrong = "no memory for a block";
		return;
	}

	qemu_plugin_u64 entry = { block->score, block->offset };
	qemu_plugin_u64 insns = entry, reps = entry;

	entry.offset += offsetof(struct executed, entries);
	insns.offset += offsetof(struct executed, insns);
	reps.offset += offsetof(struct executed, reps);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
		tb, QEMU_PLUGIN_INLINE_ADD_U64, entry, 1);

	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[16];
		size_t size = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
		unsigned int id = marker(bytes, size);
		uint64_t pc = qemu_plugin_insn_vaddr(insn);

		/*
		 * By instruction, not by block: a block ends early when one
		 * faults or reaches a device.
		 */
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_PLUGIN_INLINE_ADD_U64,
			is_rep(bytes, size) ? reps : insns, 1);
		qemu_plugin_register_vcpu_mem_cb(insn, on_access,
						 QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, block);
		if (id)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, on_marker, QEMU_PLUGIN_CB_NO_REGS,
				(void *)(uintptr_t)id);
		else if (mark_at(pc))
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, on_mark, QEMU_PLUGIN_CB_NO_REGS,
				(void *)(uintptr_t)pc);
	}
}

#if QEMU_PLUGIN_VERSION >= 7
static void on_translation(struct qemu_plugin_tb *tb, void *data)
{
	(void)data;
	translated(tb);
}
#else
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	translated(tb);
}
#endif

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
			       int argc, char **argv)
{
	static const char key[] = "dir=";

	if (argc != 1 || strncmp(argv[0], key, sizeof(key) - 1)) {
		fprintf(stderr, "counter: needs dir=DIRECTORY\n");
		return -1;
	}
	/* Counters are neither atomic nor one for each vCPU. */
	if (!info->system_emulation || info->system.max_vcpus != 1) {
		fprintf(stderr, "counter: needs a machine with one vCPU\n");
		return -1;
	}
	directory = argv[0] + sizeof(key) - 1;
#if QEMU_PLUGIN_VERSION >= 7
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation, NULL);
#else
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
#endif
	return 0;
}
