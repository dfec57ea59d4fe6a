/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The objects that are added: copies of a program with other ids and lengths. */
#ifndef BID_POWER_OBJECT_H
#define BID_POWER_OBJECT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include <bid/id.h>

/* A program with a build-id: the one that runs. */
struct template
{
	char *data;
	size_t len;
	size_t id_at;
	struct bid_id id;
};

struct trial {
	const struct template *template;
	const char *mountpoint;
	char scratch[PATH_MAX]; /* outside of what is cut off */
	char store[PATH_MAX];
	uint64_t seed;
};

/* -1 if it was linked without a build-id. The caller frees its data. */
int object_template(struct template *ret_template);

/* The @number-th object of a trial: its id and all its bytes follow from the number. The caller frees it. */
char *object_make(const struct trial *trial, uint32_t number, struct bid_id *ret_id, size_t *ret_len);

/* Write it, as the file @path, which is not synced. Returns 0 or a negative errno. */
int object_write(const char *path, const char *data, size_t len);

#endif
