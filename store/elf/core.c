// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which builds were mapped when a process died? The note NT_FILE tells what was mapped where (Linux, fs/binfmt_elf.c,
 * fill_files_note()), and the memory at the beginning of each file has its ELF header and notes, if it was dumped.
 */
#include <bid/elf.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "header.h"
#include "identify.h"

enum {
	SEGMENTS_MAX = 1 << 20,
	NOTES_MAX = 64 << 20, /* bytes; the kernel writes 4 MiB of NT_FILE at most, and some 5 KiB per thread */
	IMAGE_MAX = 8 << 10, /* bytes of a file that are looked at; the kernel dumps its first page */
};

struct segment {
	uint64_t address, offset, size; /* of what is in the core file, which may be less than there was */
};

struct core {
	int fd; /* borrowed */
	struct bid_bytes bytes;
	struct bid_header header;
	struct segment *segments; /* PT_LOAD, by address; owned */
	size_t n_segments;
	uint8_t *image; /* IMAGE_MAX bytes; owned */
};

/* NT_FILE: counts, ranges and names. */
struct file_note {
	const uint8_t *ranges;
	const char *names, *end; /* one after the other, each with its NUL */
	uint64_t count;
};

static void core_release(struct core *core)
{
	free(core->segments);
	free(core->image);
}

static size_t word_size(const struct core *core)
{
	return core->header.form.wide ? 8 : 4;
}

static int by_address(const void *a, const void *b)
{
	const struct segment *one = a, *two = b;

	return one->address < two->address ? -1 : one->address > two->address;
}

