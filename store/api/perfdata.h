/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The builds in a recording of perf. The reader takes perf.data in every form that perf writes (perf,
 * tools/perf/Documentation/perf.data-file-format.txt, util/header.c; linux/perf_event.h): the table of build-ids behind the data,
 * ids in the stream and in the mappings, compressed streams, pipe mode, directories, either byte order, the variants of old
 * versions. A recording is not trusted. The reader reports and leaves out truncated and damaged parts. It reads all parts
 * before a damaged one, and later parts if the header gives their offset.
 */
#ifndef BID_API_PERFDATA_H
#define BID_API_PERFDATA_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <bid/id.h>

/* Where the code ran. */
enum bid_perfdata_mode {
	BID_PERFDATA_USER = 0,
	BID_PERFDATA_KERNEL, /* the kernel and its modules */
	BID_PERFDATA_GUEST, /* kernel or program of a virtual machine; its path is a path inside */
};

/* "user", "kernel", "guest". Static. */
const char *bid_perfdata_mode_name(enum bid_perfdata_mode mode);

/* the origin of mapped code */
struct bid_perfdata_dso {
	/*
	 * The recorded id, at most 20 bytes even of a longer id. len 0: the recording has only a name for this path in this mode.
	 */
	struct bid_id id;
	/*
	 * Is the length of the id recorded? Otherwise it has 20 bytes, and the last ones may be padding: zeros, or (perf inject -b
	 * before 6.2) uninitialised memory.
	 */
	bool sized;
	enum bid_perfdata_mode mode;
	/*
	 * An absolute path, or a name in brackets such as "[kernel.kallsyms]" or "[vdso]", as in perf. The kernel's name comes
	 * without "_text" or "_stext"; "[vdso]" also stands for perf's own copies of it. Text from outside: any bytes but NUL,
	 * 65535 at most. The path may come from another machine or container, and may end in " (deleted)". Dies when the callback
	 * returns.
	 */
	const char *path;
	/* samples in the code, if counted. See BID_PERFDATA_SAMPLES. */
	uint64_t samples;
	uint64_t mapped; /* bytes of the file up to the end of its last mapped page; 0 if unknown */
};

/* Takes a dso. A non-zero return ends the reading, which then returns this value. */
typedef int (*bid_perfdata_fn)(void *user, const struct bid_perfdata_dso *dso);

/* How the reading went. */
struct bid_perfdata_summary {
	uint64_t bytes; /* bytes of all files, with skipped ones */
	uint64_t records; /* records, with those in compressed data */
	uint64_t dsos; /* calls of the callback */
	time_t modified; /* time of the last write to the file, the end of the recording; 0 for a pipe */
	uint64_t samples, placed; /* number of samples, and of samples with known code; 0 unless counted */
	/*
	 * Does the recording list the ids of sampled code, as perf record writes them at its end? Code without an id is then
	 * unsampled, or has no id at all.
	 */
	bool lists_sampled;
	bool compressed; /* some data is compressed */
	/* The recording ended abnormally, without a table. The reader has read the rest. */
	bool interrupted;
	/* The file ends too early. */
	bool cut;
	/* parts left out as damaged: their number, the problem of the first one (static, NULL if none), its offset in the file */
	uint64_t damaged;
	const char *damage;
	uint64_t damage_offset;
};

/* flags of a reading */
enum {
	/*
	 * Count the samples of each dso, and report dsos with the most samples first. This costs time for each sample, and 180 MiB
	 * of memory at most. A sample belongs to the last mapping of its page by the process, or by the process it was forked from,
	 * in the whole recording: the count is wrong where one address had several files in turn. For a path with several ids,
	 * mapped without an id, each id gets the samples of all. All guest kernels count as one. All counts are 0 if the events
	 * have samples of several layouts, or without address and process.
	 */
	BID_PERFDATA_SAMPLES = 1 << 0,
};

/*
 * Call @fn once for each distinct combination of path, mode and id, after the whole reading, ordered by path, mode, id. With
 * BID_PERFDATA_SAMPLES in @flags the number of samples comes first in the order. The reader leaves out a path without an id if the
 * same path in the same mode has one too. It also leaves out all but files: stacks, heaps, anonymous memory, devices, data. @path
 * is a file, a FIFO, a directory of perf record, or "-" for standard input. May block on reading.
 *
 * Memory grows with the number of distinct combinations, not with the size of the recording: 4 million of them and 256 MiB of paths
 * at most, then -E2BIG. zstd may need 128 MiB. Compressed data may grow to a thousand times its size; the reader leaves out the
 * rest as damaged. It maps nothing, so a file may shrink meanwhile.
 *
 * Returns 0, with damage and truncation in @ret_summary, or
 *   -EINVAL	no perf.data
 *   -E2BIG	too many names
 *   other	as open(2) and read(2), or -ENOMEM
 */
int bid_perfdata_read(const char *path, unsigned flags, bid_perfdata_fn fn, void *user, struct bid_perfdata_summary *ret_summary);

/*
 * As bid_perfdata_read(), from the file or pipe open at @fd. Reads a file from its beginning, without moving its offset, and
 * anything else from the current offset.
 */
int bid_perfdata_read_fd(int fd, unsigned flags, bid_perfdata_fn fn, void *user, struct bid_perfdata_summary *ret_summary);

#endif
