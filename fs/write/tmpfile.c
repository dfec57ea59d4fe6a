// SPDX-License-Identifier: LGPL-2.1-or-later
#include "write/tmpfile.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "vfs/tree.h"
#include "vfs/whiteouts.h"

enum { ABANDONED_S = 3600 };

struct tmpfile_entry {
	struct bid_tmpfile tmpfile; /* first, for entry_of() */
	unsigned refs; /* one for the name, one for each caller; the lock guards this and all below */
	bool named;
	unsigned writers; /* handles for writing */
	pid_t writer; /* thread of the last open for writing */
	int64_t used_s; /* bid_clock_s() of the last use */
	TAILQ_ENTRY(tmpfile_entry) link;
};

struct bid_tmpfiles {
	struct bid_store *store; /* borrowed */
	struct bid_whiteouts *probe_whiteouts; /* borrowed */
	pthread_mutex_t lock; /* guards all below */
	uint32_t last; /* last number */
	TAILQ_HEAD(, tmpfile_entry) entries; /* newest first; few, because perf writes one after the other */
};

static struct tmpfile_entry *entry_of(struct bid_tmpfile *tmpfile)
{
	return (struct tmpfile_entry *)tmpfile;
}

int bid_tmpfiles_new(struct bid_store *store, struct bid_whiteouts *probe_whiteouts, struct bid_tmpfiles **ret_tmpfiles)
{
	struct bid_tmpfiles *tmpfiles = calloc(1, sizeof(*tmpfiles));

	if (!tmpfiles)
		return -ENOMEM;
	tmpfiles->store = store;
	tmpfiles->probe_whiteouts = probe_whiteouts;
	pthread_mutex_init(&tmpfiles->lock, NULL);
	TAILQ_INIT(&tmpfiles->entries);
	*ret_tmpfiles = tmpfiles;
	return 0;
}

static void entry_free(struct tmpfile_entry *entry)
{
	bid_written_file_free(entry->tmpfile.file);
	free(entry->tmpfile.dir);
	free(entry->tmpfile.name);
	free(entry);
}

void bid_tmpfiles_free(struct bid_tmpfiles *tmpfiles)
{
	struct tmpfile_entry *entry;

	if (!tmpfiles)
		return;
	while ((entry = TAILQ_FIRST(&tmpfiles->entries))) {
		TAILQ_REMOVE(&tmpfiles->entries, entry, link);
		entry_free(entry);
	}
	pthread_mutex_destroy(&tmpfiles->lock);
	free(tmpfiles);
}

/* Locking: the lock. */
static struct tmpfile_entry *find_entry(struct bid_tmpfiles *tmpfiles, const char *dir, const char *name)
{
	struct tmpfile_entry *entry;

	TAILQ_FOREACH (entry, &tmpfiles->entries, link)
		if (entry->named && strcmp(entry->tmpfile.name, name) == 0 && strcmp(entry->tmpfile.dir, dir) == 0)
			return entry;
	return NULL;
}

/* Add a reference to @entry, which may be NULL. Locking: the lock. */
static struct bid_tmpfile *ref_entry(struct tmpfile_entry *entry)
{
	if (!entry)
		return NULL;
	entry->refs++;
	entry->used_s = bid_clock_s();
	return &entry->tmpfile;
}

int bid_tmpfiles_begin(struct bid_tmpfiles *tmpfiles, const struct bid_id *id, const char *dir, const char *name,
		       struct bid_tmpfile **ret_tmpfile)
{
	struct tmpfile_entry *entry = calloc(1, sizeof(*entry));
	int r;

