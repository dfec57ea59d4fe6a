// SPDX-License-Identifier: LGPL-2.1-or-later
#include "api/artifact.h"

#include <string.h>

static const struct {
	const char *name;
	const char *store_name; /* perf, util/build-id.c */
	bool fetchable;
	bool elf;
} kinds[BID_KIND_END] = {
	[BID_KIND_NONE] = { "none", "none", false, false },
	[BID_KIND_ELF] = { "elf", "elf", true, true },
	[BID_KIND_DEBUGINFO] = { "debuginfo", "debug", true, true },
	[BID_KIND_KALLSYMS] = { "kallsyms", "kallsyms", false, false },
	[BID_KIND_PROBES] = { "probes", "probes", false, false },
	[BID_KIND_VDSO] = { "vdso", "vdso", false, true },
	[BID_KIND_UNSTRIPPED] = { "unstripped", "unstripped", false, true },
	[BID_KIND_SOURCE] = { "source", "source", true, false },
	[BID_KIND_SECTION] = { "section", "section", true, false },
};

bool bid_request_valid(const struct bid_request *request)
{
	return request->id.len > 0 && request->kind > BID_KIND_NONE && request->kind < BID_KIND_END &&
	       bid_kind_has_detail(request->kind) == (request->detail != NULL);
}

struct bid_request bid_request_keep(const struct bid_request *request)
{
	bid_detail_ref(request->detail);
	return *request;
}

void bid_request_release(struct bid_request *request)
{
	bid_detail_unref(request->detail);
	request->detail = NULL;
}

static enum bid_kind checked(enum bid_kind kind)
{
	return (unsigned)kind < BID_KIND_END ? kind : BID_KIND_NONE;
}

const char *bid_kind_name(enum bid_kind kind)
{
	return kinds[checked(kind)].name;
}

const char *bid_kind_store_name(enum bid_kind kind)
{
	return kinds[checked(kind)].store_name;
}

bool bid_kind_fetchable(enum bid_kind kind)
{
	return kinds[checked(kind)].fetchable;
}

bool bid_kind_is_elf(enum bid_kind kind)
{
	return kinds[checked(kind)].elf;
}

bool bid_kind_has_detail(enum bid_kind kind)
{
	return kind >= BID_KIND_SOURCE && kind < BID_KIND_END;
}

enum bid_kind bid_kind_parse(const char *name)
{
	if (strcmp(name, "executable") == 0)
		return BID_KIND_ELF;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_SOURCE; kind++)
		if (strcmp(name, kinds[kind].name) == 0)
			return (enum bid_kind)kind;
	return BID_KIND_NONE;
}
