// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files with huge sizes in their headers. The input changes fields of a small kernel with sections, symbols and static probes, one
 * after the other, to values at the limits of a field. It also changes the size of the file; the added part is one hole, or many.
 * The last section may have many copies, and the names of sections a text of many MiB. For every input:
 *   - no reader asks for much memory at once, or ever has much;
 *   - no function of the mount reads much, or writes much more than the file has on disk;
 *   - all readers together end after a moment of processor time;
 *   - each reader returns a documented error.
 */

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "target.h"

enum {
	MEMORY_MAX_MIB = 512,
	READ_MAX_MIB = 56, /* limit of one call: a kernel's symbols, their names and the sections */
	WRITTEN_MAX_MIB = 128, /* on disk; an input has 32 at most */
	CPU_MAX_S = 10, /* for a sanitized build on a busy machine; most take milliseconds */
	CHANGES_MAX = 64,
	PUNCHED = 8192, /* where the first byte between holes is */
	TEXT = 16 << 20, /* where a long text is, and its size */
	COPIES_MAX = 1 << 17,
	BLOCKS_MAX = 2048,
	BLOCK = 4096, /* bytes on disk for a byte of data */
	SECTIONS = 6,
};

/* A malloc(3) above this limit fails, and is an error of the reader. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=256:allocator_may_return_null=1:quarantine_size_mb=1";
}

struct sparse_file {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Nhdr note;
	char owner[4];
	uint8_t id[20];
	char names[72];
	Elf64_Sym symbols[2];
	Elf64_Shdr sections[SECTIONS];
};

/* A change: of @size bytes at @offset. */
struct field {
	size_t offset, size;
};

#define FIELD(member) \
	{ \
		offsetof(struct sparse_file, member), sizeof(((struct sparse_file *)0)->member) \
	}
#define SECTION(n) \
	FIELD(sections[n].sh_name), FIELD(sections[n].sh_type), FIELD(sections[n].sh_flags), FIELD(sections[n].sh_offset), \
		FIELD(sections[n].sh_size), FIELD(sections[n].sh_link), FIELD(sections[n].sh_entsize), \
		FIELD(sections[n].sh_addralign)
#define SEGMENT(n) FIELD(segments[n].p_type), FIELD(segments[n].p_offset), FIELD(segments[n].p_filesz), FIELD(segments[n].p_align)

/* make_sparse.py counts them */
static const struct field fields[] = {
	FIELD(header.e_type),
	FIELD(header.e_phoff),
	FIELD(header.e_phnum),
	FIELD(header.e_shoff),
	FIELD(header.e_shnum),
	FIELD(header.e_shstrndx),
	SEGMENT(0),
	SEGMENT(1),
	SECTION(0),
	SECTION(1),
	SECTION(2),
	SECTION(3),
	SECTION(4),
	SECTION(5),
	FIELD(note.n_namesz),
	FIELD(note.n_descsz),
	FIELD(symbols[1].st_name),
	FIELD(header.e_ident[EI_CLASS]),
	FIELD(header.e_ident[EI_DATA]),
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static void make_file(struct sparse_file *file)
{
	static const char names[] = "\0.shstrtab\0.symtab\0.strtab\0.text\0.note.stapsdt\0.gnu_debugaltlink";

	*file = (struct sparse_file){
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_EXEC,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = offsetof(struct sparse_file, segments),
			    .e_shoff = offsetof(struct sparse_file, sections),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2,
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = SECTIONS,
			    .e_shstrndx = 1 },
		.segments = { { .p_type = PT_NOTE, .p_offset = offsetof(struct sparse_file, note), .p_filesz = 36, .p_align = 4 },
			      { .p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = 0xffffffff81000000, .p_filesz = 16 } },
		.note = { 4, 20, NT_GNU_BUILD_ID },
		.owner = "GNU",
		.id = { 1, 2, 3 },
		.symbols = { { 0 }, { .st_name = 28, .st_info = STT_FUNC, .st_shndx = 4 } },
		.sections = { { 0 },
			      { .sh_name = 1,
				.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct sparse_file, names),
				.sh_size = sizeof(file->names) },
			      { .sh_name = 11,
				.sh_type = SHT_SYMTAB,
				.sh_offset = offsetof(struct sparse_file, symbols),
				.sh_size = sizeof(file->symbols),
				.sh_link = 3,
				.sh_entsize = sizeof(Elf64_Sym) },
			      { .sh_name = 19,
				.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct sparse_file, names),
				.sh_size = sizeof(file->names) },
			      { .sh_name = 27, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_size = 16 },
			      { .sh_name = 33,
				.sh_type = SHT_NOTE,
				.sh_offset = offsetof(struct sparse_file, note),
				.sh_size = 36 } },
	};
	memcpy(file->names, names, sizeof(names));
}

/* 2^(bits - 1), with a little more or less: 0 is 0. */
static uint64_t value_of(uint8_t bits, int8_t more)
{
	bits %= 65;
	return (bits ? UINT64_C(1) << (bits - 1) : 0) + (uint64_t)(int64_t)more;
}

static int see_name(void *user, const char *name)
{
	require(strlen(name) <= NAME_MAX);
	return 0;
}

static int see_core_file(void *user, const struct bid_elf_core_file *file)
{
	return 0;
}

static bool is_documented(int r)
{
	return r >= 0 || r == -ENOEXEC || r == -ENODATA || r == -EBADMSG || r == -ENOENT || r == -EINVAL || r == -EFBIG ||
	       r == -EOPNOTSUPP;
}

