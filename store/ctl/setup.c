// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl setup: turn on the debuggers' view for all tools of a machine, or for the debuggers of a user, and turn it off again. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/outfile.h"
#include "ctl/output.h"
#include "ctl/servers.h"

#define UNIT	  "usr-lib-debug-.build\\x2did"
#define AUTOMOUNT UNIT ".automount"
#define DROP_IN	  "bidfs.service.d/setup.conf"

enum { FILE_MAX = 1 << 20, COMMAND_MAX = 8 };

/* Servers of distributions, by a name in os-release(5). */
static const struct {
	const char *id, *url;
} servers[] = {
	{ "debian", "https://debuginfod.debian.net" },	      { "ubuntu", "https://debuginfod.ubuntu.com" },
	{ "fedora", "https://debuginfod.fedoraproject.org" }, { "centos", "https://debuginfod.centos.org" },
	{ "arch", "https://debuginfod.archlinux.org" },	      { "opensuse", "https://debuginfod.opensuse.org" },
	{ "suse", "https://debuginfod.opensuse.org" },
};
static const char federation[] = "https://debuginfod.elfutils.org"; /* forwards to the servers of several distributions */

static const char marker[] = "# written by 'bidctl setup'\n";
static const char was_enabled[] = "# bidfs.service was enabled before\n";

static const char system_text[] = "[Unit]\n"
				  "RequiresMountsFor=/run/bidfs.lower\n"
				  "[Service]\n"
				  "Environment=\"BIDFS_OPTIONS=-o lower=/run/bidfs.lower/debug,min_free=1G\"\n";
static const char user_text[] = "[Service]\n"
				"ExecStartPre=mkdir -p %t/bid\n"
				"Environment=\"BIDFS_OPTIONS=none %t/bid -o min_free=1G\"\n";

/* Packages also install into /usr/lib/debug/.build-id, where the view is read-only. */
static const char hook_dir[] = "/etc/dpkg/dpkg.cfg.d";
static const char hook_text[] = "pre-invoke=systemctl stop '" AUTOMOUNT "' '" UNIT ".mount' 2>/dev/null || :\n"
				"post-invoke=systemctl start '" AUTOMOUNT "' 2>/dev/null || :\n";

struct setup {
	const struct ctl *ctl;
	const char *root; /* root directory of the machine; "" for / */
	bool user;
	const char *urls; /* servers for the daemon; borrowed */
	char drop_in[PATH_MAX]; /* drop-in of bidfs.service; its existence means that setup was done */
};

static void report_action(struct setup *setup, const char *action, const char *subject)
{
	ctl_row(setup->ctl, CTL_STATE("state", 17, action), CTL_TEXT("subject", 0, subject));
}

static int report_failure(const char *action, const char *path, int r)
{
	bid_error_about(path, r, "%s: cannot %s '%s'%s", strerror(-r), action, path, r == -EACCES ? " - try it as root" : "");
	return r;
}

/* Run systemctl with @command, NULL-terminated. Returns its exit status, or a negative errno after an error message. */
static int run_manager(struct setup *setup, const char *const *command)
{
	bid_auto_free char *root = NULL;
	const char *argv[COMMAND_MAX + 3] = { "systemctl" };
	size_t n = 1;
	int r;

	if (setup->ctl->dry_run && strcmp(command[0], "is-enabled") != 0)
		return 0;
	if (asprintf(&root, "--root=%s", setup->root) < 0)
		return -ENOMEM;
	if (setup->user)
		argv[n++] = "--user";
	if (*setup->root)
		argv[n++] = root;
	while (*command && n < COMMAND_MAX + 2)
		argv[n++] = *command++;
	r = ctl_child_exec(argv, STDOUT_FILENO);
	return r < 0 ? report_failure("run", "systemctl", r) : r;
}

#define MANAGE(setup, ...) run_manager(setup, (const char *const[]){ __VA_ARGS__, NULL })

