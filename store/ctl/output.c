// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/output.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

bool ctl_is_terminal(FILE *file)
{
	return isatty(fileno(file));
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

const char *ctl_colour(FILE *file, enum ctl_colour colour)
{
	static const char *const sequences[] = {
		[CTL_PLAIN] = "\033[0m",  [CTL_BOLD] = "\033[1m", [CTL_DIM] = "\033[2m",
		[CTL_GREEN] = "\033[32m", [CTL_RED] = "\033[31m",
	};
	const char *terminal = getenv("TERM");
	bool dumb = !ctl_is_terminal(file) || (terminal && strcmp(terminal, "dumb") == 0);

	return is_set(CTL_COLOUR_NEVER) || (dumb && !is_set(CTL_COLOUR_ALWAYS)) ? "" : sequences[colour];
}

bool ctl_progress_is_drawn(void)
{
	return ctl_is_terminal(stderr) && !is_set(CTL_PROGRESS_NEVER);
}

bool ctl_progress_wanted(void)
{
	return ctl_progress_is_drawn() || (is_set(CTL_PROGRESS_ALWAYS) && !is_set(CTL_PROGRESS_NEVER));
}

void ctl_print_text(FILE *file, const char *text)
{
	bid_auto_free char *shown = bid_escape(text, BID_ESCAPE_TEXT);

	fputs(shown ? shown : "?", file);
}

void ctl_print_label(const char *label)
{
	printf("%s%-11s%s", ctl_colour(stdout, CTL_BOLD), label, ctl_colour(stdout, CTL_PLAIN));
}

const char *ctl_format_size(uint64_t bytes, char buf[static CTL_SIZE_MAX])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	/* 1023.5 and more would print as 1024 of this unit */
	while (value >= 1023.5) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, CTL_SIZE_MAX, "%.*f %s", unit > 0 && value < 9.95 ? 1 : 0, value, units[unit]);
	return buf;
}

const char *ctl_format_time(time_t when, char buf[static CTL_TIME_MAX])
{
	struct tm local;

	if (when == 0 || !localtime_r(&when, &local) || strftime(buf, CTL_TIME_MAX, "%F %T", &local) == 0)
		snprintf(buf, CTL_TIME_MAX, "-");
	return buf;
}

json_t *ctl_json_id(const struct bid_id *id)
{
	char hex[BID_ID_HEX_MAX];

	return id && id->len ? json_string(bid_id_format(id, hex)) : json_null();
}

static json_t *kinds_to_json(unsigned kinds)
{
	json_t *names = json_array();

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (kinds & 1U << kind)
			json_array_append_new(names, json_string(bid_kind_name((enum bid_kind)kind)));
	return names;
}

static bool is_null(const struct ctl_field *field)
{
	switch (field->type) {
	case CTL_AS_TEXT:
	case CTL_AS_STATE:
		return !field->text || !*field->text;
	case CTL_AS_ID:
		return !field->id || field->id->len == 0;
	case CTL_AS_KIND:
	case CTL_AS_TIME:
		return field->number == 0;
	case CTL_AS_JSON:
		return !field->json;
	default:
		return field->number == CTL_NONE;
	}
}

static json_t *value_to_json(const struct ctl_field *field)
{
	if (is_null(field))
		return json_null();
	switch (field->type) {
	case CTL_AS_TEXT:
	case CTL_AS_STATE:
		return bid_json_text(field->text);
	case CTL_AS_ID:
		return ctl_json_id(field->id);
	case CTL_AS_KIND:
		return json_string(bid_kind_name((enum bid_kind)field->number));
	case CTL_AS_KINDS:
		return kinds_to_json((unsigned)field->number);
	case CTL_AS_BOOL:
		return json_boolean(field->number);
	case CTL_AS_JSON:
		return field->json;
	default:
		return json_integer((json_int_t)field->number);
	}
}

static json_t *fields_to_json(const struct ctl_field *fields)
{
	json_t *object = json_object();

	for (; fields->key; fields++)
		json_object_set_new(object, fields->key, value_to_json(fields));
	return object;
}

void ctl_print_kinds(FILE *file, unsigned kinds)
{
	const char *comma = "";

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		if (!(kinds & 1U << kind))
			continue;
		fprintf(file, "%s%s", comma, bid_kind_name((enum bid_kind)kind));
		comma = ",";
	}
	fputs(*comma ? "" : "-", file);
}

