// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of perf's probe cache against its contract:
 *   - it prints accepted text unchanged, except for a last line without an end;
 *   - each event matches its own name, and the parts of each definition lie in it, in order.
 */
#include "ctl/probe_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target.h"

#define INPUT_MAX (1u << 20)

static void check_definition(const char *text)
{
	const char *end = text + strlen(text);
	struct ctl_definition definition;

	if (ctl_definition_parse(text, &definition) < 0)
		return;
	require(definition.type == text && definition.type_len > 0 && definition.group_len > 0 && definition.event_len > 0);
	require(definition.group == definition.type + definition.type_len + 1);
	require(definition.event == definition.group + definition.group_len + 1);
	require(definition.place == definition.event + definition.event_len + 1);
	require(definition.path_len < definition.place_len && (definition.path_len > 0) == (definition.place[0] == '/'));
	require(definition.rest == definition.place + definition.place_len && definition.rest <= end);
}

static void check_probe(const struct ctl_probe *probe)
{
	size_t len = ctl_probe_name_len(probe);
	bid_auto_free char *pattern = malloc(2 * len + 1);
	char *at = pattern;

	require(pattern);
	for (size_t i = 0; i < len; i++) {
		*at++ = '\\';
		*at++ = probe->text[i];
	}
	*at = '\0';
	require(ctl_probe_matches(probe, pattern) && ctl_probe_matches(probe, "*"));
	for (size_t i = 0; i < probe->n; i++)
		check_definition(probe->definitions[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	bid_auto_free char *printed = NULL;
	char *text = malloc(size + 1);
	size_t len;
	FILE *out;
	int r;

	require(text);
	if (size > INPUT_MAX) {
		free(text);
		return 0;
	}
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	check_definition(text);
	r = ctl_probe_file_parse(text, size, &file);
	require(r == 0 || r == -EBADMSG);
	if (r < 0)
		return 0;
	out = open_memstream(&printed, &len);
	require(out);
	for (size_t i = 0; i < file.n; i++) {
		check_probe(&file.probes[i]);
		ctl_probe_print(out, &file.probes[i]);
	}
	require(fclose(out) == 0);
	require(len == size + (size > 0 && data[size - 1] != '\n') && (size == 0 || memcmp(printed, data, size) == 0));
	return 0;
}
