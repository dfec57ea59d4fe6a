/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which builds does a recording of perf name? A reader of perf.data, in every form that perf writes (perf,
 * tools/perf/Documentation/perf.data-file-format.txt, util/header.c; linux/perf_event.h): the table of build-ids behind the data,
 * ids in the stream and in the mappings, compressed streams, pipe mode, directories, either byte order, the variants of old
 * versions.
 *
 * A recording comes from anywhere and is not trusted: what is cut off or makes no sense is left out and reported, and everything
 * before and, where its place is known, behind it is read.
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
	BID_PERFDATA_GUEST, /* a virtual machine's kernel or program: a path is one inside of it */
};

/* "user", "kernel", "guest". Static. */
const char *bid_perfdata_mode_name(enum bid_perfdata_mode mode);

/* Something that code was mapped from. */
struct bid_perfdata_dso {
	/*
	 * As it was recorded: 20 bytes at most, even of a longer id. Of len 0 if the recording has none for this path in this
	 * mode; then it is only a name.
	 */
	struct bid_id id;
	/*
	 * Did the recording say how long the id is? If not it has 20 bytes, of which the last ones may be padding: zeros, or (perf
	 * inject -b before 6.2) what happened to be in memory.
	 */
	bool sized;
	enum bid_perfdata_mode mode;
	/*
	 * An absolute path, or a name in brackets such as "[kernel.kallsyms]" or "[vdso]", as perf calls it, but without "_text"
	 * or "_stext" behind the kernel's, and "[vdso]" for perf's own copies of it. Text from outside: any bytes but NUL, 65535
	 * at most. The path may be one of another machine or container, and may end in " (deleted)". Dies when the callback
	 * returns.
	 */
	const char *path;
	/* How many samples were of it, if they were counted. See BID_PERFDATA_SAMPLES. */
	uint64_t samples;
	uint64_t mapped; /* bytes of the file up to the end of its last mapped page; 0 if it is not known */
};

/* A non-zero return ends the reading, which then returns that value. */
typedef int (*bid_perfdata_fn)(void *user, const struct bid_perfdata_dso *dso);

/* How the reading went. */
struct bid_perfdata_summary {
	uint64_t bytes; /* of all files, jumped over ones included */
	uint64_t records; /* those in compressed data too */
	uint64_t dsos; /* calls of the callback */
	time_t modified; /* when the file was last written to, which is when the recording ended; 0 of a pipe */
	uint64_t samples, placed; /* how many there were, and of how many it is known what they were of; 0 unless counted */
	/*
	 * Does the recording list the ids of what was sampled, as perf record writes them in the end? Then what has no id was not
	 * sampled, or has none at all.
	 */
	bool lists_sampled;
	bool piped; /* written in pipe mode */
	bool compressed; /* some of it is */
	bool swapped; /* recorded in the other byte order than this machine's */
	/* The recording was not ended properly: it has no table. What there is was read. */
	bool interrupted;
	/* The file ends too early. */
	bool cut;
	/* Parts that made no sense and were left out: how many, what the first was (static, NULL if none), where in its file. */
	uint64_t damaged;
	const char *damage;
	uint64_t damage_offset;
};

/* What a reading may be asked for besides. */
enum {
	/*
	 * Count the samples of each dso, and name those with the most first. That costs some time for each sample, and 180 MiB of
	 * memory at most.
	 *
	 * What counts is where a sample was taken, to 4096 bytes, not who called. It is of what the process, or the one that it was
	 * forked from, had mapped there last in the whole recording, whenever that was: so it may be another's if an address was
	 * used for several files one after the other, by one process or two of one number. Of a path that was mapped without an
	 * id, and has several, each is said to have the samples of all. Guests count for their kernels alone, all of which are
	 * taken for one. Beyond a million pages and two million mappings, others do not count. Nor does anything if the events of
	 * the recording have samples of several layouts, or without address and process; then all have 0.
	 */
	BID_PERFDATA_SAMPLES = 1 << 0,
};

/*
 * Call @fn once for each distinct combination of path, mode and id, when all was read, ordered by path, mode, id; with
 * BID_PERFDATA_SAMPLES in @flags by the number of samples before that. A path without
 * an id is left out if the same path in the same mode has one too, and so is what is no file: stacks, heaps, anonymous memory,
 * devices, data. @path is a file, a FIFO, a directory that perf record made, or "-" for standard input. May block on reading.
 *
 * Memory grows with the number of distinct combinations, not with the size of the recording: at most 4 million of them, with 256
 * MiB of paths, then it is -E2BIG. The table behind the data is held, at most 64 MiB of it, and zstd may need 128 MiB. Compressed
 * data may grow to a thousand times its size, the rest is left out as damaged. Nothing is mapped, so a file may shrink meanwhile.
 *
 * Returns 0, with what was damaged and cut off in @ret_summary, or
 *   -EINVAL	this is no perf.data
 *   -E2BIG	too many names
 *   other	as open(2) and read(2), or -ENOMEM
 */
int bid_perfdata_read(const char *path, unsigned flags, bid_perfdata_fn fn, void *user, struct bid_perfdata_summary *ret_summary);

/*
 * The same from the file or pipe open at @fd: a file from its beginning, whatever its offset, which is not moved; anything else
 * from where it is.
 */
int bid_perfdata_read_fd(int fd, unsigned flags, bid_perfdata_fn fn, void *user, struct bid_perfdata_summary *ret_summary);

#endif
