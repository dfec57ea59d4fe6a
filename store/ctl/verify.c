// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl verify */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bid/error.h>

#include "api/evict.h"
#include "api/signature.h"
#include "api/verify.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/fetch_all.h"
#include "ctl/output.h"
#include "ctl/servers.h"

enum { LIST_MAX = 1 << 30 }; /* bytes */

/*
 * A line "OWNER:DIGEST  PATH" for each file of each package. dpkg-query names the directory of its *.md5sums. rpm creates an absent
 * database: it runs only with one.
 */
static const char packages[] =
	"set -e\n"
	"if command -v dpkg-query >/dev/null; then\n"
	"	names=$(dpkg-query -W -f '${binary:Package} ')\n"
	"	for package in $names; do\n"
	"		file=$(dpkg-query --control-path \"$package\" md5sums 2>/dev/null) && [ -n \"$file\" ] || continue\n"
	"		cd \"${file%/*}\"\n"
	"		LC_ALL=C grep -aH . -- *.md5sums\n"
	"		break\n"
	"	done\n"
	"fi\n"
	"if [ \"$(ls \"$(rpm --eval %_dbpath 2>/dev/null)\" 2>/dev/null)\" ]; then\n"
	"	rpm -qa --qf '[%{=NVRA}:%{FILEDIGESTS}  %{FILENAMES}\\n]'\n"
	"fi\n";

struct listed_digest {
	const char *digest; /* in lower-case hex; in the text */
	const char *owner; /* package, in the text; NULL for the list */
	char *path; /* absolute; owned */
};

/* The digests of --against: of a list, or of the packages of this machine. */
struct against {
	const struct ctl *ctl;
	bool packages;
	char *text; /* bytes of the list or the packages, cut into strings; owned */
	struct listed_digest *by_digest, *by_path; /* the same entries twice; the arrays are owned, the paths by @by_digest */
	size_t n, room;
	bool has_md5, has_sha256; /* digests among the entries */
	pthread_mutex_t lock;
	/* under the lock */
	size_t vouched, unlisted;
	json_t *files; /* with --json or --verbose: files that are vouched for or not listed; owned, else NULL */
};

struct checking {
	const struct ctl *ctl;
	struct ctl_progress progress;
	struct against against; /* zero without --against */
	struct bid_artifact *removed; /* artifacts that a repair removed, to download again; owned, with their subpaths */
	size_t n_removed, room;
	size_t fetched;
};

