// SPDX-License-Identifier: LGPL-2.1-or-later
/* Static probes of a program, as perf's probe cache has them: sys/sdt.h of systemtap, perf's util/probe-file.c. */
#include <bid/elf.h>

#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "bytes.h"
#include "examine.h"
#include "names.h"
#include "sdt_argument.h"

enum {
	NOTES_MAX = 1 << 21, /* bytes; the largest known is of libjvm, with 90 KiB */
	TYPE = 3,
	GROUP_MAX = 64, /* perf cuts it there */
	LINE_MAX_OF_PERF = 4094,
	LOADS_MAX = 4096, /* segments; linkers make 2 to 6 */
};

/* A segment that the file is mapped by. */
struct load {
	uint64_t address, size, offset;
};

struct probe {
	char *name; /* "GROUP:EVENT"; owned */
	char *line; /* the definition; owned */
	size_t number, first; /* in the file; of the first one with that name */
};

struct probes {
	struct probe *probes; /* owned */
	size_t n, room;
};

static void probes_release(struct probes *probes)
{
	for (size_t i = 0; i < probes->n; i++) {
		free(probes->probes[i].name);
		free(probes->probes[i].line);
	}
	free(probes->probes);
}

/* The file, and where in it static probes are. */
struct source {
	Elf *elf; /* owned */
	GElf_Ehdr ehdr;
	struct bid_form form;
	const char *path; /* borrowed */
	Elf_Data *notes; /* libelf's */
	uint64_t base; /* the address of .stapsdt.base; 0 if there is none */
	struct load *loads; /* in the order of the file; owned */
	size_t n_loads, room;
};

static void source_release(struct source *source)
{
	free(source->loads);
	bid_elf_cleanup(&source->elf);
}

static int find_sections(struct source *source)
{
	Elf_Scn *scn = NULL, *notes = NULL;
	GElf_Shdr shdr;
	struct bid_elf_names names;

	if (source->ehdr.e_shoff == 0 || bid_elf_names_find(source->elf, &names) < 0)
		return -ENODATA;
	while ((scn = elf_nextscn(source->elf, scn))) {
		const char *name = gelf_getshdr(scn, &shdr) ? bid_elf_name_at(&names, shdr.sh_name) : NULL;

		if (!name)
			continue;
		if (strcmp(name, ".stapsdt.base") == 0)
			source->base = shdr.sh_addr;
		else if (strcmp(name, ".note.stapsdt") == 0 && shdr.sh_type == SHT_NOTE && !(shdr.sh_flags & SHF_ALLOC))
			notes = scn;
	}
	if (!notes || !gelf_getshdr(notes, &shdr) || shdr.sh_size == 0)
		return -ENODATA;
	if (shdr.sh_size > NOTES_MAX)
		return -EBADMSG;
	source->notes = elf_getdata(notes, NULL);
	return source->notes ? 0 : -EBADMSG;
}

static int find_loads(struct source *source)
{
	size_t n;

	if (elf_getphdrnum(source->elf, &n) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < n && source->n_loads < LOADS_MAX; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(source->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD)
			continue;
		if (bid_array_grow(source->loads, source->n_loads, source->room) < 0)
			return -ENOMEM;
		source->loads[source->n_loads++] = (struct load){ phdr.p_vaddr, phdr.p_filesz, phdr.p_offset };
	}
	return 0;
}

/* Where @address is in the file, as the kernel wants to know it of uprobes. False if it is in no segment of it. */
static bool to_offset(const struct source *source, uint64_t address, uint64_t *ret_offset)
{
	for (size_t i = 0; i < source->n_loads; i++) {
		const struct load *load = &source->loads[i];

		if (address >= load->address && address - load->address < load->size) {
			*ret_offset = address - load->address + load->offset;
			return true;
		}
	}
	return false;
}

/* The text at *@at before @end, which ends with a NUL; *@at is behind it then. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

/* "p:GROUP/EVENT PATH:0xOFFSET(0xSEMAPHORE) arg1=..." for the caller to free */
static char *format_line(const struct source *source, const char *group, const char *event, uint64_t offset, uint64_t semaphore,
			 const char *arguments)
{
	char *line = NULL;
	size_t len;
	FILE *out = open_memstream(&line, &len);

	if (!out)
		return NULL;
	fprintf(out, "p:%s/%s %s:0x%" PRIx64, group, event, source->path, offset);
	if (semaphore)
		fprintf(out, "(0x%" PRIx64 ")", semaphore);
	bid_sdt_arguments(out, source->ehdr.e_machine, arguments);
	if (fclose(out) == 0)
		return line;
	free(line);
	return NULL;
}

/* Are all of @text's bytes visible ones? */
static bool is_visible(const char *text)
{
	while ((unsigned char)*text > ' ' && *text != '\177')
		text++;
	return *text == '\0';
}

static bool is_name(const char *text)
{
	return *text && strlen(text) <= NAME_MAX && is_visible(text) && !strpbrk(text, "/:=");
}

