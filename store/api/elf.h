/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading ELF files: which build is this, and what is in it? No function here ever writes, or trusts a length it reads: what one
 * file can cost is limited, however large it says it is (docs/ARCHITECTURE.md, "Limits").
 */
#ifndef BID_API_ELF_H
#define BID_API_ELF_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <bid/id.h>

/*
 * As bid_elf_identify() of <bid/id.h>, from the first @len bytes of a file, as they come in from a server. Returns additionally
 *   -EAGAIN	what there is so far does not tell; only the whole file does, see bid_elf_identify()
 */
int bid_elf_identify_head(const void *data, size_t len, struct bid_id *ret_id);

struct bid_elf_info {
	struct bid_id id; /* len 0 if there is none */
	bool has_dwarf; /* has .debug_info or, without code, any .debug_ section, with bytes in it; likewise .zdebug_ */
	bool is_skeleton; /* one of the first units of its DWARF is: the rest is in a .dwo file or a .dwp, which have no build-id */
	bool has_symtab; /* has SHT_SYMTAB with bytes in it */
	bool has_code; /* has an executable section with bytes in it: not a separate debug file */
	struct bid_id alt; /* build-id of the dwz file that its DWARF refers to, by .gnu_debugaltlink; len 0 if none */
};

/*
 * Examine the whole ELF file open at @fd: id, contents, and that the headers' tables and every section that has bytes lie inside
 * the file, which finds truncated files. Costs four reads for most files. A file with more sections than are looked at is examined
 * by its segments, and one whose section names are too long for that has no DWARF here. Returns 0, or
 *   -ENOEXEC	not an ELF file
 *   -EBADMSG	damaged or cut short
 *   other	as pread(2), or -ENOMEM
 */
int bid_elf_examine(int fd, struct bid_elf_info *ret_info);

/* Where the bytes of a section are in its file. */
struct bid_elf_section {
	uint64_t offset;
	uint64_t size;
};

/*
 * The first section called @name of the ELF file open at @fd that has its bytes in the file (of type SHT_NOBITS it has none). What
 * is SHF_COMPRESSED is so: its bytes begin with an Elf32_Chdr or Elf64_Chdr. Returns 0, -ENOENT if there is none, -ENOEXEC, or as
 * pread(2).
 */
int bid_elf_find_section(int fd, const char *name, struct bid_elf_section *ret_section);

/*
 * Call @fn with the name of every section that bid_elf_find_section() would find, in the file's order, once for each section. A
 * name is one that a file can have, of NAME_MAX bytes at most; what has a longer one is not found. A non-zero return ends it and is
 * returned. Otherwise 0, -ENOEXEC, or as pread(2).
 */
int bid_elf_each_section(int fd, int (*fn)(void *user, const char *name), void *user);

/* Which separate debug file a program says is its own. */
struct bid_elf_debuglink {
	char name[NAME_MAX + 1]; /* never empty, without a slash */
	uint32_t crc; /* of the whole debug file, as bid_elf_checksum() */
};

/* What .gnu_debuglink of the ELF file open at @fd says. 0, -ENOENT without one that makes sense, -ENOEXEC, or as pread(2). */
int bid_elf_debuglink(int fd, struct bid_elf_debuglink *ret_link);

/* The CRC-32 of the file open at @fd, which is read as a whole. 0, -ENOMEM or as pread(2). */
int bid_elf_checksum(int fd, uint32_t *ret_crc);

/*
 * Is the file open at @fd a packed one that may have an ELF file in it: gzip, xz or zstd, as kernel modules are, or a kernel image
 * (bzImage) with one of those, lz4, bzip2 or lzma, be it cut short? Returns 1, 0, or as pread(2).
 */
int bid_elf_is_packed(int fd);

/*
 * Write the unpacked content of the packed file open at @fd, at most @max bytes of it, through @write (0 or a negative errno,
 * which ends it). Of a kernel image that is the kernel, vmlinux. Returns 0, -EBADMSG for a damaged file, -EOPNOTSUPP if this
 * libarchive lacks the codec, -EFBIG above @max, or what @write returned.
 */
int bid_elf_unpack(int fd, uint64_t max, int (*write)(void *user, const void *data, size_t len), void *user);

