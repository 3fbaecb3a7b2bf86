// SPDX-License-Identifier: GPL-2.0

#include <linux/dim.h>

void net_shim_dim_init(struct dim *dim, void (*work)(struct work_struct *))
{
	memset(dim, 0, sizeof(*dim));
	dim->mode = DIM_CQ_PERIOD_MODE_START_FROM_EQE;
	INIT_WORK(&dim->work, work);
}

void net_shim_dim_sample(struct dim *dim, u16 events, u64 packets, u64 bytes)
{
	struct dim_sample sample = {};

	dim_update_sample(events, packets, bytes, &sample);
	net_dim(dim, &sample);
}

u16 net_shim_dim_rx_usec(const struct dim *dim)
{
	return net_dim_get_rx_moderation(dim->mode, dim->profile_ix).usec;
}
