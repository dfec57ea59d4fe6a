// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/running_kernel.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"

enum {
	NOTES_MAX = 1 << 20, /* bytes */
	KALLSYMS_MAX = 1 << 28,
};

int ctl_running_read(const char *path, size_t max, char **ret_text, size_t *ret_len)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : bid_read_file(fd, max, ret_text, ret_len);
}

/* Round a length of notes up to a multiple of 4. Notes have this machine's byte order. */
static size_t round_up(uint32_t len)
{
	return ((size_t)len + 3) & ~(size_t)3;
}

int ctl_running_notes(const char *path, struct bid_id *ret_id)
{
	bid_auto_free char *notes = NULL;
	size_t len, at = 0;
	Elf64_Nhdr note;
	int r = ctl_running_read(path, NOTES_MAX, &notes, &len);

	if (r < 0)
		return r;
	while (len - at >= sizeof(note)) {
		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		if (round_up(note.n_namesz) > len - at || note.n_descsz > len - at - round_up(note.n_namesz))
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") && memcmp(notes + at, "GNU", 4) == 0)
			return bid_id_from_bytes(notes + at + 4, note.n_descsz, ret_id) < 0 ? -ENODATA : 0;
		at += round_up(note.n_namesz);
		at += round_up(note.n_descsz) < len - at ? round_up(note.n_descsz) : len - at;
	}
	return -ENODATA;
}

const char *ctl_running_strerror(int error)
{
	return error == -ENODATA ? "no build-id in it" : strerror(-error);
}

int ctl_running_kernel(struct bid_id *ret_id)
{
	return ctl_running_notes("/sys/kernel/notes", ret_id);
}

void ctl_running_data_release(struct ctl_running_data *data)
{
	free(data->data);
}

int ctl_running_kallsyms(struct ctl_running_data *ret_data)
{
	bid_auto_free char *text = NULL;
	struct bid_id id;
	size_t len;
	int r;

	if (ctl_running_kernel(&id) < 0)
		return -ENODATA;
	if (ctl_running_read("/proc/kallsyms", KALLSYMS_MAX, &text, &len) < 0)
		return -EACCES;
	r = bid_kallsyms_check(text, len);
	if (r < 0)
		return r;
	*ret_data = (struct ctl_running_data){
		.artifact = { .id = id, .kind = BID_KIND_KALLSYMS },
		.name = "[kernel.kallsyms]",
		/* the store must not reveal kernel addresses to users who cannot read them here */
		.mode = 0400,
		.data = bid_steal(text),
		.len = len,
	};
	return 0;
}

const char *ctl_running_why(int error)
{
	switch (error) {
	case -ENODATA:
		return "cannot read the kernel's build-id in '/sys/kernel/notes'";
	case -EPERM:
	case -EBADMSG:
		return bid_kallsyms_why(error);
	default:
		return "cannot read the kernel's symbol table - try it as root";
	}
}

int ctl_running_vdso_id(struct bid_id *ret_id)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);

	/* the whole image is mapped, and its notes are in the first page */
	return image && bid_elf_build_id_in(image, (size_t)getauxval(AT_PAGESZ), ret_id) == 0 ? 0 : -ENODATA;
}

/* Return the size of the mapping of this process that begins at @start. */
static size_t mapping_size(unsigned long start)
{
	bid_auto_file FILE *maps = fopen("/proc/self/maps", "re");
	bid_auto_free char *line = NULL;
	size_t size = 0;

	while (maps && getline(&line, &size, maps) > 0) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from == start)
			return to - from;
	}
	return 0;
}

int ctl_running_vdso(struct ctl_running_data *ret_data)
{
	unsigned long start = getauxval(AT_SYSINFO_EHDR);
	size_t size = start ? mapping_size(start) : 0;
	bid_auto_free char *copy = size ? malloc(size) : NULL;
	struct bid_id id;

	if (size == 0)
		return -ENOENT;
	if (!copy)
		return -ENOMEM;
	/* start comes from the kernel: the compiler knows no object there */
	memcpy(copy, (const void *)start, size);
	if (bid_elf_build_id_in(copy, size, &id) < 0)
		return -ENODATA;
	*ret_data = (struct ctl_running_data){
		.artifact = { .id = id, .kind = BID_KIND_VDSO },
		.name = "[vdso]",
		.mode = 0444,
		.data = bid_steal(copy),
		.len = size,
	};
	return 0;
}
