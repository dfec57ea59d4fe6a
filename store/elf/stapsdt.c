// SPDX-License-Identifier: LGPL-2.1-or-later
/* Static probes of a program in the form of perf's probe cache: sys/sdt.h of systemtap, perf's util/probe-file.c. */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/elf.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "sections.h"

enum {
	NOTES_MAX = 1 << 21, /* bytes; the largest known is of libjvm, with 90 KiB */
	TYPE = 3,
	GROUP_MAX = 64, /* perf's limit of a group name */
	LINE_MAX_OF_PERF = 4094,
	TEXT_MAX = 16 << 20, /* bytes of all definitions; each names the file once more */
};

struct probe {
	char *name; /* "GROUP:EVENT"; owned */
	char *line; /* the definition; owned */
	size_t number, first; /* position in the file; position of the first probe with the same name */
};

struct probes {
	struct probe *probes; /* owned */
	size_t n, room;
	size_t size; /* bytes of all lines */
};

static void probes_release(struct probes *probes)
{
	for (size_t i = 0; i < probes->n; i++) {
		free(probes->probes[i].name);
		free(probes->probes[i].line);
	}
	free(probes->probes);
}

/* the file with its static probes */
struct probe_source {
	struct bid_sections sections;
	const char *path; /* borrowed */
	char *notes; /* owned */
	size_t notes_len, align;
	uint64_t base; /* the address of .stapsdt.base; 0 if there is none */
	regex_t operand; /* owned; the form of an operand of an argument */
	bool has_operand; /* @operand is valid */
};

static void source_release(struct probe_source *source)
{
	if (source->has_operand)
		regfree(&source->operand);
	free(source->notes);
	bid_sections_release(&source->sections);
}

/* Find the section of notes; its size is 0 if there is none. */
static int find_sections(struct probe_source *source, struct bid_section *ret_notes)
{
	struct bid_sections *sections = &source->sections;
	struct bid_section notes = { 0 };

	for (uint64_t i = 1; i < sections->header.shnum; i++) {
		struct bid_section section;
		const char *name;
		int r = bid_section_at(sections, i, &section);

		if (r < 0)
			return r;
		name = bid_section_name(sections, &section);
		if (!name)
			continue;
		if (strcmp(name, ".stapsdt.base") == 0)
			source->base = section.address;
		else if (strcmp(name, ".note.stapsdt") == 0 && section.type == SHT_NOTE && !(section.flags & SHF_ALLOC))
			notes = section;
	}
	*ret_notes = notes;
	return 0;
}

static int load_notes(struct probe_source *source)
{
	struct bid_section notes;
	int r = find_sections(source, &notes);

	if (r < 0 || notes.size == 0)
		return r < 0 ? r : -ENODATA;
	r = bid_elf_reader_table(source->sections.fd, notes.offset, notes.size, NOTES_MAX, &source->notes);
	if (r < 0)
		return bid_elf_reader_damage(r);
	source->notes_len = notes.size;
	source->align = notes.align == 8 ? 8 : 4;
	return 0;
}

/*
 * Translate @address into an offset in the file, as the kernel's uprobes need it. Returns 1, 0 for an address in no segment of the
 * file, or an error as bid_elf_reader_damage(): the reader limits the cost of all probes.
 */
static int to_offset(struct probe_source *source, uint64_t address, uint64_t *ret_offset)
{
	const struct bid_header *header = &source->sections.header;

	for (uint64_t i = 0; i < header->phnum; i++) {
		struct bid_segment load;
		int r = bid_segment_at(&source->sections.reader, header, i, &load);

		if (r < 0)
			return bid_elf_reader_damage(r);
		if (load.type == PT_LOAD && address >= load.address && address - load.address < load.size) {
			*ret_offset = address - load.address + load.offset;
			return 1;
		}
	}
	return 0;
}

/* Return the text at *@at before @end, and move *@at behind its NUL. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

/* Return the kernel's type for SIZE in "SIZE@OPERAND", or NULL if it has none. A negative SIZE means a signed number. */
static const char *type_of(const char *size)
{
	static const struct {
		long size;
		const char *type;
	} types[] = { { -8, ":s64" }, { -4, ":s32" }, { -2, ":s16" }, { -1, ":s8" },
		      { 1, ":u8" },   { 2, ":u16" },  { 4, ":u32" },  { 8, ":u64" } };
	long number = strtol(size, NULL, 0);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].size == number)
			return types[i].type;
	return NULL;
}

/* Operands of an assembler as perf reads them, arch_sdt_arg_parse_op() of each architecture: a register, or memory behind one. */
#define X86_OPERAND \
	"^(([-+]?)([0-9]*)\\()?" \
	"%([re]?([abcd]x|[sd]i|[sb]p)|([abcd])[lh]|([sd]i|[sb]p)l|(r([89]|1[0-5]))[dwb]?)" \
	"(\\))?$"
