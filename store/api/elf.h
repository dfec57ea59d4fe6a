/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading ELF files: their build-id and contents. No function here writes, or trusts a length from the file. The cost of a file is
 * limited, whatever size it claims (docs/ARCHITECTURE.md, "Limits").
 */
#ifndef BID_API_ELF_H
#define BID_API_ELF_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <bid/id.h>

/*
 * As bid_elf_build_id() of <bid/id.h>, from the first @len bytes of a file, for example of a download. Returns additionally
 *   -EAGAIN	the bytes do not suffice; only the whole file does, see bid_elf_build_id()
 */
int bid_elf_build_id_in(const void *data, size_t len, struct bid_id *ret_id);

struct bid_elf_info {
	struct bid_id id; /* len 0 if there is none */
	bool has_dwarf; /* has bytes in .debug_info or, without code, in any .debug_ section; likewise .zdebug_ */
	bool has_symtab; /* has bytes in an SHT_SYMTAB section */
	bool has_code; /* has bytes in an executable section: not a separate debug file */
	struct bid_id alt; /* build-id of the dwz file of its DWARF, by .gnu_debugaltlink; len 0 if none */
};

/*
 * Examine the whole ELF file open at @fd: its id and contents. Checks that the header tables and all sections with bytes lie inside
 * the file, which detects truncated files. Costs four reads for most files. Above the limit of sections it examines the segments
 * instead; above the limit of section names it reports no DWARF. Returns 0, or
 *   -ENOEXEC	not an ELF file
 *   -EBADMSG	damaged or truncated
 *   other	as pread(2), or -ENOMEM
 */
int bid_elf_examine(int fd, struct bid_elf_info *ret_info);

/*
 * Is the DWARF of the ELF file open at @fd split (DWARF 5, 3.1.2 "Skeleton Compilation Unit Entries"; in DWARF 4 an extension of
 * GNU)? One of its first units is then a skeleton: the rest is in a .dwo file or a .dwp, without a build-id. Costs one read for
 * each of a few units of DWARF 4. Returns false also for unreadable and compressed sections.
 */
bool bid_elf_is_skeleton(int fd);

/* Where the bytes of a section are in its file. */
struct bid_elf_section {
	uint64_t offset;
	uint64_t size;
	bool compressed; /* SHF_COMPRESSED */
	bool big; /* the file is big-endian */
};

/*
 * Find the first section called @name of the ELF file open at @fd with bytes in the file; a section of type SHT_NOBITS has none.
 * The bytes of an SHF_COMPRESSED section begin with an Elf32_Chdr or Elf64_Chdr. Returns 0, -ENOENT, -ENOEXEC, or as pread(2).
 */
int bid_elf_find_section(int fd, const char *name, struct bid_elf_section *ret_section);

/*
 * Call @fn with the name of every section that bid_elf_find_section() would find, in the order of the file, once for each section.
 * A name is a valid file name of at most NAME_MAX bytes; sections with longer names are skipped. A non-zero return ends the
 * enumeration and is returned. Otherwise 0, -ENOEXEC, or as pread(2).
 */
int bid_elf_each_section(int fd, int (*fn)(void *user, const char *name), void *user);

/* a program's link to its separate debug file */
struct bid_elf_debuglink {
	char name[NAME_MAX + 1]; /* never empty, without a slash */
	uint32_t crc; /* checksum of the whole debug file, as bid_elf_checksum() */
};

/* Read .gnu_debuglink of the ELF file open at @fd. Returns 0, -ENOENT without a valid one, -ENOEXEC, or as pread(2). */
int bid_elf_debuglink(int fd, struct bid_elf_debuglink *ret_link);

/* Read the whole file open at @fd and compute its CRC-32. Returns 0, -ENOMEM or as pread(2). */
int bid_elf_checksum(int fd, uint32_t *ret_crc);

/*
 * Is the file open at @fd compressed, and may it contain an ELF file? True for gzip, xz and zstd, as for kernel modules, and for a
 * kernel image (bzImage) with one of these, lz4, bzip2 or lzma; also for truncated files. Returns 1, 0, or as pread(2).
 */
int bid_elf_is_packed(int fd);

/*
 * Unpack the compressed file open at @fd, at most @max bytes, through @write. @write returns 0 or a negative errno, which ends the
 * unpacking. For a kernel image the output is the kernel, vmlinux. Returns 0, -EBADMSG for a damaged file, -EOPNOTSUPP if this
 * libarchive lacks the codec, -EFBIG above @max, or the result of @write.
 */
int bid_elf_unpack(int fd, uint64_t max, int (*write)(void *user, const void *data, size_t len), void *user);

/* limit in bytes for @max, far above any kernel or module: it ends a bomb */
#define BID_ELF_UNPACKED_MAX (UINT64_C(1) << 29)

