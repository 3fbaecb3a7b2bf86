// SPDX-License-Identifier: GPL-2.0

#include <linux/ethtool.h>
#include <linux/netlink.h>

void net_shim_ethtool_puts(u8 **data, const char *str)
{
	ethtool_puts(data, str);
}

/* @msg must live as long as the kernel does, or the module: a literal. */
void net_shim_set_extack(struct netlink_ext_ack *extack, const char *msg)
{
	if (extack)
		extack->_msg = msg;
}