	if (!entry)
		return -ENOMEM;
	entry->tmpfile.id = *id;
	entry->tmpfile.kind = bid_tree_is_temporary(dir) ? BID_KIND_NONE : bid_kind_parse_store_name(name);
	entry->tmpfile.dir = strdup(dir);
	entry->tmpfile.name = strdup(name);
	entry->used_s = bid_clock_s();
	entry->named = true;
	entry->refs = 2; /* the name and the caller */
	r = entry->tmpfile.dir && entry->tmpfile.name ? bid_written_file_new(tmpfiles->store, &entry->tmpfile.file) : -ENOMEM;
	if (r < 0) {
		entry_free(entry);
		return r;
	}
	pthread_mutex_lock(&tmpfiles->lock);
	if (find_entry(tmpfiles, dir, name)) {
		r = -EEXIST;
	} else {
		entry->tmpfile.number = ++tmpfiles->last;
		TAILQ_INSERT_HEAD(&tmpfiles->entries, entry, link);
	}
	pthread_mutex_unlock(&tmpfiles->lock);
	if (r < 0) {
		entry_free(entry);
		return r;
	}
	*ret_tmpfile = &entry->tmpfile;
	return 0;
}

struct bid_tmpfile *bid_tmpfiles_find_number(struct bid_tmpfiles *tmpfiles, uint32_t number)
{
	struct bid_tmpfile *tmpfile;
	struct tmpfile_entry *entry;

	pthread_mutex_lock(&tmpfiles->lock);
	TAILQ_FOREACH (entry, &tmpfiles->entries, link)
		if (entry->tmpfile.number == number)
			break;
	tmpfile = ref_entry(entry);
	pthread_mutex_unlock(&tmpfiles->lock);
	return tmpfile;
}

struct bid_tmpfile *bid_tmpfiles_find(struct bid_tmpfiles *tmpfiles, const char *dir, const char *name)
{
	struct bid_tmpfile *tmpfile;

	pthread_mutex_lock(&tmpfiles->lock);
	tmpfile = ref_entry(find_entry(tmpfiles, dir, name));
	pthread_mutex_unlock(&tmpfiles->lock);
	return tmpfile;
}

struct bid_node bid_tmpfile_node(const struct bid_tmpfile *tmpfile)
{
	return (struct bid_node){ .type = BID_NODE_TMPFILE, .kind = tmpfile->kind, .id = tmpfile->id, .tmpfile = tmpfile->number };
}

const char *bid_tmpfiles_dir(const struct bid_node *dir, char buf[static BID_TMPFILES_DIR])
{
	if (dir->type != BID_NODE_LINKS_FANOUT)
		return bid_node_path(dir);
	snprintf(buf, BID_TMPFILES_DIR, ".build-id/%02x", dir->fanout);
	return buf;
}

/*
 * Find a file with a name, in @dir unless that is NULL, without use since @until_s, and without a writer unless @written. NULL if
 * there is none. The caller has a reference.
 */
static struct bid_tmpfile *first_named(struct bid_tmpfiles *tmpfiles, const char *dir, int64_t until_s, bool written)
{
	struct bid_tmpfile *tmpfile;
	struct tmpfile_entry *entry;

	pthread_mutex_lock(&tmpfiles->lock);
	TAILQ_FOREACH (entry, &tmpfiles->entries, link)
		if (entry->named && entry->used_s <= until_s && (written || entry->writers == 0) &&
		    (!dir || strcmp(entry->tmpfile.dir, dir) == 0))
			break;
	tmpfile = ref_entry(entry);
	pthread_mutex_unlock(&tmpfiles->lock);
	return tmpfile;
}

struct bid_tmpfile *bid_tmpfile_ref(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile)
{
	pthread_mutex_lock(&tmpfiles->lock);
	ref_entry(entry_of(tmpfile));
	pthread_mutex_unlock(&tmpfiles->lock);
	return tmpfile;
}

void bid_tmpfile_open(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, pid_t tid)
{
	pthread_mutex_lock(&tmpfiles->lock);
	entry_of(tmpfile)->writers++;
	entry_of(tmpfile)->writer = tid;
	pthread_mutex_unlock(&tmpfiles->lock);
}

