// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/record_name.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

const char *bid_record_suffix(const struct bid_request *request, char buf[static BID_RECORD_SUFFIX_MAX])
{
	const char *detail = bid_detail_text(request->detail);

	if (!request->detail)
		snprintf(buf, BID_RECORD_SUFFIX_MAX, "%s", bid_kind_name(request->kind));
	else
		snprintf(buf, BID_RECORD_SUFFIX_MAX, "%s-%016llx", bid_kind_name(request->kind),
			 (unsigned long long)XXH3_64bits(detail, strlen(detail)));
	return buf;
}

static enum bid_kind parse_suffix(const char *suffix)
{
	enum bid_kind kind = bid_kind_parse(suffix);

	/* not by an alias */
	if (kind != BID_KIND_NONE)
		return strcmp(bid_kind_name(kind), suffix) == 0 ? kind : BID_KIND_NONE;
	for (int i = BID_KIND_COUNT; i < BID_KIND_END; i++) {
		const char *name = bid_kind_name((enum bid_kind)i);
		size_t len = strlen(name);

		if (strncmp(suffix, name, len) == 0 && suffix[len] == '-' && strspn(suffix + len + 1, "0123456789abcdef") == 16 &&
		    suffix[len + 17] == '\0')
			return (enum bid_kind)i;
	}
	return BID_KIND_NONE;
}

bool bid_record_parse_name(const char *first, const char *name, struct bid_request *ret_request)
{
	const char *dot = strrchr(name, '.');
	char hex[2 + NAME_MAX + 1];

	if (!dot)
		return false;
	ret_request->kind = parse_suffix(dot + 1);
	ret_request->detail = NULL;
	if (ret_request->kind == BID_KIND_NONE)
		return false;
	snprintf(hex, sizeof(hex), "%.2s%.*s", first, (int)(dot - name), name);
	return bid_id_parse_str(hex, &ret_request->id) == 0;
}

bool bid_record_has_name(const struct bid_request *request, const char *name)
{
	const char *dot = strrchr(name, '.');
	char suffix[BID_RECORD_SUFFIX_MAX];

	return dot && strcmp(dot + 1, bid_record_suffix(request, suffix)) == 0;
}
