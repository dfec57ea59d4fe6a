/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Build-ids: the name under which everything here is kept.
 *
 * A build-id is the descriptor of an ELF note of type NT_GNU_BUILD_ID and owner "GNU" (ELF gABI, "Note Section"; ld(1)
 * --build-id). It is 1 to 64 bytes here: 20 for SHA-1, 16 for MD5 and UUID, 8 for lld's fast hash, 32 for BLAKE3.
 */
#ifndef BID_ID_H
#define BID_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BID_ID_MAX	64 /* bytes */
#define BID_ID_HEX_MAX	(2 * BID_ID_MAX + 1) /* characters, with the terminating NUL */
#define BID_ID_PERF_MAX 20 /* bytes; perf cuts longer ids to this length */

struct bid_id {
	uint8_t len; /* bytes in use, 1..BID_ID_MAX; 0 is "no id" */
	uint8_t bytes[BID_ID_MAX]; /* the rest is zero */
};

/*
 * Read @n characters at @hex as an id. Only lower-case hex of even length, 2 to 128 digits, is an id.
 * Returns 0 or -EINVAL.
 */
int bid_id_parse(const char *hex, size_t n, struct bid_id *ret_id);

/* The same for a NUL-terminated string. */
int bid_id_parse_str(const char *hex, struct bid_id *ret_id);

/* Write @text, up to one digit more than an id can have, with the digits A to F in lower case into @buf, and return @buf. */
const char *bid_id_lower(const char *text, char buf[static BID_ID_HEX_MAX + 1]);

/* An id of @n raw bytes. Returns 0, or -EINVAL if @n is 0 or above BID_ID_MAX. */
int bid_id_from_bytes(const void *bytes, size_t n, struct bid_id *ret_id);

/* Write @id as lower-case hex, NUL-terminated, into @buf, and return @buf. */
const char *bid_id_format(const struct bid_id *id, char buf[static BID_ID_HEX_MAX]);

bool bid_id_equal(const struct bid_id *a, const struct bid_id *b);

/*
 * May a file with the id @carried be served for a request of @requested? True for equal ids, and for the two aliases that tools
 * make of an id:
 *   - perf keeps the first 20 bytes of a longer id: @requested is those 20 bytes;
 *   - perf pads a short id with zero bytes, to a multiple of 4 or to 20: @requested is @carried and zero bytes, 20 at most.
 */
bool bid_id_answers(const struct bid_id *carried, const struct bid_id *requested);

/*
 * The build-id of the ELF file open at @fd, of either class and byte order. Costs one pread() of 4 KiB for most files; falls
 * back to the section headers (relocatable files, some separate debug files). The file offset is not moved.
 * The first NT_GNU_BUILD_ID note wins, in the order of the section headers if there are any, as with readelf -n.
 * May block on disk. Returns 0, or
 *   -ENOEXEC	not an ELF file
 *   -ENODATA	an ELF file (or core file) without a build-id, or with more headers than are looked at
 *   other	as pread(2)
 */
int bid_elf_build_id(int fd, struct bid_id *ret_id);

#endif
