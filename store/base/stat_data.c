// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/stat_data.h"

#include <stdint.h>
#include <time.h>

#include "base/clock.h"

struct bid_stat_data bid_stat_data_of(const struct stat *st)
{
	static const int64_t second = 1000000000, tick = 20 * 1000 * 1000;
	struct timespec now;
	int64_t age;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (int64_t)(now.tv_sec - st->st_ctim.tv_sec) * second + (now.tv_nsec - st->st_ctim.tv_nsec);
	return (struct bid_stat_data){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime = st->st_mtim,
		.changed = st->st_ctim,
		.racy = age < (st->st_ctim.tv_nsec == 0 && st->st_mtim.tv_nsec == 0 ? 2 * second : tick),
	};
}

bool bid_stat_data_matches(const struct bid_stat_data *stat_data, const struct stat *st)
{
	return stat_data->ino == st->st_ino && stat_data->dev == st->st_dev && stat_data->size == st->st_size &&
	       bid_compare_times(&stat_data->mtime, &st->st_mtim) == 0 && bid_compare_times(&stat_data->changed, &st->st_ctim) == 0;
}

bool bid_stat_data_is_current(const struct bid_stat_data *stat_data, const struct stat *st)
{
	return !stat_data->racy && bid_stat_data_matches(stat_data, st);
}