/* Print one value for people, or @exact for scripts: sizes in bytes, and with --null the bytes of a path. */
static void print_value(const struct ctl *ctl, FILE *file, const struct ctl_field *field, bool exact)
{
	char hex[BID_ID_HEX_MAX], size[CTL_SIZE_MAX], date[CTL_TIME_MAX];

	if (is_null(field))
		fputs(ctl->nul && field->type == CTL_AS_TEXT ? "" : "-", file);
	else if (field->type == CTL_AS_TEXT && ctl->nul)
		fputs(field->text, file);
	else if (field->type == CTL_AS_TEXT || field->type == CTL_AS_STATE) {
		fputs(field->type == CTL_AS_STATE && ctl->dry_run ? "would be " : "", file);
		ctl_print_text(file, field->text);
	} else if (field->type == CTL_AS_ID)
		fputs(bid_id_format(field->id, hex), file);
	else if (field->type == CTL_AS_KIND)
		fputs(bid_kind_name((enum bid_kind)field->number), file);
	else if (field->type == CTL_AS_KINDS)
		ctl_print_kinds(file, (unsigned)field->number);
	else if (field->type == CTL_AS_TIME)
		fputs(ctl_format_time((time_t)field->number, date), file);
	else if (field->type == CTL_AS_SIZE && !exact)
		fputs(ctl_format_size(field->number, size), file);
	else
		fprintf(file, "%" PRIu64, field->number);
}

/* Print a key as words: "paths removed", or in capitals. */
static void print_key(FILE *file, const char *key, bool capitals)
{
	for (; *key; key++)
		fputc(*key == '_' ? ' ' : capitals ? toupper((unsigned char)*key) : *key, file);
}

/* Print the columns of a row, or with @heading their names, aligned as on a terminal. */
static void print_aligned(const struct ctl *ctl, const struct ctl_field *fields, bool heading)
{
	int blanks = 0;

	for (; fields->key; fields++) {
		bid_auto_free char *cell = NULL;
		FILE *file = NULL;
		size_t len = 0;

		/* no blanks behind the last cell */
		if (fields->width != CTL_HIDDEN && (heading || fields[1].key || !is_null(fields)))
			file = open_memstream(&cell, &len);
		if (!file)
			continue;
		if (heading)
			print_key(file, fields->key, true);
		else
			print_value(ctl, file, fields, false);
		fclose(file);
		printf("%*s%*s", blanks, "", fields->width < 0 ? -fields->width : 0, cell);
		blanks = (fields->width > (int)len ? fields->width - (int)len : 0) + 2;
	}
}

static void print_row(const struct ctl *ctl, const struct ctl_field *fields)
{
	struct ctl_envelope *envelope = ctl->envelope;
	bool first = true;

	if (envelope->n++ == 0)
		envelope->aligned |= ctl_is_terminal(stdout) && !ctl->nul;
	if (envelope->aligned) {
		if (!envelope->heading || strcmp(envelope->heading, fields->key) != 0) {
			fputs(envelope->heading ? "\n" : "", stdout);
			fputs(ctl_colour(stdout, CTL_BOLD), stdout);
			print_aligned(ctl, fields, true);
			puts(ctl_colour(stdout, CTL_PLAIN));
		}
		envelope->heading = fields->key;
		print_aligned(ctl, fields, false);
		putchar('\n');
		return;
	}
	for (; fields->key; fields++) {
		if (fields->width == CTL_HIDDEN)
			continue;
		fputs(first ? "" : "\t", stdout);
		print_value(ctl, stdout, fields, true);
		first = false;
	}
	putchar(ctl->nul ? '\0' : '\n');
}