/* Paths in packages may lack the "/usr" in front of /usr/bin, to which /bin is a link. */
static const char *without_usr(const char *path)
{
	return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

static int by_digest(const void *a, const void *b)
{
	const struct listed_digest *one = a, *other = b;

	return strcmp(one->digest, other->digest);
}

static int by_path(const void *a, const void *b)
{
	const struct listed_digest *one = a, *other = b;

	return strcmp(without_usr(one->path), without_usr(other->path));
}

/* Undo the escapes of sha256sum(1) in @name. */
static void unescape_name(char *name)
{
	char *to = name;

	for (; *name; name++) {
		if (name[0] == '\\' && name[1])
			*to++ = *++name == 'n' ? '\n' : *name == 'r' ? '\r' : *name;
		else
			*to++ = *name;
	}
	*to = '\0';
}

/* Add the entry of @line, "DIGEST  NAME" or "DIGEST *NAME"; @directory is the one of relative names. -EINVAL for any other form. */
static int add_entry(struct against *against, const char *owner, char *line, const char *directory)
{
	bool escaped = *line == '\\';
	char *digest = line + escaped, *name;
	size_t len = strspn(digest, "0123456789abcdefABCDEF");
	struct listed_digest entry = { .digest = digest, .owner = owner };

	if ((len != BID_FILE_SHA256 && (len != BID_FILE_MD5 || !against->packages)) || digest[len] != ' ' ||
	    (digest[len + 1] != ' ' && digest[len + 1] != '*') || !digest[len + 2])
		return -EINVAL;
	name = digest + len + 2;
	digest[len] = '\0';
	for (char *at = digest; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	if (escaped)
		unescape_name(name);
	while (strncmp(name, "./", 2) == 0)
		name += 2;
	if (bid_array_grow(against->by_digest, against->n, against->room) < 0 ||
	    asprintf(&entry.path, "%s%s%s", *name == '/' ? "" : directory, *name == '/' ? "" : "/", name) < 0)
		return -ENOMEM;
	*(len == BID_FILE_MD5 ? &against->has_md5 : &against->has_sha256) = true;
	against->by_digest[against->n++] = entry;
	return 0;
}

/* As add_entry(), for a line of the packages. One without a digest is a directory or a link, or has a digest of another kind. */
static int add_package_entry(struct against *against, char *line)
{
	char *space = strchr(line, ' '), *colon = space ? memrchr(line, ':', (size_t)(space - line)) : NULL, *suffix;
	int r;

	if (!colon)
		return 0;
	*colon = '\0';
	suffix = strrchr(line, '.');
	if (suffix && strcmp(suffix, ".md5sums") == 0)
		*suffix = '\0';
	r = add_entry(against, line, colon + 1, "");
	return r == -EINVAL ? 0 : r;
}

/* Read @fd, which is the file @path or the output of the packages. Returns 0, or an error with the number of the bad line. */
static int read_entries(struct against *against, int fd, const char *path, size_t *ret_number)
{
	bid_auto_free char *real = against->packages ? NULL : realpath(path, NULL);
	char *rest, *line;
	size_t len;
	int r;

	if (!against->packages && !real)
		return -errno;
	if (real)
		*strrchr(real, '/') = '\0';
	r = bid_read_file(fd, LIST_MAX, &against->text, &len);
	for (rest = against->text; r == 0 && (line = strsep(&rest, "\n")); ++*ret_number)
		if (against->packages)
			r = add_package_entry(against, line);
		else if (*line && *line != '#')
			r = add_entry(against, NULL, line, real);
	if (r < 0)
		return r;
	against->by_path = calloc(against->n + 1, sizeof(*against->by_path));
	if (!against->by_path)
		return -ENOMEM;
	memcpy(against->by_path, against->by_digest, against->n * sizeof(*against->by_path));
	qsort(against->by_digest, against->n, sizeof(*against->by_digest), by_digest);
	qsort(against->by_path, against->n, sizeof(*against->by_path), by_path);
	return 0;
}

/* Read the list of ctl->against. Returns CTL_DONE, or the exit status after an error message. */
static enum ctl_status load_against(const struct ctl *ctl, struct against *against)
{
	const char *const argv[] = { "sh", "-c", packages, NULL };
	char digest[BID_FILE_DIGEST_MAX];
	bid_auto_fd int fd = -1;
	size_t number = 0;
	int r;

	*against = (struct against){ .ctl = ctl,
				     .packages = strcmp(ctl->against, "packages") == 0,
				     .lock = PTHREAD_MUTEX_INITIALIZER };
	against->files = ctl->json || ctl->verbose ? json_array() : NULL;
	if (bid_file_digest(-1, BID_FILE_SHA256, digest) < 0) {
		bid_error_about("--against", 0, "this build cannot compute digests, because it lacks OpenSSL");
		return CTL_TROUBLE;
	}
	fd = against->packages ? memfd_create("packages", MFD_CLOEXEC) : open(ctl->against, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	r = fd < 0 ? -errno : against->packages ? ctl_child_exec(argv, fd) : 0;
	if (r == 0)
		r = read_entries(against, fd, ctl->against, &number);
	if (r > 0)
		bid_error_about("packages", 0, "dpkg-query or rpm failed with exit status %d", r);
	else if (r == -EINVAL)
		bid_error_about(ctl->against, r, "not a line of sha256sum(1): line %zu of '%s'", number, ctl->against);
	else if (r < 0)
		bid_error_about(ctl->against, r, "%s: '%s'", r == -ENOENT ? "no such file" : strerror(-r), ctl->against);
	else if (against->n == 0)
		bid_error_about(ctl->against, r, "no digest in '%s'", ctl->against);
	return r == -ENOENT ? CTL_REFUSED : r == 0 && against->n > 0 ? CTL_DONE : CTL_TROUBLE;
}

static void release_against(struct against *against)
{
	for (size_t i = 0; i < against->n; i++)
		free(against->by_digest[i].path);
	free(against->by_digest);
	free(against->by_path);
	free(against->text);
	json_decref(against->files);
}

/* Find the entry of the original path of @path, "usr/bin/ls/ID/elf". The path of a debug file may be that of its program. */
static const struct listed_digest *find_path(const struct against *against, const struct bid_artifact *artifact, const char *path)
{
	const char *slash = strrchr(path, '/');
	char original[PATH_MAX];
	struct listed_digest key = { .path = original };
	size_t len;

	snprintf(original, sizeof(original), "/%s", path);
	if (slash && strcmp(slash + 1, bid_kind_store_name(artifact->kind)) == 0)
		*strrchr(original, '/') = '\0';
	*strrchr(original, '/') = '\0';
	len = strlen(original);
	if (artifact->kind == BID_KIND_DEBUGINFO && strncmp(original, "/usr/lib/debug/", 15) != 0 &&
	    (len < 6 || strcmp(original + len - 6, ".debug") != 0))
		return NULL;
	return bsearch(&key, against->by_path, against->n, sizeof(key), by_path);
}

/* "package coreutils", or "'SHA256SUMS'". */
static void format_owner(const struct against *against, const struct listed_digest *entry, char *text, size_t size)
{
	snprintf(text, size, entry->owner ? "package %s" : "'%s'", entry->owner ? entry->owner : against->ctl->against);
}

/* Count a file that matches @entry, or is not listed (NULL). */
static void count_match(struct against *against, const struct listed_digest *entry, const struct bid_artifact *artifact,
			const char *path)
{
	char owner[PATH_MAX];

	if (entry)
		format_owner(against, entry, owner, sizeof(owner));
	pthread_mutex_lock(&against->lock);
	*(entry ? &against->vouched : &against->unlisted) += 1;
	if (against->files)
		json_array_append_new(against->files, json_pack("{s:n, s:o, s:o, s:s, s:o, s:s}", "finding", "stored",
								bid_json_text(path), "reason", bid_json_text(entry ? owner : NULL),
								"state", entry ? "vouched" : "unlisted", "id",
								ctl_json_id(&artifact->id), "kind", bid_kind_name(artifact->kind)));
	pthread_mutex_unlock(&against->lock);
}

static int find_digest(const struct against *against, int fd, enum bid_file_digest algorithm,
		       const struct listed_digest **ret_entry)
{
	char digest[BID_FILE_DIGEST_MAX];
	int r = bid_file_digest(fd, algorithm, digest);

	if (r == 0)
		*ret_entry = bsearch(&(struct listed_digest){ .digest = digest }, against->by_digest, against->n,
				     sizeof(**ret_entry), by_digest);
	return r;
}

/* bid_verify_config.compare */
static int compare_file(void *user, const struct bid_artifact *artifact, const char *path, int fd,
			char ret_text[static BID_VERIFY_TEXT_MAX])
{
	struct against *against = &((struct checking *)user)->against;
	char owner[BID_VERIFY_TEXT_MAX - 32];
	const struct listed_digest *entry = NULL;
	int r = against->has_sha256 ? find_digest(against, fd, BID_FILE_SHA256, &entry) : 0;

	if (r == 0 && !entry && against->has_md5)
		r = find_digest(against, fd, BID_FILE_MD5, &entry);
	if (r < 0)
		return r;
	if (!entry) {
		entry = find_path(against, artifact, path);
		if (entry) {
			format_owner(against, entry, owner, sizeof(owner));
			snprintf(ret_text, BID_VERIFY_TEXT_MAX, "has another digest in %s", owner);
			return -EBADMSG;
		}
	}
	count_match(against, entry, artifact, path);
	return 0;
}

/* With --verbose or --json, print the files that match, and those that are not listed. */
static void report_against(const struct against *against)
{
	json_t *file;
	size_t i;

	json_array_foreach(against->files, i, file)
	{
		if (against->ctl->json)
			ctl_row_json(against->ctl, json_incref(file));
		else
			ctl_row(against->ctl, CTL_TEXT("finding", 10, json_string_value(json_object_get(file, "state"))),
				CTL_TEXT("stored", 0, json_string_value(json_object_get(file, "stored"))),
				CTL_TEXT("reason", 0, json_string_value(json_object_get(file, "reason"))));
	}
}

static int remember_removed(struct checking *checking, const struct bid_artifact *artifact)
{
	if (bid_array_grow(checking->removed, checking->n_removed, checking->room) < 0)
		return -ENOMEM;
	checking->removed[checking->n_removed++] = bid_artifact_copy(artifact);
	return 0;
}

static int report_finding(void *user, const struct bid_finding *finding)
{
	struct checking *checking = user;
	const struct ctl *ctl = checking->ctl;

	ctl_progress_clear(&checking->progress);
	ctl_row(ctl, CTL_TEXT("finding", 10, bid_finding_name(finding->kind)), CTL_TEXT("stored", 0, finding->path),
		CTL_TEXT("reason", 0, finding->text),
		CTL_TEXT("state", ctl->repair ? 0 : CTL_HIDDEN, finding->repaired ? "repaired" : "left"),
		CTL_ID("id", CTL_HIDDEN, &finding->artifact.id), CTL_KIND("kind", CTL_HIDDEN, finding->artifact.kind));
	return finding->name_free && bid_kind_fetchable(finding->artifact.kind) ? remember_removed(checking, &finding->artifact)
										: 0;
}

static int show_progress(void *user, const struct bid_verify_stats *stats)
{
	struct checking *checking = user;
	char bytes[CTL_SIZE_MAX];

	ctl_progress_text(&checking->progress, "checking: %" PRIu64 " objects, %" PRIu64 " links%s%s", stats->objects, stats->links,
			  stats->bytes ? ", " : "", stats->bytes ? ctl_format_size(stats->bytes, bytes) : "");
	return 0;
}

/* Does @store have @artifact under another name? */
static bool is_stored(struct bid_store *store, const struct bid_artifact *artifact)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_store_find(store, artifact, BID_MAY_DERIVE, &file) == 0 && file.kind == artifact->kind;
}

/* Download the artifacts again that the repair moved to the quarantine. */
static enum ctl_status fetch_again(struct checking *checking, struct bid_store *store)
{
	bid_cleanup(ctl_wanted_release) struct ctl_wanted_list list = { 0 };
	enum ctl_status status;
	char hex[BID_ID_HEX_MAX];

	for (size_t i = 0; i < checking->n_removed && !checking->ctl->offline; i++)
		if (!is_stored(store, &checking->removed[i]) && ctl_want(&list, &checking->removed[i], NULL) < 0)
			return ctl_no_memory();
	status = ctl_fetch_all(checking->ctl, store, &list, 0);
	for (size_t i = 0; i < list.n && status == CTL_DONE; i++) {
		const struct ctl_wanted *wanted = &list.wanted[i];

		checking->fetched += wanted->error == 0;
		/* without a response no server is configured */
		if (wanted->error < 0 && wanted->why)
			bid_warning("%s: fetching %s of '%s' again", wanted->why, bid_kind_name(wanted->artifact.kind),
				    bid_id_format(&wanted->artifact.id, hex));
	}
	return status;
}

static uint64_t sum_of(const struct bid_verify_stats *stats)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		sum += stats->found[kind];
	return sum;
}

static void report_stats(const struct checking *checking, struct bid_store *store, const struct bid_verify_stats *stats)
{
	struct bid_forgotten kept = { 0 }, gone;
	const struct ctl *ctl = checking->ctl;
	const struct against *against = &checking->against;
	json_t *counts = json_object();

	/* quarantined files are no fault of the store, but of interest here; an absent default store has none */
	if (store)
		bid_store_forget(store, INT64_MIN, true, &kept, &gone);
	report_against(against);
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		json_object_set_new(counts, bid_finding_name((enum bid_finding_kind)kind),
				    json_integer((json_int_t)stats->found[kind]));
	ctl_totals(
		ctl, CTL_NUMBER("names", 0, stats->names), CTL_NUMBER("objects", 0, stats->objects),
		CTL_NUMBER("links", 0, stats->links), CTL_NUMBER("records", 0, stats->records),
		CTL_NUMBER("digests", ctl->deep ? 0 : CTL_HIDDEN, stats->digests), CTL_SIZE("size", CTL_HIDDEN, stats->bytes),
		CTL_NUMBER("found", 0, sum_of(stats)), CTL_JSON("findings", counts),
		CTL_NUMBER("repaired", ctl->repair ? 0 : CTL_HIDDEN, sum_of(stats) - stats->left),
		CTL_NUMBER("left", CTL_HIDDEN, stats->left), CTL_NUMBER("fetched", ctl->repair ? 0 : CTL_HIDDEN, checking->fetched),
		CTL_NUMBER("vouched", ctl->against ? 0 : CTL_HIDDEN, against->vouched),
		CTL_NUMBER("unlisted", ctl->against ? 0 : CTL_HIDDEN, against->unlisted), CTL_NUMBER("foreign", 0, stats->foreign),
		CTL_NUMBER("quarantined", kept.quarantined ? 0 : CTL_HIDDEN, kept.quarantined));
}

static enum ctl_status check_store(struct checking *checking, struct bid_store *store, const struct bid_id *ids, size_t n)
{
	const struct ctl *ctl = checking->ctl;
	struct bid_verify_config config = {
		.deep = ctl->deep,
		.repair = ctl->repair,
		.jobs = ctl->jobs,
		.ids = n ? ids : NULL,
		.n_ids = n,
		.found = report_finding,
		.compare = ctl->against ? compare_file : NULL,
		.progress = show_progress,
		.user = checking,
	};
	struct bid_verify_stats stats = { 0 };
	enum ctl_status status;
	int r = store ? bid_store_verify(store, &config, &stats) : 0;

	ctl_progress_clear(&checking->progress);
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "check the store");
	status = fetch_again(checking, store);
	report_stats(checking, store, &stats);
	if (status == CTL_DONE && n > 0 && stats.names + stats.objects + stats.links + stats.records == 0) {
		bid_error_about(bid_store_path(store), -ENOENT, "the store has nothing of %s",
				n == 1 ? "this build" : "these builds");
		return CTL_REFUSED;
	}
	return status == CTL_DONE && sum_of(&stats) > 0 ? CTL_REFUSED : status;
}