/* As MANAGE, for a running service manager alone. */
#define MANAGE_NOW(setup, ...) (*(setup)->root ? 0 : MANAGE(setup, __VA_ARGS__))

static int make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = '\0';
		r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

/* Write the file @path, which belongs to setup, with the marker and @text. */
static int write_file(struct setup *setup, char *path, const char *text)
{
	struct ctl_outfile file;
	int r = setup->ctl->dry_run ? 0 : make_parents(path);

	if (setup->ctl->dry_run) {
		report_action(setup, "written", path);
		return 0;
	}
	if (r == 0)
		r = ctl_outfile_open(&file, path);
	if (r < 0)
		return report_failure("write", path, r);
	if (dprintf(file.fd, "%s%s", marker, text) < 0)
		r = -errno;
	if (r == 0)
		r = ctl_outfile_commit(&file);
	ctl_outfile_release(&file);
	if (r < 0)
		return report_failure("write", path, r);
	report_action(setup, "written", path);
	return 0;
}

static int remove_file(struct setup *setup, const char *path)
{
	if ((setup->ctl->dry_run ? access(path, F_OK) : unlink(path)) < 0)
		return errno == ENOENT ? 0 : report_failure("remove", path, -errno);
	report_action(setup, "removed", path);
	return 0;
}

/* Compose the path of the settings file @name in the user's home. */
static void dot_file(const char *name, char path[static PATH_MAX])
{
	const char *home = getenv("HOME");

	snprintf(path, PATH_MAX, "%s/%s", home ? home : "", name);
}

/* Compose the path of @name in the directory of the user's settings. */
static void config_file(const char *name, char path[static PATH_MAX])
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config)
		snprintf(path, PATH_MAX, "%s/%s", config, name);
	else
		snprintf(path, PATH_MAX, "%s/.config/%s", home ? home : "", name);
}

/* Find the user's settings of gdb: the first existing one, in gdb's order. */
static void gdb_file(char path[static PATH_MAX])
{
	config_file("gdb/gdbinit", path);
	if (access(path, F_OK) < 0)
		dot_file(".gdbinit", path);
}

/* Append the marker and @line to the user's file @path. */
static int add_line(struct setup *setup, const char *path, const char *line)
{
	bid_auto_fd int fd = setup->ctl->dry_run ? -1 : open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	off_t len = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	char last = '\n';

	if (setup->ctl->dry_run) {
		report_action(setup, "changed", path);
		return 0;
	}
	if (len > 0 && pread(fd, &last, 1, len - 1) < 0)
		return report_failure("read", path, -errno);
	if (fd < 0 || dprintf(fd, "%s%s%s\n", last == '\n' ? "" : "\n", marker, line) < 0)
		return report_failure("write", path, -errno);
	report_action(setup, "changed", path);
	return 0;
}

/* Remove the marker and the line behind it from the user's file @path; remove a file without other lines. */
static int remove_line(struct setup *setup, const char *path)
{
	bid_auto_fd int from = open(path, O_RDONLY | O_CLOEXEC), to = -1;
	bid_auto_free char *text = NULL;
	char *begin, *end;
	size_t len;
	int r = from < 0 ? -errno : bid_read_file(from, FILE_MAX, &text, &len);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return report_failure("read", path, r);
	begin = strstr(text, marker);
	if (!begin)
		return 0;
	end = strchrnul(begin + strlen(marker), '\n');
	end += *end == '\n';
	memmove(begin, end, (size_t)(text + len - end));
	len -= (size_t)(end - begin);
	if (len == 0)
		return remove_file(setup, path);
	if (setup->ctl->dry_run) {
		report_action(setup, "changed", path);
		return 0;
	}
	to = open(path, O_WRONLY | O_CLOEXEC);
	r = to < 0 ? -errno : bid_pwrite_full(to, text, len, 0);
	if (r == 0 && ftruncate(to, (off_t)len) < 0)
		r = -errno;
	if (r < 0)
		return report_failure("write", path, r);
	report_action(setup, "changed", path);
	return 0;
}

