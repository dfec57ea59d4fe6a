// SPDX-License-Identifier: LGPL-2.1-or-later
/* Servers of the environment, and their normalized URLs. */
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

#include "api/fetch.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "fetch/url.h"

static void write_text(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	bid_auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, text, strlen(text), 0), 0);
}

/* The URLs as one line, for comparing; the caller frees it. */
static char *urls_line(const char *etc)
{
	char **urls = NULL;
	char *line = NULL;
	size_t len;
	FILE *out = open_memstream(&line, &len);
	int n;

	assert_non_null(out);
	n = bid_fetch_urls_from_environment(etc, &urls);
	assert_true(n >= 0);
	for (int i = 0; i < n; i++)
		fprintf(out, "%s%s", i ? " " : "", urls[i]);
	assert_null(urls[n]);
	bid_fetch_urls_free(urls);
	fclose(out);
	return line;
}

#define assert_urls(etc, expected) \
	do { \
		bid_auto_free char *line = urls_line(etc); \
		assert_string_equal(line, expected); \
	} while (0)

static void test_bad_url_is_refused(void **state)
{
	static const struct {
		const char *url;
		int error;
	} cases[] = {
		{ "http://localhost:8002", 0 },
		{ "https://debuginfod.example.org/", 0 },
		{ "HTTPS://debuginfod.example.org", 0 },
		{ "https://user:secret@debuginfod.example.org/some/where//", 0 },
		{ "http://[::1]:8002/", 0 },
		{ "http://127.0.0.1", 0 },
		{ "file:///srv/debug", 0 },
		{ "file://localhost/srv", 0 },
		{ "file:///", -EINVAL },
		{ "file://", -EINVAL },
		{ "file:///srv?x", -EINVAL },
		{ "ftp://example.org/", -EPROTONOSUPPORT },
		{ "gopher://example.org/", -EPROTONOSUPPORT },
		{ "httpx://example.org/", -EPROTONOSUPPORT },
		{ "", -EINVAL },
		{ "debuginfod.example.org", 0 },
		{ "localhost:8002", 0 },
		{ "[::1]:8002/sub", 0 },
		{ "localhost:port", -EINVAL },
		{ "mailto:someone", -EINVAL },
		{ "/srv", -EINVAL },
		{ "file:/srv", -EINVAL },
		{ "file:///srv/a b", 0 },
		{ "://example.org", -EINVAL },
		{ "http:", -EINVAL },
		{ "http://", -EINVAL },
		{ "http:///", -EINVAL },
		{ "http://exa mple.org/", -EINVAL },
		{ "http://example.org/a b", -EINVAL },
		{ "http://example.org/\n", -EINVAL },
		{ "http://example.org:99999/", -EINVAL },
		{ "http://example.org:port/", -EINVAL },
		{ "http://[::1/", -EINVAL },
		{ "http://example.org/?token=1", -EINVAL },
		{ "http://example.org/#top", -EINVAL },
		{ "http://example.org/caf\xe9", -EINVAL },
		{ "file:///srv/caf\xe9", -EINVAL },
		{ "file:///srv/caf\xc3\xa9", 0 },
		{ "http://example.org?", -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (bid_fetch_check_url(cases[i].url) != cases[i].error)
			fail_msg("\"%s\": %d, not %d", cases[i].url, bid_fetch_check_url(cases[i].url), cases[i].error);
}

static void test_longest_url_is_accepted(void **state)
{
	char url[BID_URL_MAX + 2];

	memset(url, 'a', sizeof(url));
	memcpy(url, "http://h/", 9);
	url[BID_URL_MAX] = '\0';
	assert_int_equal(bid_fetch_check_url(url), 0);
	url[BID_URL_MAX] = 'a';
	url[BID_URL_MAX + 1] = '\0';
	assert_int_equal(bid_fetch_check_url(url), -EINVAL);
}

static void test_url_is_normalised(void **state)
{
	static const char *const cases[][2] = {
		{ "http://localhost:8002", "http://localhost:8002" },
		/* as libdebuginfod has it */
		{ "localhost:8002/", "http://localhost:8002" },
		{ "file:///srv/a b", "file:///srv/a%20b" },
		{ "http://localhost:8002/", "http://localhost:8002" },
		{ "http://localhost:8002/sub/dir///", "http://localhost:8002/sub/dir" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bid_auto_free char *url = NULL;

		assert_int_equal(bid_url_normalise(cases[i][0], &url), 0);
		assert_string_equal(url, cases[i][1]);
	}
}

static void test_failed_normalisation_keeps_the_result(void **state)
{
	char *url = (char *)"as it was";

	assert_int_equal(bid_url_normalise("ftp://a", &url), -EPROTONOSUPPORT);
	assert_string_equal(url, "as it was");
}

static void test_file_url_names_a_tree(void **state)
{
	static const struct {
		const char *url, *path;
	} cases[] = {
		{ "file:///srv/debug", "/srv/debug" }, { "FILE:///srv/a%20b", "/srv/a b" }, { "file://localhost/srv", "/srv" },
		{ "file:///srv/a b", "/srv/a b" },     { "file:///srv/a%20b", "/srv/a b" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *path;

		assert_true(bid_url_is_tree(cases[i].url));
		assert_int_equal(bid_url_tree_path(cases[i].url, &path), 0);
		assert_string_equal(path, cases[i].path);
		free(path);
	}
	assert_false(bid_url_is_tree("http://a/file://b"));
}

static void test_same_server(void **state)
{
	static const char home[] = "https://u:p@a.example/x";
	static const struct {
		const char *url;
		bool same;
	} cases[] = {
		{ "https://a.example/y", true },
		{ "https://A.example:443/y?q=1", true },
		{ "https://e:m@a.example/y", true },
		{ "https://a.example:444/x", false },
		{ "http://a.example/x", false },
		{ "https://b.example/x", false },
		{ "https://a.example@b.example/x", false },
		{ "//a.example/x", false },
		{ "", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (bid_url_same_server(home, cases[i].url) != cases[i].same)
			fail_msg("%s", cases[i].url);
}

static void test_shown_url_hides_the_password(void **state)
{
	static const char *const cases[][2] = {
		{ "http://example.org/a", "http://example.org/a" },
		{ "http://user@example.org/a", "http://example.org/a" },
		{ "https://user:secret@example.org:8002/a@b", "https://example.org:8002/a@b" },
		{ "https://user:se@cret@example.org/", "https://example.org/" },
		{ "ftp://user:secret@example.org", "ftp://example.org" },
		{ "user:secret@example.org/", "example.org/" },
		{ "http://example.org?a@b", "http://example.org?a@b" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bid_auto_free char *shown = bid_fetch_url_shown(cases[i][0]);

		assert_non_null(shown);
		assert_string_equal(shown, cases[i][1]);
	}
}

static void test_request_has_its_url(void **state)
{
	struct bid_artifact artifact = { .kind = BID_KIND_ELF };
	bid_auto_free char *elf = NULL, *debuginfo = NULL;
	char *none = NULL;

	assert_int_equal(bid_id_parse_str("00ff7f20", &artifact.id), 0);
	assert_int_equal(bid_url_for_request("http://h/x", &artifact, &elf), 0);
	assert_string_equal(elf, "http://h/x/buildid/00ff7f20/executable");
	artifact.kind = BID_KIND_DEBUGINFO;
	assert_int_equal(bid_url_for_request("http://h/x", &artifact, &debuginfo), 0);
	assert_string_equal(debuginfo, "http://h/x/buildid/00ff7f20/debuginfo");

	for (int kind = BID_KIND_NONE; kind <= BID_KIND_END; kind++) {
		if (kind == BID_KIND_ELF || kind == BID_KIND_DEBUGINFO || bid_kind_has_subpath((enum bid_kind)kind))
			continue;
		artifact.kind = (enum bid_kind)kind;
		assert_int_equal(bid_url_for_request("http://h/x", &artifact, &none), -EOPNOTSUPP);
		assert_null(none);
	}
}

static void test_request_encodes_the_subpath(void **state)
{
	static const struct {
		enum bid_kind kind;
		const char *text;
		const char *url;
	} cases[] = {
		{ BID_KIND_SOURCE, "/usr/src/a.c", "http://h/x/buildid/00ff7f20/source/usr/src/a.c" },
		{ BID_KIND_SOURCE, "/a b/c++/?#%&.~_-h", "http://h/x/buildid/00ff7f20/source/a%20b/c%2B%2B/%3F%23%25%26.~_-h" },
		{ BID_KIND_SOURCE, "/\xc3\xa9\xff.c", "http://h/x/buildid/00ff7f20/source/%C3%A9%FF.c" },
		{ BID_KIND_SECTION, ".debug_line", "http://h/x/buildid/00ff7f20/section/.debug_line" },
		{ BID_KIND_SECTION, "a?b", "http://h/x/buildid/00ff7f20/section/a%3Fb" },
	};
	struct bid_artifact artifact = { .kind = BID_KIND_SOURCE };
	char *none = NULL;

	assert_int_equal(bid_id_parse_str("00ff7f20", &artifact.id), 0);
	assert_int_equal(bid_url_for_request("http://h/x", &artifact, &none), -EINVAL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bid_auto_free char *url = NULL;
		struct bid_subpath *subpath;

		assert_int_equal(
			(cases[i].kind == BID_KIND_SOURCE ? bid_subpath_source : bid_subpath_section)(cases[i].text, &subpath), 0);
		artifact.kind = cases[i].kind;
		artifact.subpath = subpath;
		assert_int_equal(bid_url_for_request("http://h/x", &artifact, &url), 0);
		assert_string_equal(url, cases[i].url);
		bid_artifact_release(&artifact);
	}
}

static void test_variable_lists_servers(void **state)
{
	static const char *const cases[][2] = {
		{ "http://a/ http://b", "http://a http://b" },
		{ "  \thttp://a\n\nhttps://b/x/\t", "http://a https://b/x" },
		{ "http://a http://a/ http://b http://a//", "http://a http://b" },
		{ "ima:enforcing http://a ima:ignore http://b", "ima:enforcing http://a http://b" },
		{ "http://a ima:enforcing http://b/ http://c", "http://a ima:enforcing http://b ima:enforcing http://c" },
		{ "ima:enforcing ima:permissive http://a", "ima:enforcing http://a" },
		{ "ima:enforcing http://a ima:ignore http://a", "ima:enforcing http://a" },
		{ "http://a ima:enforcing http://a", "http://a" },
		{ "IMA:Enforcing a:8002", "ima:enforcing http://a:8002" },
		{ "IMA:whatever http://a", "http://a" },
		{ "gopher://srv/debug http://a ftp://x", "http://a" },
		{ "non?sense http://a", "http://a" },
		{ "a:8002 http://a:8002", "http://a:8002" },
		{ "http://user:secret@a/", "http://user:secret@a" },
		{ "", "" },
		{ "   ", "" },
		{ "ima:enforcing", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(setenv("DEBUGINFOD_URLS", cases[i][0], 1), 0);
		assert_urls(NULL, cases[i][1]);
		assert_string_equal(getenv("DEBUGINFOD_URLS"), cases[i][0]);
	}
}

struct directory {
	char path[64];
};

static int make_directory(void **state)
{
	static struct directory directory;

	snprintf(directory.path, sizeof(directory.path), "/tmp/bid-test-url-XXXXXX");
	*state = &directory;
	return mkdtemp(directory.path) ? 0 : -1;
}

static int remove_directory(void **state)
{
	const struct directory *directory = *state;
	bid_auto_dir DIR *dir = opendir(directory->path);
	struct dirent *entry;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(dirfd(dir), entry->d_name, entry->d_type == DT_DIR ? AT_REMOVEDIR : 0);
	return rmdir(directory->path);
}

static void test_files_list_servers(void **state)
{
	const struct directory *etc = *state;

	write_text(etc->path, "b.urls", "https://b.example.org/\n");
	write_text(etc->path, "a.urls",
		   "https://a.example.org/ https://b.example.org\n# http://old.example.org/\nima:enforcing\n"
		   "http://c.example.org");
	write_text(etc->path, "a.certpath", "/etc/keys/one\n");
	write_text(etc->path, ".hidden.urls", "http://hidden.example.org/\n");
	write_text(etc->path, "urls", "http://no-suffix.example.org/\n");
	write_text(etc->path, "empty.urls", "");

	unsetenv("DEBUGINFOD_URLS");
	assert_urls(etc->path, "https://a.example.org https://b.example.org ima:enforcing http://c.example.org");

	/* the variable goes before the files, and empty is not unset */
	setenv("DEBUGINFOD_URLS", "http://v", 1);
	assert_urls(etc->path, "http://v");
	setenv("DEBUGINFOD_URLS", "", 1);
	assert_urls(etc->path, "");
}

static void assert_certificates(const char *etc, const char *expected)
{
	bid_auto_free char *path = bid_fetch_certificate_path(etc);

	assert_string_equal(path, expected);
}

static void test_files_list_directories_of_certificates(void **state)
{
	const struct directory *etc = *state;

	unsetenv("DEBUGINFOD_IMA_CERT_PATH");
	write_text(etc->path, "a.urls", "http://a\n");
	assert_certificates(etc->path, "/etc/keys/ima");
	assert_certificates("/nonexistent/debuginfod", "/etc/keys/ima");
	write_text(etc->path, "b.certpath", "/two\n/three");
	write_text(etc->path, "a.certpath", "/one\n");
	assert_certificates(etc->path, "/one:/two:/three:");
	setenv("DEBUGINFOD_IMA_CERT_PATH", "/four:/five", 1);
	assert_certificates(etc->path, "/four:/five");
	unsetenv("DEBUGINFOD_IMA_CERT_PATH");
}

static void test_unreadable_files_are_reported(void **state)
{
	const struct directory *etc = *state;
	bid_auto_free char *long_text = malloc(200 * 1024);
	char path[PATH_MAX];

	assert_non_null(long_text);
	memset(long_text, ' ', 200 * 1024);
	memcpy(long_text, "http://long", 11);
	long_text[200 * 1024 - 1] = '\0';
	write_text(etc->path, "b-long.urls", long_text);
	snprintf(path, sizeof(path), "%s/c-directory.urls", etc->path);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/d-dangling.urls", etc->path);
	assert_int_equal(symlink("nowhere", path), 0);
	/* open(2) for reading would block */
	snprintf(path, sizeof(path), "%s/e-fifo.urls", etc->path);
	assert_int_equal(mkfifo(path, 0644), 0);
	write_text(etc->path, "z.urls", "http://z");

	unsetenv("DEBUGINFOD_URLS");
	assert_urls(etc->path, "http://z");
}

static void test_missing_directory_has_no_servers(void **state)
{
	char **urls = NULL;

	unsetenv("DEBUGINFOD_URLS");
	assert_urls("/nonexistent/debuginfod", "");
	assert_int_equal(bid_fetch_urls_from_environment("/dev/null", &urls), -ENOTDIR);
	assert_null(urls);
}

static void clear_config_environment(void)
{
	unsetenv("DEBUGINFOD_TIMEOUT");
	unsetenv("DEBUGINFOD_MAXTIME");
	unsetenv("DEBUGINFOD_MAXSIZE");
	unsetenv("DEBUGINFOD_RETRY_LIMIT");
}

static void test_missing_variables_mean_defaults(void **state)
{
	struct bid_fetch_config config;

	clear_config_environment();
	memset(&config, 0xff, sizeof(config));
	bid_fetch_config_from_environment(&config);
	assert_int_equal(config.connect_ms, 0);
	assert_int_equal(config.first_byte_ms, 0);
	assert_int_equal(config.answer_ms, 0);
	assert_int_equal(config.stall_ms, 0);
	assert_int_equal(config.retries, 2);
	assert_int_equal(config.parallel, 0);
	assert_int_equal(config.max_time_ms, 0);
	assert_int_equal(config.max_size, 0);
}

static void test_timeout_variable_is_parsed(void **state)
{
	static const struct {
		const char *value;
		unsigned connect_ms, first_byte_ms, answer_ms, stall_ms;
	} cases[] = {
		{ "90", 5000, 30000, 90000, 90000 },
		{ "2", 2000, 2000, 2000, 2000 },
		{ "0", 5000, 30000, 3600000, 3600000 },
		{ "-1", 5000, 30000, 3600000, 3600000 },
		{ "99999999999", 5000, 30000, 3600000, 3600000 },
		{ "soon", 0, 0, 0, 0 },
		{ "3s", 0, 0, 0, 0 },
		{ "", 0, 0, 0, 0 },
		{ "999999999999999999999999", 0, 0, 0, 0 },
	};

	clear_config_environment();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bid_fetch_config config;

		setenv("DEBUGINFOD_TIMEOUT", cases[i].value, 1);
		bid_fetch_config_from_environment(&config);
		assert_int_equal(config.connect_ms, cases[i].connect_ms);
		assert_int_equal(config.first_byte_ms, cases[i].first_byte_ms);
		assert_int_equal(config.answer_ms, cases[i].answer_ms);
		assert_int_equal(config.stall_ms, cases[i].stall_ms);
	}
	clear_config_environment();
}

static void test_limit_variables_are_parsed(void **state)
{
	struct bid_fetch_config config;

	clear_config_environment();
	setenv("DEBUGINFOD_MAXTIME", "30", 1);
	setenv("DEBUGINFOD_MAXSIZE", "5000000000", 1);
	setenv("DEBUGINFOD_RETRY_LIMIT", "0", 1);
	bid_fetch_config_from_environment(&config);
	assert_int_equal(config.max_time_ms, 30000);
	assert_int_equal(config.max_size, 5000000000);
	assert_int_equal(config.retries, 0);

	setenv("DEBUGINFOD_MAXTIME", "0", 1);
	setenv("DEBUGINFOD_MAXSIZE", "-1", 1);
	setenv("DEBUGINFOD_RETRY_LIMIT", "1000000", 1);
	bid_fetch_config_from_environment(&config);
	assert_int_equal(config.max_time_ms, 0);
	assert_int_equal(config.max_size, 0);
	assert_int_equal(config.retries, 10);
	clear_config_environment();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_url_is_refused),
		cmocka_unit_test(test_longest_url_is_accepted),
		cmocka_unit_test(test_url_is_normalised),
		cmocka_unit_test(test_failed_normalisation_keeps_the_result),
		cmocka_unit_test(test_file_url_names_a_tree),
		cmocka_unit_test(test_same_server),
		cmocka_unit_test(test_shown_url_hides_the_password),
		cmocka_unit_test(test_request_has_its_url),
		cmocka_unit_test(test_request_encodes_the_subpath),
		cmocka_unit_test(test_variable_lists_servers),
		cmocka_unit_test_setup_teardown(test_files_list_servers, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_files_list_directories_of_certificates, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_unreadable_files_are_reported, make_directory, remove_directory),
		cmocka_unit_test(test_missing_directory_has_no_servers),
		cmocka_unit_test(test_missing_variables_mean_defaults),
		cmocka_unit_test(test_timeout_variable_is_parsed),
		cmocka_unit_test(test_limit_variables_are_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