/* One more, if there is such a place in the file. */
static int add(struct probes *probes, const struct source *source, uint64_t location, uint64_t semaphore,
	       const char *const texts[3])
{
	struct probe probe = { .number = probes->n };
	uint64_t offset, counter = 0;
	char group[GROUP_MAX];

	if (!is_name(texts[0]) || !is_name(texts[1]) || !to_offset(source, location, &offset) ||
	    (semaphore && !to_offset(source, semaphore, &counter)))
		return 0;
	if (bid_array_grow(probes->probes, probes->n, probes->room) < 0)
		return -ENOMEM;
	snprintf(group, sizeof(group), "sdt_%s", texts[0]);
	probe.line = format_line(source, group, texts[1], offset, counter, texts[2]);
	if (probe.line && strlen(probe.line) >= LINE_MAX_OF_PERF) {
		free(probe.line);
		return 0;
	}
	if (!probe.line || asprintf(&probe.name, "%s:%s", group, texts[1]) < 0) {
		free(probe.line);
		return -ENOMEM;
	}
	probes->probes[probes->n++] = probe;
	return 0;
}

/* What a note says: three addresses, and the texts provider, name and arguments, the last of which may be missing. */
static int read_note(struct probes *probes, const struct source *source, const uint8_t *desc, size_t len)
{
	const char *at, *end = (const char *)desc + len, *texts[3];
	size_t size = BID_FORM_SIZE(&source->form, Addr);
	uint64_t location, base, semaphore;

	if (len < 3 * size)
		return -EBADMSG;
	location = bid_form_load(&source->form, desc, size);
	base = bid_form_load(&source->form, desc + size, size);
	semaphore = bid_form_load(&source->form, desc + 2 * size, size);
	/* prelink(8) moves everything but notes, which say where they think that section is */
	if (source->base) {
		location += source->base - base;
		semaphore += semaphore ? source->base - base : 0;
	}
	at = (const char *)desc + 3 * size;
	texts[0] = next_text(&at, end);
	texts[1] = texts[0] ? next_text(&at, end) : NULL;
	texts[2] = texts[1] ? next_text(&at, end) : NULL;
	if (!texts[1])
		return -EBADMSG;
	if (!texts[2])
		texts[2] = "";
	return add(probes, source, location, semaphore, texts);
}

static int read_notes(struct probes *probes, const struct source *source)
{
	static const char owner[] = "stapsdt";
	size_t at = 0, next, name, desc;
	GElf_Nhdr note;
	int r = 0;

	while (r == 0 && (next = gelf_getnote(source->notes, at, &note, &name, &desc)) > 0) {
		const uint8_t *bytes = source->notes->d_buf;

		at = next;
		if (note.n_type == TYPE && note.n_namesz == sizeof(owner) && memcmp(bytes + name, owner, sizeof(owner)) == 0)
			r = read_note(probes, source, bytes + desc, note.n_descsz);
	}
	return r;
}

static int by_name(const void *a, const void *b)
{
	const struct probe *left = a, *right = b;
	int names = strcmp(left->name, right->name);

	return names ? names : (left->number > right->number) - (left->number < right->number);
}

static int by_first(const void *a, const void *b)
{
	const struct probe *left = a, *right = b;

	if (left->first != right->first)
		return left->first < right->first ? -1 : 1;
	return strcmp(left->line, right->line);
}

/* Each event where the file has it first, with its definitions in the order of their texts, which is how perf keeps them. */
static void sort(struct probes *probes)
{
	struct probe *all = probes->probes;

	qsort(all, probes->n, sizeof(*all), by_name);
	for (size_t i = 0; i < probes->n; i++)
		all[i].first = i > 0 && strcmp(all[i - 1].name, all[i].name) == 0 ? all[i - 1].first : all[i].number;
	qsort(all, probes->n, sizeof(*all), by_first);
}

static int print(const struct probes *probes, int (*write)(void *user, const void *data, size_t len), void *user)
{
	const struct probe *last = NULL;
	int r = 0;

	for (size_t i = 0; i < probes->n && r == 0; i++) {
		const struct probe *probe = &probes->probes[i];
		const char *event = strchr(probe->name, ':') + 1;
		bid_auto_free char *text = NULL;
		bool same = last && last->first == probe->first;
		int len = 0;

		if (!same)
			len = asprintf(&text, "%%%s=%s\n%s\n", probe->name, event, probe->line);
		else if (strcmp(last->line, probe->line) != 0)
			len = asprintf(&text, "%s\n", probe->line);
		if (len > 0)
			r = write(user, text, (size_t)len);
		else if (len < 0)
			r = -ENOMEM;
		last = probe;
	}
	return r;
}

int bid_elf_probes(int fd, const char *path, int (*write)(void *user, const void *data, size_t len), void *user)
{
	bid_cleanup(probes_release) struct probes probes = { 0 };
	bid_cleanup(source_release) struct source source = { .path = path };
	int r;

	if (!is_visible(path))
		return -EINVAL;
	r = bid_elf_open(fd, &source.elf, &source.ehdr);
	if (r < 0)
		return r;
	source.form = (struct bid_form){ .wide = source.ehdr.e_ident[EI_CLASS] == ELFCLASS64,
					 .big = source.ehdr.e_ident[EI_DATA] == ELFDATA2MSB };
	r = find_sections(&source);
	if (r == 0)
		r = find_loads(&source);
	if (r == 0)
		r = read_notes(&probes, &source);
	if (r == 0 && probes.n == 0)
		r = -ENODATA;
	if (r < 0)
		return r;
	sort(&probes);
	return print(&probes, write, user);
}
