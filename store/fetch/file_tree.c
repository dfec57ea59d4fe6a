// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A thread for each request waits for the file system, which may be slow or no longer respond, such as NFS or another mount.bidfs.
 * It sends a struct bid_response and the bytes of the file to the network thread, which ends a request without it if need be. The
 * thread then stays behind until the file system responds.
 */
#include "fetch/file_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/fetch.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/process.h"
#include "base/world_readable.h"
#include "fetch/response.h"

#define NAME_SIZE	(PATH_MAX + 256)
#define CONNECTIONS_MAX 64 /* with those that a file system holds back */

struct bid_file_tree {
	atomic_uint refs; /* one for the server, one for each connection */
	char *path;
	dev_t own_device;
	bool for_all;
	const char *const *links;
};

/* A request. Its thread owns it. */
struct connection {
	struct bid_file_tree *tree; /* a reference */
	struct bid_artifact artifact; /* kept */
	int fd;
};

struct tree_file {
	int fd; /* owned */
	struct stat st;
	char name[NAME_SIZE]; /* path below the tree */
};

static int open_below(int root, const char *name, int flags, const char *const *links)
{
	struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, name, &how, sizeof(how));

	if (fd < 0 && errno == EXDEV)
		return bid_path_open_linked(root, name, flags, links);
	return fd < 0 ? -errno : (int)fd;
}

static bool has_directory(int root, const char *name, const char *const *links)
{
	bid_auto_fd int fd = open_below(root, name, O_PATH | O_DIRECTORY, links);

	return fd >= 0;
}

/* Format the name of @artifact in the layout of debuginfod's web API. Returns false if it has none. */
static bool web_name(const struct bid_artifact *artifact, const char *hex, char *buf, size_t size)
{
	const char *kind = artifact->kind == BID_KIND_ELF ? "executable" : bid_kind_name(artifact->kind);
	const char *subpath = bid_subpath_text(artifact->subpath);
	int n = snprintf(buf, size, "buildid/%s/%s%s%s", hex, kind, artifact->kind == BID_KIND_SECTION ? "/" : "", subpath);

	return (size_t)n < size;
}

/* The same in the debuggers' directory. */
static bool debug_name(const struct bid_artifact *artifact, const char *hex, char *buf, size_t size)
{
	if (!bid_kind_is_elf(artifact->kind) || !hex[2])
		return false;
	snprintf(buf, size, ".build-id/%.2s/%s%s", hex, hex + 2, artifact->kind == BID_KIND_DEBUGINFO ? ".debug" : "");
	return true;
}

/* The same in perf's build-id cache. */
static bool perf_name(const struct bid_artifact *artifact, const char *hex, char *buf, size_t size)
{
	if (!bid_kind_is_elf(artifact->kind) || !hex[2])
		return false;
	snprintf(buf, size, ".build-id/%.2s/%s/%s", hex, hex + 2, bid_kind_store_name(artifact->kind));
	return true;
}

static int open_regular(int root, const char *const *links, struct tree_file *file)
{
	bid_auto_fd int fd = open_below(root, file->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, links);

	if (fd < 0)
		return fd == -ENOTDIR ? -ENOENT : fd;
	if (fstat(fd, &file->st) < 0)
		return -errno;
	if (!S_ISREG(file->st.st_mode))
		return S_ISDIR(file->st.st_mode) ? -EISDIR : -EINVAL;
	file->fd = bid_steal_fd(&fd);
	return 0;
}

static int find_artifact(int root, const struct bid_artifact *artifact, const char *const *links, struct tree_file *file)
{
	char hex[BID_ID_HEX_MAX];
	int r = -ENOENT;

	bid_id_format(&artifact->id, hex);
	if (web_name(artifact, hex, file->name, sizeof(file->name)))
		r = open_regular(root, links, file);
	if (r == -ENOENT && debug_name(artifact, hex, file->name, sizeof(file->name)))
		r = open_regular(root, links, file);
	/* the object directory at the target of perf's link */
	if (r == -EISDIR && !artifact->subpath)
		r = -ENOENT;
	if (r == -ENOENT && perf_name(artifact, hex, file->name, sizeof(file->name)))
		r = open_regular(root, links, file);
	return r;
}

