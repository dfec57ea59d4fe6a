// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The builds in the memory of a process at its death. The note NT_FILE lists the mappings of files (Linux, fs/binfmt_elf.c,
 * fill_files_note()). The memory at the beginning of each file has its program headers, with the address of its notes. A core may
 * lack either.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "build_id.h"

enum {
	SEGMENTS_MAX = 1 << 20,
	NOTES_MAX = 64 << 20, /* bytes; the kernel writes 4 MiB of NT_FILE at most, and some 5 KiB per thread */
	IMAGE_MAX = 64 << 10, /* bytes of program headers, or of one note segment; the kernel takes no program with more headers */
	BUDGET = 256 << 20, /* memory to read from one core file, in bytes; a program with 10,000 libraries needs 100 MiB */
};

struct core {
	int fd; /* borrowed */
	struct bid_elf_reader reader;
	struct bid_header header;
	struct bid_segment *segments; /* PT_LOAD with bytes for at most their memory, by address; owned */
	size_t n_segments;
	size_t budget; /* bytes of memory left to read */
	uint8_t *headers, *notes; /* IMAGE_MAX bytes each; owned */
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
	free(core->headers);
	free(core->notes);
}

static size_t word_size(const struct core *core)
{
	return core->header.form.wide ? 8 : 4;
}

static int by_address(const void *a, const void *b)
{
	const struct bid_segment *one = a, *two = b;

	return one->address < two->address ? -1 : one->address > two->address;
}

/* For bsearch(3): compare an address and a segment. */
static int compare_address(const void *key, const void *element)
{
	const struct bid_segment *segment = element;
	uint64_t address = *(const uint64_t *)key;

	return address < segment->address ? -1 : address - segment->address >= segment->memory;
}

/* Return the segment with @address, or NULL. */
static const struct bid_segment *find_segment(const struct core *core, uint64_t address)
{
	return bsearch(&address, core->segments, core->n_segments, sizeof(*core->segments), compare_address);
}

/* Read at most @len bytes of the memory at @address. Returns the number of bytes in the core, or a negative errno. */
static ssize_t read_memory(struct core *core, uint64_t address, void *buffer, size_t len)
{
	const struct bid_segment *segment = find_segment(core, address);
	uint64_t skip = segment ? address - segment->address : 0;

	if (!segment || skip >= segment->size || segment->offset > INT64_MAX - IMAGE_MAX - skip)
		return 0;
	if (len > segment->size - skip)
		len = (size_t)(segment->size - skip);
	if (len > core->budget)
		return -EBADMSG;
	core->budget -= len;
	return bid_pread_full(core->fd, buffer, len, (off_t)(segment->offset + skip));
}

/* a file mapped at @start from its first byte on */
struct core_image {
	uint64_t start;
	struct bid_header header;
	size_t phnum; /* program headers in core->headers */
};

/* Read the header and the program headers. 1, or 0 if the memory has none. */
static int read_image(struct core *core, uint64_t start, struct core_image *ret_image)
{
	struct core_image image = { .start = start };
	uint8_t head[sizeof(Elf64_Ehdr)];
	struct bid_elf_reader reader;
	uint64_t size;
	ssize_t n = read_memory(core, start, head, sizeof(head));
	int r;

	if (n <= 0)
		return (int)n;
	bid_elf_reader_init(&reader, head, (size_t)n, -1);
	r = bid_header_read(&reader, &image.header);
	/* no ELF file, or too little was dumped */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	size = image.header.phnum * image.header.phentsize;
	if (size == 0 || size > IMAGE_MAX || image.header.phoff > UINT64_MAX - start)
		return 0;
	n = read_memory(core, start + image.header.phoff, core->headers, (size_t)size);
	if (n < 0)
		return (int)n;
	image.phnum = (size_t)n / image.header.phentsize;
	*ret_image = image;
	return 1;
}

static struct bid_segment segment_of(const struct core *core, const struct core_image *image, size_t index)
{
	return bid_segment_parse(&image->header.form, core->headers + index * image->header.phentsize);
}

/* The difference between addresses in memory and in the headers. The segment with the first bytes of the file is at its start. */
static uint64_t bias_of(const struct core *core, const struct core_image *image)
{
	uint64_t lowest = UINT64_MAX, bias = image->start;

	for (size_t i = 0; i < image->phnum; i++) {
		struct bid_segment segment = segment_of(core, image, i);

		if (segment.type != PT_LOAD || segment.offset >= lowest)
			continue;
		lowest = segment.offset;
		bias = image->start - (segment.address - segment.offset);
	}
	return bias;
}

