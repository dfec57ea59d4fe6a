/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The objects to add: copies of a program with other ids and lengths. */
#ifndef BID_POWER_OBJECT_H
#define BID_POWER_OBJECT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include <bid/id.h>

/* A program with a build-id: this one. */
struct template
{
	char *data;
	size_t len;
	size_t id_at;
	struct bid_id id;
};

struct power_trial {
	const struct template *template;
	const char *mountpoint;
	char scratch[PATH_MAX]; /* outside the file system that is shut down */
	char store[PATH_MAX];
	uint64_t seed;
};

/* Returns -1 for a program without a build-id. The caller frees its data. */
int object_template(struct template *ret_template);

/* The @number-th object of a trial: its id and all its bytes follow from the number. The caller frees it. */
char *object_make(const struct power_trial *trial, uint32_t number, struct bid_id *ret_id, size_t *ret_len);

/* Write it to the file @path, without a sync. Returns 0 or a negative errno. */
int object_write(const char *path, const char *data, size_t len);

#endif