/* Find the server of a distribution. @value lists its names, "debian" or "rhel fedora", with or without quotes. */
static const char *find_server(const char *value)
{
	while (*(value += strspn(value, "\"' "))) {
		size_t len = strcspn(value, "\"' \n");

		/* "opensuse-leap" matches its family */
		for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]) && len > 0; i++)
			if (strncmp(value, servers[i].id, strlen(servers[i].id)) == 0 &&
			    strchr("\"' \n-", value[strlen(servers[i].id)]))
				return servers[i].url;
		if (value[len] == '\n' || len == 0)
			break;
		value += len;
	}
	return NULL;
}

static const char *distribution_server(const struct setup *setup)
{
	bid_auto_free char *line = NULL;
	const char *by_id = NULL, *by_family = NULL;
	char path[PATH_MAX];
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/etc/os-release", setup->root);
	file = fopen(path, "re");
	while (file && getline(&line, &size, file) > 0) {
		if (strncmp(line, "ID=", 3) == 0)
			by_id = find_server(line + 3);
		else if (strncmp(line, "ID_LIKE=", 8) == 0)
			by_family = find_server(line + 8);
	}
	if (file)
		fclose(file);
	return by_id ? by_id : by_family ? by_family : federation;
}

/* Does /etc/debuginfod, which the daemon reads, configure servers? */
static bool has_servers(const struct setup *setup)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool any;

	snprintf(pattern, sizeof(pattern), "%s/etc/debuginfod/*.urls", setup->root);
	any = glob(pattern, 0, NULL, &found) == 0;
	globfree(&found);
	return any;
}

/*
 * Return the servers for the daemon, separated by blanks and escaped for a unit, for free(3). Returns NULL without memory; "" if
 * the daemon finds its servers itself.
 */
static char *choose_servers(const struct setup *setup)
{
	const char *named = getenv("DEBUGINFOD_URLS");
	const char *url = named && *named ? named : has_servers(setup) ? "" : distribution_server(setup);
	size_t len = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; out && i < (setup->ctl->urls.n ? setup->ctl->urls.n : 1); i++) {
		fputs(i ? " " : "", out);
		/* a policy holds for all servers behind it */
		if (i && strncasecmp(setup->ctl->urls.at[i], "ima:", 4) != 0 &&
		    strncasecmp(setup->ctl->urls.at[i - 1], "ima:", 4) == 0)
			fputs("ima:ignore ", out);
		for (const char *at = setup->ctl->urls.n ? setup->ctl->urls.at[i] : url; *at; at++)
			fprintf(out, *at == '%' ? "%%%c" : "%c", *at);
	}
	return out && fclose(out) == 0 ? text : NULL;
}

/* Refuse servers that a unit cannot have. systemd shows the environment of a unit to every user. */
static enum ctl_status check_servers(const char *urls)
{
	if (!urls)
		return CTL_TROUBLE;
	if (strchr(urls, '@'))
		return ctl_usage("--url", "servers: a URL has '@': other users can read the password - put it into a netrc file, "
					  "see bidctl-setup(1)");
	if (strpbrk(urls, "\"\\\n"))
		return ctl_usage(urls, "servers: a URL has neither quotes nor backslashes");
	return CTL_DONE;
}

static int write_drop_in(struct setup *setup, bool enabled)
{
	bid_auto_free char *text = NULL;
	const char *urls = setup->urls;
	int r;

	if (asprintf(&text, "%s%s%s%s%s", enabled ? was_enabled : "", setup->user ? user_text : system_text,
		     *urls ? "Environment=\"DEBUGINFOD_URLS=" : "", urls, *urls ? "\"\n" : "") < 0)
		return -ENOMEM;
	r = write_file(setup, setup->drop_in, text);
	if (r == 0)
		report_action(setup, "set up for", *urls ? urls : "servers of /etc/debuginfod");
	return r;
}