#define AARCH64_OPERAND "^(x([12]?[0-9]|30)|\\[sp(, ([0-9]+))?\\])$"

enum {
	GROUPS = 9,
	OPERAND_MAX = 63, /* letters */
};

/* a group of a match in @text, for "%.*s" */
#define GROUP(group) (int)((group).rm_eo - (group).rm_so), text + ((group).rm_so < 0 ? 0 : (group).rm_so)

/* The kernel has one name for all parts of a register: "ax" for rax, eax, ax, al, ah; "r8" for r8, r8d. */
static void print_x86(FILE *out, const char *text, const regmatch_t groups[static GROUPS])
{
	bool memory = groups[1].rm_so >= 0, is_old = groups[5].rm_so >= 0, is_half = groups[6].rm_so >= 0;
	const regmatch_t *name = is_old ? &groups[5] : is_half ? &groups[6] : &groups[groups[7].rm_so >= 0 ? 7 : 8];

	if (memory)
		fprintf(out, "%s%.*s%s(", text[0] == '-' ? "-" : "+", GROUP(groups[3]),
			groups[3].rm_so == groups[3].rm_eo ? "0" : "");
	fprintf(out, "%%%.*s%s%s", GROUP(*name), is_half ? "x" : "", memory ? ")" : "");
}

static void print_aarch64(FILE *out, const char *text, const regmatch_t groups[static GROUPS])
{
	if (groups[2].rm_so >= 0)
		fprintf(out, "%%x%.*s", GROUP(groups[2]));
	else
		fprintf(out, "+%.*s%s(%%sp)", GROUP(groups[4]), groups[4].rm_so < 0 ? "0" : "");
}

static void print_argument(FILE *out, const struct probe_source *source, unsigned number, const char *argument, size_t len)
{
	const char *at = memchr(argument, '@', len), *type = at ? type_of(argument) : "", *operand = at ? at + 1 : argument;
	regmatch_t groups[GROUPS];
	char text[OPERAND_MAX + 1];

	len -= (size_t)(operand - argument);
	if (!type || len > OPERAND_MAX)
		return;
	memcpy(text, operand, len);
	text[len] = '\0';
	if (regexec(&source->operand, text, GROUPS, groups, 0) != 0 || !strchr(text, '(') != !strchr(text, ')'))
		return;
	fprintf(out, " arg%u=", number);
	(source->sections.header.machine == EM_AARCH64 ? print_aarch64 : print_x86)(out, text, groups);
	fputs(type, out);
}

/*
 * Print @arguments of a static probe in the kernel's form for an event: "-4@%edi 8@(%rbx)" becomes " arg1=%di:s32
 * arg2=+0(%bx):u64". Skips an operand of another form together with its number.
 */
static void print_arguments(FILE *out, const struct probe_source *source, const char *arguments)
{
	/* some compilers write a colon for no arguments */
	if (arguments[0] == ':' || !source->has_operand)
		return;
	for (unsigned number = 1; *(arguments += strspn(arguments, " \t")); number++) {
		size_t len = strcspn(arguments, " \t");

		/* "[sp, 8]" is one */
		if (len > 4 && memcmp(arguments + len - 4, "[sp,", 4) == 0 && arguments[len] == ' ')
			len += 1 + strcspn(arguments + len + 1, " \t");
		print_argument(out, source, number, arguments, len);
		arguments += len;
	}
}

/* Prepare for the operands of the file's machine (ELF gABI, e_machine). It has none that are known otherwise. */
static int compile_operand(struct probe_source *source)
{
	unsigned machine = source->sections.header.machine;
	const char *form = machine == EM_AARCH64 ? AARCH64_OPERAND : machine == EM_X86_64 || machine == EM_386 ? X86_OPERAND : NULL;

	source->has_operand = form && regcomp(&source->operand, form, REG_EXTENDED) == 0;
	return form && !source->has_operand ? -ENOMEM : 0;
}

