// SPDX-License-Identifier: GPL-2.0

#include <linux/ethtool.h>

void net_shim_ethtool_puts(u8 **data, const char *str)
{
	ethtool_puts(data, str);
}
