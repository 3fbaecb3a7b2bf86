// SPDX-License-Identifier: GPL-2.0

#include <linux/ptp_clock_kernel.h>

/* NULL if the kernel has no PTP clocks. */
struct ptp_clock *net_shim_ptp_register(struct ptp_clock_info *info, struct device *parent)
{
	return ptp_clock_register(info, parent);
}

void net_shim_ptp_unregister(struct ptp_clock *ptp)
{
	ptp_clock_unregister(ptp);
}

int net_shim_ptp_index(struct ptp_clock *ptp)
{
	return ptp_clock_index(ptp);
}

void net_shim_ptp_schedule_worker(struct ptp_clock *ptp)
{
	ptp_schedule_worker(ptp, 0);
}

void net_shim_ptp_cancel_worker(struct ptp_clock *ptp)
{
	ptp_cancel_worker_sync(ptp);
}

/* @sts may be NULL. */
void net_shim_ptp_read_system_prets(struct ptp_system_timestamp *sts)
{
	ptp_read_system_prets(sts);
}

void net_shim_ptp_read_system_postts(struct ptp_system_timestamp *sts)
{
	ptp_read_system_postts(sts);
}
