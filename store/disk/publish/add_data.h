/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recognise the image of a vDSO, which bid_store_add_data() stores. */
#ifndef BID_DISK_ADD_DATA_H
#define BID_DISK_ADD_DATA_H

#include <stdbool.h>

/* Is the ELF file open at @fd the image of a vDSO: has @path a name of one, and contains the file the kernel's name? */
bool bid_is_vdso_image(const char *path, int fd);

#endif
