#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the kernel's own ncdevmem, and nothing else, from the kernel's source into a folder: the makefile
# of the selftests would build all of them, and write into the source.
#
# Usage: ncdevmem.sh LINUX HEADERS FOLDER, after `make -C LINUX O=HEADERS headers`
set -e
linux=$1
headers=$2/usr/include
folder=$3
ynl=$linux/tools/net/ynl

mkdir -p "$folder"
# The netlink families that it speaks are generated from their specifications.
generate() {
    family=$1
    shift
    for part in header source; do
        test $part = header && suffix=h || suffix=c
        python3 -B "$ynl/pyynl/ynl_gen_c.py" --mode user --$part "$@" \
            --spec "$linux/Documentation/netlink/specs/$family.yaml" -o "$folder/$family-user.$suffix"
    done
}
generate netdev
# As tools/net/ynl/generated/Makefile does.
generate ethtool --user-header linux/ethtool_netlink.h --exclude-op stats-get
# Its sender waits half a second for a completion, which an emulated machine can miss.
sed 's/waittime_ms = 500;/waittime_ms = 60000;/' \
    "$linux/tools/testing/selftests/drivers/net/hw/ncdevmem.c" >"$folder/ncdevmem.c"
gcc -O2 -w -I "$headers" -I "$folder" -I "$ynl/lib" -o "$folder/ncdevmem" \
    "$folder/ncdevmem.c" "$folder/netdev-user.c" "$folder/ethtool-user.c" "$ynl/lib/ynl.c"
