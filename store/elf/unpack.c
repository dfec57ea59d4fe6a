// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compressed modules, kernel images and core files, by libarchive. */
#include "api/elf.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/byte_order.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"

static void cleanup_archive(struct archive **archive)
{
	archive_read_free(*archive);
}

/* Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header" */
enum {
	SETUP_SECTS = 0x1f1, /* sectors of 512 bytes after the boot sector; 0 means 4 */
	MAGIC = 0x202, /* "HdrS" */
	VERSION = 0x206,
	PAYLOAD_OFFSET = 0x248, /* from the beginning of the protected-mode code, right after the setup code */
	PAYLOAD_LENGTH = 0x24c,
	HEADER_SIZE = 0x250,
	SECTOR = 512,
	WITH_PAYLOAD = 0x208, /* first version with these fields */
};

enum { BLOCK = 64 << 10 }; /* bytes of input for libarchive at a time */

/* A range of a file. */
struct packed {
	off_t offset, end;
};

/*
 * Find the compressed kernel in the bzImage (x86) open at @fd: Documentation/arch/x86/boot.rst, boot protocol 2.08 or later.
 * Returns 1 for a bzImage. Returns 0 for another file; the range is then the whole file. Returns -EBADMSG for a truncated bzImage,
 * or an error of pread(2).
 */
static int kernel_payload(int fd, struct packed *ret_packed)
{
	uint8_t header[HEADER_SIZE];
	struct packed packed;
	struct stat st;
	unsigned setup;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	n = bid_pread_full(fd, header, sizeof(header), 0);
	if (n < 0)
		return (int)n;
	if (n < HEADER_SIZE || memcmp(header + MAGIC, "HdrS", 4) != 0 || bid_load16(false, header + VERSION) < WITH_PAYLOAD) {
		*ret_packed = (struct packed){ .end = st.st_size };
		return 0;
	}
	setup = header[SETUP_SECTS] ? header[SETUP_SECTS] : 4;
	packed.offset = (off_t)(setup + 1) * SECTOR + bid_load32(false, header + PAYLOAD_OFFSET);
	packed.end = packed.offset + bid_load32(false, header + PAYLOAD_LENGTH);
	if (packed.end > st.st_size || packed.end - packed.offset < 8)
		return -EBADMSG;
	*ret_packed = packed;
	return 1;
}

struct packed_input {
	int fd; /* borrowed */
	off_t begin, offset, end;
	uint8_t buffer[BLOCK];
};

/*
 * Does the input end as a gzip file of one member with these contents does (RFC 1952, 2.3.1 and 8)? libarchive skips this checksum,
 * and verifies those of other formats. 0, -EBADMSG or as pread(2).
 */
static int check_gzip_end(uLong crc, uint64_t total, const struct packed_input *input)
{
	uint8_t trailer[8];
	ssize_t n = bid_pread_full(input->fd, trailer, sizeof(trailer), input->end - (off_t)sizeof(trailer));

	if (n < 0)
		return (int)n;
	if (n != sizeof(trailer) || bid_load32(false, trailer) != crc || bid_load32(false, trailer + 4) != (uint32_t)total)
		return -EBADMSG;
	return 0;
}