/* Does ENOENT prove absence? Not on FUSE: ENOENT may also mean a server without a response there, see mount.bidfs(8). */
static bool is_final(int root)
{
	struct statfs fs;

	return fstatfs(root, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC;
}

/* Is @root on @device? Does not access the file system, because this thread may block it. */
static bool is_on(int root, dev_t device)
{
	struct statx st;

	return statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == device;
}

/* Errors of open_in_tree() without an errno of their own. */
enum {
	THIS_MOUNT = -EDEADLK,
	NO_TREE = -ENOTDIR,
	NO_FILE_ON_FUSE = -EHOSTDOWN,
	PRIVATE = -EKEYREJECTED,
};

/*
 * Open the artifact in @tree. Its layout is that of debuginfod's web API,
 *
 *   buildid/ID/{executable,debuginfo,source/ABS/PATH,section/NAME}
 *
 * or that of the debuggers' directory,
 *
 *   .build-id/xx/rest, .build-id/xx/rest.debug
 *
 * or that of perf's build-id cache,
 *
 *   .build-id/xx/rest/{elf,debug}
 *
 * xx are the first two digits of ID. Does not follow links out of the tree. Returns 0, -ENOENT without such a file, one of the
 * above, or another negative errno.
 */
static int open_in_tree(const struct bid_file_tree *tree, const struct bid_artifact *artifact, struct tree_file *ret_file)
{
	bid_auto_fd int root = open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (root < 0)
		return errno == ENOENT ? NO_TREE : -errno;
	if (tree->own_device && is_on(root, tree->own_device))
		return THIS_MOUNT;
	r = find_artifact(root, artifact, tree->links, ret_file);
	if (r == 0 && tree->for_all && !bid_is_world_readable(ret_file->fd, &ret_file->st, NULL)) {
		close(ret_file->fd);
		return PRIVATE;
	}
	if (r != -ENOENT)
		return r;
	/* a tree without one file still has a directory */
	if (!has_directory(root, "buildid", tree->links) && !has_directory(root, ".build-id", tree->links))
		return NO_TREE;
	return is_final(root) ? -ENOENT : NO_FILE_ON_FUSE;
}

/* Responses to errors. For the statuses see bid_response_outcome(). */
static const struct failure {
	int error;
	unsigned status;
	const char *text; /* or NULL for that of the system */
} failures[] = {
	{ -ENOENT, 404, "no such file" },
	{ THIS_MOUNT, 404, "this mount itself" },
	{ PRIVATE, 409, "other users cannot read it there, but could here" },
	{ -EXDEV, 409, "a link leads out of the tree - name its target by 'links=DIR'" },
	{ -EACCES, 409, NULL },
	{ -EPERM, 409, NULL },
	{ -ELOOP, 409, NULL },
	{ NO_FILE_ON_FUSE, 424, "no such file, but on a FUSE file system this may be an outage" },
	{ NO_TREE, 424, "not a tree of files by build-id, or not mounted" },
	{ -EISDIR, 424, NULL },
	{ -EINVAL, 424, NULL },
	{ 0, 500, NULL }, /* any other: a retry may succeed */
};

static void send_failure(int fd, int error)
{
	const struct failure *failure = failures;
	struct bid_response response;

	while (failure->error && failure->error != error)
		failure++;
	bid_response_init(&response, failure->status);
	snprintf(response.text, sizeof(response.text), "%s", failure->text ? failure->text : bid_strerror(error));
	send(fd, &response, sizeof(response), MSG_NOSIGNAL);
}

static void send_file(int fd, const struct tree_file *file)
{
	uint64_t left = (uint64_t)file->st.st_size;
	struct bid_response response;

	bid_response_init(&response, 200);
	response.content_length = response.debuginfod_size = left;
	response.modified = file->st.st_mtim.tv_sec;
	bid_response_field(&response, "X-DEBUGINFOD-FILE", file->name);
	send(fd, &response, sizeof(response), MSG_NOSIGNAL);
	/* the reader notices a missing rest */
	for (ssize_t n; left > 0 && (n = sendfile(fd, file->fd, NULL, left)) > 0;)
		left -= (uint64_t)n;
}

static void tree_unref(struct bid_file_tree *tree)
{
	if (atomic_fetch_sub(&tree->refs, 1) > 1)
		return;
	free(tree->path);
	free(tree);
}

static void connection_free(struct connection *connection)
{
	close(connection->fd);
	bid_artifact_release(&connection->artifact);
	tree_unref(connection->tree);
	free(connection);
}

/* Respond to the request of @argument, a struct connection. bid_thread_start() blocks SIGPIPE. */
static void *serve_request(void *argument)
{
	struct connection *connection = argument;
	struct tree_file file;
	int r = open_in_tree(connection->tree, &connection->artifact, &file);

	if (r == 0) {
		send_file(connection->fd, &file);
		close(file.fd);
	} else {
		send_failure(connection->fd, r);
	}
	connection_free(connection);
	return NULL;
}

int bid_file_tree_connect(struct bid_file_tree *tree, const struct bid_artifact *artifact)
{
	struct connection *connection;
	pthread_t thread;
	int ends[2], r;

	if (tree->refs > CONNECTIONS_MAX)
		return -EBUSY;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	connection = calloc(1, sizeof(*connection));
	if (!connection) {
		close(ends[0]);
		close(ends[1]);
		return -ENOMEM;
	}
	atomic_fetch_add(&tree->refs, 1);
	*connection = (struct connection){ .tree = tree, .artifact = bid_artifact_copy(artifact), .fd = ends[1] };
	r = bid_thread_start(&thread, "bid-tree", serve_request, connection);
	if (r < 0) {
		connection_free(connection);
		close(ends[0]);
		return r;
	}
	pthread_detach(thread);
	return ends[0];
}

int bid_file_tree_new(const char *path, const struct bid_fetch_config *config, struct bid_file_tree **ret_tree)
{
	struct bid_file_tree *tree;

	if (path[0] != '/')
		return -EINVAL;
	tree = calloc(1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	*tree = (struct bid_file_tree){
		.refs = 1,
		.path = strdup(path),
		.own_device = config->own_device,
		.for_all = config->for_all,
		.links = config->links,
	};
	if (!tree->path) {
		tree_unref(tree);
		return -ENOMEM;
	}
	*ret_tree = tree;
	return 0;
}

void bid_file_tree_free(struct bid_file_tree *tree)
{
	if (tree)
		tree_unref(tree);
}
