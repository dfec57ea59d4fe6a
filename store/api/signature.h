/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signatures of files as IMA of the kernel has them (evmctl(1)), and their MD5 and SHA-256, by OpenSSL. A build without OpenSSL
 * (-Dima=disabled) has the same functions; they return -EOPNOTSUPP.
 */
#ifndef BID_API_SIGNATURE_H
#define BID_API_SIGNATURE_H

#include <stddef.h>

/* Public keys of those who may sign. Constant after its construction: any number of threads may use it. */
struct bid_signers;

/*
 * Load the certificates of the directories in @path, separated by colons: *.der, *.pem, *.crt, *.cer and *.cert, each DER or PEM,
 * or a public key in PEM. As libdebuginfod and the kernel do, it uses an expired certificate: a signature has no date. Logs bad
 * certificates, and a lack of any. Returns 0, -ENOMEM or -EOPNOTSUPP. The caller frees @ret_signers.
 */
int bid_signers_load(const char *path, struct bid_signers **ret_signers);

/* @signers may be NULL. */
void bid_signers_free(struct bid_signers *signers);

#define BID_SIGNER_MAX 256 /* bytes of the text of a signer, with its NUL */

/*
 * Check that @signature is one of @signers for the bytes of the file @fd. @signature is the hex text of an IMA signature of version
 * 2 (security.ima), or NULL for none. Reads the whole file. Returns 0 and the signer in @ret_text, "key 1a2b3c4d of
 * '/etc/keys/ima/x.der'"; -EBADMSG and the reason in @ret_text; or as pread(2).
 */
int bid_signers_check(const struct bid_signers *signers, int fd, const char *signature, char *ret_text, size_t size);

/* The number of digits is the value. */
enum bid_file_digest { BID_FILE_MD5 = 32, BID_FILE_SHA256 = 64 };

#define BID_FILE_DIGEST_MAX 65 /* bytes of a digest in hex, with its NUL */

/*
 * Write the digest of the file @fd in lower-case hex. Reads the whole file; with -1, only returns whether this build has it.
 * Returns 0, -EOPNOTSUPP also if OpenSSL refuses it (MD5 in FIPS mode), -ENOMEM, or as pread(2).
 */
int bid_file_digest(int fd, enum bid_file_digest algorithm, char ret_hex[static BID_FILE_DIGEST_MAX]);

#endif
