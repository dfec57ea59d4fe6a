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

enum { BID_MD5_HEX = 32, BID_SHA256_HEX = 64 }; /* digits of a digest */

/*
 * Write the MD5 and the SHA-256 of the file @fd in lower-case hex, except where NULL; with both NULL, only return whether this
 * build has digests. Reads the whole file once. Returns 0, -EOPNOTSUPP also if OpenSSL refuses one (MD5 in FIPS mode), -ENOMEM,
 * or as pread(2).
 */
int bid_file_digests(int fd, char *ret_md5, char *ret_sha256);

#endif
