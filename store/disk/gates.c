// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/gates.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/stamp.h"
#include "disk/root.h"
#include "disk/store.h"

enum { KNOWN = 512 }; /* a power of two */

/* A directory of which it is known whether it has an access control list. */
struct gate {
	struct bid_stamp stamp;
	bool listed;
};

struct bid_gates {
	pthread_mutex_t lock; /* protects all below; not held while a directory is looked at */
	struct gate known[KNOWN]; /* by a hash of the inode */
};

int bid_gates_new(struct bid_gates **ret_gates)
{
	struct bid_gates *gates = calloc(1, sizeof(*gates));

	if (!gates)
		return -ENOMEM;
	pthread_mutex_init(&gates->lock, NULL);
	*ret_gates = gates;
	return 0;
}

void bid_gates_free(struct bid_gates *gates)
{
	if (!gates)
		return;
	pthread_mutex_destroy(&gates->lock);
	free(gates);
}

/* By a path, because what is opened for this would be three calls. */
static bool look(struct bid_store *store, const char *path)
{
	char root[BID_FD_PATH_MAX], whole[BID_FD_PATH_MAX + PATH_MAX];

	snprintf(whole, sizeof(whole), "%s/%s", bid_fd_path(bid_store_root(store), root), path);
	return bid_is_listed(whole);
}

/* Has the directory @path, with @st, an access control list? */
static bool is_listed(struct bid_store *store, const char *path, const struct stat *st)
{
	struct bid_gates *gates = bid_store_gates(store);
	struct gate *gate = &gates->known[st->st_ino * 0x9e3779b97f4a7c15U >> 32 & (KNOWN - 1)];
	struct gate now;

	pthread_mutex_lock(&gates->lock);
	now = *gate;
	pthread_mutex_unlock(&gates->lock);
	if (bid_stamp_holds(&now.stamp, st))
		return now.listed;
	now = (struct gate){ .stamp = bid_stamp_take(st), .listed = look(store, path) };
	pthread_mutex_lock(&gates->lock);
	*gate = now;
	pthread_mutex_unlock(&gates->lock);
	return now.listed;
}

/*
 * Where below the lower store @store the file open at @fd is: the names that led to it may be links. "" if it is elsewhere, and all
 * get there.
 */
static bool find_real(struct bid_store *store, int fd, char ret_path[static PATH_MAX])
{
	const char *root = bid_store_path(store);
	size_t len = root[1] ? strlen(root) : 0;
	char real[PATH_MAX];

	if (bid_path_of(fd, real, sizeof(real)) < 0)
		return false;
	if (strncmp(real, root, len) != 0 || real[len] != '/') {
		*ret_path = '\0';
		return real[0] == '/' && bid_all_get_to(real);
	}
	memcpy(ret_path, real + len + 1, strlen(real + len));
	return true;
}

void bid_gates_narrow(struct bid_store *store, const char *path, int fd, struct stat *st)
{
	struct bid_way way = BID_WAY_OPEN;
	char below[PATH_MAX], *slash;
	bool known = true;

	if (bid_store_flags(store) & BID_STORE_LOWER)
		known = find_real(store, fd, below);
	else
		snprintf(below, sizeof(below), "%s", path);
	if (!known)
		bid_way_pass(&way, NULL, false);
	while (known && (slash = strrchr(below, '/'))) {
		struct stat gate;

		*slash = '\0';
		/* not by the one door, which takes three calls: who can put a link in here can let anybody in as well */
		if (fstatat(bid_store_root(store), below, &gate, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(gate.st_mode))
			bid_way_pass(&way, NULL, false);
		else
			bid_way_pass(&way, &gate, is_listed(store, below, &gate));
	}
	bid_way_narrow_opened(&way, st);
}

enum { FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY };

int bid_gates_open(struct bid_store *store, const char *path, bool linked, struct bid_file *file)
{
	bid_auto_fd int fd = -1;
	struct stat st;
	int r;

	r = linked ? bid_store_open_linked(store, path, FLAGS, &fd) : bid_root_open(bid_store_root(store), path, FLAGS, &fd);
	if (r == 0)
		r = bid_fstat(fd, &st);
	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	bid_gates_narrow(store, path, fd, &st);
	file->fd = bid_steal_fd(&fd);
	file->st = st;
	return 0;
}