/* Find the compressed bytes in the file at @fd, and libarchive's code for their filter. Returns -EBADMSG if there are none. */
static int find_packed(int fd, struct packed *ret_packed, int *ret_filter)
{
	static const struct {
		const char *magic;
		size_t len;
		int filter;
		bool kernel; /* only a kernel is packed so */
	} packings[] = {
		{ "\x1f\x8b", 2, ARCHIVE_FILTER_GZIP, false }, /* RFC 1952, 2.3.1 */
		{ "\xfd\x37zXZ", 6, ARCHIVE_FILTER_XZ, false }, /* The .xz File Format, 2.1.1.1; the sixth byte is the NUL */
		{ "\x28\xb5\x2f\xfd", 4, ARCHIVE_FILTER_ZSTD, false }, /* RFC 8878, 3.1.1 */
		{ "\x02\x21\x4c\x18", 4, ARCHIVE_FILTER_LZ4, true }, /* lz4_Frame_format.md, "Legacy frame" */
		{ "BZh", 3, ARCHIVE_FILTER_BZIP2, true },
		{ "\x5d\0\0", 3, ARCHIVE_FILTER_LZMA, true }, /* lzma-file-format.txt, 1.1: the usual properties */
	};
	char head[6];
	bool kernel;
	ssize_t n;
	int r;

	r = kernel_payload(fd, ret_packed);
	if (r < 0)
		return r;
	kernel = r > 0;
	n = bid_pread_full(fd, head, sizeof(head), ret_packed->offset);
	if (n < 0)
		return (int)n;
	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++) {
		if ((size_t)n < packings[i].len || memcmp(head, packings[i].magic, packings[i].len) != 0)
			continue;
		if (packings[i].kernel && !kernel)
			continue;
		/*
		 * the kernel build appends the size for all formats except gzip, which contains it: scripts/Makefile.lib,
		 * size_append
		 */
		if (kernel && packings[i].filter != ARCHIVE_FILTER_GZIP)
			ret_packed->end -= (off_t)sizeof(uint32_t);
		*ret_filter = packings[i].filter;
		return 0;
	}
	return -EBADMSG;
}

int bid_elf_is_packed(int fd)
{
	struct packed packed;
	int filter;
	int r = kernel_payload(fd, &packed);

	/* a kernel's, and cut short */
	if (r == -EBADMSG)
		return 1;
	if (r >= 0)
		r = find_packed(fd, &packed, &filter);
	return r == -EBADMSG ? 0 : r < 0 ? r : 1;
}

static la_ssize_t read_input(struct archive *archive, void *user, const void **ret_buffer)
{
	struct packed_input *input = user;
	off_t rest = input->end - input->offset;
	ssize_t n = bid_pread_full(input->fd, input->buffer,
				   rest < (off_t)sizeof(input->buffer) ? (size_t)rest : sizeof(input->buffer), input->offset);

	if (n < 0) {
		archive_set_error(archive, (int)-n, "cannot read");
		return -1;
	}
	input->offset += n;
	*ret_buffer = input->buffer;
	return n;
}

/* The error of reading, or -EBADMSG for the codes that libarchive has for the bytes themselves. */
static int archive_error(struct archive *archive)
{
	int error = archive_errno(archive);

	return error <= 0 || error == EILSEQ || error == EINVAL ? -EBADMSG : -error;
}

static int copy_content(struct archive *archive, struct packed_input *input, int filter, uint64_t max,
			int (*write)(void *user, const void *data, size_t len), void *user)
{
	uint64_t total = 0;
	uLong crc = 0;

	for (;;) {
		const void *data;
		la_int64_t offset;
		size_t len;
		int r;

		r = archive_read_data_block(archive, &data, &len, &offset);
		if (r == ARCHIVE_EOF)
			return filter == ARCHIVE_FILTER_GZIP ? check_gzip_end(crc, total, input) : 0;
		if (r != ARCHIVE_OK)
			return archive_error(archive);
		if (len > max - total)
			return -EFBIG;
		total += len;
		/* a few KiB may unpack to many MiB, but not to @max bytes */
		if (total > BID_LIMIT_UNPACKED + (uint64_t)(input->offset - input->begin) * BID_LIMIT_UNPACKED_RATIO)
			return -EFBIG;
		if (filter == ARCHIVE_FILTER_GZIP)
			crc = crc32_z(crc, data, len);
		r = write(user, data, len);
		if (r < 0)
			return r;
	}
}

