// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/verify_against.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "api/signature.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/child.h"
#include "ctl/output.h"

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

struct ctl_against {
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
static int add_entry(struct ctl_against *against, const char *owner, char *line, const char *directory)
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
static int add_package_entry(struct ctl_against *against, char *line)
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
static int read_entries(struct ctl_against *against, int fd, const char *path, size_t *ret_number)
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

enum ctl_status ctl_against_load(const struct ctl *ctl, struct ctl_against **ret_against)
{
	struct ctl_against *against = calloc(1, sizeof(*against));
	const char *const argv[] = { "sh", "-c", packages, NULL };
	char digest[BID_FILE_DIGEST_MAX];
	bid_auto_fd int fd = -1;
	size_t number = 0;
	int r;

	if (!against)
		return CTL_TROUBLE;
	*ret_against = against;
	*against = (struct ctl_against){ .ctl = ctl, .packages = strcmp(ctl->against, "packages") == 0 };
	against->files = ctl->json || ctl->verbose ? json_array() : NULL;
	pthread_mutex_init(&against->lock, NULL);
	if (bid_file_digest(-1, BID_FILE_SHA256, digest) < 0) {
		bid_error_about("--against", 0, "this build cannot compute digests, because it lacks OpenSSL");
		return CTL_TROUBLE;
	}
	fd = against->packages ? memfd_create("packages", MFD_CLOEXEC) : open(ctl->against, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	r = fd < 0 ? -errno : against->packages ? ctl_child_exec_to(argv, fd) : 0;
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

void ctl_against_free(struct ctl_against *against)
{
	if (!against)
		return;
	for (size_t i = 0; i < against->n; i++)
		free(against->by_digest[i].path);
	free(against->by_digest);
	free(against->by_path);
	free(against->text);
	json_decref(against->files);
	pthread_mutex_destroy(&against->lock);
	free(against);
}

/* Find the entry of the original path of @path, "usr/bin/ls/ID/elf". The path of a debug file may be that of its program. */
static const struct listed_digest *find_path(const struct ctl_against *against, const struct bid_artifact *artifact,
					     const char *path)
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
static void format_owner(const struct ctl_against *against, const struct listed_digest *entry, char *text, size_t size)
{
	snprintf(text, size, entry->owner ? "package %s" : "'%s'", entry->owner ? entry->owner : against->ctl->against);
}

/* Count a file that matches @entry, or is not listed (NULL). */
static void count_match(struct ctl_against *against, const struct listed_digest *entry, const struct bid_artifact *artifact,
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

static int find_digest(const struct ctl_against *against, int fd, enum bid_file_digest algorithm,
		       const struct listed_digest **ret_entry)
{
	char digest[BID_FILE_DIGEST_MAX];
	int r = bid_file_digest(fd, algorithm, digest);

	if (r == 0)
		*ret_entry = bsearch(&(struct listed_digest){ .digest = digest }, against->by_digest, against->n,
				     sizeof(**ret_entry), by_digest);
	return r;
}

int ctl_against_compare(struct ctl_against *against, const struct bid_artifact *artifact, const char *path, int fd,
			char ret_text[static BID_VERIFY_TEXT_MAX])
{
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

void ctl_against_report(const struct ctl_against *against, size_t *ret_vouched, size_t *ret_unlisted)
{
	json_t *file;
	size_t i;

	*ret_vouched = against->vouched;
	*ret_unlisted = against->unlisted;
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