/*
 * Read the id of the file mapped from its beginning at @start; len 0 if the core lacks it. The program headers have the address of
 * each note: linkers and patchelf(1) put notes anywhere. A partly dumped segment of notes suffices.
 */
static int identify_at(struct core *core, uint64_t start, struct bid_id *ret_id)
{
	struct bid_note_found found = { 0 };
	struct core_image image;
	uint64_t bias;
	int r = read_image(core, start, &image);

	*ret_id = found.id;
	if (r <= 0)
		return r;
	bias = bias_of(core, &image);
	for (size_t i = 0; i < image.phnum && found.id.len == 0; i++) {
		struct bid_segment segment = segment_of(core, &image, i);
		struct bid_elf_reader reader;
		ssize_t n;

		if (segment.type != PT_NOTE)
			continue;
		n = read_memory(core, bias + segment.address, core->notes,
				segment.size < IMAGE_MAX ? (size_t)segment.size : (size_t)IMAGE_MAX);
		if (n < 0)
			return (int)n;
		bid_elf_reader_init(&reader, core->notes, (size_t)n, -1);
		(void)bid_note_scan(&reader, &image.header.form, 0, (uint64_t)n, segment.align, &found);
	}
	*ret_id = found.id;
	return 0;
}

static int read_header(struct core *core, uint8_t head[static BID_ELF_READER_HEAD])
{
	int r = bid_elf_reader_open(&core->reader, head, core->fd);

	if (r < 0)
		return r;
	r = bid_header_read(&core->reader, &core->header);
	if (r < 0)
		return bid_elf_reader_damage(r);
	if (core->header.type != ET_CORE)
		return -EINVAL;
	if (core->header.phnum == 0 || core->header.phnum > SEGMENTS_MAX)
		return -EBADMSG;
	bid_elf_reader_allow_table(&core->reader, core->header.phnum, core->header.phentsize);
	return 0;
}

/* Read the program headers: the segments of memory, and the one range of notes in every core. */
static int read_segments(struct core *core, struct bid_segment *ret_notes)
{
	struct bid_segment notes = { 0 };

	core->segments = calloc(core->header.phnum, sizeof(*core->segments));
	if (!core->segments)
		return -ENOMEM;
	for (uint64_t i = 0; i < core->header.phnum; i++) {
		struct bid_segment segment;
		int r = bid_segment_at(&core->reader, &core->header, i, &segment);

		if (r < 0)
			return bid_elf_reader_damage(r);
		if (segment.type == PT_LOAD && segment.size <= segment.memory)
			core->segments[core->n_segments++] = segment;
		else if (segment.type == PT_NOTE && notes.size == 0)
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
	/* the final NUL ends the last name */
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

/* Report each mapping of the beginning of a file or of code. */
static int each_file(struct core *core, const struct file_note *note, bid_elf_core_fn fn, void *user)
{
	const struct bid_form *form = &core->header.form;
	const uint8_t *range = note->ranges;
	const char *name = note->names;
	size_t word = word_size(core);
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < note->count && name < note->end; i++) {
		uint64_t start = bid_form_load(form, range, word), page = bid_form_load(form, range + 2 * word, word);
		const struct bid_segment *segment = find_segment(core, start);
		struct bid_elf_core_file file = { .path = name, .code = segment && segment->flags & PF_X };

		if (page == 0)
			r = identify_at(core, start, &file.id);
		if (r == 0 && (page == 0 || file.code))
			r = fn(user, &file);
		range += 3 * word;
		name += strlen(name) + 1;
	}
	return r;
}

static int read_notes(struct core *core, const struct bid_segment *notes, bid_elf_core_fn fn, void *user)
{
	bid_auto_free uint8_t *data = malloc(notes->size);
	struct file_note files;
	ssize_t n;
	int r;

	core->headers = malloc(IMAGE_MAX);
	core->notes = malloc(IMAGE_MAX);
	if (!data || !core->headers || !core->notes)
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
	bid_cleanup(core_release) struct core core = { .fd = fd, .budget = BUDGET };
	uint8_t head[BID_ELF_READER_HEAD];
	struct bid_segment notes;
	int r;

	r = read_header(&core, head);
	if (r == 0)
		r = read_segments(&core, &notes);
	return r < 0 ? r : read_notes(&core, &notes, fn, user);
}