/* How many bytes of the memory at @address are in the file, and where? 0 if none are. */
static uint64_t find_memory(const struct core *core, uint64_t address, uint64_t *ret_offset)
{
	size_t low = 0, high = core->n_segments;
	const struct segment *segment;

	/* the last one that begins at or before it */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (core->segments[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	segment = low > 0 ? &core->segments[low - 1] : NULL;
	if (!segment || address - segment->address >= segment->size)
		return 0;
	*ret_offset = segment->offset + (address - segment->address);
	return segment->size - (address - segment->address);
}

/* The id of what was mapped at @address, from its beginning; len 0 if the core does not tell. */
static int identify_at(struct core *core, uint64_t address, struct bid_id *ret_id)
{
	struct bid_id id = { 0 };
	uint64_t offset, size = find_memory(core, address, &offset);
	ssize_t n;
	int r;

	*ret_id = id;
	if (size == 0 || offset > INT64_MAX - IMAGE_MAX)
		return 0;
	n = bid_pread_full(core->fd, core->image, size < IMAGE_MAX ? (size_t)size : (size_t)IMAGE_MAX, (off_t)offset);
	if (n <= 0)
		return (int)n;
	r = bid_elf_identify_mapped(core->image, (size_t)n, &id);
	if (r == 0)
		*ret_id = id;
	/* what is no ELF file, has no id, or has it where nothing was dumped, is a file without one here */
	return r == -ENOEXEC || r == -ENODATA ? 0 : r;
}

static int read_header(struct core *core, uint8_t head[static BID_BYTES_HEAD])
{
	size_t len;
	int r = bid_bytes_read(core->fd, head, sizeof(Elf64_Ehdr), BID_BYTES_HEAD, 0, &len);

	if (r < 0)
		return r;
	bid_bytes_init(&core->bytes, head, len, core->fd);
	r = bid_header_read(&core->bytes, &core->header);
	if (r < 0)
		return r == -ENODATA || r == -E2BIG ? -EBADMSG : r;
	if (core->header.type != ET_CORE)
		return -EINVAL;
	return core->header.phnum > 0 && core->header.phnum <= SEGMENTS_MAX ? 0 : -EBADMSG;
}

/* Read the program headers: where memory is, and where the notes are, of which there is one range in every core. */
static int read_segments(struct core *core, struct segment *ret_notes)
{
	const struct bid_form *form = &core->header.form;
	struct segment notes = { 0 };

	core->segments = calloc(core->header.phnum, sizeof(*core->segments));
	if (!core->segments)
		return -ENOMEM;
	for (uint64_t i = 0; i < core->header.phnum; i++) {
		uint64_t offset = core->header.phoff + i * core->header.phentsize;
		struct segment segment;
		const uint8_t *data;
		uint64_t type;
		int r = bid_bytes_at(&core->bytes, offset, core->header.phentsize, &data);

		if (r < 0)
			return r == -ENODATA || r == -E2BIG ? -EBADMSG : r;
		type = BID_FORM_FIELD(form, data, Phdr, p_type);
		segment = (struct segment){
			.address = BID_FORM_FIELD(form, data, Phdr, p_vaddr),
			.offset = BID_FORM_FIELD(form, data, Phdr, p_offset),
			.size = BID_FORM_FIELD(form, data, Phdr, p_filesz),
		};
		if (type == PT_LOAD && segment.size > 0 && segment.offset <= INT64_MAX)
			core->segments[core->n_segments++] = segment;
		else if (type == PT_NOTE && notes.size == 0)
			notes = segment;
	}
	qsort(core->segments, core->n_segments, sizeof(*core->segments), by_address);
	*ret_notes = notes;
	return notes.size > 0 && notes.size <= NOTES_MAX && notes.offset <= INT64_MAX ? 0 : -EBADMSG;
}

/* Take NT_FILE's @size bytes at @data apart. */
static int parse_files(const struct core *core, const uint8_t *data, size_t size, struct file_note *ret_note)
{
	size_t word = word_size(core), head = 2 * word, entry = 3 * word;
	uint64_t count;

	if (size < head)
		return -EBADMSG;
	count = bid_form_load(&core->header.form, data, word);
	if (count > (size - head) / entry)
		return -EBADMSG;
	*ret_note = (struct file_note){
		.ranges = data + head,
		.names = (const char *)data + head + count * entry,
		.end = (const char *)data + size,
		.count = count,
	};
	/* so that every name that begins inside ends inside */
	return count == 0 || (count * entry + head < size && data[size - 1] == '\0') ? 0 : -EBADMSG;
}

/* NT_FILE among the @size bytes of notes at @data. -ENODATA if there is none. */
static int find_files(const struct core *core, const uint8_t *data, size_t size, struct file_note *ret_note)
{
	const struct bid_form *form = &core->header.form;
	size_t at = 0;

	while (size - at >= sizeof(Elf32_Nhdr)) {
		uint64_t name_len = BID_FORM_FIELD(form, data + at, Nhdr, n_namesz);
		uint64_t desc_len = BID_FORM_FIELD(form, data + at, Nhdr, n_descsz);
		uint64_t desc = at + sizeof(Elf32_Nhdr) + ((name_len + 3) & ~UINT64_C(3));

		if (desc > size || desc_len > size - desc)
			return -EBADMSG;
		if (BID_FORM_FIELD(form, data + at, Nhdr, n_type) == NT_FILE && name_len == sizeof("CORE") &&
		    memcmp(data + at + sizeof(Elf32_Nhdr), "CORE", sizeof("CORE")) == 0)
			return parse_files(core, data + desc, (size_t)desc_len, ret_note);
		desc += (desc_len + 3) & ~UINT64_C(3);
		if (desc > size)
			break;
		at = (size_t)desc;
	}
	return -ENODATA;
}

static int each_file(struct core *core, const struct file_note *note, bid_elf_core_fn fn, void *user)
{
	size_t word = word_size(core);
	const char *name = note->names;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < note->count && name < note->end; i++, name += strlen(name) + 1) {
		const uint8_t *range = note->ranges + i * 3 * word;
		struct bid_elf_core_file file = { .path = name };

		/* only the first of a file's mappings has its header */
		if (bid_form_load(&core->header.form, range + 2 * word, word) != 0)
			continue;
		r = identify_at(core, bid_form_load(&core->header.form, range, word), &file.id);
		if (r == 0)
			r = fn(user, &file);
	}
	return r;
}

static int read_notes(struct core *core, const struct segment *notes, bid_elf_core_fn fn, void *user)
{
	bid_auto_free uint8_t *data = malloc(notes->size);
	struct file_note files;
	ssize_t n;
	int r;

	core->image = malloc(IMAGE_MAX);
	if (!data || !core->image)
		return -ENOMEM;
	n = bid_pread_full(core->fd, data, notes->size, (off_t)notes->offset);
	if (n < 0)
		return (int)n;
	r = find_files(core, data, (size_t)n, &files);
	if (r < 0)
		return (size_t)n < notes->size ? -EBADMSG : r;
	return each_file(core, &files, fn, user);
}

int bid_elf_core_each(int fd, bid_elf_core_fn fn, void *user)
{
	bid_cleanup(core_release) struct core core = { .fd = fd };
	uint8_t head[BID_BYTES_HEAD];
	struct segment notes;
	int r;

	r = read_header(&core, head);
	if (r == 0)
		r = read_segments(&core, &notes);
	return r < 0 ? r : read_notes(&core, &notes, fn, user);
}