enum ctl_status ctl_verify(const struct ctl *ctl, int argc, char **argv)
{
	struct checking checking = { .ctl = ctl };
	bid_auto_free struct bid_id *ids = calloc((size_t)argc + 1, sizeof(*ids));
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status;

	if (!ids)
		return CTL_TROUBLE;
	if ((ctl->urls.n > 0 || ctl->offline) && !ctl->repair)
		return ctl_usage(ctl->offline ? "--offline" : "--url", "only '--repair' asks servers");
	if (ctl->against && ctl->repair)
		return ctl_usage("--against", "'--against' repairs nothing");
	status = ctl_servers_check(ctl);
	if (status == CTL_DONE)
		status = ctl_open_store(ctl, ctl->repair ? CTL_WRITE : CTL_READ_ITSELF, &store);
	for (int i = 0; status == CTL_DONE && i < argc; i++)
		status = ctl_which_build(store, argv[i], &ids[i], NULL);
	if (status == CTL_DONE && ctl->against)
		status = load_against(ctl, &checking.against);
	if (status == CTL_DONE)
		status = check_store(&checking, store, ids, (size_t)argc);
	release_against(&checking.against);
	for (size_t i = 0; i < checking.n_removed; i++)
		bid_artifact_release(&checking.removed[i]);
	free(checking.removed);
	return status;
}
