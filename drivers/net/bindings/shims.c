// SPDX-License-Identifier: GPL-2.0
/*
 * One object of all of them, as the kernel's own rust/helpers/helpers.c is.
 */

#include "shims.h"

#include "shims/netdevice.c"
#include "shims/tx_queue.c"
#include "shims/napi.c"
/* What the next ones use of it comes first. */
#include "shims/page_pool.c"
#include "shims/skbuff.c"
#include "shims/dma.c"
#include "shims/xdp.c"
#include "shims/ptp.c"
#include "shims/xsk.c"