/* What no kernel nor module comes near, for @max: a bomb must end. Bytes. */
#define BID_ELF_UNPACKED_MAX (UINT64_C(1) << 29)

/* The same into the empty file open at @to. Errors also as pwrite(2). */
int bid_elf_unpack_to(int fd, uint64_t max, int to);

/*
 * Read the build-id of the file open at @fd, or of the ELF file that is packed in it, which takes memory for all of that. Only 0,
 * -ENOEXEC and -ENODATA say for certain whose the file is. Returns 0, or
 *   -ENOEXEC	neither an ELF file nor packed in a way that bid_elf_is_packed() knows
 *   -ENODATA	a whole ELF file without a build-id
 *   -EBADMSG	a damaged ELF file without a build-id, or a packed file that is damaged, or has no ELF file with a build-id in it
 *   other	as bid_elf_unpack_to() and pread(2)
 */
int bid_elf_identify_any(int fd, struct bid_id *ret_id);

/*
 * Is the ELF file open at @fd a 64-bit kernel (vmlinux), or the separate debug file of one: has it segments in the upper half of
 * the address space? Returns 1, 0, -EBADMSG for a damaged one, or as bid_elf_examine().
 */
int bid_elf_is_kernel(int fd);

/*
 * Write the symbol table of the kernel (vmlinux) open at @fd through @write, as in /proc/kallsyms: "ADDRESS TYPE NAME" lines by
 * address, with the letters of nm(1), the addresses that it was linked at, without what the kernel leaves out of its own table
 * (scripts/mksysmap), and what has one address in the kernel's order (scripts/kallsyms.c). Returns 0, -ENODATA for what is no
 * 64-bit kernel or has no symbol table, -EBADMSG for a damaged one, as bid_elf_examine(), or what @write returned.
 */
int bid_elf_kallsyms(int fd, int (*write)(void *user, const void *data, size_t len), void *user);

/*
 * Write the static probes of the ELF file open at @fd, its notes of systemtap's sys/sdt.h, through @write, as perf's probe cache
 * has them (docs/FORMAT.md, "Probe definitions"), for the file @path: places and semaphores are offsets in it. Arguments that perf
 * cannot read are left out. Returns 0, -ENODATA if there are none, -EBADMSG for damaged ones, -EINVAL for a path with blanks or
 * control characters, which no definition can name, as bid_elf_examine(), or what @write returned.
 */
int bid_elf_probes(int fd, const char *path, int (*write)(void *user, const void *data, size_t len), void *user);

/* A file that a dead process had mapped. */
struct bid_elf_core_file {
	struct bid_id id; /* len 0 if the core does not have the memory that tells, or the file has none */
	const char *path; /* as the kernel wrote it: any bytes, perhaps " (deleted)" behind it. Dies when the callback returns */
	bool code; /* mapped as code, too */
};

/* A non-zero return ends the reading, which then returns that value. */
typedef int (*bid_elf_core_fn)(void *user, const struct bid_elf_core_file *file);

/*
 * Call @fn for each file of which the core file open at @fd lists a mapping of its beginning, or of code; the program first:
 * core(5), note NT_FILE. Files that are no ELF files are among them, and a file that was mapped twice comes twice. The ids are
 * read from the memory in the core, which has them if it was dumped with the ELF headers (bit 4 of /proc/PID/coredump_filter, set
 * by default).
 * Reads some KiB per file, 256 MiB in sum at most, and holds at most 100 MiB, whatever the core says. Returns 0, or
 *   -ENOEXEC	not an ELF file
 *   -EINVAL	one, but not a core file
 *   -ENODATA	a core file that does not list what was mapped
 *   -EBADMSG	damaged or cut short
 *   other	as pread(2), or -ENOMEM
 */
int bid_elf_core_each(int fd, bid_elf_core_fn fn, void *user);

/*
 * Write the core file that comes from @fd, which may be a pipe, into the empty file open at @to, where bid_elf_core_each() can
 * read it: unpacked, if it is packed by zstd, lz4, xz, gzip or bzip2, as systemd-coredump(8) stores it, and with holes for zeros.
 * Returns 0, -EBADMSG for what is damaged or cut short, or empty, -ENOMEM, or as read(2) and pwrite(2).
 */
int bid_elf_core_unpack(int fd, int to);

#endif
