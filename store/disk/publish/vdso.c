// SPDX-License-Identifier: LGPL-2.1-or-later
/* Images of vDSOs that lie in files, as the kernel's own build installs them, and Linux distributions package them. */
#include <string.h>

#include <bid/elf.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/publish/add.h"

enum {
	IMAGE_MAX = 1 << 20, /* bytes */
	NAMES_MAX = 1 << 14, /* of .dynstr */
};

static bool begins(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* /lib/modules/RELEASE/vdso/vdso32.so, or the name that the program has it by (vdso(7)). Of other files nothing is read. */
static bool has_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(name);

	return (begins(name, "vdso") && len > 3 && strcmp(name + len - 3, ".so") == 0) || begins(name, "linux-vdso") ||
	       begins(name, "linux-gate");
}

/* Is there the kernel's name for it among its dynamic strings, of which its DT_SONAME is one? */
static bool has_soname(int fd)
{
	struct bid_elf_section section;
	char names[NAMES_MAX];
	size_t len;

	if (bid_elf_find_section(fd, ".dynstr", &section) < 0 || section.size > sizeof(names) ||
	    bid_pread_full(fd, names, section.size, (off_t)section.offset) != (ssize_t)section.size)
		return false;
	len = section.size;
	return memmem(names, len, "\0linux-vdso", strlen("linux-vdso") + 1) ||
	       memmem(names, len, "\0linux-gate", strlen("linux-gate") + 1);
}

int bid_adding_vdso(struct bid_store *store, struct bid_adding *adding)
{
	struct bid_request request = { .id = adding->info.id, .kind = BID_KIND_VDSO };
	bid_auto_free char *image = NULL;
	struct bid_added added;
	size_t len;
	int r;

	if (adding->packed || !has_name(adding->path) || adding->st.st_size > IMAGE_MAX || !has_soname(adding->fd))
		return 0;
	r = bid_read_file(adding->fd, IMAGE_MAX, &image, &len);
	if (r == 0)
		r = bid_store_add_data(store, &request, bid_adding_mode(store, adding), image, len, &added);
	/* the ELF file goes beside it, to where perf's link leads */
	adding->is_new = false;
	return r;
}
