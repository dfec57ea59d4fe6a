/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of records in packs share: records that are told by a number, which is also the size that they say. */
#ifndef BID_TEST_PACK_SCENE_H
#define BID_TEST_PACK_SCENE_H

#include "store_scene.h"

#include <jansson.h>

#include "disk/record.h"

/* All ids begin with the byte 0x17. */
struct bid_request request_of(unsigned number);
struct bid_record record_of(unsigned number);

/* The records of @n numbers from @first on, together. */
void write_batch(struct bid_store *store, unsigned first, unsigned n);

/* The size that is recorded, or a negative errno. */
json_int_t recorded(struct bid_store *store, unsigned number);

/* In the directory @path of the scene's store. */
unsigned count_files(const struct store_scene *scene, const char *path);

/* The scene's store once more; the caller frees it. */
struct bid_store *open_again(const struct store_scene *scene, unsigned flags);

#endif
