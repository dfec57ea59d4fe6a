// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * For check_system_ids.py: reads file names, each ended by NUL, and answers each with a record "NAME TAB FIRST TAB SECOND NUL".
 * FIRST is what bid_elf_build_id() says, SECOND what bid_elf_examine() says: an id in hex, "-" for an ELF file without one, or
 * the error in words; or that libelf alone says something else of the file.
 */
#include <bid/error.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../by_libelf.h"
#include "api/elf.h"
#include "base/cleanup.h"

static const char *tell(int error, const struct bid_id *id, char hex[static BID_ID_HEX_MAX])
{
	if (error == -ENODATA || (error == 0 && id->len == 0))
		return "-";
	if (error < 0)
		return bid_strerror(error);
	return bid_id_format(id, hex);
}

/* Does libelf alone agree with bid_elf_examine()? */
static bool libelf_agrees(int fd, int examined, const struct bid_elf_info *info)
{
	struct bid_elf_info other = { 0 };

	return by_libelf_examine(fd, &other) == examined && bid_id_equal(&info->id, &other.id) &&
	       bid_id_equal(&info->alt, &other.alt) && info->has_dwarf == other.has_dwarf && info->has_symtab == other.has_symtab &&
	       info->has_code == other.has_code;
}

static int answer(const char *name)
{
	char first[BID_ID_HEX_MAX], second[BID_ID_HEX_MAX];
	struct bid_elf_info info = { 0 };
	struct bid_id id = { 0 };
	bid_auto_fd int fd = -1;
	const char *said;
	int identified, examined;

	fd = open(name, O_RDONLY | O_CLOEXEC);
	identified = fd < 0 ? -errno : bid_elf_build_id(fd, &id);
	examined = fd < 0 ? identified : bid_elf_examine(fd, &info);
	said = fd < 0 || libelf_agrees(fd, examined, &info) ? tell(examined, &info.id, second) : "not what libelf says";
	if (printf("%s\t%s\t%s%c", name, tell(identified, &id, first), said, '\0') < 0)
		return -EIO;
	return 0;
}

int main(void)
{
	bid_auto_free char *name = NULL;
	size_t room = 0;

	while (getdelim(&name, &room, '\0', stdin) > 0)
		if (answer(name) < 0)
			return 3;
	return ferror(stdin) || fflush(stdout) != 0 ? 3 : 0;
}