/* The same into the empty file open at @to. Errors also as pwrite(2). */
int bid_elf_unpack_to(int fd, uint64_t max, int to);

/*
 * Read the build-id of the file open at @fd, or of the ELF file compressed in it, which takes memory for all its bytes. Only 0,
 * -ENOEXEC and -ENODATA are certain. Returns 0, or
 *   -ENOEXEC	neither an ELF file nor compressed in a way that bid_elf_is_packed() knows
 *   -ENODATA	a whole ELF file without a build-id
 *   -EBADMSG	a damaged ELF file without a build-id, a damaged compressed file, or one without an ELF file with a build-id
 *   other	as bid_elf_unpack_to() and pread(2)
 */
int bid_elf_build_id_any(int fd, struct bid_id *ret_id);

/*
 * Put the ELF file open at @fd and its separate debug file open at @debug_fd together into the empty file open at @to, of at most
 * @max bytes, like eu-unstrip(1): the segments of the one, and the sections of the other. Compressed sections stay compressed. A
 * section of the debug file without bytes gets those of the ELF file. Takes memory for headers and names alone. Returns 0, or
 *   -EBADMSG	damaged, or files of different builds
 *   -EOPNOTSUPP	a relocatable file, or one without section headers or above the limits
 *   -EFBIG	more than @max bytes
 *   other	-ENOEXEC for no ELF file, -ENOMEM, or as pread(2) and pwrite(2)
 */
int bid_elf_unstrip(int fd, int debug_fd, uint64_t max, int to);

/*
 * Is the ELF file open at @fd a 64-bit kernel (vmlinux), or the separate debug file of one: has it segments in the upper half of
 * the address space? Returns 1, 0, -EBADMSG for a damaged one, or as bid_elf_examine().
 */
int bid_elf_is_kernel(int fd);

/*
 * Write the symbol table of the kernel (vmlinux) open at @fd to @out, as in /proc/kallsyms: lines "ADDRESS TYPE NAME" by
 * address, with the letters of nm(1) and the addresses at link time. It leaves out the symbols that the kernel leaves out of its
 * own table (scripts/mksysmap). Symbols of one address have the kernel's order (scripts/kallsyms.c). Returns 0; -ENODATA for no
 * 64-bit kernel or no symbol table; -EBADMSG for a damaged table; -EFBIG above the limit, with a part of the table at @out; or as
 * bid_elf_examine().
 */
int bid_elf_kallsyms(int fd, FILE *out);

/*
 * Write the static probes of the ELF file open at @fd, its notes of systemtap's sys/sdt.h, to @out, in the form of perf's
 * probe cache (docs/FORMAT.md, "Probe definitions"). The definitions are for the file @path; locations and semaphores are offsets
 * in it. Leaves out arguments that perf cannot read. Returns 0; -ENODATA without probes; -EBADMSG for damaged ones; -EINVAL for a
 * path with blanks or control characters, which no definition can contain; or as bid_elf_examine().
 */
int bid_elf_probes(int fd, const char *path, FILE *out);

/* a mapping of a file by a dead process */
struct bid_elf_core_file {
	struct bid_id id; /* len 0 if the core lacks the memory with the id, or the mapping does not begin the file */
	const char *path; /* as the kernel wrote it: any bytes, perhaps with " (deleted)"; dies when the callback returns */
	bool code; /* this mapping is one of code */
};

/* Takes a mapped file. A non-zero return ends the reading, which then returns this value. */
typedef int (*bid_elf_core_fn)(void *user, const struct bid_elf_core_file *file);

/*
 * Call @fn for each mapping of the beginning of a file, and of its code, in the core file open at @fd: core(5), note NT_FILE. This
 * includes files that are no ELF files. The ids come from the memory in the core. A core has this memory if it was dumped with the
 * ELF headers (bit 4 of /proc/PID/coredump_filter, the default). Reads some KiB per file, 256 MiB in sum at most, and holds at most
 * 120 MiB, whatever the core claims. Returns 0, or
 *   -ENOEXEC	not an ELF file
 *   -EINVAL	an ELF file, but no core file
 *   -ENODATA	a core file without a list of mappings
 *   -EBADMSG	damaged or truncated
 *   other	as pread(2), or -ENOMEM
 */
int bid_elf_core_each(int fd, bid_elf_core_fn fn, void *user);

/*
 * Write the core file from @fd, perhaps a pipe, into the empty file open at @to, for bid_elf_core_each(). Unpacks zstd, lz4, xz,
 * gzip and bzip2, the formats of systemd-coredump(8), and writes zeros as holes. Returns 0; -EBADMSG for damaged, truncated or
 * empty input; -ENOMEM; or as read(2) and pwrite(2).
 */
int bid_elf_core_unpack(int fd, int to);

#endif
