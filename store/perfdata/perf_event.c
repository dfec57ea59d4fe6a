// SPDX-License-Identifier: LGPL-2.1-or-later
/* The records that name code, and the file names in them. */
#include <string.h>

#include "base/byte_order.h"
#include "perfdata/recording.h"

enum {
	MISC_DATA = 1 << 13, /* a mapping that is not executable */
	MISC_BUILD_ID = 1 << 14, /* MMAP2 with an id instead of the inode */
	MISC_SIZED = 1 << 15, /* BUILD_ID with the size of the id */
};

/* the values of PERF_RECORD_MISC_CPUMODE_MASK, the low bits of misc */
enum { CPUMODE_MASK = 7, CPUMODE_KERNEL = 1, CPUMODE_HYPERVISOR = 3, CPUMODE_GUEST_KERNEL = 4, CPUMODE_GUEST_USER = 5 };

/* where things are in the records */
enum {
	MMAP_NAME = 40,
	MMAP2_ID_SIZE = 40,
	MMAP2_ID = 44,
	MMAP2_NAME = 72,
	PROCESS = 8, /* offset of the process in mappings and forks */
	PARENT = 12,
	MMAP_START = 16,
	MMAP_LENGTH = 24,
	MMAP_OFFSET = 32,
	BUILD_ID_ID = 12,
	BUILD_ID_SIZE = 32,
	BUILD_ID_NAME = 36,
};

void bid_perf_damage(struct bid_perf *perf, const char *what, uint64_t offset)
{
	if (perf->summary.damaged++ == 0) {
		perf->summary.damage = what;
		perf->summary.damage_offset = offset;
	}
}

static enum bid_perfdata_mode mode_of(uint16_t misc)
{
	switch (misc & CPUMODE_MASK) {
	case CPUMODE_KERNEL:
	case CPUMODE_HYPERVISOR:
		return BID_PERFDATA_KERNEL;
	case CPUMODE_GUEST_KERNEL:
	case CPUMODE_GUEST_USER:
		return BID_PERFDATA_GUEST;
	default:
		return BID_PERFDATA_USER;
	}
}