/* "p:GROUP/EVENT PATH:0xOFFSET(0xSEMAPHORE) arg1=..." for the caller to free */
static char *format_line(const struct probe_source *source, const char *group, const char *event, uint64_t offset,
			 uint64_t semaphore, const char *arguments)
{
	char *line = NULL;
	size_t len;
	FILE *out = open_memstream(&line, &len);

	if (!out)
		return NULL;
	fprintf(out, "p:%s/%s %s:0x%" PRIx64, group, event, source->path, offset);
	if (semaphore)
		fprintf(out, "(0x%" PRIx64 ")", semaphore);
	print_arguments(out, source, arguments);
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

/* Add a probe if the file has its location. */
static int add_probe(struct probes *probes, struct probe_source *source, uint64_t location, uint64_t semaphore,
		     const char *const texts[3])
{
	struct probe probe = { .number = probes->n };
	uint64_t offset, counter = 0;
	char group[GROUP_MAX];
	int r = is_name(texts[0]) && is_name(texts[1]) ? to_offset(source, location, &offset) : 0;

	if (r > 0 && semaphore)
		r = to_offset(source, semaphore, &counter);
	if (r <= 0)
		return r;
	if (bid_array_grow(probes->probes, probes->n, probes->room) < 0)
		return -ENOMEM;
	snprintf(group, sizeof(group), "sdt_%s", texts[0]);
	probe.line = format_line(source, group, texts[1], offset, counter, texts[2]);
	if (probe.line && strlen(probe.line) >= LINE_MAX_OF_PERF) {
		free(probe.line);
		return 0;
	}
	if (probe.line && (probes->size += strlen(probe.line)) > TEXT_MAX) {
		free(probe.line);
		return -EBADMSG;
	}
	if (!probe.line || asprintf(&probe.name, "%s:%s", group, texts[1]) < 0) {
		free(probe.line);
		return -ENOMEM;
	}
	probes->probes[probes->n++] = probe;
	return 0;
}

/* Read a note: three addresses, then the texts provider, name and arguments. The last text may be missing. */
static int read_note(struct probes *probes, struct probe_source *source, const uint8_t *desc, size_t len)
{
	const char *at, *end = (const char *)desc + len, *texts[3];
	size_t size = BID_FORM_SIZE(&source->sections.header.form, Addr);
	uint64_t location, base, semaphore;

	if (len < 3 * size)
		return -EBADMSG;
	location = bid_form_load(&source->sections.header.form, desc, size);
	base = bid_form_load(&source->sections.header.form, desc + size, size);
	semaphore = bid_form_load(&source->sections.header.form, desc + 2 * size, size);
	/* prelink(8) moves everything except notes; a note has the address of that section at link time */
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
	return add_probe(probes, source, location, semaphore, texts);
}

static int read_notes(struct probes *probes, struct probe_source *source)
{
	static const char owner[] = "stapsdt";
	const uint8_t *notes = (const uint8_t *)source->notes;
	uint64_t mask = source->align - 1;
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < source->notes_len && source->notes_len - at >= sizeof(Elf32_Nhdr)) {
		uint64_t name_len = BID_FORM_FIELD(&source->sections.header.form, notes + at, Nhdr, n_namesz);
		uint64_t desc_len = BID_FORM_FIELD(&source->sections.header.form, notes + at, Nhdr, n_descsz);
		uint64_t name = at + sizeof(Elf32_Nhdr), desc = (name + name_len + mask) & ~mask;

		if (desc > source->notes_len || desc_len > source->notes_len - desc)
			break;
		if (BID_FORM_FIELD(&source->sections.header.form, notes + at, Nhdr, n_type) == TYPE && name_len == sizeof(owner) &&
		    memcmp(notes + name, owner, sizeof(owner)) == 0)
			r = read_note(probes, source, notes + desc, (size_t)desc_len);
		at = (size_t)((desc + desc_len + mask) & ~mask);
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

/* Sort as perf does: events in the order of their first probe in the file, the definitions of an event by their text. */
static void sort_probes(struct probes *probes)
{
	struct probe *all = probes->probes;

	qsort(all, probes->n, sizeof(*all), by_name);
	for (size_t i = 0; i < probes->n; i++)
		all[i].first = i > 0 && strcmp(all[i - 1].name, all[i].name) == 0 ? all[i - 1].first : all[i].number;
	qsort(all, probes->n, sizeof(*all), by_first);
}

static void write_probes(const struct probes *probes, FILE *out)
{
	const struct probe *last = NULL;

	for (size_t i = 0; i < probes->n; i++) {
		const struct probe *probe = &probes->probes[i];

		if (!last || last->first != probe->first)
			fprintf(out, "%%%s=%s\n%s\n", probe->name, strchr(probe->name, ':') + 1, probe->line);
		else if (strcmp(last->line, probe->line) != 0)
			fprintf(out, "%s\n", probe->line);
		last = probe;
	}
}

int bid_elf_probes(int fd, const char *path, FILE *out)
{
	bid_cleanup(probes_release) struct probes probes = { 0 };
	bid_cleanup(source_release) struct probe_source source = { .path = path };
	int r;

	if (!is_visible(path))
		return -EINVAL;
	r = bid_sections_load(&source.sections, fd);
	if (r == -ENOENT)
		return -ENODATA;
	if (r == 0)
		r = load_notes(&source);
	if (r == 0)
		r = compile_operand(&source);
	if (r == 0)
		r = read_notes(&probes, &source);
	if (r == 0 && probes.n == 0)
		r = -ENODATA;
	if (r < 0)
		return r;
	sort_probes(&probes);
	write_probes(&probes, out);
	return ferror(out) ? -ENOMEM : 0;
}