bool bid_tmpfile_close(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile)
{
	bool last;

	pthread_mutex_lock(&tmpfiles->lock);
	last = --entry_of(tmpfile)->writers == 0;
	pthread_mutex_unlock(&tmpfiles->lock);
	return last;
}

void bid_tmpfile_unref(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile)
{
	struct tmpfile_entry *entry = tmpfile ? entry_of(tmpfile) : NULL;
	bool gone;

	if (!entry)
		return;
	pthread_mutex_lock(&tmpfiles->lock);
	gone = --entry->refs == 0;
	if (gone)
		TAILQ_REMOVE(&tmpfiles->entries, entry, link);
	pthread_mutex_unlock(&tmpfiles->lock);
	if (gone)
		entry_free(entry);
}

void bid_tmpfile_remove_name(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile)
{
	bool named;

	pthread_mutex_lock(&tmpfiles->lock);
	named = entry_of(tmpfile)->named;
	entry_of(tmpfile)->named = false;
	pthread_mutex_unlock(&tmpfiles->lock);
	if (named)
		bid_tmpfile_unref(tmpfiles, tmpfile);
}

int bid_tmpfiles_each_in(struct bid_tmpfiles *tmpfiles, const char *dir, int (*fn)(void *user, const struct bid_tmpfile *tmpfile),
			 void *user)
{
	struct tmpfile_entry *entry;
	int r = 0;

	pthread_mutex_lock(&tmpfiles->lock);
	TAILQ_FOREACH (entry, &tmpfiles->entries, link)
		if (r == 0 && entry->named && strcmp(entry->tmpfile.dir, dir) == 0)
			r = fn(user, &entry->tmpfile);
	pthread_mutex_unlock(&tmpfiles->lock);
	return r;
}

static int is_written(void *user, const struct bid_tmpfile *tmpfile)
{
	const bool *written = user;

	return !*written || ((const struct tmpfile_entry *)tmpfile)->writers > 0;
}

bool bid_tmpfiles_has_in(struct bid_tmpfiles *tmpfiles, const char *dir, bool written)
{
	return bid_tmpfiles_each_in(tmpfiles, dir, is_written, &written) != 0;
}

/* Drop the names of files as of first_named(). */
static void drop_names(struct bid_tmpfiles *tmpfiles, const char *dir, int64_t until_s, bool written)
{
	struct bid_tmpfile *tmpfile;

	while ((tmpfile = first_named(tmpfiles, dir, until_s, written))) {
		bid_tmpfile_remove_name(tmpfiles, tmpfile);
		bid_tmpfile_unref(tmpfiles, tmpfile);
	}
}

void bid_tmpfiles_unname_in(struct bid_tmpfiles *tmpfiles, const char *dir)
{
	drop_names(tmpfiles, dir, bid_clock_s(), true);
}

/* Replace the probe definitions, as perf does: text without an id. */
static int publish_probes(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, const struct bid_id *id, const char *dir)
{
	int from = bid_written_file_fd(tmpfile->file), r;
	bid_auto_fd int fd = -1;
	struct stat st;

	if (fstat(from, &st) < 0)
		return -errno;
	r = bid_store_open_probes(tmpfiles->store, id, dir, &BID_FILE_NONE, &fd);
	if (r == 0 && ftruncate(fd, 0) < 0)
		r = -errno;
	if (r == 0)
		r = lseek(from, 0, SEEK_SET) < 0 ? -errno : bid_copy_file(from, fd);
	if (r == 0 && futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }) < 0)
		r = -errno;
	if (r == 0)
		bid_whiteouts_remove(tmpfiles->probe_whiteouts, id);
	return r;
}

static int publish_tmpfile(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, const struct bid_artifact *artifact,
			   const char *dir)
{
	if (artifact->kind == BID_KIND_PROBES)
		return publish_probes(tmpfiles, tmpfile, &artifact->id, dir);
	return bid_written_file_publish(tmpfile->file, artifact, dir);
}