/* Print "KEY VALUE, KEY VALUE: COUNT REASON, ..." on standard error. */
static void print_summary(const struct ctl *ctl, const struct ctl_field *fields)
{
	const char *comma = ctl->dry_run ? "dry run: " : "", *reason;
	json_t *count;

	/* the summary comes last, also where both streams are one */
	fflush(stdout);
	for (; fields->key; fields++) {
		if (fields->width == CTL_HIDDEN)
			continue;
		if (fields->type != CTL_AS_JSON) {
			fputs(comma, stderr);
			comma = ", ";
			print_key(stderr, fields->key, false);
			fputc(' ', stderr);
			print_value(ctl, stderr, fields, false);
			continue;
		}
		comma = ": ";
		json_object_foreach(fields->json, reason, count)
		{
			fprintf(stderr, "%s%" JSON_INTEGER_FORMAT " %s", comma, json_integer_value(count), reason);
			comma = ", ";
		}
	}
	if (*comma == ',' || *comma == ':')
		fputc('\n', stderr);
}

/* bid_log_error_fn */
static void collect_error(void *user, const char *subject, int error, const char *text)
{
	struct ctl_envelope *envelope = user;

	pthread_mutex_lock(&envelope->lock);
	if (!envelope->errors)
		envelope->errors = json_array();
	json_array_append_new(envelope->errors,
			      json_pack("{s:o, s:o, s:s?}", "subject", bid_json_text(subject), "reason", bid_json_text(text),
					"errno", error ? strerrorname_np(error < 0 ? -error : error) : NULL));
	pthread_mutex_unlock(&envelope->lock);
}

void ctl_envelope_begin(struct ctl_envelope *envelope)
{
	*envelope = (struct ctl_envelope){ .lock = PTHREAD_MUTEX_INITIALIZER };
	bid_log_on_error(collect_error, envelope);
}

/* Write @json, and drop it. main() reports a write error, by checking the stream at the end. */
static int write_json(json_t *json)
{
	bid_auto_free char *text = json ? bid_json_dump(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(json);
	fputs(text ? text : "null", stdout);
	return text ? 0 : -ENOMEM;
}

/* Begin the envelope, and the line of a row in it. */
static void open_result(struct ctl_envelope *envelope)
{
	if (!envelope->begun) {
		fputs("{\"schema\":\"" CTL_SCHEMA "\",\"command\":", stdout);
		write_json(bid_json_text(envelope->command));
		fputs(",\"result\":[", stdout);
	}
	envelope->begun = true;
}

/* Write the end of an envelope. */
static void close_result(struct ctl_envelope *envelope)
{
	json_t *errors;
	int r = 0;

	open_result(envelope);
	pthread_mutex_lock(&envelope->lock);
	errors = bid_steal(envelope->errors);
	pthread_mutex_unlock(&envelope->lock);
	fputs(envelope->n > 0 && !envelope->stream ? "\n],\"totals\":" : "],\"totals\":", stdout);
	r = write_json(envelope->totals ? bid_steal(envelope->totals) : json_object());
	fputs(",\"errors\":", stdout);
	if (write_json(errors ? errors : json_array()) < 0 || r < 0)
		envelope->failed = true;
	fputs("}\n", stdout);
	envelope->begun = false;
	envelope->n = 0;
}

int ctl_row_json(const struct ctl *ctl, json_t *row)
{
	struct ctl_envelope *envelope = ctl->envelope;

	open_result(envelope);
	if (!envelope->stream)
		fputs(envelope->n > 0 ? ",\n" : "\n", stdout);
	envelope->n++;
	if (write_json(row) < 0)
		envelope->failed = true;
	if (envelope->stream)
		close_result(envelope);
	return envelope->failed ? -ENOMEM : 0;
}

/* Drop the values that the call owns. */
static void fields_release(const struct ctl_field *fields)
{
	for (; fields->key; fields++)
		if (fields->type == CTL_AS_JSON)
			json_decref(fields->json);
}

int ctl_row_of(const struct ctl *ctl, const struct ctl_field *fields)
{
	if (ctl->json)
		return ctl_row_json(ctl, fields_to_json(fields));
	print_row(ctl, fields);
	fields_release(fields);
	return 0;
}

void ctl_totals_of(const struct ctl *ctl, const struct ctl_field *fields)
{
	if (ctl->json) {
		ctl->envelope->totals = fields_to_json(fields);
		ctl->envelope->failed |= !ctl->envelope->totals;
		return;
	}
	if (!ctl->quiet)
		print_summary(ctl, fields);
	fields_release(fields);
}

int ctl_envelope_end(struct ctl_envelope *envelope)
{
	close_result(envelope);
	bid_log_on_error(NULL, NULL);
	return envelope->failed ? -ENOMEM : 0;
}
