// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/record_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/pack/pack.h"

enum { SUM_MAX = 24 }; /* bytes of the text of a sum, with its end; 16 are digits */

static const char *link_name(enum bid_link link)
{
	static const char *const names[] = {
		[BID_LINK_AUTO] = NULL, [BID_LINK_REFLINK] = "reflink", [BID_LINK_HARD] = "hard", [BID_LINK_COPY] = "copy"
	};

	return names[link];
}

void bid_record_set_string(json_t *object, const char *key, const char *value)
{
	if (value)
		json_object_set_new(object, key, json_string(value));
}

json_t *bid_record_json(const struct bid_record *record)
{
	const struct bid_origin *origin = record->origin;
	const struct bid_detail *detail = record->request.detail;
	char hex[BID_ID_HEX_MAX];
	json_t *json = json_object();

	bid_record_set_string(json, "id", bid_id_format(&record->request.id, hex));
	bid_record_set_string(json, "kind", bid_kind_name(record->request.kind));
	bid_record_set_string(json, "detail", detail ? bid_detail_text(detail) : NULL);
	json_object_set_new(json, "size", json_integer((json_int_t)record->size));
	json_object_set_new(json, "time", json_integer((json_int_t)time(NULL)));
	bid_record_set_string(json, "digest", record->digest);
	bid_record_set_string(json, "how", origin->how);
	bid_record_set_string(json, "link", link_name(record->link));
	bid_record_set_string(json, "server", origin->server);
	bid_record_set_string(json, "url", origin->url);
	bid_record_set_string(json, "file", origin->file);
	bid_record_set_string(json, "archive", origin->archive);
	bid_record_set_string(json, "ima_signature", origin->ima_signature);
	if (record->source)
		json_object_set_new(json, "source",
				    json_pack("{s:I, s:I, s:I, s:I, s:I}", "device", (json_int_t)record->source->st_dev, "inode",
					      (json_int_t)record->source->st_ino, "size", (json_int_t)record->source->st_size,
					      "mtime", (json_int_t)record->source->st_mtim.tv_sec, "mtime_ns",
					      (json_int_t)record->source->st_mtim.tv_nsec));
	return json;
}

/* What is recorded, but the sum itself, as it is summed up. The caller frees it. */
static char *unsealed(json_t *json)
{
	json_object_del(json, "sum");
	return json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
}

static int sum(json_t *json, char ret_text[static SUM_MAX])
{
	bid_auto_free char *text = unsealed(json);

	if (!text)
		return -ENOMEM;
	snprintf(ret_text, SUM_MAX, "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
	return 0;
}

int bid_record_print(json_t *json, char **ret_text)
{
	char sum_text[SUM_MAX], *text = NULL;
	int r = sum(json, sum_text);

	if (r == 0) {
		bid_record_set_string(json, "sum", sum_text);
		text = json_dumps(json, JSON_INDENT(1));
	}
	json_decref(json);
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	return 0;
}

int bid_record_print_packed(json_t *json, char **ret_text, size_t *ret_len)
{
	bid_auto_free char *text = unsealed(json);
	size_t len = text ? strlen(text) : 0;
	char *larger = text ? realloc(text, len + BID_PACK_SUM + 1) : NULL;

	json_decref(json);
	if (!larger)
		return -ENOMEM;
	text = larger;
	if (len + BID_PACK_SUM > BID_PACK_TEXT_MAX)
		return -EFBIG;
	*ret_len = bid_pack_seal(text, len);
	*ret_text = bid_steal(text);
	return 0;
}

/* Is @json what was written? One without a sum is older than these. */
static int check_sum(json_t *json)
{
	const char *text = json_string_value(json_object_get(json, "sum"));
	char written[SUM_MAX], computed[SUM_MAX];
	int r;

	if (!text)
		return json_object_get(json, "sum") ? -EBADMSG : 0;
	snprintf(written, sizeof(written), "%s", text);
	r = sum(json, computed);
	if (r < 0)
		return r;
	return strcmp(written, computed) == 0 ? 0 : -EBADMSG;
}

int bid_record_parse(const char *text, size_t len, json_t **ret_json)
{
	json_t *json = json_loadb(text, len, 0, NULL);
	int r = json_is_object(json) ? check_sum(json) : -EBADMSG;

	if (r < 0) {
		json_decref(json);
		return r;
	}
	*ret_json = json;
	return 0;
}

bool bid_record_says(const json_t *json, struct bid_request *ret_request)
{
	const char *id = json_string_value(json_object_get(json, "id")), *kind = json_string_value(json_object_get(json, "kind"));
	struct bid_id whole;

	if (!id || !kind || bid_id_parse_str(id, &whole) < 0)
		return false;
	*ret_request = (struct bid_request){ .id = bid_layout_filed(&whole), .kind = bid_kind_parse(kind) };
	return ret_request->kind != BID_KIND_NONE && strcmp(kind, bid_kind_name(ret_request->kind)) == 0;
}

int bid_record_parse_packed(const char *text, size_t len, const struct bid_request *request, json_t **ret_json)
{
	struct bid_id filed = bid_layout_filed(&request->id);
	json_t *json = json_loadb(text, len, 0, NULL);
	struct bid_request said;

	if (!json_is_object(json) || !bid_record_says(json, &said) || said.kind != request->kind ||
	    !bid_id_equal(&said.id, &filed)) {
		json_decref(json);
		return -EBADMSG;
	}
	json_object_del(json, "sum");
	*ret_json = json;
	return 0;
}