static void log_error(const struct bid_tmpfile *tmpfile, const char *dir, const char *name, int r)
{
	bid_warning("%s: cannot publish '%s/%s'", r == -EBADMSG ? bid_written_file_reason(tmpfile->file) : strerror(-r), dir, name);
}

int bid_tmpfile_publish(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, const struct bid_id *id, const char *dir,
			const char *name, struct bid_artifact *ret_artifact)
{
	struct bid_artifact artifact = { .id = *id, .kind = bid_kind_parse_store_name(name) };
	int r;

	if (bid_tree_is_temporary(dir) || artifact.kind == BID_KIND_NONE)
		return -EXDEV;
	r = publish_tmpfile(tmpfiles, tmpfile, &artifact, dir);
	if (r < 0 && r != -ESTALE)
		log_error(tmpfile, dir, name, r);
	if (r == 0)
		*ret_artifact = artifact;
	return r;
}

/* Publish @tmpfile under its own name. -ESTALE without one. */
static int publish_own(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile)
{
	struct bid_artifact artifact = { .id = tmpfile->id, .kind = tmpfile->kind };
	bool named;
	int r;

	pthread_mutex_lock(&tmpfiles->lock);
	named = entry_of(tmpfile)->named;
	pthread_mutex_unlock(&tmpfiles->lock);
	r = named ? publish_tmpfile(tmpfiles, tmpfile, &artifact, tmpfile->dir) : -ESTALE;
	if (r == 0)
		bid_tmpfile_remove_name(tmpfiles, tmpfile);
	return r;
}

int bid_tmpfile_flush(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, pid_t tid)
{
	const struct tmpfile_entry *entry = entry_of(tmpfile);
	struct stat st;
	bool only;
	int r;

	pthread_mutex_lock(&tmpfiles->lock);
	/* a process that inherited the descriptor has another thread */
	only = entry->writers == 1 && entry->writer == tid;
	pthread_mutex_unlock(&tmpfiles->lock);
	if (tmpfile->kind == BID_KIND_NONE || !only)
		return 0;
	/* a shell closes the first descriptor of a redirection before anything is written */
	if (fstat(bid_written_file_fd(tmpfile->file), &st) < 0 || st.st_size == 0)
		return 0;
	r = publish_own(tmpfiles, tmpfile);
	return r == -ESTALE ? 0 : r;
}

void bid_tmpfile_last_close(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile)
{
	int r;

	if (tmpfile->kind == BID_KIND_NONE)
		return;
	r = publish_own(tmpfiles, tmpfile);
	if (r < 0 && r != -ESTALE)
		log_error(tmpfile, tmpfile->dir, tmpfile->name, r);
	bid_tmpfile_remove_name(tmpfiles, tmpfile);
}

int bid_tmpfile_unlink(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile)
{
	bool published = bid_written_file_abandon(tmpfile->file) == -EPERM && tmpfile->kind != BID_KIND_NONE;

	bid_tmpfile_remove_name(tmpfiles, tmpfile);
	return published ? -EEXIST : 0;
}

void bid_tmpfiles_sweep(struct bid_tmpfiles *tmpfiles)
{
	drop_names(tmpfiles, NULL, bid_clock_s() - ABANDONED_S, false);
}

void bid_tmpfiles_end(struct bid_tmpfiles *tmpfiles, bool unmounted)
{
	struct bid_tmpfile *tmpfile;
	struct stat st;

	while ((tmpfile = first_named(tmpfiles, NULL, bid_clock_s(), true))) {
		if (unmounted)
			bid_tmpfile_last_close(tmpfiles, tmpfile);
		else if (tmpfile->kind != BID_KIND_NONE && fstat(bid_written_file_fd(tmpfile->file), &st) == 0 && st.st_size > 0)
			bid_warning("the daemon ended before a program had closed '%s/%s': bidfs drops the file", tmpfile->dir,
				    tmpfile->name);
		bid_tmpfile_remove_name(tmpfiles, tmpfile);
		bid_tmpfile_unref(tmpfiles, tmpfile);
	}
}