static bool begins_with(const char *name, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

/* "[kernel.kallsyms]_text" is the kernel's mapping, and some versions have "_stext" or an id under such a name. */
static size_t without_symbol(const char *name, size_t len)
{
	const char *bracket = name[0] == '[' ? memchr(name, ']', len) : NULL;
	size_t inner = bracket ? (size_t)(bracket - name) + 1 : len;
	size_t rest = len - inner;

	if ((rest == 5 && memcmp(name + inner, "_text", 5) == 0) || (rest == 6 && memcmp(name + inner, "_stext", 6) == 0))
		return inner;
	return len;
}

/* Can a name without an id belong to a build? Memory without a file and devices cannot. */
static bool may_be_build(const char *name, size_t len, enum bid_perfdata_mode mode)
{
	static const char *const memory[] = { "//", "/dev/", "/anon_hugepage", "/SYSV", "/memfd:", "/[", "/i915", "/drm" };

	if (name[0] == '[')
		return mode != BID_PERFDATA_USER || begins_with(name, len, "[vdso");
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (begins_with(name, len, memory[i]))
			return false;
	return name[0] == '/';
}

/* Return the true name of a vDSO copy, or NULL. perf reads a vDSO from a copy, and perf inject records the name of the copy. */
static const char *name_of_copy(const char *name, size_t len)
{
	static const struct {
		const char *copy, *name;
	} vdsos[] = {
		{ "/tmp/perf-vdso.so-", "[vdso]" },
		{ "/tmp/perf-vdso32.so-", "[vdso32]" },
		{ "/tmp/perf-vdsox32.so-", "[vdsox32]" },
	};

	for (size_t i = 0; i < sizeof(vdsos) / sizeof(vdsos[0]); i++)
		if (begins_with(name, len, vdsos[i].copy) && len == strlen(vdsos[i].copy) + strlen("XXXXXX"))
			return vdsos[i].name;
	return NULL;
}

/* Leaves @ret_dso alone for a name without a build. */
static int add_dso(struct bid_perf *perf, const struct bid_id *id, bool sized, uint16_t misc, const char *name, size_t len,
		   struct bid_perfdata_dso **ret_dso)
{
	enum bid_perfdata_mode mode = mode_of(misc);
	const char *copied = id->len ? name_of_copy(name, len) : NULL;

	if (copied)
		return bid_dsos_add(&perf->dsos, id, sized, mode, copied, strlen(copied), ret_dso);
	if (begins_with(name, len, "[kernel."))
		mode = BID_PERFDATA_KERNEL;
	else if (begins_with(name, len, "[guest."))
		mode = BID_PERFDATA_GUEST;
	len = without_symbol(name, len);
	if (len == 0 || (id->len == 0 && !may_be_build(name, len, mode)))
		return 0;
	return bid_dsos_add(&perf->dsos, id, sized, mode, name, len, ret_dso);
}

/* Read an id. Zeros only mean none: some versions write them for an unknown id. */
static int take_id(const uint8_t *bytes, size_t len, struct bid_id *ret_id)
{
	static const uint8_t zeros[BID_ID_PERF_MAX];

	if (len == 0 || memcmp(bytes, zeros, len) == 0)
		return 0;
	return bid_id_from_bytes(bytes, len, ret_id);
}

int bid_perf_event_mapping(struct bid_perf *perf, const struct bid_perf_event *record)
{
	size_t name_at = record->type == BID_PERF_EVENT_MMAP ? MMAP_NAME : MMAP2_NAME;
	const char *name = (const char *)record->data + name_at, *end;
	struct bid_perfdata_dso *dso = NULL;
	struct bid_id id = { 0 };
	uint64_t mapped;
	int r;

	/* the name ends at its NUL, because other data may follow */
	end = record->size > name_at ? memchr(name, '\0', record->size - name_at) : NULL;
	if (!end) {
		bid_perf_damage(perf, "a mapping without a name", record->offset);
		return 0;
	}
	if (record->type == BID_PERF_EVENT_MMAP2 && record->misc & MISC_BUILD_ID) {
		size_t len = record->data[MMAP2_ID_SIZE];

		if (len > BID_ID_PERF_MAX)
			bid_perf_damage(perf, "a build-id of more than 20 bytes", record->offset);
		else
			take_id(record->data + MMAP2_ID, len, &id);
	}
	if (id.len == 0 && record->misc & MISC_DATA)
		return 0;
	r = add_dso(perf, &id, true, record->misc, name, (size_t)(end - name), &dso);
	if (dso && !__builtin_add_overflow(bid_load64(perf->big, record->data + MMAP_OFFSET),
					   bid_load64(perf->big, record->data + MMAP_LENGTH), &mapped))
		dso->mapped = mapped > dso->mapped ? mapped : dso->mapped;
	if (r < 0 || !perf->samples.wanted || record->misc & MISC_DATA)
		return r;
	return bid_samples_map(&perf->samples, mode_of(record->misc), bid_load32(perf->big, record->data + PROCESS),
			       bid_load64(perf->big, record->data + MMAP_START), bid_load64(perf->big, record->data + MMAP_LENGTH),
			       dso);
}

int bid_perf_event_sampled(struct bid_perf *perf, const struct bid_perf_event *record)
{
	struct bid_samples *samples = &perf->samples;
	const uint8_t *data = record->data;

	switch (record->type) {
	case BID_PERF_EVENT_ATTR:
		if (record->size >= BID_PERF_EVENT_HEAD + BID_ATTR_TYPE + sizeof(uint64_t))
			bid_samples_type(samples, bid_load64(perf->big, data + BID_PERF_EVENT_HEAD + BID_ATTR_TYPE));
		return 0;
	case BID_PERF_EVENT_FORK:
		if (record->size < PARENT + sizeof(uint32_t))
			return 0;
		return bid_samples_fork(samples, bid_load32(perf->big, data + PROCESS), bid_load32(perf->big, data + PARENT));
	default:
		if (samples->ip_at == 0 || record->size < samples->pid_at + sizeof(uint32_t))
			return 0;
		return bid_samples_add(samples, mode_of(record->misc), bid_load32(perf->big, data + samples->pid_at),
				       bid_load64(perf->big, data + samples->ip_at));
	}
}

int bid_perf_event_build_id(struct bid_perf *perf, const struct bid_perf_event *record)
{
	const char *name = (const char *)record->data + BUILD_ID_NAME;
	bool sized = record->misc & MISC_SIZED;
	size_t len = BID_ID_PERF_MAX;
	struct bid_perfdata_dso *dso;
	struct bid_id id = { 0 };

	if (record->size <= BUILD_ID_NAME) {
		bid_perf_damage(perf, "a build-id without a name", record->offset);
		return 0;
	}
	if (sized)
		len = record->data[BUILD_ID_SIZE];
	if (len > BID_ID_PERF_MAX) {
		bid_perf_damage(perf, "a build-id of more than 20 bytes", record->offset);
		return 0;
	}
	take_id(record->data + BUILD_ID_ID, len, &id);
	if (id.len == 0)
		return 0;
	perf->summary.lists_sampled = true;
	return add_dso(perf, &id, sized, record->misc, name, strnlen(name, record->size - BUILD_ID_NAME), &dso);
}

/* Read the next entry of the table of @len bytes at @data; false at the end. */
static bool next_entry(const struct bid_perf *perf, const uint8_t *data, size_t len, struct bid_perf_event *ret_entry)
{
	uint64_t word;

	if (len < BID_PERF_EVENT_HEAD)
		return false;
	word = bid_load64(perf->big, data);
	/* entries of a table need no record type */
	*ret_entry = (struct bid_perf_event){
		.type = BID_PERF_EVENT_BUILD_ID,
		.misc = perf->big ? (uint16_t)(word >> 16) : (uint16_t)(word >> 32),
		.size = perf->big ? (uint16_t)word : (uint16_t)(word >> 48),
		.data = data,
	};
	return ret_entry->size > BUILD_ID_NAME && ret_entry->size <= len;
}

ssize_t bid_perf_event_table(struct bid_perf *perf, const uint8_t *data, size_t len, uint64_t offset)
{
	struct bid_perf_event entry;
	size_t at = 0;

	while (next_entry(perf, data + at, len - at, &entry)) {
		int r;

		entry.offset = offset + at;
		r = bid_perf_event_build_id(perf, &entry);
		if (r < 0)
			return r;
		at += entry.size;
	}
	return (ssize_t)at;
}