static int set_up_system(struct setup *setup)
{
	char path[PATH_MAX];
	struct stat st;
	int r;

	snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id", setup->root);
	if (lstat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return report_failure("mount on", path, -ENOTDIR);
	r = write_drop_in(setup, false);
	snprintf(path, sizeof(path), "%s%s", setup->root, hook_dir);
	if (r == 0 && access(path, F_OK) == 0) {
		snprintf(path, sizeof(path), "%s%s/bidfs-setup", setup->root, hook_dir);
		r = write_file(setup, path, hook_text);
	}
	if (r == 0)
		r = MANAGE_NOW(setup, "daemon-reload");
	if (r == 0)
		r = MANAGE(setup, "enable", AUTOMOUNT);
	/* before the service, which needs /usr/lib/debug: systemd creates it for the automount */
	if (r == 0)
		r = MANAGE_NOW(setup, "start", AUTOMOUNT);
	if (r == 0)
		r = MANAGE_NOW(setup, "try-restart", "bidfs.service");
	if (r == 0)
		report_action(setup, "enabled", AUTOMOUNT);
	return r;
}

static int set_up_user(struct setup *setup)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX], line[PATH_MAX + 64];
	int r;

	if (!runtime) {
		bid_error_about("XDG_RUNTIME_DIR", -ENOENT,
				"no 'XDG_RUNTIME_DIR' in the environment - run it in a login session of the user");
		return -ENOENT;
	}
	r = write_drop_in(setup, MANAGE(setup, "is-enabled", "--quiet", "bidfs.service") == 0);
	gdb_file(path);
	snprintf(line, sizeof(line), "set debug-file-directory %s/bid/debug:/usr/lib/debug", runtime);
	if (r == 0)
		r = add_line(setup, path, line);
	dot_file(".lldbinit", path);
	snprintf(line, sizeof(line), "settings append target.debug-file-search-paths %s/bid/debug", runtime);
	if (r == 0)
		r = add_line(setup, path, line);
	if (r == 0)
		r = MANAGE(setup, "daemon-reload");
	if (r == 0)
		r = MANAGE(setup, "enable", "bidfs.service");
	if (r == 0)
		r = MANAGE(setup, "restart", "bidfs.service");
	if (r == 0)
		report_action(setup, "enabled", "bidfs.service");
	return r;
}

/* Remove the drop-in and the directories that are then empty, and restart or stop the service as it was before. */
static int reset_service(struct setup *setup, bool enabled)
{
	int r = remove_file(setup, setup->drop_in);

	/* as .config/systemd/user/bidfs.service.d */
	for (int depth = 4; r == 0 && !setup->ctl->dry_run && depth > 0; depth--) {
		*strrchr(setup->drop_in, '/') = '\0';
		if (rmdir(setup->drop_in) < 0)
			break;
	}
	if (r == 0)
		r = MANAGE_NOW(setup, "daemon-reload");
	return r == 0 ? MANAGE_NOW(setup, enabled ? "restart" : "stop", "bidfs.service") : r;
}

static int undo_system(struct setup *setup)
{
	char path[PATH_MAX];
	int r = MANAGE_NOW(setup, "stop", AUTOMOUNT, UNIT ".mount");

	if (r == 0)
		r = MANAGE(setup, "disable", AUTOMOUNT);
	if (r == 0)
		report_action(setup, "disabled", AUTOMOUNT);
	snprintf(path, sizeof(path), "%s%s/bidfs-setup", setup->root, hook_dir);
	if (r == 0)
		r = remove_file(setup, path);
	if (r == 0)
		r = reset_service(setup, MANAGE_NOW(setup, "is-enabled", "--quiet", "bidfs.service") == 0);
	if (r == 0)
		r = MANAGE_NOW(setup, "stop", "run-bidfs.lower.mount");
	/* systemd created the mount points; a directory with files stays */
	if (r == 0 && !*setup->root && !setup->ctl->dry_run) {
		rmdir("/run/bidfs.lower");
		if (rmdir("/usr/lib/debug/.build-id") == 0)
			rmdir("/usr/lib/debug");
	}
	return r;
}

