// SPDX-License-Identifier: LGPL-2.1-or-later
/* The default store by perf's configuration, in all forms of its files. The values are those that perf 6.1 was seen to use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bid/store.h>

#include "api/default_stores.h"
#include "base/cleanup.h"
#include "base/io.h"

/* A home directory of its own for each test of what the environment means. */
struct home {
	char path[64];
};

static int make_home(void **state)
{
	struct home *home = calloc(1, sizeof(*home));

	if (!home)
		return -1;
	snprintf(home->path, sizeof(home->path), "/tmp/bid-default.XXXXXX");
	*state = home;
	unsetenv("PERF_CONFIG");
	unsetenv("PERF_CONFIG_NOGLOBAL");
	/* or the machine's own configuration would be part of the test */
	setenv("PERF_CONFIG_NOSYSTEM", "1", 1);
	return mkdtemp(home->path) ? setenv("HOME", home->path, 1) : -1;
}

static void path_in(const struct home *home, const char *name, char path[static PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", home->path, name);
}

static int remove_home(void **state)
{
	struct home *home = *state;
	char path[PATH_MAX];

	path_in(home, ".perfconfig", path);
	unlink(path);
	path_in(home, "other", path);
	unlink(path);
	rmdir(home->path);
	free(home);
	return 0;
}

static void write_config(const struct home *home, const char *name, const char *text)
{
	char path[PATH_MAX];
	bid_auto_fd int fd = -1;

	path_in(home, name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, text, strlen(text), 0), 0);
}

/* Default path below the home directory. */
static void assert_in_home(const struct home *home, const char *expected)
{
	char path[PATH_MAX], wanted[PATH_MAX];

	path_in(home, expected, wanted);
	assert_int_equal(bid_store_default_path(path, sizeof(path)), 0);
	assert_string_equal(path, wanted);
}

/* Read @text as a configuration: @expected is the directory, or NULL for the one without a configuration. */
static void check_config(const struct home *home, const char *text, const char *expected)
{
	char path[PATH_MAX];

	write_config(home, ".perfconfig", text);
	if (!expected) {
		assert_in_home(home, ".debug");
		return;
	}
	assert_int_equal(bid_store_default_path(path, sizeof(path)), 0);
	assert_string_equal(path, expected);
}

static void check_bad(const struct home *home, const char *text)
{
	char path[PATH_MAX] = "untouched";

	write_config(home, ".perfconfig", text);
	assert_int_equal(bid_store_default_path(path, sizeof(path)), -EINVAL);
	assert_string_equal(path, "untouched");
}

#define assert_value(text, expected) check_config(*state, text, expected)
#define assert_unset(text)	     check_config(*state, text, NULL)
#define assert_bad(text)	     check_bad(*state, text)

static void test_perf_values_are_parsed(void **state)
{
	assert_value("[buildid]\n\tdir = /a\n", "/a");
	assert_value("[buildid]dir=/a", "/a");
	assert_value("[BuildID]\nDIR = /a", "/a");
	assert_value("[buildid]\r\n\tdir = /a\r\n", "/a");
	assert_value("\357\273\277[buildid]\n dir = /a\n", "/a");
	assert_value("# one\n; two\n[buildid] # three\n dir = /a ; four\n", "/a");
	assert_value("[buildid]\n dir=\"/tmp/a b/  c\"  d ; x\n", "/tmp/a b/  c d");
	assert_value("[buildid]\n dir = \"/a;b#c\"\n", "/a;b#c");
	assert_value("[buildid.dir]\n x = 1\n[buildid]\n dir = /a\n", "/a");
}

static void test_last_value_counts(void **state)
{
	assert_value("[buildid]\n dir = /a\n dir = /b\n", "/b");
	assert_value("[buildid]\n dir = /a\n[report]\n x = 1\n[buildid]\n dir = /b\n", "/b");
	assert_value("[buildid]\n dir = /a\n other = /b\n", "/a");
}

static void test_other_sections_are_ignored(void **state)
{
	assert_unset("");
	assert_unset("\n\n# nothing\n");
	assert_unset("[report]\n dir = /a\n");
	assert_unset("[buildid \"sub\"]\n dir = /a\n");
	assert_unset("[buildid \"s\\\"ub\"]\n dir = /a\n");
	assert_unset("[buildid]\n directory = /a\n di = /b\n");
	assert_unset("dir = /a\n");
	assert_unset("[build id]\n dir = /a\n");
	assert_unset("[buildid\n dir = /a\n");
	assert_value("[alias]\n x = a\\\n b ?\n[buildid]\n dir = /a\n", "/a");
}