/* Bytes read by this process; 0 where the kernel does not count. */
static long long bytes_read(void)
{
	FILE *io = fopen("/proc/self/io", "re");
	long long n = 0;

	if (!io)
		return 0;
	if (fscanf(io, "rchar: %lld", &n) != 1)
		n = 0;
	fclose(io);
	return n;
}

/* A reader says @r, and had @before bytes read. */
static void check_look(int r, long long before)
{
	require(is_documented(r));
	require(bytes_read() - before < (long long)READ_MAX_MIB << 20);
}

/* Put the files together. */
static void unstrip(int elf, int debug)
{
	bid_auto_fd int merged = memfd_create("fuzz_merged", MFD_CLOEXEC);
	long long before = bytes_read();
	struct stat st;

	check_look(bid_elf_unstrip(elf, debug, UINT64_MAX, merged), before);
	require(fstat(merged, &st) == 0 && st.st_blocks < (blkcnt_t)WRITTEN_MAX_MIB << 11);
}

static void read_all(int fd, int plain)
{
	struct bid_elf_section section;
	struct bid_elf_debuglink link;
	struct bid_elf_info info;
	struct bid_id id;
	bid_auto_file FILE *out = fopen("/dev/null", "we");

	require(out);
#define LOOK(call) \
	do { \
		long long before = bytes_read(); \
		check_look(call, before); \
	} while (0)
	LOOK(bid_elf_build_id(fd, &id));
	LOOK(bid_elf_examine(fd, &info));
	LOOK(bid_elf_find_section(fd, ".none", &section));
	LOOK(bid_elf_each_section(fd, see_name, NULL));
	LOOK(bid_elf_debuglink(fd, &link));
	LOOK(bid_elf_is_kernel(fd));
	LOOK(bid_elf_kallsyms(fd, out));
	LOOK(bid_elf_probes(fd, "/usr/bin/a", out));
	unstrip(fd, fd);
	unstrip(fd, plain);
	unstrip(plain, fd);
	/* a dump of many threads has more notes */
	require(is_documented(bid_elf_core_each(fd, see_core_file, NULL)));
	require(is_documented(bid_elf_is_packed(fd)));
	require(is_documented(bid_kallsyms_check_file(fd)));
}

/* Bytes @step apart make many holes of one; one byte apart they make a long text, with @names before it. */
static void punch(int fd, uint64_t length, uint64_t step, const char *names, size_t names_len)
{
	if (step == 1 && length > TEXT) {
		size_t len = length - TEXT < TEXT ? (size_t)(length - TEXT) : TEXT;
		bid_auto_free char *text = malloc(TEXT);

		require(text);
		memset(text, 'x', TEXT);
		memcpy(text, names, names_len);
		text[len - 1] = '\0';
		require(bid_pwrite_full(fd, text, len, TEXT) == 0);
	}
	for (uint64_t i = 0; i < BLOCKS_MAX && step >= BLOCK && step < length && PUNCHED + i * step < length; i++)
		require(pwrite(fd, "x", 1, (off_t)(PUNCHED + i * step)) == 1);
}

/* Write @file, and @n copies of its last section behind it. */
static void write_file(int fd, const struct sparse_file *file, size_t n)
{
	bid_auto_free Elf64_Shdr *copies = calloc(n + 1, sizeof(*copies));

	require(copies);
	for (size_t i = 0; i < n; i++)
		copies[i] = file->sections[SECTIONS - 1];
	require(bid_pwrite_full(fd, file, sizeof(*file), 0) == 0);
	require(bid_pwrite_full(fd, copies, n * sizeof(*copies), sizeof(*file)) == 0);
}

static double cpu_s(void)
{
	struct timespec now;

	require(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bid_auto_fd int fd = memfd_create("fuzz_sparse", MFD_CLOEXEC);
	bid_auto_fd int plain = memfd_create("fuzz_plain", MFD_CLOEXEC);
	uint64_t length = sizeof(struct sparse_file), step = 0, copies = 0;
	double before = cpu_s();
	struct sparse_file file;
	struct rusage usage;

	require(fd >= 0 && plain >= 0);
	make_file(&file);
	write_file(plain, &file, 0);
	for (size_t i = 0; i + 3 <= size && i < 3 * CHANGES_MAX; i += 3) {
		size_t index = data[i] % (FIELDS + 3);
		uint64_t number = value_of(data[i + 1], (int8_t)data[i + 2]), value = htole64(number);

		if (index < FIELDS) {
			memcpy((uint8_t *)&file + fields[index].offset, &value, fields[index].size);
		} else if (index == FIELDS) {
			length = number & (uint64_t)INT64_MAX >> 12;
		} else if (index == FIELDS + 1) {
			step = number & (uint64_t)INT64_MAX >> 12;
		} else {
			copies = number < COPIES_MAX ? number : COPIES_MAX;
			file.header.e_shnum = 0;
			file.sections[0].sh_size = SECTIONS + copies;
			length = sizeof(file) + copies * sizeof(Elf64_Shdr);
		}
	}
	write_file(fd, &file, copies);
	require(ftruncate(fd, (off_t)length) == 0);
	punch(fd, length, step, file.names, sizeof(file.names));
	read_all(fd, plain);
	require(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss < (long)MEMORY_MAX_MIB << 10);
	require(cpu_s() - before < CPU_MAX_S);
	return 0;
}
