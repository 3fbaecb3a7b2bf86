/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * Marks a window of a program: `nobounce exec --counted` says what the
 * processor did within it. A marker is an instruction that does nothing, so
 * that a program may keep it, on any machine; the counter in QEMU
 * (qemu/plugin) recognizes it.
 *
 *	nobounce_window_start();
 *	receive();
 *	nobounce_window_end();
 */

#ifndef NOBOUNCE_H
#define NOBOUNCE_H

#ifdef __x86_64__
/* nopl tag(%rax,%rax,1) */
#define NOBOUNCE_MARK(tag) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .long " #tag ::: "memory")
#else
#define NOBOUNCE_MARK(tag) ((void)0)
#endif

/* Starts a window: counters are 0 now. Within a window, starts it anew. */
static inline void nobounce_window_start(void)
{
	NOBOUNCE_MARK(0x7f4d4b01);
}

/* Ends the window, and has its counts written. Without one it does nothing. */
static inline void nobounce_window_end(void)
{
	NOBOUNCE_MARK(0x7f4d4b02);
}

#endif