int bid_elf_unpack(int fd, uint64_t max, int (*write)(void *user, const void *data, size_t len), void *user)
{
	bid_cleanup(cleanup_archive) struct archive *archive = NULL;
	bid_auto_free struct packed_input *input = NULL;
	struct archive_entry *entry;
	struct packed packed;
	int filter, r;

	r = find_packed(fd, &packed, &filter);
	if (r < 0)
		return r;
	input = calloc(1, sizeof(*input));
	archive = archive_read_new();
	if (!input || !archive)
		return -ENOMEM;
	input->fd = fd;
	input->begin = input->offset = packed.offset;
	input->end = packed.end;
	/*
	 * Use exactly this filter, once: no module or kernel is compressed several times. Without the codec libarchive warns or
	 * fails.
	 */
	if (archive_read_append_filter(archive, filter) != ARCHIVE_OK)
		return archive_errno(archive) == ENOMEM ? -ENOMEM : -EOPNOTSUPP;
	if (archive_read_support_format_raw(archive) != ARCHIVE_OK ||
	    archive_read_open(archive, input, NULL, read_input, NULL) != ARCHIVE_OK ||
	    archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		return archive_error(archive);
	return copy_content(archive, input, filter, max, write, user);
}

struct sink {
	int fd;
	off_t len;
};

static int write_sink(void *user, const void *data, size_t len)
{
	struct sink *sink = user;
	int r = bid_pwrite_full(sink->fd, data, len, sink->len);

	sink->len += (off_t)len;
	return r;
}

int bid_elf_unpack_to(int fd, uint64_t max, int to)
{
	struct sink sink = { .fd = to };

	return bid_elf_unpack(fd, max, write_sink, &sink);
}

static int identify_packed(int fd, struct bid_id *ret_id)
{
	bid_auto_fd int unpacked = memfd_create("bid-unpacked", MFD_CLOEXEC);
	int r;

	if (unpacked < 0)
		return -errno;
	r = bid_elf_unpack_to(fd, BID_ELF_UNPACKED_MAX, unpacked);
	if (r == 0)
		r = bid_elf_build_id(unpacked, ret_id);
	return r == -ENOEXEC || r == -ENODATA ? -EBADMSG : r;
}

int bid_elf_build_id_any(int fd, struct bid_id *ret_id)
{
	struct bid_elf_info info;
	int packed, r = bid_elf_build_id(fd, ret_id);

	/* the missing rest of a truncated file may contain the id */
	if (r == -ENODATA) {
		r = bid_elf_examine(fd, &info);
		return r < 0 ? r : -ENODATA;
	}
	if (r != -ENOEXEC)
		return r;
	packed = bid_elf_is_packed(fd);
	return packed == 0 ? -ENOEXEC : packed < 0 ? packed : identify_packed(fd, ret_id);
}

static bool is_zero(const char *data, size_t len)
{
	return len == 0 || (data[0] == '\0' && memcmp(data, data + 1, len - 1) == 0);
}

/* Write pages of zeros as holes: memory is mostly zeros. */
static int write_sparse(int fd, const char *data, size_t len, off_t at)
{
	enum { PAGE = 4096 };
	int r = 0;

	while (r == 0 && len > 0) {
		size_t n = len < PAGE ? len : PAGE;

		if (!is_zero(data, n))
			r = bid_pwrite_full(fd, data, n, at);
		data += n;
		at += (off_t)n;
		len -= n;
	}
	return r;
}

int bid_elf_core_unpack(int fd, int to)
{
	bid_cleanup(cleanup_archive) struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	off_t end = 0;
	int r = 0;

	if (!archive)
		return -ENOMEM;
	/* the formats of systemd-coredump(8) and of common tools; data in another format passes unchanged */
	archive_read_support_filter_zstd(archive);
	archive_read_support_filter_lz4(archive);
	archive_read_support_filter_xz(archive);
	archive_read_support_filter_gzip(archive);
	archive_read_support_filter_bzip2(archive);
	if (archive_read_support_format_raw(archive) != ARCHIVE_OK || archive_read_open_fd(archive, fd, BLOCK) != ARCHIVE_OK ||
	    archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		return archive_error(archive);
	while (r == 0) {
		const void *data;
		la_int64_t offset;
		size_t len;
		int status = archive_read_data_block(archive, &data, &len, &offset);

		if (status == ARCHIVE_EOF)
			return ftruncate(to, end) < 0 ? -errno : 0;
		if (status != ARCHIVE_OK)
			return archive_error(archive);
		r = write_sparse(to, data, len, end);
		end += (off_t)len;
	}
	return r;
}