static void test_bad_value_drops_the_file(void **state)
{
	assert_bad("[buildid]\n\tdir\nfoo ?\n");
	assert_bad("[buildid]\n dir = \"/a\n");
	assert_bad("[buildid]\n dir = \"/a");
	/* an escape, and a value of two lines */
	assert_bad("[buildid]\n dir = /a\\\\b\n");
	assert_bad("[buildid]\n dir = /a\\\nb\n");
	/* a good line before it does not count: half of a configuration is worse than none */
	assert_bad("[buildid]\n dir = /a\n dir 5\n");
}

static void test_missing_configuration_means_home(void **state)
{
	const struct home *home = *state;

	assert_in_home(home, ".debug");
	write_config(home, ".perfconfig", "");
	assert_in_home(home, ".debug");
	write_config(home, ".perfconfig", "[buildid]\n dir =\n");
	assert_in_home(home, ".debug");
}

static void test_configured_directory_is_used(void **state)
{
	const struct home *home = *state;
	char path[PATH_MAX] = "untouched";

	write_config(home, ".perfconfig", "[buildid]\n dir = /var/lib/bid\n");
	assert_int_equal(bid_store_default_path(path, sizeof(path)), 0);
	assert_string_equal(path, "/var/lib/bid");
	write_config(home, ".perfconfig", "[buildid]\n dir = ~/store\n");
	assert_in_home(home, "store");
	setenv("PERF_CONFIG_NOGLOBAL", "yes", 1);
	assert_in_home(home, ".debug");
}

static void test_unusable_directory_is_refused(void **state)
{
	const struct home *home = *state;
	char path[PATH_MAX] = "untouched";

	write_config(home, ".perfconfig", "[buildid]\n dir = store\n");
	assert_int_equal(bid_store_default_path(path, sizeof(path)), -EINVAL);
	write_config(home, ".perfconfig", "[buildid]\n dir\n");
	assert_int_equal(bid_store_default_path(path, sizeof(path)), -EINVAL);
	write_config(home, ".perfconfig", "[buildid]\n dir = /var/lib/bid\n");
	assert_int_equal(bid_store_default_path(path, sizeof("/var/lib/bid") - 1), -ENAMETOOLONG);
	assert_string_equal(path, "untouched");
	assert_int_equal(bid_store_default_path(path, sizeof("/var/lib/bid")), 0);
}

static void test_perf_config_variable_is_exclusive(void **state)
{
	const struct home *home = *state;
	char path[PATH_MAX];

	write_config(home, ".perfconfig", "[buildid]\n dir = /var/lib/bid\n");
	write_config(home, "other", "[buildid]\n dir = /var/lib/other\n");
	path_in(home, "other", path);
	setenv("PERF_CONFIG", path, 1);
	assert_int_equal(bid_store_default_path(path, sizeof(path)), 0);
	assert_string_equal(path, "/var/lib/other");
	/* perf reads no other file then, even if this one is missing */
	path_in(home, "missing", path);
	setenv("PERF_CONFIG", path, 1);
	assert_in_home(home, ".debug");
}

static void test_file_of_another_user_is_ignored(void **state)
{
	const struct home *home = *state;
	char path[PATH_MAX];

	if (geteuid() != 0) {
		print_message("skipped: only root can give a file away\n");
		skip();
	}
	write_config(home, ".perfconfig", "[buildid]\n dir = /var/lib/bid\n");
	path_in(home, ".perfconfig", path);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_in_home(home, ".debug");
}

static void test_missing_home_is_an_error(void **state)
{
	char path[PATH_MAX];

	unsetenv("HOME");
	assert_int_equal(bid_store_default_path(path, sizeof(path)), 0);
	assert_int_equal(path[0], '/');
	assert_string_equal(path + strlen(path) - strlen("/.debug"), "/.debug");
}

#define home_test(function) cmocka_unit_test_setup_teardown(function, make_home, remove_home)

int main(void)
{
	const struct CMUnitTest tests[] = {
		home_test(test_perf_values_are_parsed),		  home_test(test_last_value_counts),
		home_test(test_other_sections_are_ignored),	  home_test(test_bad_value_drops_the_file),
		home_test(test_missing_configuration_means_home), home_test(test_configured_directory_is_used),
		home_test(test_unusable_directory_is_refused),	  home_test(test_perf_config_variable_is_exclusive),
		home_test(test_file_of_another_user_is_ignored),  home_test(test_missing_home_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
