// SPDX-License-Identifier: LGPL-2.1-or-later
/* A build without OpenSSL. */
#include <errno.h>

#include "api/signature.h"

int bid_signers_load(const char *path, struct bid_signers **ret_signers)
{
	return -EOPNOTSUPP;
}

void bid_signers_free(struct bid_signers *signers)
{
}

int bid_signers_check(const struct bid_signers *signers, int fd, const char *signature, char *ret_text, size_t size)
{
	return -EOPNOTSUPP;
}

int bid_file_digest(int fd, enum bid_file_digest algorithm, char ret_hex[static BID_FILE_DIGEST_MAX])
{
	return -EOPNOTSUPP;
}