static int undo_user(struct setup *setup)
{
	bid_auto_free char *text = NULL;
	bid_auto_fd int fd = open(setup->drop_in, O_RDONLY | O_CLOEXEC);
	char path[PATH_MAX];
	bool enabled;
	size_t len;
	int r = fd < 0 ? -errno : bid_read_file(fd, FILE_MAX, &text, &len);

	if (r < 0)
		return report_failure("read", setup->drop_in, r);
	enabled = strstr(text, was_enabled);
	config_file("gdb/gdbinit", path);
	r = remove_line(setup, path);
	/* gdb may read another file than when setup changed one */
	dot_file(".gdbinit", path);
	if (r == 0)
		r = remove_line(setup, path);
	dot_file(".lldbinit", path);
	if (r == 0)
		r = remove_line(setup, path);
	if (r == 0 && !enabled)
		r = MANAGE(setup, "disable", "bidfs.service");
	if (r == 0 && !enabled)
		report_action(setup, "disabled", "bidfs.service");
	return r == 0 ? reset_service(setup, enabled) : r;
}

static void find_drop_in(struct setup *setup)
{
	if (setup->user)
		config_file("systemd/user/" DROP_IN, setup->drop_in);
	else
		snprintf(setup->drop_in, PATH_MAX, "%s/etc/systemd/system/" DROP_IN, setup->root);
}

enum ctl_status ctl_setup(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const whom[] = { "system", "user", NULL };
	int word = ctl_word("setup", argv[0], whom);
	struct setup setup = { .ctl = ctl, .root = ctl->root ? ctl->root : "", .user = word == 1 };
	enum ctl_status status = BID_HAVE_FETCH ? ctl_servers_check(ctl) : CTL_DONE;
	bid_auto_free char *urls = NULL;
	bool there;
	int r = 0;

	if (word < 0)
		return CTL_USAGE;
	if (status != CTL_DONE)
		return status;
	if (setup.user && ctl->root)
		return ctl_usage("--root", "'--root' is for 'setup system'");
	/* before the undo of an earlier setup */
	urls = choose_servers(&setup);
	status = ctl->undo ? CTL_DONE : check_servers(urls);
	if (status != CTL_DONE)
		return status;
	setup.urls = urls;
	find_drop_in(&setup);
	there = access(setup.drop_in, F_OK) == 0;
	/* fails without a service manager, before the first change; the first file refuses a user without the right */
	if (!ctl->undo && (setup.user || geteuid() == 0))
		r = MANAGE_NOW(&setup, "daemon-reload");
	if (ctl->undo && !there)
		bid_error_about(setup.drop_in, -ENOENT, "nothing to undo: no such file");
	else if (there && r == 0)
		r = setup.user ? undo_user(&setup) : undo_system(&setup);
	find_drop_in(&setup);
	if (!ctl->undo && r == 0)
		r = setup.user ? set_up_user(&setup) : set_up_system(&setup);
	if (r > 0 && (ctl->undo || access(setup.drop_in, F_OK) < 0))
		bid_error_about("systemctl", 0, "'systemctl' failed: see the line above%s",
				access("/run/systemd/system", F_OK) == 0
					? ""
					: " - this machine does not run systemd: mount by hand, or by /etc/fstab");
	else if (r > 0)
		bid_error_about("systemctl", 0,
				"'systemctl' failed: see the line above - 'bidctl setup %s --undo' removes the written files",
				argv[0]);
	ctl_totals(ctl, CTL_BOOL("dry_run", ctl->dry_run));
	return r != 0 ? CTL_TROUBLE : ctl->undo && !there ? CTL_REFUSED : CTL_DONE;
}
