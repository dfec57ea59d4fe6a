// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/here.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

#include <bid/elf.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { NOTES_MAX = 1 << 20 };

/* In the middle of notes, which are in this machine's byte order, with lengths rounded up to 4. */
static size_t rounded(uint32_t len)
{
	return ((size_t)len + 3) & ~(size_t)3;
}

int ctl_here_notes(const char *path, struct bid_id *ret_id)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	bid_auto_free char *notes = NULL;
	size_t len, at = 0;
	Elf64_Nhdr note;
	int r;

	if (fd < 0)
		return -errno;
	r = bid_read_file(fd, NOTES_MAX, &notes, &len);
	if (r < 0)
		return r;
	while (len - at >= sizeof(note)) {
		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		if (rounded(note.n_namesz) > len - at || note.n_descsz > len - at - rounded(note.n_namesz))
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") && memcmp(notes + at, "GNU", 4) == 0)
			return bid_id_from_bytes(notes + at + 4, note.n_descsz, ret_id) < 0 ? -ENODATA : 0;
		at += rounded(note.n_namesz);
		at += rounded(note.n_descsz) < len - at ? rounded(note.n_descsz) : len - at;
	}
	return -ENODATA;
}

int ctl_here_kernel(struct bid_id *ret_id)
{
	return ctl_here_notes("/sys/kernel/notes", ret_id);
}

int ctl_here_vdso(struct bid_id *ret_id)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);

	/* its notes are in its first page, as it is all mapped */
	return image && bid_elf_identify_head(image, (size_t)getauxval(AT_PAGESZ), ret_id) == 0 ? 0 : -ENODATA;
}
