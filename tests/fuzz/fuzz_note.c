// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The readers of store/elf against each other and against libelf on the same bytes:
 *   - the head of a file gives the same id as the whole file, or none yet;
 *   - libelf finds each id of the bounded reader in a note of the file. Where libelf refuses the whole file, for
 *     the count of its sections, which the reader of segments does not look at, a note has it, and bid_elf_examine() refuses it;
 *   - if both find one they are the same, but for a file whose segments and sections name two different ones: there the bounded
 *     reader, which reads the segments first, may take the segments' id, and libelf's is the sections';
 *   - bid_elf_examine() has the same id of a whole file, and agrees with libelf about the rest.
 */

#include <errno.h>
#include <gelf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../by_libelf.h"
#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "target.h"

#define INPUT_MAX (1u << 20)
#define IDS_MAX	  64

/* The ids in all notes that libelf can reach. */
struct carried {
	struct bid_id ids[IDS_MAX];
	size_t n;
	bool more; /* than fit */
	bool refused; /* the whole file */
};

static void add_notes(Elf *elf, uint64_t offset, uint64_t size, uint64_t align, struct carried *carried)
{
	size_t at = 0, next, name, desc;
	Elf_Data *data = NULL;
	GElf_Nhdr note;

	if (size > 0 && offset <= INT64_MAX)
		data = elf_getdata_rawchunk(elf, (int64_t)offset, size, align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	if (!data)
		return;
	while ((next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		const char *bytes = data->d_buf;

		at = next;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || memcmp(bytes + name, "GNU", 4) != 0)
			continue;
		if (carried->n == IDS_MAX)
			carried->more = true;
		else if (bid_id_from_bytes(bytes + desc, note.n_descsz, &carried->ids[carried->n]) == 0)
			carried->n++;
	}
}

/* By libelf over memory: by_libelf.c uses files. */
static void find_carried(const uint8_t *data, size_t size, struct carried *carried)
{
	bid_auto_free char *copy = malloc(size + 1);
	size_t segments = 0;
	Elf *elf;

	require(copy);
	memcpy(copy, data, size);
	elf_version(EV_CURRENT);
	elf = elf_memory(copy, size);
	carried->refused = !elf;
	if (!elf)
		return;
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_NOTE)
			add_notes(elf, shdr.sh_offset, shdr.sh_size, shdr.sh_addralign, carried);
	}
	if (elf_getphdrnum(elf, &segments) < 0)
		segments = 0;
	for (size_t i = 0; i < segments && !carried->more; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_NOTE)
			add_notes(elf, phdr.p_offset, phdr.p_filesz, phdr.p_align, carried);
	}
	elf_end(elf);
}

static bool is_carried(const struct carried *carried, const struct bid_id *id)
{
	for (size_t i = 0; i < carried->n; i++)
		if (bid_id_equal(&carried->ids[i], id))
			return true;
	return carried->more;
}

/* Has the file a note with this id? A note of owner "GNU" has no padding before its descriptor. */
static bool has_note(const uint8_t *data, size_t size, const struct bid_id *id)
{
	bool big = size > EI_DATA && data[EI_DATA] == ELFDATA2MSB;
	uint32_t head[] = { 4, id->len, NT_GNU_BUILD_ID };
	uint8_t note[sizeof(head) + 4 + BID_ID_MAX];

	for (size_t i = 0; i < 3; i++)
		head[i] = big ? htobe32(head[i]) : htole32(head[i]);
	memcpy(note, head, sizeof(head));
	memcpy(note + sizeof(head), "GNU", 4);
	memcpy(note + sizeof(head) + 4, id->bytes, id->len);
	return memmem(data, size, note, sizeof(head) + 4 + id->len);
}

/* Does libelf miss the note with this id, the last one of its range, with an odd length and without padding? */
static bool is_unpadded(const uint8_t *data, size_t size, const struct bid_id *id)
{
	return id->len % 8 != 0 && has_note(data, size, id);
}

static bool is_contradictory(const struct carried *carried)
{
	for (size_t i = 1; i < carried->n; i++)
		if (!bid_id_equal(&carried->ids[i], &carried->ids[0]))
			return true;
	return carried->more;
}

static bool is_same(const struct bid_elf_info *a, const struct bid_elf_info *b)
{
	return bid_id_equal(&a->alt, &b->alt) && a->has_dwarf == b->has_dwarf && a->has_symtab == b->has_symtab &&
	       a->has_code == b->has_code;
}

static void check_whole(int fd, const uint8_t *data, size_t size, const struct carried *carried, int identified,
			const struct bid_id *id)
{
	struct bid_elf_info info = { 0 }, all_libelf = { 0 };
	struct bid_id by_libelf = { 0 };
	int r, other;

	require(identified == 0 || identified == -ENODATA || identified == -ENOEXEC);
	if (identified == 0) {
		require(id->len > 0 && id->len <= BID_ID_MAX);
		require(is_carried(carried, id) || is_unpadded(data, size, id) || (carried->refused && has_note(data, size, id)));
	}

	r = by_libelf_identify(fd, &by_libelf);
	require(r == 0 || r == -ENODATA || r == -ENOEXEC);
	if (r == 0 && identified == 0)
		require(bid_id_equal(id, &by_libelf) || is_contradictory(carried) || is_unpadded(data, size, id));

	r = bid_elf_examine(fd, &info);
	require(r == -ENOEXEC || r == -EBADMSG || (r == 0 && !carried->refused));
	other = by_libelf_examine(fd, &all_libelf);
	/* libelf takes some damaged files for none */
	require((other == r && is_same(&info, &all_libelf)) || (other == -ENOEXEC && r == -EBADMSG));
	if (r == 0)
		require((info.id.len > 0) == (identified == 0) && (identified < 0 || bid_id_equal(&info.id, id)));
}

static void check_head(const uint8_t *data, size_t len, int identified, const struct bid_id *id)
{
	bid_auto_free uint8_t *head = malloc(len > 0 ? len : 1);
	struct bid_id from_head = { 0 };
	int r;

	/* a block of its own, so that a read of one byte too many fails */
	require(head);
	memcpy(head, data, len);
	r = bid_elf_build_id_in(head, len, &from_head);
	require(r == 0 || r == -EAGAIN || r == -ENODATA || r == -ENOEXEC);
	if (r == -EAGAIN)
		return;
	require(r == identified);
	if (r == 0)
		require(bid_id_equal(&from_head, id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t heads[] = { 0, 3, 16, 52, 64, 120, 176, 4096 };
	struct carried carried = { 0 };
	struct bid_id id = { 0 };
	bid_auto_fd int fd = -1;
	int identified;

	if (size > INPUT_MAX)
		return 0;
	fd = memfd_create("fuzz_note", MFD_CLOEXEC);
	require(fd >= 0 && bid_pwrite_full(fd, data, size, 0) == 0);

	find_carried(data, size, &carried);
	identified = bid_elf_build_id(fd, &id);
	check_whole(fd, data, size, &carried, identified, &id);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (heads[i] < size)
			check_head(data, heads[i], identified, &id);
	check_head(data, size, identified, &id);
	require(lseek(fd, 0, SEEK_CUR) == 0);
	return 0;
}
