// SPDX-License-Identifier: LGPL-2.1-or-later
/* Servers with ima:enforcing in a build without OpenSSL: store/signature/none.c takes the place of openssl.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/fetch.h"
#include "base/io.h"

/* Make a server of @url. Returns the result, and the log in @log. */
static int add_server(bool enforce, const char *url, struct bid_server **ret_server, char *log, size_t size)
{
	int file = memfd_create("log", 0), own = dup(STDERR_FILENO), r;
	struct bid_fetch *fetch;
	ssize_t n;

	assert_int_equal(bid_fetch_new(&(struct bid_fetch_config){ .enforce = enforce }, &fetch), 0);
	dup2(file, STDERR_FILENO);
	r = bid_fetch_server_new(fetch, url, ret_server);
	dup2(own, STDERR_FILENO);
	if (r == 0)
		(*ret_server)->ops->free(*ret_server);
	bid_fetch_free(fetch);
	n = bid_pread_full(file, log, size - 1, 0);
	assert_true(n >= 0);
	log[n] = '\0';
	close(file);
	close(own);
	return r;
}

static void test_server_whose_signatures_cannot_be_checked_is_ignored_with_a_warning(void **state)
{
	static const char warning[] = "this build cannot check signatures: bidfs ignores the server 'http://h'";
	struct bid_server *server = NULL;
	char log[1024];

	assert_int_equal(add_server(false, "ima:enforcing http://user:secret@h", &server, log, sizeof(log)), -EOPNOTSUPP);
	assert_null(server);
	assert_non_null(strstr(log, warning));
	assert_int_equal(add_server(true, "http://h", &server, log, sizeof(log)), -EOPNOTSUPP);
	assert_non_null(strstr(log, warning));
}

static void test_other_servers_are_used(void **state)
{
	struct bid_server *server;
	char log[1024];

	assert_int_equal(add_server(false, "http://h", &server, log, sizeof(log)), 0);
	assert_int_equal(add_server(false, "ima:ignore http://h", &server, log, sizeof(log)), 0);
	assert_string_equal(log, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server_whose_signatures_cannot_be_checked_is_ignored_with_a_warning),
		cmocka_unit_test(test_other_servers_are_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
